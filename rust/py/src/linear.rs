//! Glue of `hdp_fast.learners.LinearSeparator`, which carries the documentation.

use hdp_fast_core::linear::{self, Goal, Records};
use pyo3::prelude::*;

use crate::array::{self, Bits, Floats, Integers, Vector};
use crate::records::{Entries, row_numbers, with_slice};
use crate::run::{run, streaming_cost};

/// Passes over the rows that a search takes at least, in the estimate of its cost.
const PASSES: usize = 4;

/// The argument `settings`, a dict.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct Settings {
    cost: f64,
    margin: f64,
    intercept: bool,
}

/// A halfspace for the records of the given rows: its weights, its bias and the rows that it gets wrong.
#[pyfunction]
pub fn separate<'py>(
    py: Python<'py>,
    entries: Entries<'py>,
    columns: usize,
    labels: Bits<'py>,
    rows: Integers<'py>,
    start: Option<Floats<'py>>,
    settings: Settings,
) -> PyResult<(Vector<'py, f64>, f64, usize)> {
    let Settings { cost, margin, intercept } = settings;
    let (labels, rows) = (labels.as_slice()?, row_numbers(&rows)?);
    let start = start.as_ref().map(|start| start.as_slice()).transpose()?;
    let goal = Goal { cost, margin };
    let halfspace = with_slice!(&entries, |entries| {
        let bytes = rows.len().saturating_mul(PASSES * size_of_val(entries) / labels.len().max(1));
        run(py, None, streaming_cost(bytes), |run| {
            linear::separate(Records::new(entries, columns, labels, intercept)?, &rows, start, goal, run)
        })
    })?;
    Ok((array::returned(py, halfspace.weights), halfspace.bias, halfspace.errors))
}
