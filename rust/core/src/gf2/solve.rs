//! Linear systems with many more equations than unknowns.
//!
//! Only as many rows as there are unknowns are eliminated. Every row is then verified deterministically against the
//! null space of what was eliminated; rows outside it are folded into a few random combinations, which join the
//! elimination. Randomness can cost another round, never a wrong answer: privacy rests on the exact solution space.

use super::eliminate::eliminate;
use super::matrix::{BitMatrix, inner_product};
use super::space::{Solution, vector_bits};
use super::strips::Strips;
use crate::error::{Error, Result};
use crate::memory::{collected, room, zeros};
use crate::noise::Rng;
use crate::run::Run;
use crate::simd::{BLOCK, Block, Tiles};

/// Rows beyond the number of unknowns that make a random system regular except with probability 2^-64.
pub(super) const SLACK: usize = 64;

/// Rows that are verified together.
const ROWS_PER_CHECK: usize = 2048;

/// One of this many rows is looked at to see whether any are outside the span at all.
const SAMPLING: usize = 8;

/// Null vectors that are verified against in one pass over the rows.
const VECTORS_PER_PASS: usize = 16 * BLOCK;

/// Strips, and blocks of each, that are multiplied together in a verification.
const STRIPS_PER_PRODUCT: usize = 4;
const BLOCKS_PER_PRODUCT: usize = 8;

/// A system of linear equations: for each row of a matrix, or for some of them, `<row, v> = rhs` or `<row, v> + v_last
/// = rhs`.
#[derive(Clone, Copy)]
pub struct System<'a> {
    /// The coefficients.
    pub matrix: &'a BitMatrix,
    /// The indices of the rows that take part; `None` stands for all rows.
    pub rows: Option<&'a [u32]>,
    /// Whether a coefficient of 1 is appended to every row, for one more unknown (an affine system).
    pub ones: bool,
    /// The packed right-hand sides of all rows of the matrix; `None` stands for zeros.
    pub rhs: Option<&'a [u64]>,
}

impl System<'_> {
    pub(super) fn len(&self) -> usize {
        self.rows.map_or(self.matrix.rows(), <[u32]>::len)
    }

    /// Number of unknowns; the right-hand side stands in the column after the last of them.
    fn unknowns(&self) -> usize {
        self.matrix.columns() + usize::from(self.ones)
    }

    /// Refuses more rows than indices of 32 bits can tell apart, and another number of unknowns.
    pub(super) fn check(&self, unknowns: usize) -> Result<()> {
        if u32::try_from(self.matrix.rows()).is_err() {
            return Err(Error::parameter("m", self.matrix.rows(), "a system may have at most 2^32 - 1 rows"));
        }
        if self.unknowns() == unknowns {
            return Ok(());
        }
        Err(Error::Shape(format!("{unknowns} and {} unknowns do not fit together", self.unknowns())))
    }

    fn words(&self) -> usize {
        self.unknowns() / BLOCK + 1
    }

    fn rhs(&self, row: usize) -> u64 {
        self.rhs.map_or(0, |bits| bits[row / 64] >> (row % 64) & 1)
    }

    /// Copies words `first..` of equation i, right-hand side included, over zeros in `out`.
    fn read(&self, i: usize, first: usize, out: &mut [u64]) {
        let row = self.row(i);
        let words = self.matrix.row(row);
        let present = words.len().saturating_sub(first).min(out.len());
        out[..present].copy_from_slice(&words[words.len().min(first)..][..present]);
        let mut set = |column: usize, bit: u64| {
            if let Some(word) = (column / 64).checked_sub(first).and_then(|w| out.get_mut(w)) {
                *word |= bit << (column % 64);
            }
        };
        if self.ones {
            set(self.matrix.columns(), 1);
        }
        set(self.unknowns(), self.rhs(row));
    }

    /// The right-hand side of equation i.
    pub(super) fn value(&self, i: usize) -> u64 {
        self.rhs(self.row(i))
    }

    /// Copies the coefficients of equation i over zeros in `out`.
    pub(super) fn read_coefficients(&self, i: usize, out: &mut [u64]) {
        let words = self.matrix.row(self.row(i));
        out[..words.len()].copy_from_slice(words);
        if self.ones {
            out[self.matrix.columns() / 64] |= 1 << (self.matrix.columns() % 64);
        }
    }

    /// Equations `from..to` as a matrix of their coefficients, and packed right-hand sides.
    pub(super) fn copy(&self, from: usize, to: usize, run: Run<'_>) -> Result<(BitMatrix, Vec<u64>)> {
        let words = self.unknowns().div_ceil(64);
        let matrix = BitMatrix::pack(to - from, self.unknowns(), run, |first, out| {
            let rows = (from + first..).zip(out.chunks_exact_mut(words));
            rows.for_each(|(i, row)| self.read_coefficients(i, row));
            Ok(())
        })?;
        let mut rhs: Vec<u64> = zeros(Some((to - from).div_ceil(64)))?;
        (from..to).zip(0..).for_each(|(i, at)| rhs[at / 64] |= self.value(i) << (at % 64));
        Ok((matrix, rhs))
    }

    /// The rows of the matrix that hold the equations from `from` on; `None` stands for those of all.
    pub(super) fn rows_from(&self, from: usize) -> Result<Option<Vec<u32>>> {
        if from == 0 {
            return Ok(None);
        }
        collected((from..self.len()).map(|i| self.row(i) as u32)).map(Some)
    }

    fn gather(&self, from: usize, count: usize, run: Run<'_>) -> Result<Strips> {
        Strips::gather(count, self.words(), run, |i, first, out| self.read(from + i, first, out))
    }

    /// The row of the matrix that holds equation i.
    fn row(&self, i: usize) -> usize {
        self.rows.map_or(i, |rows| rows[i] as usize)
    }

    /// The rows of at most `most` equations, and those of all others. The former are spread over all: neighbors in
    /// real data are alike.
    pub(super) fn split(&self, most: usize) -> Result<(Vec<u32>, Vec<u32>)> {
        let total = self.len() as u64;
        self.check(self.unknowns())?;
        let most = total.min(most as u64);
        let chosen = |i: u64| most * (i + 1) / total > most * i / total;
        let (mut first, mut rest) = (room(Some(most as usize))?, room(Some((total - most) as usize))?);
        for i in 0..total {
            let part = if chosen(i) { &mut first } else { &mut rest };
            part.push(self.row(i as usize) as u32);
        }
        Ok((first, rest))
    }
}

