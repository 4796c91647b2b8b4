//! Independent draws from a distribution with integer weights, exactly.

use super::rng::Rng;
use crate::error::{Error, Result, fitting};

/// Indices i with Pr[i] = weight i / sum of the weights.
///
/// A uniform integer below the sum is located among the cumulative sums, from where a guide table says that its part
/// begins.
pub struct Weighted {
    cumulative: Vec<u64>,
    guide: Vec<u32>,
    shift: u32,
}

impl Weighted {
    /// Fewer than 2^32 weights with a sum in [1, 2^64).
    pub fn new(weights: &[u64]) -> Result<Weighted> {
        const RULE: &str = "there must be fewer than 2^32, with a sum of at least 1 and below 2^64";
        let wrong = |what: &str| Err(Error::parameter("weights", what, RULE));
        if u32::try_from(weights.len()).is_err() {
            return wrong("too many");
        }
        let mut cumulative = Vec::with_capacity(fitting::<u64>(Some(weights.len()))?);
        let mut sum = 0u64;
        for &weight in weights {
            let Some(next) = sum.checked_add(weight) else {
                return wrong("an array with too large a sum");
            };
            sum = next;
            cumulative.push(sum);
        }
        if sum == 0 {
            return wrong("an array with sum 0");
        }
        // As many parts as weights, or up to twice as many.
        let shift = (u64::BITS - (sum - 1).leading_zeros()).saturating_sub(weights.len().ilog2() + 1);
        let parts = fitting::<u32>(usize::try_from((sum - 1) >> shift).ok())? + 1;
        let mut index = 0;
        let first = |part: usize| {
            while cumulative[index] <= (part as u64) << shift {
                index += 1;
            }
            index as u32
        };
        Ok(Weighted { guide: (0..parts).map(first).collect(), cumulative, shift })
    }

    /// One draw.
    #[inline]
    pub fn draw(&self, rng: &mut Rng) -> usize {
        let target = rng.below(self.cumulative[self.cumulative.len() - 1]);
        let mut index = self.guide[(target >> self.shift) as usize] as usize;
        while self.cumulative[index] <= target {
            index += 1;
        }
        index
    }
}
