//! Randomized response with many answers.

use super::category::{Categories, MOST_REPORTS};
use super::keep_probability;
use crate::error::{Error, Result};
use crate::noise::Rng;
use crate::params::Epsilon;
use crate::simd::{Below, Isa, Keep, tell_values};

/// Randomized response with k answers: the true value is up to e^epsilon times as likely as each of the k - 1 others.
///
/// Guarantee: pure epsilon-DP, whatever the value.
///
/// Cost: a word of the stream for each draw, and rarely more.
#[derive(Clone, Copy, Debug)]
pub struct Kary {
    any: Below,
    keep: Keep,
}

impl Kary {
    /// Randomizes `k` values, from 2 to 2^31.
    pub fn new(k: u64, epsilon: Epsilon) -> Result<Kary> {
        match u32::try_from(k) {
            Ok(any @ 2..=MOST_REPORTS) => {
                Ok(Kary { any: Below(any), keep: Keep::new(keep_probability(epsilon, 1, k).0) })
            }
            _ => Err(Error::parameter("k", k, "there must be from 2 to 2^31 answers")),
        }
    }
}

impl Categories for Kary {
    #[inline]
    fn draw(&self, value: i64, word: u64, rng: &mut Rng) -> i64 {
        if self.keep.is_told(word, || rng.next_u64()) {
            value.clamp(0, i64::from(self.any.0) - 1)
        } else {
            self.any.draw(word, || rng.next_u64()) as i64
        }
    }

    fn draw_certain(&self, isa: Isa, values: &[i64], words: &[u64], out: &mut [i64], settled: &mut [bool]) {
        tell_values(isa, values, words, self.keep, self.any, out, settled);
    }
}
