//! The span of equations, in the one form that it has: what a fold leaves of them, for spans of parts join in any order.
//!
//! A form has an identity at its pivots, which is not stored. So a space of full rank is a vector, and the largest ones
//! are those of half the rank. Rows are reduced by a product: with the null vectors of the form as columns, each of which
//! has one free unknown, a row times them is what is left of it at the free unknowns. Only that is eliminated, and
//! reduces the form in turn by another product. No form is ever eliminated a second time.

use super::matrix::{BitMatrix, inner_product, packed, parity_bits};
use super::pivots::ones;
use super::solve::{SLACK, System, solve};
use super::space::{Solution, free_columns, vector_bits};
use super::strips::Strips;
use crate::error::{Error, Result};
use crate::memory::{collected, room, zeros};
use crate::noise::Rng;
use crate::run::Run;
use crate::simd::BLOCK;

/// How the bytes of a space begin, before the version.
const MAGIC: &[u8] = b"hdp_fast.row_space\n";
const VERSION: u32 = 1;
/// The version, the number of unknowns, and whether there is a solution.
const HEADER: usize = MAGIC.len() + 4 + 8 + 1;

/// Null vectors that are made at a time: how much memory that takes must not depend on private rows.
const VECTORS_AT_ONCE: usize = 16 * BLOCK;

/// All equations that follow from those of a [`System`], as their reduced row echelon form. It is the only one: spaces
/// are equal where their forms are, bit for bit, whatever the equations were, in whatever parts and order.
#[derive(Clone, PartialEq, Eq)]
pub struct RowSpace {
    unknowns: usize,
    /// The unknown with which each row begins, ascending; no other row has it.
    pivots: Vec<usize>,
    /// The coefficients of the other unknowns, which are free.
    coefficients: BitMatrix,
    /// The packed right-hand sides: the solution at the pivots where all free unknowns are 0. Zeros without a solution.
    rhs: Vec<u64>,
    consistent: bool,
}

impl RowSpace {
    /// The space of no equation.
    pub fn new(unknowns: usize) -> Result<RowSpace> {
        let coefficients = BitMatrix::zeros(0, unknowns)?;
        Ok(RowSpace { unknowns, pivots: Vec::new(), coefficients, rhs: Vec::new(), consistent: true })
    }

    /// The space of a form, as [`RowSpace::basis`] returns it.
    pub fn from_basis(basis: &BitMatrix, run: Run<'_>) -> Result<RowSpace> {
        let malformed = || Error::Parameter("basis is none, but it must be a reduced row echelon form".into());
        let unknowns = basis.columns().checked_sub(1).ok_or_else(malformed)?;
        let mut pivots: Vec<usize> = room(Some(basis.rows()))?;
        let mut taken: Vec<u64> = zeros(Some(basis.words()))?;
        for t in 0..basis.rows() {
            let pivot = first_one(basis.row(t)).ok_or_else(malformed)?;
            if pivots.last().is_some_and(|&last| last >= pivot) {
                return Err(malformed());
            }
            pivots.push(pivot);
            taken[pivot / BLOCK] |= 1 << (pivot % BLOCK);
        }
        let met = |t| basis.row(t).iter().zip(&taken).map(|(word, taken)| (word & taken).count_ones()).sum::<u32>();
        if !(0..basis.rows()).all(|t| met(t) == 1) {
            return Err(malformed());
        }
        let consistent = pivots.pop_if(|&mut last| last == unknowns).is_none();
        let rank = pivots.len();
        let free = free_of(&pivots, unknowns)?;
        let coefficients = BitMatrix::pack(rank, free.len(), run, |first, out| {
            for (t, row) in (first..).zip(out.chunks_exact_mut(free.len().div_ceil(BLOCK))) {
                for (j, &column) in free.iter().enumerate() {
                    row[j / BLOCK] |= u64::from(basis.bit(t, column)) << (j % BLOCK);
                }
            }
            Ok(())
        })?;
        let rhs = packed((0..rank).map(|t| basis.bit(t, unknowns)))?;
        Ok(RowSpace { unknowns, pivots, coefficients, rhs, consistent })
    }

