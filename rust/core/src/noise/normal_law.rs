//! The law of integers under a normal density, as tables take it.

use num_bigint::BigUint;
use num_traits::{ToPrimitive, Zero};

use super::bracket::{Bracket, MOST_TERMS};
use super::interval::{Interval, Rational};
use super::table::{Law, Weights};

/// The law on 0, -1, 1, -2, 2, ... in this order; mirrored, each -1 - x is as likely as x.
pub struct Normal {
    /// Sigma squared.
    pub variance: Rational,
    /// Whether zero comes twice.
    pub mirrored: bool,
}

impl Normal {
    /// exp(-x^2 / (2 sigma^2)) for x = 0, 1, ... as long as it counts.
    pub fn masses(&self, bits: u64) -> Vec<Interval> {
        let ratio = Interval::exp_minus(&(self.variance.recip() / BigUint::from(2u32)), bits);
        let square = ratio.times(&ratio);
        let (mut mass, mut step, mut masses) = (Interval::one(bits), ratio, Vec::new());
        while !mass.is_negligible() {
            let next = mass.times(&step);
            step = step.times(&square);
            masses.push(std::mem::replace(&mut mass, next));
        }
        masses
    }
}

impl Law for Normal {
    fn cumulative(&self, bits: u64) -> impl Iterator<Item = Interval> {
        let work = bits + 48 + self.variance.to_integer().bits();
        let masses = self.masses(work);
        // Beyond the last mass they fall by a factor of exp(-n / sigma^2) or faster, from less than a unit.
        let tail = self.variance.ceil().to_integer() + 2u32;
        let half = masses.iter().skip(1).fold(Interval::up_to(tail, work), |sum, mass| sum.plus(mass));
        let zero = Interval::one(work);
        let twice = half.plus(&half).plus(&zero);
        let scale = if self.mirrored { twice.plus(&zero) } else { twice }.reciprocal();
        let sides = move |x| if x == 0 && !self.mirrored { 1 } else { 2 };
        let sides = masses.into_iter().enumerate().flat_map(move |(x, mass)| std::iter::repeat_n(mass, sides(x)));
        sides.scan(Interval::up_to(BigUint::zero(), work), move |sum, mass| {
            *sum = sum.plus(&mass);
            Some(sum.times(&scale).rounded(bits))
        })
    }

    fn outcomes(&self) -> Option<usize> {
        None
    }

    fn weights(&self) -> Option<Weights> {
        let mut step = Bracket::exp_minus(&(self.variance.recip() / BigUint::from(2u32)))?;
        let (mut mass, mut masses, mut half) = (Bracket::UNIT, Vec::new(), Bracket::up_to(0));
        let square = step.times(step);
        // One mass is that of zero if it comes once.
        let mut sides = if self.mirrored { 2 } else { 1 };
        while !mass.is_at_most(NEGLIGIBLE) {
            masses.resize(masses.len() + sides, mass);
            half = half.plus(mass);
            (mass, step, sides) = (mass.times(step), step.times(square), 2);
            if masses.len() > MOST_TERMS {
                return None;
            }
        }
        // Beyond the last mass they fall by a factor of exp(-n / sigma^2) or faster.
        let tail = (self.variance.ceil().to_integer() + 2u32).to_u64()?.checked_mul(NEGLIGIBLE)?;
        let half = half.plus(Bracket::up_to(tail));
        let whole = half.plus(half);
        let share = if self.mirrored { whole } else { whole.minus_one()? }.reciprocal()?;
        Some(Weights { masses, share: Some(share) })
    }
}

/// What a mass is in units of a bracket when it counts no more: 2^-104.
const NEGLIGIBLE: u64 = 1 << 8;
