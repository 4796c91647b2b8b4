//! Glue of the solution spaces of `hdp_fast.gf2`.

use hdp_fast_core::gf2::{self, System};
use hdp_fast_core::noise::Stream;
use pyo3::prelude::*;

use crate::array::{self, Matrix, Vector};
use crate::bit_matrix::{matrix, vector};
use crate::row_space::RowSpace;
use crate::run::{elimination_cost, run, streaming_cost};
use crate::seed::Key;

/// All solutions of A x = b. The documentation is that of `hdp_fast.gf2.Solution`.
#[pyclass(frozen, subclass, module = "hdp_fast._core")]
pub struct Solution(gf2::Solution);

#[pymethods]
impl Solution {
    #[new]
    #[pyo3(signature = (A, b=None, *, threads=None))]
    #[allow(non_snake_case)]
    fn new(
        py: Python<'_>,
        A: &Bound<'_, PyAny>,
        b: Option<&Bound<'_, PyAny>>,
        threads: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Solution> {
        let Some(b) = b else {
            let space = A.cast::<RowSpace>()?.get();
            let cost = 2.0 * streaming_cost(space.0.rank() * space.0.unknowns() / 8);
            return run(py, threads, cost, |run| space.0.solution(run)).map(Solution);
        };
        let matrix = matrix("A", A, threads)?;
        let b = vector("b", b, matrix.rows(), "the number of rows of A")?;
        let cost = elimination_cost(matrix.rows(), matrix.columns());
        let system = System { matrix: &matrix, rows: None, ones: false, rhs: Some(b.row(0)) };
        run(py, threads, cost, |run| gf2::solve(&system, run)).map(Solution)
    }

    /// Whether there is a solution.
    #[getter]
    fn consistent(&self) -> bool {
        self.0.consistent
    }

    /// Rank of the coefficients.
    #[getter]
    fn rank(&self) -> usize {
        self.0.rank()
    }

    /// Dimension of the null space. There are 2**nullity solutions, or none.
    #[getter]
    fn nullity(&self) -> usize {
        self.0.nullity()
    }

    /// The solution whose free unknowns are zero, uint8 (d,); None if there is no solution.
    #[getter]
    fn x<'py>(&self, py: Python<'py>) -> PyResult<Option<Vector<'py>>> {
        let x = run(py, None, self.cost(1), |run| self.0.particular(run))?;
        Ok(x.map(|x| array::returned(py, x)))
    }

    /// Computes a basis of the null space of the coefficients.
    ///
    /// Returns:
    ///     An array of uint8 (nullity, d), a vector in each row.
    ///
    /// Raises:
    ///     MemoryError: nullity d bytes are not available.
    ///
    /// Cost:
    ///     nullity d^2 / 64 word operations by back substitution, and nullity d bytes.
    fn nullspace<'py>(&self, py: Python<'py>) -> PyResult<Matrix<'py>> {
        let basis = run(py, None, self.cost(self.0.nullity()), |run| self.0.null_space(run))?;
        array::unpacked(py, &basis)
    }

    #[pyo3(name = "_sample")]
    fn sample<'py>(&self, py: Python<'py>, seed: Key) -> PyResult<Option<Vector<'py>>> {
        let mut rng = seed.stream(Stream::Solution, 0);
        let x = run(py, None, self.cost(1), |run| self.0.sample(&mut rng, run))?;
        Ok(x.map(|x| array::returned(py, x)))
    }

    fn __repr__(&self) -> String {
        let (rank, nullity) = (self.0.rank(), self.0.nullity());
        match self.0.consistent {
            true => format!("Solution(rank {rank}, nullity {nullity}: 2**{nullity} solutions)"),
            false => format!("Solution(rank {rank}, nullity {nullity}: inconsistent, no solution)"),
        }
    }
}

impl Solution {
    /// Rough cost of completing this number of vectors by back substitution.
    fn cost(&self, vectors: usize) -> f64 {
        streaming_cost(self.0.rank() * self.0.unknowns() / 8 * vectors.div_ceil(64))
    }
}
