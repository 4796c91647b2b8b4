//! A normal deviate of which as many digits are drawn as its rounding needs.

use std::sync::Arc;

use num_bigint::BigUint;
use num_traits::ToPrimitive;

use super::exponential::{ROUNDING, exp_minus_coin, is_below_line, quick_exp_minus_coin};
use super::interval::{Interval, Rational};
use super::kept::Kept;
use super::normal_law::Normal;
use super::rng::Rng;
use super::table::{Table, fill_accepted};
use super::uniform::Uniform;

/// Blocks for each unit of sigma in the table of blocks, the same for every sigma. One in `BLOCKS` + 1 is rejected, nearly.
const BLOCKS: u32 = 64;

static BLOCK_TABLE: Kept<Table<Normal>> = Kept::new();

/// Binary digits of the place in a block that come with the first word.
const PLACE: u32 = 52;

/// A deviate of which as many binary digits are drawn as are needed: the integer part h of |Z| in blocks, each a part
/// of sigma, with a probability proportional to the density at the start of the block, and a uniform place F in it,
/// accepted with probability exp(-((h + F)^2 - h^2) / (2 s^2)) for s blocks in sigma. With s = 1: Karney 2016.
pub struct Deviate {
    /// The law of h and of the sign; without it s = 1, and coins make h.
    table: Option<Arc<Table<Normal>>>,
    /// s, a power of two.
    blocks: u32,
    /// 1 / (2 s^2).
    half_precision: f64,
    /// The size of a block, sigma / s.
    size: Rational,
    quick: Option<Quick>,
}

impl Deviate {
    /// The deviate of that sigma, with a table of blocks if there are `many` draws.
    pub fn new(sigma: &Rational, many: bool) -> Deviate {
        let blocks = if many { BLOCKS } else { 1 };
        let variance = Rational::from(BigUint::from(blocks * blocks));
        let size = sigma / BigUint::from(blocks);
        Deviate {
            table: many.then(|| {
                BLOCK_TABLE.table(&variance, || Table::new(Normal { variance: variance.clone(), mirrored: true }))
            }),
            blocks,
            half_precision: 0.5 / f64::from(blocks * blocks),
            quick: Quick::new(&size),
            size,
        }
    }

    /// Draws one, rounded.
    #[inline]
    pub fn draw(&self, rng: &mut Rng) -> i64 {
        loop {
            let zigzag = match &self.table {
                Some(table) => table.draw(rng),
                None => block_by_coins(rng) << 1 | rng.next_u64() & 1,
            };
            let word = rng.next_u64();
            if let Some(value) = self.propose(zigzag, word, rng) {
                return value;
            }
        }
    }

    /// Fills an array with rounded draws.
    pub fn fill(&self, out: &mut [i64], rng: &mut Rng) {
        match &self.table {
            Some(table) => match &self.quick {
                Some(size) => {
                    let quick = |outcomes: &[u64], words: &[u64], values: &mut [i64], accepted: &mut [bool]| {
                        let inputs = outcomes.iter().zip(words);
                        for ((&zigzag, &word), (value, accepted)) in inputs.zip(values.iter_mut().zip(accepted)) {
                            (*value, *accepted) = self.propose_quickly(size, zigzag, word);
                        }
                    };
                    fill_accepted(table, out, rng, quick, |zigzag, word, rng| self.propose(zigzag, word, rng));
                }
                None => out.iter_mut().for_each(|value| *value = self.draw(rng)),
            },
            None => out.iter_mut().for_each(|value| *value = self.draw(rng)),
        }
    }

    /// What is proposed, and whether it is certainly that and certainly accepted.
    #[inline(always)]
    fn propose_quickly(&self, size: &Quick, zigzag: u64, word: u64) -> (i64, bool) {
        let (block, place) = (zigzag >> 1, word >> (64 - PLACE));
        let (gamma, error) = self.approximate_gamma(block, place);
        let accepted = is_below_line(word << PLACE | ((1 << PLACE) - 1), gamma + error);
        let (magnitude, certain) = size.rounded_quickly(block, place);
        let sign = ((zigzag & 1) as i64).wrapping_neg();
        ((magnitude as i64 ^ sign).wrapping_sub(sign), accepted & certain)
    }

