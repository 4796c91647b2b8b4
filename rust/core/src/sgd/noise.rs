//! Noise on sums of clipped gradients.

use num_bigint::BigUint;

use crate::noise::{ContinuousGaussian, DiscreteGaussian, Rational, Rng, Seed, Stream};
use crate::simd::{Grid, Real};

/// The largest norm K of a rounded gradient. Fine enough that rounding to integers of so many in the Lipschitz constant
/// costs nothing beside any noise, and coarse enough that sums of 2^32 of them are exact in floats.
pub const UNITS: u32 = 1 << 20;

/// What is added to a sum of clipped gradients, s standard deviations being s times their largest norm.
#[derive(Clone, Debug)]
pub enum Noise {
    /// Nothing: no privacy.
    None,
    /// Gaussian numbers in floats, named idealized.
    Idealized(f64),
    /// Discrete Gaussian numbers of sigma s K on sums of gradients that are rounded to integers of norm at most K.
    ///
    /// Every rounded gradient u has |u| <= K, checked in integers, so that replacing a draw moves a sum by |u - u'| <= 2K
    /// and j draws by 2jK at most. The noisy sum is an integer vector that is (2jK)^2 / (2 (s K)^2) = 2 j^2 / s^2 zCDP, and
    /// all that follows is made of it and of earlier ones.
    Exact(Rational),
}

impl Noise {
    /// The standard deviation in Lipschitz constants.
    pub fn scale(&self) -> f64 {
        use num_traits::ToPrimitive;
        match self {
            Noise::None => 0.0,
            Noise::Idealized(scale) => *scale,
            Noise::Exact(scale) => scale.to_f64().unwrap_or(f64::INFINITY),
        }
    }
}

/// The law of the noise of a run, with its coins.
pub struct NoiseSource {
    law: Law,
    rng: Rng,
}

enum Law {
    None,
    Continuous(Box<ContinuousGaussian>, f64),
    Discrete(DiscreteGaussian),
}

impl NoiseSource {
    /// For so many numbers, where gradients have at most this norm.
    pub fn new(noise: &Noise, clip_norm: f64, numbers: usize, seed: &Seed) -> NoiseSource {
        let law = match noise {
            Noise::None => Law::None,
            Noise::Idealized(scale) => Law::Continuous(Box::default(), scale * clip_norm),
            Noise::Exact(scale) => Law::Discrete(DiscreteGaussian::new(&(scale * BigUint::from(UNITS)), numbers)),
        };
        NoiseSource { law, rng: seed.stream(Stream::Noise, 0) }
    }

    /// Adds noise to sums; integers, below 2^53, if the noise is discrete.
    #[inline]
    pub fn add(&mut self, sums: &mut [f64]) {
        match &self.law {
            Law::None => {}
            Law::Continuous(normal, scale) => {
                sums.iter_mut().for_each(|sum| *sum += scale * normal.draw(&mut self.rng));
            }
            // Rounding the exact sum to a float comes after the release.
            Law::Discrete(law) => {
                sums.iter_mut().for_each(|sum| *sum = (*sum as i64).saturating_add(law.draw(&mut self.rng)) as f64);
            }
        }
    }
}

/// The integers that gradients of so many entries and this largest norm are rounded to: coarser by what rounding can add
/// to the norm, in entries of this precision, so that it stays within K.
pub fn grid<T: Real>(noise: &Noise, clip_norm: f64, columns: usize) -> Option<Grid> {
    let (most, columns) = (f64::from(UNITS), columns as f64);
    // To integers, and what the norm is off by, a sum of so many squares in lanes of eight.
    let room = columns.sqrt() / 2.0 + 1.0 + most * T::EPSILON * (columns / 32.0 + 4.0);
    matches!(noise, Noise::Exact(_)).then_some(Grid { scale: (most - room) / clip_norm, most })
}
