//! The softmax loss by its derivatives.
//!
//! The largest score is taken from all others first, so that no exponential overflows and one of them is 1. Several
//! records stand side by side, so that each step is a loop over them without a branch.
//!
//! ```text
//! scores[c] = exp(scores[c] - largest);  total = their sum
//! derivative[c] = scores[c] / total - (c = label)
//! ```

use super::exponential::exp;
use super::gradients::Derivatives;

/// The largest number of classes.
pub const MOST_CLASSES: usize = 1024;

/// The softmax loss; labels are numbers of classes, from 0.
///
/// With a row x, its label y and the probabilities p of the classes, the gradient is x (p - e_y)^T, whose norm is
/// |x| |p - e_y|, at most sqrt(2) |x|.
#[derive(Clone, Copy)]
pub struct Softmax;

impl Derivatives for Softmax {
    #[inline(always)]
    fn differentiate<const N: usize>(self, scores: &mut [[f64; N]], labels: &[f64; N]) {
        let (mut largest, mut totals) = ([f64::NEG_INFINITY; N], [0.0; N]);
        for scores in &*scores {
            for i in 0..N {
                largest[i] = if scores[i] > largest[i] { scores[i] } else { largest[i] };
            }
        }
        for scores in scores.iter_mut() {
            for i in 0..N {
                scores[i] = exp(scores[i] - largest[i]);
                totals[i] += scores[i];
            }
        }
        for (class, scores) in scores.iter_mut().enumerate() {
            for i in 0..N {
                let wanted = if class as f64 == labels[i] { 1.0 } else { 0.0 };
                scores[i] = scores[i] / totals[i] - wanted;
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::noise::{Rng, Seed, Stream};
    use crate::simd::{Examples, Grid, Isa, Real, Room, Rows, add_gradients, add_quantized};

    fn real(rng: &mut Rng) -> f64 {
        (rng.below(2001) as f64 - 1000.0) / 300.0
    }

    fn examples<'a, T: Real>(
        entries: &'a [T],
        columns: usize,
        labels: &'a [f64],
        most: f64,
    ) -> Examples<'a, T, Softmax> {
        Examples { rows: Rows { entries, columns, bound: 2.0 }, labels: labels.into(), loss: Softmax, most }
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
            for count in [3, 30] {
                let mut expected = vec![0.0; classes * columns];
                for &row in &rows[..count] {
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
                    for (sum, (k, j)) in
                        expected.iter_mut().zip((0..classes * columns).map(|i| (i / columns, i % columns)))
                    {
                        *sum += clip * residuals[k] * x[j];
                    }
                }
                let examples = examples(&entries, columns, &labels, 1.5);
                let sums = Isa::ALL.map(|isa| {
                    let mut sums = [vec![0.0; classes * columns], vec![0.0; classes * columns]];
                    let mut room = Room::new::<T>(count, columns, classes).unwrap();
                    add_gradients(isa, examples, (&rows, count), &w, &mut room, &mut sums[0]);
                    let grid = Grid { scale: 1e5, most: 2e5 };
                    add_quantized(isa, examples, grid, (&rows, count), &w, &mut room, &mut sums[1]);
                    sums
                });
                let near = |sum: &[f64], tolerance| sum.iter().zip(&expected).all(|(a, b)| (a - b).abs() < tolerance);
                assert!(near(&sums[0][0], tolerance), "{columns} {classes}");
                let quantized: Vec<f64> = sums[0][1].iter().map(|sum| sum / 1e5).collect();
                assert!(near(&quantized, tolerance + count as f64 * 0.6e-5), "{columns} {classes}");
                assert!(sums.iter().all(|sum| *sum == sums[0]), "{columns} {classes} {count}");
            }
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
            let grid = Grid { scale: (most - ((classes * columns) as f64).sqrt() / 2.0 - 4.0) / 1.2, most };
            let scales = [0.0, T::LEAST.sqrt(), 1e-9, 1.0, 1.0, 1e6, T::LEAST.recip().sqrt(), T::LEAST.recip() / 16.0];
            let mut entries = Vec::new();
            for _ in 0..300 {
                let scale = scales[rng.below(8) as usize];
                entries.extend((0..columns).map(|_| T::of(real(&mut rng) * scale)));
            }
            let labels: Vec<f64> = (0..300).map(|_| rng.below(classes as u64) as f64).collect();
            // Small weights: gradients of mistakes would all point the same way.
            let w: Vec<T> = (0..classes * columns).map(|_| T::of(real(&mut rng) / 30.0)).collect();
            let examples = examples(&entries, columns, &labels, 1.2);
            for _ in 0..300 {
                let count = [3, 20][rng.below(2) as usize];
                let mut rows: Vec<usize> = (0..count).map(|_| rng.below(300) as usize).collect();
                let sums = [0, 1].map(|_| {
                    rows[2] = rng.below(300) as usize;
                    let mut sum = vec![0.0; classes * columns];
                    let mut room = Room::new::<T>(rows.len(), columns, classes).unwrap();
                    add_quantized(Isa::Gfni, examples, grid, (&rows, rows.len()), &w, &mut room, &mut sum);
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
        let examples = examples(&[1.9, 0.1], 2, &[1.0], 4.0);
        for count in [1, 16] {
            let mut room = Room::new::<f64>(count, 2, 2).unwrap();
            let mut add = |most, sum: &mut [f64]| {
                let grid = Grid { scale: 1.0, most };
                add_quantized(Isa::Portable, examples, grid, (&[0; 16], count), &[0.0; 4], &mut room, sum);
            };
            add(1.0, &mut sum);
            assert_eq!(sum, [5.0, -7.0, 1e15, 3.0]);
            add(2.0, &mut sum);
            let added = count as f64;
            assert_eq!(sum, [5.0 + added, -7.0, 1e15 - added, 3.0]);
            sum = [5.0, -7.0, 1e15, 3.0];
        }
    }
}
