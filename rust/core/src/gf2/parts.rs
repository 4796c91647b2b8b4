//! Copies that move bits: rows and columns of a matrix, its transpose, and matrices side by side.

use super::matrix::BitMatrix;
use crate::error::{Error, Result};
use crate::memory::zeros;
use crate::run::Run;

/// Words of a row that are transposed together: one cache line.
const ABREAST: usize = 8;

impl BitMatrix {
    /// Copies the given rows, in the given order.
    pub fn take_rows(&self, rows: &[usize], run: Run<'_>) -> Result<BitMatrix> {
        BitMatrix::pack(rows.len(), self.columns(), run, |first, out| {
            let copies = out.chunks_exact_mut(self.words()).zip(&rows[first..]);
            copies.for_each(|(copy, &i)| copy.copy_from_slice(self.row(i)));
            Ok(())
        })
    }

    /// Copies the given columns, in the given order.
    ///
    /// Cost: two transpositions, and a copy.
    pub fn take_columns(&self, columns: &[usize], run: Run<'_>) -> Result<BitMatrix> {
        self.transposed(run)?.take_rows(columns, run)?.transposed(run)
    }

    /// Copies columns `from..to`.
    pub fn slice_columns(&self, from: usize, to: usize, run: Run<'_>) -> Result<BitMatrix> {
        let (start, shift, columns) = (from / 64, from % 64, to - from);
        let words = columns.div_ceil(64);
        BitMatrix::pack(self.rows(), columns, run, |first, out| {
            for (i, copy) in (first..).zip(out.chunks_exact_mut(words)) {
                let row = &self.row(i)[start..];
                for (w, word) in copy.iter_mut().enumerate() {
                    let next = row.get(w + 1).copied().unwrap_or(0);
                    *word = if shift == 0 { row[w] } else { row[w] >> shift | next << (64 - shift) };
                }
                copy[words - 1] &= u64::MAX >> ((64 - columns % 64) % 64);
            }
            Ok(())
        })
    }

    /// The transpose.
    ///
    /// Cost: a pass over the matrix, and one over the result.
    pub fn transposed(&self, run: Run<'_>) -> Result<BitMatrix> {
        let words = self.rows().div_ceil(64);
        let mut data: Vec<u64> = zeros(self.columns().checked_mul(words))?;
        run.try_for_each_chunk(&mut data, words.max(1).saturating_mul(64 * ABREAST), |task, part| {
            let from = task * ABREAST;
            for b in 0..words {
                let mut lanes = [[0; ABREAST]; 64];
                for (i, lanes) in (64 * b..self.rows().min(64 * b + 64)).zip(&mut lanes) {
                    lanes.iter_mut().zip(&self.row(i)[from..]).for_each(|(lane, &word)| *lane = word);
                }
                transpose(&mut lanes);
                for (j, row) in part.chunks_exact_mut(words).enumerate() {
                    row[b] = lanes[j % 64][j / 64];
                }
            }
            run.check()
        })?;
        BitMatrix::from_words(self.columns(), self.rows(), data)
    }

    /// Matrices of as many rows side by side.
    pub fn hstack(parts: &[&BitMatrix], run: Run<'_>) -> Result<BitMatrix> {
        let rows = parts.first().map_or(0, |part| part.rows());
        if let Some((k, part)) = parts.iter().enumerate().find(|(_, part)| part.rows() != rows) {
            let text = "but matrices side by side must have equally many";
            return Err(Error::Shape(format!("matrix 0 has {rows} rows and matrix {k} has {}, {text}", part.rows())));
        }
        let columns: usize = parts.iter().map(|part| part.columns()).sum();
        BitMatrix::pack(rows, columns, run, |first, out| {
            for (i, row) in (first..).zip(out.chunks_exact_mut(columns.div_ceil(64))) {
                let mut at = 0;
                for part in parts {
                    append(row, at, part.row(i));
                    at += part.columns();
                }
            }
            Ok(())
        })
    }

    /// Matrices of as many columns one above the other.
    pub fn vstack(parts: &[&BitMatrix], run: Run<'_>) -> Result<BitMatrix> {
        let columns = parts.first().map_or(0, |part| part.columns());
        if let Some((k, part)) = parts.iter().enumerate().find(|(_, part)| part.columns() != columns) {
            let (text, other) = ("but matrices one above the other must have equally many", part.columns());
            return Err(Error::Shape(format!("matrix 0 has {columns} columns and matrix {k} has {other}, {text}")));
        }
        let words = columns.div_ceil(64);
        let mut stacked = zeros(parts.iter().map(|part| part.rows()).sum::<usize>().checked_mul(words))?;
        let mut at = 0;
        for part in parts {
            run.check()?;
            stacked[at..at + part.data().len()].copy_from_slice(part.data());
            at += part.data().len();
        }
        BitMatrix::from_words(parts.iter().map(|part| part.rows()).sum(), columns, stacked)
    }
}

/// Adds the bits of a row from bit `at` of `out` on.
fn append(out: &mut [u64], at: usize, row: &[u64]) {
    let (start, shift) = (at / 64, at % 64);
    for (w, word) in (start..).zip(row) {
        out[w] |= word << shift;
        // Beyond the last word there are no bits of the row.
        if let Some(next) = out.get_mut(w + 1).filter(|_| shift > 0) {
            *next |= word >> (64 - shift);
        }
    }
}

/// Transposes eight blocks of 64 x 64 bits at a time, one in each lane, by exchanging halves of halves.
fn transpose(lanes: &mut [[u64; ABREAST]; 64]) {
    let (mut distance, mut mask) = (32, u64::MAX >> 32);
    while distance > 0 {
        for r in (0..64).filter(|r| r & distance == 0) {
            let (upper, lower) = lanes.split_at_mut(r + distance);
            for (above, below) in upper[r].iter_mut().zip(&mut lower[0]) {
                let moved = (*above >> distance ^ *below) & mask;
                *above ^= moved << distance;
                *below ^= moved;
            }
        }
        distance /= 2;
        mask ^= mask << distance;
    }
}
