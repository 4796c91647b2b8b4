//! The bit-packed matrix that callers own.

use crate::error::{Error, Result};
use crate::memory::{collected, copied, zeros};
use crate::noise::Rng;
use crate::run::Run;

/// A matrix over GF(2), row by row, each row a whole number of 64-bit words with column 0 in the lowest bit of the
/// first.
///
/// # Examples
///
/// ```
/// use hdp_fast_core::gf2::BitMatrix;
/// use hdp_fast_core::run::Run;
/// use hdp_fast_core::simd::Isa;
///
/// let run = Run::alone(Isa::detect()?);
/// let matrix = BitMatrix::from_words(2, 3, vec![0b011, 0b110])?;
/// assert_eq!((matrix.rows(), matrix.columns(), matrix.bit(1, 2)), (2, 3, 1));
/// assert_eq!(matrix.dot(&[0b001], run)?, [1, 0]);
/// assert_eq!(matrix.combine(&[0b11], run)?, [1, 0, 1]);
/// assert!(matrix.transposed(run)?.transposed(run)? == matrix);
/// assert_eq!(matrix.row_weights(run)?, [2, 2]);
/// assert_eq!(matrix.column_sums(run)?, [1, 0, 1]);
///
/// let columns = matrix.slice_columns(1, 3, run)?;
/// assert!(columns == matrix.take_columns(&[1, 2], run)?);
/// let wide = BitMatrix::hstack(&[&matrix, &columns], run)?;
/// assert_eq!(wide.row(0), [0b01011]);
/// # Ok::<(), hdp_fast_core::Error>(())
/// ```
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

/// The same of bits that are made one after the other.
pub(super) fn packed(bits: impl ExactSizeIterator<Item = u8>) -> Result<Vec<u64>> {
    parity_bits(&collected(bits)?)
}
