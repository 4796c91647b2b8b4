//! Randomized response with many answers.

use super::keep_probability;
use crate::error::{Error, Result};
use crate::noise::{Fixed, Rng};
use crate::params::Epsilon;

/// Randomized response with k answers: the true value is up to e^epsilon times as likely as each of the k - 1 others.
///
/// Guarantee: pure epsilon-DP, whatever the value.
///
/// Cost: two words of the stream for each draw, and rarely more.
#[derive(Clone, Copy, Debug)]
pub struct Kary {
    k: u64,
    keep: Fixed,
}

impl Kary {
    /// Randomizes `k` values, from 2 to 2^62.
    pub fn new(k: u64, epsilon: Epsilon) -> Result<Kary> {
        if !(2..=1 << 62).contains(&k) {
            return Err(Error::parameter("k", k, "there must be from 2 to 2^62 answers"));
        }
        Ok(Kary { k, keep: keep_probability(epsilon, 1, k) })
    }

    /// Draws an answer from 0, ..., k - 1 for a value, from two words and rarely more. A value out of range counts as
    /// the nearest one inside.
    #[inline]
    pub fn draw(&self, value: i64, [coin, word]: [u64; 2], rng: &mut Rng) -> i64 {
        let any = rng.below_from(word, self.k) as i64;
        let own = value.clamp(0, self.k as i64 - 1);
        // A mask, since a processor could not foresee a branch.
        any ^ (any ^ own) & -i64::from(coin < self.keep.0)
    }
}
