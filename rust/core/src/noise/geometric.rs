//! The geometric law Pr[G = g] proportional to exp(-g / scale) on 0, 1, 2, ..., exactly, and its two-sided form.

use std::sync::Arc;

use bytemuck::cast_slice_mut;
use num_bigint::BigUint;

use super::bracket::{Bracket, MOST_TERMS};
use super::interval::{Interval, Rational};
use super::kept::Kept;
use super::rng::Rng;
use super::table::{BLOCK, Law, Table, Weights, unfolded};

/// The scale up to which one table holds all outcomes that 64 bits can tell apart, about 44 times the scale.
const ONE_TABLE: u64 = 24;

/// Binary digits of G that one table gives at most.
const MOST_DIGITS: u64 = 10;

/// In units of a bracket, what a mass is when all that follow are together below 2^-64: 2^-80.
const NEGLIGIBLE: u64 = 1 << 32;

/// The tables of common scales, with a sign and without.
static KEPT: [Kept<Inversion>; 2] = [Kept::new(), Kept::new()];

/// Inversion digit by digit: the digits of G in base 2^k are independent, since exp(-g / scale) is a product over them.
///
/// The lowest digit's table can give a sign with it. The highest one's is that of a geometric law of a small scale.
pub struct Inversion {
    lowest: Table<Digit>,
    higher: Vec<Table<Digit>>,
    digits: u32,
}

impl Inversion {
    /// The tables for a positive scale, of G or of its two-sided form: kept ones, or new ones, which are kept.
    pub fn of_scale(scale: &Rational, signed: bool) -> Arc<Inversion> {
        KEPT[usize::from(signed)].table(scale, || Inversion::new(scale, signed))
    }

    fn new(scale: &Rational, signed: bool) -> Inversion {
        let excess = (scale / BigUint::from(ONE_TABLE)).ceil().to_integer();
        let binary = if excess <= BigUint::from(1u32) { 0 } else { (excess - 1u32).bits() };
        let splits = binary.div_ceil(MOST_DIGITS);
        let digits = if splits == 0 { 0 } else { binary.div_ceil(splits) };
        let base = |split| (split < splits).then(|| 1usize << digits);
        let rate = |split| scale.recip() * (BigUint::from(1u32) << (digits * split));
        let digit = |split, signed| Table::new(Digit { rate: rate(split), base: base(split), signed });
        Inversion {
            lowest: digit(0, signed),
            higher: (1..=splits).map(|split| digit(split, false)).collect(),
            digits: digits as u32,
        }
    }

    /// G, saturating at 2^63 - 1.
    #[inline]
    pub fn draw(&self, rng: &mut Rng) -> u64 {
        let lowest = self.lowest.draw(rng);
        self.joined(lowest, rng)
    }

    /// Returns G or -1 - G with the sign that was drawn: the discrete Laplace distribution, for tables made with a
    /// sign. Saturates at the ends of i64.
    #[inline]
    pub fn draw_signed(&self, rng: &mut Rng) -> i64 {
        let zigzag = self.lowest.draw(rng);
        self.joined(zigzag >> 1, rng) as i64 ^ -((zigzag & 1) as i64)
    }

    #[inline]
    fn joined(&self, lowest: u64, rng: &mut Rng) -> u64 {
        let magnitude = lowest.min(LARGEST);
        self.shifts().zip(&self.higher).fold(magnitude, |magnitude, (shift, table)| {
            let digit = table.draw(rng);
            with_digit(magnitude, digit, shift)
        })
    }

    /// Fills an array with draws of G.
    pub fn fill(&self, out: &mut [i64], rng: &mut Rng) {
        let out: &mut [u64] = cast_slice_mut(out);
        self.lowest.fill(out, rng);
        out.iter_mut().for_each(|magnitude| *magnitude = (*magnitude).min(LARGEST));
        self.add_digits(out, rng, |magnitude, digit, shift| with_digit(magnitude, digit, shift));
    }

    /// Fills an array with draws of the discrete Laplace distribution, for tables made with a sign.
    pub fn fill_signed(&self, out: &mut [i64], rng: &mut Rng) {
        let out: &mut [u64] = cast_slice_mut(out);
        self.lowest.fill(out, rng);
        self.add_digits(out, rng, |zigzag, digit, shift| with_digit(zigzag >> 1, digit, shift) << 1 | zigzag & 1);
        out.iter_mut().for_each(|zigzag| *zigzag = unfolded(*zigzag) as u64);
    }

