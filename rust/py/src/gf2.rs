//! Glue of the matrices of `hdp_fast.gf2`.

use std::sync::Arc;

use hdp_fast_core::gf2 as core;
use pyo3::prelude::*;
use pyo3::types::PySlice;

use crate::array::{self, Matrix, Threads, Vector};
use crate::error::{parameter, raise};
use crate::run::{elimination_cost, run, streaming_cost};
use crate::scalar::count;

/// A bit-packed matrix over GF(2), made by from_dense or from_packed and never changed.
///
/// `gf2`, `parity`, `local`, `transfer` and learners over bits take it in place of a 0/1 matrix. A[i:j]
/// copies rows, len(A) counts them, and A.to_dense() or numpy.asarray(A) unpacks all of them. It
/// pickles. Memory: shape[0] * ceil(shape[1] / 64) * 8 bytes.
///
/// Raises:
///     TypeError: The class is called; only from_dense and from_packed make a matrix.
///     ParameterError: It is indexed by anything but a slice of rows with step 1.
///
/// Examples:
///     >>> import numpy as np
///     >>> from hdp_fast.gf2 import BitMatrix
///     >>> X = np.random.default_rng().integers(0, 2, (1000, 640), dtype=np.uint8)
///     >>> A = BitMatrix.from_dense(X)
///     >>> A
///     BitMatrix(1000 x 640 over GF(2), 80000 bytes)
///     >>> np.array_equal(A[10:20], X[10:20])
///     True
#[pyclass(frozen, module = "hdp_fast.gf2")]
pub struct BitMatrix(Arc<core::BitMatrix>);

#[pymethods]
impl BitMatrix {
    /// Packs a 0/1 array.
    ///
    /// Args:
    ///     X: Array or frame (m, d) of 0 and 1: bool, integers, or floats that are exactly 0 and 1,
    ///         with any strides, read-only or not.
    ///
    /// Returns:
    ///     The matrix.
    ///
    /// Raises:
    ///     ShapeError: X has not two dimensions.
    ///     ParameterError: X is no such container, or has an entry that is not 0 or 1.
    ///
    /// Cost:
    ///     One pass over X on all threads. The packed copy is the only one.
    #[staticmethod]
    #[allow(non_snake_case)]
    fn from_dense(X: &Bound<'_, PyAny>) -> PyResult<BitMatrix> {
        Ok(BitMatrix(Arc::new(array::matrix("X", X, None)?)))
    }

    /// Takes the rows that numpy.packbits(X, axis=1, bitorder="little") returns.
    ///
    /// Args:
    ///     rows: Array of uint8 (m, ceil(ncols / 8)). Bits beyond the last column are ignored.
    ///     ncols: Number of columns d, at least 0.
    ///
    /// Returns:
    ///     The matrix.
    ///
    /// Raises:
    ///     ShapeError: `rows` and `ncols` do not fit together.
    ///     ParameterError: `rows` has another dtype, or `ncols` is no integer of at least 0.
    ///
    /// Cost:
    ///     One copy.
    #[staticmethod]
    fn from_packed(rows: &Bound<'_, PyAny>, ncols: &Bound<'_, PyAny>) -> PyResult<BitMatrix> {
        Ok(BitMatrix(Arc::new(array::packed_rows("rows", rows, count("ncols", ncols, 0)?)?)))
    }

    /// Numbers of rows and columns.
    #[getter]
    fn shape(&self) -> (usize, usize) {
        (self.0.rows(), self.0.columns())
    }

    /// Unpacks all entries.
    ///
    /// Returns:
    ///     An array of uint8 (m, d).
    ///
    /// Raises:
    ///     MemoryError: m d bytes are not available.
    ///
    /// Cost:
    ///     m d bytes.
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

    /// Refuses numpy's operators, which would silently compute over the integers.
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

impl BitMatrix {
    pub fn new(matrix: core::BitMatrix) -> BitMatrix {
        BitMatrix(Arc::new(matrix))
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

/// Computes the rank of a matrix over GF(2).
///
/// It is the rank of exactly these rows, and nothing about them is private.
///
/// Args:
///     A: Array (m, d) of 0 and 1, or a BitMatrix.
///     threads: Number of threads, 1 to 1024. None means HDP_FAST_NUM_THREADS, else RAYON_NUM_THREADS,
///         else OMP_NUM_THREADS, else all cores.
///
/// Returns:
///     The rank.
///
/// Raises:
///     ShapeError: A has not two dimensions.
///     ParameterError: A holds anything but 0 and 1, or `threads` is out of range.
///
/// Cost:
///     min(m, d + 64) rows are eliminated, in at most min(m, d + 64) d rank / 64 word operations, of
///     which tables of sums of rows save most. All other rows are verified, in m d (1 + nullity) / 64
///     word operations.
///
/// Source:
///     Albrecht, Bard and Pernet 2011 (decomposition); Albrecht, Bard and Hart 2010 (tables).
///
/// Examples:
///     >>> from hdp_fast import gf2
///     >>> gf2.rank([[1, 1, 0], [0, 1, 1], [1, 0, 1]])  # the third row is the sum of the others
///     2
#[pyfunction]
#[pyo3(signature = (A, *, threads=None))]
#[allow(non_snake_case)]
pub fn rank(py: Python<'_>, A: &Bound<'_, PyAny>, threads: Option<&Bound<'_, PyAny>>) -> PyResult<usize> {
    let matrix = matrix("A", A, threads)?;
    run(py, threads, elimination_cost(matrix.rows(), matrix.columns()), |run| core::rank(&matrix, run))
}

/// Computes the product A x over GF(2). Nothing about it is private.
///
/// Args:
///     A: Array (m, d) of 0 and 1, or a BitMatrix.
///     x: Array (d,) of 0 and 1.
///     threads: Number of threads, 1 to 1024. None means HDP_FAST_NUM_THREADS, else RAYON_NUM_THREADS,
///         else OMP_NUM_THREADS, else all cores.
///
/// Returns:
///     An array of uint8 (m,).
///
/// Raises:
///     ShapeError: A has not two dimensions, x has not one, or x is not as long as A has columns.
///     ParameterError: A or x holds anything but 0 and 1, or `threads` is out of range.
///
/// Cost:
///     One pass over A.
///
/// Examples:
///     >>> from hdp_fast import gf2
///     >>> gf2.dot([[1, 1, 0], [0, 1, 1]], [1, 1, 1])  # parities of two and two bits
///     array([0, 0], dtype=uint8)
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
