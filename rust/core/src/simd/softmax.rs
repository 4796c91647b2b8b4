//! Gradients of the softmax loss at rows read in any order: matrices of a row times a vector of residuals, shrunk,
//! clipped as a whole, added up.

use super::gradients::{Examples, Grid, add_rounded, inner, products};
use super::rows::Real;

/// The largest number of classes.
pub const MOST_CLASSES: usize = 1024;

/// The softmax loss of this number of classes; labels are their numbers, from 0.
#[derive(Clone, Copy)]
pub struct Softmax {
    /// The number of classes, at most [`MOST_CLASSES`].
    pub classes: usize,
}

dispatched! {
    /// Adds to `sum` the clipped gradient of each of the first `count` rows of `rows`, the part of one class after that
    /// of the other, as the weights stand in w. The norm that is clipped is that of all parts together.
    add_softmax<T: Real>(
        examples: Examples<'_, T, Softmax>, rows: &[usize], count: usize, w: &[T], sum: &mut [f64]
    ) = gradients
}

dispatched! {
    /// The same with every clipped gradient rounded to integers, whose norm over all parts never exceeds that of the
    /// grid. Sums whose magnitudes stay below 2^53 are exact.
    add_softmax_quantized<T: Real>(
        examples: Examples<'_, T, Softmax>, grid: Grid, rows: &[usize], count: usize, w: &[T], sum: &mut [f64]
    ) = quantized
}

impl<T: Real> Examples<'_, T, Softmax> {
    /// The row of the i-th draw; what it is to be multiplied with for each class's part of its clipped gradient goes to
    /// `out`. With the shrunk row x, its label y and the probabilities p of the classes, the gradient is x (p - e_y)^T,
    /// whose norm is |x| |p - e_y|, at most sqrt(2) |x|.
    #[inline(always)]
    fn residuals(&self, rows: &[usize], i: usize, w: &[T], out: &mut [f64]) -> &[T] {
        self.ask(rows, i);
        let (row, label) = (self.rows.row(rows[i]), self.labels[rows[i]]);
        let mut parts = w.chunks_exact(row.len());
        let (first, squared) = parts.next().map_or((0.0, 0.0), |w| products(row, w));
        let (_, shrunk, norm) = self.rows.measured((0.0, squared));
        out[0] = first * shrunk;
        for (out, w) in out[1..].iter_mut().zip(parts) {
            *out = inner(row, w) * shrunk;
        }
        to_probabilities(out);
        let mut length = 0.0;
        for (class, out) in out.iter_mut().enumerate() {
            if class as f64 == label {
                *out -= 1.0;
            }
            length += *out * *out;
        }
        let factor = self.clip(length.sqrt() * shrunk * norm) * shrunk;
        // What is no number is none even times 0.
        out.iter_mut().for_each(|out| *out = if factor == 0.0 { 0.0 } else { *out * factor });
        row
    }
}

/// Turns scores into probabilities in proportion to their exponentials.
#[inline(always)]
fn to_probabilities(scores: &mut [f64]) {
    let largest = scores.iter().fold(f64::NEG_INFINITY, |most, &score| most.max(score));
    let mut total = 0.0;
    for score in scores.iter_mut() {
        *score = (*score - largest).exp();
        total += *score;
    }
    scores.iter_mut().for_each(|score| *score /= total);
}

#[inline(always)]
fn gradients<T: Real>(examples: Examples<'_, T, Softmax>, rows: &[usize], count: usize, w: &[T], sum: &mut [f64]) {
    let mut room = [0.0; MOST_CLASSES];
    let factors = &mut room[..examples.loss.classes];
    for i in 0..count {
        let row = examples.residuals(rows, i, w, factors);
        for (&factor, sum) in factors.iter().zip(sum.chunks_exact_mut(row.len())) {
            sum.iter_mut().zip(row).for_each(|(sum, &x)| *sum += factor * x.get());
        }
    }
}

