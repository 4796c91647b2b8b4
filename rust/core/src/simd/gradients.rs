//! Gradients of a linear model's losses at rows read in any order: shrunk, clipped, added up.
//!
//! The bodies are plain Rust; an arm is the same body compiled for an instruction set whose vectors are longer. Sums are
//! kept in lanes and products are not fused with them, so that all arms round alike.

use super::prefetch::prefetch;
use super::rows::Real;

/// Running sums of an inner product, so that the processor need not wait for one to add to it.
const LANES: usize = 8;

/// How many rows ahead one is asked for: the memory takes about as long as so many short ones, and so many bytes of long
/// ones leave room in the fastest cache.
const AHEAD: usize = 24;
const AHEAD_BYTES: usize = 8192;

/// Adding it to a float of magnitude below 2^51 and subtracting it again leaves the nearest integer.
const ROUNDER: f64 = (3u64 << 51) as f64;

/// What a loss adds to the gradient.
pub trait Slope: Copy + Send + Sync {
    /// The derivative in the prediction.
    fn slope(self, prediction: f64, label: f64) -> f64;
}

/// Rows one after the other, each as if it were shrunk to a norm of at most the bound.
#[derive(Clone, Copy)]
pub struct Rows<'a, T> {
    /// The entries, row by row.
    pub entries: &'a [T],
    /// Entries in a row, at least 1.
    pub columns: usize,
    /// The largest norm, above 0.
    pub bound: f64,
}

/// Rows with labels, and what is made of them.
#[derive(Clone, Copy)]
pub struct Examples<'a, T, L> {
    /// The rows.
    pub rows: Rows<'a, T>,
    /// One a row.
    pub labels: &'a [f64],
    /// The loss of a prediction, the inner product of the row with w.
    pub loss: L,
    /// The largest norm of a gradient, above 0; longer ones are shrunk to it.
    pub most: f64,
}

/// The integers that gradients are rounded to.
#[derive(Clone, Copy)]
pub struct Grid {
    /// Integers for each unit of the gradient.
    pub scale: f64,
    /// The largest norm of a rounded gradient, an integer of at most 2^26.
    pub most: f64,
}

dispatched! {
    /// Adds to `sum` the clipped gradient of each of the first `count` rows; those after them come next.
    add_gradients<T: Real, L: Slope>(
        examples: Examples<'_, T, L>, rows: &[usize], count: usize, w: &[f64], sum: &mut [f64]
    ) = gradients
}

dispatched! {
    /// The same with every clipped gradient rounded to integers, whose norm never exceeds that of the grid. Sums below
    /// 2^53 are exact.
    add_quantised<T: Real, L: Slope>(
        examples: Examples<'_, T, L>, grid: Grid, rows: &[usize], count: usize, w: &[f64], sum: &mut [f64]
    ) = quantised
}

dispatched! {
    /// Writes the inner product of w with each shrunk row, from the given one on.
    clipped_scores<T: Real>(rows: Rows<'_, T>, first: usize, w: &[f64], out: &mut [f64]) = scores
}

impl<T: Real> Rows<'_, T> {
    #[inline(always)]
    fn row(&self, row: usize) -> &[T] {
        &self.entries[row * self.columns..][..self.columns]
    }

    /// The inner product with w and the norm of a row, and what shrinks it: 0 where squares overflow.
    #[inline(always)]
    fn measured(&self, row: &[T], w: &[f64]) -> (f64, f64, f64) {
        let (inner, squared) = products(row, w);
        let norm = squared.sqrt();
        let shrunk = if norm <= self.bound { 1.0 } else { self.bound / norm };
        (if shrunk > 0.0 { inner } else { 0.0 }, norm, shrunk)
    }
}

impl<T: Real, L: Slope> Examples<'_, T, L> {
    #[inline(always)]
    fn factor(&self, row: &[T], label: f64, w: &[f64]) -> f64 {
        let (inner, norm, shrunk) = self.rows.measured(row, w);
        let factor = self.loss.slope(inner * shrunk, label) * shrunk;
        let length = factor.abs() * norm;
        if length <= self.most {
            factor
        } else if length < f64::INFINITY {
            factor * (self.most / length)
        } else {
            0.0
        }
    }

    /// The row of the i-th draw and what it is to be multiplied with for its clipped gradient.
    ///
    /// Asks the memory for a later row.
    #[inline(always)]
    fn gradient(&self, rows: &[usize], i: usize, w: &[f64]) -> (&[T], f64) {
        let ahead = (AHEAD_BYTES / (size_of::<T>() * self.rows.columns)).clamp(2, AHEAD);
        if let Some(&next) = rows.get(i + ahead) {
            prefetch(self.rows.row(next));
            prefetch(&self.labels[next..=next]);
        }
        let row = self.rows.row(rows[i]);
        (row, self.factor(row, self.labels[rows[i]], w))
    }
}

