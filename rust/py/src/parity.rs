//! Glue of `hdp_fast.parity`.

use std::sync::Arc;

use hdp_fast_core::gf2::BitMatrix;
use hdp_fast_core::params::Neighbors;
use hdp_fast_core::parity::{self, Examples, Mechanism, Method, Plan, Target};
use pyo3::prelude::*;

use crate::array::{self, Vector};
use crate::error::raise;
use crate::gf2::{matrix, vector};
use crate::run::{elimination_cost, run, streaming_cost};
use crate::scalar::{count, epsilon, not_a_plan, number, word};
use crate::seed::Key;

type Any<'a, 'py> = &'a Bound<'py, PyAny>;

/// What a plan takes to be run, a dict in Python.
#[derive(FromPyObject, IntoPyObject)]
#[pyo3(from_item_all)]
pub struct PlanItems {
    n: u64,
    p: f64,
    g: Option<f64>,
    c: Option<f64>,
    k: Option<u64>,
    batch_size: Option<u64>,
    test_size: Option<u64>,
}

fn items(plan: Plan) -> PlanItems {
    let Plan { n, p, g, c, k, batch_size, test_size } = plan;
    PlanItems { n, p, g, c, k, batch_size, test_size }
}

fn plan_of(items: PlanItems) -> Plan {
    let PlanItems { n, p, g, c, k, batch_size, test_size } = items;
    Plan { n, p, g, c, k, batch_size, test_size }
}

fn method_of(name: Any<'_, '_>) -> PyResult<Method> {
    word("method", name, &[("loop", Method::Loop), ("batches", Method::Batches), ("paper", Method::Paper)])
}

fn neighbors_of(name: Any<'_, '_>) -> PyResult<Neighbors> {
    word("neighbors", name, &[("replace_one", Neighbors::ReplaceOne), ("add_remove", Neighbors::AddRemove)])
}

fn target(d: Any<'_, '_>, alpha: f64, beta: Any<'_, '_>, eps: Any<'_, '_>, neighbors: Any<'_, '_>) -> PyResult<Target> {
    let (unknowns, beta) = (count("d", d, 1)?, number("beta", beta)?);
    Ok(Target { unknowns, alpha, beta, epsilon: epsilon(eps)?, neighbors: neighbors_of(neighbors)? })
}

/// The plan of a method.
#[pyfunction]
#[pyo3(signature = (d, alpha, beta, epsilon, method, neighbors))]
pub fn plan_parity(
    d: Any<'_, '_>,
    alpha: Any<'_, '_>,
    beta: Any<'_, '_>,
    epsilon: Any<'_, '_>,
    method: Any<'_, '_>,
    neighbors: Any<'_, '_>,
) -> PyResult<PlanItems> {
    let target = target(d, number("alpha", alpha)?, beta, epsilon, neighbors)?;
    parity::plan(&target, method_of(method)?).map(items).map_err(raise)
}

/// The plan for a source at a given chi-squared divergence from the uniform target.
#[pyfunction]
pub fn plan_parity_uniform_target(
    d: Any<'_, '_>,
    chi2: Any<'_, '_>,
    beta: Any<'_, '_>,
    epsilon: Any<'_, '_>,
    method: Any<'_, '_>,
    neighbors: Any<'_, '_>,
) -> PyResult<PlanItems> {
    let target = target(d, 0.25, beta, epsilon, neighbors)?;
    parity::plan_uniform_target(&target, number("chi2", chi2)?, method_of(method)?).map(items).map_err(raise)
}

/// The least error that n records promise, if any, and the plan to use with them.
#[pyfunction]
pub fn promise_parity(
    d: Any<'_, '_>,
    n: u64,
    beta: Any<'_, '_>,
    epsilon: Any<'_, '_>,
    method: Any<'_, '_>,
    neighbors: Any<'_, '_>,
) -> PyResult<(Option<f64>, PlanItems)> {
    let target = target(d, 0.25, beta, epsilon, neighbors)?;
    let (alpha, plan) = parity::promise(&target, method_of(method)?, n).map_err(raise)?;
    Ok((alpha, items(plan)))
}

/// Examples and a mechanism for them, all of it checked: what is refused is refused before any budget is spent.
#[pyclass(frozen, module = "hdp_fast._core")]
pub struct ParityTask {
    matrix: Arc<BitMatrix>,
    labels: BitMatrix,
    affine: bool,
    mechanism: Mechanism,
}

#[pymethods]
impl ParityTask {
    #[new]
    #[pyo3(signature = (X, y, epsilon, method, neighbors, plan, affine))]
    #[allow(non_snake_case)]
    fn new(
        X: Any<'_, '_>,
        y: Any<'_, '_>,
        epsilon: Any<'_, '_>,
        method: Any<'_, '_>,
        neighbors: Any<'_, '_>,
        plan: Any<'_, '_>,
        affine: bool,
    ) -> PyResult<ParityTask> {
        let epsilon = crate::scalar::epsilon(epsilon)?;
        let plan = plan_of(plan.extract().map_err(not_a_plan)?);
        let mechanism = Mechanism::new(epsilon, neighbors_of(neighbors)?, method_of(method)?, &plan).map_err(raise)?;
        let matrix = matrix("X", X, None)?;
        let labels = vector("y", y, matrix.rows(), "the number of rows of X")?;
        let task = ParityTask { matrix, labels, affine, mechanism };
        task.examples().check().map_err(raise)?;
        Ok(task)
    }

    /// Runs the mechanism: the bits of the hypothesis, the intercept last if affine, or None.
    fn learn<'py>(&self, py: Python<'py>, seed: Key) -> PyResult<Option<Vector<'py>>> {
        let (examples, mechanism) = (self.examples(), &self.mechanism);
        let (rows, columns) = (self.matrix.rows(), self.matrix.columns());
        let once = elimination_cost(rows, columns) + streaming_cost(64 * rows);
        let cost = mechanism.systems() * (once + 1e3);
        let hypothesis = run(py, None, cost, |run| parity::learn(&examples, mechanism, &seed, run))?;
        Ok(hypothesis.map(|bits| array::returned(py, bits)))
    }
}

impl ParityTask {
    fn examples(&self) -> Examples<'_> {
        Examples { matrix: &self.matrix, labels: self.labels.row(0), affine: self.affine }
    }
}
