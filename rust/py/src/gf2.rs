//! Glue of the functions of `hdp_fast.gf2`.

use hdp_fast_core::Error;
use hdp_fast_core::gf2::{self as core, System};
use hdp_fast_core::simd::multiply_in_cache as multiply;
use pyo3::prelude::*;

use crate::array::{self, Threads, Vector};
use crate::bit_matrix::{BitMatrix, matrix, vector};
use crate::error::raise;
use crate::run::{elimination_cost, run, streaming_cost};

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

/// Computes the inverse of a square matrix over GF(2).
///
/// Args:
///     A: Array (m, d) of 0 and 1, or a BitMatrix.
///     threads: Number of threads, 1 to 1024. None means HDP_FAST_NUM_THREADS, else RAYON_NUM_THREADS,
///         else OMP_NUM_THREADS, else all cores.
///
/// Returns:
///     A BitMatrix of the same shape.
///
/// Raises:
///     ShapeError: A has not two dimensions, or is not square.
///     ParameterError: A is singular, holds anything but 0 and 1, or `threads` is out of range.
///
/// Cost:
///     An elimination of A beside the identity, about 4/3 of a product; three bit matrices of A's size.
///
/// Examples:
///     >>> from hdp_fast import gf2
///     >>> A = gf2.BitMatrix.from_dense([[1, 1], [0, 1]])
///     >>> A @ gf2.inverse(A) == gf2.BitMatrix.identity(2)
///     True
#[pyfunction]
#[pyo3(signature = (A, *, threads=None))]
#[allow(non_snake_case)]
pub fn inverse(py: Python<'_>, A: &Bound<'_, PyAny>, threads: Threads<'_, '_>) -> PyResult<BitMatrix> {
    let matrix = matrix("A", A, threads)?;
    let cost = 4.0 * elimination_cost(matrix.rows(), matrix.columns());
    let inverse = run(py, threads, cost, |run| core::inverse(&matrix, run))?;
    let singular = || raise(Error::Parameter("A is singular, but only a matrix of full rank has an inverse".into()));
    inverse.map(BitMatrix::new).ok_or_else(singular)
}

/// Computes a basis of the null space: of all x with A x = 0 over GF(2).
///
/// Args:
///     A: Array (m, d) of 0 and 1, or a BitMatrix.
///     threads: Number of threads, 1 to 1024. None means HDP_FAST_NUM_THREADS, else RAYON_NUM_THREADS,
///         else OMP_NUM_THREADS, else all cores.
///
/// Returns:
///     A BitMatrix (nullity, d), a vector in each row, one for each column without a pivot.
///
/// Raises:
///     ShapeError: A has not two dimensions.
///     ParameterError: A holds anything but 0 and 1, or `threads` is out of range.
///
/// Cost:
///     That of `rank`, and nullity d rank / 64 word operations.
///
/// Examples:
///     >>> from hdp_fast import gf2
///     >>> gf2.nullspace([[1, 0, 1], [0, 1, 1]]).to_dense()
///     array([[1, 1, 1]], dtype=uint8)
#[pyfunction]
#[pyo3(signature = (A, *, threads=None))]
#[allow(non_snake_case)]
pub fn nullspace(py: Python<'_>, A: &Bound<'_, PyAny>, threads: Threads<'_, '_>) -> PyResult<BitMatrix> {
    let matrix = matrix("A", A, threads)?;
    let system = System { matrix: &matrix, rows: None, ones: false, rhs: None };
    let cost = elimination_cost(matrix.rows(), matrix.columns());
    run(py, threads, cost, |run| core::solve(&system, run)?.null_space(run)).map(BitMatrix::new)
}

/// Computes the basis of the row space that is in reduced row echelon form.
///
/// It is the same for all matrices with the same row space.
///
/// Args:
///     A: Array (m, d) of 0 and 1, or a BitMatrix.
///     threads: Number of threads, 1 to 1024. None means HDP_FAST_NUM_THREADS, else RAYON_NUM_THREADS,
///         else OMP_NUM_THREADS, else all cores.
///
/// Returns:
///     A BitMatrix (rank, d).
///
/// Raises:
///     ShapeError: A has not two dimensions.
///     ParameterError: A holds anything but 0 and 1, or `threads` is out of range.
///
/// Cost:
///     That of `rank`, and rank^2 d / 128 word operations.
///
/// Examples:
///     >>> from hdp_fast import gf2
///     >>> gf2.rowspace([[1, 1, 0], [0, 1, 1], [1, 0, 1]]).to_dense()
///     array([[1, 0, 1],
///            [0, 1, 1]], dtype=uint8)
#[pyfunction]
#[pyo3(signature = (A, *, threads=None))]
#[allow(non_snake_case)]
pub fn rowspace(py: Python<'_>, A: &Bound<'_, PyAny>, threads: Threads<'_, '_>) -> PyResult<BitMatrix> {
    let matrix = matrix("A", A, threads)?;
    let cost = 2.0 * elimination_cost(matrix.rows(), matrix.columns());
    run(py, threads, cost, |run| core::row_basis(&matrix, run)).map(|(basis, _)| BitMatrix::new(basis))
}

