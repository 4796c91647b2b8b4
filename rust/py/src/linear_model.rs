//! Glue of `hdp_fast.learners.LinearModel` and of its losses.

use hdp_fast_core::sgd::{self, Loss};
use pyo3::prelude::*;

use crate::array::{self, Floats, Vector};
use crate::records::{Labeled, with_records};
use crate::run::run;
use crate::scalar::word;

/// The loss of that name; the shape is the margin of a hinge or the threshold of Huber's.
pub fn named_loss(name: &Bound<'_, PyAny>, shape: f64) -> PyResult<Loss> {
    let losses = [
        ("hinge", Loss::Hinge(shape)),
        ("squared_hinge", Loss::SquaredHinge(shape)),
        ("logistic", Loss::Logistic),
        ("squared", Loss::Squared),
        ("huber", Loss::Huber(shape)),
    ];
    word("loss", name, &losses)
}

/// The inner product of a model with every shrunk row: float64 (n,), or (n * classes,) row by row.
#[pyfunction]
pub fn linear_scores<'py>(
    py: Python<'py>,
    records: Labeled<'py>,
    norm_bound: f64,
    model: Floats<'py>,
) -> PyResult<Vector<'py, f64>> {
    let (model, cost) = (model.as_slice()?, records.pass_cost()?);
    let scores = with_records!(py, None, records, cost, |records, run| sgd::scores(records, norm_bound, model, run))?;
    Ok(array::returned(py, scores))
}

/// The loss of a model on every record as a share of the largest: float64 (n,).
#[pyfunction]
pub fn linear_losses<'py>(
    py: Python<'py>,
    records: Labeled<'py>,
    norm_bound: f64,
    model: Floats<'py>,
    loss: &Bound<'py, PyAny>,
    shape: f64,
    largest: f64,
) -> PyResult<Vector<'py, f64>> {
    let loss = (named_loss(loss, shape)?, largest);
    let (model, cost) = (model.as_slice()?, records.pass_cost()?);
    let losses =
        with_records!(py, None, records, cost, |records, run| sgd::losses(records, norm_bound, model, loss, run))?;
    Ok(array::returned(py, losses))
}

/// The derivative of the loss in the score of every record: float64 (n,).
#[pyfunction]
pub fn linear_slopes<'py>(
    py: Python<'py>,
    records: Labeled<'py>,
    norm_bound: f64,
    model: Floats<'py>,
    loss: &Bound<'py, PyAny>,
    shape: f64,
) -> PyResult<Vector<'py, f64>> {
    let loss = named_loss(loss, shape)?;
    let (model, cost) = (model.as_slice()?, records.pass_cost()?);
    let slopes =
        with_records!(py, None, records, cost, |records, run| sgd::slopes(records, norm_bound, model, loss, run))?;
    Ok(array::returned(py, slopes))
}

/// The largest loss and the steepest slope for predictions and labels up to these magnitudes.
#[pyfunction]
pub fn loss_bounds(loss: &Bound<'_, PyAny>, shape: f64, prediction: f64, label: f64) -> PyResult<(f64, f64)> {
    let loss = named_loss(loss, shape)?;
    Ok((loss.largest(prediction, label), loss.steepest(prediction, label)))
}
