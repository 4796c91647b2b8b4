//! Glue of `hdp_fast.parity`.

use std::cell::RefCell;
use std::sync::Arc;

use hdp_fast_core::Error;
use hdp_fast_core::gf2::{self as core, BitMatrix};
use hdp_fast_core::params::Neighbors;
use hdp_fast_core::parity::{self, Examples, Mechanism, Method, Part, Plan, Records, Target};
use pyo3::prelude::*;

use crate::array::{self, Bits, Vector};
use crate::bit_matrix::{matrix, vector};
use crate::error::raise;
use crate::row_space::{Equations, RowSpace};
use crate::run::{run, streaming_cost};
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

/// Some of the records, all of them checked: what is refused is refused before any budget is spent.
#[pyclass(frozen, module = "hdp_fast._core")]
pub struct ParityRecords {
    matrix: Arc<BitMatrix>,
    labels: BitMatrix,
    affine: bool,
}

#[pymethods]
impl ParityRecords {
    #[new]
    #[pyo3(signature = (X, y, affine))]
    #[allow(non_snake_case)]
    fn new(X: Any<'_, '_>, y: Any<'_, '_>, affine: bool) -> PyResult<ParityRecords> {
        let matrix = matrix("X", X, None)?;
        let labels = vector("y", y, matrix.rows(), "the number of rows of X")?;
        let records = ParityRecords { matrix, labels, affine };
        records.part((0, 0)).examples.check().map_err(raise)?;
        Ok(records)
    }

    /// Numbers of rows and columns.
    #[getter]
    fn shape(&self) -> (usize, usize) {
        (self.matrix.rows(), self.matrix.columns())
    }
}

impl ParityRecords {
    fn part(&self, (first, total): (u64, u64)) -> Part<'_> {
        let examples = Examples { matrix: &self.matrix, labels: self.labels.row(0), affine: self.affine };
        Part { examples, first, total }
    }
}

/// A mechanism for records in parts, each with the number of its first record and that of all.
#[pyclass(frozen, module = "hdp_fast._core")]
pub struct ParityMechanism(Mechanism);

#[pymethods]
impl ParityMechanism {
    #[new]
    #[pyo3(signature = (epsilon, method, neighbors, plan))]
    fn new(
        epsilon: Any<'_, '_>,
        method: Any<'_, '_>,
        neighbors: Any<'_, '_>,
        plan: Any<'_, '_>,
    ) -> PyResult<ParityMechanism> {
        let epsilon = crate::scalar::epsilon(epsilon)?;
        let plan = plan_of(plan.extract().map_err(not_a_plan)?);
        let mechanism = Mechanism::new(epsilon, neighbors_of(neighbors)?, method_of(method)?, &plan).map_err(raise)?;
        Ok(ParityMechanism(mechanism))
    }

    /// Adds those of the records that a system samples to its equations.
    fn add(
        &self,
        py: Python<'_>,
        equations: &Equations,
        records: &ParityRecords,
        place: (u64, u64),
        system: u64,
        seed: Key,
    ) -> PyResult<()> {
        let rows = records.matrix.rows();
        equations.add(py, rows, records.matrix.columns(), |equations, run| {
            self.0.add(equations, &records.part(place), system, &seed, run)
        })
    }

    /// Errors of a hypothesis on those of the records that are test records.
    fn errors(
        &self,
        py: Python<'_>,
        records: &ParityRecords,
        place: (u64, u64),
        hypothesis: Bits<'_>,
    ) -> PyResult<i64> {
        let (bits, cost) = (hypothesis.as_slice()?, streaming_cost(records.matrix.rows() * records.matrix.words() * 8));
        run(py, None, cost, |run| self.0.errors(&records.part(place), bits, run))
    }

    /// Runs the mechanism: the bits of the hypothesis, the intercept last if affine, or None. The spaces of systems, and
    /// the errors of hypotheses, are those that the functions return of all records.
    fn learn<'py>(
        &self,
        py: Python<'py>,
        total: u64,
        seed: Key,
        spaces: Bound<'py, PyAny>,
        errors: Bound<'py, PyAny>,
    ) -> PyResult<Option<Vector<'py>>> {
        let records = Folded { total, spaces, errors, raised: RefCell::new(None) };
        let learned = parity::learn_from(&records, &self.0, &seed);
        match records.raised.take() {
            Some(error) => Err(error),
            None => Ok(learned.map_err(raise)?.map(|bits| array::returned(py, bits))),
        }
    }
}

/// Records that Python folds.
struct Folded<'py> {
    total: u64,
    spaces: Bound<'py, PyAny>,
    errors: Bound<'py, PyAny>,
    /// What a fold raised, which the core has no name for.
    raised: RefCell<Option<PyErr>>,
}

impl Folded<'_> {
    fn keep<T>(&self, result: PyResult<T>) -> Result<T, Error> {
        result.map_err(|error| {
            self.raised.replace(Some(error));
            Error::Canceled
        })
    }
}

impl Records for Folded<'_> {
    fn total(&self) -> u64 {
        self.total
    }

    fn spaces(&self, systems: &[u64]) -> Result<Vec<core::RowSpace>, Error> {
        let made = || {
            let spaces: Vec<Bound<'_, RowSpace>> = self.spaces.call1((systems.to_vec(),))?.extract()?;
            Ok(spaces.iter().map(|space| core::RowSpace::clone(&space.get().0)).collect())
        };
        self.keep(made())
    }

    fn errors(&self, hypotheses: &[Vec<u8>]) -> Result<Vec<i64>, Error> {
        let bits: Vec<_> = hypotheses.iter().map(|bits| array::returned(self.errors.py(), bits.clone())).collect();
        self.keep(self.errors.call1((bits,)).and_then(|counts| counts.extract()))
    }
}
