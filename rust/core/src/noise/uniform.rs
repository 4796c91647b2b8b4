//! A uniform real number of which only as many digits are drawn as a comparison needs.

use num_bigint::BigUint;

use super::interval::Interval;
use super::rng::Rng;

/// A uniform number in [0, 1).
pub struct Uniform {
    prefix: BigUint,
    count: u64,
}

impl Uniform {
    /// A number whose first 64 binary digits are known.
    pub fn starting(word: u64) -> Uniform {
        Uniform::with_digits(word, 64)
    }

    /// A number whose first `count` binary digits, as an integer, are known; the others come from a stream.
    pub fn with_digits(digits: u64, count: u64) -> Uniform {
        Uniform { prefix: BigUint::from(digits), count }
    }

    /// Whether it lies below a number that is given to any precision.
    pub fn below(&mut self, number: impl Fn(u64) -> Interval, rng: &mut Rng) -> bool {
        loop {
            if let Some(below) = self.is_below(&number(self.count + 64)) {
                return below;
            }
            self.extend(rng);
        }
    }

    /// Whether it lies below every number of an interval or else not below any; nothing if its digits do not settle
    /// that. The interval has at least as many digits.
    pub fn is_below(&self, number: &Interval) -> Option<bool> {
        number.exceeds(&self.prefix, self.count)
    }

    /// Draws 64 more digits.
    pub fn extend(&mut self, rng: &mut Rng) {
        self.prefix = (&self.prefix << 64u32) | BigUint::from(rng.next_u64());
        self.count += 64;
    }

    /// How many digits are known.
    pub fn digits(&self) -> u64 {
        self.count
    }

    /// The digits as an integer, and the next integer: the ends between which the number lies.
    pub fn ends(&self) -> [BigUint; 2] {
        [self.prefix.clone(), &self.prefix + 1u32]
    }
}
