//! Glue of the halfspaces of `hdp_fast.learners`, which checks shapes and values.

use hdp_fast_core::score::Halfspaces;
use pyo3::prelude::*;

use crate::array::{self, Bits, Floats, Vector};
use crate::error::raise;
use crate::run::{run, streaming_cost};

/// Rough costs of a multiplication and an addition in a register, and of all else for a score, in nanoseconds.
const PRODUCT: f64 = 0.06;
const SCORE: f64 = 0.6;

/// How many records each halfspace gets wrong, int64; matrices are row by row.
#[pyfunction]
#[allow(non_snake_case)]
pub fn halfspace_errors<'py>(
    py: Python<'py>,
    X: Floats<'py>,
    y: Bits<'py>,
    W: Floats<'py>,
    b: Floats<'py>,
    threads: Option<&Bound<'py, PyAny>>,
) -> PyResult<Vector<'py, i64>> {
    let (records, labels, weights, biases) = (X.as_slice()?, y.as_slice()?, W.as_slice()?, b.as_slice()?);
    let halfspaces = Halfspaces::new(weights.len() / biases.len().max(1), weights, biases).map_err(raise)?;
    let cost = (PRODUCT * weights.len() as f64 + SCORE * biases.len() as f64) * labels.len() as f64;
    let errors = run(py, threads, cost, |run| halfspaces.errors(records, labels, run))?;
    Ok(array::returned(py, errors))
}

/// Where the weights times the record plus the bias is at least 0, uint8.
#[pyfunction]
#[allow(non_snake_case)]
pub fn halfspace_values<'py>(
    py: Python<'py>,
    X: Floats<'py>,
    weights: Floats<'py>,
    bias: f64,
) -> PyResult<Vector<'py>> {
    let (records, weights, biases) = (X.as_slice()?, weights.as_slice()?, [bias]);
    let halfspace = Halfspaces::new(weights.len(), weights, &biases).map_err(raise)?;
    let values = run(py, None, streaming_cost(8 * records.len()), |run| halfspace.predict(0, records, run))?;
    Ok(array::returned(py, values))
}
