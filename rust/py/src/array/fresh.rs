//! New vectors of numpy, for kernels to fill.

use hdp_fast_core::Result;
use hdp_fast_core::memory::check_array;
use hdp_fast_core::run::Run;
use numpy::{Element, PyArrayMethods, dtype};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

use super::Vector;
use super::borrow::in_use;
use crate::error::raise;
use crate::run::run;

/// numpy's function, since finding it takes longer than calling it.
static EMPTY: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// A vector of `count` entries that `fill` has written to.
///
/// numpy asks the system for huge pages for large arrays, which our own allocator does not: memory that is written for
/// the first time then costs a fifth. Before `fill` the entries hold anything.
pub fn fresh<'py, T: Element>(
    py: Python<'py>,
    count: usize,
    fill: impl FnOnce(&mut [T]) -> PyResult<()>,
) -> PyResult<Vector<'py, T>> {
    check_array(count.saturating_mul(size_of::<T>())).map_err(raise)?;
    let empty = EMPTY.import(py, "numpy", "empty")?;
    let made = empty.call1((count, dtype::<T>(py)))?;
    let vector = made.cast_into::<numpy::PyArray1<T>>()?;
    fill(vector.try_readwrite().map_err(in_use)?.as_slice_mut()?)?;
    Ok(vector)
}

/// The same filled by a kernel; `nanoseconds` is a rough estimate of its cost on one thread.
pub fn filled<'py, T: Element + Send>(
    py: Python<'py>,
    count: usize,
    nanoseconds: f64,
    fill: impl FnOnce(&mut [T], Run<'_>) -> Result<()> + Send,
) -> PyResult<Vector<'py, T>> {
    fresh(py, count, |out| run(py, None, nanoseconds, |run| fill(out, run)))
}
