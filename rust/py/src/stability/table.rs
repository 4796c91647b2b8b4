//! Tables that answer queries by a coin each.

use std::iter::repeat_n;

use hdp_fast_core::memory::collected;
use hdp_fast_core::stability::{self, Plurality, Promise, Remaining, TableKind};
use pyo3::prelude::*;

use crate::array::{self, Counts, Floats, Vector};
use crate::error::raise;
use crate::run::{run, streaming_cost};
use crate::scalar::{count, number};
use crate::seed::Key;

type Any<'a, 'py> = &'a Bound<'py, PyAny>;

/// A table takes from a few to thousands of these; all are worth interrupting.
const NANOSECONDS: f64 = 50e6;

/// A table of hazards, of T bottoms, or of votes, with no T; its guarantee is verified when it is made.
#[pyclass(frozen, module = "hdp_fast._core")]
pub struct AnswerTable {
    promise: Promise,
    words: Vec<u64>,
}

#[pymethods]
impl AnswerTable {
    #[new]
    #[allow(non_snake_case)]
    fn new(
        py: Python<'_>,
        T: Option<Any<'_, '_>>,
        m: Any<'_, '_>,
        epsilon: Any<'_, '_>,
        delta: Any<'_, '_>,
        beta: Any<'_, '_>,
        words: Option<Vec<u64>>,
    ) -> PyResult<AnswerTable> {
        let kind = match T {
            Some(bottoms) => TableKind::Hazard(count("T", bottoms, 1)? as u64),
            None => TableKind::Vote,
        };
        let (queries, delta, beta) = (count("m", m, 1)? as u64, number("delta", delta)?, number("beta", beta)?);
        let promise = Promise::new(kind, queries, crate::scalar::epsilon(epsilon)?, delta, beta).map_err(raise)?;
        let words = run(py, None, NANOSECONDS, |run| {
            let words = words.map_or_else(|| promise.design(run), Ok)?;
            promise.verify(&words, run).map(|_| words)
        })?;
        Ok(AnswerTable { promise, words })
    }

    /// The probabilities of the levels from 1 on in units of 2**-64.
    #[getter]
    fn words(&self) -> Vec<u64> {
        self.words.clone()
    }

    /// The epsilon that the integers have, found anew.
    fn verify(&self, py: Python<'_>) -> PyResult<f64> {
        run(py, None, NANOSECONDS, |run| self.promise.verify(&self.words, run))
    }

    /// Labels or -1 for the histograms counts (m, labels), flat, up to the last of so many bottoms; and their number.
    fn answer_counts<'py>(
        &self,
        py: Python<'py>,
        counts: Counts<'py>,
        labels: usize,
        bottoms: u64,
        seed: Key,
    ) -> PyResult<(Vector<'py, i64>, u64)> {
        let counts = counts.as_slice()?;
        let (answers, bottoms) = run(py, None, streaming_cost(16 * counts.len()), |run| {
            stability::respond_to_counts(&self.words, counts, labels, bottoms, &seed, run)
        })?;
        Ok((array::returned(py, answers), bottoms))
    }

    /// Labels or -1, given how many of the members vote for label 1 of two; and the number of bottoms.
    fn answer_ones<'py>(
        &self,
        py: Python<'py>,
        ones: Counts<'py>,
        members: u32,
        bottoms: Option<u64>,
        seed: Key,
    ) -> PyResult<(Vector<'py, i8>, u64)> {
        let ones = ones.as_slice()?;
        let (answers, bottoms) = run(py, None, streaming_cost(16 * ones.len()), |run| {
            stability::respond_to_ones(self.promise.kind, &self.words, ones, members, bottoms, &seed, run)
        })?;
        Ok((array::returned(py, answers), bottoms))
    }

    /// For scores (k, m), flat: twice the bin, one more than twice the shifted bin, or -1; and what is left of the
    /// bottoms and queries.
    fn answer_scores<'py>(
        &self,
        py: Python<'py>,
        scores: Floats<'py>,
        queries: usize,
        bins: usize,
        left: (u64, u64),
        seed: Key,
    ) -> PyResult<(Vector<'py, i64>, u64, u64)> {
        let scores = scores.as_slice()?;
        let mut left = Remaining { bottoms: left.0, queries: left.1 };
        let answers = run(py, None, streaming_cost(16 * scores.len()), |run| {
            let mut pairs = collected(repeat_n([Plurality::default(); 2], queries))?;
            stability::histograms(scores, bins, &mut pairs, run)?;
            stability::respond_twice(&self.words, &pairs, &mut left, &seed, run)
        })?;
        Ok((array::returned(py, answers), left.bottoms, left.queries))
    }
    /// The same for winners and distances of the two histograms of each query, four numbers a query.
    fn answer_winners<'py>(
        &self,
        py: Python<'py>,
        winners: Counts<'py>,
        left: (u64, u64),
        seed: Key,
    ) -> PyResult<(Vector<'py, i64>, u64, u64)> {
        let winners = winners.as_slice()?;
        let mut left = Remaining { bottoms: left.0, queries: left.1 };
        let answers = run(py, None, streaming_cost(16 * winners.len()), |run| {
            let pair = |four: &[u32]| [0, 2].map(|i| Plurality { winner: four[i], distance: four[i + 1] });
            let pairs = collected(winners.chunks_exact(4).map(pair))?;
            stability::respond_twice(&self.words, &pairs, &mut left, &seed, run)
        })?;
        Ok((array::returned(py, answers), left.bottoms, left.queries))
    }
}
