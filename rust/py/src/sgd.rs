//! Glue of `hdp_fast.learners.PrivateSGD`, which carries the documentation.

use hdp_fast_core::error::Error;
use hdp_fast_core::noise::{Rational, Weighted};
use hdp_fast_core::sgd::{self, Draws, Loss, Noise, Plan, Records};
use num_bigint::BigUint;
use num_traits::ToPrimitive;
use pyo3::prelude::*;

use crate::array::{self, Floats, Integers, Vector};
use crate::error::raise;
use crate::linear::{Entries, row_numbers, with_slice};
use crate::run::{run, streaming_cost};
use crate::scalar::word;
use crate::seed::Key;
use crate::weights::DenseWeights;

/// A rough cost of a step on one row, in nanoseconds, and of each of its entries.
const STEP: f64 = 50.0;
const ENTRY: f64 = 5.0;

/// Entries, columns and labels.
type Given<'py> = (Entries<'py>, usize, Floats<'py>);

/// A word and the threshold of Huber's loss.
type Named<'py> = (Bound<'py, PyAny>, f64);

/// Where the rows come from, unless they are uniform.
#[derive(FromPyObject)]
pub enum Source<'py> {
    Weights(Bound<'py, DenseWeights>),
    Indices(Integers<'py>),
}

/// Runs a kernel on records of whatever precision they have.
macro_rules! with_records {
    ($py:expr, $given:expr, $cost:expr, |$records:ident, $run:ident| $body:expr) => {{
        let (columns, labels) = ($given.1, $given.2.as_slice()?);
        with_slice!(&$given.0, |entries| run($py, None, $cost, |$run| {
            let $records = Records::new(entries, columns, labels)?;
            $body
        }))
    }};
}

fn loss((name, threshold): &Named<'_>) -> PyResult<Loss> {
    let losses = [
        ("hinge", Loss::Hinge),
        ("logistic", Loss::Logistic),
        ("squared", Loss::Squared),
        ("huber", Loss::Huber(*threshold)),
    ];
    word("loss", name, &losses)
}

fn noise(name: &Bound<'_, PyAny>, scale: (BigUint, BigUint)) -> PyResult<Noise> {
    let scale = Rational::new(scale.0, scale.1);
    let idealized = Noise::Idealized(scale.to_f64().unwrap_or(f64::INFINITY));
    let known = [("none", 0), ("idealized", 1), ("exact", 2)];
    Ok(match word("numerics", name, &known)? {
        0 => Noise::None,
        1 => idealized,
        _ => Noise::Exact(scale),
    })
}

/// The mean model of a run: float64 (columns,).
#[pyfunction]
#[allow(clippy::too_many_arguments)]
pub fn sgd_learn<'py>(
    py: Python<'py>,
    records: Given<'py>,
    draws: Option<Source<'py>>,
    loss: Named<'py>,
    sizes: (usize, usize),
    bounds: (f64, f64, f64),
    penalties: (f64, f64, f64),
    noise: (Bound<'py, PyAny>, (BigUint, BigUint)),
    seed: Key,
) -> PyResult<Vector<'py, f64>> {
    let plan = Plan {
        loss: self::loss(&loss)?,
        steps: sizes.0,
        batch: sizes.1,
        radius: bounds.0,
        row_bound: bounds.1,
        lipschitz: bounds.2,
        l1: penalties.0,
        l2: penalties.1,
        convexity: penalties.2,
        noise: self::noise(&noise.0, noise.1)?,
    };
    plan.check().map_err(raise)?;
    let rows = chosen(&draws)?;
    let law = law(py, &draws, records.2.as_slice()?.len())?;
    let draws = match (&rows, &law) {
        (Some(rows), _) => Draws::Given(rows),
        (None, Some(law)) => Draws::Weighted(law),
        (None, None) => Draws::Uniform,
    };
    let step = STEP + ENTRY * records.1 as f64 * plan.batch as f64;
    let cost = step * plan.steps as f64 + streaming_cost(8 * records.2.as_slice()?.len());
    let learned = with_records!(py, records, cost, |records, run| sgd::learn(records, draws, &plan, &seed, run))?;
    Ok(array::returned(py, learned))
}

/// The inner product of a model with every shrunk row: float64 (n,).
#[pyfunction]
pub fn linear_scores<'py>(
    py: Python<'py>,
    records: Given<'py>,
    row_bound: f64,
    model: Floats<'py>,
) -> PyResult<Vector<'py, f64>> {
    let (model, cost) = (model.as_slice()?, pass_cost(&records)?);
    let scores = with_records!(py, records, cost, |records, run| sgd::scores(records, row_bound, model, run))?;
    Ok(array::returned(py, scores))
}

/// The loss of a model on every record as a share of the largest: float64 (n,).
#[pyfunction]
pub fn linear_losses<'py>(
    py: Python<'py>,
    records: Given<'py>,
    row_bound: f64,
    model: Floats<'py>,
    loss: Named<'py>,
    largest: f64,
) -> PyResult<Vector<'py, f64>> {
    let (model, cost, loss) = (model.as_slice()?, pass_cost(&records)?, (self::loss(&loss)?, largest));
    let losses = with_records!(py, records, cost, |records, run| sgd::losses(records, row_bound, model, loss, run))?;
    Ok(array::returned(py, losses))
}

/// The derivative of the loss in the score of every record: float64 (n,).
#[pyfunction]
pub fn linear_slopes<'py>(
    py: Python<'py>,
    records: Given<'py>,
    row_bound: f64,
    model: Floats<'py>,
    loss: Named<'py>,
) -> PyResult<Vector<'py, f64>> {
    let (model, cost, loss) = (model.as_slice()?, pass_cost(&records)?, self::loss(&loss)?);
    let slopes = with_records!(py, records, cost, |records, run| sgd::slopes(records, row_bound, model, loss, run))?;
    Ok(array::returned(py, slopes))
}

/// The largest loss and the steepest slope for predictions and labels up to these magnitudes.
#[pyfunction]
pub fn loss_bounds(loss: Named<'_>, prediction: f64, label: f64) -> PyResult<(f64, f64)> {
    let loss = self::loss(&loss)?;
    Ok((loss.largest(prediction, label), loss.steepest(prediction, label)))
}

fn chosen(draws: &Option<Source<'_>>) -> PyResult<Option<Vec<usize>>> {
    let Some(Source::Indices(rows)) = draws else { return Ok(None) };
    row_numbers(rows).map(Some)
}

/// The law of draws by weights of so many records, which may change while it is used.
fn law(py: Python<'_>, draws: &Option<Source<'_>>, records: usize) -> PyResult<Option<Weighted>> {
    let Some(Source::Weights(weights)) = draws else { return Ok(None) };
    let law = weights.get().run(py, 1e9, |weights, run| {
        if weights.n() != records {
            let text = format!("weights are of {} records, but X has {records}", weights.n());
            return Err(Error::Shape(text));
        }
        weights.law(run)
    })?;
    Ok(Some(law))
}

fn pass_cost((_, columns, labels): &Given<'_>) -> PyResult<f64> {
    Ok(streaming_cost(8 * labels.as_slice()?.len().saturating_mul(columns + 2)))
}
