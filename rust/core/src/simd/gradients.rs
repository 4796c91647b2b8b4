//! Gradients of the losses of linear models: rows with labels, read in any order, and what a row is to be multiplied
//! with for its clipped gradient.
//!
//! The gradient of a linear model's loss at a row x is a multiple of x for each class, so that only the multiples are
//! computed here, for several rows at a time, from inner products alone; `simd/minibatch.rs` adds up the rows.
//!
//! ```text
//! factors of some rows, from s[c] = <x, w_c>, q = <x, x> and the label:
//!     shrunk   = min(bound / sqrt(q), 1)              the row counts as shrunk x, whose norm is known
//!     slopes   = derivatives of the loss in shrunk s[c], for each class c
//!     clip     = min(most / (|slopes| shrunk sqrt(q)), 1), 0 if that length is no number
//!     factor[c] = slopes[c] clip shrunk
//! ```

use super::labels::Labels;
use super::prefetch::prefetch;
use super::real::Real;

/// How many rows ahead of its use a row is fetched: about as many short ones as are used while the memory answers. For
/// long rows a number of bytes, the most that the memory can have under way at a time.
const AHEAD: usize = 24;
const AHEAD_BYTES: usize = 16384;

/// For how many rows the pages are looked up together, for rows of more bytes than `LONG`.
const TOGETHER: usize = 8;
const LONG: usize = 128;

/// A loss of one prediction, or of one for each class, by its derivatives, which are all that a gradient needs.
pub trait Derivatives: Copy + Send + Sync {
    /// Replaces the predictions for some records by the derivatives of the loss in them. There is an array for
    /// each class, with a place for each record.
    fn differentiate<const N: usize>(self, predictions: &mut [[f64; N]], labels: &[f64; N]);
}

/// Rows of a matrix, each of which counts as if it were shrunk to a norm of at most `bound`.
#[derive(Clone, Copy)]
pub struct Rows<'a, T> {
    /// The entries, row by row.
    pub entries: &'a [T],
    /// The number of entries in a row, at least 1.
    pub columns: usize,
    /// The largest norm of a row, above 0.
    pub bound: f64,
}

/// Rows with labels, a loss, and the norm to which gradients are clipped.
#[derive(Clone, Copy)]
pub struct Examples<'a, T, L> {
    /// The rows.
    pub rows: Rows<'a, T>,
    /// One label for each row.
    pub labels: Labels<'a>,
    /// The loss of the predictions, which are inner products of the row with w.
    pub loss: L,
    /// The largest norm of a gradient, above 0; longer ones are shrunk to it.
    pub most: f64,
}

/// The grid of integers to which gradients are rounded.
#[derive(Clone, Copy)]
pub struct Grid {
    /// The number of grid steps in a unit of the gradient.
    pub scale: f64,
    /// The largest norm of a rounded gradient, in grid steps: an integer of at most 2^26.
    pub most: f64,
}

impl<T: Real> Rows<'_, T> {
    #[inline(always)]
    pub(super) fn row(&self, row: usize) -> &[T] {
        &self.entries[row * self.columns..][..self.columns]
    }

    /// Returns, from a row's inner product with itself, the factor that shrinks the row, and the row's norm. The norm is
    /// NaN where squares underflow, and the factor is 0 where they overflow, so that the norm of what is left of a row
    /// is known to the precision of its entries.
    #[inline(always)]
    pub(super) fn measured(&self, squared: f64) -> (f64, f64) {
        let norm = squared.sqrt();
        // No branch: where many rows are about as long as the bound, it would be guessed wrong every other time.
        let shrunk = (self.bound / norm).min(1.0);
        (shrunk, if squared >= T::LEAST { norm } else { f64::NAN })
    }
}

