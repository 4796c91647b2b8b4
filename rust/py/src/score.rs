//! Glue of the hypotheses over bits of `hdp_fast.learners`.

use hdp_fast_core::error::Result;
use hdp_fast_core::gf2::BitMatrix;
use hdp_fast_core::run::Run;
use hdp_fast_core::score::{self, Columns};
use pyo3::prelude::*;

use crate::array::{self, Vector};
use crate::bit_matrix::matrix;
use crate::error::raise;
use crate::features::Features;
use crate::run::run;

type Any<'a, 'py> = &'a Bound<'py, PyAny>;

/// Hypotheses given one by one: conjunctions, or parities where zeros is None.
#[pyclass(frozen, module = "hdp_fast._core")]
pub struct Lists(score::Lists);

#[pymethods]
impl Lists {
    #[new]
    #[pyo3(signature = (ones, zeros))]
    fn new(ones: Any<'_, '_>, zeros: Option<Any<'_, '_>>) -> PyResult<Lists> {
        let Some(zeros) = zeros else {
            return score::Lists::parities(&*matrix("masks", ones, None)?).map(Lists).map_err(raise);
        };
        let (ones, zeros) = (matrix("ones", ones, None)?, matrix("zeros", zeros, None)?);
        score::Lists::conjunctions(&ones, &zeros).map(Lists).map_err(raise)
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
    enumerated(py, features, y, (size, threads), score::conjunction_errors)
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
    enumerated(py, features, y, (size, threads), score::at_least_errors)
}

type Errors = fn(&Columns, &BitMatrix, usize, Run<'_>) -> Result<Vec<i64>>;

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