    /// Draws the higher digits, and calls `add(value, digit, shift)` for each.
    fn add_digits(&self, out: &mut [u64], rng: &mut Rng, add: impl Fn(u64, u64, u32) -> u64) {
        let mut digits = [0; BLOCK];
        for (shift, table) in self.shifts().zip(&self.higher) {
            for out in out.chunks_mut(BLOCK) {
                let digits = &mut digits[..out.len()];
                table.fill(digits, rng);
                out.iter_mut().zip(&*digits).for_each(|(value, &digit)| *value = add(*value, digit, shift));
            }
        }
    }

    fn shifts(&self) -> impl Iterator<Item = u32> {
        (1..).map(|split| self.digits * split)
    }
}

/// The largest magnitude.
const LARGEST: u64 = i64::MAX as u64;

/// The magnitude, at most [`LARGEST`], plus the digit times 2^shift, saturating there.
#[inline]
fn with_digit(magnitude: u64, digit: u64, shift: u32) -> u64 {
    // From 2^63 on a part is too large as a whole.
    let shift = shift.min(63);
    (magnitude + (digit.min((LARGEST >> shift) + 1) << shift)).min(LARGEST)
}

/// One digit v of G: Pr[v] proportional to exp(-rate v), below `base` if there is one.
///
/// With a sign, outcome 2 v means v and outcome 2 v + 1 means -1 - v: each sign is as likely as the discrete Laplace law
/// has it, and given the sign the magnitude is geometric.
pub struct Digit {
    /// The reciprocal of the digit's scale.
    pub rate: Rational,
    /// How many values it has, if not infinitely many.
    pub base: Option<usize>,
    /// Whether a sign comes with it.
    pub signed: bool,
}

impl Law for Digit {
    fn cumulative(&self, bits: u64) -> impl Iterator<Item = Interval> {
        // Room for the digits that 1 - exp(-rate base) loses and for the errors of some thousand steps.
        let work = bits + 48 + self.rate.recip().to_integer().bits();
        let one = Interval::one(work);
        let ratio = Interval::exp_minus(&self.rate, work);
        let whole = self.base.map(|base| {
            let beyond = Interval::exp_minus(&(&self.rate * BigUint::from(base)), work);
            beyond.complement().reciprocal()
        });
        // Pr[X > 0 or X < 0] of the discrete Laplace law.
        let not_zero = ratio.plus(&ratio).times(&one.plus(&ratio).reciprocal());
        let next = move |beyond: &Interval| Some(beyond.times(&ratio));
        let not_below = std::iter::successors(Some(one), next.clone());
        let above = not_below.flat_map(move |tail| {
            let negative = self.signed.then(|| tail.times(&not_zero));
            negative.into_iter().chain(next(&tail))
        });
        above.map(move |above| {
            let mass = above.complement();
            whole.as_ref().map_or(mass.clone(), |whole| mass.times(whole)).rounded(bits)
        })
    }

    fn outcomes(&self) -> Option<usize> {
        self.base.map(|base| if self.signed { 2 * base } else { base })
    }

    /// The masses of the values are proportional to 1, q, q^2, ...; with a sign, those of v and -1 - v are q^v and
    /// q^(v + 1) times the same.
    fn weights(&self) -> Option<Weights> {
        let ratio = Bracket::exp_minus(&self.rate)?;
        let sides = if self.signed { 2 } else { 1 };
        // Shares from the start, so that sums need not be multiplied.
        let mut mass = self.first_share(ratio)?;
        let values = self.base.unwrap_or(MOST_TERMS / 2);
        let mut shares = Vec::with_capacity(sides * values.min(64 * ONE_TABLE as usize));
        for _ in 0..values {
            let next = mass.times(ratio);
            shares.extend_from_slice(&[mass, next][..sides]);
            if self.base.is_none() && mass.is_at_most(NEGLIGIBLE) {
                break;
            }
            mass = next;
        }
        (shares.len() <= MOST_TERMS).then_some(Weights { masses: shares, share: None })
    }
}

impl Digit {
    /// The mass of the first outcome: one divided by the sum of 1, q, q^2, ..., and by 1 + q if there is a sign.
    fn first_share(&self, ratio: Bracket) -> Option<Bracket> {
        let sign = Bracket::UNIT.plus(ratio).reciprocal().filter(|_| self.signed);
        let share = match self.base {
            None => ratio.complement()?,
            // Doubled from 1 on: the sum of 2 k powers is that of k times 1 + q^k, so that no digit is lost.
            Some(base) if base.is_power_of_two() && base > 1 => {
                let (mut sum, mut power) = (Bracket::UNIT, ratio);
                for _ in 0..base.trailing_zeros() {
                    (sum, power) = (sum.plus(sum.times(power)), power.times(power));
                }
                sum.reciprocal()?
            }
            Some(_) => return None,
        };
        Some(sign.map_or(share, |sign| share.times(sign)))
    }
}

