//! Records packed by feature: bit r of a column is record r.

use super::sum::sum;
use crate::error::{Error, Result};
use crate::gf2::BitMatrix;
use crate::memory::zeros;
use crate::run::Run;
use crate::simd::{LONG, Records, SHORT};

/// Words of a column in one block at most: 16,384 records, of which some hundred columns fit the second cache.
const WIDEST: usize = 256;

/// Blocks to aim at where there are few records, so that threads have something to share.
const BLOCKS: usize = 8;

/// Tiles of 64 x 64 bits that are turned together: their words fill a line of the cache.
const TILES: usize = SHORT;

/// Records of bits, stored in blocks. A block holds its records column by column, and then a column of ones.
pub struct Columns {
    records: usize,
    features: usize,
    width: usize,
    data: Vec<u64>,
}

impl Columns {
    /// Packs the rows of a matrix, one record each, by columns.
    ///
    /// Cost: one pass, and the memory of the matrix once more.
    pub fn pack(matrix: &BitMatrix, run: Run<'_>) -> Result<Columns> {
        let (records, features) = (matrix.rows(), matrix.columns());
        let words = records.div_ceil(64);
        let share = words.div_ceil(BLOCKS).clamp(1, WIDEST);
        let width = share.next_multiple_of(if share < LONG { SHORT } else { LONG });
        let size = width.checked_mul(features + 1);
        let mut data = zeros(size.and_then(|size| size.checked_mul(words.div_ceil(width))))?;
        run.try_for_each_chunk(&mut data, width * (features + 1), |block, columns| {
            turn(matrix, block * width, width, columns);
            Ok(())
        })?;
        Ok(Columns { records, features, width, data })
    }

    /// The number of records.
    pub fn records(&self) -> usize {
        self.records
    }

    /// The number of features.
    pub fn features(&self) -> usize {
        self.features
    }

    /// An error unless hypotheses and labels are made for these records.
    pub(super) fn check(&self, features: usize, labels: &BitMatrix) -> Result<()> {
        if features != self.features {
            let text = format!("X has {} features, but the hypotheses have {features}", self.features);
            return Err(Error::Shape(text));
        }
        if labels.columns() != self.records {
            let text = format!("y has length {}, but X has {} records", labels.columns(), self.records);
            return Err(Error::Shape(text));
        }
        Ok(())
    }

    /// The values of feature j for the records from 64 i on.
    pub(super) fn word(&self, i: usize, j: usize) -> u64 {
        let (block, word) = (i / self.width, i % self.width);
        self.data[(block * (self.features + 1) + j) * self.width + word]
    }

    /// The sums over all blocks of what `add` adds for each hypothesis.
    ///
    /// Cost: beside that of `add`, eight bytes a hypothesis and thread.
    pub(super) fn sum(
        &self,
        hypotheses: usize,
        labels: &BitMatrix,
        run: Run<'_>,
        add: impl Fn(Records<'_>, &mut [i64]) -> Result<()> + Sync + Send,
    ) -> Result<Vec<i64>> {
        let size = self.width * (self.features + 1);
        let blocks = self.data.len() / size;
        let mut padded = zeros(blocks.checked_mul(self.width))?;
        let words = labels.row(0);
        padded[..words.len()].copy_from_slice(words);
        sum(hypotheses, blocks, run, |block, sums| {
            let columns = &self.data[block * size..][..size];
            let labels = &padded[block * self.width..][..self.width];
            add(Records { width: self.width, columns, labels }, sums)
        })
    }
}

/// Fills one block with the columns of the 64 width rows from word `first` on.
fn turn(matrix: &BitMatrix, first: usize, width: usize, columns: &mut [u64]) {
    let everybody = columns.len() - width;
    for word in (0..width).step_by(TILES) {
        let rows = |tile: usize| (first + word + tile) * 64..((first + word + tile + 1) * 64).min(matrix.rows());
        for tile in 0..TILES {
            let count = rows(tile).len();
            columns[everybody + word + tile] = if count == 0 { 0 } else { u64::MAX >> (64 - count) };
        }
        for group in 0..matrix.words() {
            let mut tiles = [[0; 64]; TILES];
            for (t, tile) in tiles.iter_mut().enumerate() {
                rows(t).zip(&mut *tile).for_each(|(row, bits)| *bits = matrix.row(row)[group]);
                transpose(tile);
            }
            for j in group * 64..matrix.columns().min(group * 64 + 64) {
                let line = &mut columns[j * width + word..][..TILES];
                line.iter_mut().zip(&tiles).for_each(|(word, tile)| *word = tile[j % 64]);
            }
        }
    }
}

/// Transposes 64 x 64 bits: quarters change places, then theirs, down to single bits (Hacker's Delight, 7-3).
fn transpose(tile: &mut [u64; 64]) {
    let (mut half, mut low) = (32, u64::MAX >> 32);
    while half > 0 {
        for start in (0..64).step_by(2 * half) {
            for i in start..start + half {
                let swap = (tile[i] >> half ^ tile[i + half]) & low;
                tile[i] ^= swap << half;
                tile[i + half] ^= swap;
            }
        }
        half /= 2;
        low ^= low << half;
    }
}
