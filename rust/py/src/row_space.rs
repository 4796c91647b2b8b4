//! Glue of the spans of equations of `hdp_fast.gf2`.

use std::sync::Arc;

use hdp_fast_core::Result;
use hdp_fast_core::gf2::{self, System};
use hdp_fast_core::run::Run;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::array::{self, Threads, Vector};
use crate::bit_matrix::{BitMatrix, matrix, vector};
use crate::error::{parameter, raise};
use crate::lock::Locked;
use crate::run::{elimination_cost, run, streaming_cost};
use crate::scalar::count;

/// All equations over GF(2) that follow from some: spans that add up, wherever their parts lie.
///
/// `RowSpace(d)` is the space of no equation, and `RowSpace.of` that of a system. Spaces of parts of the equations join
/// by `+`, in any order, to the space of all of them, on whatever machine each was made. A space is held as its reduced
/// row echelon form, of which there is one: spaces are equal where their forms are. What the form has at its pivots is
/// not stored: for rank r of d unknowns r (d - r + 1) bits are, so that a space of full rank is a vector. It never
/// changes, and pickles.
///
/// Args:
///     d: Number of unknowns, at least 0.
///
/// Attributes:
///     unknowns: Their number d.
///     basis: The form, a BitMatrix (r, d + 1), whose last column holds the right-hand sides. It is made when it is
///         asked for.
///     rank: Rank of the coefficients.
///     consistent: Whether there is a solution.
///
/// Raises:
///     ParameterError: `d` is no integer of at least 0.
///
/// Examples:
///     >>> from hdp_fast import gf2
///     >>> space = gf2.RowSpace(3).add([[1, 0, 1]], [1]) + gf2.RowSpace.of([[0, 1, 1]], [0])
///     >>> space
///     RowSpace(rank 2 of 3 unknowns)
///     >>> space == gf2.RowSpace.of([[0, 1, 1], [1, 1, 0]], [0, 1])
///     True
///     >>> space.contains([[1, 1, 0], [1, 1, 0]], [1, 0])
///     array([1, 0], dtype=uint8)
///     >>> gf2.RowSpace.from_bytes(space.to_bytes()) == space
///     True
#[pyclass(frozen, eq, module = "hdp_fast.gf2")]
#[derive(PartialEq)]
pub struct RowSpace(pub Arc<gf2::RowSpace>);

#[pymethods]
impl RowSpace {
    #[new]
    fn empty(d: &Bound<'_, PyAny>) -> PyResult<RowSpace> {
        gf2::RowSpace::new(count("d", d, 0)?).map(RowSpace::new).map_err(raise)
    }

    /// Computes the span of the equations A x = b.
    ///
    /// Args:
    ///     A: Coefficients, array (m, d) of 0 and 1, or a BitMatrix.
    ///     b: Right-hand side, array (m,) of 0 and 1.
    ///     threads: Number of threads, 1 to 1024. None means HDP_FAST_NUM_THREADS, else RAYON_NUM_THREADS,
    ///         else OMP_NUM_THREADS, else all cores.
    ///
    /// Returns:
    ///     The space.
    ///
    /// Raises:
    ///     ShapeError: A has not two dimensions, b has not one, or b is not as long as A has rows.
    ///     ParameterError: A or b holds anything but 0 and 1, or `threads` is out of range.
    ///
    /// Cost:
    ///     That of `solve`, and d (d - rank) / 64 word operations a row of the form.
    #[staticmethod]
    #[pyo3(signature = (A, b, *, threads=None))]
    #[allow(non_snake_case)]
    fn of(py: Python<'_>, A: &Bound<'_, PyAny>, b: &Bound<'_, PyAny>, threads: Threads<'_, '_>) -> PyResult<RowSpace> {
        let matrix = matrix("A", A, threads)?;
        let empty = gf2::RowSpace::new(matrix.columns()).map_err(raise)?;
        with_rows(py, &matrix, b, threads, |system, run| empty.add(system, run)).map(RowSpace::new)
    }

