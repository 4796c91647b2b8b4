//! A block of rows gathered from anywhere: its copies, their products with models, and their weighted sums.
//!
//! The products and the sums are loops of loads: a register that holds a model's weights serves several rows, one that
//! holds a row's entries several models, and running sums stay in registers meanwhile. How many rows and models fit
//! depends on the number of registers, not on what is computed.
//!
//! ```text
//! gather:    for each row: copy its lines, sum += line line; ask the memory for a later row
//! multiply:  for R rows and M models at a time:  for each line: sums[r][m] += row[r] model[m]
//!            scores = the folded lanes of all sums of a model
//! add_up:    for M models at a time:  for each line: totals[m] = sums[m]; for each row: totals[m] += factor[m] row
//! ```

use super::gradients::Examples;
use super::real::{FOLDED, Line, Real};
use super::terms::Terms;

/// The rows of a block, whose factors are computed together.
pub(super) const HEIGHT: usize = FOLDED;

/// Rows of a block whose successors are asked for while the block is worked on, so that the memory is busy meanwhile.
pub(super) const LATE: usize = 4;

/// Copies the first `size` of some rows, and zeros in place of those that are missing to fill a block; the copies'
/// inner products with themselves, and the labels.
#[inline(always)]
pub(super) fn gather<T: Real, D, L: Line<T, LANES>, const LANES: usize>(
    examples: Examples<'_, T, D>,
    rows: &[usize],
    size: usize,
    copies: &mut [[[T; LANES]; HEIGHT]],
) -> ([f64; HEIGHT], [f64; HEIGHT]) {
    let (mut squares, mut labels) = ([L::splat(T::default()); HEIGHT], [0.0; HEIGHT]);
    for i in 0..HEIGHT {
        if i >= size {
            copies.iter_mut().for_each(|line| line[i] = [T::default(); LANES]);
            continue;
        }
        if i < HEIGHT - LATE {
            examples.ask(rows, i);
        }
        labels[i] = examples.labels.get(rows[i]);
        let (whole, end) = examples.rows.row(rows[i]).as_chunks::<LANES>();
        let (lines, last) = copies.split_at_mut(whole.len());
        let mut sum = L::splat(T::default());
        for (line, numbers) in lines.iter_mut().zip(whole) {
            let numbers = L::load(numbers);
            sum = sum.add(numbers.multiply(numbers));
            line[i] = numbers.store();
        }
        if let [last] = last {
            let numbers = L::load_start(end);
            sum = sum.add(numbers.multiply(numbers));
            last[i] = numbers.store();
        }
        squares[i] = sum;
    }
    (folded(&squares), labels)
}

/// The inner products of a block of rows with each model.
#[inline(always)]
pub(super) fn multiply<T: Real, L: Line<T, LANES>, const LANES: usize>(
    rows: &[[[T; LANES]; HEIGHT]],
    models: &[[T; LANES]],
    scores: &mut [[f64; HEIGHT]],
) {
    let mut class = 0;
    while class < scores.len() {
        class += match scores.len() - class {
            1 if L::MANY => products::<T, L, LANES, 8, 1>(rows, models, class, scores),
            1 => products::<T, L, LANES, 4, 1>(rows, models, class, scores),
            5.. if L::MANY => products::<T, L, LANES, 4, 5>(rows, models, class, scores),
            _ => products::<T, L, LANES, 2, 2>(rows, models, class, scores),
        }
    }
}

/// The inner products of all rows with M models, R rows at a time; M.
#[inline(always)]
fn products<T: Real, L: Line<T, LANES>, const LANES: usize, const R: usize, const M: usize>(
    rows: &[[[T; LANES]; HEIGHT]],
    models: &[[T; LANES]],
    class: usize,
    scores: &mut [[f64; HEIGHT]],
) -> usize {
    let mut all = [[L::splat(T::default()); HEIGHT]; M];
    for first in (0..HEIGHT).step_by(R) {
        let mut sums = [[L::splat(T::default()); M]; R];
        for (rows, models) in rows.iter().zip(models.chunks_exact(scores.len())) {
            let (rows, models) = (&rows[first..][..R], &models[class..][..M]);
            let mut weights = [L::splat(T::default()); M];
            for m in 0..M {
                weights[m] = L::load(&models[m]);
            }
            for r in 0..R {
                let x = L::load(&rows[r]);
                for m in 0..M {
                    sums[r][m] = sums[r][m].add(x.multiply(weights[m]));
                }
            }
        }
        for r in 0..R {
            for m in 0..M {
                all[m][first + r] = sums[r][m];
            }
        }
    }
    for m in 0..M {
        scores[class + m] = folded(&all[m]);
    }
    M
}

/// The sums of the lanes of each row's line.
#[inline(always)]
fn folded<T: Real, L: Line<T, LANES>, const LANES: usize>(lines: &[L; HEIGHT]) -> [f64; HEIGHT] {
    let (sums, mut out) = (L::fold_all(lines), [0.0; HEIGHT]);
    for i in 0..HEIGHT {
        out[i] = sums[i].get();
    }
    out
}

/// Adds to the sums of each model the rows of a block times their factors.
#[inline(always)]
pub(super) fn add_up<T: Real, A: Terms<T>, L: Line<T, LANES>, const LANES: usize>(
    rows: &[[[T; LANES]; HEIGHT]],
    factors: &[[T; HEIGHT]],
    sums: &mut [[T; LANES]],
) {
    let mut class = 0;
    while class < factors.len() {
        class += match factors.len() - class {
            1 => multiples::<T, A, L, LANES, 1>(rows, factors, class, sums),
            5.. => multiples::<T, A, L, LANES, 5>(rows, factors, class, sums),
            _ => multiples::<T, A, L, LANES, 2>(rows, factors, class, sums),
        }
    }
}

/// Adds them to the sums of M models; M.
#[inline(always)]
fn multiples<T: Real, A: Terms<T>, L: Line<T, LANES>, const LANES: usize, const M: usize>(
    rows: &[[[T; LANES]; HEIGHT]],
    factors: &[[T; HEIGHT]],
    class: usize,
    sums: &mut [[T; LANES]],
) -> usize {
    let classes = factors.len();
    let factors = &factors[class..][..M];
    for (rows, sums) in rows.iter().zip(sums.chunks_exact_mut(classes)) {
        let sums = &mut sums[class..][..M];
        let mut totals = [L::splat(T::default()); M];
        for m in 0..M {
            totals[m] = L::load(&sums[m]);
        }
        for i in 0..HEIGHT {
            let x = L::load(&rows[i]);
            for m in 0..M {
                totals[m] = A::add(totals[m], L::splat(factors[m][i]), x);
            }
        }
        for m in 0..M {
            sums[m] = totals[m].store();
        }
    }
    M
}
