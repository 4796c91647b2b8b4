//! The terms of a composition: checked, and gathered where several are bounded together.

use super::bounded_range::MOST_RUNS;
use super::mechanism::{Base, Mechanism, Term};
use super::pair::MOST_LOSS;
use crate::error::{Error, Result};
use crate::params::count;

/// The terms, checked, and as blocks of what is bounded together.
pub fn check_terms(terms: &[Term]) -> Result<Vec<Term>> {
    if terms.is_empty() {
        return Err(Error::Parameter("mechanisms is empty, but it must hold at least one".into()));
    }
    let check = |term: &Term| {
        let rounds = count("rounds", term.rounds, 1 << 53)?;
        Ok(Term { mechanism: term.mechanism.checked()?, rounds })
    };
    terms.iter().map(check).collect::<Result<_>>().map(in_blocks)
}

/// The terms, with the runs of bounded range in blocks: all those of one epsilon together, in whatever order they run.
/// Those on subsamples stay as they are.
fn in_blocks(terms: Vec<Term>) -> Vec<Term> {
    let mut others = Vec::new();
    let mut runs: Vec<(f64, u64)> = Vec::new();
    for term in terms {
        let Mechanism { base: Base::BoundedRange(epsilon), draws, rate: 1.0 } = term.mechanism else {
            others.push(term);
            continue;
        };
        let range = draws as f64 * epsilon;
        let same = runs.iter_mut().find(|(other, _)| *other == range);
        match same.and_then(|(_, rounds)| rounds.checked_add(term.rounds).map(|sum| *rounds = sum)) {
            Some(()) => {}
            None => runs.push((range, term.rounds)),
        }
    }
    others.extend(runs.into_iter().flat_map(|(range, rounds)| blocks(range, rounds)));
    others
}

/// Whole blocks of runs, and what is left.
fn blocks(range: f64, rounds: u64) -> impl Iterator<Item = Term> {
    let size = ((MOST_LOSS / range) as u64).clamp(1, MOST_RUNS);
    let block = move |(runs, rounds)| {
        let base = if runs == 1 { Base::BoundedRange(range) } else { Base::BoundedRanges(range, runs) };
        Term { mechanism: Mechanism { base, draws: 1, rate: 1.0 }, rounds }
    };
    let left = rounds % size;
    [(size, rounds / size), (left, left.min(1))].into_iter().filter(|&(_, rounds)| rounds > 0).map(block)
}
