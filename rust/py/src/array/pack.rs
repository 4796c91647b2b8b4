//! Arrays of 0 and 1 as packed matrices.

use hdp_fast_core::error::{Error, Result};
use hdp_fast_core::gf2::BitMatrix;
use numpy::ndarray::{ArrayView2, s};
use numpy::{PyArray2, PyArrayMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::prelude::*;

use super::Threads;
use super::bits::{COPIED, bits, integral};
use super::borrow::in_use;
use super::check::{checked, wrong_type};
use super::entry::{Entry, split_row};
use crate::error::{parameter, raise};
use crate::run::{run, streaming_cost};

/// Packs a matrix of 0/1 entries of any integer dtype and any strides.
pub fn matrix(name: &str, value: &Bound<'_, PyAny>, threads: Threads<'_, '_>) -> PyResult<BitMatrix> {
    packed_entries(name, &checked(name, value, 2)?, threads)
}

/// Packs a vector of 0/1 entries as a matrix of one row.
pub fn vector(name: &str, value: &Bound<'_, PyAny>) -> PyResult<BitMatrix> {
    let bits = bits(name, value)?;
    run(value.py(), None, streaming_cost(bits.len()), |run| {
        BitMatrix::pack(1, bits.len(), run, |_, words| {
            run.try_for_each_chunk(words, COPIED / 64, |chunk, words| {
                let bytes = bits[chunk * COPIED..].chunks(64);
                words.iter_mut().zip(bytes).for_each(|(word, bytes)| *word = pack_word(bytes));
                Ok(())
            })
        })
    })
}

fn packed_entries(name: &str, array: &Bound<'_, PyUntypedArray>, threads: Threads<'_, '_>) -> PyResult<BitMatrix> {
    let array = &integral(array)?;
    macro_rules! packed_as {
        ($($type:ty)*) => {$(
            if let Ok(array) = array.cast::<PyArray2<$type>>() {
                return packed(name, array, threads);
            }
        )*};
    }
    packed_as!(u8 i8 u16 i16 u32 i32 u64 i64);
    Err(wrong_type(name, array))
}

/// The rows of `numpy.packbits(X, axis=1, bitorder="little")` as a matrix.
pub fn packed_rows(name: &str, value: &Bound<'_, PyAny>, columns: usize) -> PyResult<BitMatrix> {
    let array = checked(name, value, 2)?;
    let Ok(array) = array.cast::<PyArray2<u8>>() else {
        return Err(parameter(name, format!("array of {}", array.dtype()), "packed rows must be uint8"));
    };
    let shape = [array.shape()[0], array.shape()[1]];
    if shape[1] != columns.div_ceil(8) {
        return Err(raise(Error::Shape(format!(
            "{name} has shape {shape:?}, but {columns} columns take {} bytes a row",
            columns.div_ceil(8)
        ))));
    }
    let bytes = array.try_readonly().map_err(in_use)?;
    let view = bytes.as_array();
    let used = u64::MAX >> ((64 - columns % 64) % 64);
    run(array.py(), None, streaming_cost(array.len()), |run| {
        BitMatrix::pack(shape[0], columns, run, |first, out| {
            for (row, words) in
                view.slice(s![first.., ..]).rows().into_iter().zip(out.chunks_exact_mut(columns.div_ceil(64)))
            {
                match row.as_slice() {
                    Some(bytes) => bytes.chunks(8).zip(&mut *words).for_each(|(bytes, word)| *word = little(bytes)),
                    None => (0..).zip(row).for_each(|(i, &byte)| words[i / 8] |= u64::from(byte) << (i % 8 * 8)),
                }
                if let Some(last) = words.last_mut() {
                    *last &= used;
                }
            }
            Ok(())
        })
    })
}

fn little(bytes: &[u8]) -> u64 {
    match bytes.try_into() {
        Ok(whole) => u64::from_le_bytes(whole),
        Err(_) => bytes.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte)),
    }
}

fn packed<T: Entry>(name: &str, array: &Bound<'_, PyArray2<T>>, threads: Threads<'_, '_>) -> PyResult<BitMatrix> {
    let readable = array.try_readonly().map_err(in_use)?;
    let view = readable.as_array();
    let (rows, columns) = view.dim();
    let bytes = array.len() * size_of::<T>();
    run(array.py(), threads, streaming_cost(bytes), |run| {
        BitMatrix::pack(rows, columns, run, |first, out| pack_rows(name, &view, first, out))
    })
}

/// Packs the rows from `first` on, 64 columns at a time, through a tile of bytes: whatever the strides, memory is
/// read along the shorter one.
fn pack_rows<T: Entry>(name: &str, all: &ArrayView2<'_, T>, first: usize, out: &mut [u64]) -> Result<()> {
    let words = all.ncols().div_ceil(64);
    let view = all.slice(s![first..first + out.len() / words, ..]);
    let by_columns = view.strides()[0].unsigned_abs() < view.strides()[1].unsigned_abs();
    let mut tile = [0u8; 64 * 64];
    let mut wrong = false;
    for word in 0..words {
        let part = view.slice(s![.., word * 64..all.ncols().min(word * 64 + 64)]);
        if part.ncols() < 64 {
            tile.fill(0);
        }
        if by_columns {
            for (j, column) in part.columns().into_iter().enumerate() {
                for (i, &entry) in column.iter().enumerate() {
                    let (bit, more) = entry.split();
                    tile[i * 64 + j] = bit;
                    wrong |= more;
                }
            }
        } else {
            for (row, bits) in part.rows().into_iter().zip(tile.chunks_exact_mut(64)) {
                wrong |= split_row(row, bits);
            }
        }
        for (bits, row) in tile.chunks_exact(64).zip(out.chunks_exact_mut(words)) {
            row[word] = pack_word(bits);
        }
    }
    if wrong { Err(Error::not_bits(name)) } else { Ok(()) }
}

/// Up to 64 bytes of 0 or 1 as a word: each multiplication gathers eight of them in its top byte.
fn pack_word(bits: &[u8]) -> u64 {
    let gather = |bytes: &[u8]| little(bytes).wrapping_mul(0x0102_0408_1020_4080) >> 56;
    bits.chunks(8).enumerate().fold(0, |word, (i, bytes)| word | gather(bytes) << (8 * i))
}
