//! Glue of `hdp_fast.learners.LinearSeparator`, which carries the documentation.

use hdp_fast_core::linear::{self, Goal, Records};
use hdp_fast_core::memory::collected;
use pyo3::prelude::*;

use crate::array::{self, Bits, Floats, Integers, SingleFloats, Vector};
use crate::error::raise;
use crate::run::{run, streaming_cost};

/// Entries of either precision, row by row.
#[derive(FromPyObject)]
pub enum Entries<'py> {
    Single(SingleFloats<'py>),
    Double(Floats<'py>),
}

/// Evaluates an expression for entries as a slice of whatever precision they have.
macro_rules! with_slice {
    ($entries:expr, |$slice:ident| $body:expr) => {
        match $entries {
            $crate::linear::Entries::Single(entries) => {
                let $slice = entries.as_slice()?;
                $body
            }
            $crate::linear::Entries::Double(entries) => {
                let $slice = entries.as_slice()?;
                $body
            }
        }
    };
}
pub(crate) use with_slice;

/// Row numbers; what is none becomes one that no matrix has.
pub fn row_numbers(rows: &Integers<'_>) -> PyResult<Vec<usize>> {
    collected(rows.as_slice()?.iter().map(|&row| row.try_into().unwrap_or(usize::MAX))).map_err(raise)
}

/// Passes over the rows that a search takes at least, in the estimate of its cost.
const PASSES: usize = 4;

/// A halfspace for the records of the given rows: its weights, its bias and the rows that it gets wrong.
#[pyfunction]
pub fn separate<'py>(
    py: Python<'py>,
    entries: Entries<'py>,
    columns: usize,
    labels: Bits<'py>,
    rows: Integers<'py>,
    start: Option<Floats<'py>>,
    settings: (f64, f64, bool),
) -> PyResult<(Vector<'py, f64>, f64, usize)> {
    let (cost, margin, intercept) = settings;
    let (labels, rows) = (labels.as_slice()?, row_numbers(&rows)?);
    let start = start.as_ref().map(|start| start.as_slice()).transpose()?;
    let goal = Goal { cost, margin };
    let found = with_slice!(&entries, |entries| {
        let bytes = rows.len().saturating_mul(PASSES * size_of_val(entries) / labels.len().max(1));
        run(py, None, streaming_cost(bytes), |run| {
            linear::separate(Records::new(entries, columns, labels, intercept)?, &rows, start, goal, run)
        })
    })?;
    Ok((array::returned(py, found.weights), found.bias, found.errors))
}
