//! Glue of the searches of `hdp_fast.accounting`, whose arguments are checked.

use hdp_fast_core::accounting::{self, Care, Range, Search, Target};
use pyo3::prelude::*;

use crate::accounting::{Description, NANOSECONDS, accountant, mechanism, terms};
use crate::lock::Locked;
use crate::run::run;

/// Epsilon, delta and the accountant.
type Goal<'py> = (f64, f64, Bound<'py, PyAny>);

fn target((epsilon, delta, name): &Goal<'_>) -> PyResult<Target> {
    Ok(Target { epsilon: *epsilon, delta: *delta, accountant: accountant(name)? })
}

fn care(guessed: bool) -> Care {
    if guessed { Care::Guessed } else { Care::Shown }
}

/// A search for the least noise of mechanisms that its caller makes.
#[pyclass(frozen, module = "hdp_fast._core")]
pub struct NoiseSearch(Locked<Search>);

#[pymethods]
impl NoiseSearch {
    #[new]
    fn new(low: f64, high: f64, goal: Goal<'_>) -> PyResult<NoiseSearch> {
        let search = Search::new(Range::of_noise(low, high), target(&goal)?, Care::Shown);
        Ok(NoiseSearch(Locked::new(search)))
    }

    /// The noise whose mechanisms are examined next; None at the end.
    fn noise(&self, py: Python<'_>) -> PyResult<Option<f64>> {
        self.0.with(py, |search| Ok(search.next_number()))
    }

    /// Takes the mechanisms of that noise.
    fn examine(&self, py: Python<'_>, terms: Vec<(Description, u64)>) -> PyResult<()> {
        let terms = self::terms(terms)?;
        self.0.with(py, |search| run(py, None, NANOSECONDS, |run| search.examine(&terms, run)))
    }

    /// The least noise that is enough; None where there is none.
    fn least(&self, py: Python<'_>) -> PyResult<Option<f64>> {
        self.0.with(py, |search| Ok(search.boundary()))
    }
}

/// The least Gaussian noise between two bounds, for a sensitivity of 1; None where there is none.
#[pyfunction]
pub fn smallest_gaussian_noise(
    py: Python<'_>,
    bounds: [f64; 2],
    draws: u64,
    rate: f64,
    rounds: u64,
    goal: Goal<'_>,
) -> PyResult<Option<f64>> {
    let target = target(&goal)?;
    run(py, None, NANOSECONDS, |run| accounting::smallest_noise(bounds, draws, rate, rounds, target, run))
}

/// The largest rate of `rounds` runs on subsamples; None where there is none.
#[pyfunction]
pub fn largest_rate(
    py: Python<'_>,
    base: Description,
    draws: u64,
    rounds: u64,
    goal: Goal<'_>,
    guessed: bool,
) -> PyResult<Option<f64>> {
    let (base, target, care) = (mechanism(base)?.base, target(&goal)?, care(guessed));
    run(py, None, NANOSECONDS, |run| accounting::largest_rate(base, draws, rounds, target, care, run))
}

/// The largest number of draws of `rounds` runs on subsamples.
#[pyfunction]
pub fn largest_draws(
    py: Python<'_>,
    base: Description,
    rate: f64,
    rounds: u64,
    goal: Goal<'_>,
    guessed: bool,
) -> PyResult<u64> {
    let (base, target, care) = (mechanism(base)?.base, target(&goal)?, care(guessed));
    run(py, None, NANOSECONDS, |run| accounting::largest_draws(base, rate, rounds, target, care, run))
}

/// The number of runs that meet a target.
#[pyfunction]
pub fn largest_rounds(py: Python<'_>, mechanism: Description, goal: Goal<'_>) -> PyResult<u64> {
    let (mechanism, target) = (self::mechanism(mechanism)?, target(&goal)?);
    run(py, None, NANOSECONDS, |run| accounting::largest_rounds(mechanism, target, run))
}
