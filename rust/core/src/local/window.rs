//! The piecewise mechanism on integers.

use super::keep_probability;
use super::range::{Range, check_steps};
use crate::error::{Error, Result};
use crate::noise::{Fixed, Rng};
use crate::params::Epsilon;

/// The piecewise mechanism (Wang et al. 2019) on integer cells: a window of `length` cells starts at the number's grid
/// point, and its cells are up to e^epsilon times as likely as the 2^log2_steps others.
///
/// Guarantee: pure epsilon-DP, whatever the number.
///
/// Cost: three words of the stream for each draw, and rarely more.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    range: Range,
    log2_steps: u32,
    length: u64,
    keep: Fixed,
}

impl Window {
    /// Randomizes numbers in a range. The length must be from 1 to 2^log2_steps, and log2_steps at most 60.
    pub fn new(range: Range, log2_steps: u32, length: u64, epsilon: Epsilon) -> Result<Window> {
        check_steps(log2_steps)?;
        if !(1..=1 << log2_steps).contains(&length) {
            return Err(Error::parameter("length", length, "a window needs a cell, and no more than there are steps"));
        }
        let keep = keep_probability(epsilon, length, (1 << log2_steps) + length);
        Ok(Window { range, log2_steps, length, keep })
    }

    /// Draws a cell from 0, ..., 2^log2_steps + length - 1 for a number, from three words and rarely more.
    #[inline]
    pub fn draw(&self, value: f64, [rounding, coin, word]: [u64; 3], rng: &mut Rng) -> i64 {
        let start = self.range.grid_point(value, self.log2_steps, rounding, rng);
        // A mask, since a processor could not foresee a branch.
        let own = u64::from(coin < self.keep.0).wrapping_neg();
        let cells = self.length + ((1 << self.log2_steps) & !own);
        ((start & own) + rng.below_from(word, cells)) as i64
    }
}