    /// The deviate at a uniform place in the block, rounded, unless it is rejected.
    #[inline(never)]
    fn propose(&self, zigzag: u64, word: u64, rng: &mut Rng) -> Option<i64> {
        let (block, place) = (zigzag >> 1, word >> (64 - PLACE));
        let (gamma, error) = self.approximate_gamma(block, place);
        // What is left of the word nearly always decides.
        let coin = quick_exp_minus_coin(word << PLACE, PLACE, gamma, error, rng);
        let magnitude = match (coin, self.quick.as_ref().and_then(|quick| quick.rounded(block, place))) {
            (Ok(false), _) => None,
            (Ok(true), Some(magnitude)) => Some(magnitude),
            _ => self.resolve(block, place, coin.err(), rng),
        };
        let sign = -((zigzag & 1) as i64);
        magnitude.map(|magnitude| (magnitude ^ sign) - sign)
    }

    /// ((h + F)^2 - h^2) / (2 s^2), and what the digits of F that are not drawn add at most, with all roundings.
    #[inline]
    fn approximate_gamma(&self, block: u64, place: u64) -> (f64, f64) {
        // Signed integers become floats faster; these are far below 2^63.
        let (start, place) = (block as i64 as f64, place as i64 as f64 * PLACE_UNIT);
        let gamma = place * (2.0 * start + place) * self.half_precision;
        (gamma, gamma * ROUNDING + (2.0 * start + 2.0) * self.half_precision * PLACE_UNIT)
    }

    /// Draws as many digits as decide: the rounded magnitude, or nothing if the place is rejected. A coin's word is
    /// there if it is not decided.
    #[cold]
    fn resolve(&self, block: u64, place: u64, coin: Option<u64>, rng: &mut Rng) -> Option<i64> {
        let mut place = Uniform::with_digits(place, PLACE.into());
        if coin.is_some_and(|word| !self.accepts(block, &mut place, word, rng)) {
            return None;
        }
        let twice = BigUint::from(block) * 2u32;
        loop {
            // Twice the deviate, plus one, in units of 1 / (2 denominator 2^digits).
            let unit = self.size.denom() << (place.digits() + 1);
            let start = (&twice << place.digits()) * self.size.numer() + (self.size.denom() << place.digits());
            let [least, most] = place.ends().map(|place| (&start + place * 2u32 * self.size.numer()) / &unit);
            if least == most {
                return Some(least.to_i64().unwrap_or(i64::MAX));
            }
            place.extend(rng);
        }
    }

    /// Whether a uniform number that begins with this word lies below exp(-((h + F)^2 - h^2) / (2 s^2)).
    fn accepts(&self, block: u64, place: &mut Uniform, word: u64, rng: &mut Rng) -> bool {
        let mut coin = Uniform::starting(word);
        let twice = Rational::from(BigUint::from(block) * 2u32);
        let half_precision = Rational::new(1u32.into(), BigUint::from(2 * self.blocks * self.blocks));
        loop {
            let [most, least] = place.ends().map(|digits| {
                let place = Rational::new(digits, BigUint::from(1u32) << place.digits());
                let gamma = &place * (&twice + &place) * &half_precision;
                coin.is_below(&Interval::exp_minus(&gamma, coin.digits() + 64))
            });
            if least == Some(true) || most == Some(false) {
                return least == Some(true);
            }
            place.extend(rng);
            coin.extend(rng);
        }
    }
}

/// A unit of the last digit that comes with the first word.
const PLACE_UNIT: f64 = 1.0 / (1u64 << PLACE) as f64;

/// h with probability proportional to exp(-h^2 / 2): exp(-h / 2) by a coin for each step, times exp(-h (h - 1) / 2).
fn block_by_coins(rng: &mut Rng) -> u64 {
    let coin = |halves: u64, rng: &mut Rng| {
        halves == 0 || exp_minus_coin(halves as f64 / 2.0, 0.0, || Rational::new(halves.into(), 2u32.into()), rng)
    };
    loop {
        let mut block = 0u64;
        while coin(1, rng) {
            block += 1;
        }
        if coin(block * block.saturating_sub(1), rng) {
            return block;
        }
    }
}

/// Rounding by integers that enclose the size of a block: `size` <= 2^shift times it < `size` + 1.
struct Quick {
    size: u64,
    shift: u32,
}

