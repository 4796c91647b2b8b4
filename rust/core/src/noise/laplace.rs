//! The discrete Laplace distribution and its one-sided half, exactly.

use std::sync::Arc;

use num_bigint::BigUint;

use super::array::IntegerNoise;
use super::geometric::{Inversion, Rejection};
use super::interval::Rational;
use super::rng::Rng;
use crate::error::{Error, Result};
use crate::simd::Isa;

/// Below this number of draws new tables of an inversion cost much more than they save.
pub const FEW_DRAWS: usize = 64;

/// How the two laws are drawn.
enum Method {
    /// The scale is 0: no noise.
    Zero,
    Rejection(Rejection),
    Inversion(Arc<Inversion>),
}

impl Method {
    fn new(scale: &Rational, draws: usize, signed: bool) -> Method {
        let word = |x: &BigUint| u64::try_from(x).ok();
        match (word(scale.numer()), word(scale.denom())) {
            (Some(0), _) => Method::Zero,
            (Some(numerator), Some(denominator)) if draws < FEW_DRAWS => {
                Method::Rejection(Rejection::new(numerator, denominator))
            }
            _ => Method::Inversion(Inversion::of_scale(scale, signed)),
        }
    }
}

/// The discrete Laplace distribution: integers with Pr\[X = x\] proportional to exp(-|x| / scale), saturating at the
/// ends of i64.
pub struct DiscreteLaplace(Method);

impl DiscreteLaplace {
    /// The distribution for an exact scale. It keeps tables if they pay for `draws` draws; any number may be drawn.
    pub fn new(scale: &Rational, draws: usize) -> DiscreteLaplace {
        DiscreteLaplace(Method::new(scale, draws, true))
    }

    /// Draws one integer.
    #[inline]
    pub fn draw(&self, rng: &mut Rng) -> i64 {
        match &self.0 {
            Method::Zero => 0,
            Method::Rejection(rejection) => rejection.draw_signed(rng),
            Method::Inversion(inversion) => inversion.draw_signed(rng),
        }
    }
}

impl IntegerNoise for DiscreteLaplace {
    fn fill(&self, out: &mut [i64], _: Isa, rng: &mut Rng) {
        match &self.0 {
            Method::Inversion(inversion) => inversion.fill_signed(out, rng),
            _ => out.iter_mut().for_each(|value| *value = self.draw(rng)),
        }
    }
}

/// The geometric distribution: integers x >= 0 with Pr\[X = x\] proportional to exp(-x / scale), saturating at 2^63 -
/// 1.
pub struct Geometric(Method);

impl Geometric {
    /// The distribution for an exact scale. It keeps tables if they pay for `draws` draws; any number may be drawn.
    pub fn new(scale: &Rational, draws: usize) -> Geometric {
        Geometric(Method::new(scale, draws, false))
    }

    /// Draws one integer.
    #[inline]
    pub fn draw(&self, rng: &mut Rng) -> i64 {
        match &self.0 {
            Method::Zero => 0,
            Method::Rejection(rejection) => rejection.draw(rng) as i64,
            Method::Inversion(inversion) => inversion.draw(rng) as i64,
        }
    }
}

impl IntegerNoise for Geometric {
    fn fill(&self, out: &mut [i64], _: Isa, rng: &mut Rng) {
        match &self.0 {
            Method::Inversion(inversion) => inversion.fill(out, rng),
            _ => out.iter_mut().for_each(|value| *value = self.draw(rng)),
        }
    }
}

/// Discrete Laplace noise of a scale that is a multiple of 2^-20 and certainly not below `scale`: more noise, never
/// less.
pub fn scale_at_least(scale: f64) -> Result<Rejection> {
    const UNIT: f64 = (1u64 << 20) as f64;
    if !(scale > 0.0 && scale < (1u64 << 40) as f64) {
        return Err(Error::parameter("scale", scale, "the scale of the noise must be positive and below 2^40"));
    }
    let numerator = (scale * (1.0 + f64::EPSILON * 8.0) * UNIT).ceil() as u64 + 1;
    Ok(Rejection::new(numerator, UNIT as u64))
}
