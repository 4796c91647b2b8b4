//! Glue of the bit matrix of `hdp_fast.gf2`.

mod containers;
mod index;

use std::sync::Arc;

use hdp_fast_core::gf2 as core;
use hdp_fast_core::noise::Stream;
use hdp_fast_core::run::Run;
use num_bigint::BigUint;
use pyo3::basic::CompareOp;
use pyo3::exceptions::{PyIndexError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyTuple};

use self::index::{Axis, part};
use crate::array::{self, Matrix, Threads};
use crate::error::{parameter, raise};
use crate::run::{elimination_cost, run, streaming_cost};
use crate::scalar::count;
use crate::seed::Key;

/// Rows and columns that the representation shows.
const CORNER: (usize, usize) = (6, 24);

/// A bit-packed matrix over GF(2), made by its functions and never changed.
///
/// `gf2`, `parity`, `local`, `transfer` and learners over bits take it in place of a 0/1 matrix.
/// A[i] and A[:, j] are arrays of uint8, A[i, j] is an int; slices and index arrays or masks, of one
/// axis at a time, copy into another matrix. A @ B, A ^ B, A & B and ~A are taken over GF(2), with
/// matrices or 0/1 arrays on either side; a product with a vector is an array of uint8. A == B compares
/// all entries of two matrices, and so a matrix has no hash. numpy.asarray(A) unpacks it. It pickles,
/// out of band with protocol 5. Memory: shape[0] * ceil(shape[1] / 64) * 8 bytes.
///
/// Raises:
///     TypeError: The class is called, or a matrix is compared with an array.
///     ShapeError: Operands do not fit together.
///     ParameterError: It is indexed by anything else, or an operand holds anything but 0 and 1.
///     IndexError: An index is out of range.
///
/// Examples:
///     >>> import numpy as np
///     >>> from hdp_fast.gf2 import BitMatrix
///     >>> X = np.random.default_rng().integers(0, 2, (1000, 640), dtype=np.uint8)
///     >>> A = BitMatrix.from_dense(X)
///     >>> np.array_equal(A[10:20, ::2], X[10:20, ::2])
///     True
///     >>> (A @ A.T).shape, A ^ A == BitMatrix.zeros(1000, 640)
///     ((1000, 1000), True)
///     >>> BitMatrix.identity(3)
///     BitMatrix(3 x 3 over GF(2), density 0.3333)
///     1 0 0
///     0 1 0
///     0 0 1
#[pyclass(frozen, module = "hdp_fast.gf2")]
pub struct BitMatrix(pub Arc<core::BitMatrix>);

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

    /// Makes the matrix of zeros.
    ///
    /// Args:
    ///     nrows: Number of rows, at least 0.
    ///     ncols: Number of columns, at least 0.
    ///
    /// Returns:
    ///     The matrix.
    ///
    /// Raises:
    ///     ParameterError: `nrows` or `ncols` is no integer of at least 0.
    #[staticmethod]
    fn zeros(nrows: &Bound<'_, PyAny>, ncols: &Bound<'_, PyAny>) -> PyResult<BitMatrix> {
        let (rows, columns) = (count("nrows", nrows, 0)?, count("ncols", ncols, 0)?);
        core::BitMatrix::zeros(rows, columns).map(BitMatrix::new).map_err(raise)
    }

    /// Makes the identity matrix.
    ///
    /// Args:
    ///     n: Number of rows and columns, at least 0.
    ///
    /// Returns:
    ///     The matrix.
    ///
    /// Raises:
    ///     ParameterError: `n` is no integer of at least 0.
    #[staticmethod]
    fn identity(n: &Bound<'_, PyAny>) -> PyResult<BitMatrix> {
        core::BitMatrix::identity(count("n", n, 0)?).map(BitMatrix::new).map_err(raise)
    }

    /// Draws a matrix of independent fair bits.
    ///
    /// Args:
    ///     nrows: Number of rows, at least 0.
    ///     ncols: Number of columns, at least 0.
    ///     random_state: None draws from the operating system. An int or a numpy Generator makes the
    ///         draw repeatable.
    ///
    /// Returns:
    ///     The matrix.
    ///
    /// Raises:
    ///     ParameterError: `nrows` or `ncols` is no integer of at least 0, or `random_state` is not of
    ///         its kind.
    ///
    /// Guarantee:
    ///     The bits are exactly fair. They protect no record.
    #[staticmethod]
    #[pyo3(signature = (nrows, ncols, *, random_state=None))]
    fn random(
        py: Python<'_>,
        nrows: &Bound<'_, PyAny>,
        ncols: &Bound<'_, PyAny>,
        random_state: Option<Key>,
    ) -> PyResult<BitMatrix> {
        let (rows, columns) = (count("nrows", nrows, 0)?, count("ncols", ncols, 0)?);
        let mut rng = random_state.map_or_else(Key::from_os, Ok)?.stream(Stream::Solution, 0);
        let cost = streaming_cost(rows.saturating_mul(columns) / 4);
        run(py, None, cost, |run| core::BitMatrix::random(rows, columns, &mut rng, run)).map(BitMatrix::new)
    }

    /// Takes integers as rows: bit j of an integer is the entry of column j.
    ///
    /// Args:
    ///     rows: Integers of at least 0 and below `2**ncols`, one a row.
    ///     ncols: Number of columns, at least 0.
    ///
    /// Returns:
    ///     The matrix.
    ///
    /// Raises:
    ///     ParameterError: `rows` holds anything else, or `ncols` is no integer of at least 0.
    ///
    /// Examples:
    ///     >>> from hdp_fast.gf2 import BitMatrix
    ///     >>> BitMatrix.from_integers([6, 1], 3).to_dense()
    ///     array([[0, 1, 1],
    ///            [1, 0, 0]], dtype=uint8)
    #[staticmethod]
    fn from_integers(rows: &Bound<'_, PyAny>, ncols: &Bound<'_, PyAny>) -> PyResult<BitMatrix> {
        containers::from_integers(rows, count("ncols", ncols, 0)?).map(BitMatrix::new)
    }

    /// Takes a sparse matrix of scipy, a part of its rows at a time.
    ///
    /// Args:
    ///     X: Sparse array or matrix (m, d) of 0 and 1, of any format.
    ///
    /// Returns:
    ///     The matrix.
    ///
    /// Raises:
    ///     ParameterError: X is not sparse, or holds anything but 0 and 1.
    ///
    /// Cost:
    ///     m d / 8 bytes, and a pass over as many zeros.
    #[staticmethod]
    #[allow(non_snake_case)]
    fn from_sparse(py: Python<'_>, X: &Bound<'_, PyAny>) -> PyResult<BitMatrix> {
        containers::from_sparse(py, X).map(BitMatrix::new)
    }

    /// Reads a file of numpy that to_npz has written, or any with the arrays X_packed and ncols.
    ///
    /// Args:
    ///     path: The file.
    ///
    /// Returns:
    ///     The matrix.
    ///
    /// Raises:
    ///     ParameterError: It is no such file, or can't be read.
    #[staticmethod]
    fn from_npz(py: Python<'_>, path: &str) -> PyResult<BitMatrix> {
        containers::from_npz(py, path).map(BitMatrix::new)
    }

    /// Numbers of rows and columns.
    #[getter]
    fn shape(&self) -> (usize, usize) {
        (self.0.rows(), self.0.columns())
    }

    /// Unpacks all entries.
    ///
    /// Args:
    ///     out: Array of uint8 (m, d), contiguous by rows, that takes them. None makes one.
    ///
    /// Returns:
    ///     An array of uint8 (m, d), `out` if that is given.
    ///
    /// Raises:
    ///     ShapeError: `out` has another shape.
    ///     ParameterError: `out` is no such array.
    ///     MemoryError: m d bytes are not available.
    ///
    /// Cost:
    ///     m d bytes.
    #[pyo3(signature = (*, out=None))]
    fn to_dense<'py>(&self, py: Python<'py>, out: Option<&Bound<'py, PyAny>>) -> PyResult<Matrix<'py>> {
        out.map_or_else(|| array::unpacked(py, &self.0), |out| array::unpacked_into("out", out, &self.0))
    }

    /// Packs the rows as numpy.packbits(X, axis=1, bitorder="little") does.
    ///
    /// Returns:
    ///     An array of uint8 (m, ceil(d / 8)), which from_packed takes.
    ///
    /// Cost:
    ///     One copy.
    fn to_packed<'py>(&self, py: Python<'py>) -> PyResult<Matrix<'py>> {
        array::packed(py, &self.0)
    }

    /// Returns the rows as integers.
    ///
    /// Returns:
    ///     A list of m ints; bit j of each is the entry of column j.
    fn to_integers(&self) -> Vec<BigUint> {
        containers::to_integers(&self.0)
    }

    /// Writes a file of numpy with the arrays X_packed and ncols, which from_npz and the command line
    /// read.
    ///
    /// Args:
    ///     path: The file; numpy adds .npz to a name without it.
    ///
    /// Returns:
    ///     None.
    ///
    /// Raises:
    ///     ParameterError: `path` is none.
    ///     OSError: It can't be written.
    fn to_npz(&self, py: Python<'_>, path: &str) -> PyResult<()> {
        containers::to_npz(py, &self.0, path)
    }

    /// Makes a sparse array of scipy.
    ///
    /// Returns:
    ///     A scipy.sparse.csr_array of uint8 (m, d).
    ///
    /// Raises:
    ///     ImportError: scipy is not installed.
    ///
    /// Cost:
    ///     9 bytes for each one, and 8 for each row.
    fn to_sparse<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        containers::to_sparse(py, &self.0)
    }

    /// The transpose, a copy.
    #[getter(T)]
    fn transposed(&self, py: Python<'_>) -> PyResult<BitMatrix> {
        run(py, None, self.copying(), |run| self.0.transposed(run)).map(BitMatrix::new)
    }

    /// Takes rows or columns by their indices; they may come twice, and in any order.
    ///
    /// Args:
    ///     indices: Array of integers, those below 0 counted from the end, or a mask.
    ///     axis: 0 takes rows, 1 columns.
    ///
    /// Returns:
    ///     The matrix of them, as A[indices] or A[:, indices].
    ///
    /// Raises:
    ///     ParameterError: `indices` is no such array, or `axis` is neither 0 nor 1.
    ///     IndexError: An index is out of range.
    ///
    /// Cost:
    ///     A copy; two transpositions more for columns.
    #[pyo3(signature = (indices, axis=None))]
    fn take(&self, py: Python<'_>, indices: &Bound<'_, PyAny>, axis: Option<&Bound<'_, PyAny>>) -> PyResult<BitMatrix> {
        let (rows, columns) = self.shape();
        let by_rows = axis.map_or(Ok(0), axis_of)? == 0;
        let (size, what) = if by_rows { (rows, "row") } else { (columns, "column") };
        let wrong = || parameter("indices", "something else", "it must be an array of integers, or a mask as long");
        let listed = match Axis::new(indices, size, what) {
            Ok(listed @ Axis::Listed(_)) => listed,
            Err(error) if error.is_instance_of::<PyIndexError>(py) => return Err(error),
            _ => return Err(wrong()),
        };
        let all = Axis::Range(0, if by_rows { columns } else { rows });
        let (rows, columns) = if by_rows { (listed, all) } else { (all, listed) };
        run(py, None, self.copying(), |run| part(&self.0, &rows, &columns, run)).map(BitMatrix::new)
    }

    /// Puts rows and columns in another order.
    ///
    /// Args:
    ///     rows: Which row of A stands in each row of the result; None leaves them.
    ///     columns: Which column of A stands in each column; None leaves them.
    ///
    /// Returns:
    ///     A[rows][:, columns].
    ///
    /// Raises:
    ///     ParameterError: `rows` or `columns` is no permutation.
    ///
    /// Cost:
    ///     A pass over A for the rows, and transpositions for the columns, as in `take`.
    ///
    /// Examples:
    ///     >>> from hdp_fast.gf2 import BitMatrix
    ///     >>> BitMatrix.identity(3).permute(rows=[2, 0, 1]).to_integers()
    ///     [4, 1, 2]
    #[pyo3(signature = (*, rows=None, columns=None))]
    fn permute(
        &self,
        py: Python<'_>,
        rows: Option<&Bound<'_, PyAny>>,
        columns: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<BitMatrix> {
        let rows = Axis::permutation("rows", rows, self.0.rows())?;
        let columns = Axis::permutation("columns", columns, self.0.columns())?;
        run(py, None, self.copying(), |run| part(&self.0, &rows, &columns, run)).map(BitMatrix::new)
    }

    /// Sums entries over GF(2).
    ///
    /// Args:
    ///     axis: None sums all, 0 those of each column, 1 those of each row.
    ///
    /// Returns:
    ///     0 or 1, or an array of uint8 (d,) or (m,).
    ///
    /// Raises:
    ///     ParameterError: `axis` is none of these.
    ///
    /// Cost:
    ///     One pass.
    #[pyo3(signature = (axis=None))]
    fn sum<'py>(&self, py: Python<'py>, axis: Option<&Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyAny>> {
        let Some(axis) = axis else {
            let ones = run(py, None, self.copying(), |run| self.0.row_weights(run))?.iter().sum::<i64>();
            return Ok((ones & 1).into_pyobject(py)?.into_any());
        };
        let sum = if axis_of(axis)? == 0 { core::BitMatrix::column_sums } else { core::BitMatrix::row_sums };
        let sums = run(py, None, self.copying(), |run| sum(&self.0, run))?;
        Ok(array::returned(py, sums).into_any())
    }

    /// Counts the ones.
    ///
    /// Args:
    ///     axis: None counts all, 0 those of each column, 1 those of each row.
    ///
    /// Returns:
    ///     An int, or an array of int64 (d,) or (m,).
    ///
    /// Raises:
    ///     ParameterError: `axis` is none of these.
    ///
    /// Cost:
    ///     One pass; a transposition for columns.
    #[pyo3(signature = (axis=None))]
    fn popcount<'py>(&self, py: Python<'py>, axis: Option<&Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyAny>> {
        let Some(axis) = axis else {
            let rows = run(py, None, self.copying(), |run| self.0.row_weights(run))?;
            return Ok(rows.iter().sum::<i64>().into_pyobject(py)?.into_any());
        };
        let number = axis_of(axis)?;
        let count = |run: Run<'_>| if number == 0 { self.0.column_weights(run) } else { self.0.row_weights(run) };
        Ok(array::returned(py, run(py, None, self.copying(), count)?).into_any())
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
        let dense = self.to_dense(py, None)?.into_any();
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

    fn __getitem__<'py>(&self, py: Python<'py>, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let (rows, columns) = match key.cast::<PyTuple>() {
            Ok(pair) if pair.len() == 2 => (pair.get_item(0)?, Some(pair.get_item(1)?)),
            Ok(_) => return Err(Axis::refused()),
            Err(_) => (key.clone(), None),
        };
        let rows = Axis::new(&rows, self.0.rows(), "row")?;
        let columns = match &columns {
            Some(columns) => Axis::new(columns, self.0.columns(), "column")?,
            None => Axis::Range(0, self.0.columns()),
        };
        let matrix = match (&rows, &columns) {
            (Axis::One(i), Axis::One(j)) => return Ok(self.0.bit(*i, *j).into_pyobject(py)?.into_any()),
            (Axis::Listed(_), Axis::Listed(_)) => return Err(Axis::refused()),
            _ => run(py, None, self.copying(), |run| part(&self.0, &rows, &columns, run))?,
        };
        if rows.is_one() || columns.is_one() {
            let entries = array::unpacked(py, &matrix)?;
            return entries.call_method1("reshape", (-1,));
        }
        Ok(BitMatrix::new(matrix).into_pyobject(py)?.into_any())
    }

    fn __richcmp__(&self, py: Python<'_>, other: &Bound<'_, PyAny>, op: CompareOp) -> PyResult<Py<PyAny>> {
        let equal = match (other.cast::<BitMatrix>(), op) {
            (Ok(other), CompareOp::Eq) => *self.0 == *other.get().0,
            (Ok(other), CompareOp::Ne) => *self.0 != *other.get().0,
            (Err(_), CompareOp::Eq | CompareOp::Ne) if other.hasattr("__array__")? => {
                let text = "a BitMatrix is compared with a BitMatrix: BitMatrix.from_dense(X) makes one of an array";
                return Err(PyTypeError::new_err(text));
            }
            _ => return Ok(py.NotImplemented()),
        };
        Ok(PyBool::new(py, equal).to_owned().into_any().unbind())
    }

    fn __matmul__<'py>(&self, py: Python<'py>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        if is_vector(other) {
            let x = vector("other", other, self.0.columns(), "the number of columns")?;
            let product = run(py, None, self.copying(), |run| self.0.dot(x.row(0), run))?;
            return Ok(array::returned(py, product).into_any());
        }
        let right = matrix("other", other, None)?;
        multiply(py, &self.0, &right)
    }

    fn __rmatmul__<'py>(&self, py: Python<'py>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        if is_vector(other) {
            let x = vector("other", other, self.0.rows(), "the number of rows")?;
            let product = run(py, None, self.copying(), |run| self.0.combine(x.row(0), run))?;
            return Ok(array::returned(py, product).into_any());
        }
        let left = matrix("other", other, None)?;
        multiply(py, &left, &self.0)
    }

    fn __xor__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<BitMatrix> {
        let other = matrix("other", other, None)?;
        run(py, None, self.copying(), |run| self.0.sum(&other, run)).map(BitMatrix::new)
    }

    fn __rxor__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<BitMatrix> {
        self.__xor__(py, other)
    }

    fn __and__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<BitMatrix> {
        let other = matrix("other", other, None)?;
        run(py, None, self.copying(), |run| self.0.and(&other, run)).map(BitMatrix::new)
    }

    fn __rand__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<BitMatrix> {
        self.__and__(py, other)
    }

    fn __invert__(&self, py: Python<'_>) -> PyResult<BitMatrix> {
        run(py, None, self.copying(), |run| self.0.complement(run)).map(BitMatrix::new)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let (rows, columns) = (self.0.rows(), self.0.columns());
        if rows == 0 || columns == 0 {
            return Ok(format!("BitMatrix({rows} x {columns} over GF(2))"));
        }
        let ones = run(py, None, self.copying(), |run| self.0.row_weights(run))?.iter().sum::<i64>();
        let density = ones as f64 / (rows as f64 * columns as f64);
        let mut text = format!("BitMatrix({rows} x {columns} over GF(2), density {density:.4})");
        for i in 0..rows.min(CORNER.0) {
            let bits = (0..columns.min(CORNER.1)).map(|j| if self.0.bit(i, j) == 1 { " 1" } else { " 0" });
            let line: String = bits.collect();
            text += "\n";
            text += line.trim_start();
            text += if columns > CORNER.1 { " ..." } else { "" };
        }
        Ok(text + if rows > CORNER.0 { "\n..." } else { "" })
    }
}

impl BitMatrix {
    pub fn new(matrix: core::BitMatrix) -> BitMatrix {
        BitMatrix(Arc::new(matrix))
    }

    /// Rough cost of a pass over the matrix.
    fn copying(&self) -> f64 {
        streaming_cost(self.0.rows() * self.0.words() * 16)
    }
}

fn multiply<'py>(py: Python<'py>, left: &core::BitMatrix, right: &core::BitMatrix) -> PyResult<Bound<'py, PyAny>> {
    let cost = elimination_cost(left.rows(), left.columns()) * (right.words() + 1) as f64;
    let product = run(py, None, cost, |run| left.multiply(right, run))?;
    Ok(BitMatrix::new(product).into_pyobject(py)?.into_any())
}

fn axis_of(axis: &Bound<'_, PyAny>) -> PyResult<usize> {
    let number = count("axis", axis, 0)?;
    if number > 1 { Err(parameter("axis", number, "it must be 0 or 1")) } else { Ok(number) }
}

fn is_vector(value: &Bound<'_, PyAny>) -> bool {
    value.getattr("ndim").and_then(|ndim| ndim.extract::<usize>()).is_ok_and(|ndim| ndim == 1)
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