#[inline(always)]
fn quantized<T: Real>(
    examples: Examples<'_, T, Softmax>,
    grid: Grid,
    rows: &[usize],
    count: usize,
    w: &[T],
    sum: &mut [f64],
) {
    let mut room = [0.0; MOST_CLASSES];
    let factors = &mut room[..examples.loss.classes];
    for i in 0..count {
        let row = examples.residuals(rows, i, w, factors);
        factors.iter_mut().for_each(|factor| *factor *= grid.scale);
        // As for a single class: the sum of squares over all parts is exact as long as it has not exceeded the bound.
        let add = |sign: f64, sum: &mut [f64]| {
            let parts = factors.iter().zip(sum.chunks_exact_mut(row.len()));
            parts.map(|(&factor, sum)| add_rounded(row, T::of(sign * factor), sum)).sum::<f64>()
        };
        if add(1.0, sum) > grid.most * grid.most {
            add(-1.0, sum);
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::noise::{Rng, Seed, Stream};
    use crate::simd::{Isa, Rows};

    fn real(rng: &mut Rng) -> f64 {
        (rng.below(2001) as f64 - 1000.0) / 300.0
    }

    fn examples<'a, T: Real>(
        entries: &'a [T],
        columns: usize,
        labels: &'a [f64],
        (classes, most): (usize, f64),
    ) -> Examples<'a, T, Softmax> {
        Examples { rows: Rows { entries, columns, bound: 2.0 }, labels, loss: Softmax { classes }, most }
    }

    #[test]
    fn all_arms_agree_with_the_definition() {
        check_arms::<f64>(1e-12);
        check_arms::<f32>(1e-3);
    }

    fn check_arms<T: Real>(tolerance: f64) {
        let mut rng = Seed::reproducible([7; 32]).stream(Stream::Speed, 0);
        for (columns, classes) in [(1, 2), (7, 3), (8, 10), (17, 4), (65, 11)] {
            let mut reals = |count| (0..count).map(|_| T::of(real(&mut rng))).collect::<Vec<T>>();
            let (entries, w) = (reals(40 * columns), reals(classes * columns));
            let labels: Vec<f64> = (0..40).map(|_| rng.below(classes as u64) as f64).collect();
            let rows: Vec<usize> = (0..40).map(|_| rng.below(40) as usize).collect();
            let mut expected = vec![0.0; classes * columns];
            for &row in &rows[..30] {
                let x: Vec<f64> = entries[row * columns..][..columns].iter().map(|x| x.get()).collect();
                let norm = x.iter().map(|x| x * x).sum::<f64>().sqrt();
                let x: Vec<f64> = x.iter().map(|x| x * (2.0 / norm).min(1.0)).collect();
                let score = |w: &[T]| x.iter().zip(w).map(|(x, w)| x * w.get()).sum::<f64>().exp();
                let shares: Vec<f64> = w.chunks_exact(columns).map(score).collect();
                let total: f64 = shares.iter().sum();
                let residual = |(k, share): (usize, &f64)| share / total - f64::from(k as f64 == labels[row]);
                let residuals: Vec<f64> = shares.iter().enumerate().map(residual).collect();
                let length = residuals.iter().map(|r| r * r).sum::<f64>().sqrt() * norm.min(2.0);
                let clip = (1.5 / length).min(1.0);
                for (sum, (k, j)) in expected.iter_mut().zip((0..classes * columns).map(|i| (i / columns, i % columns)))
                {
                    *sum += clip * residuals[k] * x[j];
                }
            }
            let examples = examples(&entries, columns, &labels, (classes, 1.5));
            let sums = Isa::ALL.map(|isa| {
                let mut sums = [vec![0.0; classes * columns], vec![0.0; classes * columns]];
                add_softmax(isa, examples, &rows, 30, &w, &mut sums[0]);
                add_softmax_quantized(isa, examples, Grid { scale: 1e5, most: 2e5 }, &rows, 30, &w, &mut sums[1]);
                sums
            });
            let near = |sum: &[f64], tolerance| sum.iter().zip(&expected).all(|(a, b)| (a - b).abs() < tolerance);
            assert!(near(&sums[0][0], tolerance), "{columns} {classes}");
            let quantized: Vec<f64> = sums[0][1].iter().map(|sum| sum / 1e5).collect();
            assert!(near(&quantized, tolerance + 30.0 * 0.6e-5), "{columns} {classes}");
            assert!(sums.iter().all(|sum| *sum == sums[0]), "{columns} {classes}");
        }
    }

    #[test]
    fn one_changed_draw_moves_a_quantized_sum_by_twice_the_bound_at_most() {
        check_sensitivity::<f64>();
        check_sensitivity::<f32>();
    }

    /// With integers of 128 bits, for gradients at and beyond the bound.
    fn check_sensitivity<T: Real>() {
        let mut rng = Seed::reproducible([17; 32]).stream(Stream::Speed, 0);
        let mut longest: f64 = 0.0;
        for (columns, classes) in [(1, 2), (3, 5), (33, 10)] {
            let most = (1u64 << 20) as f64;
            let grid = Grid { scale: (most - ((classes * columns) as f64).sqrt() / 2.0 - 4.0) / 1.5, most };
            let scales = [0.0, T::LEAST.sqrt(), 1e-9, 1.0, 1.0, 1e6, T::LEAST.recip().sqrt(), T::LEAST.recip() / 16.0];
            let mut entries = Vec::new();
            for _ in 0..300 {
                let scale = scales[rng.below(8) as usize];
                entries.extend((0..columns).map(|_| T::of(real(&mut rng) * scale)));
            }
            let labels: Vec<f64> = (0..300).map(|_| rng.below(classes as u64) as f64).collect();
            // Small weights: gradients of mistakes would all point the same way.
            let w: Vec<T> = (0..classes * columns).map(|_| T::of(real(&mut rng) / 30.0)).collect();
            let examples = examples(&entries, columns, &labels, (classes, 1.5));
            for _ in 0..200 {
                let mut rows: Vec<usize> = (0..5).map(|_| rng.below(300) as usize).collect();
                let sums = [0, 1].map(|_| {
                    rows[3] = rng.below(300) as usize;
                    let mut sum = vec![0.0; classes * columns];
                    add_softmax_quantized(Isa::Gfni, examples, grid, &rows, 5, &w, &mut sum);
                    sum
                });
                let moved = |(a, b): (&f64, &f64)| {
                    assert!(a.fract() == 0.0 && b.fract() == 0.0);
                    i128::from(*a as i64 - *b as i64).pow(2)
                };
                let squared: i128 = sums[0].iter().zip(&sums[1]).map(moved).sum();
                assert!(squared <= 4 << 40, "{columns} {classes}");
                longest = longest.max(squared as f64 / (4u64 << 40) as f64);
            }
        }
        assert!(longest > 0.97, "the bound should be sharp: {longest}");
    }

    /// Each class's part is short enough, but both together are not: (1, 0) and (-1, 0) at zero weights.
    #[test]
    fn a_rounded_gradient_that_is_too_long_as_a_whole_is_taken_back() {
        let mut sum = [5.0, -7.0, 1e15, 3.0];
        let examples = examples(&[1.9, 0.1], 2, &[1.0], (2, 4.0));
        add_softmax_quantized(Isa::Portable, examples, Grid { scale: 1.0, most: 1.0 }, &[0], 1, &[0.0; 4], &mut sum);
        assert_eq!(sum, [5.0, -7.0, 1e15, 3.0]);
        add_softmax_quantized(Isa::Portable, examples, Grid { scale: 1.0, most: 2.0 }, &[0], 1, &[0.0; 4], &mut sum);
        assert_eq!(sum, [6.0, -7.0, 1e15 - 1.0, 3.0]);
    }
}
