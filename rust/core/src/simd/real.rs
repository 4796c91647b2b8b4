//! Floats of either precision, and lines of the cache as vectors of them: what the body of a kernel is written in where a
//! compiler would not find the vectors by itself.
//!
//! The portable line defines what the others compute, lane by lane and without fusing products with sums.

use std::ops::{Add, AddAssign, Mul, Sub};

use bytemuck::Pod;

use super::Isa;
use crate::error::Result;

/// The lines that are folded together.
pub const FOLDED: usize = 16;

/// A floating-point type of entries: `f32` or `f64`.
pub trait Real:
    Default + Pod + Send + Sync + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + AddAssign
{
    /// Adding this to a number below a third of it, and subtracting it again, leaves the nearest integer.
    const ROUNDER: Self;
    /// The least positive number whose relative error is that of rounding.
    const LEAST: f64;
    /// Twice the relative error of rounding.
    const EPSILON: f64;
    /// The value of this type that is nearest to a double.
    fn of(value: f64) -> Self;
    /// The values of this type that are nearest to some doubles: the doubles themselves if this type is theirs,
    /// otherwise rounded copies, which are written to `room`.
    fn all_of<'a>(values: &'a [f64], room: &'a mut Vec<Self>) -> Result<&'a [Self]>;
    /// The value as a double.
    fn get(self) -> f64;
    /// The number whose bits are the sum of those of two numbers, as integers without what leaves them.
    fn add_bits(self, other: Self) -> Self;
    /// The sum of so many integers, at least one, from the sum of the bits of these integers, each added to
    /// [`Self::ROUNDER`], which makes the bits grow with the integer. The sum must fit into 32 bits.
    fn total_of_bits(self, terms: usize) -> f64;
    /// Does work in the lines that the arm of an instruction set has for such numbers.
    fn in_lines(isa: Isa, work: impl InLines<Self>);
}

/// Work on numbers of one type, written for lines of any kind. It must be marked `#[inline(always)]`, so that it is
/// compiled for every arm.
pub trait InLines<T: Real> {
    /// Does the work.
    fn run<L: Line<T, LANES>, const LANES: usize>(self);
}

/// The numbers of a line of the cache, 64 bytes.
pub trait Line<T: Real, const LANES: usize>: Copy {
    /// Whether the machine has so many registers that many lines can be kept in them.
    const MANY: bool;
    /// The same number in all lanes.
    fn splat(number: T) -> Self;
    /// The line of these numbers.
    fn load(numbers: &[T; LANES]) -> Self;
    /// The line of these numbers, fewer than a line has, and of zeros behind them.
    fn load_start(numbers: &[T]) -> Self;
    /// The numbers.
    fn store(self) -> [T; LANES];
    /// The sums.
    fn add(self, other: Self) -> Self;
    /// The products.
    fn multiply(self, other: Self) -> Self;
    /// The sums of the bits as integers, without what leaves a lane.
    fn add_bits(self, other: Self) -> Self;

    /// The sum of all lanes: the upper half is added to the lower one until one number is left.
    #[inline(always)]
    fn fold(self) -> T {
        let sums = self.store();
        // Loops of known lengths, which leave no loop.
        let mut eight = [T::default(); 8];
        eight.copy_from_slice(&sums[..8]);
        if LANES == 16 {
            for lane in 0..8 {
                eight[lane] += sums[LANES - 8 + lane];
            }
        }
        let [a, b, c, d, e, f, g, h] = eight;
        ((a + e) + (c + g)) + ((b + f) + (d + h))
    }

    /// The sums of the lanes of each line, as [`Self::fold`] adds them up.
    #[inline(always)]
    fn fold_all(lines: &[Self; FOLDED]) -> [T; FOLDED] {
        let mut sums = [T::default(); FOLDED];
        for i in 0..FOLDED {
            sums[i] = lines[i].fold();
        }
        sums
    }
}

impl<T: Real, const LANES: usize> Line<T, LANES> for [T; LANES] {
    const MANY: bool = false;

    #[inline(always)]
    fn splat(number: T) -> Self {
        [number; LANES]
    }

    #[inline(always)]
    fn load(numbers: &[T; LANES]) -> Self {
        *numbers
    }

    #[inline(always)]
    fn load_start(numbers: &[T]) -> Self {
        let mut line = [T::default(); LANES];
        line.iter_mut().zip(numbers).for_each(|(lane, number)| *lane = *number);
        line
    }

    #[inline(always)]
    fn store(self) -> [T; LANES] {
        self
    }

    #[inline(always)]
    fn add(mut self, other: Self) -> Self {
        for lane in 0..LANES {
            self[lane] += other[lane];
        }
        self
    }

    #[inline(always)]
    fn multiply(mut self, other: Self) -> Self {
        for lane in 0..LANES {
            self[lane] = self[lane] * other[lane];
        }
        self
    }

    #[inline(always)]
    fn add_bits(mut self, other: Self) -> Self {
        for lane in 0..LANES {
            self[lane] = self[lane].add_bits(other[lane]);
        }
        self
    }
}
