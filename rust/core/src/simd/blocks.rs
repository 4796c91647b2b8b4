//! Products of consecutive rows with models, and sums of the same rows: together they read a block from memory once.
//!
//! The bodies are plain Rust; an arm is the same body compiled for an instruction set whose vectors are longer. Sums are
//! kept in lanes and products are not fused with them, so that all arms round alike.

use super::gradients::folded;
use super::prefetch::prefetch;
use super::rows::Real;

/// Running sums of an inner product, so that the processor need not wait for one to add to it.
const LANES: usize = 8;

/// Rows that share a load of the model, and of the sums.
const TOGETHER: usize = 4;

/// Whatever is worth the longest vectors of the machine.
pub trait Work {
    /// Does it; to be inlined into every arm.
    fn work(self);
}

dispatched! {
    /// Does the work with an arm's vectors.
    vectorised<W: Work>(work: W) = Work::work
}

dispatched! {
    /// Writes the inner product of each row with each model, all models of a row side by side.
    block_products<T: Real>(rows: &[T], columns: usize, models: &[T], out: &mut [f64]) = products
}

dispatched! {
    /// Adds to the sum of each model the rows times their factors, which stand as the products do; asks the memory for
    /// `next` meanwhile. Where all are integers and no sum of magnitudes reaches 2^53 it is exact.
    add_block<T: Real>(rows: &[T], next: &[T], columns: usize, factors: &[f64], sums: &mut [f64]) = summed
}

#[inline(always)]
fn products<T: Real>(rows: &[T], columns: usize, models: &[T], out: &mut [f64]) {
    let count = models.len() / columns;
    let (groups, mut outs) = (rows.chunks_exact(TOGETHER * columns), out.chunks_exact_mut(TOGETHER * count));
    let rest = groups.remainder().chunks_exact(columns);
    for (rows, out) in groups.zip(&mut outs) {
        group_products::<T, TOGETHER>(rows, columns, models, out);
    }
    for (row, out) in rest.zip(outs.into_remainder().chunks_exact_mut(count)) {
        group_products::<T, 1>(row, columns, models, out);
    }
}

#[inline(always)]
fn group_products<T: Real, const ROWS: usize>(rows: &[T], columns: usize, models: &[T], out: &mut [f64]) {
    let count = out.len() / ROWS;
    let rows: [&[T]; ROWS] = std::array::from_fn(|row| &rows[row * columns..][..columns]);
    for (model, w) in models.chunks_exact(columns).enumerate() {
        for (row, product) in dots(rows, w).into_iter().enumerate() {
            out[row * count + model] = product.get();
        }
    }
}

#[inline(always)]
fn dots<T: Real, const ROWS: usize>(rows: [&[T]; ROWS], w: &[T]) -> [T; ROWS] {
    let mut sums = [[T::default(); LANES]; ROWS];
    let chunks = w.chunks_exact(LANES);
    let end = w.len() - chunks.remainder().len();
    for (chunk, w) in chunks.enumerate() {
        for (sums, row) in sums.iter_mut().zip(rows) {
            let row = &row[chunk * LANES..][..LANES];
            for lane in 0..LANES {
                sums[lane] += row[lane] * w[lane];
            }
        }
    }
    for (sums, row) in sums.iter_mut().zip(rows) {
        let ends = row[end..].iter().zip(&w[end..]);
        sums.iter_mut().zip(ends).for_each(|(sum, (&x, &w))| *sum += x * w);
    }
    sums.map(folded)
}

#[inline(always)]
fn summed<T: Real>(rows: &[T], next: &[T], columns: usize, factors: &[f64], sums: &mut [f64]) {
    let count = sums.len() / columns;
    let (groups, factor_groups) = (rows.chunks_exact(TOGETHER * columns), factors.chunks_exact(TOGETHER * count));
    let rest = groups.remainder().chunks_exact(columns).zip(factor_groups.remainder().chunks_exact(count));
    let mut ahead = next.chunks(TOGETHER * columns);
    for (rows, factors) in groups.zip(factor_groups) {
        ahead.next().into_iter().for_each(prefetch);
        let (low, high) = rows.split_at(2 * columns);
        let ((a, b), (c, d)) = (low.split_at(columns), high.split_at(columns));
        for (model, sum) in sums.chunks_exact_mut(columns).enumerate() {
            let [e, f, g, h] = std::array::from_fn(|row| factors[row * count + model]);
            for ((((sum, a), b), c), d) in sum.iter_mut().zip(a).zip(b).zip(c).zip(d) {
                *sum += (e * a.get() + f * b.get()) + (g * c.get() + h * d.get());
            }
        }
    }
    for (row, factors) in rest {
        for (sum, factor) in sums.chunks_exact_mut(columns).zip(factors) {
            sum.iter_mut().zip(row).for_each(|(sum, x)| *sum += factor * x.get());
        }
    }
}
