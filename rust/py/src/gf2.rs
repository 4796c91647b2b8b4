//! Glue of the matrices of `hdp_fast.gf2`.

use std::sync::Arc;

use hdp_fast_core::gf2 as core;
use pyo3::prelude::*;
use pyo3::types::PySlice;

use crate::array::{self, Matrix, Threads, Vector};
use crate::error::{parameter, raise};
use crate::run::{elimination_cost, run, streaming_cost};
use crate::scalar::count;

/// A bit-packed matrix over GF(2), taken by every function of hdp_fast in place of a 0/1 array.
///
/// Made by from_dense or from_packed and never changed; A[i:j] copies rows, A.to_dense() or numpy.asarray(A)
/// unpacks all of them. Memory: shape[0] * ceil(shape[1] / 64) * 8 bytes.
#[pyclass(frozen, module = "hdp_fast.gf2")]
pub struct BitMatrix(Arc<core::BitMatrix>);

#[pymethods]
impl BitMatrix {
    /// Packs a 0/1 array.
    ///
    /// X: (m, d), bool or any integer dtype, any strides, read-only or not.
    ///
    /// Raises: ShapeError unless X has two dimensions; ParameterError for another dtype or an entry that is not 0 or 1.
    /// Cost: one pass over X on all threads; no copy but the packed one.
    /// Source: none.
    #[staticmethod]
    #[allow(non_snake_case)]
    fn from_dense(X: &Bound<'_, PyAny>) -> PyResult<BitMatrix> {
        Ok(BitMatrix(Arc::new(array::matrix("X", X, None)?)))
    }

    /// Takes the rows of numpy.packbits(X, axis=1, bitorder="little").
    ///
    /// rows: uint8 (m, ceil(ncols / 8)); ncols: the number of columns d. Bits beyond the last column are ignored.
    ///
    /// Raises: ShapeError when rows and ncols do not fit together; ParameterError for another dtype.
    /// Cost: one copy.
    /// Source: none.
    #[staticmethod]
    fn from_packed(rows: &Bound<'_, PyAny>, ncols: &Bound<'_, PyAny>) -> PyResult<BitMatrix> {
        Ok(BitMatrix(Arc::new(array::packed_rows("rows", rows, count("ncols", ncols, 0)?)?)))
    }

    /// Numbers of rows and columns.
    #[getter]
    fn shape(&self) -> (usize, usize) {
        (self.0.rows(), self.0.columns())
    }

    /// The entries as a uint8 array (m, d).
    ///
    /// Raises: MemoryError.
    /// Cost: m d bytes.
    /// Source: none.
    fn to_dense<'py>(&self, py: Python<'py>) -> PyResult<Matrix<'py>> {
        array::unpacked(py, &self.0)
    }

    #[pyo3(signature = (dtype=None, copy=None))]
    fn __array__<'py>(
        &self,
        py: Python<'py>,
        dtype: Option<&Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if copy == Some(false) {
            return Err(parameter("copy", "False", "unpacking a BitMatrix always makes a copy"));
        }
        let dense = self.to_dense(py)?.into_any();
        dtype.map_or(Ok(dense.clone()), |dtype| dense.call_method1("astype", (dtype,)))
    }

    /// Refuses numpy's operators: over the integers they would give wrong answers without a word.
    #[classattr]
    fn __array_ufunc__() -> Option<Py<PyAny>> {
        None
    }

    fn __copy__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __deepcopy__(slf: Py<Self>, _memo: &Bound<'_, PyAny>) -> Py<Self> {
        slf
    }

    fn __len__(&self) -> usize {
        self.0.rows()
    }

    fn __getitem__(&self, rows: &Bound<'_, PyAny>) -> PyResult<BitMatrix> {
        let rule = "a BitMatrix is indexed by a slice of rows with step 1, as A[i:j]";
        let slice = rows.cast::<PySlice>().map_err(|_| parameter("index", rows, rule))?;
        let bounds = slice.indices(isize::try_from(self.0.rows())?)?;
        if bounds.step != 1 {
            return Err(parameter("index", rows, rule));
        }
        let from = bounds.start as usize;
        Ok(BitMatrix(Arc::new(self.0.slice(from, from + bounds.slicelength).map_err(raise)?)))
    }

    fn __repr__(&self) -> String {
        let bytes = self.0.rows() * self.0.words() * 8;
        format!("BitMatrix({} x {} over GF(2), {} bytes)", self.0.rows(), self.0.columns(), bytes)
    }
}

/// The argument as a packed matrix.
pub fn matrix(name: &str, value: &Bound<'_, PyAny>, threads: Threads<'_, '_>) -> PyResult<Arc<core::BitMatrix>> {
    match value.cast::<BitMatrix>() {
        Ok(packed) => Ok(packed.get().0.clone()),
        Err(_) => Ok(Arc::new(array::matrix(name, value, threads)?)),
    }
}

/// A 0/1 vector, packed, of the length that `what` prescribes.
pub fn vector(name: &str, value: &Bound<'_, PyAny>, length: usize, what: &str) -> PyResult<core::BitMatrix> {
    let packed = array::vector(name, value)?;
    if packed.columns() != length {
        let text = format!("{name} has length {}, but {what} is {length}", packed.columns());
        return Err(raise(hdp_fast_core::Error::Shape(text)));
    }
    Ok(packed)
}

/// The rank of a matrix over GF(2).
///
/// A: 0/1 array (m, d) or BitMatrix. threads: 1 to 1024; None means HDP_FAST_NUM_THREADS, else
/// RAYON_NUM_THREADS, else OMP_NUM_THREADS, else all cores.
/// No privacy: the rank is that of the very rows given.
///
/// Raises: ShapeError, ParameterError.
/// Cost: an elimination of min(m, d + 64) rows, about m d^2 / 8 / log2 d table look-ups of a word, and a pass over all.
/// Source: Albrecht, Bard, Pernet 2011 (decomposition); Albrecht, Bard, Hart 2010 (tables).
#[pyfunction]
#[pyo3(signature = (A, *, threads=None))]
#[allow(non_snake_case)]
pub fn rank(py: Python<'_>, A: &Bound<'_, PyAny>, threads: Option<&Bound<'_, PyAny>>) -> PyResult<usize> {
    let matrix = matrix("A", A, threads)?;
    run(py, threads, elimination_cost(matrix.rows(), matrix.columns()), |run| core::rank(&matrix, run))
}

/// The product A x over GF(2).
///
/// A: 0/1 array (m, d) or BitMatrix; x: 0/1 array (d,); threads: as rank. Returns uint8 (m,). No privacy.
///
/// Raises: ShapeError, ParameterError.
/// Cost: one pass over A.
/// Source: none.
#[pyfunction]
#[pyo3(signature = (A, x, *, threads=None))]
#[allow(non_snake_case)]
pub fn dot<'py>(
    py: Python<'py>,
    A: &Bound<'py, PyAny>,
    x: &Bound<'py, PyAny>,
    threads: Option<&Bound<'py, PyAny>>,
) -> PyResult<Vector<'py>> {
    let matrix = matrix("A", A, threads)?;
    let x = vector("x", x, matrix.columns(), "the number of columns of A")?;
    let cost = streaming_cost(matrix.rows() * matrix.words() * 8);
    let product = run(py, threads, cost, |run| matrix.dot(x.row(0), run))?;
    Ok(array::returned(py, product))
}
