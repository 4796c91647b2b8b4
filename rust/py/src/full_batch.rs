//! Glue of `hdp_fast.learners.noisy_descent`: descents on all records, whose gradients are exact sums.

use hdp_fast_core::Result;
use hdp_fast_core::run::Run;
use hdp_fast_core::sgd::{self, IntegerRecords, Places, Steps};
use pyo3::prelude::*;

use crate::array::{self, Bits, Floats, Integers, ShortIntegers, Vector};
use crate::run::{run, streaming_cost};

/// The argument `records`: entries, columns, labels, classes and limits.
#[derive(FromPyObject)]
pub struct RecordsArgument<'py>(ShortIntegers<'py>, usize, ShortIntegers<'py>, usize, Floats<'py>);

/// What an entry of 1 stands for, digits of residuals, and the largest norm that a record adds.
type PlacesArgument = (f64, u32, f64);

impl RecordsArgument<'_> {
    /// Calls a kernel that reads the records so many times.
    fn pass<R: Send>(
        &self,
        py: Python<'_>,
        times: usize,
        work: impl FnOnce(IntegerRecords<'_>, Run<'_>) -> Result<R> + Send,
    ) -> PyResult<R> {
        let RecordsArgument(entries, columns, labels, classes, limits) = self;
        let (entries, labels, limits) = (entries.as_slice()?, labels.as_slice()?, limits.as_slice()?);
        let models = if *classes <= 2 { 1 } else { *classes };
        let cost = streaming_cost(4 * entries.len().saturating_mul(models).saturating_mul(times));
        run(py, None, cost, |run| work(IntegerRecords::new(entries, *columns, labels, *classes, limits)?, run))
    }
}

fn places((unit, bits, length): PlacesArgument) -> Places {
    Places { unit, bits, length }
}

/// The largest norm of each record's residuals: float64 (n,).
#[pyfunction]
pub fn full_batch_limits<'py>(
    py: Python<'py>,
    entries: ShortIntegers<'py>,
    columns: usize,
    length: f64,
) -> PyResult<Vector<'py, f64>> {
    let entries = entries.as_slice()?;
    let limits = run(py, None, streaming_cost(4 * entries.len()), |run| sgd::limits(entries, columns, length, run))?;
    Ok(array::returned(py, limits))
}

/// The exact sum of what all records add at these weights, one class after the other.
#[pyfunction]
pub fn full_batch_sum<'py>(
    py: Python<'py>,
    records: RecordsArgument<'py>,
    grid: PlacesArgument,
    weights: Floats<'py>,
) -> PyResult<Vector<'py, i64>> {
    let weights = weights.as_slice()?;
    let sum = records.pass(py, 1, |records, run| records.add_gradients(weights, places(grid), run))?;
    Ok(array::returned(py, sum))
}

/// The mean of the last models of a descent, one class after the other, and how far gradients were along them.
///
/// `steps` are rate, momentum and how many models are averaged; `noise` has integers for each step.
#[pyfunction]
pub fn full_batch_descend<'py>(
    py: Python<'py>,
    records: RecordsArgument<'py>,
    grid: PlacesArgument,
    steps: (f64, f64, usize),
    noise: Integers<'py>,
) -> PyResult<(Vector<'py, f64>, f64)> {
    let (noise, (rate, momentum, averaged)) = (noise.as_slice()?, steps);
    let steps = Steps { rate, momentum, averaged };
    let times = noise.len() / records.1.max(1);
    let path = records.pass(py, times, |records, run| sgd::descend(records, places(grid), steps, noise, run))?;
    Ok((array::returned(py, path.weights), path.along))
}

/// Counts of margins in the bins that these edges part, in two groups of pairs of classes: int64, one more than edges each.
#[pyfunction]
pub fn full_batch_margins<'py>(
    py: Python<'py>,
    records: RecordsArgument<'py>,
    unit: f64,
    weights: Floats<'py>,
    edges: Floats<'py>,
    second: Bits<'py>,
) -> PyResult<Vector<'py, i64>> {
    let (weights, edges, second) = (weights.as_slice()?, edges.as_slice()?, second.as_slice()?);
    let counts = records.pass(py, 1, |records, run| records.count_margins(weights, edges, second, unit, run))?;
    Ok(array::returned(py, counts))
}
