//! The range of private numbers, and integer noise on a grid over it.

use crate::error::{Error, Result};
use crate::noise::{CHUNK, IntegerNoise, Rng, Seed, Stream, rounded_position};
use crate::run::Run;
use crate::simd::{Isa, MOST_STEPS, ROUNDED, add_saturating, position, round_to_grid};

/// The range of numbers from `low` to `low + width`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Range {
    low: f64,
    width: f64,
}

/// Points of a finer grid, and twice as many cells, would not be 64-bit integers.
const MOST_LOG2_STEPS: u32 = 60;

impl Range {
    /// The range from 0 to 1.
    pub const UNIT: Range = Range { low: 0.0, width: 1.0 };

    /// Refuses a range that is not finite or whose width is not positive.
    pub fn new(low: f64, width: f64) -> Result<Range> {
        if low.is_finite() && width.is_finite() && width > 0.0 {
            Ok(Range { low, width })
        } else {
            Err(Error::parameter("range", format!("{low} + {width}"), "it must be finite, and its width positive"))
        }
    }

    /// The position of a number in the range, from 0 at its low end to 1 at its high end. A number out of range counts
    /// as the nearer end and NaN as the low end, so that no value is an error.
    #[inline]
    pub fn position(self, value: f64) -> f64 {
        position(value, self.low, self.width)
    }

    /// Its low end and its width.
    pub(super) fn ends(self) -> (f64, f64) {
        (self.low, self.width)
    }

    /// Draws one of the points 0, 1, ..., 2^log2_steps of a grid over the range, one of the two next to the number, so
    /// that the mean is the number's position on the grid. The word nearly always decides.
    #[inline]
    pub(super) fn grid_point(self, value: f64, log2_steps: u32, word: u64, rng: &mut Rng) -> u64 {
        rounded_position(self.position(value), log2_steps, word, rng)
    }

    /// Draws such a point for each number, at most [`BLOCK`] of them.
    fn grid_points(self, numbers: &[f64], log2_steps: u32, words: &[u64], points: &mut [i64], isa: Isa, rng: &mut Rng) {
        let mut settled = [false; BLOCK / ROUNDED];
        if log2_steps <= MOST_STEPS {
            let steps = (1u64 << log2_steps) as f64;
            round_to_grid(isa, numbers, self.ends(), steps, words, points, &mut settled);
        }
        let parts = numbers.chunks(ROUNDED).zip(words.chunks(ROUNDED)).zip(points.chunks_mut(ROUNDED));
        for (((numbers, words), points), _) in parts.zip(settled).filter(|(_, settled)| !settled) {
            for ((&number, &word), point) in numbers.iter().zip(words).zip(points) {
                *point = self.grid_point(number, log2_steps, word, rng) as i64;
            }
        }
    }
}

/// Numbers that are rounded at a time.
const BLOCK: usize = 512;

/// Rounds each number to the grid of 2^log2_steps steps over the range and adds integer noise, saturating; log2_steps may
/// be at most 60.
///
/// Guarantee: that of the noise for integers that differ by at most 2^log2_steps, since rounding makes a mixture of
/// such.
pub fn noisy(
    numbers: &[f64],
    range: Range,
    log2_steps: u32,
    noise: &dyn IntegerNoise,
    out: &mut [i64],
    seed: &Seed,
    run: Run<'_>,
) -> Result<()> {
    check_steps(log2_steps)?;
    run.try_for_each_chunk(out, CHUNK, |chunk, out| {
        let mut rng = seed.stream(Stream::Response, chunk as u64);
        noise.fill(out, run.isa, &mut rng);
        let (numbers, mut words, mut points) = (&numbers[chunk * CHUNK..], [0; BLOCK], [0; BLOCK]);
        for (numbers, out) in numbers.chunks(BLOCK).zip(out.chunks_mut(BLOCK)) {
            let (words, points) = (&mut words[..out.len()], &mut points[..out.len()]);
            rng.words(words);
            range.grid_points(&numbers[..out.len()], log2_steps, words, points, run.isa, &mut rng);
            add_saturating(run.isa, out, points);
        }
        Ok(())
    })
}

/// Refuses a grid too fine for 64 bits.
pub(super) fn check_steps(log2_steps: u32) -> Result<()> {
    if log2_steps <= MOST_LOG2_STEPS {
        Ok(())
    } else {
        Err(Error::parameter("log2_steps", log2_steps, "it must be at most 60"))
    }
}