#[inline(always)]
fn gradients<T: Real, L: Slope>(
    examples: Examples<'_, T, L>,
    rows: &[usize],
    count: usize,
    w: &[f64],
    sum: &mut [f64],
) {
    for i in 0..count {
        let (row, factor) = examples.gradient(rows, i, w);
        sum.iter_mut().zip(row).for_each(|(sum, &x)| *sum += factor * x.get());
    }
}

#[inline(always)]
fn quantised<T: Real, L: Slope>(
    examples: Examples<'_, T, L>,
    grid: Grid,
    rows: &[usize],
    count: usize,
    w: &[f64],
    sum: &mut [f64],
) {
    for i in 0..count {
        let (row, factor) = examples.gradient(rows, i, w);
        let factor = factor * grid.scale;
        // Exact: as long as the sum of squares has not exceeded the bound, all of it is an integer below 2^53, and what was
        // too large to be rounded to one has exceeded it.
        if squared_norm(row, |x| rounded(factor * x.get())) <= grid.most * grid.most {
            sum.iter_mut().zip(row).for_each(|(sum, &x)| *sum += rounded(factor * x.get()));
        }
    }
}

#[inline(always)]
fn rounded(value: f64) -> f64 {
    value + ROUNDER - ROUNDER
}

#[inline(always)]
fn scores<T: Real>(rows: Rows<'_, T>, first: usize, w: &[f64], out: &mut [f64]) {
    for (i, out) in out.iter_mut().enumerate() {
        let (inner, _, shrunk) = rows.measured(rows.row(first + i), w);
        *out = inner * shrunk;
    }
}

/// The inner product of a row with w and with itself.
#[inline(always)]
fn products<T: Real>(row: &[T], w: &[f64]) -> (f64, f64) {
    let (mut inner, mut squared) = ([0.0; LANES], [0.0; LANES]);
    let (rows, ws) = (row.chunks_exact(LANES), w.chunks_exact(LANES));
    let ends = rows.remainder().iter().zip(ws.remainder());
    for (row, w) in rows.zip(ws) {
        for lane in 0..LANES {
            let x = row[lane].get();
            inner[lane] += x * w[lane];
            squared[lane] += x * x;
        }
    }
    for (lane, (x, w)) in ends.enumerate() {
        inner[lane] += x.get() * w;
        squared[lane] += x.get() * x.get();
    }
    (folded(inner), folded(squared))
}

/// The sum of the squares of what is made of the entries.
#[inline(always)]
pub fn squared_norm<T: Copy>(row: &[T], of: impl Fn(T) -> f64) -> f64 {
    let mut squared = [0.0; LANES];
    let rows = row.chunks_exact(LANES);
    let end = rows.remainder();
    for row in rows {
        for lane in 0..LANES {
            let value = of(row[lane]);
            squared[lane] += value * value;
        }
    }
    squared.iter_mut().zip(end).for_each(|(squared, &x)| *squared += of(x) * of(x));
    folded(squared)
}