    /// Computes the span of these equations and of A x = b.
    ///
    /// Args:
    ///     A: Coefficients, array (m, d) of 0 and 1, or a BitMatrix.
    ///     b: Right-hand side, array (m,) of 0 and 1.
    ///     threads: Number of threads, 1 to 1024. None means HDP_FAST_NUM_THREADS, else RAYON_NUM_THREADS,
    ///         else OMP_NUM_THREADS, else all cores.
    ///
    /// Returns:
    ///     The space of both; this one stays as it is.
    ///
    /// Raises:
    ///     ShapeError: A has not two dimensions or not d columns, or b is not a vector as long as A has rows.
    ///     ParameterError: A or b holds anything but 0 and 1, or `threads` is out of range.
    ///
    /// Cost:
    ///     At full rank d / 64 word operations an equation. Otherwise m d (d - rank) / 64 to reduce them, an
    ///     elimination of what is left in d - rank unknowns, and as much again as the rank grows by, for the form.
    #[pyo3(signature = (A, b, *, threads=None))]
    #[allow(non_snake_case)]
    fn add(
        &self,
        py: Python<'_>,
        A: &Bound<'_, PyAny>,
        b: &Bound<'_, PyAny>,
        threads: Threads<'_, '_>,
    ) -> PyResult<RowSpace> {
        let matrix = matrix("A", A, threads)?;
        with_rows(py, &matrix, b, threads, |system, run| self.0.add(system, run)).map(RowSpace::new)
    }

    /// Tells which of the equations A x = b follow from these.
    ///
    /// Args:
    ///     A: Coefficients, array (m, d) of 0 and 1, or a BitMatrix.
    ///     b: Right-hand side, array (m,) of 0 and 1.
    ///     threads: Number of threads, 1 to 1024. None means HDP_FAST_NUM_THREADS, else RAYON_NUM_THREADS,
    ///         else OMP_NUM_THREADS, else all cores.
    ///
    /// Returns:
    ///     An array of uint8 (m,), 1 for those that do. Where there is no solution, the right-hand sides don't matter.
    ///
    /// Raises:
    ///     ShapeError: A has not two dimensions or not d columns, or b is not a vector as long as A has rows.
    ///     ParameterError: A or b holds anything but 0 and 1, or `threads` is out of range.
    ///
    /// Cost:
    ///     m d (d - rank + 1) / 64 word operations.
    #[pyo3(signature = (A, b, *, threads=None))]
    #[allow(non_snake_case)]
    fn contains<'py>(
        &self,
        py: Python<'py>,
        A: &Bound<'py, PyAny>,
        b: &Bound<'py, PyAny>,
        threads: Threads<'_, 'py>,
    ) -> PyResult<Vector<'py>> {
        let matrix = matrix("A", A, threads)?;
        let follows = with_rows(py, &matrix, b, threads, |system, run| self.0.contains(system, run))?;
        Ok(array::returned(py, follows))
    }

    /// Takes the form that `basis` holds.
    ///
    /// Args:
    ///     basis: A BitMatrix or array (r, d + 1) of 0 and 1.
    ///
    /// Returns:
    ///     The space.
    ///
    /// Raises:
    ///     ShapeError: It has not two dimensions.
    ///     ParameterError: It is no reduced row echelon form.
    #[staticmethod]
    fn from_basis(py: Python<'_>, basis: &Bound<'_, PyAny>) -> PyResult<RowSpace> {
        let basis = matrix("basis", basis, None)?;
        let cost = 8.0 * streaming_cost(basis.rows() * basis.columns());
        run(py, None, cost, |run| gf2::RowSpace::from_basis(&basis, run)).map(RowSpace::new)
    }

    /// Writes the space, for another process or machine.
    ///
    /// Returns:
    ///     A header with a version, a bit for each unknown that says whether a row of the form begins with it, the
    ///     other coefficients row by row, and the right-hand sides: about d / 8 + r (d - r + 1) / 8 bytes for rank r.
    ///     There is one form for each space. It is as private as the equations.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let cost = 8.0 * streaming_cost(self.0.rank() * self.0.nullity() / 8);
        run(py, None, cost, |_| self.0.to_bytes()).map(|bytes| PyBytes::new(py, &bytes))
    }

    /// Reads what to_bytes wrote.
    ///
    /// Args:
    ///     content: The bytes.
    ///
    /// Returns:
    ///     The space.
    ///
    /// Raises:
    ///     ParameterError: The bytes are no whole space of this version. The text shows nothing of them.
    #[staticmethod]
    fn from_bytes(content: &[u8]) -> PyResult<RowSpace> {
        gf2::RowSpace::from_bytes(content).map(RowSpace::new).map_err(raise)
    }

    #[getter]
    fn unknowns(&self) -> usize {
        self.0.unknowns()
    }

    #[getter]
    fn basis(&self, py: Python<'_>) -> PyResult<BitMatrix> {
        let cost = 8.0 * streaming_cost(self.0.rank() * self.0.unknowns() / 8);
        run(py, None, cost, |run| self.0.basis(run)).map(BitMatrix::new)
    }

    #[getter]
    fn rank(&self) -> usize {
        self.0.rank()
    }

    #[getter]
    fn consistent(&self) -> bool {
        self.0.consistent()
    }

    fn __add__(&self, py: Python<'_>, other: &RowSpace) -> PyResult<RowSpace> {
        let (rows, columns) = (self.0.rank().min(other.0.rank()), self.0.unknowns());
        run(py, None, elimination_cost(rows, columns), |run| self.0.join(&other.0, run)).map(RowSpace::new)
    }

    fn __copy__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __deepcopy__(slf: Py<Self>, _memo: &Bound<'_, PyAny>) -> Py<Self> {
        slf
    }

    fn __repr__(&self) -> String {
        let (rank, unknowns) = (self.0.rank(), self.0.unknowns());
        let end = if self.0.consistent() { "" } else { ", inconsistent" };
        format!("RowSpace(rank {rank} of {unknowns} unknowns{end})")
    }
}

