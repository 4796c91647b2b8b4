//! Echelon forms, inverses and factors, all from one elimination of a matrix with further columns beside it.

use std::ops::Range;

use super::eliminate::{Echelon, eliminate};
use super::matrix::BitMatrix;
use super::solve::{System, solve};
use super::strips::Strips;
use crate::error::{Error, Result};
use crate::memory::{collected, room, zeros};
use crate::run::Run;
use crate::simd::{BLOCK, Block, Tiles};

/// Strips of pivots whose updates rows take at once.
const PANEL: usize = 4;

/// The solutions of A X = B, column by column.
pub struct Solutions {
    /// For each column of B the solution whose free unknowns are zero; zeros where there is none.
    pub x: BitMatrix,
    /// For each column of B whether it has a solution, one byte of 0 or 1.
    pub consistent: Vec<u8>,
}

/// The factors of a matrix: its rows `rows` are L E.
pub struct Ple {
    /// Which row of the matrix stands in each row of L E: a permutation.
    pub rows: Vec<usize>,
    /// The columns in which the rows of E have their first bits, ascending.
    pub pivots: Vec<usize>,
    /// Rows x rank, zero above the diagonal and one on it.
    pub lower: BitMatrix,
    /// Rank x columns, in row echelon form.
    pub echelon: BitMatrix,
}

/// The nonzero rows of the reduced row echelon form, of which a matrix has one, and the columns of their pivots.
///
/// Cost: as [`solve`], and rank^2 columns / 2 bit operations.
pub fn row_basis(matrix: &BitMatrix, run: Run<'_>) -> Result<(BitMatrix, Vec<usize>)> {
    let echelon = solve(&System { matrix, rows: None, ones: false, rhs: None }, run)?.echelon;
    let reduced = echelon.reduced(0, matrix.words(), run)?;
    Ok((rows_of(&reduced, echelon.pivots.len(), matrix.columns(), run)?, echelon.pivots))
}

/// A row echelon form of the matrix's shape, which is not reduced: the same for every instruction set and number of
/// threads.
pub fn echelon_form(matrix: &BitMatrix, run: Run<'_>) -> Result<BitMatrix> {
    let echelon = eliminate(matrix.strips(0, matrix.rows(), run)?, matrix.columns(), run)?;
    BitMatrix::pack(matrix.rows(), matrix.columns(), run, |first, out| {
        for (row, line) in (first..echelon.pivots.len()).zip(out.chunks_exact_mut(matrix.words())) {
            echelon.read(row, line);
        }
        Ok(())
    })
}

/// The inverse; `None` of a matrix whose rank is below its size.
///
/// Cost: 4/3 of a product.
pub fn inverse(matrix: &BitMatrix, run: Run<'_>) -> Result<Option<BitMatrix>> {
    let size = matrix.rows();
    if matrix.columns() != size {
        let text = format!("A is {size} x {}, but only a square matrix has an inverse", matrix.columns());
        return Err(Error::Shape(text));
    }
    let echelon = beside(matrix, &BitMatrix::identity(size)?, run)?;
    if echelon.pivots.len() < size {
        return Ok(None);
    }
    rows_of(&echelon.reduced(matrix.words(), 2 * matrix.words(), run)?, size, size, run).map(Some)
}

