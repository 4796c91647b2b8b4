//! The sparse vector technique with integer noise: it tells which queries lie above a threshold, until a number of them
//! do not.

use super::respond::Remaining;
use crate::error::{Error, Result};
use crate::memory::room;
use crate::noise::{DiscreteLaplace, Rational, Seed, Stream};
use crate::run::Run;

/// Queries between two looks at whether to go on.
const CHUNK: usize = 1 << 14;

/// What changes from query to query.
#[derive(Clone, Copy)]
struct State {
    left: Remaining,
    /// The threshold with its noise, drawn when first needed and kept until the next bottom.
    noisy: Option<i64>,
}

/// Compares integer queries with a noisy threshold, each with noise of its own. A query that is not above it is a
/// bottom.
///
/// Guarantee: the noise is discrete Laplace, of scale s on the threshold and 2 s on a query. For queries of sensitivity
/// one, the answers up to and including a bottom are pure (2 / s)-DP; then the threshold's noise is drawn anew. So T
/// bottoms compose T such releases.
///
/// Source: Dwork and Roth 2014, Section 3.6; Bassily, Thakkar and Thakurta 2018, Algorithm 1, with integers in place of
/// reals and exactly T bottoms, not T + 1.
pub struct AboveThreshold {
    threshold: i64,
    scale: Rational,
    state: State,
}

impl AboveThreshold {
    /// A session with this threshold and this positive scale s, which ends when `left` is used up.
    pub fn new(threshold: i64, scale: Rational, left: Remaining) -> Result<AboveThreshold> {
        if *scale.numer() == 0u32.into() {
            return Err(Error::parameter("scale", scale, "it must be positive"));
        }
        Ok(AboveThreshold { threshold, scale, state: State { left, noisy: None } })
    }

    /// The numbers of bottoms and of queries that are left.
    pub fn left(&self) -> Remaining {
        self.state.left
    }

    /// Answers queries in their order until the session ends: 1 for a query found above the threshold, else 0.
    ///
    /// Cost: two to six words of the stream for each query, on one thread, since each depends on those before it.
    pub fn answer(&mut self, values: &[i64], seed: &Seed, run: Run<'_>) -> Result<Vec<u8>> {
        let mut answers = room(Some(values.len()))?;
        let of_threshold = DiscreteLaplace::new(&self.scale, 1);
        let of_query = DiscreteLaplace::new(&(&self.scale + &self.scale), values.len());
        let (mut rng, mut now) = (seed.stream(Stream::Noise, 0), self.state);
        for (number, &value) in values.iter().enumerate() {
            if number % CHUNK == 0 {
                run.check()?;
            }
            if now.left.over() {
                break;
            }
            let noisy = now.noisy.unwrap_or_else(|| self.threshold.saturating_add(of_threshold.draw(&mut rng)));
            let above = value.saturating_add(of_query.draw(&mut rng)) > noisy;
            now.noisy = above.then_some(noisy);
            now.left.queries -= 1;
            now.left.bottoms -= u64::from(!above);
            answers.push(u8::from(above));
        }
        self.state = now;
        Ok(answers)
    }
}
