//! Normal deviates rounded to integers, exactly: Gaussian noise that keeps the privacy of the continuous law.

use std::sync::Arc;

use num_bigint::BigUint;
use num_traits::{ToPrimitive, Zero};

use super::array::IntegerNoise;
use super::deviate::Deviate;
use super::interval::{Interval, Rational};
use super::kept::Kept;
use super::laplace::FEW_DRAWS;
use super::normal_law::Normal;
use super::rng::Rng;
use super::table::{Law, Table, fill_unfolded, unfolded};
use crate::simd::Isa;

/// Sigmas below it, and from 1 on, may have a table of integers; it keeps tables in the fastest cache.
const LARGEST_SIGMA: usize = 64;

/// From here on, in draws for each unit of sigma, a table of integers saves more time than it costs.
const DRAWS_A_SIGMA: usize = 25_000;

static TABLES: Kept<Table<Rounded>> = Kept::new();

/// A normal deviate with mean 0 and standard deviation sigma, rounded to the nearest integer: Pr\[X = x\] = Phi((x +
/// 1/2) / sigma) - Phi((x - 1/2) / sigma).
///
/// Added to an integer it is what rounding makes of the integer plus the deviate, so that a release has all privacy of
/// the continuous Gaussian mechanism.
pub enum RoundedGaussian {
    /// Sigma is 0: no noise.
    Zero,
    /// Inversion by a table of integers, for many draws of a small sigma.
    Inversion(Arc<Table<Rounded>>),
    /// A deviate of which as many digits are drawn as the integer needs.
    Deviate(Box<Deviate>),
}

impl RoundedGaussian {
    /// The distribution for an exact sigma. It keeps a table if one pays for `draws` draws; any number may be drawn.
    pub fn new(sigma: &Rational, draws: usize) -> RoundedGaussian {
        let whole = sigma.to_integer().to_usize().unwrap_or(usize::MAX);
        if sigma.is_zero() {
            RoundedGaussian::Zero
        } else if (1..LARGEST_SIGMA).contains(&whole) && draws / DRAWS_A_SIGMA > whole {
            let table = || Table::new(Rounded { sigma: sigma.clone() });
            RoundedGaussian::Inversion(TABLES.table(sigma, table))
        } else {
            RoundedGaussian::Deviate(Box::new(Deviate::new(sigma, draws >= FEW_DRAWS)))
        }
    }

    /// Draws one integer.
    #[inline]
    pub fn draw(&self, rng: &mut Rng) -> i64 {
        match self {
            RoundedGaussian::Zero => 0,
            RoundedGaussian::Inversion(table) => unfolded(table.draw(rng)),
            RoundedGaussian::Deviate(deviate) => deviate.draw(rng),
        }
    }

    /// Fills an array with independent draws.
    pub fn fill(&self, out: &mut [i64], rng: &mut Rng) {
        match self {
            RoundedGaussian::Inversion(table) => fill_unfolded(table, out, rng),
            RoundedGaussian::Deviate(deviate) => deviate.fill(out, rng),
            RoundedGaussian::Zero => out.fill(0),
        }
    }
}

impl IntegerNoise for RoundedGaussian {
    fn fill(&self, out: &mut [i64], _: Isa, rng: &mut Rng) {
        RoundedGaussian::fill(self, out, rng);
    }
}

/// The law on 0, -1, 1, -2, 2, ... in this order, for a sigma of at least 1.
pub struct Rounded {
    /// The standard deviation before rounding.
    pub sigma: Rational,
}

