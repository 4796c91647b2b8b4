//! Glue of `hdp_fast.noise`, and the coins of all other calls.

use hdp_fast_core::noise::{self, Bernoulli, Seed};
use pyo3::prelude::*;

use crate::array::{self, Vector};
use crate::error::raise;
use crate::run::{run, streaming_cost};
use crate::scalar::{bytes, count};

/// The key of a call: from the operating system, or for tests from what the caller gives.
pub fn seed(py: Python<'_>, random_state: Option<&Bound<'_, PyAny>>) -> PyResult<Seed> {
    match random_state {
        None => Seed::from_os().map_err(raise),
        Some(state) => {
            let key = py.import("hdp_fast._random")?.call_method1("key", (state,))?;
            Ok(Seed::reproducible(key.extract()?))
        }
    }
}

/// A probability as hdp_fast.noise hands it over.
#[derive(FromPyObject)]
pub enum Probability {
    Ratio(u64, u64),
    Float(f64),
}

/// Draws of one probability; the documentation is that of hdp_fast.noise.bernoulli.
#[pyfunction]
pub fn bernoulli<'py>(
    py: Python<'py>,
    p: Probability,
    size: &Bound<'py, PyAny>,
    random_state: Option<&Bound<'py, PyAny>>,
) -> PyResult<Vector<'py>> {
    let p = match p {
        Probability::Ratio(numerator, denominator) => Bernoulli::ratio(numerator, denominator),
        Probability::Float(p) => Bernoulli::float(p),
    };
    let size = count("size", size, 0)?;
    let seed = seed(py, random_state)?;
    let mut draws = bytes(size)?;
    let draws = run(py, None, streaming_cost(size.saturating_mul(64)), |run| {
        noise::bernoulli_array(&p, &mut draws, &seed, run);
        run.check().map(|()| draws)
    })?;
    Ok(array::returned(py, draws))
}