/// Draws by rejection, without a table: Canonne, Kamath and Steinke 2020, Algorithm 2. It serves a few draws, and tests
/// of the tables.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rejection {
    numerator: u64,
    denominator: u64,
}

impl Rejection {
    /// The distribution of scale `numerator / denominator`, both positive.
    pub fn new(numerator: u64, denominator: u64) -> Rejection {
        Rejection { numerator, denominator }
    }

    /// Draws an integer g >= 0 with probability proportional to exp(-g / scale), saturating at 2^63 - 1.
    pub fn draw(&self, rng: &mut Rng) -> u64 {
        let fraction = loop {
            let fraction = rng.below(self.numerator);
            if exp_minus(fraction, self.numerator, rng) {
                break fraction;
            }
        };
        let mut whole = 0u64;
        while exp_minus(1, 1, rng) {
            whole += 1;
        }
        let total = u128::from(fraction) + u128::from(self.numerator) * u128::from(whole);
        (total / u128::from(self.denominator)).min(i64::MAX as u128) as u64
    }

    /// Draws an integer x with probability proportional to exp(-|x| / scale): a sign and a magnitude, drawn anew where
    /// they are minus and 0, since 0 would otherwise come twice as often.
    pub fn draw_signed(&self, rng: &mut Rng) -> i64 {
        loop {
            let magnitude = self.draw(rng) as i64;
            let negative = rng.next_u64() & 1 == 1;
            if !(negative && magnitude == 0) {
                return if negative { -magnitude } else { magnitude };
            }
        }
    }
}

/// True with probability exp(-numerator / denominator), for a ratio of at most one.
fn exp_minus(numerator: u64, denominator: u64, rng: &mut Rng) -> bool {
    let mut k = 1u64;
    // A coin of probability ratio / k is two independent ones, of ratio and of 1 / k.
    while rng.below(denominator) < numerator && rng.below(k) == 0 {
        k += 1;
    }
    k % 2 == 1
}

#[cfg(test)]
mod tests {
    use super::super::rng::{Seed, Stream};
    use super::*;

    fn scales() -> Vec<Rational> {
        let whole = |scale: u64| Rational::from(BigUint::from(scale));
        vec![
            whole(1),
            whole(24),
            whole(25),
            whole(10_000),
            whole(1 << 40),
            whole(1 << 62),
            whole(1) / BigUint::from(7u32),
        ]
    }

    #[test]
    fn arrays_hold_what_the_tables_draw() {
        let seed = Seed::reproducible([5; 32]);
        for scale in scales() {
            let [one_sided, two_sided] = [false, true].map(|signed| Inversion::of_scale(&scale, signed));
            let (mut out, count) = (vec![0; 700], 700);
            two_sided.fill_signed(&mut out, &mut seed.stream(Stream::Noise, 0));
            // Digit by digit, each in blocks.
            let mut rng = seed.stream(Stream::Noise, 0);
            let lowest: Vec<u64> = (0..count).map(|_| two_sided.lowest.draw(&mut rng)).collect();
            let mut expected: Vec<i128> = lowest.iter().map(|zigzag| i128::from(zigzag >> 1)).collect();
            for (shift, table) in two_sided.shifts().zip(&two_sided.higher) {
                expected.iter_mut().for_each(|value| *value += i128::from(table.draw(&mut rng)) << shift);
            }
            let signed = |(value, zigzag): (&i128, &u64)| {
                let value = *value.min(&i128::from(i64::MAX)) as i64;
                if zigzag & 1 == 1 { -1 - value } else { value }
            };
            assert_eq!(out, expected.iter().zip(&lowest).map(signed).collect::<Vec<i64>>(), "{scale}");
            one_sided.fill(&mut out, &mut seed.stream(Stream::Noise, 0));
            assert!(out.iter().all(|&value| value >= 0));
        }
    }

    #[test]
    fn digits_beyond_the_range_saturate() {
        for (magnitude, digit, shift) in [
            (0, 1, 63),
            (0, 1, 200),
            (5, 1 << 40, 24),
            (LARGEST, 1, 0),
            (LARGEST, u64::MAX, 63),
            (7, u64::MAX, 1),
            ((1 << 10) - 1, (1 << 53) - 1, 10),
            ((1 << 10) - 1, 1 << 53, 10),
            (3, 5, 2),
            (0, 0, 99),
        ] {
            let exact = u128::from(magnitude) + (u128::from(digit) << shift.min(64));
            let expected = exact.min(u128::from(LARGEST)) as u64;
            assert_eq!(with_digit(magnitude, digit, shift), expected, "{magnitude} {digit} {shift}");
        }
    }
}
