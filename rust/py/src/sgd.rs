//! Glue of `hdp_fast.learners.PrivateSGD`, which carries the documentation.

use hdp_fast_core::error::Error;
use hdp_fast_core::noise::Weighted;
use hdp_fast_core::sgd::{self, Domain, Draws, Noise, Objective, Output, Plan};
use num_traits::ToPrimitive;
use pyo3::prelude::*;

use crate::array::{self, Floats, Integers, Vector};
use crate::error::raise;
use crate::linear_model::named_loss;
use crate::noise::{Fraction, rational};
use crate::records::{Labeled, row_numbers, with_records};
use crate::run::{run, streaming_cost};
use crate::scalar::word;
use crate::seed::Key;
use crate::weights::DenseWeights;

/// A rough cost of a step on one row, in nanoseconds, and of each of its entries.
const STEP: f64 = 50.0;
const ENTRY: f64 = 5.0;

/// Where the rows come from, unless they are uniform.
#[derive(FromPyObject)]
pub enum Rows<'py> {
    Weights(Bound<'py, DenseWeights>),
    Indices(Integers<'py>),
}

/// The argument `plan`, a dict.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct PlanItems<'py> {
    loss: Bound<'py, PyAny>,
    shape: f64,
    classes: usize,
    steps: usize,
    batch_size: usize,
    radius: f64,
    bounds: Option<(f64, f64)>,
    last: bool,
    start: Option<Floats<'py>>,
    norm_bound: f64,
    clip_norm: f64,
    l1: f64,
    l2: f64,
    strong_convexity: f64,
    sampling: Bound<'py, PyAny>,
    numerics: Bound<'py, PyAny>,
    noise_multiplier: Fraction,
}

impl PlanItems<'_> {
    fn checked(self) -> PyResult<Plan> {
        let plan = Plan {
            objective: match self.classes {
                1 => Objective::Linear(named_loss(&self.loss, self.shape)?),
                classes => Objective::Softmax(classes),
            },
            steps: self.steps,
            batch_size: self.batch_size,
            domain: self.bounds.map_or(Domain::Ball(self.radius), |(low, high)| Domain::Box(low, high)),
            output: if self.last { Output::Last } else { Output::Mean },
            start: self.start.as_ref().map(|start| Ok::<_, PyErr>(start.as_slice()?.to_vec())).transpose()?,
            norm_bound: self.norm_bound,
            clip_norm: self.clip_norm,
            l1: self.l1,
            l2: self.l2,
            strong_convexity: self.strong_convexity,
            noise: noise(&self.numerics, self.noise_multiplier)?,
        };
        plan.check().map_err(raise)?;
        Ok(plan)
    }
}

fn noise(numerics: &Bound<'_, PyAny>, multiplier: Fraction) -> PyResult<Noise> {
    let multiplier = rational(multiplier);
    let idealized = Noise::Idealized(multiplier.to_f64().unwrap_or(f64::INFINITY));
    Ok(match word("numerics", numerics, &[("none", 0), ("idealized", 1), ("exact", 2)])? {
        0 => Noise::None,
        1 => idealized,
        _ => Noise::Exact(multiplier),
    })
}

/// The mean model of a run, or its last: float64 (columns,), for several classes one after the other.
#[pyfunction]
pub fn sgd_learn<'py>(
    py: Python<'py>,
    records: Labeled<'py>,
    draws: Option<Rows<'py>>,
    plan: PlanItems<'py>,
    seed: Key,
) -> PyResult<Vector<'py, f64>> {
    let uniform = word("sampling", &plan.sampling, &[("fixed", Draws::Uniform), ("poisson", Draws::Poisson)])?;
    let (plan, n) = (plan.checked()?, records.len()?);
    let rows = match &draws {
        Some(Rows::Indices(rows)) => Some(row_numbers(rows)?),
        _ => None,
    };
    let law = match &draws {
        Some(Rows::Weights(weights)) => Some(law_of(py, weights.get(), n)?),
        _ => None,
    };
    let draws = match (&rows, &law) {
        (Some(rows), _) => Draws::Given(rows),
        (None, Some(law)) => Draws::Weighted(law),
        (None, None) => uniform,
    };
    let weights = records.columns as f64 * plan.objective.classes() as f64;
    let step = STEP + ENTRY * weights * plan.batch_size as f64;
    let cost = step * plan.steps as f64 + streaming_cost(8 * n);
    let learned = with_records!(py, None, records, cost, |records, run| sgd::learn(records, draws, &plan, &seed, run))?;
    Ok(array::returned(py, learned))
}

/// The law of draws by weights of so many records, which may change while it is used.
fn law_of(py: Python<'_>, weights: &DenseWeights, records: usize) -> PyResult<Weighted> {
    weights.run(py, 1e9, |weights, run| {
        if weights.n() != records {
            let text = format!("weights are of {} records, but X has {records}", weights.n());
            return Err(Error::Shape(text));
        }
        weights.law(run)
    })
}
