//! Sums, products and weights of matrices.

use super::matrix::BitMatrix;
use super::strips::Strips;
use crate::error::{Error, Result};
use crate::memory::{collected, zeros};
use crate::run::Run;
use crate::simd::{BLOCK, Block, Tiles};

/// Rows of a product that one task makes: their strips of the left factor are read once for each batch of columns.
const ROWS_PER_PRODUCT: usize = 1024;

/// Strips of the right factor whose tiles are held at a time, and strips of the left one that meet them at once.
const BATCH: usize = 8;
const STRIPS_PER_PRODUCT: usize = 4;

/// Blocks of each strip of the left factor that stay in L1 while all tiles pass.
const BLOCKS_PER_PRODUCT: usize = 8;

/// Words that one task adds or counts.
const WORDS_PER_TASK: usize = 1 << 12;

impl BitMatrix {
    /// The sum over GF(2): exclusive or, entry by entry.
    pub fn sum(&self, other: &BitMatrix, run: Run<'_>) -> Result<BitMatrix> {
        self.entrywise(other, run, |a, b| a ^ b)
    }

    /// The product entry by entry: and.
    pub fn and(&self, other: &BitMatrix, run: Run<'_>) -> Result<BitMatrix> {
        self.entrywise(other, run, |a, b| a & b)
    }

    /// Every entry exchanged for the other one.
    pub fn complement(&self, run: Run<'_>) -> Result<BitMatrix> {
        self.entrywise(self, run, |a, _| !a)
    }

    fn entrywise(
        &self,
        other: &BitMatrix,
        run: Run<'_>,
        act: impl Fn(u64, u64) -> u64 + Sync + Send,
    ) -> Result<BitMatrix> {
        if (self.rows(), self.columns()) != (other.rows(), other.columns()) {
            let shapes = [self, other].map(|matrix| format!("{} x {}", matrix.rows(), matrix.columns()));
            return Err(Error::Shape(format!("{} and {} are no equal shapes", shapes[0], shapes[1])));
        }
        let mut data = zeros(Some(self.data().len()))?;
        run.try_for_each_chunk(&mut data, WORDS_PER_TASK, |task, part| {
            let from = task * WORDS_PER_TASK;
            let words = self.data()[from..].iter().zip(&other.data()[from..]);
            part.iter_mut().zip(words).for_each(|(word, (&a, &b))| *word = act(a, b));
            Ok(())
        })?;
        BitMatrix::from_words(self.rows(), self.columns(), data)
    }

    /// The number of ones in each row.
    pub fn row_weights(&self, run: Run<'_>) -> Result<Vec<i64>> {
        let mut weights = zeros(Some(self.rows()))?;
        let rows = (WORDS_PER_TASK / self.words().max(1)).max(1);
        run.try_for_each_chunk(&mut weights, rows, |task, part| {
            for (i, weight) in (task * rows..).zip(part) {
                *weight = self.row(i).iter().map(|word| i64::from(word.count_ones())).sum();
            }
            Ok(())
        })?;
        Ok(weights)
    }

    /// The number of ones in each column.
    ///
    /// Cost: a transposition.
    pub fn column_weights(&self, run: Run<'_>) -> Result<Vec<i64>> {
        self.transposed(run)?.row_weights(run)
    }

    /// The sum of each row over GF(2), one byte of 0 or 1 for each.
    pub fn row_sums(&self, run: Run<'_>) -> Result<Vec<u8>> {
        self.dot(&collected((0..self.words()).map(|_| u64::MAX))?, run)
    }

    /// The sum of each column over GF(2), one byte of 0 or 1 for each.
    pub fn column_sums(&self, run: Run<'_>) -> Result<Vec<u8>> {
        let word = |w: usize| u64::MAX >> (64 - (self.rows() - 64 * w).min(64));
        self.combine(&collected((0..self.rows().div_ceil(64)).map(word))?, run)
    }

