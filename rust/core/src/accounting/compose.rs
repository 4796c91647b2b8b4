//! Composition of privacy losses by Fourier transforms.

use realfft::RealFftPlanner;
use realfft::num_complex::Complex;

use super::curve::{Curve, TransformError};
use super::mechanism::{Base, Term};
use super::moments::{Composition, Moments, natural_law};
use super::plan::{Aim, NEGLIGIBLE, Plan};
use super::{Accountant, U};
use crate::error::{Error, Result};
use crate::params::fraction;
use crate::run::Run;

/// Smaller deltas are bounded by their moments alone: the laws' own tails, cut at 1e-57, must not show.
const LEAST_DELTA: f64 = 1e-40;

/// A grid is planned anew, up to so often, where delta turns out this much smaller (in logarithms) or its curve much
/// steeper than planned for: moments do not see how fast the curve of a heavy tail falls.
const PASSES: usize = 4;
const SURPRISE: f64 = 3.0;

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
    let (_, log_delta) = moments.log_delta(epsilon);
    let by_moments = (log_delta.exp() + moments.infinity()).min(1.0);
    if accountant == Accountant::Rdp {
        return Ok(by_moments);
    }
    if by_moments < LEAST_DELTA {
        return self::delta(terms, epsilon, Accountant::Rdp, run);
    }
    let (mut best, mut log_delta, mut slope) = (by_moments, log_delta.min(0.0), 0.0);
    for _ in 0..PASSES {
        let plan = Plan::new(&moments, Aim::Epsilon(epsilon), log_delta, slope);
        if !plan.usable() {
            break;
        }
        let curve = curve(&plan, terms, run)?;
        best = best.min(curve.delta((epsilon - plan.shift).max(0.0)));
        slope = curve.slope(epsilon);
        if best.ln() > log_delta - SURPRISE && !plan.too_coarse(slope) {
            break;
        }
        log_delta = best.ln();
    }
    let enough = best < by_moments && !closed(terms);
    if enough { Ok(best) } else { Ok(best.min(self::delta(terms, epsilon, Accountant::Rdp, run)?)) }
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
    let (_, by_moments) = moments.epsilon(finite);
    if accountant == Accountant::Rdp || by_moments <= 0.0 {
        return Ok(by_moments.max(0.0));
    }
    let (mut best, mut slope) = (by_moments, 0.0);
    for _ in 0..PASSES {
        let plan = Plan::new(&moments, Aim::Delta(finite), finite.ln(), slope);
        if !plan.usable() {
            break;
        }
        let curve = curve(&plan, terms, run)?;
        best = curve.epsilon(delta).map_or(best, |epsilon| best.min(epsilon + plan.shift));
        slope = curve.slope(best);
        if !plan.too_coarse(slope) {
            break;
        }
    }
    let enough = best < by_moments && !closed(terms);
    let best = if enough { best } else { best.min(self::epsilon(terms, delta, Accountant::Rdp, run)?) };
    Ok(best.max(0.0))
}

/// Whether closed moments may say more than any law: always where a bound on moments is all that is known, since the
/// worst law of a round need not be the worst at every epsilon at once. They also are what is left after too many
/// rounds for any grid.
fn closed(terms: &[Term]) -> bool {
    terms.iter().any(|term| matches!(term.mechanism.base, Base::Concentrated(_)))
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

/// The curve of a composition on a planned grid.
fn curve(plan: &Plan, terms: &[Term], run: Run<'_>) -> Result<Curve> {
    let laws = terms
        .iter()
        .enumerate()
        .map(|(i, term)| Ok((Moments::Law(plan.law(i, &term.mechanism, run)?), term.rounds as f64)));
    let laws = Composition(laws.collect::<Result<_>>()?);
    let log_moment = laws.log_moment(plan.order);
    let first = (plan.bottom / plan.width).floor() as i64 - 1;
    let start = first as f64 * plan.width;
    let (composed, norm) = transform(plan, &laws, terms, run)?;
    let descending = (0..plan.points).rev().map(|i| {
        let mass = composed[(first + i as i64).rem_euclid(plan.points as i64) as usize];
        let loss = start + i as f64 * plan.width;
        // A negative mass is an error of the transforms; 0 is nearer to the truth.
        if mass > 0.0 { mass * (log_moment - plan.order * loss).exp() } else { 0.0 }
    });
    let error = TransformError { norm, order: plan.order, log_moment };
    let mut curve = Curve::new(start, plan.width, descending, error);
    let top = start + (plan.points - 1) as f64 * plan.width;
    let above = (laws.log_moment(plan.top_order) - plan.top_order * top).exp();
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
fn transform(plan: &Plan, laws: &Composition, terms: &[Term], run: Run<'_>) -> Result<(Vec<f64>, f64)> {
    let failed = |cause: realfft::FftError| Error::System(format!("a Fourier transform failed: {cause}"));
    let mut planner = RealFftPlanner::<f64>::new();
    let (forward, inverse) = (planner.plan_fft_forward(plan.points), planner.plan_fft_inverse(plan.points));
    let (mut values, mut spectrum) = (forward.make_input_vec(), forward.make_output_vec());
    let mut product = vec![Complex::new(1.0, 0.0); spectrum.len()];
    let once = 24.0 * U * ((plan.points as f64).log2() + 1.0);
    let (mut error, mut rounds) = (once, 0.0);
    for ((moments, count), term) in laws.0.iter().zip(terms) {
        run.check()?;
        if let Some(law) = moments.law() {
            law.tilt(plan.order, &mut values);
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
    let points = plan.points as f64;
    values.iter_mut().for_each(|value| *value /= points);
    Ok((values, error * (rounds * once * points.sqrt()).exp()))
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
