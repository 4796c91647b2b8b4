//! The guarantee and the accuracy that a table promises.

use crate::error::{Error, Result};
use crate::params::{Epsilon, count, fraction};

/// Which answer a table gives the probabilities of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableKind {
    /// The answer "bottom", an abstention, which may be given as often as the number says, and which is certain at
    /// level 0.
    Hazard(u64),
    /// The label with fewer votes, of two labels; its probability at level 0 is 1/2.
    Vote,
}

/// What a table promises: privacy for all answers together, and a probability of failure.
#[derive(Clone, Copy, Debug)]
pub struct Promise {
    /// Which answer the table gives the probabilities of.
    pub kind: TableKind,
    /// The number of queries that may be asked.
    pub queries: u64,
    /// The epsilon of all answers together, from 0.001 to 1000.
    pub epsilon: Epsilon,
    /// The delta of all answers together.
    pub delta: f64,
    /// The probability of failure. One half of it, divided by the number of queries, bounds the probability at the last
    /// level; the other half is left for the votes themselves.
    pub beta: f64,
}

/// More bottoms or queries could not be counted.
const MOST: u64 = 1 << 40;

impl Promise {
    /// A promise, if its numbers lie in their ranges: queries and bottoms from 1 to 2^40, epsilon from 0.001 to 1000,
    /// delta and beta strictly between 0 and 1.
    pub fn new(kind: TableKind, queries: u64, epsilon: Epsilon, delta: f64, beta: f64) -> Result<Promise> {
        count("m", queries, MOST)?;
        if let TableKind::Hazard(bottoms) = kind {
            count("T", bottoms, MOST)?;
        }
        let (delta, beta) = (fraction("delta", delta, 1.0)?, fraction("beta", beta, 1.0)?);
        if !(1e-3..=1e3).contains(&epsilon.get()) {
            return Err(Error::parameter("epsilon", epsilon.get(), "a table needs one from 0.001 to 1000"));
        }
        Ok(Promise { kind, queries, epsilon, delta, beta })
    }

    /// The largest probability that the last level of a table may have.
    pub fn target(&self) -> f64 {
        let share = self.beta / 2.0 / self.queries as f64;
        // The last level of votes lies below the first, where both labels are equally likely.
        if self.kind == TableKind::Vote { share.min(0.25) } else { share }
    }
}
