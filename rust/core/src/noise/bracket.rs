//! Real numbers between integers of 128 bits: what tables of common laws are made with.
//!
//! An [`Interval`](super::interval::Interval) of 128 digits would say as much, ten times as slowly. Where a bracket is
//! too wide to settle a digit, intervals of more digits do.

use num_bigint::BigUint;
use num_traits::{One, ToPrimitive};

use super::exponential::upper_half;
use super::interval::Rational;

/// Binary digits after the point. Sums of [`MOST_TERMS`] numbers up to one have room.
const POINT: u32 = 112;

/// How many brackets may be added up.
pub const MOST_TERMS: usize = 1 << 14;

const ONE: u128 = 1 << POINT;

/// A bracket with such an error settles no word.
const WIDE: u64 = 1 << 47;

/// A number x >= 0 with lower <= x 2^112 <= lower + error.
#[derive(Clone, Copy, Debug)]
pub struct Bracket {
    lower: u128,
    error: u64,
}

impl Bracket {
    /// One.
    pub const UNIT: Bracket = Bracket { lower: ONE, error: 0 };

    /// Zero, if what is missing from it is at most so many units.
    pub fn up_to(error: u64) -> Bracket {
        Bracket { lower: 0, error }
    }

    /// exp(-x) for a positive x below one; nothing for any other.
    pub fn exp_minus(x: &Rational) -> Option<Bracket> {
        let x = ((x.numer() << POINT) / x.denom()).to_u128().filter(|&x| 0 < x && x < ONE)?;
        let (mut term, mut even, mut odd, mut n) = (ONE, 0, 0, 0);
        while term > 0 {
            *(if n % 2 == 0 { &mut even } else { &mut odd }) += term;
            n += 1;
            term = upper_half(term, x << (128 - POINT)) / n;
        }
        // Each term is at most three units too small, what follows the last one is at most three, and x moves by one.
        let error = 3 * n as u64 + 6;
        Some(Bracket { lower: even - odd - u128::from(error), error: 2 * error })
    }

    /// The reciprocal of a number that is certainly above one.
    pub fn reciprocal(self) -> Option<Bracket> {
        if self.lower <= ONE {
            return None;
        }
        let square = BigUint::one() << (2 * POINT);
        let lower = (&square / self.upper()).to_u128()?;
        let upper = (&square / self.lower).to_u128()? + 1;
        Some(Bracket { lower, error: u64::try_from(upper - lower).ok()? })
    }

    /// One minus the number; nothing unless that is certainly positive.
    pub fn complement(self) -> Option<Bracket> {
        let lower = ONE.checked_sub(self.upper()).filter(|&lower| lower > 0)?;
        Some(Bracket { lower, error: self.error })
    }

    /// The number minus one; nothing unless that is certainly positive.
    pub fn minus_one(self) -> Option<Bracket> {
        let lower = self.lower.checked_sub(ONE).filter(|&lower| lower > 0)?;
        Some(Bracket { lower, error: self.error })
    }

    /// The product with a factor below one.
    #[inline]
    pub fn times(self, factor: Bracket) -> Bracket {
        let lower = upper_half(self.lower, factor.lower << (128 - POINT));
        if self.error >= WIDE || factor.error >= WIDE {
            return Bracket { lower, error: WIDE };
        }
        // The error of one number times the other, rounded up, for both; a factor has at most 113 digits, a number 127.
        let mine = u128::from(self.error) * u128::from((factor.upper() >> 48) as u64 + 1);
        let its = u128::from(factor.error) * u128::from((self.lower >> 64) as u64 + 1);
        let error = u64::try_from((mine >> 64) + (its >> 48) + 3).unwrap_or(WIDE);
        Bracket { lower, error }
    }

    /// The sum.
    #[inline]
    pub fn plus(self, other: Bracket) -> Bracket {
        // Far below 2^128, since few numbers are added.
        Bracket { lower: self.lower.wrapping_add(other.lower), error: self.error.saturating_add(other.error) }
    }

    /// Whether it is at most so many units.
    pub fn is_at_most(self, units: u64) -> bool {
        self.upper() <= u128::from(units)
    }

    /// Its first 64 binary digits, capped just below one, if the bracket settles them.
    #[inline]
    pub fn first_word(self) -> Option<u64> {
        let word = |x: u128| u64::try_from(x >> (POINT - 64)).unwrap_or(u64::MAX);
        let lower = word(self.lower);
        (self.error < WIDE && lower == word(self.upper())).then_some(lower)
    }

