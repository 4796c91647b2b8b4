//! How a kernel is called: the interpreter released, Ctrl-C heard, small work not handed to other threads.

use hdp_fast_core::run::Run;
use hdp_fast_core::simd::Isa;
use hdp_fast_core::{Result, pool};
use pyo3::prelude::*;

use crate::error::raise;
use crate::scalar::count;

/// Work below this is done before another thread would have woken up.
const HANDOVER_NANOSECONDS: f64 = 1e6;

/// Work below this is over before it could be interrupted.
const INTERRUPTIBLE_NANOSECONDS: f64 = 20e6;

/// Calls `work` with the interpreter released; `nanoseconds` is a rough estimate of its cost on one thread.
pub fn run<R: Send>(
    py: Python<'_>,
    threads: Option<&Bound<'_, PyAny>>,
    nanoseconds: f64,
    work: impl FnOnce(Run<'_>) -> Result<R> + Send,
) -> PyResult<R> {
    let threads = threads.map(|value| count("threads", value, 1)).transpose()?;
    let threads = pool::threads(threads).map_err(raise)?;
    let isa = Isa::detect().map_err(raise)?;
    let limit = if threads == 1 { INTERRUPTIBLE_NANOSECONDS } else { HANDOVER_NANOSECONDS };
    if nanoseconds < limit {
        return py.detach(|| work(Run::alone(isa))).map_err(raise);
    }
    let mut interrupt = None;
    let result = py.detach(|| {
        pool::supervise(
            threads,
            |canceled| work(Run::new(isa, threads > 1, canceled)),
            || {
                interrupt = interrupt.take().or_else(|| Python::attach(|py| py.check_signals().err()));
                interrupt.is_none()
            },
        )
    });
    match interrupt {
        Some(interrupt) => Err(interrupt),
        None => result.and_then(|result| result).map_err(raise),
    }
}

/// Refuses environment variables that any kernel would refuse.
#[pyfunction]
pub fn check_settings() -> PyResult<()> {
    pool::threads(None).and_then(|_| Isa::detect()).map(drop).map_err(raise)
}

/// A rough cost of an m x d system, in nanoseconds; an upper bound, since it grows with the rank that is missing.
pub fn elimination_cost(m: usize, d: usize) -> f64 {
    let (m, d) = (m as f64, d as f64);
    m * d * m.min(d) / 4096.0 + m * d / 256.0
}

/// A rough cost of a pass over so many bytes, in nanoseconds.
pub fn streaming_cost(bytes: usize) -> f64 {
    bytes as f64 / 8.0
}
