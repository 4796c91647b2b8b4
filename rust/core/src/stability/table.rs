//! Tables that turn a level, the distance from another answer, into the probability of an answer that protects.

use super::design::{design_hazard, design_vote};
use super::verify::certified_epsilon;
use crate::error::{Error, Result};
use crate::params::{Epsilon, fraction};
use crate::run::Run;

/// What a level's probability is that of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Of the answer "bottom", of which there may be so many; certain at level 0.
    Hazard(u64),
    /// Of the label with fewer votes, one of two; 1/2 at level 0.
    Vote,
}

/// What a table is to promise.
#[derive(Clone, Copy, Debug)]
pub struct Promise {
    /// What the probabilities are of.
    pub kind: Kind,
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
    pub fn new(kind: Kind, queries: u64, epsilon: Epsilon, delta: f64, beta: f64) -> Result<Promise> {
        let rule = format!("it must be an integer from 1 to {MOST}");
        let counted = |name: &str, value: u64| {
            if (1..=MOST).contains(&value) { Ok(value) } else { Err(Error::parameter(name, value, &rule)) }
        };
        counted("m", queries)?;
        if let Kind::Hazard(bottoms) = kind {
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
        if self.kind == Kind::Vote { share.min(0.25) } else { share }
    }

    /// The probabilities of the levels from 1 on in units of 2^-64, with as few levels as the search finds.
    ///
    /// They are rounded up, so that no bottom becomes rarer than designed, and verified after that: the guarantee rests
    /// on [`Promise::verify`] alone.
    pub fn design(&self, run: Run<'_>) -> Result<Vec<u64>> {
        // Rounding to multiples of 2^-64 costs a little where delta is tiny.
        for loss in [1e-9, 1e-6, 1e-4, 1e-2, 0.1] {
            let words = match self.kind {
                Kind::Hazard(bottoms) => design_hazard(self, bottoms, loss),
                Kind::Vote => design_vote(self, loss),
            };
            if let Some(words) = words.filter(|words| self.verify(words, run).is_ok()) {
                return Ok(words);
            }
            run.check()?;
        }
        let rule = "no table of up to 2**17 levels keeps it for so many answers";
        Err(Error::parameter("epsilon", self.epsilon.get(), rule))
    }

    /// The epsilon at delta that a table of probabilities in units of 2^-64 certainly has, over all orders; an error
    /// unless it is at most the promised one and the last probability at most the target.
    pub fn verify(&self, words: &[u64], run: Run<'_>) -> Result<f64> {
        let falling = words.windows(2).all(|pair| pair[0] >= pair[1]);
        let last = words.last().copied().filter(|&word| word > 0 && falling);
        let Some(last) = last else {
            return Err(Error::parameter(
                "table",
                format!("{} levels", words.len()),
                "they must fall and stay above 0",
            ));
        };
        // Both sides are multiples of powers of two or rounded once; equality is fine.
        if last as f64 > self.target() * 18_446_744_073_709_551_616.0 {
            return Err(Error::parameter("table", last, "its last probability must be at most beta / (2 m)"));
        }
        let epsilon = certified_epsilon(self, words, run);
        run.check()?;
        if epsilon <= self.epsilon.get() {
            return Ok(epsilon);
        }
        Err(Error::parameter("table", epsilon, "its verified epsilon must not exceed the promised one"))
    }
}
