//! The range of private numbers, and integer noise on a grid over it.

use crate::noise::{Rng, rounded_number};

/// Numbers from `low` to `low + width`, finite, the width positive.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Range {
    /// The least number.
    pub low: f64,
    /// The distance to the greatest.
    pub width: f64,
}

impl Range {
    /// Where a number stands, in [0, 1]: the nearer end for one out of range, 0 for NaN, so that no value is an error.
    #[inline]
    pub fn position(self, value: f64) -> f64 {
        let position = (value - self.low) / self.width;
        if position > 0.0 { position.min(1.0) } else { 0.0 }
    }

    /// One of the points 0, 1, ..., 2^log2_steps of a grid over the range: the number's neighbours, so that the mean is
    /// its position on the grid.
    #[inline]
    pub fn grid_point(self, value: f64, log2_steps: u32, rng: &mut Rng) -> u64 {
        rounded_number(self.position(value) * (1u64 << log2_steps) as f64, rng)
    }
}

/// A grid point with integer noise, saturating.
///
/// Guarantee: that of the noise for integers that differ by at most 2^log2_steps, since rounding makes a mixture of such.
pub fn noisy(
    range: Range,
    log2_steps: u32,
    noise: impl Fn(&mut Rng) -> i64 + Sync + Send,
) -> impl Fn(f64, &mut Rng) -> i64 + Sync + Send {
    move |value, rng| (range.grid_point(value, log2_steps, rng) as i64).saturating_add(noise(rng))
}
