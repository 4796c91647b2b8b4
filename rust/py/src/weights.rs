//! Glue of `hdp_fast.weights`, which carries the documentation.

use hdp_fast_core::error::fitting;
use hdp_fast_core::noise::{Stream, draws};
use hdp_fast_core::weights::{self, Losses};
use pyo3::prelude::*;

use crate::array::{self, Bits, Floats, FloatsToWrite, Vector};
use crate::error::raise;
use crate::noise::seed;
use crate::run::{run, streaming_cost};
use crate::scalar::count;

/// A rough cost of a draw among many records, in nanoseconds: two reads from memory.
const DRAW: f64 = 100.0;

/// min(c w, 1) with the smallest c at which it sums to kappa n, into a new array.
#[pyfunction]
pub fn project<'py>(py: Python<'py>, w: Floats<'py>, kappa: f64) -> PyResult<Vector<'py, f64>> {
    let w = w.as_slice()?;
    let projected = run(py, None, streaming_cost(32 * w.len()), |run| {
        let mut out = vec![0.0; fitting::<f64>(Some(w.len()))?];
        weights::project(w, kappa, &mut out, run)?;
        Ok(out)
    })?;
    Ok(array::returned(py, projected))
}

/// The same, in place.
#[pyfunction]
pub fn project_in_place(py: Python<'_>, mut w: FloatsToWrite<'_>, kappa: f64) -> PyResult<()> {
    let w = w.as_slice_mut()?;
    run(py, None, streaming_cost(32 * w.len()), |run| weights::project_in_place(w, kappa, run))
}

/// Multiplicative weights, which never leave this object.
#[pyclass(frozen, module = "hdp_fast._core")]
pub struct DenseWeights(std::sync::Mutex<weights::DenseWeights>);

impl DenseWeights {
    /// The weights, for one call.
    pub fn held(&self) -> std::sync::MutexGuard<'_, weights::DenseWeights> {
        // A panic elsewhere leaves whole weights behind.
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

#[pymethods]
impl DenseWeights {
    #[new]
    fn new(n: &Bound<'_, PyAny>, kappa: f64, eta: f64) -> PyResult<DenseWeights> {
        let made = weights::DenseWeights::new(count("n", n, 1)?, kappa, eta).map_err(raise)?;
        Ok(DenseWeights(std::sync::Mutex::new(made)))
    }

    fn continued(&self, kappa: f64, eta: f64) -> PyResult<DenseWeights> {
        let made = self.held().continued(kappa, eta).map_err(raise)?;
        Ok(DenseWeights(std::sync::Mutex::new(made)))
    }

    fn probabilities<'py>(&self, py: Python<'py>) -> PyResult<Vector<'py, f64>> {
        let found = run(py, None, 1e9, |run| self.held().probabilities(run))?;
        Ok(array::returned(py, found))
    }

    #[getter]
    fn updates(&self) -> u64 {
        self.held().updates()
    }

    #[getter]
    fn room(&self) -> u64 {
        self.held().room()
    }

    #[getter]
    fn rate(&self) -> f64 {
        self.held().rate()
    }

    fn update_floats(&self, py: Python<'_>, losses: Floats<'_>) -> PyResult<()> {
        let losses = losses.as_slice()?;
        run(py, None, streaming_cost(24 * losses.len()), |run| self.held().update(Losses::Floats(losses), run))
    }

    fn update_bits(&self, py: Python<'_>, losses: Bits<'_>) -> PyResult<()> {
        let losses = losses.as_slice()?;
        run(py, None, streaming_cost(16 * losses.len()), |run| self.held().update(Losses::Bits(losses), run))
    }

    fn draw<'py>(
        &self,
        py: Python<'py>,
        m: &Bound<'py, PyAny>,
        random_state: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Vector<'py, i64>> {
        let size = fitting::<i64>(Some(count("m", m, 0)?)).map_err(raise)?;
        let seed = seed(py, random_state)?;
        let drawn = run(py, None, DRAW * size as f64 + 1e9, |run| {
            let law = self.held().law(run)?;
            let mut drawn = vec![0; size];
            draws(&mut drawn, Stream::Integers, &seed, run, |rng| law.draw(rng) as i64)?;
            Ok(drawn)
        })?;
        Ok(array::returned(py, drawn))
    }
}
