//! Composition of privacy losses by Fourier transforms.

use realfft::RealFftPlanner;
use realfft::num_complex::Complex;

use super::curve::{Curve, TransformError};
use super::mechanism::{Mechanism, Term};
use super::moments::{Composition, Moments, natural_law};
use super::plan::{ACCURACY, Aim, NEGLIGIBLE, Plan, TRANSFORM};
use super::{Accountant, U};
use crate::error::{Error, Result};
use crate::params::fraction;
use crate::run::Run;

/// Smaller deltas are bounded by their moments alone: the laws' own tails, cut at 1e-57, must not show.
const LEAST_DELTA: f64 = 1e-40;

/// The number of times that a grid may be planned anew, where delta turns out to be smaller than planned for by this
/// difference of logarithms, or its curve much steeper: moments do not see how fast the curve of a heavy tail falls.
const PASSES: usize = 4;
const SURPRISE: f64 = 3.0;

/// An epsilon whose delta is a smaller part than this of the one asked for comes from a grid that was too coarse. What
/// lies between is how grids differ where a curve is flat.
const LOOSE: f64 = 0.5;

/// An epsilon whose delta is at least this part of the one asked for is as small as grids make it; so is one where a
/// smaller one, by `NEAR` of it, does not hold.
const CLOSE: f64 = 0.9;
const NEAR: f64 = 1e-3;

/// Where there is no grid, the moments' bound is looked at once more with so much of delta spent on losses that become
/// infinite: a rare loss of 100 hides what is known of others of 1e-8, and no grid has room for both.
const RARE: f64 = 0.1;

/// How often an epsilon is halved that is larger than it need be.
const HALVINGS: usize = 24;

/// The delta of a composition at `epsilon` >= 0, rounded up. A mechanism may depend on the results of earlier ones, as
/// long as its guarantee is that of its term.
///
/// Cost: a few Fourier transforms of up to 2^20 points, and the density of a round's loss at five nodes for each grid
/// point. Source: Kairouz, Oh and Viswanath 2015; Koskela, Jaelkoe and Honkela 2020; Doroshenko et al. 2022.
pub fn delta(terms: &[Term], epsilon: f64, accountant: Accountant, run: Run<'_>) -> Result<f64> {
    if !(epsilon >= 0.0 && epsilon.is_finite()) {
        return Err(Error::parameter("epsilon", epsilon, "it must be a finite number of at least 0"));
    }
    let shown = Composed::new(terms, accountant, run)?.delta(epsilon, 0.0)?;
    if shown.grid.is_some() || shown.delta < LEAST_DELTA {
        return Ok(shown.delta);
    }
    let whole = without_sampling(terms, accountant, run, |whole| Ok(whole.delta(epsilon, 0.0)?.delta));
    Ok(whole.map_or(shown.delta, |whole| shown.delta.min(whole)))
}

/// The least epsilon >= 0 at which a composition has this delta, rounded up; infinite where there is none.
///
/// Cost and source: as [`delta`].
pub fn epsilon(terms: &[Term], delta: f64, accountant: Accountant, run: Run<'_>) -> Result<f64> {
    fraction("delta", delta, 1.0)?;
    let shown = Composed::new(terms, accountant, run)?.epsilon(delta)?;
    if shown < f64::INFINITY {
        return Ok(shown);
    }
    Ok(without_sampling(terms, accountant, run, |whole| whole.epsilon(delta)).unwrap_or(shown))
}

/// What the mechanisms show where every record is in every draw. It is an upper bound, for a subsample is a mixture of
/// draws that hold the record fewer times or not at all. Windows of subsamples may leave the range of floats where
/// those of the whole do not. `None` where nothing is subsampled or nothing can be said.
fn without_sampling(
    terms: &[Term],
    accountant: Accountant,
    run: Run<'_>,
    show: impl Fn(&Composed<'_>) -> Result<f64>,
) -> Option<f64> {
    if terms.iter().all(|term| term.mechanism.rate >= 1.0) {
        return None;
    }
    let whole = |term: &Term| Term { mechanism: Mechanism { rate: 1.0, ..term.mechanism }, ..*term };
    let whole: Vec<Term> = terms.iter().map(whole).collect();
    show(&Composed::new(&whole, accountant, run).ok()?).ok()
}

/// A composition and its moments.
struct Composed<'a> {
    terms: Vec<Term>,
    /// Those of laws, by which grids are planned, and those in closed form where there are any: where a bound on moments
    /// is all that is known, the worst law of a round need not be the worst at every epsilon at once, and very many
    /// rounds leave no grid of any use.
    moments: Vec<Composition>,
    /// Whether there are grids beside the moments.
    grids: bool,
    run: Run<'a>,
}

