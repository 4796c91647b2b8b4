//! Composition of privacy losses by Fourier transforms.

use realfft::RealFftPlanner;
use realfft::num_complex::Complex;

use super::curve::{Curve, TransformError};
use super::law::Law;
use super::mechanism::{Mechanism, Term};
use super::moments::{Composition, Moments, natural_law};
use super::{Accountant, U, valley};
use crate::error::{Error, Result};
use crate::params::fraction;
use crate::run::Run;

/// Bounds on the size of the transforms, which the window of the composed loss must fit.
const LEAST_POINTS: usize = 1 << 14;
const MOST_POINTS: usize = 1 << 20;

/// Grid points to which one round's losses may extend.
const MOST_CELLS: f64 = (1 << 19) as f64;

/// What connecting the dots may add to delta, relative to it, when the grid is fine enough.
const ACCURACY: f64 = 2e-4;

/// Losses that are dropped add this part to delta.
const NEGLIGIBLE: f64 = 1e-10;

/// Minus ln of the mass of the tilted loss that may wrap around from below the window: it only adds to delta.
const WRAPPED: f64 = 30.0;

/// Smaller deltas are bounded by their moments alone: the laws' own tails, cut at 1e-57, must not show.
const LEAST_DELTA: f64 = 1e-40;

/// The delta of a composition at `epsilon` >= 0, rounded up.
///
/// Cost: a few Fourier transforms of up to 2^20 points, and the density of a round's loss at five nodes a grid point.
/// Source: Kairouz, Oh and Viswanath 2015; Koskela, Jaelkoe and Honkela 2020; Doroshenko et al. 2022.
pub fn delta(terms: &[Term], epsilon: f64, accountant: Accountant, run: Run<'_>) -> Result<f64> {
    check(terms)?;
    if !(epsilon >= 0.0 && epsilon.is_finite()) {
        return Err(Error::parameter("epsilon", epsilon, "it must be a finite number of at least 0"));
    }
    let moments = composition(terms, accountant, run)?;
    let (order, log_delta) = moments.log_delta(epsilon);
    let by_moments = (log_delta.exp() + moments.infinity()).min(1.0);
    if accountant == Accountant::Rdp {
        return Ok(by_moments);
    }
    if by_moments < LEAST_DELTA {
        return self::delta(terms, epsilon, Accountant::Rdp, run);
    }
    let found = refined(order, |slope| {
        let plan = Plan::new(&moments, order, slope, log_delta.min(0.0), epsilon);
        let curve = plan.curve(terms, run)?;
        Ok((curve.delta((epsilon - plan.shift).max(0.0)), curve.slope(epsilon)))
    });
    Ok(found?.min(by_moments))
}

/// The least epsilon >= 0 at which a composition has this delta, rounded up; infinite where none has.
///
/// Cost and source: as [`delta`].
pub fn epsilon(terms: &[Term], delta: f64, accountant: Accountant, run: Run<'_>) -> Result<f64> {
    check(terms)?;
    fraction("delta", delta, 1.0)?;
    let accountant = if delta < LEAST_DELTA { Accountant::Rdp } else { accountant };
    let moments = composition(terms, accountant, run)?;
    let finite = delta - moments.infinity();
    if finite <= 0.0 {
        return Ok(f64::INFINITY);
    }
    let (order, by_moments) = moments.epsilon(finite);
    if accountant == Accountant::Rdp || by_moments <= 0.0 {
        return Ok(by_moments.max(0.0));
    }
    let found = refined(order, |slope| {
        let plan = Plan::new(&moments, order, slope, finite.ln(), by_moments);
        let curve = plan.curve(terms, run)?;
        let found = curve.epsilon(delta).map_or(by_moments, |epsilon| epsilon + plan.shift);
        Ok((found, curve.slope(found)))
    });
    Ok(found?.min(by_moments).max(0.0))
}

/// The bound that `solve` finds on a grid for a curve that falls like e^(-slope * epsilon), and on a finer one where
/// the curve turns out to fall faster: moments, from which the first slope comes, do not see that of a heavy tail.
fn refined(order: f64, solve: impl Fn(f64) -> Result<(f64, f64)>) -> Result<f64> {
    let (first, slope) = solve(order)?;
    if slope < 1.5 * order {
        return Ok(first);
    }
    let (second, _) = solve(slope.min(20.0 * order))?;
    Ok(second.min(first))
}

