//! Coins of probability exp(-gamma) with integer arithmetic, for a gamma that changes from coin to coin.

use super::bernoulli::TWO_64;
use super::interval::{Interval, Rational};
use super::rng::Rng;
use super::uniform::Uniform;

/// Binary digits of gamma after the point.
const POINT: u32 = 58;

/// Beyond this exp(-gamma) is below 2^-64.
const LARGEST: f64 = 44.5;

/// How far the product of four factors and a series, each rounded down by a unit, may lie below exp(-gamma), with the
/// 64 units by which gamma, rounded up to digits, moves it.
const SLACK: u64 = 160;

/// A bound on the relative error of a product or quotient of a handful of floats, where each rounding errs by 2^-53 of
/// the result.
pub const ROUNDING: f64 = 1.0 / (1u64 << 50) as f64;

/// The first words of exp(-i / 2^(6 j)) for four groups of six binary digits of gamma. Made by the compiler: a table
/// filled at first use could be waited for for ever by a child that was forked meanwhile.
static FACTORS: [[u64; 64]; 4] = [powers(0), powers(1), powers(2), powers(3)];

/// In units of 2^-127.
const ONE: u128 = 1 << 127;

const fn powers(group: u32) -> [u64; 64] {
    let base = exp_minus(ONE >> (6 * group));
    let (mut power, mut words, mut i) = (ONE, [u64::MAX; 64], 1);
    while i < 64 {
        power = upper_half(power, base) << 1;
        words[i] = (power >> 63) as u64;
        i += 1;
    }
    words
}

/// exp(-x) by its series, for x <= 1; about forty units too low or too high.
const fn exp_minus(x: u128) -> u128 {
    let (mut term, mut sum, mut n) = (ONE, 0, 0);
    while term > 0 {
        sum = if n % 2 == 0 { sum + term } else { sum - term };
        n += 1;
        term = (upper_half(term, x) << 1) / n;
    }
    sum
}

/// The upper 128 bits of the product of two integers of 128 bits.
pub const fn upper_half(a: u128, b: u128) -> u128 {
    let (a1, a0, b1, b0) = ((a >> 64) as u64, a as u64, (b >> 64) as u64, b as u64);
    // None of these sums can overflow.
    let middle = product(a1, b0).wrapping_add(product(a0, b0) >> 64);
    let (carry, low) = (middle >> 64, middle & u64::MAX as u128);
    let rest = low.wrapping_add(product(a0, b1)) >> 64;
    product(a1, b1).wrapping_add(carry).wrapping_add(rest)
}

const fn product(a: u64, b: u64) -> u128 {
    (a as u128).wrapping_mul(b as u128)
}

/// Returns true with probability exp(-x), for the exact x that `gamma` approximates with an error of at most `error`.
///
/// `gamma` comes from a few floating-point operations of known error; everything else is integers. One word of the
/// stream decides unless it falls between the bounds that `gamma` and `error` give; only then `exact` is called for x
/// itself.
#[inline]
pub fn exp_minus_coin(gamma: f64, error: f64, exact: impl FnOnce() -> Rational, rng: &mut Rng) -> bool {
    begun_exp_minus_coin(rng.next_u64(), 0, gamma, error, exact, rng)
}

/// The same where only the leading digits of the word are drawn yet: its last `missing` digits, fewer than 64, are 0.
#[inline]
pub fn begun_exp_minus_coin(
    word: u64,
    missing: u32,
    gamma: f64,
    error: f64,
    exact: impl FnOnce() -> Rational,
    rng: &mut Rng,
) -> bool {
    quick_exp_minus_coin(word, missing, gamma, error, rng).unwrap_or_else(|word| {
        let x = exact();
        Uniform::starting(word).below(|bits| Interval::exp_minus(&x, bits), rng)
    })
}

/// The same as far as the bounds of x decide; otherwise an error with the word, all of whose digits are drawn then.
#[inline(always)]
pub fn quick_exp_minus_coin(word: u64, missing: u32, gamma: f64, error: f64, rng: &mut Rng) -> Result<bool, u64> {
    // Decides at once where gamma is small.
    if is_below_line(word | ((1 << missing) - 1), gamma + error) {
        return Ok(true);
    }
    bounded_coin(word, missing, gamma, error, rng)
}

/// Whether a word lies below 2^64 (1 - x), hence below 2^64 exp(-x), with room for the roundings of x and of 1 - x, which
/// are a unit of 2^-53 each.
#[inline(always)]
pub fn is_below_line(word: u64, x: f64) -> bool {
    (((word >> 11) as i64 + 8) as f64) < (1.0 - x) * (1u64 << 53) as f64
}

#[inline(never)]
fn bounded_coin(word: u64, missing: u32, gamma: f64, error: f64, rng: &mut Rng) -> Result<bool, u64> {
    let word = if missing > 0 { word | rng.next_u64() & ((1 << missing) - 1) } else { word };
    let (below, above) = bounds(gamma, error);
    if word < below {
        Ok(true)
    } else if above.is_some_and(|above| word >= above) {
        Ok(false)
    } else {
        Err(word)
    }
}