/// A delta that was shown, and the last grid that was asked for it.
struct Shown {
    delta: f64,
    grid: Option<(Plan, Curve)>,
}

impl<'a> Composed<'a> {
    fn new(terms: &[Term], accountant: Accountant, run: Run<'a>) -> Result<Composed<'a>> {
        let terms = checked(terms)?;
        let grids = accountant == Accountant::Pld;
        let any_closed = terms.iter().any(|term| Moments::closed(&term.mechanism).is_some());
        let law = |term: &Term| natural_law(&term.mechanism, run).map(Moments::Law);
        let whole = |of: &dyn Fn(usize, &Term) -> Result<Moments>| {
            let all = terms.iter().enumerate().map(|(i, term)| Ok((of(i, term)?, term.rounds as f64)));
            all.collect::<Result<_>>().map(Composition)
        };
        let mut moments = if grids { vec![whole(&|_, term| law(term))?] } else { Vec::new() };
        if any_closed || !grids {
            let known = |i: usize| moments.first().map(|laws| laws.0[i].0.clone());
            let best = |i: usize, term: &Term| match Moments::closed(&term.mechanism).or_else(|| known(i)) {
                Some(moments) => Ok(moments),
                None => law(term),
            };
            let best = whole(&best)?;
            moments.push(best);
        }
        Ok(Composed { terms, moments, grids, run })
    }

    /// The delta at an epsilon; whatever is at most `enough` will do.
    fn delta(&self, epsilon: f64, enough: f64) -> Result<Shown> {
        let laws = &self.moments[0];
        let (infinity, log_finite) = (laws.infinity(), laws.log_delta(epsilon).1);
        let others = self.moments[1..].iter().map(|moments| moments.shown_delta(epsilon));
        let best = others.fold(laws.with_infinite(log_finite), f64::min);
        let mut shown = Shown { delta: best, grid: None };
        // Beside losses that are infinite in any case the others need no grid.
        let all_infinite = infinity >= 1.0 || log_finite.exp() <= NEGLIGIBLE * infinity;
        if !self.grids || best < LEAST_DELTA || all_infinite {
            return Ok(shown);
        }
        let (mut log_delta, mut slope) = (log_finite.min(0.0), 0.0);
        for _ in 0..PASSES {
            if shown.delta <= enough {
                break;
            }
            let Some((plan, curve)) = self.grid(Aim::Epsilon(epsilon), log_delta, slope)? else {
                let bound = laws.without_rare(RARE * log_delta.exp()).shown_delta(epsilon);
                if bound >= shown.delta {
                    break;
                }
                (shown.delta, log_delta) = (bound, bound.ln());
                continue;
            };
            shown.delta = shown.delta.min(curve.delta((epsilon - plan.shift).max(0.0)));
            slope = curve.slope(epsilon);
            let fine = shown.delta.ln() > log_delta - SURPRISE && !plan.too_coarse(slope);
            shown.grid = Some((plan, curve));
            if fine {
                break;
            }
            log_delta = shown.delta.ln();
        }
        Ok(shown)
    }

    /// The least epsilon at which [`Composed::delta`] is this delta, nearly.
    ///
    /// Every grid has its own errors: one for the delta finds an epsilon, which must hold by the grid for the epsilon.
    fn epsilon(&self, delta: f64) -> Result<f64> {
        let by_moments = self.moments.iter().map(|moments| moments.shown_epsilon(delta)).fold(f64::INFINITY, f64::min);
        let finite = delta - self.moments[0].infinity();
        let worthwhile = self.grids && delta >= LEAST_DELTA && by_moments > 0.0 && finite > 0.0;
        if !worthwhile {
            return Ok(by_moments);
        }
        let (mut grid, mut slope) = (None, 0.0);
        for _ in 0..PASSES {
            grid = self.grid(Aim::Delta(finite), finite.ln(), slope)?;
            let Some((plan, curve)) = &grid else { break };
            slope = curve.slope(at(plan, curve, delta).unwrap_or(by_moments));
            if !plan.too_coarse(slope) {
                break;
            }
        }
        if grid.is_none() {
            let rare = self.moments[0].without_rare(RARE * delta).shown_epsilon(delta);
            let holds = rare < by_moments && self.delta(rare, delta)?.delta <= delta;
            return Ok(if holds { rare } else { by_moments });
        }
        for room in [1.0, 4.0, 16.0, 64.0].map(|times| times * ACCURACY) {
            let Some((plan, curve)) = grid else { break };
            let epsilon = at(&plan, &curve, delta * (1.0 - room)).unwrap_or(by_moments);
            if epsilon >= by_moments {
                break;
            }
            let shown = self.delta(epsilon, delta)?;
            if shown.delta <= delta {
                return if shown.delta < LOOSE * delta { self.descend(epsilon, delta) } else { Ok(epsilon) };
            }
            grid = shown.grid;
        }
        self.descend(by_moments, delta)
    }

    /// An epsilon that is nearly the least one, from one that holds by far: the grid planned for the delta may be too
    /// coarse for small epsilons. Where the curve jumps there is no smaller one, and one step shows it.
    fn descend(&self, mut good: f64, delta: f64) -> Result<f64> {
        let (mut bad, mut middle) = (0.0, good * (1.0 - NEAR));
        for _ in 0..HALVINGS {
            let shown = self.delta(middle, delta)?;
            let mut next = None;
            if shown.delta <= delta {
                good = middle;
                if shown.delta >= CLOSE * delta {
                    break;
                }
            } else {
                bad = middle;
                // The grid of an epsilon sees the curve above it.
                next = shown.grid.and_then(|(plan, curve)| at(&plan, &curve, delta * (1.0 - 4.0 * ACCURACY)));
            }
            if good * (1.0 - NEAR) <= bad {
                break;
            }
            middle = next.filter(|&epsilon| bad < epsilon && epsilon < good).unwrap_or(f64::midpoint(bad, good));
        }
        Ok(good)
    }

    fn grid(&self, aim: Aim, log_delta: f64, slope: f64) -> Result<Option<(Plan, Curve)>> {
        let Some(plan) = Plan::new(&self.moments[0], aim, log_delta, slope) else { return Ok(None) };
        let curve = curve(&plan, &self.terms, self.run)?;
        Ok(Some((plan, curve)))
    }
}

/// The least epsilon >= 0 at which a grid shows a delta.
fn at(plan: &Plan, curve: &Curve, delta: f64) -> Option<f64> {
    curve.epsilon(delta).map(|epsilon| (epsilon + plan.shift).max(0.0))
}

/// The terms, checked.
fn checked(terms: &[Term]) -> Result<Vec<Term>> {
    if terms.is_empty() {
        return Err(Error::Parameter("mechanisms is empty, but it must hold at least one".into()));
    }
    let check = |term: &Term| {
        if !(1..=1 << 53).contains(&term.rounds) {
            return Err(Error::parameter("rounds", term.rounds, "it must be an integer from 1 to 2^53"));
        }
        Ok(Term { mechanism: term.mechanism.checked()?, rounds: term.rounds })
    };
    terms.iter().map(check).collect()
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
        if mass <= 0.0 { 0.0 } else { mass * (log_moment - plan.order * loss).exp() }
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
/// A transform of 2^k points has a relative error in the 2-norm of at most k [`TRANSFORM`]. The power multiplies the
/// error by the number of rounds, since no transform of a law exceeds 1 (by more than its error, and what raised its
/// masses: `growth`), and adds 6 U a round of its own, relative to the norm of the composed law, which is at most that
/// of each.
fn transform(plan: &Plan, laws: &Composition, terms: &[Term], run: Run<'_>) -> Result<(Vec<f64>, f64)> {
    let failed = |cause: realfft::FftError| Error::System(format!("a Fourier transform failed: {cause}"));
    let mut planner = RealFftPlanner::<f64>::new();
    let (forward, inverse) = (planner.plan_fft_forward(plan.points), planner.plan_fft_inverse(plan.points));
    let (mut values, mut spectrum) = (forward.make_input_vec(), forward.make_output_vec());
    let mut product = vec![Complex::new(1.0, 0.0); spectrum.len()];
    let once = TRANSFORM * ((plan.points as f64).log2() + 1.0);
    let (mut error, mut growth) = (once, 0.0);
    for ((moments, count), term) in laws.0.iter().zip(terms) {
        run.check()?;
        let raised = moments.law().map_or(0.0, |law| law.tilt(plan.order, &mut values));
        error += count * (once + 6.0 * U) * values.iter().map(|value| value * value).sum::<f64>().sqrt();
        growth += count * (once * (plan.points as f64).sqrt() + raised);
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
    Ok((values, error * growth.exp()))
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