#[inline(always)]
fn folded(sums: [f64; LANES]) -> f64 {
    let [a, b, c, d, e, f, g, h] = sums;
    ((a + e) + (c + g)) + ((b + f) + (d + h))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::noise::{Rng, Seed, Stream};
    use crate::simd::Isa;

    #[derive(Clone, Copy)]
    struct Difference;

    impl Slope for Difference {
        fn slope(self, prediction: f64, label: f64) -> f64 {
            prediction - label
        }
    }

    fn real(rng: &mut Rng) -> f64 {
        (rng.below(2001) as f64 - 1000.0) / 300.0
    }

    /// Entries of all magnitudes: zero rows, tiny ones, typical ones, some whose squares overflow.
    fn entries(count: usize, columns: usize, rng: &mut Rng) -> Vec<f64> {
        let scales = [0.0, 1e-300, 1e-9, 1.0, 1.0, 1.0, 1e6, 1e200, f64::MAX / 4.0];
        let row = |rng: &mut Rng| {
            let scale = scales[rng.below(9) as usize];
            (0..columns).map(|_| real(rng) * scale).collect::<Vec<f64>>()
        };
        (0..count).flat_map(|_| row(rng)).collect()
    }

    fn examples<'a>(entries: &'a [f64], columns: usize, labels: &'a [f64]) -> Examples<'a, f64, Difference> {
        Examples { rows: Rows { entries, columns, bound: 2.0 }, labels, loss: Difference, most: 1.5 }
    }

    #[test]
    fn all_arms_agree_with_the_definition() {
        let mut rng = Seed::reproducible([5; 32]).stream(Stream::Speed, 0);
        for columns in [1, 2, 7, 8, 9, 15, 16, 17, 64, 65, 200] {
            let entries: Vec<f64> = (0..40 * columns).map(|_| real(&mut rng)).collect();
            let labels: Vec<f64> = (0..40).map(|_| real(&mut rng)).collect();
            let w: Vec<f64> = (0..columns).map(|_| real(&mut rng)).collect();
            let rows: Vec<usize> = (0..40).map(|_| rng.below(40) as usize).collect();
            let mut expected = vec![0.0; columns];
            for &row in &rows[..30] {
                let x = &entries[row * columns..][..columns];
                let norm = x.iter().map(|x| x * x).sum::<f64>().sqrt();
                let x: Vec<f64> = x.iter().map(|x| x * (2.0 / norm).min(1.0)).collect();
                let slope = x.iter().zip(&w).map(|(x, w)| x * w).sum::<f64>() - labels[row];
                let length = slope.abs() * norm.min(2.0);
                let factor = slope * (1.5 / length).min(1.0);
                expected.iter_mut().zip(&x).for_each(|(sum, x)| *sum += factor * x);
            }
            let sums = Isa::ALL.map(|isa| {
                let mut sum = vec![0.0; columns];
                add_gradients(isa, examples(&entries, columns, &labels), &rows, 30, &w, &mut sum);
                sum
            });
            assert!(sums[0].iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-12), "{columns}");
            assert!(sums.iter().all(|sum| *sum == sums[0]), "{columns}");
        }
    }

    /// What the proof of the exact mechanism rests on, with integers of 128 bits, for gradients at and beyond the bound.
    #[test]
    fn one_changed_draw_moves_a_quantised_sum_by_twice_the_bound_at_most() {
        let mut rng = Seed::reproducible([6; 32]).stream(Stream::Speed, 0);
        let mut longest: f64 = 0.0;
        for columns in [1, 3, 8, 33, 200] {
            let most = (1u64 << 20) as f64;
            let grid = Grid { scale: (most - (columns as f64).sqrt() / 2.0 - 1.0) / 1.5, most };
            let entries = entries(300, columns, &mut rng);
            let labels: Vec<f64> = (0..300).map(|_| real(&mut rng)).collect();
            let w: Vec<f64> = (0..columns).map(|_| real(&mut rng) / 10.0).collect();
            for _ in 0..200 {
                let mut rows: Vec<usize> = (0..5).map(|_| rng.below(300) as usize).collect();
                let sums = [0, 1].map(|_| {
                    rows[3] = rng.below(300) as usize;
                    let mut sum = vec![0.0; columns];
                    add_quantised(Isa::Gfni, examples(&entries, columns, &labels), grid, &rows, 5, &w, &mut sum);
                    sum
                });
                let moved = |(a, b): (&f64, &f64)| {
                    assert!(a.fract() == 0.0 && b.fract() == 0.0);
                    i128::from(*a as i64 - *b as i64).pow(2)
                };
                let squared: i128 = sums[0].iter().zip(&sums[1]).map(moved).sum();
                assert!(squared <= 4 << 40, "{columns}");
                longest = longest.max(squared as f64 / (4u64 << 40) as f64);
            }
        }
        assert!(longest > 0.99, "the bound should be sharp: {longest}");
    }

    #[test]
    fn a_rounded_gradient_that_is_too_long_counts_as_zero() {
        let grid = Grid { scale: 1.0, most: 1.0 };
        let examples = examples(&[0.9, 0.9], 2, &[-1.0]);
        let mut sum = vec![0.0; 2];
        add_quantised(Isa::Portable, examples, grid, &[0], 1, &[0.0, 0.0], &mut sum);
        assert_eq!(sum, [0.0, 0.0]);
    }

    #[test]
    fn quantised_gradients_are_the_nearest_integers() {
        let grid = Grid { scale: 1000.0, most: 2000.0 };
        let examples = examples(&[0.1234, -0.0567], 2, &[-1.0]);
        let mut sum = vec![0.0; 2];
        add_quantised(Isa::Portable, examples, grid, &[0, 0], 2, &[0.0, 0.0], &mut sum);
        assert_eq!(sum, [246.0, -114.0]);
    }
}
