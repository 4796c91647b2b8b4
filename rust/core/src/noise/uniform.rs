//! A uniform real number of which only as many digits are drawn as a comparison needs.

use num_bigint::BigUint;

use super::interval::Interval;
use super::rng::Rng;

/// A uniform number in [0, 1).
pub struct Uniform<'a> {
    prefix: BigUint,
    count: u64,
    rng: &'a mut Rng,
}

impl Uniform<'_> {
    /// A number whose first 64 binary digits are known; the others come from the stream.
    pub fn starting(word: u64, rng: &mut Rng) -> Uniform<'_> {
        Uniform { prefix: BigUint::from(word), count: 64, rng }
    }

    /// Whether it lies below a number that is given to any precision.
    pub fn below(&mut self, number: impl Fn(u64) -> Interval) -> bool {
        loop {
            if let Some(below) = number(self.count + 64).exceeds(&self.prefix, self.count) {
                return below;
            }
            self.prefix = (&self.prefix << 64u32) | BigUint::from(self.rng.next_u64());
            self.count += 64;
        }
    }
}
