//! Glue of the bit matrix of `hdp_fast.gf2`.

use std::sync::Arc;

use hdp_fast_core::gf2 as core;
use hdp_fast_core::noise::Stream;
use hdp_fast_core::run::Run;
use hdp_fast_core::{Error, Result};
use num_bigint::BigUint;
use pyo3::basic::CompareOp;
use pyo3::exceptions::{PyIndexError, PyOSError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PySlice, PyString, PyTuple};

use crate::array::{self, Matrix, Threads};
use crate::error::{parameter, raise};
use crate::run::{elimination_cost, run, streaming_cost};
use crate::scalar::count;
use crate::seed::Key;

/// Bytes of a sparse matrix that are written out at a time.
const DENSE_BYTES: usize = 1 << 24;

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
        let columns = count("ncols", ncols, 0)?;
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
            data.extend(integer.iter_u64_digits());
            data.resize(columns.div_ceil(64) * number, 0);
        }
        core::BitMatrix::from_words(number, columns, data).map(BitMatrix::new).map_err(raise)
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
        let rule = "X is not sparse, but it must be a sparse array of scipy; from_dense takes others";
        let sparse = || raise(Error::Parameter(rule.into()));
        if !X.hasattr("nnz")? {
            return Err(sparse());
        }
        let numpy = py.import("numpy")?;
        let rows = X.call_method0("tocsr").map_err(|_| sparse())?;
        let (m, d): (usize, usize) = rows.getattr("shape")?.extract().map_err(|_| sparse())?;
        let step = (DENSE_BYTES / d.max(1)).clamp(1, m.max(1));
        let mut parts = vec![core::BitMatrix::zeros(0, d).map_err(raise)?];
        for from in (0..m).step_by(step) {
            let part = rows.get_item(PySlice::new(py, from as isize, m.min(from + step) as isize, 1))?;
            let entries = part.call_method0("toarray")?;
            let bits = entries.call_method1("astype", ("uint8",)).map_err(|_| sparse())?;
            // What was rounded was none.
            if !numpy.call_method1("array_equal", (&bits, entries))?.is_truthy()? {
                return Err(raise(Error::not_bits("X")));
            }
            parts.push(array::matrix("X", &bits, None)?);
        }
        let parts: Vec<&core::BitMatrix> = parts.iter().collect();
        run(py, None, 0.0, |run| core::BitMatrix::vstack(&parts, run)).map(BitMatrix::new)
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
    ///     ParameterError: It is no such file.
    ///     OSError: It can't be read.
    #[staticmethod]
    fn from_npz(py: Python<'_>, path: &str) -> PyResult<BitMatrix> {
        let wrong = |error: PyErr| match error.is_instance_of::<PyOSError>(py) {
            true => error,
            false => parameter("path", path, "it must be an .npz file with the arrays X_packed and ncols"),
        };
        let archive = py.import("numpy")?.call_method1("load", (path,)).map_err(wrong)?;
        let read = || -> PyResult<_> { Ok((archive.get_item("X_packed")?, archive.get_item("ncols")?)) };
        let read = read().map_err(wrong);
        if archive.hasattr("close")? {
            archive.call_method0("close")?;
        }
        let (rows, columns) = read?;
        let columns = columns.call_method0("item").map_err(wrong)?;
        Ok(BitMatrix(Arc::new(array::packed_rows("X_packed", &rows, count("ncols", &columns, 0)?)?)))
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
        let row =
            |i| BigUint::from_bytes_le(&self.0.row(i).iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>());
        (0..self.0.rows()).map(row).collect()
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
        let options = PyDict::new(py);
        options.set_item("X_packed", self.to_packed(py)?)?;
        options.set_item("ncols", self.0.columns())?;
        py.import("numpy")?.call_method("savez", (path,), Some(&options)).map(drop)
    }

    /// The transpose, a copy.
    #[getter(T)]
    fn transposed(&self, py: Python<'_>) -> PyResult<BitMatrix> {
        run(py, None, self.copying(), |run| self.0.transposed(run)).map(BitMatrix::new)
    }

    /// Counts the ones.
    ///
    /// Args:
    ///     axis: None counts all, 0 those of each column, 1 those of each row. Sums over GF(2) are these
    ///         numbers modulo 2.
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
        let number = count("axis", axis, 0)?;
        if number > 1 {
            return Err(parameter("axis", number, "it must be None, 0 or 1"));
        }
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

