//! The solution space that an echelon form describes.

use super::eliminate::Echelon;
use super::matrix::BitMatrix;
use super::strips::Strips;
use crate::error::Result;
use crate::memory::{collected, room, zeros};
use crate::noise::Rng;
use crate::run::Run;
use crate::simd::{BLOCK, Block, Tiles};

/// The exact solution space of a [`super::System`].
pub struct Solution {
    pub(super) unknowns: usize,
    /// Whether the system has a solution.
    pub consistent: bool,
    pub(super) echelon: Echelon,
}

impl Solution {
    /// The solutions of a reduced row echelon form, whose right-hand sides stand in the column after the unknowns.
    pub(super) fn from_form(unknowns: usize, consistent: bool, strips: Strips, pivots: Vec<usize>) -> Solution {
        Solution { unknowns, consistent, echelon: Echelon { strips, pivots, steps: Vec::new() } }
    }

    /// The rank of the coefficients.
    pub fn rank(&self) -> usize {
        self.echelon.pivots.len()
    }

    /// The dimension of the null space.
    pub fn nullity(&self) -> usize {
        self.unknowns - self.rank()
    }

    /// The number of unknowns.
    pub fn unknowns(&self) -> usize {
        self.unknowns
    }

    /// The solution whose free unknowns are all zero, one byte of 0 or 1 for each unknown; `None` where there is no
    /// solution.
    pub fn particular(&self, run: Run<'_>) -> Result<Option<Vec<u8>>> {
        self.with_free(|_| 0, run)
    }

    /// A solution drawn uniformly from all solutions, one byte of 0 or 1 for each unknown; `None` where there is no
    /// solution.
    pub fn sample(&self, rng: &mut Rng, run: Run<'_>) -> Result<Option<Vec<u8>>> {
        self.with_free(|_| rng.next_u64() & 1, run)
    }

    fn with_free(&self, mut free: impl FnMut(usize) -> u64, run: Run<'_>) -> Result<Option<Vec<u8>>> {
        if !self.consistent {
            return Ok(None);
        }
        let mut vectors = self.echelon.empty_vectors()?;
        for column in free_columns(&self.echelon.pivots, self.unknowns) {
            set_vector_bits(&mut vectors, column, free(column));
        }
        set_vector_bits(&mut vectors, self.unknowns, 1);
        self.echelon.complete(&mut vectors, run)?;
        collected((0..self.unknowns).map(|column| (vector_bits(&vectors, column) & 1) as u8)).map(Some)
    }

    /// A basis of the null space, one row for each free unknown in ascending order.
    pub fn null_space(&self, run: Run<'_>) -> Result<BitMatrix> {
        let words = self.unknowns.div_ceil(64);
        let mut data: Vec<u64> = zeros(self.nullity().checked_mul(words))?;
        let batches = self.echelon.null_vectors(&self.echelon.free(self.unknowns, false)?, run)?;
        for (part, vectors) in data.chunks_mut(words.max(1) * BLOCK).zip(&batches) {
            for column in 0..self.unknowns {
                let bits = vector_bits(vectors, column);
                for (v, row) in part.chunks_exact_mut(words).enumerate() {
                    row[column / 64] |= (bits >> v & 1) << (column % 64);
                }
            }
        }
        BitMatrix::from_words(self.nullity(), self.unknowns, data)
    }
}

/// Sets coordinate `column` of 64 vectors at once; vector v takes bit v.
fn set_vector_bits(vectors: &mut [Block], column: usize, bits: u64) {
    vectors[column / BLOCK].set_row(column % BLOCK, bits);
}

pub(super) fn vector_bits(vectors: &[Block], column: usize) -> u64 {
    vectors[column / BLOCK].row(column % BLOCK)
}

/// The columns without a pivot, of those of unknowns.
pub(super) fn free_columns(pivots: &[usize], unknowns: usize) -> impl Iterator<Item = usize> + '_ {
    let mut pivots = pivots.iter().copied().peekable();
    (0..unknowns).filter(move |&column| pivots.next_if_eq(&column).is_none())
}

