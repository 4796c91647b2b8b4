//! Inner products with the rows of a matrix of floats, and sums of its rows.
//!
//! Rows are read in any order, one at a time, and an inner product in one running sum waits for each addition: 32 sums
//! run side by side, and are folded at the end. The bodies are plain Rust; an arm is the same body compiled for an
//! instruction set whose vectors are longer. Sums are kept in lanes and products are not fused with them, so that all
//! arms round alike.
//!
//! ```text
//! product of a row and w:  lanes = the entries that are left over; for each 32 entries: lanes += row w
//!                          fold: upper half to lower half until one is left;  + constant w[last]
//! sums:                    for each row: sum += factor row, or its product with w times the row
//! ```

use super::real::Real;

/// Running sums of an inner product, so that the processor need not wait for one to add to it.
const LANES: usize = 32;

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
