//! Hadamard response: a report of a few bytes about one of many values.

use super::keep_probability;
use crate::error::{Error, Result};
use crate::noise::{Fixed, Rng};
use crate::params::Epsilon;

/// Hadamard response to one of k values (Acharya, Sun and Zhang 2019). Value x stands for row 1 + x / blocks of the
/// Hadamard matrix in block x mod blocks; the columns where that row is 1 are up to e^epsilon times as likely as all
/// others.
///
/// Guarantee: pure epsilon-DP, whatever the value.
///
/// Cost: two words of the stream for each draw.
#[derive(Clone, Copy, Debug)]
pub struct Hadamard {
    k: u32,
    blocks: u32,
    log2_size: u32,
    keep: Fixed,
}

impl Hadamard {
    /// Randomizes `k` values in `blocks` blocks of 2^log2_size columns each, where 2 <= k <= blocks (2^log2_size - 1)
    /// and 1 <= log2_size < 32.
    pub fn new(k: u32, blocks: u32, log2_size: u32, epsilon: Epsilon) -> Result<Hadamard> {
        let rows = (1u64 << log2_size.min(31)) - 1;
        if !(1..32).contains(&log2_size) || k < 2 || u64::from(blocks) * rows < u64::from(k) {
            let sizes = format!("{k}, {blocks} and {log2_size}");
            return Err(Error::parameter(
                "sizes",
                sizes,
                "each of 2 or more values needs a row of its own, but the first",
            ));
        }
        let keep = keep_probability(epsilon, 1 << (log2_size - 1), u64::from(blocks) << log2_size);
        Ok(Hadamard { k, blocks, log2_size, keep })
    }

    /// Draws a column for a value, from two words and rarely more. A value out of range counts as the nearest one
    /// inside.
    #[inline]
    pub fn draw(&self, value: i64, [coin, word]: [u64; 2], rng: &mut Rng) -> i64 {
        let any = rng.below_from(word, u64::from(self.blocks) << self.log2_size) as i64;
        let value = value.clamp(0, i64::from(self.k) - 1) as u32;
        let (block, row) = (u64::from(value % self.blocks), 1 + u64::from(value / self.blocks));
        let column = word & ((1 << self.log2_size) - 1);
        // Flipping a bit of the row pairs each column where it is -1 with one where it is 1.
        let own = (block << self.log2_size | column ^ (odd(column & row) * (row & row.wrapping_neg()))) as i64;
        // A mask, since a processor could not foresee a branch. Only one of the two is ever told.
        any ^ (any ^ own) & -i64::from(coin < self.keep.0)
    }
}

/// Whether the number of ones is odd.
#[inline]
fn odd(bits: u64) -> u64 {
    u64::from(bits.count_ones() & 1)
}