/// The solutions of A X = B for every column of B.
///
/// Cost for m equations in d unknowns: an elimination of all of them, in which B takes part.
pub fn solve_many(matrix: &BitMatrix, right: &BitMatrix, run: Run<'_>) -> Result<Solutions> {
    if matrix.rows() != right.rows() {
        let (a, b) = (matrix.rows(), right.rows());
        return Err(Error::Shape(format!("A has {a} rows and B has {b}, but A X = B needs equally many")));
    }
    let echelon = beside(matrix, right, run)?;
    let (words, columns, rank) = (right.words(), right.columns(), echelon.pivots.len());
    let leftover = |w: usize| {
        let strip = echelon.strips.strip(matrix.words() + w);
        (rank..matrix.rows()).fold(0, |seen, row| seen | strip[row / BLOCK].row(row % BLOCK))
    };
    let wrong: Vec<u64> = collected((0..words).map(leftover))?;
    let reduced = echelon.reduced(matrix.words(), matrix.words() + words, run)?;
    let solved = rows_of(&reduced, rank, columns, run)?;
    let x = BitMatrix::pack(matrix.columns(), columns, run, |first, out| {
        let mut t = echelon.pivots.partition_point(|&pivot| pivot < first);
        for (column, line) in (first..).zip(out.chunks_exact_mut(words)) {
            if echelon.pivots.get(t) == Some(&column) {
                let values = solved.row(t).iter().zip(&wrong);
                line.iter_mut().zip(values).for_each(|(word, (value, wrong))| *word = value & !wrong);
                t += 1;
            }
        }
        Ok(())
    })?;
    let consistent = collected((0..columns).map(|k| u8::from(wrong[k / BLOCK] >> (k % BLOCK) & 1 == 0)))?;
    Ok(Solutions { x, consistent })
}

/// The factors P L E of a matrix.
///
/// Its pivot columns have full rank, so that they have factors L U whose blocks are regular; E is U times the reduced
/// row echelon form. (Albrecht, Bard, Pernet 2011 describe the decomposition.)
///
/// Cost: that of [`row_basis`], of factoring the pivot columns, and of a product.
pub fn ple(matrix: &BitMatrix, run: Run<'_>) -> Result<Ple> {
    let (reduced, pivots) = row_basis(matrix, run)?;
    let (rows, rank) = (matrix.rows(), pivots.len());
    let columns = matrix.take_columns(&pivots, run)?;
    let mut factors = columns.strips(0, rows, run)?;
    let order = factor(&mut factors, rank, run)?;
    let lower = triangle(&factors, rows, rank, true, run)?;
    let upper = triangle(&factors, rank, rank, false, run)?;
    Ok(Ple { rows: order, pivots, lower, echelon: upper.multiply(&reduced, run)? })
}

/// The echelon form of a matrix, whose transformation the columns of another one beside it take part in. They begin
/// with a strip of their own.
fn beside(matrix: &BitMatrix, right: &BitMatrix, run: Run<'_>) -> Result<Echelon> {
    let words = matrix.words();
    let strips = Strips::gather(matrix.rows(), words + right.words(), run, |i, first, out| {
        let left = words.saturating_sub(first).min(out.len());
        out[..left].copy_from_slice(&matrix.row(i)[first.min(words)..][..left]);
        let from = first.max(words) - words;
        let count = out.len() - left;
        out[left..].copy_from_slice(&right.row(i)[from..][..count]);
    })?;
    // Whole strips, whose padding holds no pivots: the strips to the right of a part of one take no updates.
    eliminate(strips, words * BLOCK, run)
}

impl Echelon {
    /// Strips `from..to` of the reduced form: of the sums of its rows that have an identity in the pivot columns.
    ///
    /// Cost: rank^2 / 2 bit operations for each column.
    pub(super) fn reduced(&self, from: usize, to: usize, run: Run<'_>) -> Result<Vec<Vec<Block>>> {
        let height = self.pivots.len().div_ceil(BLOCK);
        let mut strips: Vec<Vec<Block>> = room(Some(to - from))?;
        for _ in from..to {
            strips.push(zeros(Some(height))?);
        }
        run.try_for_each_chunk(&mut strips, 1, |h, strip| self.reduce(from + h, &mut strip[0], run))?;
        Ok(strips)
    }