    #[inline]
    fn upper(self) -> u128 {
        self.lower + u128::from(self.error)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::interval::Interval;
    use super::*;

    /// The interval has 400 digits.
    fn encloses(bracket: Bracket, number: &Interval) {
        let [lower, upper] = number.ends();
        assert!(BigUint::from(bracket.lower) << (400 - POINT) <= lower, "{bracket:?}");
        assert!(BigUint::from(bracket.upper()) << (400 - POINT) >= upper, "{bracket:?}");
    }

    #[test]
    fn brackets_enclose_what_intervals_do() {
        for (numerator, denominator) in [(1, 1u64 << 40), (1, 8192), (1, 24), (1, 3), (355, 452), (999_999, 1_000_000)]
        {
            let x = Rational::new(BigUint::from(numerator as u64), BigUint::from(denominator));
            let (mut power, mut exact) = (Bracket::exp_minus(&x).unwrap(), Interval::exp_minus(&x, 400));
            let (ratio, exact_ratio) = (power, exact.clone());
            let (mut sum, mut exact_sum) = (Bracket::UNIT, Interval::one(400));
            for _ in 0..300 {
                encloses(power, &exact);
                (sum, exact_sum) = (sum.plus(power), exact_sum.plus(&exact));
                encloses(sum, &exact_sum);
                let (share, exact_share) = (sum.reciprocal().unwrap(), exact_sum.reciprocal());
                encloses(share, &exact_share);
                encloses(sum.times(share), &Interval::one(400));
                encloses(sum.times(ratio), &exact_sum.times(&exact_ratio));
                encloses(share.complement().unwrap(), &exact_share.complement());
                (power, exact) = (power.times(ratio), exact.times(&exact_ratio));
            }
            assert!(power.error < 1 << 20 && sum.error < 1 << 30, "{power:?} {sum:?}");
        }
    }

    /// More than numbers show: what is proved is a bound for all of them.
    #[test]
    fn each_term_has_room_for_three_units() {
        let x = Rational::new(999_999u32.into(), 1_000_000u32.into());
        let mut terms = Interval::one(400);
        let many = (1..).take_while(|&n| {
            terms = terms.divided_by(n);
            terms.ends()[1] >= BigUint::one() << (400 - POINT)
        });
        let many = many.count() as u64;
        assert!((25..40).contains(&many), "terms of e^-1 of 112 digits: {many}");
        assert!(Bracket::exp_minus(&x).unwrap().error >= 2 * 3 * many);
    }

    #[test]
    fn a_product_with_a_wide_bracket_is_wide() {
        let [narrow, wide] = [0, WIDE].map(|error| Bracket { lower: ONE / 4, error });
        assert_eq!(narrow.times(wide).error, WIDE);
        assert_eq!(wide.times(narrow).error, WIDE);
        assert!(narrow.times(narrow).error < 8);
    }

    #[test]
    fn only_settled_words_are_told() {
        let word = 0x1234_5678_9abc_def0;
        let at = |lower, error| Bracket { lower, error }.first_word();
        let start = u128::from(word) << 48;
        assert_eq!(at(start, 0), Some(word));
        assert_eq!(at(start, WIDE - 1), Some(word));
        assert_eq!(at(start, WIDE), None);
        assert_eq!(at(start + (1 << 48) - 6, 5), Some(word));
        assert_eq!(at(start + (1 << 48) - 6, 6), None);
        assert_eq!(at(start - 1, 1), None);
        assert_eq!(at(ONE - 1, 5), Some(u64::MAX));
        assert_eq!(at(ONE - (1 << 48) - 1, 5), None);
    }

    #[test]
    fn what_is_out_of_range_is_left_to_intervals() {
        let x = |numerator: u64, denominator: u64| Rational::new(numerator.into(), denominator.into());
        for x in [x(1, 1), x(7, 3), x(0, 1), Rational::new(1u32.into(), BigUint::one() << 200)] {
            assert!(Bracket::exp_minus(&x).is_none(), "{x}");
        }
        assert!(Bracket::UNIT.complement().is_none());
        assert!(Bracket::up_to(0).reciprocal().is_none());
    }
}