/// Integers between which 2^64 exp(-x) lies, the upper one missing where it is 2^64.
#[inline]
fn bounds(gamma: f64, error: f64) -> (u64, Option<u64>) {
    let value = exp_minus_below(gamma);
    // exp(-gamma) moves by less than its argument does. A margin that is no number leaves the decision to `exact`.
    let margin = if error < 0.25 { (error * TWO_64) as u64 + SLACK } else { u64::MAX };
    (value.saturating_sub(margin), value.checked_add(margin))
}

/// 2^64 exp(-gamma), at most `SLACK` too low.
#[inline]
fn exp_minus_below(gamma: f64) -> u64 {
    if gamma >= LARGEST {
        return 0;
    }
    let digits = (gamma * (1u64 << POINT) as f64) as u64 + 1;
    let group = |j: u32| (digits >> (POINT - 6 * j)) as usize & 63;
    let [a, b, c, d] = &FACTORS;
    let factors = high(high(a[group(0)], b[group(1)]), high(c[group(2)], d[group(3)]));
    // The rest is below 2^-18, and its fourth power below 2^-72.
    let rest = (digits & ((1 << (POINT - 18)) - 1)) << (64 - POINT);
    let series = rest - high(rest, rest) / 2 + high(high(rest, rest), rest) / 6;
    factors - high(factors, series).saturating_add(4).min(factors)
}

/// The upper 64 bits of the product of two integers of 64 bits.
#[inline]
pub fn high(a: u64, b: u64) -> u64 {
    ((u128::from(a) * u128::from(b)) >> 64) as u64
}

/// Panics unless a coin with these bounds is one of probability exp(-x), as far as one word decides.
#[cfg(test)]
pub fn assert_bounds(gamma: f64, error: f64, x: &Rational) {
    let first = (192..).step_by(64).find_map(|bits| Interval::exp_minus(x, bits).first_word()).unwrap_or(0);
    let (below, above) = bounds(gamma, error);
    assert!(below <= first && above.is_none_or(|above| above > first), "exp(-{gamma} +- {error}), exactly -{x}");
    assert!(!is_below_line(first, gamma + error), "1 - {gamma} - {error}, exactly exp(-{x})");
}

#[cfg(test)]
mod tests {
    use num_bigint::BigUint;

    use super::super::rng::{Seed, Stream};
    use super::*;

    #[test]
    fn the_factors_are_first_words() {
        for (group, i) in (0..4usize).flat_map(|group| (0..64usize).map(move |i| (group, i))) {
            let x = Rational::new(BigUint::from(i), BigUint::from(1u32) << (6 * group));
            assert_eq!(Some(FACTORS[group][i]), Interval::exp_minus(&x, 192).first_word(), "{x}");
        }
    }

    #[test]
    fn the_integer_exponential_is_within_its_slack() {
        for i in 0..4000u32 {
            let gamma = f64::from(i) * f64::from(i) * 3.1e-6 + f64::from(i) * 1e-7;
            let digits = (gamma * (1u64 << 60) as f64) as u64;
            let x = Rational::new(BigUint::from(digits), BigUint::from(1u64 << 60));
            let exact = Interval::exp_minus(&x, 192).first_word().unwrap_or(0);
            let below = exp_minus_below(digits as f64 / (1u64 << 60) as f64);
            assert!(below <= exact && exact - below <= SLACK, "exp(-{gamma}): {below} for {exact}");
        }
    }

    #[test]
    fn a_begun_word_is_completed_by_the_next_one() {
        let seed = Seed::reproducible([9; 32]);
        let mut differing = 0;
        for index in 0..20_000u64 {
            let missing = (index % 64) as u32;
            let stream = || seed.stream(Stream::Noise, index);
            let (mut words, gamma) = (stream(), 0.01 + (index % 7) as f64 / 9.0);
            let begun = words.next_u64() >> missing << missing;
            let whole = begun | stream().next_u64() & ((1 << missing) - 1);
            let never = || Rational::from(BigUint::from(u32::MAX));
            let heads = begun_exp_minus_coin(begun, missing, gamma, gamma * ROUNDING, never, &mut stream());
            assert_eq!(heads, (whole as f64 / TWO_64) < (-gamma).exp(), "gamma {gamma}, {missing} missing");
            differing += u32::from(heads != ((begun as f64 / TWO_64) < (-gamma).exp()));
        }
        assert!(differing > 20, "missing digits should matter: {differing}");
    }

    #[test]
    fn quick_and_exact_decisions_agree() {
        let seed = Seed::reproducible([9; 32]);
        for index in 0..20_000u64 {
            let (numerator, denominator) = (index * index % 90_007, 20_011u64);
            let x = || Rational::new(numerator.into(), denominator.into());
            let gamma = numerator as f64 / denominator as f64;
            let stream = || seed.stream(Stream::Noise, index);
            let quick = exp_minus_coin(gamma, gamma * ROUNDING, x, &mut stream());
            let exact = exp_minus_coin(gamma, f64::NAN, x, &mut stream());
            let word = stream().next_u64() as f64 / TWO_64;
            assert_eq!(quick, exact, "gamma {gamma}");
            assert_eq!(exact, word < (-gamma).exp(), "gamma {gamma}, word {word}");
        }
    }
}
