//! The factors P L E of a matrix, read off the steps of its elimination.
//!
//! The rows of a strip end as coefficients of the pivot rows, which the step has reduced: an identity stands in their
//! pivot columns. So every row is known as a sum of reduced rows; those of the step itself by the inverse V of its
//! transformation. V is a permuted product L' U of triangles. Then U times the reduced rows is a part of E, since U
//! changes no first bit, and the coefficients times the inverse of U are a part of L.
//!
//! ```text
//! for each step: V = inverse of its transformation, a permutation of the rows of L' U
//! for each step and each strip to its right: rows of E = U (reduced rows)
//! for each step: columns of L below the pivot rows = coefficients U^-1, beside them V U^-1
//! permute the pivot rows of each step, so that V U^-1 becomes L'
//! ```

use super::eliminate::{Echelon, Step, eliminate, gather_rows, product, put_rows, swap_rows, wide_panel};
use super::forms::{add_to_rows, empty_strips, rows_of};
use super::matrix::BitMatrix;
use super::pivots::ones;
use super::strips::Strips;
use crate::error::Result;
use crate::memory::{collected, room};
use crate::run::Run;
use crate::simd::{BLOCK, Block, Tiles};

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

/// Factors a matrix into a permutation, a unit lower triangle and an echelon form. (Albrecht, Bard, Pernet 2011 describe
/// the decomposition.)
///
/// Cost: an elimination of all rows; a product of blocks for each step and strip, and for each step and block of rows.
///
/// # Examples
///
/// ```
/// use hdp_fast_core::gf2::{BitMatrix, ple};
/// use hdp_fast_core::run::Run;
/// use hdp_fast_core::simd::Isa;
///
/// let run = Run::alone(Isa::detect()?);
/// let matrix = BitMatrix::from_words(3, 3, vec![0b100, 0b110, 0b010])?;
/// let factors = ple(&matrix, run)?;
/// assert_eq!(factors.pivots, [1, 2]);
/// assert!(matrix.take_rows(&factors.rows, run)? == factors.lower.multiply(&factors.echelon, run)?);
/// # Ok::<(), hdp_fast_core::Error>(())
/// ```
pub fn ple(matrix: &BitMatrix, run: Run<'_>) -> Result<Ple> {
    let rows = matrix.rows();
    // Whole strips, whose padding holds no pivots: the coefficients of a divided one do not stay.
    let columns = matrix.words() * BLOCK;
    let Echelon { mut strips, pivots, steps } = eliminate(matrix.strips(0, rows, run)?, columns, run)?;
    let mut parts = room(Some(steps.len()))?;
    parts.extend(steps.iter().map(Triangles::of));
    let (mut order, mut inner) = (collected(0..rows)?, collected(0..rows)?);
    for (step, part) in steps.iter().zip(&parts) {
        step.swaps.iter().for_each(|&(one, other)| order.swap(one, other));
        part.swaps.iter().for_each(|&(one, other)| inner.swap(step.top + one, step.top + other));
    }
    let echelon = multiply_steps(&strips, &steps, &parts, pivots.len(), run)?;
    let echelon = rows_of(&echelon, pivots.len(), matrix.columns(), run)?;
    exchange(&mut strips, &steps, run)?;
    let lower = coefficients(&strips, &steps, &parts, pivots.len(), run)?;
    let lower = rows_of(&lower, rows, pivots.len(), run)?.take_rows(&inner, run)?;
    Ok(Ple { rows: collected(inner.iter().map(|&row| order[row]))?, pivots, lower, echelon })
}

/// The pivot rows of a step as sums of its reduced rows: a permuted product of triangles.
struct Triangles {
    /// Exchanges that bring the pivot rows into the order of the lower triangle.
    swaps: Vec<(usize, usize)>,
    /// The lower triangle, whose rows stand in the order of the pivot rows.
    lower: [u64; BLOCK],
    upper: Block,
    /// By pivot column of the strip the rows of the inverse of the upper triangle.
    inverse: [u64; BLOCK],
}

