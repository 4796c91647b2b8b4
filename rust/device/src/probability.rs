//! The probabilities of randomizers as multiples of 2^-64, rounded towards the flatter law.
//!
//! The functions of `libm` are the same code on every host, and so are the multiples.

use libm::{expm1, tanh};

/// 2^64 as a float.
pub const TWO_64: f64 = 18_446_744_073_709_551_616.0;

/// Covers the rounding errors of a dozen float operations and library calls, each below 2^-50.
const MARGIN: f64 = 1.0 / (1u64 << 45) as f64;

/// Epsilons are cut here: a larger one could change no probability that is a multiple of 2^-64.
const MOST_EPSILON: f64 = 60.0;

/// A multiple of 2^-64, as its numerator, that is certainly not above an exact number, of which the float `p` in [0, 1)
/// is an approximation with a relative error below 2^-45.
pub fn certainly_below(p: f64) -> u64 {
    (p * (1.0 - MARGIN) * TWO_64) as u64
}

/// The probability with which binary randomized response keeps a bit, times 2^64: e^epsilon / (1 + e^epsilon), rounded
/// towards 1/2.
pub fn truth_probability(epsilon: f64) -> u64 {
    let advantage = tanh(epsilon.min(MOST_EPSILON) / 2.0) / 2.0;
    (1 << 63) + certainly_below(advantage).min((1 << 63) - 1)
}

/// The probability, times 2^64, with which a randomizer draws from its `kept` outcomes, while it otherwise draws from
/// `all` outcomes, which include them: rounded down, it makes each kept outcome at most e^epsilon times as likely as any
/// other. There must be 0 < kept <= all.
pub fn keep_probability(epsilon: f64, kept: u64, all: u64) -> u64 {
    let odds = expm1(epsilon.min(MOST_EPSILON)) * (kept as f64 / all as f64);
    certainly_below(odds / (1.0 + odds))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2^-60, in units of which the ends of e^epsilon are computed by its series: integers alone.
    const ONE: u128 = 1 << 60;

    /// Bounds of e^x, in units of 2^-60, for a fraction x = a / b of at most 4.
    fn exponential(a: u128, b: u128) -> (u128, u128) {
        let (mut term, mut low) = (ONE, ONE);
        for i in 1..80 {
            term = term * a / (b * i);
            low += term;
        }
        // Each of the terms lost less than a unit, and what comes after them is far below one.
        (low, low + 400)
    }

    /// Neither probability is above what epsilon allows, and both are next to it.
    #[test]
    fn ratios_are_at_most_e_to_the_epsilon() {
        for (a, b) in [(1, 1024), (1, 16), (1, 2), (1, 1), (3, 2), (2, 1), (4, 1)] {
            let ((low, high), whole) = (exponential(a, b), 1u128 << 64);
            let epsilon = a as f64 / b as f64;
            let keep = u128::from(truth_probability(epsilon));
            // T / (2^64 - T) <= e^epsilon, and with 2^-40 of T more it is not.
            assert!((keep >> 4) * ONE <= ((whole - keep) >> 4) * low, "{epsilon}");
            let more = keep + (keep >> 40);
            assert!((more >> 4) * ONE > ((whole - more) >> 4) * high, "{epsilon}");
            for (kept, all) in [(1u128, 2u128), (1, 3), (1, 1000), (7, 50)] {
                let keep = u128::from(keep_probability(epsilon, kept as u64, all as u64));
                // Pr[own] / Pr[other] = (K / kept + (1 - K) / all) / ((1 - K) / all) <= e^epsilon.
                let odds = |keep: u128| ((keep >> 8) * all / kept, (whole - keep) >> 8);
                let (own, other) = odds(keep);
                assert!(own <= other * (low - ONE) / ONE + 1, "{epsilon} {kept} {all}");
                let (own, other) = odds(keep + (keep >> 36));
                assert!(own > other * (high - ONE) / ONE, "{epsilon} {kept} {all}");
            }
        }
    }

    #[test]
    fn ends_are_no_certainties() {
        assert_eq!(truth_probability(f64::MIN_POSITIVE), 1 << 63);
        assert!(truth_probability(1e-9) > 1 << 63);
        assert_eq!(truth_probability(60.0), truth_probability(f64::MAX));
        assert!(truth_probability(60.0) < u64::MAX && keep_probability(f64::MAX, 1, 2) < u64::MAX);
    }
}
