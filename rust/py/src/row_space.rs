//! Glue of the spans of equations of `hdp_fast.gf2`.

use std::sync::Arc;

use hdp_fast_core::gf2::{self, System};
use hdp_fast_core::noise::Stream;
use pyo3::prelude::*;

use crate::array::{self, Threads, Vector};
use crate::bit_matrix::{BitMatrix, matrix, vector};
use crate::error::raise;
use crate::run::{elimination_cost, run};
use crate::seed::Key;

/// All equations over GF(2) that follow from those of a system, which add up: what `gf2.RowSpace.of` makes.
///
/// Spaces of parts of the equations join by `+`, in any order, to the space of all of them. A space is held as its
/// reduced row echelon form, of which there is one: at most d + 1 rows of d + 1 bits for d unknowns, however many
/// equations there were. Spaces are equal where their forms are. It pickles.
///
/// Attributes:
///     basis: The form, a BitMatrix (r, d + 1), whose last column holds the right-hand sides.
///     rank: Rank of the coefficients.
///     consistent: Whether there is a solution.
///
/// Raises:
///     TypeError: The class is called; only `of` and `from_basis` make a space.
///
/// Examples:
///     >>> from hdp_fast import gf2
///     >>> space = gf2.RowSpace.of([[1, 0, 1]], [1]) + gf2.RowSpace.of([[0, 1, 1]], [0])
///     >>> space
///     RowSpace(rank 2 of 3 unknowns)
///     >>> space == gf2.RowSpace.of([[0, 1, 1], [1, 1, 0]], [0, 1])
///     True
#[pyclass(frozen, eq, module = "hdp_fast.gf2")]
#[derive(PartialEq)]
pub struct RowSpace(pub Arc<gf2::RowSpace>);

#[pymethods]
impl RowSpace {
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
        let b = vector("b", b, matrix.rows(), "the number of rows of A")?;
        let cost = elimination_cost(matrix.rows(), matrix.columns());
        let system = System { matrix: &matrix, rows: None, ones: false, rhs: Some(b.row(0)) };
        run(py, threads, cost, |run| gf2::solve(&system, run)?.row_space(run)).map(RowSpace::new)
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
    fn from_basis(basis: &Bound<'_, PyAny>) -> PyResult<RowSpace> {
        let basis = Arc::unwrap_or_clone(matrix("basis", basis, None)?);
        gf2::RowSpace::from_basis(basis).map(RowSpace::new).map_err(raise)
    }

    #[getter]
    fn basis(&self) -> BitMatrix {
        BitMatrix::new(self.0.basis().clone())
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
        let columns = self.0.basis().columns();
        run(py, None, elimination_cost(2 * columns, columns), |run| self.0.join(&other.0, run)).map(RowSpace::new)
    }

    #[pyo3(name = "_sample")]
    fn sample<'py>(&self, py: Python<'py>, seed: Key) -> PyResult<Option<Vector<'py>>> {
        let x = self.0.sample(&mut seed.stream(Stream::Solution, 0)).map_err(raise)?;
        Ok(x.map(|x| array::returned(py, x)))
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
