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