    /// The product x A over GF(2), one byte of 0 or 1 for each column. The vector x is packed like a row.
    ///
    /// Cost: a pass over the rows whose bits are set.
    pub fn combine(&self, x: &[u64], run: Run<'_>) -> Result<Vec<u8>> {
        let mut sums: Vec<u64> = zeros(Some(self.words()))?;
        run.try_for_each_chunk(&mut sums, 64, |task, part| {
            for (w, &word) in x.iter().enumerate() {
                run.check()?;
                for i in (0..64).filter(|i| word >> i & 1 == 1) {
                    let row = &self.row(64 * w + i)[task * 64..];
                    part.iter_mut().zip(row).for_each(|(sum, word)| *sum ^= word);
                }
            }
            Ok(())
        })?;
        collected((0..self.columns()).map(|j| (sums[j / 64] >> (j % 64) & 1) as u8))
    }

    /// The product A B over GF(2), by the kernels of the elimination.
    ///
    /// Cost: a product of 64 x 64 bits for each block of A and strip of B; B once more in memory.
    pub fn multiply(&self, right: &BitMatrix, run: Run<'_>) -> Result<BitMatrix> {
        if self.columns() != right.rows() {
            let text = "but a product needs as many columns on the left as rows on the right";
            let (a, b) = (self.columns(), right.rows());
            return Err(Error::Shape(format!("{a} columns on the left and {b} rows on the right, {text}")));
        }
        let columns = right.columns();
        let words = columns.div_ceil(BLOCK);
        let factor = right.strips(0, right.rows(), run)?;
        let mut data = zeros(self.rows().checked_mul(words))?;
        run.try_for_each_chunk(&mut data, words.max(1).saturating_mul(ROWS_PER_PRODUCT), |task, part| {
            let rows = self.strips(task * ROWS_PER_PRODUCT, part.len() / words, run.sequential())?;
            multiply_rows(&rows, &factor, part, run)
        })?;
        BitMatrix::from_words(self.rows(), columns, data)
    }

    /// `count` rows from row `from` on in the layout of the kernels.
    pub(super) fn strips(&self, from: usize, count: usize, run: Run<'_>) -> Result<Strips> {
        Strips::gather(count, self.words(), run, |i, first, out| {
            out.copy_from_slice(&self.row(from + i)[first..][..out.len()]);
        })
    }
}

/// Some rows of a product, written to whole rows of words.
fn multiply_rows(rows: &Strips, factor: &Strips, out: &mut [u64], run: Run<'_>) -> Result<()> {
    let (height, inner, words) = (rows.height(), rows.len(), factor.len());
    let mut tiles: Vec<Tiles> = (0..BATCH).map(|_| Tiles::new(run.isa)).collect();
    let mut sums: Vec<Block> = zeros(Some(BATCH * height))?;
    for batch in (0..words).step_by(BATCH) {
        sums.fill(Block::ZERO);
        let strips = batch..words.min(batch + BATCH);
        for start in (0..inner).step_by(STRIPS_PER_PRODUCT) {
            run.check()?;
            let group = start..inner.min(start + STRIPS_PER_PRODUCT);
            tiles.iter_mut().zip(strips.clone()).for_each(|(tiles, h)| tiles.load(&factor.strip(h)[group.clone()]));
            for top in (0..height).step_by(BLOCKS_PER_PRODUCT) {
                let part = top..height.min(top + BLOCKS_PER_PRODUCT);
                let factors: Vec<&[Block]> = group.clone().map(|s| &rows.strip(s)[part.clone()]).collect();
                for (tiles, sums) in tiles.iter().zip(sums.chunks_exact_mut(height)).take(strips.len()) {
                    tiles.add_product(&mut sums[part.clone()], &factors);
                }
            }
        }
        // By blocks of rows, of which a batch fills a part of each cache line at a time.
        for (b, part) in out.chunks_mut(words * BLOCK).enumerate() {
            for (h, sums) in strips.clone().zip(sums.chunks_exact(height)) {
                part.chunks_exact_mut(words).zip(sums[b].to_rows()).for_each(|(row, line)| row[h] = line);
            }
        }
    }
    Ok(())
}