    /// Strip h of the reduced form, over zeros in `sums`, from the last panel of pivots to the first.
    fn reduce(&self, h: usize, sums: &mut [Block], run: Run<'_>) -> Result<()> {
        let start = |g: usize| self.pivots.partition_point(|&pivot| pivot < g * BLOCK);
        let mut tiles = Tiles::new(run.isa);
        // A row whose pivot is to the right of the strip holds leftovers of the elimination there.
        let end = start(h + 1);
        sums.iter_mut().zip(self.strips.strip(h)).enumerate().for_each(|(b, (sum, block))| {
            let count = end.saturating_sub(b * BLOCK).min(BLOCK);
            sum.copy_rows(0, block, 0, count);
        });
        let last = self.pivots.last().map_or(0, |&pivot| pivot / BLOCK + 1).min(h + 1);
        for low in (0..last).step_by(PANEL).rev() {
            run.check()?;
            let high = last.min(low + PANEL);
            let mut pivots = [Block::ZERO; PANEL];
            for g in (low..high).rev() {
                for t in start(g)..start(g + 1) {
                    pivots[g - low].set_row(self.pivots[t] % BLOCK, sums[t / BLOCK].row(t % BLOCK));
                }
                let above = start(low)..start(g);
                add_to_rows(sums, &[self.strips.strip(g)], &pivots[g - low..=g - low], above, &mut tiles);
            }
            let factors: Vec<&[Block]> = (low..high).map(|g| self.strips.strip(g)).collect();
            add_to_rows(sums, &factors, &pivots[..high - low], 0..start(low), &mut tiles);
        }
        Ok(())
    }

    /// Copies a row of the form over zeros, without what is left of the elimination before the strip of its pivot.
    fn read(&self, row: usize, out: &mut [u64]) {
        for (g, word) in out.iter_mut().enumerate().skip(self.pivots[row] / BLOCK) {
            *word = self.strips.strip(g)[row / BLOCK].row(row % BLOCK);
        }
    }
}

/// Adds the products of `factors` and the blocks of `right` to some rows.
fn add_to_rows(sums: &mut [Block], factors: &[&[Block]], right: &[Block], rows: Range<usize>, tiles: &mut Tiles) {
    if rows.is_empty() {
        return;
    }
    tiles.load(right);
    let whole = rows.start.div_ceil(BLOCK)..rows.end / BLOCK;
    if !whole.is_empty() {
        let factors: Vec<&[Block]> = factors.iter().map(|factor| &factor[whole.clone()]).collect();
        tiles.add_product(&mut sums[whole.clone()], &factors);
    }
    for b in (rows.start / BLOCK..rows.end.div_ceil(BLOCK)).filter(|b| !whole.contains(b)) {
        let (from, to) = (rows.start.max(b * BLOCK), rows.end.min((b + 1) * BLOCK));
        let part = |factor: &&[Block]| {
            let mut kept = Block::ZERO;
            kept.copy_rows(from % BLOCK, &factor[b], from % BLOCK, to - from);
            kept
        };
        let parts: Vec<Block> = factors.iter().map(part).collect();
        let parts: Vec<&[Block]> = parts.iter().map(std::slice::from_ref).collect();
        tiles.add_product(&mut sums[b..b + 1], &parts);
    }
}

/// The first rows of some strips as a matrix.
fn rows_of(strips: &[Vec<Block>], rows: usize, columns: usize, run: Run<'_>) -> Result<BitMatrix> {
    BitMatrix::pack(rows, columns, run, |first, out| {
        for (g, strip) in strips.iter().enumerate() {
            // Tasks begin with a block.
            let lines = strip[first / BLOCK..].iter().flat_map(Block::to_rows);
            out.iter_mut().skip(g).step_by(strips.len()).zip(lines).for_each(|(word, line)| *word = line);
        }
        Ok(())
    })
}