fn check(terms: &[Term]) -> Result<()> {
    if terms.is_empty() {
        return Err(Error::Parameter("mechanisms is empty, but it must hold at least one".into()));
    }
    for term in terms {
        term.mechanism.checked()?;
        if !(1..=1 << 53).contains(&term.rounds) {
            return Err(Error::parameter("rounds", term.rounds, "it must be an integer from 1 to 2^53"));
        }
    }
    Ok(())
}

/// The moments by which a composition is bounded or, for the other accountant, planned.
fn composition(terms: &[Term], accountant: Accountant, run: Run<'_>) -> Result<Composition> {
    match accountant {
        Accountant::Rdp => Composition::new(terms, run),
        Accountant::Pld => {
            let laws =
                terms.iter().map(|term| Ok((Moments::Law(natural_law(&term.mechanism, run)?), term.rounds as f64)));
            laws.collect::<Result<_>>().map(Composition)
        }
    }
}

/// The grid of a composition, and how its laws are tilted.
///
/// Masses are multiplied by e^(order * loss) before they are transformed and divided by it afterwards. With the order
/// that the moments' bound uses, the tilted loss lies about where delta is asked for: the transforms' errors, relative
/// to the largest mass, are then small relative to delta, too.
struct Plan {
    order: f64,
    /// Where the window of the composed loss begins.
    bottom: f64,
    /// The order at which the mass above the window is bounded.
    top_order: f64,
    width: f64,
    points: usize,
    /// What is dropped of each round, and the loss above which it is.
    negligible: f64,
    cuts: Vec<(f64, f64)>,
    /// A bound on what rounding moved the composed loss by.
    shift: f64,
}

impl Plan {
    /// A grid fine enough for a curve that falls like e^(-slope * epsilon) about `epsilon`.
    fn new(moments: &Composition, order: f64, slope: f64, log_delta: f64, epsilon: f64) -> Plan {
        let rounds: f64 = moments.0.iter().map(|(_, rounds)| rounds).sum();
        let log_dropped = log_delta + NEGLIGIBLE.ln();
        let negligible = log_dropped.exp() / rounds;
        let laws = || moments.0.iter().filter_map(|(each, rounds)| each.law().map(|law| (law, rounds)));
        let cuts: Vec<(f64, f64)> = laws().map(|(law, _)| law.quantile(negligible)).collect();
        let farthest = cuts.iter().map(|cut| cut.0).fold(0.0, f64::max);
        let tilted = moments.log_moment(order);
        let (_, reach) = valley(|s| (moments.log_moment(order - s) - tilted + WRAPPED) / s);
        let bottom = (-reach).min(epsilon);
        let moved = laws().map(|(law, rounds)| rounds * law.moved(order)).sum::<f64>().max(U);
        // The window's top where dots `width` apart are connected: that adds to the moment of order s, relative to it,
        // s (s + 1) width^2 / 12 or a little more for every loss that is not 0.
        let top = |width: f64| {
            let spread = |s: f64| moved * (s * (s + 1.0) * width * width / 8.0).exp_m1();
            valley(|s| (moments.log_moment(s) + spread(s) - log_dropped) / s)
        };
        let slope = slope.max(WRAPPED / (top(0.0).1 - bottom));
        let fine = (12.0 * ACCURACY / (slope * (slope + 1.0) * moved.max(1.5))).sqrt();
        let least = |window: f64| (window / (MOST_POINTS - 4) as f64).max(farthest / MOST_CELLS);
        let width = fine.max(least(top(0.0).1 - bottom));
        let (top_order, top) = top(width);
        let window = top - bottom;
        let points = ((window / width) as usize + 4).next_power_of_two().clamp(LEAST_POINTS, MOST_POINTS);
        // What rounding the size up leaves is used for a finer grid.
        let width = (window / (points - 4) as f64).max(farthest / MOST_CELLS);
        // The largest loss, often an atom, falls on a grid point: randomised response is then not widened at all.
        let width = if farthest > width { farthest / (farthest / width).floor() } else { width };
        let shift = 16.0 * U * laws().zip(&cuts).map(|((_, rounds), cut)| rounds * cut.0).sum::<f64>();
        Plan { order, bottom, top_order, width, points, negligible, cuts, shift }
    }

