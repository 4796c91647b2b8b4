//! Products of consecutive rows with models, and sums of the same rows: together they read a block from memory once.
//!
//! Four rows share each load of a model, and of the sums, and the rows of the next block are asked for meanwhile. The
//! bodies are plain Rust; an arm is the same body compiled for an instruction set whose vectors are longer. Sums are
//! kept in lanes and products are not fused with them, so that all arms round alike, whatever stands beside a row.
//!
//! ```text
//! products, for each four rows and each model w:
//!     for each eight entries: lanes[row][lane] += row[lane] w[lane]
//!     out = fold(lanes[row]) + the entries that are left, in a sum of their own
//! sums, for each four rows a, b, c, d with factors e, f, g, h of a model:
//!     sum += (e a + f b) + (g c + h d)
//! ```

use super::Isa;
use super::narrow::{self, RowBlock};
use super::prefetch::prefetch;
use super::real::Real;
use super::scores::folded;

/// Running sums of an inner product, so that the processor need not wait for one before it adds to the next.
const LANES: usize = 8;

/// Rows that share a load of the model, and of the sums.
const TOGETHER: usize = 4;

/// A computation that gains from the longest vectors of the machine.
pub trait Work {
    /// Does the work. It must be marked `#[inline(always)]`, so that it is compiled for every arm.
    fn work(self);
}

dispatched! {
    /// Does the work with the vectors of an instruction set.
    vectorized<W: Work>(work: W) = Work::work
}

/// Writes the inner product of each row with each model, those of a row side by side.
pub fn block_products<T: Real>(isa: Isa, block: RowBlock<'_, T>, models: &[T], out: &mut [f64]) {
    let one = models.len() == block.columns;
    let done = if one { narrow::multiply(isa, block, models, out) } else { 0 };
    let rest = RowBlock { entries: &block.entries[done * block.columns..], ..block };
    all_products(isa, rest, models, &mut out[done..]);
}

dispatched! {
    all_products<T: Real>(block: RowBlock<'_, T>, models: &[T], out: &mut [f64]) = multiplied
}

dispatched! {
    /// Adds to the sum of each model the rows times their factors, which are ordered like the products of
    /// `block_products`. The sums are exact where all numbers are integers and no sum of magnitudes reaches 2^53.
    add_block<T: Real>(block: RowBlock<'_, T>, factors: &[f64], sums: &mut [f64]) = summed
}

#[inline(always)]
fn multiplied<T: Real>(block: RowBlock<'_, T>, models: &[T], out: &mut [f64]) {
    let RowBlock { entries, columns, ahead } = block;
    let count = models.len() / columns;
    let mut ahead = ahead.chunks(TOGETHER / 2 * columns);
    for (rows, out) in entries.chunks(TOGETHER * columns).zip(out.chunks_mut(TOGETHER * count)) {
        ahead.next().into_iter().for_each(prefetch);
        for (model, w) in models.chunks_exact(columns).enumerate() {
            // Loops, not closures: those might be left out of the arm, and do without its vectors.
            let out = out[model..].iter_mut().step_by(count);
            if rows.len() < TOGETHER * columns {
                for (row, out) in rows.chunks_exact(columns).zip(out) {
                    *out = dots([row], w)[0].get();
                }
            } else {
                for (product, out) in dots(four(rows, columns), w).into_iter().zip(out) {
                    *out = product.get();
                }
            }
        }
    }
}

/// The inner products of some rows with w, the same whatever is beside them.
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
    // Hidden from the optimizer, which else keeps the lanes in short vectors, those that folding them begins with. For the
    // same reason what fills no lanes has a sum of its own.
    let sums = std::hint::black_box(sums);
    std::array::from_fn(|row| folded(sums[row]) + tail(&rows[row][end..], &w[end..]))
}

#[inline(always)]
fn tail<T: Real>(row: &[T], w: &[T]) -> T {
    let mut sum = T::default();
    for (&x, &w) in row.iter().zip(w) {
        sum += x * w;
    }
    sum
}

#[inline(always)]
fn four<T>(rows: &[T], columns: usize) -> [&[T]; TOGETHER] {
    let (low, high) = rows.split_at(2 * columns);
    let ((a, b), (c, d)) = (low.split_at(columns), high.split_at(columns));
    [a, b, c, d]
}

#[inline(always)]
fn summed<T: Real>(block: RowBlock<'_, T>, factors: &[f64], sums: &mut [f64]) {
    let RowBlock { entries, columns, ahead } = block;
    let count = sums.len() / columns;
    let done = match (count, columns) {
        (1, 8) => narrow::sum::<T, 8>(block, factors, sums),
        (1, 16) => narrow::sum::<T, 16>(block, factors, sums),
        _ => 0,
    };
    let (entries, factors) = (&entries[done * columns..], &factors[done * count..]);
    let (groups, factor_groups) = (entries.chunks_exact(TOGETHER * columns), factors.chunks_exact(TOGETHER * count));
    let rest = groups.remainder().chunks_exact(columns).zip(factor_groups.remainder().chunks_exact(count));
    let mut ahead = ahead.chunks(TOGETHER / 2 * columns);
    for (rows, factors) in groups.zip(factor_groups) {
        ahead.next().into_iter().for_each(prefetch);
        let [a, b, c, d] = four(rows, columns);
        for (model, sum) in sums.chunks_exact_mut(columns).enumerate() {
            let [e, f, g, h] = [0, 1, 2, 3].map(|row| factors[row * count + model]);
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
