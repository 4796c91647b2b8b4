//! The discrete Laplace distribution, exactly (Canonne, Kamath, Steinke 2020, Algorithm 2).

use super::bernoulli::Bernoulli;
use super::rng::Rng;
use crate::error::{Error, Result};

/// Integers with Pr[X = x] proportional to exp(-|x| / scale), for a positive rational scale.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DiscreteLaplace {
    numerator: u64,
    denominator: u64,
}

impl DiscreteLaplace {
    /// The smallest multiple of 2^-20 that is certainly not below `scale`: more noise, never less.
    pub fn at_least(scale: f64) -> Result<DiscreteLaplace> {
        const UNIT: f64 = (1u64 << 20) as f64;
        if !(scale > 0.0 && scale < (1u64 << 40) as f64) {
            return Err(Error::parameter("scale", scale, "the scale of the noise must be positive and below 2^40"));
        }
        let numerator = (scale * (1.0 + f64::EPSILON * 8.0) * UNIT).ceil() as u64 + 1;
        Ok(DiscreteLaplace { numerator, denominator: UNIT as u64 })
    }

    /// One draw.
    pub fn draw(&self, rng: &mut Rng) -> i64 {
        loop {
            let fraction = rng.below(self.numerator);
            if !exp_minus(fraction, self.numerator, rng) {
                continue;
            }
            let mut whole = 0u64;
            while exp_minus(1, 1, rng) {
                whole += 1;
            }
            let total = u128::from(fraction) + u128::from(self.numerator) * u128::from(whole);
            let magnitude = (total / u128::from(self.denominator)).min(i64::MAX as u128) as i64;
            let negative = rng.next_u64() & 1 == 1;
            // Zero has one sign only, else it would come twice as often.
            if !(negative && magnitude == 0) {
                return if negative { -magnitude } else { magnitude };
            }
        }
    }
}

/// True with probability exp(-numerator / denominator), for a ratio of at most one.
fn exp_minus(numerator: u64, denominator: u64, rng: &mut Rng) -> bool {
    let mut k = 1u64;
    // Bernoulli(ratio / k) as the two independent events of probability ratio and 1 / k.
    while Bernoulli::ratio(numerator, denominator).draw(rng) && Bernoulli::ratio(1, k).draw(rng) {
        k += 1;
    }
    k % 2 == 1
}