    /// The law of one round on the grid.
    fn law(&self, mechanism: &Mechanism, cut: (f64, f64), run: Run<'_>) -> Result<Law> {
        let pair = mechanism.pair(self.negligible)?;
        let cells = (cut.0 / self.width).ceil() as usize + 1;
        let round: Vec<f64> = (0..=cells).map(|i| i as f64 * self.width).collect();
        let base: Vec<f64> = round.iter().map(|&loss| pair.base_loss(loss)).collect();
        Law::new(&pair, &base, round, cut.1, run)
    }

    /// The curve of the composition.
    fn curve(&self, terms: &[Term], run: Run<'_>) -> Result<Curve> {
        let laws = terms
            .iter()
            .zip(&self.cuts)
            .map(|(term, &cut)| Ok((Moments::Law(self.law(&term.mechanism, cut, run)?), term.rounds as f64)));
        let laws = Composition(laws.collect::<Result<_>>()?);
        let log_moment = laws.log_moment(self.order);
        let first = (self.bottom / self.width).floor() as i64 - 1;
        let start = first as f64 * self.width;
        let (composed, norm) = self.transform(&laws, terms, run)?;
        let descending = (0..self.points).rev().map(|i| {
            let mass = composed[(first + i as i64).rem_euclid(self.points as i64) as usize];
            let loss = start + i as f64 * self.width;
            // A negative mass is an error of the transforms; 0 is nearer to the truth.
            if mass > 0.0 { mass * (log_moment - self.order * loss).exp() } else { 0.0 }
        });
        let error = TransformError { norm, order: self.order, log_moment };
        let mut curve = Curve::new(start, self.width, descending, error);
        let top = start + (self.points - 1) as f64 * self.width;
        let above = (laws.log_moment(self.top_order) - self.top_order * top).exp();
        curve.beyond = (laws.infinity() + above) * (1.0 + NEGLIGIBLE);
        Ok(curve)
    }

    /// The tilted law of the composed loss, cyclic, and a bound on the 2-norm of its error.
    ///
    /// A transform of 2^k points has a relative error in the 2-norm of at most k * 24 U: Higham, Accuracy and Stability
    /// of Numerical Algorithms, Theorem 24.2, with 6 U for a butterfly and 10 U for weights whose angles carry three
    /// roundings, and half as much again for butterflies arranged otherwise. The power multiplies the error by the number
    /// of rounds, since no transform of a law exceeds 1 (by more than its error: `growth`), and adds 6 U a round of its
    /// own, relative to the norm of the composed law, which is at most that of each.
    fn transform(&self, laws: &Composition, terms: &[Term], run: Run<'_>) -> Result<(Vec<f64>, f64)> {
        let failed = |cause: realfft::FftError| Error::System(format!("a Fourier transform failed: {cause}"));
        let mut planner = RealFftPlanner::<f64>::new();
        let (forward, inverse) = (planner.plan_fft_forward(self.points), planner.plan_fft_inverse(self.points));
        let (mut values, mut spectrum) = (forward.make_input_vec(), forward.make_output_vec());
        let mut product = vec![Complex::new(1.0, 0.0); spectrum.len()];
        let once = 24.0 * U * ((self.points as f64).log2() + 1.0);
        let (mut error, mut rounds) = (once, 0.0);
        for ((moments, count), term) in laws.0.iter().zip(terms) {
            run.check()?;
            if let Some(law) = moments.law() {
                law.tilt(self.order, &mut values);
            }
            error += count * (once + 6.0 * U) * values.iter().map(|value| value * value).sum::<f64>().sqrt();
            rounds += count;
            forward.process(&mut values, &mut spectrum).map_err(failed)?;
            let powers = spectrum.iter().map(|&value| power(value, term.rounds));
            product.iter_mut().zip(powers).for_each(|(product, power)| *product *= power);
        }
        run.check()?;
        // Real for a real law; the inverse insists on it.
        let last = product.len() - 1;
        [0, last].into_iter().for_each(|i| product[i].im = 0.0);
        inverse.process(&mut product, &mut values).map_err(failed)?;
        let points = self.points as f64;
        values.iter_mut().for_each(|value| *value /= points);
        Ok((values, error * (rounds * once * points.sqrt()).exp()))
    }
}

/// An integer power by repeated squaring.
fn power(mut base: Complex<f64>, mut exponent: u64) -> Complex<f64> {
    let mut result = Complex::new(1.0, 0.0);
    while exponent > 0 {
        if exponent & 1 == 1 {
            result *= base;
        }
        base *= base;
        exponent >>= 1;
    }
    result
}