impl Triangles {
    fn of(step: &Step) -> Triangles {
        // Beyond the pivots the identity goes on, so that all is regular.
        let mut rows: [u64; BLOCK] = std::array::from_fn(|i| 1 << i);
        rows.iter_mut().zip(ones(step.columns)).for_each(|(row, q)| *row = step.transform(q));
        let mut rows = invert(rows);
        let mut swaps = Vec::new();
        let mut places: [usize; BLOCK] = std::array::from_fn(|i| i);
        for j in 0..BLOCK {
            let other = first_with(&rows, j);
            if other != j {
                rows.swap(j, other);
                places.swap(j, other);
                swaps.push((j, other));
            }
            let right = rows[j] & (u64::MAX << j << 1);
            for row in &mut rows[j + 1..] {
                *row ^= right & (*row >> j & 1).wrapping_neg();
            }
        }
        let mut lower = [0; BLOCK];
        let mut upper = rows;
        for (i, row) in rows.iter().enumerate() {
            lower[places[i]] = row & !(u64::MAX << i) | 1 << i;
            upper[i] = row & u64::MAX << i;
        }
        let regular = invert(upper);
        let mut inverse = [0; BLOCK];
        ones(step.columns).zip(regular).for_each(|(q, row)| inverse[q] = row);
        Triangles { swaps, lower, upper: Block::from_rows(&upper), inverse }
    }
}

/// The first row from row j on that has a bit in column j: there is one in a regular block that is reduced so far.
fn first_with(rows: &[u64; BLOCK], j: usize) -> usize {
    (j..BLOCK).find(|&i| rows[i] >> j & 1 == 1).unwrap_or(j)
}

/// The inverse of a regular block.
fn invert(mut rows: [u64; BLOCK]) -> [u64; BLOCK] {
    let mut inverse: [u64; BLOCK] = std::array::from_fn(|i| 1 << i);
    for j in 0..BLOCK {
        let other = first_with(&rows, j);
        rows.swap(j, other);
        inverse.swap(j, other);
        let (pivot, sum) = (rows[j], inverse[j]);
        for i in (0..BLOCK).filter(|&i| i != j) {
            let mask = (rows[i] >> j & 1).wrapping_neg();
            rows[i] ^= pivot & mask;
            inverse[i] ^= sum & mask;
        }
    }
    inverse
}

/// The strips of E: the reduced rows of each step, times its upper triangle.
fn multiply_steps(
    strips: &Strips,
    steps: &[Step],
    parts: &[Triangles],
    rank: usize,
    run: Run<'_>,
) -> Result<Vec<Vec<Block>>> {
    let mut made = empty_strips(strips.len(), rank)?;
    run.try_for_each_chunk(&mut made, 1, |g, out| {
        let mut tiles = Tiles::new(run.isa);
        for (step, part) in steps.iter().zip(parts).take(g + 1) {
            let rows = gather_rows(strips.strip(g), step.top, step.count());
            put_rows(&mut out[0], step.top, step.count(), &product(&part.upper, &rows, &mut tiles));
        }
        Ok(())
    })?;
    Ok(made)
}

/// Lets the coefficients take part in the exchanges of rows of all later wide panels.
fn exchange(strips: &mut Strips, steps: &[Step], run: Run<'_>) -> Result<()> {
    let (height, count, wide) = (strips.height(), steps.len(), wide_panel(strips));
    run.try_for_each_chunk(strips.split_mut(0, count, count).0, height, |s, strip| {
        let later = steps.iter().skip((s / wide + 1) * wide);
        later.for_each(|step| swap_rows(strip, &step.swaps));
        Ok(())
    })
}

/// The strips of L, whose pivot rows stand in the order in which the steps left them.
fn coefficients(
    strips: &Strips,
    steps: &[Step],
    parts: &[Triangles],
    rank: usize,
    run: Run<'_>,
) -> Result<Vec<Vec<Block>>> {
    let mut made = empty_strips(rank.div_ceil(BLOCK), strips.rows())?;
    run.try_for_each_chunk(&mut made, 1, |h, out| {
        let (from, to) = (h * BLOCK, (h + 1) * BLOCK);
        let mut tiles = Tiles::new(run.isa);
        let first = steps.partition_point(|step| step.below() <= from);
        for (s, step) in steps.iter().enumerate().skip(first).take_while(|(_, step)| step.top < to) {
            // The columns of a step begin with the number of its first pivot row.
            let place = |row: u64| match step.top.checked_sub(from) {
                Some(right) => row << right,
                None => row >> (from - step.top),
            };
            let factor = Block::from_rows(&parts[s].inverse.map(place));
            add_to_rows(&mut out[0], &[strips.strip(s)], &[factor], step.below()..strips.rows(), &mut tiles);
            for (row, &bits) in (step.top..step.below()).zip(&parts[s].lower) {
                let block = &mut out[0][row / BLOCK];
                block.set_row(row % BLOCK, block.row(row % BLOCK) | place(bits));
            }
        }
        Ok(())
    })?;
    Ok(made)
}
