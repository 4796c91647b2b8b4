//! Glue of `hdp_fast.accounting`, which has checked every scalar but those that describe a mechanism.

use hdp_fast_core::accounting::{self, Accountant, Base, Mechanism, Term};
use hdp_fast_core::error::Error;
use pyo3::prelude::*;

use crate::error::raise;
use crate::run::run;
use crate::scalar::word;

/// Kind, its parameters, draws and rate.
pub type Description = (String, Vec<f64>, u64, f64);

/// A composition takes from a few to a few hundred of these; all are worth interrupting.
pub const NANOSECONDS: f64 = 50e6;

pub fn mechanism((kind, parameters, draws, rate): Description) -> PyResult<Mechanism> {
    let base = match (kind.as_str(), &parameters[..]) {
        ("pure", &[epsilon]) => Base::Pure(epsilon),
        ("bounded_range", &[epsilon]) => Base::BoundedRange(epsilon),
        ("gaussian", &[mu]) => Base::Gaussian(mu),
        ("laplace", &[epsilon]) => Base::Laplace(epsilon),
        ("discrete_laplace", &[epsilon, sensitivity]) => Base::DiscreteLaplace(epsilon, sensitivity as u64),
        ("approximate", &[epsilon, delta]) => Base::Approximate(epsilon, delta),
        ("zcdp", &[rho]) => Base::Concentrated(rho),
        ("sampled_sum", &[mu, rate]) => Base::SampledSum(mu, rate),
        ("shuffled", &[epsilon, people, categories]) => Base::Shuffled(epsilon, people as u64, categories as u64),
        _ => return Err(raise(Error::parameter("mechanism", kind, "there is no such kind"))),
    };
    Mechanism { base, draws, rate }.checked().map_err(raise)
}

pub fn terms(terms: Vec<(Description, u64)>) -> PyResult<Vec<Term>> {
    terms.into_iter().map(|(description, rounds)| Ok(Term { mechanism: mechanism(description)?, rounds })).collect()
}

pub fn accountant(name: &Bound<'_, PyAny>) -> PyResult<Accountant> {
    word("accountant", name, &[("pld", Accountant::Pld), ("rdp", Accountant::Rdp)])
}

/// Refuses what no mechanism could be.
#[pyfunction]
pub fn check_mechanism(mechanism: Description) -> PyResult<()> {
    self::mechanism(mechanism).map(drop)
}

/// The delta of a composition.
#[pyfunction]
pub fn composed_delta(
    py: Python<'_>,
    terms: Vec<(Description, u64)>,
    epsilon: f64,
    accountant: &Bound<'_, PyAny>,
) -> PyResult<f64> {
    let (terms, accountant) = (self::terms(terms)?, self::accountant(accountant)?);
    run(py, None, NANOSECONDS, |run| accounting::delta(&terms, epsilon, accountant, run))
}

/// The epsilon of a composition.
#[pyfunction]
pub fn composed_epsilon(
    py: Python<'_>,
    terms: Vec<(Description, u64)>,
    delta: f64,
    accountant: &Bound<'_, PyAny>,
) -> PyResult<f64> {
    let (terms, accountant) = (self::terms(terms)?, self::accountant(accountant)?);
    run(py, None, NANOSECONDS, |run| accounting::epsilon(&terms, delta, accountant, run))
}

/// The Renyi divergence of a mechanism.
#[pyfunction]
pub fn renyi_divergence(py: Python<'_>, mechanism: Description, order: f64) -> PyResult<f64> {
    let mechanism = self::mechanism(mechanism)?;
    run(py, None, NANOSECONDS, |run| accounting::renyi_divergence(&mechanism, order, run))
}

/// The epsilon that one Renyi divergence implies.
#[pyfunction]
pub fn renyi_epsilon(order: f64, divergence: f64, delta: f64) -> f64 {
    accounting::renyi_epsilon(order, divergence, delta)
}

/// The delta of Gaussian differential privacy.
#[pyfunction]
pub fn gaussian_delta(mu: f64, epsilon: f64) -> f64 {
    accounting::gaussian_delta(mu, epsilon)
}

/// The epsilon of Gaussian differential privacy.
#[pyfunction]
pub fn gaussian_epsilon(mu: f64, delta: f64) -> f64 {
    accounting::gaussian_epsilon(mu, delta)
}

/// The largest mu of Gaussian differential privacy.
#[pyfunction]
pub fn gaussian_mu(epsilon: f64, delta: f64) -> f64 {
    accounting::gaussian_mu(epsilon, delta)
}

/// The delta of optimal composition.
#[pyfunction]
pub fn optimal_delta(epsilon: f64, delta: f64, rounds: u64, target: f64) -> f64 {
    accounting::optimal_delta(epsilon, delta, rounds, target)
}

/// The epsilon of optimal composition.
#[pyfunction]
pub fn optimal_epsilon(py: Python<'_>, epsilon: f64, delta: f64, rounds: u64, target: f64) -> f64 {
    py.detach(|| accounting::optimal_epsilon(epsilon, delta, rounds, target))
}
