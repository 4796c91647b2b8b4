//! The span of equations, in the one form that it has: what a fold leaves of them, for spans of parts join in any order.

use super::matrix::{BitMatrix, inner_product};
use super::solve::{System, solve};
use super::space::{Solution, vector_bits};
use crate::error::{Error, Result};
use crate::memory::{collected, room, zeros};
use crate::noise::Rng;
use crate::run::Run;
use crate::simd::BLOCK;

/// All equations that follow from those of a [`System`], as their reduced row echelon form. It is the only one: spaces
/// are equal where their forms are, bit for bit, whatever the equations were, in whatever parts and order.
#[derive(Clone, PartialEq, Eq)]
pub struct RowSpace {
    /// A row for each pivot, with a column for each unknown, and the right-hand side in the last one.
    basis: BitMatrix,
    /// The column of the first bit of each row, ascending; no other row has a bit there.
    pivots: Vec<usize>,
}

impl RowSpace {
    /// The space of a form, as [`RowSpace::basis`] returns it.
    pub fn from_basis(basis: BitMatrix) -> Result<RowSpace> {
        let malformed = || Error::Parameter("basis is none, but it must be a reduced row echelon form".into());
        if basis.columns() == 0 {
            return Err(malformed());
        }
        let mut pivots: Vec<usize> = room(Some(basis.rows()))?;
        let mut taken: Vec<u64> = zeros(Some(basis.words()))?;
        for t in 0..basis.rows() {
            let word = basis.row(t).iter().position(|&word| word != 0).ok_or_else(malformed)?;
            let pivot = word * BLOCK + basis.row(t)[word].trailing_zeros() as usize;
            if pivots.last().is_some_and(|&last| last >= pivot) {
                return Err(malformed());
            }
            pivots.push(pivot);
            taken[word] |= 1 << (pivot % BLOCK);
        }
        let ones = |t| basis.row(t).iter().zip(&taken).map(|(word, taken)| (word & taken).count_ones()).sum::<u32>();
        if (0..basis.rows()).all(|t| ones(t) == 1) { Ok(RowSpace { basis, pivots }) } else { Err(malformed()) }
    }

    /// The reduced row echelon form; the last column holds the right-hand sides.
    pub fn basis(&self) -> &BitMatrix {
        &self.basis
    }

    /// The number of unknowns.
    pub fn unknowns(&self) -> usize {
        self.basis.columns() - 1
    }

    /// Whether the equations have a solution: 0 = 1 does not follow from them.
    pub fn consistent(&self) -> bool {
        self.pivots.last() != Some(&self.unknowns())
    }

    /// The rank of the coefficients.
    pub fn rank(&self) -> usize {
        self.pivots.len() - usize::from(!self.consistent())
    }

    /// The span of the equations of both.
    ///
    /// Cost: an elimination of all their rows.
    pub fn join(&self, other: &RowSpace, run: Run<'_>) -> Result<RowSpace> {
        if self.unknowns() != other.unknowns() {
            let text = format!("{} and {} unknowns do not fit together", self.unknowns(), other.unknowns());
            return Err(Error::Shape(text));
        }
        let (unknowns, rows) = (self.unknowns(), self.pivots.len() + other.pivots.len());
        let words = unknowns.div_ceil(BLOCK);
        let mut data: Vec<u64> = room(rows.checked_mul(words))?;
        let mut rhs: Vec<u64> = zeros(Some(rows.div_ceil(BLOCK)))?;
        let bases = [&self.basis, &other.basis];
        for (i, (basis, t)) in bases.iter().flat_map(|basis| (0..basis.rows()).map(move |t| (basis, t))).enumerate() {
            data.extend_from_slice(&basis.row(t)[..words]);
            rhs[i / BLOCK] |= u64::from(basis.bit(t, unknowns)) << (i % BLOCK);
        }
        let matrix = BitMatrix::from_words(rows, unknowns, data)?;
        solve(&System { matrix: &matrix, rows: None, ones: false, rhs: Some(&rhs) }, run)?.row_space(run)
    }

    /// A solution drawn uniformly from all of them, one byte of 0 or 1 for each unknown; `None` where there is none.
    ///
    /// Cost: a draw for each free unknown, and a pass over the form.
    pub fn sample(&self, rng: &mut Rng) -> Result<Option<Vec<u8>>> {
        if !self.consistent() {
            return Ok(None);
        }
        let unknowns = self.unknowns();
        let mut point: Vec<u64> = zeros(Some(self.basis.words()))?;
        let mut pivots = self.pivots.iter().peekable();
        for column in 0..unknowns {
            if pivots.next_if_eq(&&column).is_none() {
                point[column / BLOCK] |= (rng.next_u64() & 1) << (column % BLOCK);
            }
        }
        point[unknowns / BLOCK] |= 1 << (unknowns % BLOCK);
        let bit = |column: usize| (point[column / BLOCK] >> (column % BLOCK) & 1) as u8;
        let mut solution = collected((0..unknowns).map(bit))?;
        for (t, &pivot) in self.pivots.iter().enumerate() {
            solution[pivot] = inner_product(self.basis.row(t), &point);
        }
        Ok(Some(solution))
    }
}

impl Solution {
    /// The span of the equations whose solutions these are.
    ///
    /// Cost: that of the null space, and a pass over the form.
    pub fn row_space(&self, run: Run<'_>) -> Result<RowSpace> {
        let (unknowns, consistent, rank) = (self.unknowns, self.consistent, self.rank());
        let words = unknowns / BLOCK + 1;
        let mut pivots: Vec<usize> = room(Some(rank + usize::from(!consistent)))?;
        pivots.extend_from_slice(&self.echelon.pivots);
        // Where 0 = 1 follows, the right-hand side has a pivot of its own, and no other row a bit there.
        pivots.extend((!consistent).then_some(unknowns));
        let mut data: Vec<u64> = zeros(pivots.len().checked_mul(words))?;
        for (row, &pivot) in data.chunks_exact_mut(words).zip(&pivots) {
            row[pivot / BLOCK] |= 1 << (pivot % BLOCK);
        }
        // The null vector of a free column has the bits of that column of the form at the pivots.
        let free = self.echelon.free(unknowns, consistent)?;
        for some in free.chunks(BLOCK) {
            let vectors = self.echelon.null_vectors(some, run)?;
            for (row, &pivot) in data.chunks_exact_mut(words).zip(&self.echelon.pivots) {
                let mut bits = vector_bits(&vectors[0], pivot);
                while bits != 0 {
                    let column = some[bits.trailing_zeros() as usize];
                    row[column / BLOCK] |= 1 << (column % BLOCK);
                    bits &= bits - 1;
                }
            }
            run.check()?;
        }
        Ok(RowSpace { basis: BitMatrix::from_words(pivots.len(), unknowns + 1, data)?, pivots })
    }
}
