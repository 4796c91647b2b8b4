//! Tables that turn a level, the distance from another answer, into the probability of an answer that protects.

use super::design::{design_hazard, design_vote};
use super::promise::{Promise, TableKind};
use super::verify::certified_epsilon;
use crate::error::{Error, Result};
use crate::run::Run;

impl Promise {
    /// Searches a table that keeps the promise with few levels. Returns the probabilities of the levels from 1 on, in
    /// units of 2^-64.
    ///
    /// They are rounded up, so that no bottom becomes rarer than designed, and verified after that: the guarantee rests
    /// on [`Promise::verify`] alone.
    pub fn design(&self, run: Run<'_>) -> Result<Vec<u64>> {
        // Rounding to multiples of 2^-64 costs a little where delta is tiny.
        for loss in [1e-9, 1e-6, 1e-4, 1e-2, 0.1] {
            let words = match self.kind {
                TableKind::Hazard(bottoms) => design_hazard(self, bottoms, loss),
                TableKind::Vote => design_vote(self, loss),
            };
            if let Some(words) = words.filter(|words| self.verify(words, run).is_ok()) {
                return Ok(words);
            }
            run.check()?;
        }
        let rule = "no table of up to 2**17 levels keeps it for so many answers: fewer help, or a larger epsilon";
        Err(Error::parameter("epsilon", self.epsilon.get(), rule))
    }

    /// Proves the promise for a table of probabilities in units of 2^-64. Returns the least epsilon at the promised
    /// delta that some Renyi order proves, rounded up, and refuses the table if that exceeds the promised one or if the
    /// last probability exceeds the target.
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
