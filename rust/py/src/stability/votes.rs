//! Votes as counts, and who wins by how much.

use std::iter::repeat_n;

use hdp_fast_core::memory::{collected, zeros};
use hdp_fast_core::stability::{self, Plurality};
use pyo3::prelude::*;

use crate::array::{self, Bits, Counts, Threads, Vector};
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
    let counts = run(py, threads, streaming_cost(votes.len()), |run| {
        let mut counts = zeros(queries.checked_mul(labels))?;
        stability::count_votes(votes, queries, labels, &mut counts, run)?;
        Ok(counts)
    })?;
    Ok(array::returned(py, counts))
}

/// Winners and distances of the histograms counts (m, labels), flat.
#[pyfunction]
pub fn pluralities<'py>(
    py: Python<'py>,
    counts: Counts<'py>,
    labels: usize,
) -> PyResult<(Vector<'py, i64>, Vector<'py, i64>)> {
    let counts = counts.as_slice()?;
    let queries = counts.len() / labels.max(1);
    let (winners, distances) = run(py, None, streaming_cost(16 * counts.len()), |run| {
        let mut pluralities = collected(repeat_n(Plurality::default(), queries))?;
        stability::pluralities(counts, labels, &mut pluralities, run)?;
        let winners = collected(pluralities.iter().map(|plurality| i64::from(plurality.winner)))?;
        Ok((winners, collected(pluralities.iter().map(|plurality| i64::from(plurality.distance)))?))
    })?;
    Ok((array::returned(py, winners), array::returned(py, distances)))
}
