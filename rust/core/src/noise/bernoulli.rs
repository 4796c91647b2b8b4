//! Exact Bernoulli draws.

use super::rng::{Rng, Seed, Stream};
use crate::run::Run;

/// A probability k / 2^64 below one: every comparison with it takes one word and is exact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fixed(pub u64);

/// 2^64 as a float.
const TWO_64: f64 = 18_446_744_073_709_551_616.0;

/// Covers the rounding errors of a dozen float operations and library calls, each below 2^-50.
const MARGIN: f64 = 1.0 / (1u64 << 45) as f64;

impl Fixed {
    /// A multiple of 2^-64 certainly not above the exact number that `p`, in [0, 1), approximates with a relative
    /// error below 2^-45.
    pub fn certainly_below(p: f64) -> Fixed {
        Fixed((p * (1.0 - MARGIN) * TWO_64) as u64)
    }

    /// The smallest multiple of 2^-64 not below the float `p` in [0, 1), taken as the exact number that it is.
    pub fn at_least(p: f64) -> Fixed {
        // Below 2^-11 a float can have bits finer than 2^-64; scaling by a power of two is exact.
        Fixed((p * TWO_64).ceil() as u64)
    }

    /// The nearest float.
    pub fn to_f64(self) -> f64 {
        self.0 as f64 / TWO_64
    }

    /// True with exactly this probability.
    #[inline]
    pub fn draw(self, rng: &mut Rng) -> bool {
        rng.next_u64() < self.0
    }
}

/// Any probability: its first base-2^64 digits, then those of a remainder.
#[derive(Clone, Debug)]
pub struct Bernoulli {
    certain: bool,
    digits: Vec<u64>,
    remainder: (u64, u64),
}

impl Bernoulli {
    /// Probability `numerator / denominator`, at most one, with a positive denominator.
    pub fn ratio(numerator: u64, denominator: u64) -> Bernoulli {
        Bernoulli { certain: numerator >= denominator, digits: Vec::new(), remainder: (numerator, denominator) }
    }

    /// The float `p` in [0, 1], taken as the exact dyadic number that it is.
    pub fn float(p: f64) -> Bernoulli {
        let mut digits = Vec::new();
        let mut rest = if p < 1.0 { p } else { 0.0 };
        while rest > 0.0 {
            // Each step is exact: a power of two, a truncation, and a difference of neighbours.
            let scaled = rest * TWO_64;
            digits.push(scaled as u64);
            rest = scaled - scaled.trunc();
        }
        Bernoulli { certain: p >= 1.0, digits, remainder: (0, 1) }
    }

    /// True with exactly this probability; nearly always one word of the stream.
    pub fn draw(&self, rng: &mut Rng) -> bool {
        if self.certain {
            return true;
        }
        for &digit in &self.digits {
            let word = rng.next_u64();
            if word != digit {
                return word < digit;
            }
        }
        let (mut numerator, denominator) = (u128::from(self.remainder.0), u128::from(self.remainder.1));
        while numerator > 0 {
            let (digit, rest) = ((numerator << 64) / denominator, (numerator << 64) % denominator);
            let word = u128::from(rng.next_u64());
            if word != digit {
                return word < digit;
            }
            numerator = rest;
        }
        false
    }
}

/// Draws of one probability, in an order that does not depend on the number of threads.
pub fn bernoulli_array(p: &Bernoulli, out: &mut [u8], seed: &Seed, run: Run<'_>) {
    run.for_each_chunk(
        out,
        1 << 14,
        || (),
        |_, chunk, out| {
            let mut rng = seed.stream(Stream::Bernoulli, chunk as u64);
            out.iter_mut().for_each(|bit| *bit = u8::from(p.draw(&mut rng)));
        },
    );
}
