//! Echelon forms, inverses and solutions, all from one elimination of a matrix with further columns beside it.

use std::ops::Range;

use super::eliminate::{Echelon, PANEL, eliminate, gather_rows};
use super::matrix::BitMatrix;
use super::solve::{SLACK, System, find_outside, solve};
use super::space::Solution;
use super::strips::Strips;
use crate::error::{Error, Result};
use crate::memory::{collected, room, zeros};
use crate::noise::Rng;
use crate::run::Run;
use crate::simd::{BLOCK, Block, Tiles};

/// Blocks of strips that are reduced together, so that rows with pivots are read from L2: with a panel they fit there.
const BLOCKS_TOGETHER: usize = 512;

/// The solutions of A X = B, column by column.
pub struct Solutions {
    /// For each column of B the solution whose free unknowns are zero; zeros where there is none.
    pub x: BitMatrix,
    /// For each column of B whether it has a solution, one byte of 0 or 1.
    pub consistent: Vec<u8>,
}

/// The nonzero rows of the reduced row echelon form, of which a matrix has one, and the columns of their pivots.
///
/// Cost: as [`solve`], and rank^2 columns / 2 bit operations.
///
/// # Examples
///
/// ```
/// use hdp_fast_core::gf2::{BitMatrix, echelon_form, row_basis};
/// use hdp_fast_core::run::Run;
/// use hdp_fast_core::simd::Isa;
///
/// let run = Run::alone(Isa::detect()?);
/// let matrix = BitMatrix::from_words(3, 3, vec![0b011, 0b110, 0b101])?;
/// let (basis, pivots) = row_basis(&matrix, run)?;
/// assert_eq!((basis.row(0), basis.row(1), pivots), (&[0b101][..], &[0b110][..], vec![0, 1]));
/// assert!(row_basis(&echelon_form(&matrix, run)?, run)?.0 == basis);
/// # Ok::<(), hdp_fast_core::Error>(())
/// ```
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
///
/// # Examples
///
/// ```
/// use hdp_fast_core::gf2::{BitMatrix, inverse};
/// use hdp_fast_core::run::Run;
/// use hdp_fast_core::simd::Isa;
///
/// let run = Run::alone(Isa::detect()?);
/// let matrix = BitMatrix::from_words(2, 2, vec![0b11, 0b10])?;
/// let inverted = inverse(&matrix, run)?.unwrap();
/// assert!(inverted.multiply(&matrix, run)? == BitMatrix::identity(2)?);
/// assert!(inverse(&BitMatrix::zeros(2, 2)?, run)?.is_none());
/// # Ok::<(), hdp_fast_core::Error>(())
/// ```
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
/// Where there are many more equations than unknowns, some of them are eliminated, and the others are verified.
///
/// Cost for m equations in d unknowns: an elimination of min(m, d + 64) of them, in which B takes part, and a product
/// with the others; an elimination of all if those do not span them.
///
/// # Examples
///
/// ```
/// use hdp_fast_core::gf2::{BitMatrix, solve_many};
/// use hdp_fast_core::run::Run;
/// use hdp_fast_core::simd::Isa;
///
/// let run = Run::alone(Isa::detect()?);
/// let matrix = BitMatrix::from_words(2, 1, vec![1, 1])?;
/// let right = BitMatrix::from_words(2, 2, vec![0b11, 0b01])?;
/// let solutions = solve_many(&matrix, &right, run)?;
/// assert_eq!(solutions.consistent, [1, 0]);
/// assert!(solutions.x == BitMatrix::from_words(1, 2, vec![0b01])?);
/// # Ok::<(), hdp_fast_core::Error>(())
/// ```
pub fn solve_many(matrix: &BitMatrix, right: &BitMatrix, run: Run<'_>) -> Result<Solutions> {
    if matrix.rows() != right.rows() {
        let (a, b) = (matrix.rows(), right.rows());
        return Err(Error::Shape(format!("A has {a} rows and B has {b}, but A X = B needs equally many")));
    }
    if matrix.rows() > 2 * (matrix.columns() + SLACK)
        && right.columns() > 0
        && let Some(solutions) = solve_tall(matrix, right, run)?
    {
        return Ok(solutions);
    }
    let (echelon, wrong) = solvable(matrix, right, run)?;
    Solutions::of(solutions(&echelon, matrix, right, run)?, &wrong, run)
}

