//! The sparse vector technique with integer noise: which queries lie above a threshold, up to so many that do not.

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

/// Integer queries compared with a noisy threshold, each with noise of its own.
///
/// With noise of scale s on the threshold and 2 s on a query, both discrete Laplace, what is answered up to and including
/// a bottom is pure 2 / s-DP for queries of sensitivity one; then the threshold's noise is drawn anew. So T bottoms compose
/// T such releases. Source: Dwork and Roth 2014, Section 3.6; Bassily, Thakkar and Thakurta 2018, Algorithm 1, with
/// integers for reals and exactly T bottoms, not T + 1.
pub struct AboveThreshold {
    threshold: i64,
    scale: Rational,
    state: State,
}

impl AboveThreshold {
    /// A comparison with a threshold that ends as `left` says; the scale is positive.
    pub fn new(threshold: i64, scale: Rational, left: Remaining) -> Result<AboveThreshold> {
        if *scale.numer() == 0u32.into() {
            return Err(Error::parameter("scale", scale, "it must be positive"));
        }
        Ok(AboveThreshold { threshold, scale, state: State { left, noisy: None } })
    }

    /// What may still be asked.
    pub fn left(&self) -> Remaining {
        self.state.left
    }

    /// For each query 1 if it is found above the threshold, else 0, as many as come until the end.
    ///
    /// Cost: two to six words of the stream a query, on one thread, since each depends on those before it.
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