    /// The reduced row echelon form: a row for each pivot, with a column for each unknown and the right-hand side in the
    /// last one. Where 0 = 1 follows, that is the last row.
    ///
    /// Cost: its size, which is (d + 1)^2 bits at most for d unknowns.
    pub fn basis(&self, run: Run<'_>) -> Result<BitMatrix> {
        let (rows, free) = (self.rank() + usize::from(!self.consistent), self.free()?);
        BitMatrix::pack(rows, self.unknowns + 1, run, |first, out| {
            for (t, row) in (first..).zip(out.chunks_exact_mut(self.unknowns / BLOCK + 1)) {
                let mut set = |column: usize| row[column / BLOCK] |= 1 << (column % BLOCK);
                if t == self.rank() {
                    set(self.unknowns);
                    continue;
                }
                set(self.pivots[t]);
                for (w, &word) in self.coefficients.row(t).iter().enumerate() {
                    ones(word).for_each(|q| set(free[w * BLOCK + q]));
                }
                if bit(&self.rhs, t) == 1 {
                    set(self.unknowns);
                }
            }
            Ok(())
        })
    }

    /// The number of unknowns.
    pub fn unknowns(&self) -> usize {
        self.unknowns
    }

    /// Whether the equations have a solution: 0 = 1 does not follow from them.
    pub fn consistent(&self) -> bool {
        self.consistent
    }

    /// The rank of the coefficients.
    pub fn rank(&self) -> usize {
        self.pivots.len()
    }

    /// The dimension of the null space of the coefficients.
    pub fn nullity(&self) -> usize {
        self.unknowns - self.rank()
    }

    /// For each equation of a system a byte of 1 where it follows from these, and of 0 where it does not.
    ///
    /// Cost: d (1 + nullity) bit operations an equation.
    pub fn contains(&self, system: &System<'_>, run: Run<'_>) -> Result<Vec<u8>> {
        system.check(self.unknowns)?;
        let mut follows = room(Some(system.len()))?;
        // As many at a time as an elimination takes.
        for from in (0..system.len()).step_by(self.unknowns + SLACK) {
            let (matrix, rhs) = system.copy(from, system.len().min(from + self.unknowns + SLACK), run)?;
            let (left, values) = self.reduce(&matrix, &rhs, run)?;
            let is_zero = |i| bit(&values, i) == 0 && left.row(i).iter().all(|&word| word == 0);
            follows.extend((0..matrix.rows()).map(|i| u8::from(is_zero(i))));
        }
        Ok(follows)
    }

    /// The span of the equations of both.
    ///
    /// Cost: two products of the coefficients at the free unknowns, and an elimination of what is left of the smaller
    /// form: nothing to speak of where one of both has full rank.
    pub fn join(&self, other: &RowSpace, run: Run<'_>) -> Result<RowSpace> {
        if self.unknowns != other.unknowns {
            let text = format!("{} and {} unknowns do not fit together", self.unknowns, other.unknowns);
            return Err(Error::Shape(text));
        }
        let (base, other) = if other.rank() > self.rank() { (other, self) } else { (self, other) };
        let free = other.free()?;
        let product = other.coefficients.multiply(&base.null_rows(&free, run)?, run)?;
        let left = base.null_rows(&other.pivots, run)?.sum(&product, run)?;
        let point = base.point()?;
        let at_free = packed(free.iter().map(|&column| bit(&point, column) as u8))?;
        let product = other.coefficients.dot(&at_free, run)?;
        let at_pivots = other.pivots.iter().map(|&column| bit(&point, column) as u8);
        let values = packed(at_pivots.zip(&product).enumerate().map(|(t, (a, b))| a ^ b ^ bit(&other.rhs, t) as u8))?;
        let mut joined = base.clone().extend_by(&left, &values, run)?;
        if !other.consistent {
            joined.contradict();
        }
        Ok(joined)
    }

    /// All solutions of the equations.
    ///
    /// Cost: (d + 1)^2 bits are copied twice, at most.
    pub fn solution(&self, run: Run<'_>) -> Result<Solution> {
        let basis = self.basis(run)?;
        let strips = Strips::gather(self.rank(), basis.words(), run, |t, first, out| {
            out.copy_from_slice(&basis.row(t)[first..][..out.len()]);
        })?;
        Ok(Solution::from_form(self.unknowns, self.consistent, strips, self.pivots.clone()))
    }

