//! Noise on sums of clipped gradients.

use num_bigint::BigUint;

use crate::noise::{ContinuousGaussian, Rational, Rng, RoundedGaussian, Seed, Stream};
use crate::simd::{Grid, Real};

/// The largest norm K of a gradient rounded to integers. The grid is so fine that rounding costs nothing beside any
/// noise, and so coarse that sums of 2^32 gradients are exact in floats.
pub const UNITS: u32 = 1 << 20;

/// What is added to each sum of clipped gradients. A scale of s is a standard deviation of s times the largest norm of
/// a gradient.
#[derive(Clone, Debug)]
pub enum Noise {
    /// Nothing is added: there is no privacy.
    None,
    /// Gaussian numbers in floats, of this scale s. Their guarantee is idealized: it is that of real numbers.
    Idealized(f64),
    /// Rounded Gaussian numbers of this scale s, hence sigma = s K, on sums of gradients that are rounded to integers of
    /// norm at most K = [`UNITS`].
    ///
    /// Guarantee: every rounded gradient u has |u| <= K, checked for each of them, so that replacing one draw moves a sum by
    /// |u - u'| <= 2K, and replacing j draws by at most 2jK. The sums are integers. The noisy sum is therefore the sum
    /// with real normal deviates, rounded afterwards, and for j replaced draws it is as private as the Gaussian
    /// mechanism with mu = 2jK / (s K) = 2j / s. Where the number of draws has a Poisson law, a record that is drawn j times
    /// moves the sum of all others by at most jK, whatever they are. Everything that follows is computed from it and from earlier ones.
    Exact(Rational),
}

impl Noise {
    /// The standard deviation as a multiple of the largest norm of a gradient.
    pub fn scale(&self) -> f64 {
        use num_traits::ToPrimitive;
        match self {
            Noise::None => 0.0,
            Noise::Idealized(scale) => *scale,
            Noise::Exact(scale) => scale.to_f64().unwrap_or(f64::INFINITY),
        }
    }
}

/// The distribution of the noise of a run, with its random bits.
pub struct NoiseSource {
    law: Law,
    rng: Rng,
}

enum Law {
    None,
    Continuous(Box<ContinuousGaussian>, f64),
    Rounded(Ready),
}

/// Noise that is drawn in blocks, three times as fast as number by number, and used up step by step.
struct Ready {
    law: RoundedGaussian,
    drawn: Vec<i64>,
    used: usize,
}

/// Numbers that are drawn at a time.
const BLOCK: usize = 512;

impl Ready {
    /// Noise of which so many numbers are needed in all.
    fn new(law: RoundedGaussian, numbers: usize) -> Ready {
        let drawn = vec![0; numbers.min(BLOCK)];
        Ready { used: drawn.len(), drawn, law }
    }

    #[inline]
    fn next(&mut self, rng: &mut Rng) -> i64 {
        if self.used == self.drawn.len() {
            self.law.fill(&mut self.drawn, rng);
            self.used = 0;
        }
        self.used += 1;
        self.drawn[self.used - 1]
    }
}

impl NoiseSource {
    /// The noise for a run that adds it to this number of sums, where gradients have at most this norm.
    pub fn new(noise: &Noise, clip_norm: f64, numbers: usize, seed: &Seed) -> NoiseSource {
        let law = match noise {
            Noise::None => Law::None,
            Noise::Idealized(scale) => Law::Continuous(Box::default(), scale * clip_norm),
            Noise::Exact(scale) => {
                let law = RoundedGaussian::new(&(scale * BigUint::from(UNITS)), numbers);
                Law::Rounded(Ready::new(law, numbers))
            }
        };
        NoiseSource { law, rng: seed.stream(Stream::Noise, 0) }
    }

    /// Adds noise to sums; integers, below 2^53, if the noise is exact.
    #[inline]
    pub fn add(&mut self, sums: &mut [f64]) {
        match &mut self.law {
            Law::None => {}
            Law::Continuous(normal, scale) => {
                sums.iter_mut().for_each(|sum| *sum += *scale * normal.draw(&mut self.rng));
            }
            // Rounding the exact sum to a float comes after the release.
            Law::Rounded(ready) => {
                sums.iter_mut().for_each(|sum| *sum = (*sum as i64).saturating_add(ready.next(&mut self.rng)) as f64);
            }
        }
    }
}

/// The grid to which gradients with this number of entries and this largest norm are rounded. It is coarser by what
/// rounding, in entries of this precision, can add to the norm, so that the norm stays within K.
pub fn grid<T: Real>(noise: &Noise, clip_norm: f64, columns: usize) -> Option<Grid> {
    let (most, columns) = (f64::from(UNITS), columns as f64);
    // To integers, and what the norm is off by, a sum of so many squares in lanes of eight.
    let room = columns.sqrt() / 2.0 + 1.0 + most * T::EPSILON * (columns / 32.0 + 4.0);
    matches!(noise, Noise::Exact(_)).then_some(Grid { scale: (most - room) / clip_norm, most })
}
