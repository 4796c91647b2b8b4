//! Products and sums of rows so short that their length is known to the compiler: a model and its sums stay in
//! registers.
//!
//! To fold the lanes of one short row takes longer than its products: so the lanes of 8 or 16 rows are folded together.
//! All is added up as for longer rows, see `simd/blocks.rs`.
//!
//! ```text
//! products of 16 rows:  lines[i] = row_i w, one line or the sum of two;  out = fold_all(lines)
//! products of 8 rows:   halves[i] = both halves of row_i w added, then those of the halves, ...; out = what is left
//! sums of 4 rows:       total += (e a + f b) + (g c + h d), total in registers until the block ends
//! ```

use super::Isa;
use super::prefetch::prefetch;
use super::real::{FOLDED, InLines, Line, Real};

/// Running sums of an inner product, as for longer rows.
const LANES: usize = 8;

/// Rows whose lanes are folded together, and those that are added to a sum together.
const ROWS: usize = 8;
const TOGETHER: usize = 4;

/// Consecutive rows, and entries that are fetched from memory while the rows are used, an equal share with each row.
#[derive(Clone, Copy)]
pub struct RowBlock<'a, T> {
    /// The entries, row by row.
    pub entries: &'a [T],
    /// The number of entries in a row, at least 1.
    pub columns: usize,
    /// Entries that will be needed later. The memory can bring half as many as `entries` holds in the meantime.
    pub ahead: &'a [T],
}

dispatched! {
    eight_products<T: Real>(block: RowBlock<'_, T>, w: &[T], out: &mut [f64]) = products::<T, 8>
}

/// Writes the inner products of rows with w where they have 8 or 16 entries; returns how many rows are done, then all
/// but fewer than [`FOLDED`].
pub fn multiply<T: Real>(isa: Isa, block: RowBlock<'_, T>, w: &[T], out: &mut [f64]) -> usize {
    match w.len() {
        // Half a line of the cache.
        8 if size_of::<T>() < size_of::<f64>() => {
            // With longer vectors the compiler spends more time on exchanging entries than it saves.
            eight_products(if isa == Isa::Gfni { Isa::Avx2 } else { isa }, block, w, out);
            out.len() / ROWS * ROWS
        }
        8 => in_lines::<T, 8>(isa, block, w, out),
        16 => in_lines::<T, 16>(isa, block, w, out),
        _ => 0,
    }
}

fn in_lines<T: Real, const N: usize>(isa: Isa, block: RowBlock<'_, T>, w: &[T], out: &mut [f64]) -> usize {
    let done = out.len() / FOLDED * FOLDED;
    T::in_lines(isa, Products::<'_, T, N> { block, w, out });
    done
}

/// Products of rows that are one line of the cache, or two.
struct Products<'a, T, const N: usize> {
    block: RowBlock<'a, T>,
    w: &'a [T],
    out: &'a mut [f64],
}

impl<T: Real, const N: usize> InLines<T> for Products<'_, T, N> {
    #[inline(always)]
    fn run<L: Line<T, LANES>, const LANES: usize>(self) {
        let (model, _) = self.w.as_chunks::<LANES>();
        let (first, last) = (L::load(&model[0]), L::load(&model[model.len() - 1]));
        let mut ahead = self.block.ahead.chunks(FOLDED / 2 * N);
        for (rows, out) in self.block.entries.chunks_exact(FOLDED * N).zip(self.out.chunks_exact_mut(FOLDED)) {
            ahead.next().into_iter().for_each(prefetch);
            let (lines, _) = rows.as_chunks::<LANES>();
            let mut sums = [first; FOLDED];
            for i in 0..FOLDED {
                sums[i] = L::load(&lines[i * (N / LANES)]).multiply(first);
                if N > LANES {
                    sums[i] = sums[i].add(L::load(&lines[i * (N / LANES) + 1]).multiply(last));
                }
            }
            let sums = L::fold_all(&sums);
            for i in 0..FOLDED {
                // The sums of longer rows begin at 0, which makes 0 of -0.
                out[i] = (sums[i] + T::default()).get();
            }
        }
    }
}

#[inline(always)]
fn products<T: Real, const N: usize>(block: RowBlock<'_, T>, w: &[T], out: &mut [f64]) {
    let mut model = [T::default(); N];
    model.copy_from_slice(w);
    let mut ahead = block.ahead.chunks(ROWS / 2 * N);
    // Stages of fixed length: the compiler turns each into vectors.
    for (rows, out) in block.entries.chunks_exact(ROWS * N).zip(out.chunks_exact_mut(ROWS)) {
        ahead.next().into_iter().for_each(prefetch);
        let mut halves = [[T::default(); LANES / 2]; ROWS];
        for (row, halves) in rows.chunks_exact(N).zip(&mut halves) {
            let mut lanes = [T::default(); LANES];
            for lane in 0..LANES {
                lanes[lane] = row[lane] * model[lane];
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
            *out = (pair[0] + pair[1] + T::default()).get();
        }
    }
}

/// Adds rows of `N` entries times their factors to sums; returns how many rows are done, all but fewer than
/// [`TOGETHER`].
#[inline(always)]
pub fn sum<T: Real, const N: usize>(block: RowBlock<'_, T>, factors: &[f64], sums: &mut [f64]) -> usize {
    let mut ahead = block.ahead.chunks(TOGETHER / 2 * N);
    let mut total = [0.0; N];
    total.copy_from_slice(sums);
    for (rows, factors) in block.entries.chunks_exact(TOGETHER * N).zip(factors.chunks_exact(TOGETHER)) {
        ahead.next().into_iter().for_each(prefetch);
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
    use crate::simd::{add_block, block_products};

    #[test]
    fn short_rows_are_added_up_like_long_ones() {
        for (columns, count) in [(8, 1), (8, 7), (8, 8), (8, 21), (8, 37), (16, 4), (16, 16), (16, 37)] {
            check::<f64>(columns, count);
            check::<f32>(columns, count);
        }
    }

    fn check<T: Real>(columns: usize, count: usize) {
        let mut rng = Seed::reproducible([10; 32]).stream(Stream::Speed, 0);
        let mut reals = |count| (0..count).map(|_| rng.below(1 << 40) as f64 / 1e11 - 5.0).collect::<Vec<f64>>();
        let [entries, w] = [columns * count, columns].map(|length| reals(length).into_iter().map(T::of).collect());
        let (entries, w, factors): (Vec<T>, Vec<T>, _) = (entries, w, reals(count));
        let product = |row: &[T]| {
            let mut lanes = [T::default(); LANES];
            (0..columns).for_each(|at| lanes[at % LANES] += row[at] * w[at]);
            let [a, b, c, d, e, f, g, h] = lanes;
            (((a + e) + (c + g)) + ((b + f) + (d + h))).get()
        };
        let term = |row: usize, at: usize| factors[row] * entries[row * columns + at].get();
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
