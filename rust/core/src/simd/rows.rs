//! Inner products with the rows of a matrix of floats, and sums of its rows.
//!
//! The bodies are plain Rust; an arm is the same body compiled for an instruction set whose vectors are longer. Sums are
//! kept in lanes and products are not fused with them, so that all arms round alike.

use std::ops::{Add, AddAssign, Mul, Sub};

use bytemuck::Pod;

use super::Isa;
use super::lines::{InLines, in_doubles, in_singles};
use crate::error::Result;
use crate::memory::reserve;

/// Running sums of an inner product, so that the processor need not wait for one to add to it.
const LANES: usize = 32;

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

macro_rules! real {
    ($type:ty, $word:ty, $all_of:expr, $total:expr, $in_lines:expr) => {
        impl Real for $type {
            const ROUNDER: $type = (3u64 << (<$type>::MANTISSA_DIGITS - 2)) as $type;
            const LEAST: f64 = <$type>::MIN_POSITIVE as f64;
            const EPSILON: f64 = <$type>::EPSILON as f64;
            fn of(value: f64) -> $type {
                value as $type
            }
            fn all_of<'a>(values: &'a [f64], room: &'a mut Vec<$type>) -> Result<&'a [$type]> {
                $all_of(values, room)
            }
            fn get(self) -> f64 {
                self.into()
            }
            #[inline(always)]
            fn add_bits(self, other: $type) -> $type {
                <$type>::from_bits(self.to_bits().wrapping_add(other.to_bits()))
            }
            #[inline(always)]
            fn total_of_bits(self, terms: usize) -> f64 {
                $total(self.to_bits(), terms as $word)
            }
            fn in_lines(isa: Isa, work: impl InLines<$type>) {
                $in_lines(isa, work);
            }
        }
    };
}
real!(f64, u64, |values, _| Ok(values), total_of_doubles, in_doubles);
real!(f32, u32, rounded, total_of_singles, in_singles);

#[inline(always)]
fn total_of_doubles(sum: u64, terms: u64) -> f64 {
    // As a double again, since no conversion of such integers is known to all instruction sets.
    let rounder = f64::ROUNDER.to_bits();
    f64::from_bits(sum.wrapping_sub(rounder.wrapping_mul(terms.wrapping_sub(1)))) - f64::ROUNDER
}

#[inline(always)]
fn total_of_singles(sum: u32, terms: u32) -> f64 {
    f64::from(sum.wrapping_sub(f32::ROUNDER.to_bits().wrapping_mul(terms)).cast_signed())
}

fn rounded<'a>(values: &[f64], room: &'a mut Vec<f32>) -> Result<&'a [f32]> {
    room.clear();
    reserve(room, values.len())?;
    room.extend(values.iter().map(|&value| value as f32));
    Ok(room)
}

/// Rows of a matrix, each of which counts as if it ended in one more entry, the same for all rows.
#[derive(Clone, Copy)]
pub struct Matrix<'a, T> {
    /// The entries, row by row.
    pub entries: &'a [T],
    /// The number of entries in a row, without the additional one.
    pub columns: usize,
    /// The additional entry.
    pub constant: T,
}

impl<T: Real> Matrix<'_, T> {
    #[inline(always)]
    fn row(&self, row: usize) -> &[T] {
        &self.entries[row * self.columns..][..self.columns]
    }

    #[inline(always)]
    fn product(&self, row: usize, w: &[T]) -> T {
        dot(self.row(row), &w[..self.columns]) + self.constant * w[self.columns]
    }

    #[inline(always)]
    fn add(&self, row: usize, factor: T, sum: &mut [T]) {
        sum.iter_mut().zip(self.row(row)).for_each(|(sum, &x)| *sum += factor * x);
        sum[self.columns] += factor * self.constant;
    }
}

dispatched! {
    /// Writes the inner product of each row with w, which has one entry for each column and one for the additional
    /// entry.
    inner_products<T: Real>(matrix: Matrix<'_, T>, rows: &[usize], w: &[T], out: &mut [f64]) = products
}

dispatched! {
    /// Adds to `sum` each row times its factor.
    add_rows<T: Real>(matrix: Matrix<'_, T>, rows: &[usize], factors: &[f64], sum: &mut [T]) = scaled
}

dispatched! {
    /// Adds to `sum` each row times its inner product with w.
    add_projections<T: Real>(matrix: Matrix<'_, T>, rows: &[usize], w: &[T], sum: &mut [T]) = projections
}

#[inline(always)]
fn products<T: Real>(matrix: Matrix<'_, T>, rows: &[usize], w: &[T], out: &mut [f64]) {
    for (&row, out) in rows.iter().zip(out) {
        *out = matrix.product(row, w).get();
    }
}

#[inline(always)]
fn scaled<T: Real>(matrix: Matrix<'_, T>, rows: &[usize], factors: &[f64], sum: &mut [T]) {
    for (&row, &factor) in rows.iter().zip(factors) {
        matrix.add(row, T::of(factor), sum);
    }
}

#[inline(always)]
fn projections<T: Real>(matrix: Matrix<'_, T>, rows: &[usize], w: &[T], sum: &mut [T]) {
    for &row in rows {
        matrix.add(row, matrix.product(row, w), sum);
    }
}

#[inline(always)]
fn dot<T: Real>(a: &[T], b: &[T]) -> T {
    let mut sums = [T::default(); LANES];
    let (a, b) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
    let ends = a.remainder().iter().zip(b.remainder());
    sums.iter_mut().zip(ends).for_each(|(sum, (&a, &b))| *sum = a * b);
    for (a, b) in a.zip(b) {
        sums.iter_mut().zip(a.iter().zip(b)).for_each(|(sum, (&a, &b))| *sum += a * b);
    }
    let mut width = LANES;
    while width > 1 {
        width /= 2;
        let (low, high) = sums.split_at_mut(width);
        low.iter_mut().zip(high).for_each(|(low, high)| *low += *high);
    }
    sums[0]
}
