//! The discrete Gaussian distribution, exactly.

use std::sync::Arc;

use num_bigint::BigUint;
use num_traits::{ToPrimitive, Zero};

use super::array::IntegerNoise;
use super::exponential::{ROUNDING, begun_exp_minus_coin, exp_minus_coin};
use super::interval::Rational;
use super::kept::Kept;
use super::laplace::{DiscreteLaplace, FEW_DRAWS};
use super::normal_law::Normal;
use super::rng::Rng;
use super::table::{Table, fill_accepted, fill_unfolded, unfolded};
use crate::simd::{Isa, LARGEST_BLOCK, propose};

/// The largest sigma of a table, in blocks; it keeps tables in the fastest cache.
const MOST_BLOCKS: u32 = 64;

static TABLES: Kept<Table<Normal>> = Kept::new();
static BLOCKS: Kept<Blocks> = Kept::new();

/// The discrete Gaussian distribution: integers with Pr\[X = x\] proportional to exp(-x^2 / (2 sigma^2)). Source:
/// Canonne, Kamath and Steinke 2020.
pub enum DiscreteGaussian {
    /// Sigma is 0: no noise.
    Zero,
    /// Inversion by a table, for many draws of a small sigma.
    Inversion(Arc<Table<Normal>>),
    /// Inversion for a block of integers and rejection inside it, for many draws of a large sigma.
    Blocks(Arc<Blocks>),
    /// Rejection from the discrete Laplace distribution, for few draws.
    Rejection(Box<Rejection>),
}

impl DiscreteGaussian {
    /// The distribution for an exact sigma. It keeps a table if one pays for `draws` draws; any number may be drawn.
    pub fn new(sigma: &Rational, draws: usize) -> DiscreteGaussian {
        let blocks = sigma.to_integer() / MOST_BLOCKS;
        if sigma.is_zero() {
            DiscreteGaussian::Zero
        } else if draws < FEW_DRAWS {
            DiscreteGaussian::Rejection(Box::new(Rejection::new(sigma)))
        } else if blocks.is_zero() {
            let table = || Table::new(Normal { variance: sigma * sigma, mirrored: false });
            DiscreteGaussian::Inversion(TABLES.table(sigma, table))
        } else {
            DiscreteGaussian::Blocks(BLOCKS.table(sigma, || Blocks::new(sigma, blocks.bits())))
        }
    }

    /// Draws one integer.
    #[inline]
    pub fn draw(&self, rng: &mut Rng) -> i64 {
        match self {
            DiscreteGaussian::Zero => 0,
            DiscreteGaussian::Inversion(table) => unfolded(table.draw(rng)),
            DiscreteGaussian::Blocks(blocks) => blocks.draw(rng),
            DiscreteGaussian::Rejection(rejection) => rejection.draw(rng),
        }
    }
}

impl IntegerNoise for DiscreteGaussian {
    fn fill(&self, out: &mut [i64], isa: Isa, rng: &mut Rng) {
        match self {
            DiscreteGaussian::Inversion(table) => fill_unfolded(table, out, rng),
            DiscreteGaussian::Blocks(blocks) => {
                let quick = |outcomes: &[u64], words: &[u64], values: &mut [i64], accepted: &mut [bool]| {
                    if blocks.size <= LARGEST_BLOCK {
                        propose(isa, outcomes, words, blocks.size, blocks.half_precision, values, accepted);
                    }
                };
                fill_accepted(&blocks.table, out, rng, quick, |zigzag, word, rng| blocks.propose(zigzag, word, rng));
            }
            _ => out.iter_mut().for_each(|value| *value = self.draw(rng)),
        }
    }
}

/// A block h of 2^k integers from an envelope that is constant on it, a uniform x in the block, accepted with probability
/// exp(-(x^2 - (2^k h)^2) / (2 sigma^2)): nearly always, since sigma is at least 32 blocks.
///
/// Block h holds 2^k h, ..., 2^k (h + 1) - 1 and its mirror image -1 - x of each.
pub struct Blocks {
    table: Table<Normal>,
    size: u32,
    variance: Rational,
    half_precision: f64,
}

impl Blocks {
    fn new(sigma: &Rational, size: u64) -> Blocks {
        let variance = sigma * sigma;
        let in_blocks = &variance / (BigUint::from(1u32) << (2 * size));
        Blocks {
            table: Table::new(Normal { variance: in_blocks, mirrored: true }),
            size: size as u32,
            half_precision: half_precision(&variance),
            variance,
        }
    }

    #[inline]
    fn draw(&self, rng: &mut Rng) -> i64 {
        loop {
            let (zigzag, word) = (self.table.draw(rng), rng.next_u64());
            if let Some(value) = self.propose(zigzag, word, rng) {
                return value;
            }
        }
    }

    /// The integer at a uniform place in the block, unless it is rejected.
    #[inline(never)]
    fn propose(&self, zigzag: u64, word: u64, rng: &mut Rng) -> Option<i64> {
        let start = (zigzag >> 1) << self.size;
        let rest = word >> (64 - self.size);
        let value = (start + rest) as i64 ^ -((zigzag & 1) as i64);
        let (over, sum) = (value.unsigned_abs() - start, value.unsigned_abs() + start);
        let (gamma, error) = self.approximate_gamma(over, sum);
        // What is left of the word nearly always decides.
        let exact = || self.gamma(over, sum);
        begun_exp_minus_coin(word << self.size, self.size, gamma, error, exact, rng).then_some(value)
    }

    #[inline]
    fn approximate_gamma(&self, over: u64, sum: u64) -> (f64, f64) {
        // Signed integers become floats faster; these are far below 2^63.
        let gamma = over as i64 as f64 * (sum as i64 as f64) * self.half_precision;
        (gamma, gamma * ROUNDING)
    }

