//! The private choice of a candidate with a high score: permute-and-flip and the exponential mechanism, exactly.

use num_bigint::BigUint;
use num_traits::ToPrimitive;

use super::exponential::{ROUNDING, exp_minus_coin};
use super::interval::Rational;
use super::rng::Rng;
use crate::error::Result;
use crate::memory::collected;
use crate::run::Run;

/// Candidates with integer scores. A coin accepts a candidate with probability exp(-rate (best score - its score)).
pub struct Candidates<'a> {
    scores: &'a [i64],
    best: i64,
    rate: Rational,
    rate_f64: f64,
}

/// Draws between two looks at the cancel flag; one may take 20 microseconds.
const BETWEEN_CHECKS: usize = 1 << 12;

impl<'a> Candidates<'a> {
    /// Candidates by their scores, of which there must be at least one.
    ///
    /// Guarantee: the choice is pure epsilon-DP for a rate of epsilon / (2 sensitivity), and for one of epsilon /
    /// sensitivity where no neighbor moves two scores in opposite directions.
    pub fn new(scores: &'a [i64], rate: Rational) -> Candidates<'a> {
        let best = scores.iter().copied().max().unwrap_or(0);
        Candidates { scores, best, rate_f64: rate.to_f64().unwrap_or(f64::INFINITY), rate }
    }

    /// Chooses by permute-and-flip: looks at the candidates in random order and returns the index of the first that its
    /// coin accepts. Source: McKenna and Sheldon 2020.
    pub fn permute_and_flip(&self, rng: &mut Rng, run: Run<'_>) -> Result<usize> {
        let mut left = collected(0..self.scores.len())?;
        self.choose(run, || {
            let place = rng.below(left.len() as u64) as usize;
            let candidate = left.swap_remove(place);
            self.accepted(candidate, rng).then_some(candidate)
        })
    }

    /// Chooses by the exponential mechanism: the probability of each index is proportional to exp(rate score). Drawn by
    /// rejection. Source: McSherry and Talwar 2007.
    pub fn exponential_mechanism(&self, rng: &mut Rng, run: Run<'_>) -> Result<usize> {
        self.choose(run, || {
            let candidate = rng.below(self.scores.len() as u64) as usize;
            self.accepted(candidate, rng).then_some(candidate)
        })
    }

    /// Tries until one succeeds; the best candidate always does.
    fn choose(&self, run: Run<'_>, mut attempt: impl FnMut() -> Option<usize>) -> Result<usize> {
        loop {
            run.check()?;
            if let Some(candidate) = (0..BETWEEN_CHECKS).find_map(|_| attempt()) {
                return Ok(candidate);
            }
        }
    }

    #[inline]
    fn accepted(&self, candidate: usize, rng: &mut Rng) -> bool {
        let gap = self.best.abs_diff(self.scores[candidate]);
        if gap == 0 {
            return true;
        }
        let (gamma, error) = self.approximate_gamma(gap);
        exp_minus_coin(gamma, error, || self.gamma(gap), rng)
    }

    #[inline]
    fn approximate_gamma(&self, gap: u64) -> (f64, f64) {
        let gamma = self.rate_f64 * gap as f64;
        (gamma, gamma * ROUNDING)
    }

    #[cold]
    fn gamma(&self, gap: u64) -> Rational {
        &self.rate * BigUint::from(gap)
    }
}

#[cfg(test)]
mod tests {
    use super::super::exponential::assert_bounds;
    use super::super::rng::{Seed, Stream};
    use super::*;

    #[test]
    fn candidates_know_the_error_of_their_gamma() {
        let mut rng = Seed::reproducible([4; 32]).stream(Stream::Speed, 1);
        for round in 0..1000u64 {
            let long = BigUint::from(rng.next_u64() | 1) << (round % 200);
            let rate = Rational::new(long + 1u32, BigUint::from(rng.next_u64() | 1) << (rng.below(260)));
            let candidates = Candidates::new(&[0], rate.clone());
            for target in [1e-9, 0.3, 5.0, 40.0] {
                let gap = (target / candidates.rate_f64).min(1e18) as u64 + 1;
                let (gamma, error) = candidates.approximate_gamma(gap);
                assert_bounds(gamma, error, &candidates.gamma(gap));
            }
        }
    }
}