/// A row echelon form of a matrix. The documentation is that of `hdp_fast.gf2.echelon`.
#[pyfunction]
#[pyo3(signature = (A, *, reduced=true, threads=None))]
#[allow(non_snake_case)]
pub fn echelon(py: Python<'_>, A: &Bound<'_, PyAny>, reduced: bool, threads: Threads<'_, '_>) -> PyResult<BitMatrix> {
    let matrix = matrix("A", A, threads)?;
    let cost = 2.0 * elimination_cost(matrix.rows(), matrix.columns());
    let form = run(py, threads, cost, |run| {
        if !reduced {
            return core::echelon_form(&matrix, run);
        }
        let (basis, pivots) = core::row_basis(&matrix, run)?;
        let zeros = core::BitMatrix::zeros(matrix.rows() - pivots.len(), matrix.columns())?;
        core::BitMatrix::vstack(&[&basis, &zeros], run)
    });
    form.map(BitMatrix::new)
}

/// Rows, pivots, L and E of the factors P L E of a matrix. The documentation is that of `hdp_fast.gf2.ple`.
#[pyfunction]
#[allow(non_snake_case)]
pub fn ple<'py>(
    py: Python<'py>,
    A: &Bound<'py, PyAny>,
    threads: Threads<'_, 'py>,
) -> PyResult<(Vector<'py, i64>, Vector<'py, i64>, BitMatrix, BitMatrix)> {
    let matrix = matrix("A", A, threads)?;
    let cost = 4.0 * elimination_cost(matrix.rows(), matrix.columns());
    let factors = run(py, threads, cost, |run| core::ple(&matrix, run))?;
    let places = |places: Vec<usize>| array::returned(py, places.into_iter().map(|place| place as i64).collect());
    let (lower, echelon) = (BitMatrix::new(factors.lower), BitMatrix::new(factors.echelon));
    Ok((places(factors.rows), places(factors.pivots), lower, echelon))
}

/// X, and which columns of B have a solution. The documentation is that of `hdp_fast.gf2.solve`.
#[pyfunction]
#[allow(non_snake_case)]
pub fn solve_many<'py>(
    py: Python<'py>,
    A: &Bound<'py, PyAny>,
    B: &Bound<'py, PyAny>,
    threads: Threads<'_, 'py>,
) -> PyResult<(BitMatrix, Vector<'py>)> {
    let (left, right) = (matrix("A", A, threads)?, matrix("b", B, threads)?);
    let cost = elimination_cost(left.rows(), left.columns() + right.columns());
    let solutions = run(py, threads, cost, |run| core::solve_many(&left, &right, run))?;
    Ok((BitMatrix::new(solutions.x), array::returned(py, solutions.consistent)))
}

/// Matrices side by side, or one above the other.
#[pyfunction]
pub fn stack(py: Python<'_>, matrices: Vec<Bound<'_, BitMatrix>>, beside: bool) -> PyResult<BitMatrix> {
    let parts: Vec<&core::BitMatrix> = matrices.iter().map(|part| &*part.get().0).collect();
    let cost = streaming_cost(parts.iter().map(|part| 16 * part.rows() * part.words()).sum());
    let stack = if beside { core::BitMatrix::hstack } else { core::BitMatrix::vstack };
    run(py, None, cost, |run| stack(&parts, run)).map(BitMatrix::new)
}

/// Adds up `count` products of blocks in the first cache, on one thread: benchmarks ask for the kernel's limit.
#[pyfunction]
pub fn multiply_in_cache(py: Python<'_>, count: usize) -> PyResult<()> {
    let nanoseconds = 200.0 * count as f64;
    run(py, None, nanoseconds, |run| {
        std::hint::black_box(multiply(run.isa, count));
        Ok(())
    })
}
