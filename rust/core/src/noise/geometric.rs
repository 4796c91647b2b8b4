//! The geometric law Pr[G = g] proportional to exp(-g / scale) on 0, 1, 2, ..., exactly, and its two-sided form.

use num_bigint::BigUint;

use super::interval::{Interval, Rational};
use super::rng::Rng;
use super::table::{Law, Table};

/// The scale up to which one table holds all outcomes that 64 bits can tell apart, about 44 times the scale.
const ONE_TABLE: u64 = 24;

/// Binary digits of G that one table gives at most.
const MOST_DIGITS: u64 = 10;

/// Inversion digit by digit: the digits of G in base 2^k are independent, since exp(-g / scale) is a product over them.
///
/// The lowest digit's table can give a sign with it. The highest one's is that of a geometric law of a small scale.
pub struct Inversion {
    lowest: Table<Digit>,
    higher: Vec<Table<Digit>>,
    digits: u64,
}

impl Inversion {
    /// The tables for a positive scale, of G or of its two-sided form.
    pub fn new(scale: &Rational, signed: bool) -> Inversion {
        let excess = (scale / BigUint::from(ONE_TABLE)).ceil().to_integer();
        let binary = if excess <= BigUint::from(1u32) { 0 } else { (excess - 1u32).bits() };
        let splits = binary.div_ceil(MOST_DIGITS);
        let digits = if splits == 0 { 0 } else { binary.div_ceil(splits) };
        let base = |split| (split < splits).then(|| 1usize << digits);
        let rate = |split| scale.recip() * (BigUint::from(1u32) << (digits * split));
        let digit = |split, signed| Table::new(Digit { rate: rate(split), base: base(split), signed });
        Inversion { lowest: digit(0, signed), higher: (1..=splits).map(|split| digit(split, false)).collect(), digits }
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
        let (mut magnitude, mut shift) = (u128::from(lowest), 0);
        for table in &self.higher {
            shift += self.digits;
            magnitude += u128::from(table.draw(rng)) << shift;
        }
        magnitude.min(i64::MAX as u128) as u64
    }
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
