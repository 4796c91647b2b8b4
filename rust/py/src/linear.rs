//! Glue of `hdp_fast.learners.LinearSeparator`, which carries the documentation.

use hdp_fast_core::linear::{self, Goal, Records};
use hdp_fast_core::simd::Real;
use pyo3::prelude::*;

use crate::array::{self, Bits, Floats, Integers, SingleFloats, Vector};
use crate::run::{run, streaming_cost};

/// Entries of either precision, row by row.
#[derive(FromPyObject)]
pub enum Entries<'py> {
    Single(SingleFloats<'py>),
    Double(Floats<'py>),
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
    let rows: Vec<usize> = rows.as_slice()?.iter().map(|&row| row.try_into().unwrap_or(usize::MAX)).collect();
    let call = Call {
        columns,
        labels: labels.as_slice()?,
        rows: &rows,
        start: start.as_ref().map(|start| start.as_slice()).transpose()?,
        intercept,
        goal: Goal { cost, margin },
    };
    let found = match &entries {
        Entries::Single(entries) => call.run(py, entries.as_slice()?),
        Entries::Double(entries) => call.run(py, entries.as_slice()?),
    }?;
    Ok((array::returned(py, found.weights), found.bias, found.errors))
}

struct Call<'a> {
    columns: usize,
    labels: &'a [u8],
    rows: &'a [usize],
    start: Option<&'a [f64]>,
    intercept: bool,
    goal: Goal,
}

impl Call<'_> {
    fn run<T: Real>(&self, py: Python<'_>, entries: &[T]) -> PyResult<linear::Halfspace> {
        let bytes = self.rows.len().saturating_mul(self.columns.saturating_mul(PASSES * size_of::<T>()));
        run(py, None, streaming_cost(bytes), |run| {
            let records = Records::new(entries, self.columns, self.labels, self.intercept)?;
            linear::separate(records, self.rows, self.start, self.goal, run)
        })
    }
}
