//! Randomised response with many answers.

use super::inside_probability;
use crate::noise::{Fixed, Rng};
use crate::params::Epsilon;

/// The truth, up to e^epsilon times as likely as each of the k - 1 lies.
///
/// Guarantee: pure epsilon-DP, whatever the value. Cost: two words of the stream a draw at most.
#[derive(Clone, Copy, Debug)]
pub struct Kary {
    k: u64,
    truth: Fixed,
}

impl Kary {
    /// k >= 2 answers, below 2^62.
    pub fn new(k: u64, epsilon: Epsilon) -> Kary {
        Kary { k, truth: inside_probability(epsilon, 1, k - 1) }
    }

    /// An answer in 0, ..., k - 1; a value out of range counts as the nearer end.
    #[inline]
    pub fn draw(&self, value: i64, rng: &mut Rng) -> i64 {
        let value = value.clamp(0, self.k as i64 - 1) as u64;
        if self.truth.draw(rng) {
            return value as i64;
        }
        let lie = rng.below(self.k - 1);
        (lie + u64::from(lie >= value)) as i64
    }
}
