//! What a bit matrix is made of, and what it becomes: integers, sparse matrices of scipy, files of numpy.

use hdp_fast_core::Error;
use hdp_fast_core::gf2::BitMatrix;
use num_bigint::BigUint;
use pyo3::exceptions::{PyImportError, PyMemoryError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PySlice};

use crate::array;
use crate::error::{parameter, raise};
use crate::run::run;
use crate::scalar::count;

/// Bytes of a sparse matrix that are written out at a time.
const DENSE_BYTES: usize = 1 << 24;

/// Rows that are read before Ctrl-C is heard.
const ROWS_PER_LOOK: usize = 1 << 10;

/// Integers as rows.
pub fn from_integers(rows: &Bound<'_, PyAny>, columns: usize) -> PyResult<BitMatrix> {
    let wrong = || {
        let text = "rows holds something else, but each row must be an integer of at least 0 and below 2**ncols";
        raise(Error::Parameter(text.into()))
    };
    let (mut data, mut number) = (Vec::new(), 0);
    for row in rows.try_iter().map_err(|_| wrong())? {
        let row = row?;
        let integer = if row.is_instance_of::<PyBool>() { None } else { row.extract::<BigUint>().ok() };
        let integer = integer.filter(|integer| integer.bits() <= columns as u64).ok_or_else(wrong)?;
        number += 1;
        if number % ROWS_PER_LOOK == 0 {
            rows.py().check_signals()?;
        }
        data.extend(integer.iter_u64_digits());
        data.resize(columns.div_ceil(64) * number, 0);
    }
    BitMatrix::from_words(number, columns, data).map_err(raise)
}

/// Rows as integers.
pub fn to_integers(matrix: &BitMatrix) -> Vec<BigUint> {
    let bytes = |i| matrix.row(i).iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
    (0..matrix.rows()).map(|i| BigUint::from_bytes_le(&bytes(i))).collect()
}

/// A sparse matrix, a part of its rows at a time.
#[allow(non_snake_case)]
pub fn from_sparse(py: Python<'_>, X: &Bound<'_, PyAny>) -> PyResult<BitMatrix> {
    let rule = "X is not sparse, but it must be a sparse array of scipy; from_dense takes others";
    let sparse = || raise(Error::Parameter(rule.into()));
    if !X.hasattr("nnz")? {
        return Err(sparse());
    }
    let numpy = py.import("numpy")?;
    let rows = X.call_method0("tocsr").map_err(|_| sparse())?;
    let (m, d): (usize, usize) = rows.getattr("shape")?.extract().map_err(|_| sparse())?;
    let step = (DENSE_BYTES / d.max(1)).clamp(1, m.max(1));
    let mut parts = vec![BitMatrix::zeros(0, d).map_err(raise)?];
    for from in (0..m).step_by(step) {
        py.check_signals()?;
        let part = rows.get_item(PySlice::new(py, from as isize, m.min(from + step) as isize, 1))?;
        let entries = part.call_method0("toarray")?;
        let bits = entries.call_method1("astype", ("uint8",)).map_err(|_| sparse())?;
        // What was rounded was none.
        if !numpy.call_method1("array_equal", (&bits, entries))?.is_truthy()? {
            return Err(raise(Error::not_bits("X")));
        }
        parts.push(array::matrix("X", &bits, None)?);
    }
    let parts: Vec<&BitMatrix> = parts.iter().collect();
    run(py, None, 0.0, |run| BitMatrix::vstack(&parts, run))
}

/// An array of compressed rows.
pub fn to_sparse<'py>(py: Python<'py>, matrix: &BitMatrix) -> PyResult<Bound<'py, PyAny>> {
    let missing = |_| PyImportError::new_err("to_sparse needs scipy: pip install hdp-fast[scipy]");
    let scipy = py.import("scipy.sparse").map_err(missing)?;
    let (mut places, mut starts) = (Vec::new(), vec![0i64]);
    for i in 0..matrix.rows() {
        for (w, &word) in matrix.row(i).iter().enumerate().filter(|(_, word)| **word != 0) {
            places.extend((0..64).filter(|j| word >> j & 1 == 1).map(|j| (64 * w + j) as i64));
        }
        starts.push(places.len() as i64);
    }
    let data = array::returned(py, vec![1u8; places.len()]);
    let parts = (data, array::returned(py, places), array::returned(py, starts));
    let options = PyDict::new(py);
    options.set_item("shape", (matrix.rows(), matrix.columns()))?;
    scipy.call_method("csr_array", (parts,), Some(&options))
}

/// A file with the arrays X_packed and ncols.
pub fn from_npz(py: Python<'_>, path: &str) -> PyResult<BitMatrix> {
    let wrong = |error: PyErr| match error.is_instance_of::<PyMemoryError>(py) {
        true => error,
        false => {
            parameter("path", path, "it must be an .npz file that can be read, with the arrays X_packed and ncols")
        }
    };
    let archive = py.import("numpy")?.call_method1("load", (path,)).map_err(wrong)?;
    let read = || -> PyResult<_> { Ok((archive.get_item("X_packed")?, archive.get_item("ncols")?)) };
    let read = read().map_err(wrong);
    if archive.hasattr("close")? {
        archive.call_method0("close")?;
    }
    let (rows, columns) = read?;
    let columns = columns.call_method0("item").map_err(wrong)?;
    array::packed_rows("X_packed", &rows, count("ncols", &columns, 0)?)
}

/// Writes such a file.
pub fn to_npz(py: Python<'_>, matrix: &BitMatrix, path: &str) -> PyResult<()> {
    let options = PyDict::new(py);
    options.set_item("X_packed", array::packed(py, matrix)?)?;
    options.set_item("ncols", matrix.columns())?;
    py.import("numpy")?.call_method("savez", (path,), Some(&options)).map(drop)
}
