//! The piecewise mechanism on integers.

use super::{Range, inside_probability};
use crate::noise::{Fixed, Rng};
use crate::params::Epsilon;

/// Wang and others 2019, on cells: a window of `length` cells starts at the number's grid point, its cells are up to
/// e^epsilon times as likely as the 2^log2_steps others.
///
/// Guarantee: pure epsilon-DP, whatever the number. Cost: three words of the stream a draw.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    range: Range,
    log2_steps: u32,
    length: u64,
    inside: Fixed,
}

impl Window {
    /// A positive length, at most 2^log2_steps <= 2^61.
    pub fn new(range: Range, log2_steps: u32, length: u64, epsilon: Epsilon) -> Window {
        let inside = inside_probability(epsilon, length, 1 << log2_steps);
        Window { range, log2_steps, length, inside }
    }

    /// A cell below 2^log2_steps + length.
    #[inline]
    pub fn draw(&self, value: f64, rng: &mut Rng) -> i64 {
        let start = self.range.grid_point(value, self.log2_steps, rng);
        let cell = if self.inside.draw(rng) {
            start + rng.below(self.length)
        } else {
            let other = rng.below(1 << self.log2_steps);
            other + if other < start { 0 } else { self.length }
        };
        cell as i64
    }
}
