//! The bit-packed matrix that callers own.

use crate::error::{Error, Result};
use crate::memory::{collected, copied, zeros};
use crate::noise::Rng;
use crate::run::Run;

/// A matrix over GF(2), row by row, each row a whole number of 64-bit words with column 0 in the lowest bit of the
/// first.
#[derive(Clone, PartialEq, Eq)]
pub struct BitMatrix {
    rows: usize,
    columns: usize,
    /// Bits beyond the last column are zero.
    data: Vec<u64>,
}

/// Rows that one task packs together.
const ROWS_PER_TASK: usize = 64;

impl BitMatrix {
    /// Builds a matrix of `rows` rows in parallel: `pack(first, out)` fills `out` with the words of whole rows, from
    /// row `first` on.
    pub fn pack(
        rows: usize,
        columns: usize,
        run: Run<'_>,
        pack: impl Fn(usize, &mut [u64]) -> Result<()> + Sync + Send,
    ) -> Result<BitMatrix> {
        let words = columns.div_ceil(64);
        let mut data = zeros(rows.checked_mul(words))?;
        run.try_for_each_chunk(&mut data, words.max(1) * ROWS_PER_TASK, |task, part| pack(task * ROWS_PER_TASK, part))?;
        Ok(BitMatrix { rows, columns, data })
    }

    /// The matrix of these words, row by row. Bits beyond the last column are cleared.
    pub fn from_words(rows: usize, columns: usize, mut data: Vec<u64>) -> Result<BitMatrix> {
        let words = columns.div_ceil(64);
        if data.len() != rows * words {
            return Err(Error::Shape(format!(
                "data has {} words, but {rows} rows of {columns} columns take {}",
                data.len(),
                rows * words
            )));
        }
        if !columns.is_multiple_of(64) {
            data.chunks_exact_mut(words).for_each(|row| row[words - 1] &= u64::MAX >> (64 - columns % 64));
        }
        Ok(BitMatrix { rows, columns, data })
    }

    /// The matrix of zeros.
    pub fn zeros(rows: usize, columns: usize) -> Result<BitMatrix> {
        Ok(BitMatrix { rows, columns, data: zeros(rows.checked_mul(columns.div_ceil(64)))? })
    }

    /// The identity matrix.
    pub fn identity(size: usize) -> Result<BitMatrix> {
        let mut matrix = BitMatrix::zeros(size, size)?;
        let words = matrix.words();
        (0..size).for_each(|i| matrix.data[i * words + i / 64] |= 1 << (i % 64));
        Ok(matrix)
    }

    /// A matrix of independent fair bits.
    pub fn random(rows: usize, columns: usize, rng: &mut Rng, run: Run<'_>) -> Result<BitMatrix> {
        let mut data: Vec<u64> = zeros(rows.checked_mul(columns.div_ceil(64)))?;
        for part in data.chunks_mut(1 << 16) {
            run.check()?;
            part.iter_mut().for_each(|word| *word = rng.next_u64());
        }
        BitMatrix::from_words(rows, columns, data)
    }

    /// All words, row by row.
    pub(super) fn data(&self) -> &[u64] {
        &self.data
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The number of columns.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// The number of words in a row.
    pub fn words(&self) -> usize {
        self.columns.div_ceil(64)
    }

    /// The words of row i.
    #[inline]
    pub fn row(&self, i: usize) -> &[u64] {
        let words = self.words();
        &self.data[i * words..][..words]
    }

    /// The entry in row i and column j.
    #[inline]
    pub fn bit(&self, i: usize, j: usize) -> u8 {
        (self.row(i)[j / 64] >> (j % 64) & 1) as u8
    }

    /// Copies rows `from..to` into a matrix.
    pub fn slice(&self, from: usize, to: usize) -> Result<BitMatrix> {
        let words = self.words();
        Ok(BitMatrix { rows: to - from, columns: self.columns, data: copied(&self.data[from * words..to * words])? })
    }

    /// The product A x over GF(2), one byte of 0 or 1 for each row. The vector x is packed like a row.
    ///
    /// Cost: one pass over the matrix.
    pub fn dot(&self, x: &[u64], run: Run<'_>) -> Result<Vec<u8>> {
        let mut result = zeros(Some(self.rows))?;
        run.try_for_each_chunk(&mut result, 1024, |task, part| {
            for (i, bit) in part.iter_mut().enumerate() {
                *bit = inner_product(self.row(task * 1024 + i), x);
            }
            Ok(())
        })?;
        Ok(result)
    }
}

/// The inner product of two packed vectors over GF(2).
#[inline]
pub(super) fn inner_product(a: &[u64], b: &[u64]) -> u8 {
    let sum = a.iter().zip(b).fold(0, |sum, (a, b)| sum ^ (a & b));
    (sum.count_ones() & 1) as u8
}

/// Packs bits, given as bytes of 0 or 1, like a row of a [`BitMatrix`].
pub fn parity_bits(bits: &[u8]) -> Result<Vec<u64>> {
    let pack = |chunk: &[u8]| chunk.iter().enumerate().fold(0, |word, (i, &bit)| word | u64::from(bit & 1) << i);
    collected(bits.chunks(64).map(pack))
}
