//! Hadamard response: a report of a few bytes about one of many values.

use super::inside_probability;
use crate::noise::{Fixed, Rng};
use crate::params::Epsilon;

/// Acharya, Sun and Zhang 2019: value x stands for row 1 + x / blocks of the Hadamard matrix in block x mod blocks, and
/// the columns where that row is 1 are up to e^epsilon times as likely as all others.
///
/// Guarantee: pure epsilon-DP, whatever the value. Cost: two words of the stream a draw, or three, rarely more.
#[derive(Clone, Copy, Debug)]
pub struct Hadamard {
    k: u64,
    blocks: u64,
    log2_size: u32,
    inside: Fixed,
}

impl Hadamard {
    /// k values in blocks of 2^log2_size columns each, where k <= blocks (2^log2_size - 1) and all columns are fewer than
    /// 2^61.
    pub fn new(k: u64, blocks: u64, log2_size: u32, epsilon: Epsilon) -> Hadamard {
        let half = 1 << (log2_size - 1);
        Hadamard { k, blocks, log2_size, inside: inside_probability(epsilon, half, (blocks << log2_size) - half) }
    }

    /// A column; a value out of range counts as the nearer end.
    #[inline]
    pub fn draw(&self, value: i64, rng: &mut Rng) -> i64 {
        let value = value.clamp(0, self.k as i64 - 1) as u64;
        let (block, row) = (value % self.blocks, 1 + value / self.blocks);
        let column = if self.inside.draw(rng) {
            let column = rng.next_u64() & ((1 << self.log2_size) - 1);
            // Flipping a bit of the row pairs each column where it is -1 with one where it is 1.
            block << self.log2_size | column ^ (odd(column & row) * (row & row.wrapping_neg()))
        } else {
            self.outside(block, row, rng)
        };
        column as i64
    }

    /// At least every other column is outside.
    #[inline]
    fn outside(&self, block: u64, row: u64, rng: &mut Rng) -> u64 {
        loop {
            let column = rng.below(self.blocks << self.log2_size);
            if column >> self.log2_size != block || odd(column & row) == 1 {
                return column;
            }
        }
    }
}

/// Whether the number of ones is odd.
#[inline]
fn odd(bits: u64) -> u64 {
    u64::from(bits.count_ones() & 1)
}