/// The solutions by some of the equations; `None` if their coefficients do not span those of the others.
fn solve_tall(matrix: &BitMatrix, right: &BitMatrix, run: Run<'_>) -> Result<Option<Solutions>> {
    let system = System { matrix, rows: None, ones: false, rhs: None };
    let (first, rest) = system.split(matrix.columns() + SLACK)?;
    let first = collected(first.iter().map(|&row| row as usize))?;
    let (some, images) = (matrix.take_rows(&first, run)?, right.take_rows(&first, run)?);
    let (echelon, mut wrong) = solvable(&some, &images, run)?;
    // As a system without a solution it tells nothing but its null space.
    let space = Solution { unknowns: matrix.columns(), consistent: false, echelon };
    let rest = System { rows: Some(&rest), ..system };
    if space.nullity() > 0 && !find_outside(&rest, &space, &mut Rng::for_speed_only(), run)?.is_empty() {
        return Ok(None);
    }
    let x = solutions(&space.echelon, matrix, right, run)?;
    let residues = matrix.multiply(&x, run)?.sum(right, run)?;
    (0..residues.rows()).for_each(|i| wrong.iter_mut().zip(residues.row(i)).for_each(|(wrong, word)| *wrong |= word));
    Solutions::of(x, &wrong, run).map(Some)
}

/// The form of a matrix beside its right-hand sides, and a bit for each of these that has no solution.
fn solvable(matrix: &BitMatrix, right: &BitMatrix, run: Run<'_>) -> Result<(Echelon, Vec<u64>)> {
    let echelon = beside(matrix, right, run)?;
    let rank = echelon.pivots.len();
    let leftover = |w: usize| {
        let strip = echelon.strips.strip(matrix.words() + w);
        (rank..matrix.rows()).fold(0, |seen, row| seen | strip[row / BLOCK].row(row % BLOCK))
    };
    let wrong = collected((0..right.words()).map(leftover))?;
    Ok((echelon, wrong))
}

/// By column the solution that a form says, if there is one.
fn solutions(echelon: &Echelon, matrix: &BitMatrix, right: &BitMatrix, run: Run<'_>) -> Result<BitMatrix> {
    let (words, columns) = (right.words(), right.columns());
    let reduced = echelon.reduced(matrix.words(), matrix.words() + words, run)?;
    let solved = rows_of(&reduced, echelon.pivots.len(), columns, run)?;
    BitMatrix::pack(matrix.columns(), columns, run, |first, out| {
        let mut t = echelon.pivots.partition_point(|&pivot| pivot < first);
        for (column, line) in (first..).zip(out.chunks_exact_mut(words)) {
            if echelon.pivots.get(t) == Some(&column) {
                line.copy_from_slice(solved.row(t));
                t += 1;
            }
        }
        Ok(())
    })
}