impl Echelon {
    /// Whether a row without a pivot has a bit in column `rhs`: then 0 = 1 follows from the rows.
    pub(super) fn leftover(&self, rhs: usize) -> bool {
        let (strip, rank) = (self.strips.strip(rhs / BLOCK), self.pivots.len());
        (rank..self.strips.rows()).any(|row| strip[row / BLOCK].row(row % BLOCK) >> (rhs % BLOCK) & 1 == 1)
    }

    /// 64 zero vectors with a coordinate for every column.
    fn empty_vectors(&self) -> Result<Vec<Block>> {
        zeros(Some(self.strips.len()))
    }

    /// The free columns, and the right-hand side after them if `rhs`.
    pub(super) fn free(&self, unknowns: usize, rhs: bool) -> Result<Vec<usize>> {
        let mut free = room(Some(unknowns - self.pivots.len() + usize::from(rhs)))?;
        free.extend(free_columns(&self.pivots, unknowns).chain(rhs.then_some(unknowns)));
        Ok(free)
    }

    /// For each of the given free columns the null vector with a bit in no other one, 64 to a batch.
    pub(super) fn null_vectors(&self, free: &[usize], run: Run<'_>) -> Result<Vec<Vec<Block>>> {
        let count = free.len().div_ceil(BLOCK);
        let mut batches: Vec<Vec<Block>> = room(Some(count))?;
        for _ in 0..count {
            batches.push(self.empty_vectors()?);
        }
        run.try_for_each_chunk(&mut batches, 1, |b, batch| {
            for (v, &column) in free[b * BLOCK..].iter().take(BLOCK).enumerate() {
                set_vector_bits(&mut batch[0], column, 1 << v);
            }
            self.complete(&mut batch[0], run)
        })?;
        Ok(batches)
    }

    pub(super) fn random_null_vectors(
        &self,
        unknowns: usize,
        rhs: bool,
        rng: &mut Rng,
        run: Run<'_>,
    ) -> Result<Vec<Block>> {
        let mut vectors = self.empty_vectors()?;
        for column in free_columns(&self.pivots, unknowns).chain(rhs.then_some(unknowns)) {
            set_vector_bits(&mut vectors, column, rng.next_u64());
        }
        self.complete(&mut vectors, run)?;
        Ok(vectors)
    }

    /// Sets the pivot coordinates of 64 vectors so that every row of the form is orthogonal to them.
    fn complete(&self, vectors: &mut [Block], run: Run<'_>) -> Result<()> {
        let mut tiles = Tiles::new(run.isa);
        let mut sums: Vec<Block> = zeros(Some(self.strips.height()))?;
        let mut end = self.pivots.len();
        for g in (0..self.strips.len()).rev() {
            let start = self.pivots.partition_point(|&column| column < g * BLOCK);
            let strip = self.strips.strip(g);
            tiles.load(std::slice::from_ref(&vectors[g]));
            for row in (start / BLOCK)..end.div_ceil(BLOCK) {
                // Before its pivots are set, a strip's own rows see only its free coordinates.
                let mut product = [sums[row]];
                tiles.add_product(&mut product, &[&strip[row..row + 1]]);
                for t in start.max(row * BLOCK)..end.min((row + 1) * BLOCK) {
                    set_vector_bits(vectors, self.pivots[t], product[0].row(t % BLOCK));
                }
            }
            let above = start.div_ceil(BLOCK);
            tiles.load(std::slice::from_ref(&vectors[g]));
            tiles.add_product(&mut sums[..above], &[&strip[..above]]);
            end = start;
        }
        Ok(())
    }

    /// The rows of the form followed by further rows, `words` words each, ready to be eliminated again.
    pub(super) fn join(&self, further: &[u64], words: usize, run: Run<'_>) -> Result<Strips> {
        let rank = self.pivots.len();
        Strips::gather(rank + further.len() / words, words, run, |row, first, out| {
            if row >= rank {
                out.copy_from_slice(&further[(row - rank) * words + first..][..out.len()]);
                return;
            }
            // To the left of its pivot's strip a row holds leftovers of the elimination.
            let pivot_block = self.pivots[row] / BLOCK;
            for (g, word) in (first..).zip(out).skip_while(|(g, _)| *g < pivot_block) {
                *word = self.strips.strip(g)[row / BLOCK].row(row % BLOCK);
            }
        })
    }
}
