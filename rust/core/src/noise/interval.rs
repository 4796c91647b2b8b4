//! Certified real numbers: intervals of integers in units of 2^-bits, every operation rounded outwards.

use num_bigint::BigUint;
use num_rational::Ratio;
use num_traits::{One, Zero};

/// An exact rational number, never negative.
pub type Rational = Ratio<BigUint>;

/// A real number x >= 0 with lower <= x 2^bits <= upper.
#[derive(Clone, Debug)]
pub struct Interval {
    lower: BigUint,
    upper: BigUint,
    bits: u64,
}

impl Interval {
    /// A rational number.
    pub fn ratio(x: &Rational, bits: u64) -> Interval {
        let shifted = x.numer() << bits;
        let lower = &shifted / x.denom();
        let upper = if &lower * x.denom() == shifted { lower.clone() } else { &lower + 1u32 };
        Interval { lower, upper, bits }
    }

    /// exp(-x).
    pub fn exp_minus(x: &Rational, bits: u64) -> Interval {
        if x.is_zero() {
            return Interval::one(bits);
        }
        // exp(-x) < 2^-x, and an interval this wide says no less.
        if x.to_integer() > BigUint::from(bits) {
            return Interval { lower: BigUint::zero(), upper: BigUint::one(), bits };
        }
        // exp(-x) = exp(-y)^(2^halvings) with y < 2^-8; each squaring costs a bit.
        let halvings = x.to_integer().bits() + 9;
        let work = bits + halvings + 32;
        let least = (x.numer() << work) / (x.denom() << halvings);
        let most = &least + 1u32;
        let mut power = Interval { lower: series(&most, work).lower, upper: series(&least, work).upper, bits: work };
        for _ in 0..halvings {
            power = power.times(&power);
        }
        power.rounded(bits)
    }

    /// Pi, by Machin's formula.
    pub fn pi(bits: u64) -> Interval {
        let work = bits + 16;
        let (fifth, other) = (arctan_of_reciprocal(5, work), arctan_of_reciprocal(239, work));
        let (lower, upper) = (fifth.lower * 16u32 - other.upper * 4u32, fifth.upper * 16u32 - other.lower * 4u32);
        Interval { lower, upper, bits: work }.rounded(bits)
    }

    /// One.
    pub fn one(bits: u64) -> Interval {
        let one = BigUint::one() << bits;
        Interval { lower: one.clone(), upper: one, bits }
    }

    /// A number between 0 and `units` units of 2^-bits.
    pub fn up_to(units: BigUint, bits: u64) -> Interval {
        Interval { lower: BigUint::zero(), upper: units, bits }
    }

    /// The product.
    pub fn times(&self, other: &Interval) -> Interval {
        let lower = (&self.lower * &other.lower) >> self.bits;
        let upper = rounded_up(&self.upper * &other.upper, self.bits);
        Interval { lower, upper, bits: self.bits }
    }

    /// The sum.
    pub fn plus(&self, other: &Interval) -> Interval {
        Interval { lower: &self.lower + &other.lower, upper: &self.upper + &other.upper, bits: self.bits }
    }

    /// One minus the number, which is at most one.
    pub fn complement(&self) -> Interval {
        let one = BigUint::one() << self.bits;
        let at_least_zero = |x: &BigUint| if *x < one { &one - x } else { BigUint::zero() };
        Interval { lower: at_least_zero(&self.upper), upper: at_least_zero(&self.lower), bits: self.bits }
    }

    /// One divided by the number, which is certainly positive.
    pub fn reciprocal(&self) -> Interval {
        let square = BigUint::one() << (2 * self.bits);
        Interval { upper: &square / &self.lower + 1u32, lower: square / &self.upper, bits: self.bits }
    }

    /// The number divided by a positive integer.
    pub fn divided_by(&self, divisor: u64) -> Interval {
        Interval { lower: &self.lower / divisor, upper: &self.upper / divisor + 1u32, bits: self.bits }
    }

    /// The square root.
    pub fn square_root(&self) -> Interval {
        let root = |x: &BigUint| (x << self.bits).sqrt();
        Interval { lower: root(&self.lower), upper: root(&self.upper) + 1u32, bits: self.bits }
    }

    /// Whether it is at most one unit: nothing that counts any more.
    pub fn is_negligible(&self) -> bool {
        self.upper <= BigUint::one()
    }

    /// The same number to fewer bits.
    pub fn rounded(&self, bits: u64) -> Interval {
        let dropped = self.bits - bits;
        Interval { lower: &self.lower >> dropped, upper: rounded_up(self.upper.clone(), dropped), bits }
    }

    /// Its first 64 binary digits, capped just below one, if the interval settles them.
    pub fn first_word(&self) -> Option<u64> {
        let word = |x: &BigUint| u64::try_from(x >> (self.bits - 64)).unwrap_or(u64::MAX);
        let (lower, upper) = (word(&self.lower), word(&self.upper));
        (lower == upper).then_some(lower)
    }

    /// The integers between which the number lies, in units of 2^-bits.
    #[cfg(test)]
    pub fn ends(&self) -> [BigUint; 2] {
        [self.lower.clone(), self.upper.clone()]
    }

    /// Whether every number with the first binary digits `prefix`, `count` of them, lies below or else not below this
    /// one; nothing if that is not settled.
    pub fn exceeds(&self, prefix: &BigUint, count: u64) -> Option<bool> {
        let rest = self.bits - count;
        if (prefix + 1u32) << rest <= self.lower {
            Some(true)
        } else if prefix << rest >= self.upper {
            Some(false)
        } else {
            None
        }
    }
}

fn rounded_up(x: BigUint, dropped: u64) -> BigUint {
    (x + ((BigUint::one() << dropped) - 1u32)) >> dropped
}

/// The arc tangent of 1 / n for n >= 2 by its alternating series.
fn arctan_of_reciprocal(n: u32, bits: u64) -> Interval {
    let (mut power, mut even, mut odd) = ((BigUint::one() << bits) / n, BigUint::zero(), BigUint::zero());
    let mut k = 0u32;
    while !power.is_zero() {
        *(if k.is_multiple_of(2) { &mut even } else { &mut odd }) += &power / (2 * k + 1);
        k += 1;
        power /= n * n;
    }
    // Each term is at most three units too small, and what follows the last one is below a unit.
    let error = BigUint::from(3 * k + 2);
    let sum = even - odd;
    Interval { lower: &sum - &error, upper: sum + error, bits }
}

/// exp(-y / 2^bits) for y / 2^bits < 2^-8 by its alternating series.
fn series(y: &BigUint, bits: u64) -> Interval {
    let (mut term, mut even, mut odd) = (BigUint::one() << bits, BigUint::zero(), BigUint::zero());
    let mut n = 0u32;
    while !term.is_zero() {
        if n.is_multiple_of(2) {
            even += &term
        } else {
            odd += &term
        }
        n += 1;
        term = ((&term * y) >> bits) / n;
    }
    // Each term is at most two units too small, and what follows the last one is below a unit.
    let error = BigUint::from(2 * n + 2);
    let sum = even - odd;
    Interval { lower: &sum - error.clone().min(sum.clone()), upper: sum + error, bits }
}
