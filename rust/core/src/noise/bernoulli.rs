//! Exact Bernoulli draws.

use num_bigint::BigUint;
use num_traits::One;

use super::interval::{Interval, Rational};
use super::rng::Rng;
use super::uniform::Uniform;
use crate::simd::{COINS, Isa, UNDECIDED, toss};

/// The probability k / 2^64 for a word k, hence below 1. Comparing a uniform number with it takes one word and is
/// exact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fixed(pub u64);

/// 2^64 as a float.
pub(super) const TWO_64: f64 = 18_446_744_073_709_551_616.0;

/// Covers the rounding errors of a dozen float operations and library calls, each below 2^-50.
const MARGIN: f64 = 1.0 / (1u64 << 45) as f64;

impl Fixed {
    /// A multiple of 2^-64 that is certainly not above an exact number, of which the float `p` in [0, 1) is an
    /// approximation with a relative error below 2^-45.
    pub fn certainly_below(p: f64) -> Fixed {
        Fixed((p * (1.0 - MARGIN) * TWO_64) as u64)
    }

    /// The smallest multiple of 2^-64 that is not below the float `p` in [0, 1), taken as the exact number that it is.
    pub fn at_least(p: f64) -> Fixed {
        // Below 2^-11 a float can have bits finer than 2^-64; scaling by a power of two is exact.
        Fixed((p * TWO_64).ceil() as u64)
    }

    /// The float nearest to the probability.
    pub fn to_f64(self) -> f64 {
        self.0 as f64 / TWO_64
    }

    /// Returns true with exactly this probability.
    #[inline]
    pub fn draw(self, rng: &mut Rng) -> bool {
        rng.next_u64() < self.0
    }
}

/// Coins that are tossed at a time.
const BLOCK: usize = 1 << 12;

/// Fills an array with coins of 0 or 1: `toss` settles what uniform bytes can settle, and `resolve(i, rng)` coin i of the
/// others, once all bytes of a block are drawn.
#[inline]
pub(super) fn fill_coins(
    out: &mut [u8],
    rng: &mut Rng,
    mut toss: impl FnMut(&mut [u8], &mut [u8]),
    resolve: impl Fn(usize, &mut Rng) -> bool,
) {
    for (block, out) in out.chunks_mut(BLOCK).enumerate() {
        let mut marks = [0; BLOCK / COINS];
        rng.fill(out);
        toss(out, &mut marks);
        let (whole, rest) = out.as_chunks_mut::<COINS>();
        let start = block * BLOCK;
        for (part, coins) in whole.iter_mut().enumerate().filter(|(part, _)| marks[*part] >= UNDECIDED) {
            let mut open = undecided(coins);
            while open > 0 {
                let i = open.trailing_zeros() as usize;
                coins[i] = u8::from(resolve(start + part * COINS + i, rng));
                open &= open - 1;
            }
        }
        let start = start + whole.len() * COINS;
        for (i, coin) in rest.iter_mut().enumerate().filter(|(_, coin)| **coin == UNDECIDED) {
            *coin = u8::from(resolve(start + i, rng));
        }
    }
}

/// A bit for every undecided coin.
#[inline]
fn undecided(coins: &[u8; COINS]) -> u64 {
    let (words, _) = coins.as_chunks::<8>();
    words.iter().enumerate().fold(0, |open, (i, &word)| {
        let marks = (u64::from_le_bytes(word) & u64::from_le_bytes([UNDECIDED; 8])) / u64::from(UNDECIDED);
        // The multiplication gathers the lowest bits of eight bytes in the top byte.
        open | marks.wrapping_mul(0x0102_0408_1020_4080) >> 56 << (8 * i)
    })
}

/// A probability that is known to any number of digits.
enum Exact {
    Ratio(Rational),
    ExpMinus(Rational),
}

impl Exact {
    fn to(&self, bits: u64) -> Interval {
        match self {
            Exact::Ratio(p) => Interval::ratio(p, bits),
            Exact::ExpMinus(x) => Interval::exp_minus(x, bits),
        }
    }
}

/// A coin of any probability, known by its first 64 binary digits, and by the following ones on demand.
pub struct Bernoulli {
    certain: Option<bool>,
    first: u64,
    exact: Exact,
}

impl Bernoulli {
    /// The coin of a rational probability; a number above 1 counts as 1.
    pub fn ratio(p: Rational) -> Bernoulli {
        let certain = if p >= Rational::one() { Some(true) } else { (*p.numer() == BigUint::ZERO).then_some(false) };
        Bernoulli::new(certain, Exact::Ratio(p))
    }

    /// The coin of probability exp(-x).
    pub fn exp_minus(x: Rational) -> Bernoulli {
        Bernoulli::new((*x.numer() == BigUint::ZERO).then_some(true), Exact::ExpMinus(x))
    }

    /// The coin of a probability that is a multiple of 2^-64.
    pub fn fixed(p: Fixed) -> Bernoulli {
        Bernoulli::ratio(Rational::new(p.0.into(), BigUint::one() << 64u32))
    }

    fn new(certain: Option<bool>, exact: Exact) -> Bernoulli {
        // A rational number's digits are settled at once, others after finitely many.
        let first = (1..).find_map(|words| exact.to(64 * words).first_word()).unwrap_or(u64::MAX);
        Bernoulli { certain, first, exact }
    }

    /// Returns true with exactly this probability. Nearly always takes one word of the stream.
    #[inline]
    pub fn draw(&self, rng: &mut Rng) -> bool {
        if let Some(outcome) = self.certain {
            return outcome;
        }
        let word = rng.next_u64();
        self.resolve_tie(word, rng)
    }

    /// Fills `out` with independent draws of 0 or 1. Nearly always takes one byte of the stream for each.
    pub fn fill(&self, out: &mut [u8], isa: Isa, rng: &mut Rng) {
        if let Some(outcome) = self.certain {
            return out.fill(u8::from(outcome));
        }
        let first = (self.first >> 56) as u8;
        let toss = |bytes: &mut [u8], marks: &mut [u8]| toss(isa, bytes, first, marks);
        fill_coins(out, rng, toss, |_, rng| {
            let word = u64::from(first) << 56 | rng.next_u64() >> 8;
            self.resolve_tie(word, rng)
        });
    }

    #[inline]
    fn resolve_tie(&self, word: u64, rng: &mut Rng) -> bool {
        if word == self.first {
            Uniform::starting(word).below(|bits| self.exact.to(bits), rng)
        } else {
            word < self.first
        }
    }
}