impl Solutions {
    /// The columns of `x`, zeros in place of those that are `wrong`.
    fn of(x: BitMatrix, wrong: &[u64], run: Run<'_>) -> Result<Solutions> {
        let consistent = collected((0..x.columns()).map(|k| u8::from(wrong[k / BLOCK] >> (k % BLOCK) & 1 == 0)))?;
        if wrong.iter().all(|&word| word == 0) {
            return Ok(Solutions { x, consistent });
        }
        let masked = BitMatrix::pack(x.rows(), x.columns(), run, |first, out| {
            for (i, row) in (first..).zip(out.chunks_exact_mut(x.words())) {
                row.iter_mut().zip(x.row(i)).zip(wrong).for_each(|((word, value), wrong)| *word = value & !wrong);
            }
            Ok(())
        })?;
        Ok(Solutions { x: masked, consistent })
    }
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
        let mut strips = empty_strips(to - from, self.pivots.len())?;
        let together = (BLOCKS_TOGETHER / self.strips.height()).max(1);
        run.try_for_each_chunk(&mut strips, together, |task, part| self.reduce(from + task * together, part, run))?;
        Ok(strips)
    }

    /// Strips of the reduced form from the given one on, over zeros in `strips`, from the last panel of pivots to the
    /// first.
    fn reduce(&self, first: usize, strips: &mut [Vec<Block>], run: Run<'_>) -> Result<()> {
        let mut tiles = Tiles::new(run.isa);
        for (h, sums) in (first..).zip(&mut *strips) {
            // A row whose pivot is to the right of the strip holds leftovers of the elimination there.
            let end = self.start(h + 1);
            sums.iter_mut().zip(self.strips.strip(h)).enumerate().for_each(|(b, (sum, block))| {
                let count = end.saturating_sub(b * BLOCK).min(BLOCK);
                sum.copy_rows(0, block, 0, count);
            });
        }
        let last = self.pivots.last().map_or(0, |&pivot| pivot / BLOCK + 1);
        for low in (0..last.min(first + strips.len())).step_by(PANEL).rev() {
            run.check()?;
            for (h, sums) in (first..).zip(&mut *strips).filter(|(h, _)| *h >= low) {
                self.reduce_by(low..last.min(low + PANEL).min(h + 1), sums, &mut tiles);
            }
        }
        Ok(())
    }

    /// The number of rows whose pivots stand to the left of strip g.
    fn start(&self, g: usize) -> usize {
        self.pivots.partition_point(|&pivot| pivot < g * BLOCK)
    }

    /// Adds multiples of the rows with pivots in some strips, at most a panel of them, to all rows above.
    fn reduce_by(&self, panel: Range<usize>, sums: &mut [Block], tiles: &mut Tiles) {
        let top = self.start(panel.start);
        let mut pivots = [Block::ZERO; PANEL];
        for g in panel.clone().rev() {
            let (from, to) = (self.start(g), self.start(g + 1));
            let (rows, block) = (gather_rows(sums, from, to - from), &mut pivots[g - panel.start]);
            if to - from == BLOCK {
                *block = rows;
            } else {
                (from..to).enumerate().for_each(|(k, t)| block.set_row(self.pivots[t] % BLOCK, rows.row(k)));
            }
            let block = *block;
            add_to_rows(sums, &[self.strips.strip(g)], &[block], top..from, tiles);
        }
        let factors: Vec<&[Block]> = panel.clone().map(|g| self.strips.strip(g)).collect();
        add_to_rows(sums, &factors, &pivots[..panel.len()], 0..top, tiles);
    }

    /// Copies a row of the form over zeros, without what is left of the elimination before the strip of its pivot.
    fn read(&self, row: usize, out: &mut [u64]) {
        for (g, word) in out.iter_mut().enumerate().skip(self.pivots[row] / BLOCK) {
            *word = self.strips.strip(g)[row / BLOCK].row(row % BLOCK);
        }
    }
}

/// Adds the products of `factors` and the blocks of `right` to some rows.
pub(super) fn add_to_rows(
    sums: &mut [Block],
    factors: &[&[Block]],
    right: &[Block],
    rows: Range<usize>,
    tiles: &mut Tiles,
) {
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

/// So many strips of zeros, with room for so many rows.
pub(super) fn empty_strips(count: usize, rows: usize) -> Result<Vec<Vec<Block>>> {
    let mut strips = room(Some(count))?;
    for _ in 0..count {
        strips.push(zeros(Some(rows.div_ceil(BLOCK)))?);
    }
    Ok(strips)
}

/// The first rows of some strips as a matrix.
pub(super) fn rows_of(strips: &[Vec<Block>], rows: usize, columns: usize, run: Run<'_>) -> Result<BitMatrix> {
    BitMatrix::pack(rows, columns, run, |first, out| {
        for (g, strip) in strips.iter().enumerate() {
            // Tasks are blocks of rows.
            let lines = strip[first / BLOCK].to_rows();
            out.chunks_exact_mut(strips.len()).zip(lines).for_each(|(row, line)| row[g] = line);
        }
        Ok(())
    })
}
