//! Randomized response with many answers.

use super::keep_probability;
use crate::error::{Error, Result};
use crate::noise::{Fixed, Rng};
use crate::params::Epsilon;

/// The truth, up to e^epsilon times as likely as each of the k - 1 lies.
///
/// Guarantee: pure epsilon-DP, whatever the value. Cost: two words of the stream a draw at most.
#[derive(Clone, Copy, Debug)]
pub struct Kary {
    k: u64,
    keep: Fixed,
}

impl Kary {
    /// From 2 to 2^62 answers.
    pub fn new(k: u64, epsilon: Epsilon) -> Result<Kary> {
        if !(2..=1 << 62).contains(&k) {
            return Err(Error::parameter("k", k, "there must be from 2 to 2^62 answers"));
        }
        Ok(Kary { k, keep: keep_probability(epsilon, 1, k) })
    }

    /// An answer in 0, ..., k - 1; a value out of range counts as the nearer end.
    #[inline]
    pub fn draw(&self, value: i64, rng: &mut Rng) -> i64 {
        if self.keep.draw(rng) { value.clamp(0, self.k as i64 - 1) } else { rng.below(self.k) as i64 }
    }
}
