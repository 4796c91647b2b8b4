//! Glue of `hdp_fast.stability`, which carries the documentation.

use hdp_fast_core::error::fitting;
use hdp_fast_core::stability::{self, Stand};
use pyo3::prelude::*;

use crate::array::{self, Bits, Counts, Threads, Vector};
use crate::error::raise;
use crate::run::{run, streaming_cost};

/// Votes (k, m) for labels on m queries, flat, as counts (m, labels), flat.
#[pyfunction]
pub fn count_votes<'py>(
    py: Python<'py>,
    votes: Bits<'py>,
    queries: usize,
    labels: usize,
    threads: Threads<'_, 'py>,
) -> PyResult<Vector<'py, u32>> {
    let votes = votes.as_slice()?;
    let size = fitting::<u32>(queries.checked_mul(labels)).map_err(raise)?;
    let counts = run(py, threads, streaming_cost(votes.len()), |run| {
        let mut counts = vec![0; size];
        stability::count_votes(votes, queries, labels, &mut counts, run)?;
        Ok(counts)
    })?;
    Ok(array::returned(py, counts))
}

/// Winners and distances of the histograms counts (m, labels), flat.
#[pyfunction]
pub fn vote_stands<'py>(
    py: Python<'py>,
    counts: Counts<'py>,
    labels: usize,
) -> PyResult<(Vector<'py, i64>, Vector<'py, i64>)> {
    let counts = counts.as_slice()?;
    let queries = counts.len() / labels.max(1);
    let (winners, distances) = run(py, None, streaming_cost(16 * counts.len()), |run| {
        let mut stands = vec![Stand::default(); fitting::<Stand>(Some(queries))?];
        stability::stands(counts, labels, &mut stands, run)?;
        Ok(stands.iter().map(|stand| (i64::from(stand.winner), i64::from(stand.distance))).unzip())
    })?;
    Ok((array::returned(py, winners), array::returned(py, distances)))
}
