//! Products and sums of rows so short that their length is known to the compiler: a model and its sums stay in
//! registers.
//!
//! All is added up as for longer rows, see `simd/blocks.rs`.

use super::Isa;
use super::real::Real;

/// Running sums of an inner product, as for longer rows.
const LANES: usize = 8;

/// Rows whose lanes are folded together, and those that are added to a sum together.
const ROWS: usize = 8;
const TOGETHER: usize = 4;

dispatched! {
    eight_products<T: Real>(entries: &[T], w: &[T], out: &mut [f64]) = products::<T, 8>
}

dispatched! {
    sixteen_products<T: Real>(entries: &[T], w: &[T], out: &mut [f64]) = products::<T, 16>
}

/// Writes the inner products of rows with w where they have 8 or 16 entries; returns how many rows are done, then all
/// but fewer than [`ROWS`].
pub fn multiply<T: Real>(isa: Isa, entries: &[T], w: &[T], out: &mut [f64]) -> usize {
    // With longer vectors the compiler spends more time on exchanging entries than it saves.
    let isa = if isa == Isa::Gfni { Isa::Avx2 } else { isa };
    match w.len() {
        8 => eight_products(isa, entries, w, out),
        16 => sixteen_products(isa, entries, w, out),
        _ => return 0,
    }
    out.len() / ROWS * ROWS
}

#[inline(always)]
fn products<T: Real, const N: usize>(entries: &[T], w: &[T], out: &mut [f64]) {
    let mut model = [T::default(); N];
    model.copy_from_slice(w);
    // Stages of fixed length: the compiler turns each into vectors.
    for (rows, out) in entries.chunks_exact(ROWS * N).zip(out.chunks_exact_mut(ROWS)) {
        let mut halves = [[T::default(); LANES / 2]; ROWS];
        for (row, halves) in rows.chunks_exact(N).zip(&mut halves) {
            let mut lanes = [T::default(); LANES];
            for lane in 0..LANES {
                lanes[lane] = row[lane] * model[lane];
            }
            for start in (LANES..N).step_by(LANES) {
                for lane in 0..LANES {
                    lanes[lane] += row[start + lane] * model[start + lane];
                }
            }
            for lane in 0..LANES / 2 {
                halves[lane] = lanes[lane] + lanes[lane + LANES / 2];
            }
        }
        let mut pairs = [[T::default(); 2]; ROWS];
        for (halves, pair) in halves.iter().zip(&mut pairs) {
            for lane in 0..2 {
                pair[lane] = halves[lane] + halves[lane + 2];
            }
        }
        for (pair, out) in pairs.iter().zip(out) {
            // The sums of longer rows begin at 0, which makes 0 of -0.
            *out = (pair[0] + pair[1] + T::default()).get();
        }
    }
}

/// Adds rows of `N` entries times their factors to sums; returns how many rows are done, all but fewer than
/// [`TOGETHER`].
#[inline(always)]
pub fn sum<T: Real, const N: usize>(entries: &[T], factors: &[f64], sums: &mut [f64]) -> usize {
    let mut total = [0.0; N];
    total.copy_from_slice(sums);
    for (rows, factors) in entries.chunks_exact(TOGETHER * N).zip(factors.chunks_exact(TOGETHER)) {
        let term = |row: usize, at: usize| factors[row] * rows[row * N + at].get();
        for (at, total) in total.iter_mut().enumerate() {
            *total += (term(0, at) + term(1, at)) + (term(2, at) + term(3, at));
        }
    }
    sums.copy_from_slice(&total);
    factors.len() / TOGETHER * TOGETHER
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::{Seed, Stream};
    use crate::simd::{RowBlock, add_block, block_products};

    #[test]
    fn short_rows_are_added_up_like_long_ones() {
        let mut rng = Seed::reproducible([10; 32]).stream(Stream::Speed, 0);
        for (columns, count) in [(8, 1), (8, 7), (8, 8), (8, 21), (16, 4), (16, 16), (16, 37)] {
            let mut reals = |count| (0..count).map(|_| rng.below(1 << 40) as f64 / 1e11 - 5.0).collect::<Vec<f64>>();
            let (entries, w, factors) = (reals(columns * count), reals(columns), reals(count));
            let product = |row: &[f64]| {
                let mut lanes = [0.0; LANES];
                (0..columns).for_each(|at| lanes[at % LANES] += row[at] * w[at]);
                let [a, b, c, d, e, f, g, h] = lanes;
                ((a + e) + (c + g)) + ((b + f) + (d + h))
            };
            let term = |row: usize, at: usize| factors[row] * entries[row * columns + at];
            let whole = count / TOGETHER * TOGETHER;
            let sum = |at: usize| {
                let four = |row: usize| (term(row, at) + term(row + 1, at)) + (term(row + 2, at) + term(row + 3, at));
                let groups = (0..whole).step_by(TOGETHER).fold(1.0, |sum, row| sum + four(row));
                (whole..count).fold(groups, |sum, row| sum + term(row, at))
            };
            for isa in Isa::ALL {
                let block = RowBlock { entries: &entries, columns, ahead: &[] };
                let (mut out, mut sums) = (vec![0.0; count], vec![1.0; columns]);
                block_products(isa, block, &w, &mut out);
                add_block(isa, block, &factors, &mut sums);
                assert_eq!(out, entries.chunks_exact(columns).map(product).collect::<Vec<_>>(), "{}", isa.name());
                assert_eq!(sums, (0..columns).map(sum).collect::<Vec<_>>(), "{}", isa.name());
            }
        }
    }
}
