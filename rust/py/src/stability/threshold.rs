//! The sparse vector technique.

use std::sync::atomic::{AtomicU64, Ordering};

use hdp_fast_core::stability::{self, Remaining};
use pyo3::prelude::*;

use crate::array::{self, Integers, Vector};
use crate::error::raise;
use crate::lock::Locked;
use crate::noise::{DRAW, Fraction, rational};
use crate::run::run;
use crate::seed::Key;

/// A threshold with noise, which never leaves this object.
#[pyclass(frozen, module = "hdp_fast._core")]
pub struct AboveThreshold {
    state: Locked<stability::AboveThreshold>,
    /// What is left, beside the state, so that no thread waits for an answer to be told.
    bottoms: AtomicU64,
    queries: AtomicU64,
}

#[pymethods]
impl AboveThreshold {
    #[new]
    fn new(threshold: i64, scale: Fraction, bottoms: u64, queries: u64) -> PyResult<AboveThreshold> {
        let left = Remaining { bottoms, queries };
        let made = stability::AboveThreshold::new(threshold, rational(scale), left).map_err(raise)?;
        let (bottoms, queries) = (AtomicU64::new(bottoms), AtomicU64::new(queries));
        Ok(AboveThreshold { state: Locked::new(made), bottoms, queries })
    }

    /// Bottoms and queries that are left.
    #[getter]
    fn left(&self) -> (u64, u64) {
        (self.bottoms.load(Ordering::Relaxed), self.queries.load(Ordering::Relaxed))
    }

    /// For each value 1 if it is found above, else 0, up to the last bottom or query.
    fn answer<'py>(&self, py: Python<'py>, values: Integers<'py>, seed: Key) -> PyResult<Vector<'py>> {
        let values = values.as_slice()?;
        let cost = DRAW * values.len() as f64;
        let answers = self.state.with(py, |state| {
            run(py, None, cost, |run| {
                let answers = state.answer(values, &seed, run)?;
                self.bottoms.store(state.left().bottoms, Ordering::Relaxed);
                self.queries.store(state.left().queries, Ordering::Relaxed);
                Ok(answers)
            })
        })?;
        Ok(array::returned(py, answers))
    }
}