impl<T: Real, L> Examples<'_, T, L> {
    /// Asks the memory for what will be read some rows after the i-th.
    #[inline(always)]
    pub(super) fn ask(&self, rows: &[usize], i: usize) {
        let bytes = size_of::<T>() * self.rows.columns;
        let ahead = (AHEAD_BYTES / bytes).clamp(2, AHEAD);
        // The processor waits until it knows where a page lies, but for several pages at a time: the first entries of some
        // rows are asked for together, and all else when their pages are known.
        if bytes > LONG && i.is_multiple_of(TOGETHER) {
            for &row in rows.iter().skip(i + ahead + TOGETHER).take(TOGETHER) {
                prefetch(&self.rows.row(row)[..1]);
            }
        }
        if let Some(&row) = rows.get(i + ahead) {
            prefetch(self.rows.row(row));
            self.labels.ask(row);
        }
    }

    /// What a gradient of this length is multiplied with to be no longer than it may be; 0 if it is of no known length.
    #[inline(always)]
    pub(super) fn clip(&self, length: f64) -> f64 {
        if length <= self.most {
            1.0
        } else if length < f64::INFINITY {
            self.most / length
        } else {
            0.0
        }
    }
}

impl<T: Real, D: Derivatives> Examples<'_, T, D> {
    /// Turns inner products of some rows, one array for each class, into what the rows are to be multiplied
    /// with for their clipped gradients, from their inner products with themselves and their labels.
    #[inline(always)]
    pub(super) fn factors<const N: usize>(&self, scores: &mut [[f64; N]], squared: &[f64; N], labels: &[f64; N]) {
        let (mut shrunk, mut norms) = ([0.0; N], [0.0; N]);
        for i in 0..N {
            (shrunk[i], norms[i]) = self.rows.measured(squared[i]);
        }
        for scores in scores.iter_mut() {
            for i in 0..N {
                scores[i] *= shrunk[i];
            }
        }
        self.loss.differentiate(scores, labels);
        let mut squares = [0.0; N];
        for slopes in &*scores {
            for i in 0..N {
                squares[i] += slopes[i] * slopes[i];
            }
        }
        let mut factors = [0.0; N];
        for i in 0..N {
            factors[i] = self.clip(squares[i].sqrt() * shrunk[i] * norms[i]) * shrunk[i];
        }
        for slopes in scores.iter_mut() {
            for i in 0..N {
                // What is no number is none even times 0.
                slopes[i] = if factors[i] == 0.0 { 0.0 } else { slopes[i] * factors[i] };
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::noise::{Rng, Seed, Stream};
    use crate::simd::{Isa, Room, add_gradients, add_quantized, clipped_scores};

    #[derive(Clone, Copy)]
    struct Difference;

    impl Derivatives for Difference {
        fn differentiate<const N: usize>(self, predictions: &mut [[f64; N]], labels: &[f64; N]) {
            predictions[0].iter_mut().zip(labels).for_each(|(prediction, label)| *prediction -= label);
        }
    }

    /// The sum of the first rows' quantized gradients.
    fn quantized<T: Real>(
        isa: Isa,
        examples: Examples<'_, T, Difference>,
        grid: Grid,
        (rows, count): (&[usize], usize),
        w: &[T],
        sum: &mut [f64],
    ) {
        let mut room = Room::new::<T>(count, w.len(), 1).unwrap();
        add_quantized(isa, examples, grid, (rows, count), w, &mut room, sum);
    }

    fn real(rng: &mut Rng) -> f64 {
        (rng.below(2001) as f64 - 1000.0) / 300.0
    }

    /// Entries of all magnitudes: zero rows, tiny ones, typical ones, some whose squares overflow.
    fn entries<T: Real>(count: usize, columns: usize, rng: &mut Rng) -> Vec<T> {
        let scales = [
            0.0,
            T::LEAST,
            T::LEAST.sqrt(),
            1e-9,
            1.0,
            1.0,
            1.0,
            1e6,
            T::LEAST.recip().sqrt(),
            T::LEAST.recip() / 16.0,
        ];
        let row = |rng: &mut Rng| {
            let scale = scales[rng.below(10) as usize];
            (0..columns).map(|_| T::of(real(rng) * scale)).collect::<Vec<T>>()
        };
        (0..count).flat_map(|_| row(rng)).collect()
    }

    fn examples<'a, T: Real>(
        entries: &'a [T],
        columns: usize,
        labels: &'a [f64],
        most: f64,
    ) -> Examples<'a, T, Difference> {
        Examples { rows: Rows { entries, columns, bound: 2.0 }, labels: labels.into(), loss: Difference, most }
    }

    #[test]
    fn all_arms_agree_with_the_definition() {
        check_arms::<f64>(1e-12);
        check_arms::<f32>(1e-3);
    }

    fn check_arms<T: Real>(tolerance: f64) {
        let mut rng = Seed::reproducible([5; 32]).stream(Stream::Speed, 0);
        for columns in [1, 2, 7, 8, 9, 15, 16, 17, 64, 65, 200] {
            let mut reals = |count| (0..count).map(|_| T::of(real(&mut rng))).collect::<Vec<T>>();
            let (entries, w) = (reals(40 * columns), reals(columns));
            let labels: Vec<f64> = (0..40).map(|_| real(&mut rng)).collect();
            let rows: Vec<usize> = (0..120).map(|_| rng.below(40) as usize).collect();
            // One by one, a part of a block, and several blocks.
            for count in [1, 3, 4, 16, 30, 100] {
                let mut expected = vec![0.0; columns];
                for &row in &rows[..count] {
                    let x: Vec<f64> = entries[row * columns..][..columns].iter().map(|x| x.get()).collect();
                    let norm = x.iter().map(|x| x * x).sum::<f64>().sqrt();
                    let x: Vec<f64> = x.iter().map(|x| x * (2.0 / norm).min(1.0)).collect();
                    let slope = x.iter().zip(&w).map(|(x, w)| x * w.get()).sum::<f64>() - labels[row];
                    let length = slope.abs() * norm.min(2.0);
                    let factor = slope * (1.5 / length).min(1.0);
                    expected.iter_mut().zip(&x).for_each(|(sum, x)| *sum += factor * x);
                }
                let examples = examples(&entries, columns, &labels, 1.5);
                let sums = Isa::ALL.map(|isa| {
                    let mut sums = [vec![0.0; columns], vec![0.0; columns]];
                    let mut room = Room::new::<T>(count, columns, 1).unwrap();
                    add_gradients(isa, examples, (&rows, count), &w, &mut room, &mut sums[0]);
                    let grid = Grid { scale: 1e5, most: 2e5 };
                    add_quantized(isa, examples, grid, (&rows, count), &w, &mut room, &mut sums[1]);
                    sums
                });
                let near = |sum: &[f64], tolerance| sum.iter().zip(&expected).all(|(a, b)| (a - b).abs() < tolerance);
                assert!(near(&sums[0][0], tolerance), "{columns}");
                let quantized: Vec<f64> = sums[0][1].iter().map(|sum| sum / 1e5).collect();
                assert!(near(&quantized, tolerance + count as f64 * 0.6e-5), "{columns}");
                assert!(sums.iter().all(|sum| *sum == sums[0]), "{columns} {count}");
            }
        }
    }

    #[test]
    fn one_changed_draw_moves_a_quantized_sum_by_twice_the_bound_at_most() {
        check_sensitivity::<f64>();
        check_sensitivity::<f32>();
    }

    /// What the proof of the exact mechanism rests on, with integers of 128 bits, for gradients at and beyond the bound.
    fn check_sensitivity<T: Real>() {
        let mut rng = Seed::reproducible([6; 32]).stream(Stream::Speed, 0);
        let mut longest: f64 = 0.0;
        for columns in [1, 3, 8, 33, 200] {
            let most = (1u64 << 20) as f64;
            let grid = Grid { scale: (most - (columns as f64).sqrt() / 2.0 - 4.0) / 1.5, most };
            let entries = entries::<T>(300, columns, &mut rng);
            let labels: Vec<f64> = (0..300).map(|_| real(&mut rng)).collect();
            let w: Vec<T> = (0..columns).map(|_| T::of(real(&mut rng) / 10.0)).collect();
            let examples = examples(&entries, columns, &labels, 1.5);
            for _ in 0..200 {
                let count = [3, 5, 40][rng.below(3) as usize];
                let mut rows: Vec<usize> = (0..count).map(|_| rng.below(300) as usize).collect();
                let sums = [0, 1].map(|_| {
                    rows[2] = rng.below(300) as usize;
                    let mut sum = vec![0.0; columns];
                    quantized(Isa::Gfni, examples, grid, (&rows, count), &w, &mut sum);
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

    /// What Poisson-many draws rest on: a record that is drawn b times adds b times the same, whatever else is drawn.
    #[test]
    fn a_quantized_gradient_is_the_same_wherever_its_row_stands() {
        check_places::<f64>();
        check_places::<f32>();
    }

    fn check_places<T: Real>() {
        let mut rng = Seed::reproducible([7; 32]).stream(Stream::Speed, 0);
        for columns in [1, 2, 7, 8, 9, 16, 17, 65, 200] {
            let most = (1u64 << 20) as f64;
            let grid = Grid { scale: (most - (columns as f64).sqrt() / 2.0 - 4.0) / 1.5, most };
            let entries = entries::<T>(50, columns, &mut rng);
            let labels: Vec<f64> = (0..50).map(|_| real(&mut rng)).collect();
            let w: Vec<T> = (0..columns).map(|_| T::of(real(&mut rng) / 10.0)).collect();
            let examples = examples(&entries, columns, &labels, 1.5);
            // Room for few rows, which are taken one by one, and for blocks.
            for (isa, draws) in Isa::ALL.into_iter().flat_map(|isa| [(isa, 2), (isa, 1000)]) {
                let mut room = Room::new::<T>(draws, columns, 1).unwrap();
                let mut sum_of = |rows: &[usize]| {
                    let mut sum = vec![0.0; columns];
                    add_quantized(isa, examples, grid, (rows, rows.len()), &w, &mut room, &mut sum);
                    sum
                };
                let alone: Vec<Vec<f64>> = (0..50).map(|row| sum_of(&[row])).collect();
                for count in [2, 3, 5, 15, 16, 17, 40, 63, 64, 65, 130, 300] {
                    let rows: Vec<usize> = (0..count).map(|_| rng.below(50) as usize).collect();
                    let mut expected = vec![0.0; columns];
                    for &row in &rows {
                        expected.iter_mut().zip(&alone[row]).for_each(|(sum, more)| *sum += more);
                    }
                    assert_eq!(sum_of(&rows), expected, "{columns} {count} {draws}");
                }
            }
        }
    }

    /// Their integers would be 1, 2 (from 1.5) and 0 (from 0.5), and sums are not 0 before them.
    #[test]
    fn a_rounded_gradient_that_is_too_long_is_taken_back() {
        let grid = Grid { scale: 1.0, most: 1.0 };
        let mut sum = [5.0, -7.0, 1e15];
        let examples = examples(&[0.9f32, 1.5, 0.5], 3, &[-1.0], 4.0);
        for count in [2, 20] {
            quantized(Isa::Portable, examples, grid, (&[0; 20], count), &[0.0; 3], &mut sum);
        }
        assert_eq!(sum, [5.0, -7.0, 1e15]);
    }

    /// They could be of any length if the norm that underflows were believed.
    #[test]
    fn rows_whose_squares_are_no_normal_numbers_count_as_zero() {
        for entry in [1e-170, 1e-160, 1e200] {
            let most = 1e-200;
            let grid = Grid { scale: 1e6 / most, most: 1e6 };
            let (entries, mut sum) = ([entry, -entry], [5.0, -7.0]);
            let examples = examples(&entries, 2, &[-1.0], most);
            for count in [1, 20] {
                quantized(Isa::Portable, examples, grid, (&[0; 20], count), &[0.0, 0.0], &mut sum);
                assert_eq!(sum, [5.0, -7.0]);
            }
            clipped_scores(Isa::Portable, examples.rows, 0, &[1.0, 0.5], &mut sum[..1]);
            assert_eq!(sum[0], 0.0);
        }
    }

    #[test]
    fn quantized_gradients_are_the_nearest_integers() {
        let grid = Grid { scale: 1000.0, most: 2000.0 };
        let examples = examples(&[0.1234, -0.0567], 2, &[-1.0], 1.5);
        let mut sum = vec![0.0; 2];
        quantized(Isa::Portable, examples, grid, (&[0, 0], 2), &[0.0, 0.0], &mut sum);
        assert_eq!(sum, [246.0, -114.0]);
        quantized(Isa::Portable, examples, grid, (&[0; 20], 20), &[0.0, 0.0], &mut sum);
        assert_eq!(sum, [246.0 + 2460.0, -114.0 - 1140.0]);
    }
}