    /// A solution drawn uniformly from all of them, one byte of 0 or 1 for each unknown; `None` where there is none.
    ///
    /// Cost: a draw for each free unknown, and a pass over the form.
    pub fn sample(&self, rng: &mut Rng) -> Result<Option<Vec<u8>>> {
        if !self.consistent {
            return Ok(None);
        }
        let mut solution: Vec<u8> = zeros(Some(self.unknowns))?;
        let drawn = collected((0..self.nullity()).map(|_| (rng.next_u64() & 1) as u8))?;
        self.free()?.iter().zip(&drawn).for_each(|(&column, &bit)| solution[column] = bit);
        let drawn = parity_bits(&drawn)?;
        for (t, &pivot) in self.pivots.iter().enumerate() {
            solution[pivot] = inner_product(self.coefficients.row(t), &drawn) ^ bit(&self.rhs, t) as u8;
        }
        Ok(Some(solution))
    }

    /// The space as bytes, of which there is one form: a header, a bit for each unknown that is a pivot, the coefficients
    /// row by row and the right-hand sides, each filled up to whole bytes. For d unknowns and rank r these are about d / 8
    /// + r (d - r + 1) / 8 bytes.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let (unknowns, width) = (self.unknowns.div_ceil(8), self.nullity().div_ceil(8));
        let length = self.rank().checked_mul(width);
        let mut bytes = room(length.map(|length| HEADER + unknowns + length + self.rank().div_ceil(8)))?;
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        bytes.extend_from_slice(&(self.unknowns as u64).to_le_bytes());
        bytes.push(u8::from(self.consistent));
        let mut taken: Vec<u64> = zeros(Some(self.unknowns.div_ceil(BLOCK)))?;
        self.pivots.iter().for_each(|pivot| taken[pivot / BLOCK] |= 1 << (pivot % BLOCK));
        bytes.extend(first_bytes(&taken, unknowns));
        (0..self.rank()).for_each(|t| bytes.extend(first_bytes(self.coefficients.row(t), width)));
        bytes.extend(first_bytes(&self.rhs, self.rank().div_ceil(8)));
        Ok(bytes)
    }

    /// The space of bytes that [`RowSpace::to_bytes`] made; anything else is refused.
    pub fn from_bytes(bytes: &[u8]) -> Result<RowSpace> {
        let malformed = || Error::Parameter("content is no whole space, but it must be what to_bytes wrote".into());
        let rest = bytes.strip_prefix(MAGIC).ok_or_else(malformed)?;
        let (version, rest) = rest.split_first_chunk().ok_or_else(malformed)?;
        let version = u32::from_le_bytes(*version);
        if version != VERSION {
            return Err(Error::parameter("version", version, "spaces of version 1 are read"));
        }
        let (unknowns, rest) = rest.split_first_chunk().ok_or_else(malformed)?;
        let unknowns = usize::try_from(u64::from_le_bytes(*unknowns)).map_err(|_| malformed())?;
        let (&consistent, rest) = rest.split_first().ok_or_else(malformed)?;
        let (taken, rest) = rest.split_at_checked(unknowns.div_ceil(8)).ok_or_else(malformed)?;
        let rank = taken.iter().map(|byte| byte.count_ones() as usize).sum::<usize>();
        if consistent > 1 || !pads_with_zeros(taken, unknowns) {
            return Err(malformed());
        }
        let width = (unknowns - rank).div_ceil(8);
        let length = rank.checked_mul(width).ok_or_else(malformed)?;
        let (rows, rhs) = rest.split_at_checked(length).ok_or_else(malformed)?;
        if rhs.len() != rank.div_ceil(8) || !pads_with_zeros(rhs, rank) {
            return Err(malformed());
        }
        let mut pivots = room(Some(rank))?;
        pivots.extend((0..unknowns).filter(|column| taken[column / 8] >> (column % 8) & 1 == 1));
        let words = (unknowns - rank).div_ceil(BLOCK);
        let mut data: Vec<u64> = zeros(rank.checked_mul(words))?;
        if words > 0 {
            data.chunks_exact_mut(words).zip(rows.chunks_exact(width)).for_each(|(row, bytes)| fill(row, bytes));
        }
        let mut values: Vec<u64> = zeros(Some(rank.div_ceil(BLOCK)))?;
        fill(&mut values, rhs);
        let coefficients = BitMatrix::from_words(rank, unknowns - rank, data)?;
        let space = RowSpace { unknowns, pivots, coefficients, rhs: values, consistent: consistent == 1 };
        // Bits that pad, and those before a pivot, are zeros. So there is no second way to write a space.
        let begins = |t: usize| first_one(space.coefficients.row(t)).is_none_or(|j| j >= space.pivots[t] - t);
        let sides = space.consistent || space.rhs.iter().all(|&word| word == 0);
        if sides && (0..rank).all(begins) && space.to_bytes()? == bytes { Ok(space) } else { Err(malformed()) }
    }

    /// The span of these equations and of others: what is left of those at the free unknowns is eliminated.
    pub(super) fn extend(self, matrix: &BitMatrix, rhs: &[u64], run: Run<'_>) -> Result<RowSpace> {
        if self.rank() == 0 {
            return self.extend_by(matrix, rhs, run);
        }
        let (left, values) = self.reduce(matrix, rhs, run)?;
        self.extend_by(&left, &values, run)
    }

    /// The span of these equations and of others in the free unknowns alone.
    fn extend_by(self, left: &BitMatrix, values: &[u64], run: Run<'_>) -> Result<RowSpace> {
        let system = System { matrix: left, rows: None, ones: false, rhs: Some(values) };
        let further = solve(&system, run)?.row_space(run)?;
        let consistent = self.consistent && further.consistent;
        let mut joined = if further.rank() == 0 { self } else { self.compose(&further, run)? };
        if !consistent {
            joined.contradict();
        }
        Ok(joined)
    }

    /// The rows of this form, reduced by a form in the free unknowns, and those of that one.
    fn compose(self, further: &RowSpace, run: Run<'_>) -> Result<RowSpace> {
        let (reduced, values) = further.reduce(&self.coefficients, &self.rhs, run)?;
        let free = self.free()?;
        let (rank, words) = (self.rank() + further.rank(), reduced.words());
        let mut pivots: Vec<usize> = room(Some(rank))?;
        let mut data: Vec<u64> = room(rank.checked_mul(words))?;
        let mut sides: Vec<u8> = room(Some(rank))?;
        let (mut ours, mut theirs) = (0, 0);
        while pivots.len() < rank {
            let new = further.pivots.get(theirs).map(|&j| free[j]);
            let (pivot, row, side) = match self.pivots.get(ours).filter(|&&old| new.is_none_or(|new| old < new)) {
                Some(&old) => (old, reduced.row(ours), bit(&values, ours)),
                None => (new.unwrap_or(self.unknowns), further.coefficients.row(theirs), bit(&further.rhs, theirs)),
            };
            if Some(pivot) == new {
                theirs += 1
            } else {
                ours += 1
            }
            pivots.push(pivot);
            data.extend_from_slice(row);
            sides.push(side as u8);
        }
        let coefficients = BitMatrix::from_words(rank, self.unknowns - rank, data)?;
        Ok(RowSpace { unknowns: self.unknowns, pivots, coefficients, rhs: parity_bits(&sides)?, ..self })
    }

    /// 0 = 1 follows, and with it every right-hand side.
    pub(super) fn contradict(&mut self) {
        self.consistent = false;
        self.rhs.fill(0);
    }

    /// The packed right-hand sides of the form: the only solution where the rank is full; zeros without a solution.
    pub(super) fn at_pivots(&self) -> &[u64] {
        &self.rhs
    }

    /// What is left of rows at the free unknowns, and of their right-hand sides; zeros of those that follow.
    fn reduce(&self, matrix: &BitMatrix, rhs: &[u64], run: Run<'_>) -> Result<(BitMatrix, Vec<u64>)> {
        let left = if self.nullity() == 0 {
            BitMatrix::zeros(matrix.rows(), 0)?
        } else {
            let all = collected(0..self.unknowns)?;
            matrix.multiply(&self.null_rows(&all, run)?, run)?
        };
        if !self.consistent {
            return Ok((left, zeros(Some(matrix.rows().div_ceil(BLOCK)))?));
        }
        let product = matrix.dot(&self.point()?, run)?;
        let values = packed(product.iter().enumerate().map(|(i, &value)| value ^ bit(rhs, i) as u8))?;
        Ok((left, values))
    }

    /// The given coordinates of the null vectors, each of which has one of the free unknowns: a row for each coordinate.
    fn null_rows(&self, columns: &[usize], run: Run<'_>) -> Result<BitMatrix> {
        let words = self.nullity().div_ceil(BLOCK);
        BitMatrix::pack(columns.len(), self.nullity(), run, |first, out| {
            for (row, column) in out.chunks_exact_mut(words).zip(&columns[first..]) {
                match self.pivots.binary_search(column) {
                    Ok(t) => row.copy_from_slice(self.coefficients.row(t)),
                    Err(before) => row[(column - before) / BLOCK] |= 1 << ((column - before) % BLOCK),
                }
            }
            Ok(())
        })
    }

    /// The solution whose free unknowns are zeros, packed.
    fn point(&self) -> Result<Vec<u64>> {
        let mut point: Vec<u64> = zeros(Some(self.unknowns.div_ceil(BLOCK)))?;
        for (t, pivot) in self.pivots.iter().enumerate() {
            point[pivot / BLOCK] |= bit(&self.rhs, t) << (pivot % BLOCK);
        }
        Ok(point)
    }

    fn free(&self) -> Result<Vec<usize>> {
        free_of(&self.pivots, self.unknowns)
    }
}

