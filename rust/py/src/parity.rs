//! Glue of `hdp_fast.parity`.

use hdp_fast_core::params::{Epsilon, Neighbours};
use hdp_fast_core::parity::{self, Examples, Mechanism, Method, Plan, Target};
use pyo3::prelude::*;

use crate::array::{self, Vector, count};
use crate::error::{parameter, raise};
use crate::gf2::{matrix, vector};
use crate::noise::seed;
use crate::run::{elimination_cost, run, streaming_cost};

/// n, p, g, c, k, batch_size, test_size of a plan.
type PlanFields = (u64, f64, Option<f64>, Option<f64>, Option<u64>, Option<u64>, Option<u64>);

fn fields(plan: Plan) -> PlanFields {
    (plan.n, plan.p, plan.g, plan.c, plan.k, plan.batch_size, plan.test_size)
}

fn plan_of((n, p, g, c, k, batch_size, test_size): PlanFields) -> Plan {
    Plan { n, p, g, c, k, batch_size, test_size }
}

fn method_of(name: &str) -> PyResult<Method> {
    match name {
        "loop" => Ok(Method::Loop),
        "batches" => Ok(Method::Batches),
        "paper" => Ok(Method::Paper),
        _ => Err(parameter("method", name, "it must be 'loop', 'batches' or 'paper'")),
    }
}

fn neighbours_of(name: &str) -> PyResult<Neighbours> {
    match name {
        "replace_one" => Ok(Neighbours::ReplaceOne),
        "add_remove" => Ok(Neighbours::AddRemove),
        _ => Err(parameter("neighbours", name, "it must be 'replace_one' or 'add_remove'")),
    }
}

fn target(d: &Bound<'_, PyAny>, alpha: f64, beta: f64, epsilon: f64, neighbours: &str) -> PyResult<Target> {
    let epsilon = Epsilon::new(epsilon).map_err(raise)?;
    Ok(Target { unknowns: count("d", d)?, alpha, beta, epsilon, neighbours: neighbours_of(neighbours)? })
}

/// The plan of a method.
#[pyfunction]
pub fn plan_parity(
    d: &Bound<'_, PyAny>,
    alpha: f64,
    beta: f64,
    epsilon: f64,
    method: &str,
    neighbours: &str,
) -> PyResult<PlanFields> {
    let target = target(d, alpha, beta, epsilon, neighbours)?;
    parity::plan(&target, method_of(method)?).map(fields).map_err(raise)
}

/// The plan for a source at a given chi-squared divergence from the uniform target.
#[pyfunction]
pub fn plan_parity_uniform_target(
    d: &Bound<'_, PyAny>,
    chi2: f64,
    beta: f64,
    epsilon: f64,
    method: &str,
    neighbours: &str,
) -> PyResult<PlanFields> {
    let target = target(d, 0.25, beta, epsilon, neighbours)?;
    parity::plan_uniform_target(&target, chi2, method_of(method)?).map(fields).map_err(raise)
}

/// The least error that n records promise, if any, and the plan to use with them.
#[pyfunction]
pub fn promise_parity(
    d: &Bound<'_, PyAny>,
    n: u64,
    beta: f64,
    epsilon: f64,
    method: &str,
    neighbours: &str,
) -> PyResult<(Option<f64>, PlanFields)> {
    let target = target(d, 0.25, beta, epsilon, neighbours)?;
    let (alpha, plan) = parity::promise(&target, method_of(method)?, n).map_err(raise)?;
    Ok((alpha, fields(plan)))
}

/// Runs the mechanism: the bits of the hypothesis, the intercept last if affine, or None.
#[pyfunction]
#[pyo3(signature = (X, y, epsilon, method, neighbours, plan, affine, random_state))]
#[allow(non_snake_case, clippy::too_many_arguments)]
pub fn learn_parity<'py>(
    py: Python<'py>,
    X: &Bound<'py, PyAny>,
    y: &Bound<'py, PyAny>,
    epsilon: f64,
    method: &str,
    neighbours: &str,
    plan: PlanFields,
    affine: bool,
    random_state: Option<&Bound<'py, PyAny>>,
) -> PyResult<Option<Vector<'py>>> {
    let epsilon = Epsilon::new(epsilon).map_err(raise)?;
    let mechanism = Mechanism::new(epsilon, neighbours_of(neighbours)?, method_of(method)?, &plan_of(plan));
    let mechanism = mechanism.map_err(raise)?;
    let matrix = matrix("X", X)?;
    let y = vector("y", y, matrix.rows(), "the number of rows of X")?;
    let seed = seed(py, random_state)?;
    let examples = Examples { matrix: &matrix, labels: y.row(0), affine };
    let cost = elimination_cost(matrix.rows(), matrix.columns()) + streaming_cost(64 * matrix.rows());
    let hypothesis = run(py, None, cost, |run| parity::learn(&examples, &mechanism, &seed, run))?;
    Ok(hypothesis.map(|bits| array::returned(py, bits)))
}
