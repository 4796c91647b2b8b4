//! The random stream: ChaCha20 keyed by the operating system, or by a caller for tests.

use chacha20::ChaCha20Rng;
use rand_core::{Rng as _, SeedableRng};

use crate::error::{Error, Result};

/// The purpose of a stream. Streams of one key with different purposes or indices are independent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Stream {
    /// Which records a mechanism samples.
    Sampling = 1,
    /// Whether a mechanism answers at all.
    Answer = 2,
    /// A uniform choice among solutions.
    Solution = 3,
    /// Randomized responses.
    Response = 4,
    /// Arrays of Bernoulli draws.
    Bernoulli = 5,
    /// Additive noise.
    Noise = 6,
    /// Choices that only affect running time.
    Speed = 7,
    /// The choice of one candidate among many.
    Selection = 8,
    /// Uniform and weighted integers.
    Integers = 9,
}

/// The key from which a call derives all its streams.
///
/// A key from the operating system is drawn anew for every call, so that neither a fork nor a copy of the process can
/// ever repeat a coin: there is no state to copy.
#[derive(Clone)]
pub struct Seed([u8; 32]);

impl Seed {
    /// A key of 256 bits of entropy from the operating system.
    pub fn from_os() -> Result<Seed> {
        let mut key = [0; 32];
        getrandom::fill(&mut key).map_err(|cause| Error::System(format!("no entropy from the system: {cause}")))?;
        Ok(Seed(key))
    }

    /// A reproducible key, for tests only: whoever knows it can undo every guarantee.
    pub fn reproducible(key: [u8; 32]) -> Seed {
        Seed(key)
    }

    /// The stream of this key for one purpose and index; of the index the lower 56 bits count.
    pub fn stream(&self, purpose: Stream, index: u64) -> Rng {
        let mut rng = ChaCha20Rng::from_seed(self.0);
        rng.set_stream((purpose as u64) << 56 | (index & (u64::MAX >> 8)));
        Rng(rng)
    }
}

/// A stream of uniform words: ChaCha20.
pub struct Rng(ChaCha20Rng);

impl Rng {
    /// A stream with a fixed key, for choices that cannot affect a result.
    pub fn for_speed_only() -> Rng {
        Seed([0; 32]).stream(Stream::Speed, 0)
    }

    /// Draws 64 uniform bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Fills a buffer with uniform bytes.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        self.0.fill_bytes(bytes);
    }

    /// Draws a uniform integer below `bound`, which must be positive. It is the integer part of bound times a uniform
    /// word divided by 2^64, where the words that would favor some integers are rejected (Lemire 2019).
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        loop {
            let product = u128::from(self.next_u64()) * u128::from(bound);
            let low = product as u64;
            if low >= bound || low >= bound.wrapping_neg() % bound {
                return (product >> 64) as u64;
            }
        }
    }
}