impl Quick {
    /// Nothing if the size is 2^62 or more.
    fn new(size: &Rational) -> Option<Quick> {
        let shift = 62 + size.denom().bits() as i64 - size.numer().bits() as i64;
        let shift = u32::try_from(shift.min(74)).ok()?;
        Some(Quick { size: ((size.numer() << shift) / size.denom()).to_u64()?, shift })
    }

    /// The same as `rounded`, and whether it is certain: with plain arithmetic for blocks below 2^11, where nothing can
    /// overflow, and sizes below 2^50.
    #[inline(always)]
    fn rounded_quickly(&self, block: u64, place: u64) -> (u64, bool) {
        let (place, shift) = (block << PLACE | place, self.shift + PLACE);
        let product = u128::from(place).wrapping_mul(u128::from(self.size));
        let least = product.wrapping_add(1u128.wrapping_shl(shift - 1));
        let most = least.wrapping_add(u128::from(place)).wrapping_add(u128::from(self.size)).wrapping_add(1);
        let high = |x: u128| ((x >> 64) as u64).wrapping_shr(shift.wrapping_sub(64));
        (high(least), (high(least) == high(most)) & (block < 1 << 11) & (shift >= 64))
    }

    /// The deviate h + F times the size of a block, rounded, if the digits of the place decide.
    #[inline]
    fn rounded(&self, block: u64, place: u64) -> Option<i64> {
        let place = block.checked_mul(1 << PLACE)? | place;
        let shift = self.shift + PLACE;
        // The deviate lies between the product and the product of both factors plus one, below 2^127.
        let least = u128::from(place) * u128::from(self.size) + (1 << (shift - 1));
        let most = least + u128::from(place) + u128::from(self.size) + 1;
        let rounded = least >> shift;
        (rounded == most >> shift).then_some(rounded as i64)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::exponential::assert_bounds;
    use super::super::rng::{Seed, Stream};
    use super::*;

    fn stream(index: u64) -> Rng {
        Seed::reproducible([7; 32]).stream(Stream::Noise, index)
    }

    fn ratio(numerator: u64, denominator: u64) -> Rational {
        Rational::new(numerator.into(), denominator.into())
    }

    fn deviates() -> [Deviate; 2] {
        [false, true].map(|many| Deviate::new(&ratio(1000, 3), many))
    }

    /// Drawn one by one from the same outcomes and words.
    #[test]
    fn arrays_hold_what_deviates_propose() {
        for (sigma, least) in
            [(ratio(1, 7), 900), (ratio(3, 2), 4700), (ratio(1 << 40, 3), 4700), (ratio(1 << 55, 1), 4000)]
        {
            let deviate = Deviate::new(&sigma, true);
            let (table, size) = (deviate.table.clone().unwrap(), deviate.quick.as_ref().unwrap());
            let (mut rng, mut certain) = (stream(9), 0);
            for _ in 0..5000 {
                let (zigzag, word) = (table.draw(&mut rng), rng.next_u64());
                let (value, accepted) = deviate.propose_quickly(size, zigzag, word);
                if accepted {
                    certain += 1;
                    assert_eq!(deviate.propose(zigzag, word, &mut rng), Some(value), "{sigma}");
                }
            }
            assert!(certain > least, "{sigma}: {certain}");
        }
    }

    #[test]
    fn every_digit_of_a_place_lies_within_the_error_of_its_gamma() {
        for deviate in deviates() {
            let mut rng = stream(0);
            for round in 0..2000u64 {
                let (block, place) =
                    (rng.below(1 + 10 * u64::from(deviate.blocks)), rng.next_u64() >> (12 + round % 52));
                let (gamma, error) = deviate.approximate_gamma(block, place);
                for place in [place, place + 1].map(|place| ratio(place, 1 << PLACE)) {
                    let twice = Rational::from(BigUint::from(2 * block));
                    let variance = ratio(u64::from(2 * deviate.blocks * deviate.blocks), 1);
                    assert_bounds(gamma, error, &(&place * (twice + &place) / variance));
                }
            }
        }
    }

    /// The place and the coin that the exact decision would complete: the first words decide the same.
    #[test]
    fn quick_and_exact_coins_agree() {
        for deviate in deviates() {
            let mut rejected = 0;
            for index in 0..4000 {
                let mut rng = stream(index);
                let (block, word, place) =
                    (rng.below(3 * u64::from(deviate.blocks)), rng.next_u64(), rng.next_u64() >> 12);
                let (gamma, error) = deviate.approximate_gamma(block, place);
                let quick = quick_exp_minus_coin(word, 0, gamma, error, &mut rng).unwrap();
                let mut digits = Uniform::with_digits(place, PLACE.into());
                assert_eq!(deviate.accepts(block, &mut digits, word, &mut rng), quick);
                rejected += u32::from(!quick);
            }
            assert!(rejected > 20, "{rejected}");
        }
    }

    /// A word that equals the first digits of the bounds: more digits of the place and of the coin decide.
    #[test]
    fn undecided_coins_draw_more_digits() {
        let [deviate, _] = deviates();
        let place = 1u64 << 51;
        let first = Interval::exp_minus(&ratio(5, 8), 256).first_word().unwrap();
        let (mut heads, count) = (0, 2000);
        for index in 0..count {
            let mut digits = Uniform::with_digits(place, PLACE.into());
            // With h = 1 and F from 1/2 to 1/2 + 2^-52, exp(-gamma) falls by 1.5 2^-52 exp(-5/8), 3288 words.
            let below = deviate.accepts(1, &mut digits, first - 1644, &mut stream(index));
            heads += u64::from(below);
            assert!(digits.digits() >= 116);
        }
        assert!(heads.abs_diff(count / 2) < 6 * 23, "{heads}");
    }

    #[test]
    fn quick_and_exact_roundings_agree() {
        let mut decided = 0;
        let mut rng = stream(1);
        for round in 0..3000u64 {
            let odd = BigUint::from(rng.next_u64() | 1) << (rng.below(60) as usize);
            let sigma = Rational::new(odd, BigUint::from(1 + round % 3) << (rng.below(180) as usize));
            let deviate = Deviate::new(&sigma, false);
            let (block, place) = (rng.below(10), rng.next_u64() >> 12);
            if let Some(quick) = deviate.quick.as_ref().and_then(|quick| quick.rounded(block, place)) {
                let exact = deviate.resolve(block, place, None, &mut rng).unwrap();
                assert_eq!(quick, exact, "sigma {sigma}, block {block}, place {place}");
                decided += 1;
            }
        }
        assert!(decided > 2000, "{decided}");
    }

    /// Just below and above half a unit, and at it, where the digits that follow say that the deviate is above.
    #[test]
    fn halves_are_rounded_by_the_digits_that_follow() {
        let deviate = Deviate::new(&ratio(1, 1), false);
        let half = 1u64 << (PLACE - 1);
        for (place, rounded) in [(0, 0), (half - 2, 0), (half - 1, 0), (half, 1), (half + 1, 1)] {
            let exact = deviate.resolve(3, place, None, &mut stream(place)).unwrap();
            assert_eq!(exact, 3 + rounded, "{place}");
            let quick = deviate.quick.as_ref().unwrap().rounded(3, place);
            assert!(quick.is_none_or(|quick| quick == exact), "{place}");
        }
        // A third of sigma 3/2 ends within a place: half of what is undecided is rounded up.
        let deviate = Deviate::new(&ratio(3, 2), false);
        let third = (1u64 << PLACE) / 3;
        assert_eq!(deviate.quick.as_ref().unwrap().rounded(0, third), None);
        let up: i64 = (0..999).map(|index| deviate.resolve(0, third, None, &mut stream(index)).unwrap()).sum();
        assert!((600..730).contains(&up), "{up}");
    }

    #[test]
    fn blocks_by_coins_follow_their_law() {
        let (mut rng, mut counts) = (stream(3), [0u32; 6]);
        let count = 200_000;
        for _ in 0..count {
            counts[(block_by_coins(&mut rng) as usize).min(5)] += 1;
        }
        let masses: Vec<f64> = (0..9).map(|h| (-f64::from(h * h) / 2.0).exp()).collect();
        let whole: f64 = masses.iter().sum();
        for (mass, count_of) in masses.iter().zip(counts).take(5) {
            let expected = mass / whole * f64::from(count);
            assert!((f64::from(count_of) - expected).abs() < 6.0 * expected.sqrt() + 1.0, "{counts:?}");
        }
    }
}