/// The rank of a matrix over GF(2). Cost: as [`solve`].
pub fn rank(matrix: &BitMatrix, run: Run<'_>) -> Result<usize> {
    let system = System { matrix, rows: None, ones: false, rhs: None };
    Ok(solve(&system, run)?.rank())
}

/// The exact solution space of a system.
///
/// A system without a solution takes the same path as any other, and its rank is exact, too: if it ended early, the
/// running time would reveal that there is none.
///
/// Cost for m equations in d unknowns: an elimination of min(m, d + 64) rows, a pass over all m rows, and m * d *
/// nullity bit operations; another elimination for each round in which rows outside the span of the eliminated ones
/// turn up.
pub fn solve(system: &System<'_>, run: Run<'_>) -> Result<Solution> {
    let unknowns = system.unknowns();
    let (first, rest) = system.split(unknowns + SLACK)?;
    let rest = System { rows: Some(&rest), ..*system };
    let first = System { rows: Some(&first), ..*system };
    let mut echelon = eliminate(first.gather(0, first.len(), run)?, unknowns, run)?;
    let mut rng = Rng::for_speed_only();
    let mut consistent = true;
    loop {
        // Once 0 = 1 follows, it follows for good; further rounds go on from the rows of the form, which do not say so.
        consistent &= !echelon.leftover(unknowns);
        let solution = Solution { unknowns, consistent, echelon };
        if rest.len() == 0 {
            return Ok(solution);
        }
        let outside = find_outside(&rest, &solution, &mut rng, run)?;
        if outside.is_empty() {
            return Ok(solution);
        }
        let combinations = fold(&rest, &outside, solution.nullity() + 1 + SLACK, &mut rng)?;
        echelon = eliminate(solution.echelon.join(&combinations, system.words(), run)?, unknowns, run)?;
    }
}

/// Equations that do not follow from the eliminated ones: none only if every one follows.
pub(super) fn find_outside(system: &System<'_>, solution: &Solution, rng: &mut Rng, run: Run<'_>) -> Result<Vec<u32>> {
    let (unknowns, consistent) = (solution.unknowns, solution.consistent);
    if solution.nullity() == 0 {
        // Without a solution every equation follows; the pass is made all the same, for its absence would take less time.
        let point = match solution.particular(run)? {
            Some(point) => super::parity_bits(&point)?,
            None => zeros(Some(unknowns.div_ceil(BLOCK)))?,
        };
        let outside = violated(system, &point, 1, run)?;
        return Ok(if consistent { outside } else { Vec::new() });
    }
    if solution.nullity() >= BLOCK {
        // If some rows are outside, one random null vector rejects half of them, and 64 of them find nearly all.
        let few = solution.echelon.random_null_vectors(unknowns, consistent, rng, run)?;
        let first = collected((0..unknowns + 1).map(|column| (vector_bits(&few, column) & 1) as u8))?;
        let sample = collected((0..system.len()).step_by(SAMPLING).map(|i| system.row(i) as u32))?;
        let sample = System { rows: Some(&sample), ..*system };
        let point = super::parity_bits(&first[..unknowns])?;
        if !violated(&sample, &point, u64::from(first[unknowns]), run)?.is_empty() {
            return not_orthogonal(system, &[few], run);
        }
    }
    // A limited number at a time: how much memory is used must not depend on private rows.
    for free in solution.echelon.free(unknowns, consistent)?.chunks(VECTORS_PER_PASS) {
        let violated = not_orthogonal(system, &solution.echelon.null_vectors(free, run)?, run)?;
        if !violated.is_empty() {
            return Ok(violated);
        }
    }
    Ok(Vec::new())
}

