//! Votes as counts, and who wins by how much.

use std::iter::repeat_n;

use hdp_fast_core::memory::{collected, room, zeros};
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

/// Winners and distances of the two histograms of scores in half bins, cells (m, 2 * bins), flat: four numbers a query.
#[pyfunction]
pub fn cell_winners<'py>(py: Python<'py>, cells: Counts<'py>, bins: usize) -> PyResult<Vector<'py, u32>> {
    let cells = cells.as_slice()?;
    let queries = cells.len() / bins.saturating_mul(2).max(1);
    let winners = run(py, None, streaming_cost(16 * cells.len()), |run| {
        let mut pairs = collected(repeat_n([Plurality::default(); 2], queries))?;
        stability::cell_histograms(cells, bins, &mut pairs, run)?;
        let mut winners = room(queries.checked_mul(4))?;
        winners.extend(pairs.iter().flatten().flat_map(|found| [found.winner, found.distance]));
        Ok(winners)
    })?;
    Ok(array::returned(py, winners))
}