impl Solution {
    /// The span of the equations whose solutions these are.
    ///
    /// Cost: that of the null space.
    pub fn row_space(&self, run: Run<'_>) -> Result<RowSpace> {
        let (unknowns, rank) = (self.unknowns, self.rank());
        let pivots = collected(self.echelon.pivots.iter().copied())?;
        let words = self.nullity().div_ceil(BLOCK);
        let mut data: Vec<u64> = zeros(rank.checked_mul(words))?;
        // The null vector of a free column has the bits of that column of the form at the pivots.
        for (at, some) in self.echelon.free(unknowns, false)?.chunks(VECTORS_AT_ONCE).enumerate() {
            let vectors = self.echelon.null_vectors(some, run)?;
            let first = at * VECTORS_AT_ONCE / BLOCK;
            run.try_for_each_chunk(&mut data, words * BLOCK, |task, rows| {
                for (row, &pivot) in rows.chunks_exact_mut(words).zip(&pivots[task * BLOCK..]) {
                    row[first..].iter_mut().zip(&vectors).for_each(|(word, vector)| *word = vector_bits(vector, pivot));
                }
                Ok(())
            })?;
        }
        let mut rhs: Vec<u64> = zeros(Some(rank.div_ceil(BLOCK)))?;
        if let Some(point) = self.particular(run)? {
            rhs = packed(pivots.iter().map(|&pivot| point[pivot]))?;
        }
        let coefficients = BitMatrix::from_words(rank, unknowns - rank, data)?;
        Ok(RowSpace { unknowns, pivots, coefficients, rhs, consistent: self.consistent })
    }
}

fn free_of(pivots: &[usize], unknowns: usize) -> Result<Vec<usize>> {
    let mut free = room(Some(unknowns - pivots.len()))?;
    free.extend(free_columns(pivots, unknowns));
    Ok(free)
}

fn bit(words: &[u64], i: usize) -> u64 {
    words[i / BLOCK] >> (i % BLOCK) & 1
}

fn first_one(words: &[u64]) -> Option<usize> {
    let word = words.iter().position(|&word| word != 0)?;
    Some(word * BLOCK + words[word].trailing_zeros() as usize)
}

fn first_bytes(words: &[u64], count: usize) -> impl Iterator<Item = u8> + '_ {
    words.iter().flat_map(|word| word.to_le_bytes()).take(count)
}

/// Whether the last byte has no bit beyond those of the count.
fn pads_with_zeros(bytes: &[u8], count: usize) -> bool {
    bytes.last().is_none_or(|&last| count.is_multiple_of(8) || last >> (count % 8) == 0)
}

fn fill(words: &mut [u64], bytes: &[u8]) {
    for (i, &byte) in bytes.iter().enumerate() {
        words[i / 8] |= u64::from(byte) << (i % 8 * 8);
    }
}