impl RowSpace {
    pub fn new(space: gf2::RowSpace) -> RowSpace {
        RowSpace(Arc::new(space))
    }
}

/// Calls `work` with the system A x = b, whose matrix is at hand.
fn with_rows<R: Send>(
    py: Python<'_>,
    matrix: &gf2::BitMatrix,
    b: &Bound<'_, PyAny>,
    threads: Threads<'_, '_>,
    work: impl FnOnce(&System<'_>, Run<'_>) -> Result<R> + Send,
) -> PyResult<R> {
    let b = vector("b", b, matrix.rows(), "the number of rows of A")?;
    let cost = elimination_cost(matrix.rows(), matrix.columns());
    let system = System { matrix, rows: None, ones: false, rhs: Some(b.row(0)) };
    run(py, threads, cost, |run| work(&system, run))
}

/// Equations that come in parts, until their span is asked for.
#[pyclass(frozen, module = "hdp_fast._core")]
pub struct Equations(Locked<Option<gf2::Equations>>);

#[pymethods]
impl Equations {
    #[new]
    fn new(unknowns: usize) -> PyResult<Equations> {
        Ok(Equations(Locked::new(Some(gf2::Equations::new(unknowns).map_err(raise)?))))
    }

    /// Adds the equations A x = b.
    #[pyo3(name = "add")]
    #[allow(non_snake_case)]
    fn add_rows(&self, py: Python<'_>, A: &Bound<'_, PyAny>, b: &Bound<'_, PyAny>) -> PyResult<()> {
        let matrix = matrix("A", A, None)?;
        let b = vector("b", b, matrix.rows(), "the number of rows of A")?;
        let system = System { matrix: &matrix, rows: None, ones: false, rhs: Some(b.row(0)) };
        self.add(py, matrix.rows(), matrix.columns(), |equations, run| equations.add(&system, run))
    }

    /// Takes the span of all of them.
    fn take(&self, py: Python<'_>) -> PyResult<RowSpace> {
        self.0.with(py, |held| {
            let equations = held.take().ok_or_else(ended)?;
            let cost = elimination_cost(equations.waiting(), equations.unknowns());
            run(py, None, cost, |run| equations.into_space(run)).map(RowSpace::new)
        })
    }
}

impl Equations {
    /// Calls `work`, which adds at most so many rows; where it fails, some are lost, and nothing can be added any more.
    pub fn add(
        &self,
        py: Python<'_>,
        rows: usize,
        columns: usize,
        work: impl FnOnce(&mut gf2::Equations, Run<'_>) -> Result<()> + Send,
    ) -> PyResult<()> {
        self.0.with(py, |held| {
            let mut equations = held.take().ok_or_else(ended)?;
            let elimination =
                if equations.eliminates(rows) { elimination_cost(rows + equations.waiting(), columns) } else { 0.0 };
            let cost = elimination + streaming_cost(rows * (columns / 8 + 64)) + 1e3;
            run(py, None, cost, |run| work(&mut equations, run))?;
            *held = Some(equations);
            Ok(())
        })
    }
}

fn ended() -> PyErr {
    parameter("equations", "none", "their span was taken, or a call was interrupted: begin anew")
}