    #[cold]
    fn gamma(&self, over: u64, sum: u64) -> Rational {
        Rational::from(BigUint::from(over) * BigUint::from(sum)) / (&self.variance * BigUint::from(2u32))
    }
}

/// Canonne, Kamath and Steinke 2020, Algorithm 3: a discrete Laplace draw y of scale t, accepted with probability
/// exp(-(|y| - sigma^2 / t)^2 / (2 sigma^2)).
pub struct Rejection {
    proposal: DiscreteLaplace,
    variance: Rational,
    center: Rational,
    center_f64: f64,
    half_precision: f64,
}

impl Rejection {
    fn new(sigma: &Rational) -> Rejection {
        let t = Rational::from(sigma.to_integer() + 1u32);
        let variance = sigma * sigma;
        let center = &variance / &t;
        Rejection {
            proposal: DiscreteLaplace::new(&t, 1),
            center_f64: center.to_f64().unwrap_or(f64::NAN),
            half_precision: half_precision(&variance),
            variance,
            center,
        }
    }

    fn draw(&self, rng: &mut Rng) -> i64 {
        loop {
            let proposal = self.proposal.draw(rng);
            let magnitude = proposal.unsigned_abs();
            let (gamma, error) = self.approximate_gamma(magnitude);
            if exp_minus_coin(gamma, error, || self.gamma(magnitude), rng) {
                return proposal;
            }
        }
    }

    /// The distance is off by a part of both terms of its difference, all else by a part of itself.
    fn approximate_gamma(&self, magnitude: u64) -> (f64, f64) {
        let distance = (magnitude as f64 - self.center_f64).abs();
        let gamma = distance * distance * self.half_precision;
        let error = ((magnitude as f64 + self.center_f64) * distance * self.half_precision + gamma) * ROUNDING;
        (gamma, error)
    }

    #[cold]
    fn gamma(&self, magnitude: u64) -> Rational {
        let magnitude = Rational::from(BigUint::from(magnitude));
        let distance = if magnitude > self.center { magnitude - &self.center } else { &self.center - magnitude };
        &distance * &distance / (&self.variance * BigUint::from(2u32))
    }
}

/// 1 / (2 sigma^2), off by 2^-53 of itself, or no number if that is out of range.
fn half_precision(variance: &Rational) -> f64 {
    (variance.recip() / BigUint::from(2u32)).to_f64().unwrap_or(f64::NAN)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::exponential::assert_bounds;
    use super::super::rng::{Seed, Stream};
    use super::*;

    /// Sigmas of all sizes with short and long fractions, and magnitudes near the center, typical and far out.
    fn cases(mut act: impl FnMut(Rational, u64, &mut Rng)) {
        let mut rng = Seed::reproducible([3; 32]).stream(Stream::Speed, 1);
        for round in 0..400u64 {
            let (whole, fraction) = (rng.below(50), rng.below(180));
            let odd = (BigUint::from(rng.next_u64()) << (whole + fraction)) >> 64u32 | BigUint::from(1u32);
            let sigma = Rational::new(odd, BigUint::from(1 + round % 3) << fraction);
            let center = (&sigma * &sigma / (sigma.to_integer() + 1u32)).to_integer().to_u64().unwrap();
            let far = rng.below(10 * center + 100);
            for magnitude in [0, 1, center, center + 1, far] {
                act(sigma.clone(), magnitude, &mut rng);
            }
        }
    }

    #[test]
    fn rejection_knows_the_error_of_its_gamma() {
        cases(|sigma, magnitude, _| {
            let rejection = Rejection::new(&sigma);
            let (gamma, error) = rejection.approximate_gamma(magnitude);
            assert_bounds(gamma, error, &rejection.gamma(magnitude));
        });
    }

    /// One by one from the same outcomes and words.
    #[test]
    fn arrays_hold_what_blocks_propose() {
        for sigma in [64u64, 65, 10_000, 1 << 40, 1 << 50] {
            let sigma = Rational::from(BigUint::from(sigma));
            let DiscreteGaussian::Blocks(blocks) = DiscreteGaussian::new(&sigma, 1000) else { unreachable!() };
            let mut rng = Seed::reproducible([7; 32]).stream(Stream::Noise, 0);
            let mut certain = 0;
            let (mut zigzags, mut words) = (vec![0; 5000], vec![0; 5000]);
            blocks.table.fill(&mut zigzags, &mut rng);
            rng.words(&mut words);
            let (mut values, mut accepted) = (vec![0; 5000], vec![false; 5000]);
            if blocks.size <= LARGEST_BLOCK {
                propose(
                    Isa::Portable,
                    &zigzags,
                    &words,
                    blocks.size,
                    blocks.half_precision,
                    &mut values,
                    &mut accepted,
                );
            }
            for i in (0..5000).filter(|&i| accepted[i]) {
                certain += 1;
                assert_eq!(blocks.propose(zigzags[i], words[i], &mut rng), Some(values[i]));
            }
            assert!(certain > 4800 || blocks.size > LARGEST_BLOCK, "{certain}");
        }
    }

    #[test]
    fn blocks_know_the_error_of_their_gamma() {
        cases(|sigma, _, rng| {
            let size = (sigma.to_integer() / MOST_BLOCKS).bits();
            if size > 0 {
                let blocks = Blocks::new(&sigma, size);
                let (over, start) = (rng.below((1 << size) + 1), rng.below(700) << size);
                let (gamma, error) = blocks.approximate_gamma(over, 2 * start + over);
                assert_bounds(gamma, error, &blocks.gamma(over, 2 * start + over));
            }
        });
    }
}