/// Factors a matrix of full column rank in place: U on and above the diagonal, L without its diagonal below. Returns
/// the order of the rows.
fn factor(strips: &mut Strips, rank: usize, run: Run<'_>) -> Result<Vec<usize>> {
    let (rows, height) = (strips.rows(), strips.height());
    let mut order = collected(0..rows)?;
    for g in 0..rank.div_ceil(BLOCK) {
        run.check()?;
        // Every column has a pivot: those of a strip are a whole block of rows, but for the last one.
        let (left, strip, right) = strips.split_mut(0, g, g + 1);
        let swaps = factor_strip(strip, g * BLOCK, rows, (rank - g * BLOCK).min(BLOCK))?;
        swaps.iter().for_each(|&(one, other)| order.swap(one, other));
        left.chunks_exact_mut(height).for_each(|earlier| swap_rows(earlier, &swaps));
        let (inverse, strip) = (invert_lower(&strip[g]), &*strip);
        let state = || Tiles::new(run.isa);
        run.for_each_chunk(right, height, state, |tiles, _, later| {
            swap_rows(later, &swaps);
            let mut solved = [Block::ZERO];
            tiles.load(&later[g..=g]);
            tiles.add_product(&mut solved, &[std::slice::from_ref(&inverse)]);
            later[g] = solved[0];
            tiles.load(&solved);
            tiles.add_product(&mut later[g + 1..], &[&strip[g + 1..]]);
        });
    }
    Ok(order)
}

/// Factors the rows of one strip from `top` on, and returns the exchanges that bring its pivots to the diagonal.
fn factor_strip(strip: &mut [Block], top: usize, rows: usize, width: usize) -> Result<Vec<(usize, usize)>> {
    let mut words: Vec<u64> = room(Some(rows - top))?;
    words.extend(strip[top / BLOCK..].iter().flat_map(Block::to_rows).take(rows - top));
    let mut swaps = room(Some(width))?;
    for q in 0..width {
        let Some(found) = (q..words.len()).find(|&i| words[i] >> q & 1 == 1) else { continue };
        words.swap(q, found);
        swaps.push((top + q, top + found));
        let right = words[q] & (u64::MAX << q << 1);
        for word in &mut words[q + 1..] {
            *word ^= right & (*word >> q & 1).wrapping_neg();
        }
    }
    for (block, rows) in strip[top / BLOCK..].iter_mut().zip(words.chunks(BLOCK)) {
        let mut lines = [0; BLOCK];
        lines[..rows.len()].copy_from_slice(rows);
        *block = Block::from_rows(&lines);
    }
    Ok(swaps)
}

fn swap_rows(strip: &mut [Block], swaps: &[(usize, usize)]) {
    for &(one, other) in swaps {
        let (a, b) = (strip[one / BLOCK].row(one % BLOCK), strip[other / BLOCK].row(other % BLOCK));
        strip[one / BLOCK].set_row(one % BLOCK, b);
        strip[other / BLOCK].set_row(other % BLOCK, a);
    }
}

/// The inverse of the lower triangle of a block, with ones on its diagonal.
fn invert_lower(block: &Block) -> Block {
    let rows = block.to_rows();
    let mut inverse = [0; BLOCK];
    for i in 0..BLOCK {
        inverse[i] = (0..i).filter(|j| rows[i] >> j & 1 == 1).fold(1 << i, |sum, j| sum ^ inverse[j]);
    }
    Block::from_rows(&inverse)
}

/// The first rows of what is strictly below the diagonal of some strips, with ones on it, or of what is not below.
fn triangle(strips: &Strips, rows: usize, rank: usize, lower: bool, run: Run<'_>) -> Result<BitMatrix> {
    BitMatrix::pack(rows, rank, run, |first, out| {
        for (row, line) in (first..).zip(out.chunks_exact_mut(rank.div_ceil(BLOCK))) {
            for (g, word) in line.iter_mut().enumerate() {
                let bits = strips.strip(g)[row / BLOCK].row(row % BLOCK);
                let columns = row.saturating_sub(g * BLOCK).min(BLOCK);
                let rest = u64::MAX.checked_shl(columns as u32).unwrap_or(0);
                let diagonal = if row / BLOCK == g && row < rank { 1 << (row % BLOCK) } else { 0 };
                *word = if lower { bits & !rest | diagonal } else { bits & rest };
            }
        }
        Ok(())
    })
}
