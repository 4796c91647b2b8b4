//! Glue of the passes over the rows that `hdp_fast.adaptation` makes.

use hdp_fast_core::adaptation::{self, Grid, Loss, Weights};
use pyo3::prelude::*;

use crate::array::{self, Floats, Vector};
use crate::records::{Entries, Labeled, with_records, with_slice};
use crate::run::{run, streaming_cost};
use crate::scalar::word;

/// Cap, kappa_1 and offset, or a weight for each record.
#[derive(FromPyObject)]
pub enum WeightsArgument<'py> {
    Eliminated((f64, f64, f64)),
    Fixed(Floats<'py>),
}

/// Objective, gradient, and losses where weights were given.
type PassResult<'py> = (f64, Vector<'py, f64>, Option<Vector<'py, f64>>);

/// The weighted objective, its gradient in the model, and every record's loss where `weights` are given one by one.
///
/// `records` are entries row by row, columns and labels; `model` and gradient are row by row, a row for each class.
/// `grid` is None, or the scale of rounded coefficients, their largest norm and that of rows of integers.
#[pyfunction]
pub fn adaptation_pass<'py>(
    py: Python<'py>,
    records: Labeled<'py>,
    loss: &Bound<'py, PyAny>,
    model: Floats<'py>,
    weights: WeightsArgument<'py>,
    grid: Option<(f64, f64, f64)>,
    threads: Option<&Bound<'py, PyAny>>,
) -> PyResult<PassResult<'py>> {
    let losses = [("squared", Loss::Squared), ("logistic", Loss::Logistic), ("softmax", Loss::Softmax)];
    let (loss, model) = (word("loss", loss, &losses)?, model.as_slice()?);
    let weights = match &weights {
        WeightsArgument::Eliminated((cap, kappa_1, offset)) => {
            Weights::Eliminated { cap: *cap, kappa_1: *kappa_1, offset: *offset }
        }
        WeightsArgument::Fixed(weights) => Weights::Given(weights.as_slice()?),
    };
    let grid = grid.map(|(scale, most, units)| Grid { scale, most, units });
    let cost = streaming_cost(8 * records.len()?.saturating_mul(model.len() + 2));
    let result = with_records!(py, threads, records, cost, |records, run| {
        adaptation::pass(records, loss, model, weights, grid, run)
    })?;
    let losses = result.losses.map(|losses| array::returned(py, losses));
    Ok((result.objective, array::returned(py, result.gradient), losses))
}

/// Rows as if shrunk to a norm of `bound`, as integers of norm at most `units` in the same precision, and how many of
/// them are 1.
#[pyfunction]
pub fn adaptation_integers<'py>(
    py: Python<'py>,
    entries: Entries<'py>,
    columns: usize,
    bound: f64,
    units: f64,
    threads: Option<&Bound<'py, PyAny>>,
) -> PyResult<(Bound<'py, PyAny>, f64)> {
    with_slice!(&entries, |entries| {
        let cost = streaming_cost(2 * size_of_val(entries));
        let rounded = run(py, threads, cost, |run| adaptation::to_integers(entries, columns, bound, units, run))?;
        Ok((array::returned(py, rounded.0).into_any(), rounded.1))
    })
}
