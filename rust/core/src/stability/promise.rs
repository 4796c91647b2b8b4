//! What a table is to promise.

use crate::error::{Error, Result};
use crate::params::{Epsilon, fraction};

/// What the probabilities of a table are those of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableKind {
    /// Of the answer "bottom", of which there may be so many; certain at level 0.
    Hazard(u64),
    /// Of the label with fewer votes, one of two; 1/2 at level 0.
    Vote,
}

/// What a table is to promise.
#[derive(Clone, Copy, Debug)]
pub struct Promise {
    /// What the table's probabilities are those of.
    pub kind: TableKind,
    /// How many queries may be asked.
    pub queries: u64,
    /// Privacy of all answers together.
    pub epsilon: Epsilon,
    /// Privacy of all answers together.
    pub delta: f64,
    /// The last level's probability is at most half of it, shared among the queries; the other half is for the votes.
    pub beta: f64,
}

/// More bottoms or queries could not be counted.
const MOST: u64 = 1 << 40;

impl Promise {
    /// A promise within its domain.
    pub fn new(kind: TableKind, queries: u64, epsilon: Epsilon, delta: f64, beta: f64) -> Result<Promise> {
        let rule = format!("it must be an integer from 1 to {MOST}");
        let counted = |name: &str, value: u64| {
            if (1..=MOST).contains(&value) { Ok(value) } else { Err(Error::parameter(name, value, &rule)) }
        };
        counted("m", queries)?;
        if let TableKind::Hazard(bottoms) = kind {
            counted("T", bottoms)?;
        }
        let (delta, beta) = (fraction("delta", delta, 1.0)?, fraction("beta", beta, 1.0)?);
        if !(1e-3..=1e3).contains(&epsilon.get()) {
            return Err(Error::parameter("epsilon", epsilon.get(), "a table needs one from 0.001 to 1000"));
        }
        Ok(Promise { kind, queries, epsilon, delta, beta })
    }

    /// The largest probability that the last level may have.
    pub fn target(&self) -> f64 {
        let share = self.beta / 2.0 / self.queries as f64;
        // The last level of votes lies below the first, where both labels are equally likely.
        if self.kind == TableKind::Vote { share.min(0.25) } else { share }
    }
}
