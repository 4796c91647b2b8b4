//! The door for numpy arrays: checked once, packed once. The only folder that names numpy's types.

mod bits;
mod borrow;
mod check;
mod entry;
mod fresh;
mod pack;

use hdp_fast_core::Error;
use hdp_fast_core::gf2::BitMatrix;
use numpy::{Element, IntoPyArray, PyArray1, PyArray2, PyArrayMethods, PyUntypedArrayMethods};
use pyo3::prelude::*;

pub use bits::{Answers, answered_bits, answers, check_bits};
pub use borrow::{Bits, Counts, Floats, FloatsToWrite, Integers, ShortIntegers, SingleFloats, Weights};
pub use fresh::{filled, fresh};
pub use pack::{matrix, packed_rows, vector};

use crate::error::{parameter, raise};
use crate::run::{run, streaming_cost};
use crate::scalar::bytes;

/// The argument `threads`.
pub type Threads<'a, 'py> = Option<&'a Bound<'py, PyAny>>;

/// A uint8 matrix of numpy.
pub type Matrix<'py> = Bound<'py, PyArray2<u8>>;

/// A vector of numpy.
pub type Vector<'py, T = u8> = Bound<'py, PyArray1<T>>;

/// Looks up what numpy offers to compiled modules, and borrows an array by its rules.
pub fn prepare(py: Python<'_>) -> PyResult<()> {
    returned::<u8>(py, Vec::new()).try_readonly().map_err(borrow::in_use)?;
    Ok(())
}

/// A matrix, one byte an entry.
pub fn unpacked<'py>(py: Python<'py>, matrix: &BitMatrix) -> PyResult<Matrix<'py>> {
    let mut entries = bytes(matrix.rows().saturating_mul(matrix.columns()))?;
    unpack(py, matrix, &mut entries)?;
    returned(py, entries).reshape([matrix.rows(), matrix.columns()])
}

/// The same, written to an array of the caller.
pub fn unpacked_into<'py>(name: &str, out: &Bound<'py, PyAny>, matrix: &BitMatrix) -> PyResult<Matrix<'py>> {
    let rule = "it must be an array of uint8, contiguous by rows, that can be written";
    let wrong = || parameter(name, "something else", rule);
    let out = out.cast::<PyArray2<u8>>().map_err(|_| wrong())?;
    let shape = (out.shape()[0], out.shape()[1]);
    if shape != (matrix.rows(), matrix.columns()) {
        let text = format!("{name} has shape {shape:?}, but the matrix is {} x {}", matrix.rows(), matrix.columns());
        return Err(raise(Error::Shape(text)));
    }
    // A slice of an array that is contiguous by columns would be had as well.
    if !out.is_c_contiguous() {
        return Err(wrong());
    }
    let mut entries = out.try_readwrite().map_err(|_| wrong())?;
    unpack(out.py(), matrix, entries.as_slice_mut().map_err(|_| wrong())?)?;
    Ok(out.clone())
}

fn unpack(py: Python<'_>, matrix: &BitMatrix, entries: &mut [u8]) -> PyResult<()> {
    let columns = matrix.columns();
    run(py, None, streaming_cost(8 * entries.len()), |run| {
        run.try_for_each_chunk(entries, columns.max(1), |i, row| {
            for (word, bits) in matrix.row(i).iter().zip(row.chunks_mut(64)) {
                bits.iter_mut().enumerate().for_each(|(j, bit)| *bit = (word >> j & 1) as u8);
            }
            Ok(())
        })
    })
}

/// A matrix, one bit an entry, as `numpy.packbits(X, axis=1, bitorder="little")` packs it.
pub fn packed<'py>(py: Python<'py>, matrix: &BitMatrix) -> PyResult<Matrix<'py>> {
    let (rows, columns) = (matrix.rows(), matrix.columns().div_ceil(8));
    let mut packed = bytes(rows.saturating_mul(columns))?;
    run(py, None, streaming_cost(packed.len()), |run| {
        run.try_for_each_chunk(&mut packed, columns.max(1) * 64, |task, part| {
            for (i, row) in (task * 64..).zip(part.chunks_exact_mut(columns)) {
                for (word, bytes) in matrix.row(i).iter().zip(row.chunks_mut(8)) {
                    bytes.copy_from_slice(&word.to_le_bytes()[..bytes.len()]);
                }
            }
            Ok(())
        })
    })?;
    returned(py, packed).reshape([rows, columns])
}

/// A vector handed over to Python without a copy.
pub fn returned<T: Element>(py: Python<'_>, values: Vec<T>) -> Vector<'_, T> {
    values.into_pyarray(py)
}
