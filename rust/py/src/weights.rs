//! Glue of `hdp_fast.weights`, which carries the documentation.

use std::sync::atomic::{AtomicU64, Ordering};

use hdp_fast_core::noise::Stream;
use hdp_fast_core::run::Run;
use hdp_fast_core::weights::{self, Losses, Out};
use hdp_fast_core::{Error, Result};
use pyo3::prelude::*;

use crate::array::{self, Bits, Floats, FloatsToWrite, Vector};
use crate::error::raise;
use crate::lock::Locked;
use crate::run::{run, streaming_cost};
use crate::scalar::count;
use crate::seed::Key;

/// A rough cost of a draw among many records, in nanoseconds: two reads from memory.
const DRAW: f64 = 100.0;

/// A rough number of bytes that a projection reads and writes for a weight, with what it computes.
const PROJECTED: usize = 40;

/// min(c w, 1) with the smallest c at which it sums to kappa n, into a new array.
#[pyfunction]
pub fn project<'py>(py: Python<'py>, w: Floats<'py>, kappa: f64) -> PyResult<Vector<'py, f64>> {
    let w = w.as_slice()?;
    array::fresh(py, w.len(), |out| {
        run(py, None, streaming_cost(PROJECTED * w.len()), |run| weights::project(w, kappa, Out::Fresh(out), run))
    })
}

/// The same into an array that shares no memory with w.
#[pyfunction]
pub fn project_into(py: Python<'_>, w: Floats<'_>, kappa: f64, mut out: FloatsToWrite<'_>) -> PyResult<()> {
    let (w, out) = (w.as_slice()?, out.as_slice_mut()?);
    if w.len() != out.len() {
        return Err(raise(Error::Shape(format!("out has {} entries, but w has {}", out.len(), w.len()))));
    }
    run(py, None, streaming_cost(PROJECTED * w.len()), |run| weights::project(w, kappa, Out::Used(out), run))
}

/// The same in place.
#[pyfunction]
pub fn project_in_place(py: Python<'_>, mut w: FloatsToWrite<'_>, kappa: f64) -> PyResult<()> {
    let w = w.as_slice_mut()?;
    run(py, None, streaming_cost(PROJECTED * w.len()), |run| weights::project_in_place(w, kappa, run))
}

/// Refuses settings that no weights could be made with, before there are records.
#[pyfunction]
pub fn check_weights(n: &Bound<'_, PyAny>, kappa: f64, eta: f64, rounds: &Bound<'_, PyAny>) -> PyResult<()> {
    let rounds = count("rounds", rounds, 1)? as u64;
    weights::check_weights(count("n", n, 1)?, kappa, eta, rounds).map_err(raise)
}

/// Multiplicative weights, which never leave this object.
#[pyclass(frozen, module = "hdp_fast._core")]
pub struct DenseWeights {
    weights: Locked<weights::DenseWeights>,
    /// Beside the weights, so that no thread waits for a kernel to be told what is public.
    rate: f64,
    updates: AtomicU64,
    room: AtomicU64,
}

impl DenseWeights {
    fn of(weights: weights::DenseWeights) -> DenseWeights {
        let (updates, room) = (AtomicU64::new(weights.updates()), AtomicU64::new(weights.room()));
        DenseWeights { rate: weights.rate(), weights: Locked::new(weights), updates, room }
    }

    /// Calls a kernel with the weights; `nanoseconds` is a rough estimate of its cost.
    pub fn run<R: Send>(
        &self,
        py: Python<'_>,
        nanoseconds: f64,
        work: impl FnOnce(&mut weights::DenseWeights, Run<'_>) -> Result<R> + Send,
    ) -> PyResult<R> {
        self.weights.with(py, |weights| run(py, None, nanoseconds, |run| work(weights, run)))
    }

    fn update(&self, py: Python<'_>, nanoseconds: f64, losses: Losses<'_>) -> PyResult<()> {
        self.run(py, nanoseconds, |weights, run| {
            weights.update(losses, run)?;
            self.updates.store(weights.updates(), Ordering::Relaxed);
            self.room.store(weights.room(), Ordering::Relaxed);
            Ok(())
        })
    }
}

#[pymethods]
impl DenseWeights {
    #[new]
    fn new(n: &Bound<'_, PyAny>, kappa: f64, eta: f64) -> PyResult<DenseWeights> {
        weights::DenseWeights::new(count("n", n, 1)?, kappa, eta).map(DenseWeights::of).map_err(raise)
    }

    fn continued(&self, py: Python<'_>, kappa: f64, eta: f64) -> PyResult<DenseWeights> {
        self.run(py, 0.0, |weights, _| weights.continued(kappa, eta)).map(DenseWeights::of)
    }

    fn probabilities<'py>(&self, py: Python<'py>) -> PyResult<Vector<'py, f64>> {
        let probabilities = self.run(py, 1e9, |weights, run| weights.probabilities(run))?;
        Ok(array::returned(py, probabilities))
    }

    #[getter]
    fn updates(&self) -> u64 {
        self.updates.load(Ordering::Relaxed)
    }

    #[getter]
    fn room(&self) -> u64 {
        self.room.load(Ordering::Relaxed)
    }

    #[getter]
    fn rate(&self) -> f64 {
        self.rate
    }

    fn update_floats(&self, py: Python<'_>, losses: Floats<'_>) -> PyResult<()> {
        let losses = losses.as_slice()?;
        self.update(py, streaming_cost(24 * losses.len()), Losses::Floats(losses))
    }

    fn update_bits(&self, py: Python<'_>, losses: Bits<'_>) -> PyResult<()> {
        let losses = losses.as_slice()?;
        self.update(py, streaming_cost(16 * losses.len()), Losses::Bits(losses))
    }

    fn draw<'py>(&self, py: Python<'py>, m: &Bound<'py, PyAny>, seed: Key) -> PyResult<Vector<'py, i64>> {
        let size = count("m", m, 0)?;
        array::fresh(py, size, |drawn| {
            self.run(py, DRAW * size as f64 + 1e9, |weights, run| {
                weights.law(run)?.fill(drawn, Stream::Integers, &seed, run)
            })
        })
    }
}
