//! Hadamard response: a report of a few bytes about one of many values.

use super::category::{Categories, MOST_REPORTS};
use super::keep_probability;
use crate::error::{Error, Result};
use crate::noise::Rng;
use crate::params::Epsilon;
use crate::simd::{Below, Columns, Divisor, Isa, Keep, tell_columns};

/// Hadamard response to one of k values (Acharya, Sun and Zhang 2019). Value x stands for row 1 + x / blocks of the
/// Hadamard matrix in block x mod blocks; the columns where that row is 1 are up to e^epsilon times as likely as all
/// others.
///
/// Guarantee: pure epsilon-DP, whatever the value.
///
/// Cost: a word of the stream for each draw, and rarely more.
#[derive(Clone, Copy, Debug)]
pub struct Hadamard {
    columns: Columns,
    keep: Keep,
}

impl Hadamard {
    /// Randomizes `k` values in `blocks` blocks of 2^log2_size columns each, at most 2^31 in all, where 2 <= k <= blocks
    /// (2^log2_size - 1) and 1 <= log2_size < 32.
    pub fn new(k: u32, blocks: u32, log2_size: u32, epsilon: Epsilon) -> Result<Hadamard> {
        let rows = (1u64 << log2_size.min(31)) - 1;
        let columns = u64::from(blocks) << log2_size.min(31);
        match u32::try_from(columns) {
            Ok(all @ 1..=MOST_REPORTS)
                if (1..32).contains(&log2_size) && k >= 2 && u64::from(blocks) * rows >= u64::from(k) =>
            {
                let keep = Keep::new(keep_probability(epsilon, 1 << (log2_size - 1), columns).0);
                Ok(Hadamard { columns: Columns { k, blocks: Divisor::new(blocks), log2_size, any: Below(all) }, keep })
            }
            _ => Err(Error::parameter(
                "sizes",
                format!("{k}, {blocks} and {log2_size}"),
                "each of 2 or more values needs a row of its own, but the first, and there may be 2^31 columns",
            )),
        }
    }
}

impl Categories for Hadamard {
    #[inline]
    fn draw(&self, value: i64, word: u64, rng: &mut Rng) -> i64 {
        let drawn = if self.keep.is_told(word, || rng.next_u64()) {
            self.columns.own(value, word)
        } else {
            self.columns.any.draw(word, || rng.next_u64())
        };
        drawn as i64
    }

    fn draw_certain(&self, isa: Isa, values: &[i64], words: &[u64], out: &mut [i64], settled: &mut [bool]) {
        tell_columns(isa, values, words, self.keep, self.columns, out, settled);
    }
}
