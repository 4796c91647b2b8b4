//! Glue of `hdp_fast.learners`.

use std::sync::Arc;

use hdp_fast_core::error::Result;
use hdp_fast_core::gf2::BitMatrix;
use hdp_fast_core::run::Run;
use hdp_fast_core::score as core;
use pyo3::prelude::*;

use crate::array::{self, Integers, Threads, Vector};
use crate::gf2::{matrix, vector};
use crate::run::{run, streaming_cost};

/// A rough cost of a read from anywhere, in nanoseconds.
const READ: f64 = 10.0;

type Any<'a, 'py> = &'a Bound<'py, PyAny>;

/// Records of 0/1 features packed by columns, taken by every class of hypotheses over bits in place of X.
///
/// X: 0/1 (m, d), an array of bool or any integer dtype, or a BitMatrix, or Features, which are shared; never changed.
/// threads: as hdp_fast.gf2.rank. Memory: about m d / 4 bytes.
///
/// Attributes:
///     shape: (m, d).
///
/// Raises: ShapeError, ParameterError.
/// Cost: one pass over X and one over the packed rows.
/// Source: none.
#[pyclass(frozen, module = "hdp_fast.learners")]
pub struct Features {
    columns: Arc<core::Columns>,
    rows: Arc<BitMatrix>,
}

#[pymethods]
impl Features {
    #[new]
    #[pyo3(signature = (X, *, threads=None))]
    #[allow(non_snake_case)]
    fn new(X: Any<'_, '_>, threads: Threads<'_, '_>) -> PyResult<Features> {
        if let Ok(packed) = X.cast::<Features>() {
            return Ok(packed.get().shared());
        }
        let rows = matrix("X", X, threads)?;
        let cost = streaming_cost(16 * rows.rows() * rows.words());
        let columns = run(X.py(), threads, cost, |run| core::Columns::pack(&rows, run))?;
        Ok(Features { columns: Arc::new(columns), rows })
    }

    /// The records of these indices, int64 and contiguous: for learn_indices, which checks them.
    #[pyo3(name = "_take")]
    fn take(&self, py: Python<'_>, indices: Integers<'_>) -> PyResult<Features> {
        let indices = indices.as_slice()?;
        let cost = READ * (indices.len() * self.rows.words()) as f64;
        let (rows, columns) = run(py, None, cost, |run| {
            let rows = self.rows.taken(indices, run)?;
            let columns = core::Columns::pack(&rows, run)?;
            Ok((rows, columns))
        })?;
        Ok(Features { columns: Arc::new(columns), rows: Arc::new(rows) })
    }

    /// Numbers of records and features.
    #[getter]
    fn shape(&self) -> (usize, usize) {
        (self.columns.records(), self.columns.features())
    }

    fn __len__(&self) -> usize {
        self.columns.records()
    }

    fn __copy__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __deepcopy__(slf: Py<Self>, _memo: Any<'_, '_>) -> Py<Self> {
        slf
    }

    fn __repr__(&self) -> String {
        format!("Features({} records of {} bits)", self.columns.records(), self.columns.features())
    }
}

impl Features {
    fn shared(&self) -> Features {
        Features { columns: self.columns.clone(), rows: self.rows.clone() }
    }

    fn labels(&self, y: Any<'_, '_>) -> PyResult<BitMatrix> {
        vector("y", y, self.columns.records(), "the number of records of X")
    }

    /// A rough cost of so many word operations for 64 records each, in nanoseconds.
    fn cost(&self, operations: usize) -> f64 {
        operations as f64 * self.columns.records().div_ceil(64) as f64 / 4.0
    }
}

/// Hypotheses given one by one: conjunctions, or parities where zeros is None.
#[pyclass(frozen, module = "hdp_fast._core")]
pub struct Lists(core::Lists);

#[pymethods]
impl Lists {
    #[new]
    #[pyo3(signature = (ones, zeros))]
    fn new(ones: Any<'_, '_>, zeros: Option<Any<'_, '_>>) -> PyResult<Lists> {
        let Some(zeros) = zeros else {
            return core::Lists::parities(&*matrix("masks", ones, None)?).map(Lists).map_err(crate::error::raise);
        };
        let (ones, zeros) = (matrix("ones", ones, None)?, matrix("zeros", zeros, None)?);
        core::Lists::conjunctions(&ones, &zeros).map(Lists).map_err(crate::error::raise)
    }

    /// How many records each gets wrong, int64.
    fn errors<'py>(
        &self,
        py: Python<'py>,
        features: &Features,
        y: Any<'_, 'py>,
        threads: Option<Any<'_, 'py>>,
    ) -> PyResult<Vector<'py, i64>> {
        let labels = features.labels(y)?;
        let cost = features.cost(self.0.literals() + self.0.count());
        let errors = run(py, threads, cost, |run| self.0.errors(&features.columns, &labels, run))?;
        Ok(array::returned(py, errors))
    }

    /// What the i-th says of every record, uint8.
    fn predict<'py>(&self, py: Python<'py>, i: usize, features: &Features) -> PyResult<Vector<'py>> {
        let cost = 64.0 * features.cost(1);
        let values = run(py, None, cost, |run| self.0.predict(i, &features.columns, run))?;
        Ok(array::returned(py, values))
    }
}

/// How many records each conjunction of at most `size` literals gets wrong, int64.
#[pyfunction]
pub fn conjunction_errors<'py>(
    py: Python<'py>,
    features: &Features,
    y: Any<'_, 'py>,
    size: usize,
    threads: Option<Any<'_, 'py>>,
) -> PyResult<Vector<'py, i64>> {
    enumerated(py, features, y, (size, threads), core::conjunction_errors)
}

/// How many records each hypothesis "at least r of these literals" gets wrong, for at most `size` literals, int64.
#[pyfunction]
pub fn at_least_errors<'py>(
    py: Python<'py>,
    features: &Features,
    y: Any<'_, 'py>,
    size: usize,
    threads: Option<Any<'_, 'py>>,
) -> PyResult<Vector<'py, i64>> {
    enumerated(py, features, y, (size, threads), core::at_least_errors)
}

type Errors = fn(&core::Columns, &BitMatrix, usize, Run<'_>) -> Result<Vec<i64>>;

fn enumerated<'py>(
    py: Python<'py>,
    features: &Features,
    y: Any<'_, 'py>,
    (size, threads): (usize, Option<Any<'_, 'py>>),
    errors: Errors,
) -> PyResult<Vector<'py, i64>> {
    let labels = features.labels(y)?;
    let products = (0..size).fold(1.0, |count, _| count * (1 + features.columns.features()) as f64);
    let cost = features.cost(1) * products;
    let errors = run(py, threads, cost, |run| errors(&features.columns, &labels, size, run))?;
    Ok(array::returned(py, errors))
}