impl Law for Rounded {
    fn cumulative(&self, bits: u64) -> impl Iterator<Item = Interval> {
        let variance = &self.sigma * &self.sigma;
        // Integers from K on have at most exp(-(K - 1/2)^2 / (2 sigma^2)) of the mass. Where exp(-K^2 / (2 sigma^2)) is
        // 2^-work, that is 2^sqrt(work) times as much at most, still below 2^-bits.
        let work = bits + bits / 16 + 64;
        let cells = Cells::new(&variance, work);
        let normal = Normal { variance, mirrored: false };
        let masses = normal.masses(work).into_iter().enumerate().map(move |(k, mass)| cells.integrate(k, &mass));
        let sides = |k| if k == 0 { 1 } else { 2 };
        let sides = masses.enumerate().flat_map(move |(k, mass)| std::iter::repeat_n(mass, sides(k)));
        sides.scan(Interval::up_to(BigUint::zero(), work), move |sum, mass| {
            *sum = sum.plus(&mass);
            Some(sum.rounded(bits))
        })
    }

    fn outcomes(&self) -> Option<usize> {
        None
    }
}

fn two() -> BigUint {
    BigUint::from(2u32)
}

/// Integrals of the normal density over [k - 1/2, k + 1/2].
///
/// Such an integral is exp(-k^2 / (2 sigma^2)) / (sigma sqrt(2 pi)) times that of cosh(k x / sigma^2) exp(-x^2 / (2
/// sigma^2)) over [-1/2, 1/2]. The powers t^j / (2 j)! of cosh, with t = (k / (2 sigma^2))^2, go with integrals of (2
/// x)^(2 j) exp(-x^2 / (2 sigma^2)), which are the same for all k. By parts they are exp(-q / 2) S_j, with q = 1 / (4
/// sigma^2) and S_j = (1 + q S_(j + 1)) / (2 j + 1).
struct Cells {
    /// S_0, S_1, ... as many as count where exp(-k^2 / (2 sigma^2)) does.
    integrals: Vec<Interval>,
    /// exp(-q / 2) / (sigma sqrt(2 pi)).
    scale: Interval,
    /// 1 / (4 sigma^4).
    square: Rational,
    work: u64,
}

impl Cells {
    fn new(variance: &Rational, work: u64) -> Cells {
        let q = (variance * BigUint::from(4u32)).recip();
        let q_f64 = q.to_f64().unwrap_or(1.0);
        // The largest t, where k^2 / (2 sigma^2) = work, a little more than needed.
        let (mut t, mut count, mut size) = (2.0 * work as f64 * q_f64, 1u32, 0.0);
        t = t.max(q_f64);
        while size > -(work as f64) || f64::from(count * count) < t {
            size += (t / f64::from(2 * count * (2 * count - 1))).log2();
            count += 1;
        }
        let (one, ratio) = (Interval::one(work), Interval::ratio(&q, work));
        // The first one that does not count lies between 0 and 1.
        let mut integrals = vec![Interval::up_to(BigUint::from(1u32) << work, work)];
        for j in (0..u64::from(count)).rev() {
            let next = one.plus(&integrals[integrals.len() - 1].times(&ratio)).divided_by(2 * j + 1);
            integrals.push(next);
        }
        integrals.reverse();
        let tau = Interval::pi(work).plus(&Interval::pi(work));
        let root = tau.times(&Interval::ratio(variance, work)).square_root().reciprocal();
        let scale = root.times(&Interval::exp_minus(&(&q / two()), work));
        Cells { integrals, scale, square: &q * &q * BigUint::from(4u32), work }
    }

    /// The integral around k, given exp(-k^2 / (2 sigma^2)).
    fn integrate(&self, k: usize, mass: &Interval) -> Interval {
        let t = Interval::ratio(&(&self.square * BigUint::from(k) * BigUint::from(k)), self.work);
        // What follows the last power lies between 0 and 1, too, since the powers beyond halve.
        let (last, before) = (self.integrals.len() - 1, &self.integrals);
        let sum = (0..last).rev().fold(before[last].clone(), |sum, j| {
            let divisor = (2 * j as u64 + 1) * (2 * j as u64 + 2);
            sum.times(&t).divided_by(divisor).plus(&before[j])
        });
        sum.times(mass).times(&self.scale)
    }
}
