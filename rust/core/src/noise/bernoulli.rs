//! Exact Bernoulli draws.

use hdp_fast_device::probability;
use num_bigint::BigUint;
use num_traits::One;

pub(super) use hdp_fast_device::probability::TWO_64;

use super::interval::{Interval, Rational};
use super::rng::Rng;
use super::uniform::Uniform;
use crate::simd::{COINS, Isa, keep_or_flip};

/// The probability k / 2^64 for a word k, hence below 1. Comparing a uniform number with it takes one word and is
/// exact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fixed(pub u64);

impl Fixed {
    /// A multiple of 2^-64 that is certainly not above an exact number, of which the float `p` in [0, 1) is an
    /// approximation with a relative error below 2^-45.
    pub fn certainly_below(p: f64) -> Fixed {
        Fixed(probability::certainly_below(p))
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

/// Fills an array with coins of 0 or 1: `toss(start, bytes, open)` makes coins of the uniform bytes from `start` on as far
/// as they settle them, and marks the others, for which `resolve(i, rng)` says whether coin i becomes the other side.
#[inline]
pub(super) fn fill_coins(
    out: &mut [u8],
    rng: &mut Rng,
    mut toss: impl FnMut(usize, &mut [u8], &mut [u64]),
    resolve: impl Fn(usize, &mut Rng) -> bool,
) {
    for (block, out) in out.chunks_mut(BLOCK).enumerate() {
        let (start, mut marks) = (block * BLOCK, [0; BLOCK / COINS]);
        let open = &mut marks[..out.len().div_ceil(COINS)];
        rng.fill(out);
        toss(start, out, open);
        for_each_mark(open, |i| out[i] ^= u8::from(resolve(start + i, rng)));
    }
}

/// Calls `act` for the place of every one, in ascending order.
#[inline]
fn for_each_mark(marks: &[u64], mut act: impl FnMut(usize)) {
    let (mut places, mut count) = ([0; 4 * COINS], 0);
    for (part, &marks) in marks.iter().enumerate() {
        let start = part * COINS;
        // The first place is listed without a branch, which the processor could not foresee; few parts have another one.
        places[count] = start + marks.trailing_zeros() as usize;
        count += usize::from(marks != 0);
        let mut others = marks & marks.wrapping_sub(1);
        while others != 0 {
            places[count] = start + others.trailing_zeros() as usize;
            count += 1;
            others &= others - 1;
        }
        if count >= 3 * COINS {
            places[..count].iter().for_each(|&place| act(place));
            count = 0;
        }
    }
    places[..count].iter().for_each(|&place| act(place));
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
        // Its digits are at hand, and after a tie no more than zeros follow.
        let exact = Exact::Ratio(Rational::new_raw(p.0.into(), BigUint::one() << 64u32));
        Bernoulli { certain: (p.0 == 0).then_some(false), first: p.0, exact }
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
        match self.certain {
            Some(outcome) => out.fill(u8::from(outcome)),
            // A bit of 1 that is kept with this probability.
            None => {
                let _ = self.keep_uncertain(|_, count| &[1; BLOCK][..count], out, isa, rng);
            }
        }
    }

    /// Fills `out` with bits, each kept with this probability and flipped otherwise. Nearly always takes one byte of the
    /// stream for each. Returns false if any of the bits is neither 0 nor 1; what is in `out` means nothing then.
    #[must_use]
    pub fn keep(&self, bits: &[u8], out: &mut [u8], isa: Isa, rng: &mut Rng) -> bool {
        match self.certain {
            Some(outcome) => {
                let flip = u8::from(!outcome);
                out.iter_mut().zip(bits).for_each(|(out, bit)| *out = bit ^ flip);
                out.iter().fold(0, |seen, bit| seen | bit) <= 1
            }
            None => self.keep_uncertain(|start, count| &bits[start..][..count], out, isa, rng),
        }
    }

    fn keep_uncertain<'a>(
        &self,
        bits: impl Fn(usize, usize) -> &'a [u8],
        out: &mut [u8],
        isa: Isa,
        rng: &mut Rng,
    ) -> bool {
        let (first, mut right) = ((self.first >> 56) as u8, true);
        let toss = |start, bytes: &mut [u8], open: &mut [u64]| {
            right &= keep_or_flip(isa, bytes, bits(start, bytes.len()), first, open);
        };
        // Whatever is open counts as flipped yet.
        fill_coins(out, rng, toss, |_, rng| {
            let word = u64::from(first) << 56 | rng.next_u64() >> 8;
            self.resolve_tie(word, rng)
        });
        right
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