/// What one index of a matrix asks for.
enum Axis {
    One(usize),
    /// So many from the first on.
    Range(usize, usize),
    /// Those of a slice with another step.
    Stepped(Vec<usize>),
    /// Those of an index array or a mask, of which an array pairs two: there is one at most.
    Listed(Vec<usize>),
}

impl Axis {
    fn new(value: &Bound<'_, PyAny>, size: usize, what: &str) -> PyResult<Axis> {
        if let Ok(slice) = value.cast::<PySlice>() {
            let bounds = slice.indices(isize::try_from(size)?)?;
            if bounds.step == 1 {
                return Ok(Axis::Range(bounds.start as usize, bounds.slicelength));
            }
            let places = (0..bounds.slicelength as isize).map(|k| (bounds.start + k * bounds.step) as usize);
            return Ok(Axis::Stepped(places.collect()));
        }
        let place = |index: isize| {
            let at = if index < 0 { index.checked_add_unsigned(size) } else { Some(index) };
            let at = at.and_then(|at| usize::try_from(at).ok()).filter(|&at| at < size);
            at.ok_or_else(|| PyIndexError::new_err(format!("{what} {index} is out of range: there are {size}")))
        };
        if value.is_instance_of::<PyBool>() || value.is_instance_of::<PyString>() {
            return Err(Axis::refused());
        }
        if let Ok(index) = value.extract::<isize>() {
            return place(index).map(Axis::One);
        }
        let numpy = value.py().import("numpy")?;
        let places = numpy.call_method1("asarray", (value,)).map_err(|_| Axis::refused())?;
        let kind: String = places.getattr("dtype")?.getattr("kind")?.extract()?;
        let shape = places.getattr("shape")?.extract::<(usize,)>().map_err(|_| Axis::refused())?;
        let places = match kind.as_str() {
            "b" if shape.0 == size => numpy.call_method1("flatnonzero", (places,))?,
            "i" | "u" => places,
            _ if shape.0 == 0 => return Ok(Axis::Listed(Vec::new())),
            _ => return Err(Axis::refused()),
        };
        let places: Vec<isize> = places.call_method0("tolist")?.extract().map_err(|_| Axis::refused())?;
        places.into_iter().map(place).collect::<PyResult<_>>().map(Axis::Listed)
    }

    fn is_one(&self) -> bool {
        matches!(self, Axis::One(_))
    }

    fn refused() -> PyErr {
        let text = "index is something else, but a BitMatrix takes integers, slices, and an index array or a mask as \
                    long as the axis, for one axis at a time: A[rows][:, columns]";
        raise(Error::Parameter(text.into()))
    }
}

/// The rows and columns that an index asks for.
fn part(matrix: &core::BitMatrix, rows: &Axis, columns: &Axis, run: Run<'_>) -> Result<core::BitMatrix> {
    let whole = matches!(columns, Axis::Range(_, count) if *count == matrix.columns());
    let rows = match rows {
        Axis::One(i) => matrix.slice(*i, i + 1)?,
        Axis::Range(from, count) => matrix.slice(*from, from + count)?,
        Axis::Stepped(rows) | Axis::Listed(rows) => matrix.take_rows(rows, run)?,
    };
    match columns {
        _ if whole => Ok(rows),
        Axis::One(j) => rows.slice_columns(*j, j + 1, run),
        Axis::Range(from, count) => rows.slice_columns(*from, from + count, run),
        Axis::Stepped(columns) | Axis::Listed(columns) => rows.take_columns(columns, run),
    }
}

fn multiply<'py>(py: Python<'py>, left: &core::BitMatrix, right: &core::BitMatrix) -> PyResult<Bound<'py, PyAny>> {
    let cost = elimination_cost(left.rows(), left.columns()) * (right.words() + 1) as f64;
    let product = run(py, None, cost, |run| left.multiply(right, run))?;
    Ok(BitMatrix::new(product).into_pyobject(py)?.into_any())
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