/// Equations that a packed point does not fulfil, their right-hand sides multiplied by `scale`.
pub(super) fn violated(system: &System<'_>, point: &[u64], scale: u64, run: Run<'_>) -> Result<Vec<u32>> {
    let last = system.matrix.columns();
    // Bits beyond the last column are zero in the matrix.
    let constant = if system.ones { (point[last / BLOCK] >> (last % BLOCK) & 1) as u8 } else { 0 };
    collect_rows(system.len(), run, |from, to, hits| {
        for i in from..to {
            let row = system.row(i);
            let left = inner_product(system.matrix.row(row), point) ^ constant;
            if u64::from(left) != system.rhs(row) & scale {
                hits.push(i as u32);
            }
        }
        Ok(())
    })
}

/// Equations, right-hand side included, that are not orthogonal to all of the vectors.
fn not_orthogonal(system: &System<'_>, batches: &[Vec<Block>], run: Run<'_>) -> Result<Vec<u32>> {
    collect_rows(system.len(), run, |from, to, hits| {
        let strips = system.gather(from, to - from, run.sequential())?;
        let height = strips.height();
        let mut tiles: Vec<Tiles> = batches.iter().map(|_| Tiles::new(run.isa)).collect();
        let mut products: Vec<Block> = zeros(height.checked_mul(batches.len()))?;
        for start in (0..strips.len()).step_by(STRIPS_PER_PRODUCT) {
            let group = start..strips.len().min(start + STRIPS_PER_PRODUCT);
            tiles.iter_mut().zip(batches).for_each(|(tiles, vectors)| tiles.load(&vectors[group.clone()]));
            run.check()?;
            // So few blocks at a time that they stay in L1 while all vectors pass.
            for top in (0..height).step_by(BLOCKS_PER_PRODUCT) {
                let part = top..height.min(top + BLOCKS_PER_PRODUCT);
                let factors: Vec<&[Block]> = group.clone().map(|g| &strips.strip(g)[part.clone()]).collect();
                for (tiles, products) in tiles.iter().zip(products.chunks_exact_mut(height)) {
                    tiles.add_product(&mut products[part.clone()], &factors);
                }
            }
        }
        for i in 0..height {
            let mut seen = [0; BLOCK];
            for product in products.iter().skip(i).step_by(height).filter(|product| !product.is_zero()) {
                seen.iter_mut().zip(product.to_rows()).for_each(|(seen, bits)| *seen |= bits);
            }
            let rows = (from + BLOCK * i..to).zip(seen).filter(|&(_, bits)| bits != 0);
            hits.extend(rows.map(|(row, _)| row as u32));
        }
        Ok(())
    })
}

/// Calls `find(from, to, found)` for runs of rows, in parallel, and returns what was found in ascending order.
fn collect_rows(
    rows: usize,
    run: Run<'_>,
    find: impl Fn(usize, usize, &mut Vec<u32>) -> Result<()> + Sync + Send,
) -> Result<Vec<u32>> {
    // One slot a task: what it finds needs no lock, and is in order already. It has room for every row beforehand: how
    // much memory is used must not depend on private rows.
    let mut hits: Vec<Vec<u32>> = collected((0..rows.div_ceil(ROWS_PER_CHECK)).map(|_| Vec::new()))?;
    run.try_for_each_chunk(&mut hits, 1, |task, hits| {
        let from = task * ROWS_PER_CHECK;
        let to = rows.min(from + ROWS_PER_CHECK);
        hits[0] = room(Some(to - from))?;
        find(from, to, &mut hits[0])
    })?;
    let mut all = room(Some(hits.iter().map(Vec::len).sum()))?;
    hits.iter().for_each(|hits| all.extend_from_slice(hits));
    Ok(all)
}

/// At most `most` sums of the given equations, each equation in exactly one sum, chosen at random.
fn fold(system: &System<'_>, equations: &[u32], most: usize, rng: &mut Rng) -> Result<Vec<u64>> {
    let words = system.words();
    let count = equations.len().min(most);
    let mut sums: Vec<u64> = zeros(count.checked_mul(words))?;
    let mut equation = zeros(Some(words))?;
    for (position, &i) in equations.iter().enumerate() {
        let bucket = if equations.len() <= most { position } else { (rng.next_u64() % count as u64) as usize };
        equation.fill(0);
        system.read(i as usize, 0, &mut equation);
        sums[bucket * words..][..words].iter_mut().zip(&equation).for_each(|(sum, word)| *sum ^= word);
    }
    Ok(sums)
}
