//! Composition of privacy losses by Fourier transforms.

use std::cell::RefCell;

use super::Accountant;
use super::curve::{Curve, TransformError};
use super::mechanism::{Base, Mechanism, Term};
use super::moments::{Composition, Moments, natural_law};
use super::pair::Grain;
use super::plan::{ACCURACY, Aim, NEGLIGIBLE, Plan};
use super::shuffled::Shuffled;
use super::terms::check_terms;
use super::transform::Transforms;
use crate::error::Result;
use crate::params::{fraction, nonnegative};
use crate::run::Run;

/// Smaller deltas are bounded by their moments alone: the laws' own tails, cut at 1e-57, must not show.
const LEAST_DELTA: f64 = 1e-40;

/// The number of times that a grid may be planned anew, where delta turns out to be smaller than planned for by this
/// difference of logarithms, or its curve much steeper: moments do not see how fast the curve of a heavy tail falls.
const PASSES: usize = 8;
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

/// A grid of more points than these is planned from what a coarse one shows of the curve.
const PILOTED: usize = 1 << 14;

/// How often an epsilon is halved that is larger than it need be.
const HALVINGS: usize = 24;

/// The delta of a composition at `epsilon` >= 0, rounded up. A mechanism may depend on the results of earlier ones, as
/// long as its guarantee is that of its term.
///
/// Cost: a few Fourier transforms of up to 2^20 points, and the density of a round's loss at five nodes for each grid
/// point. Source: Kairouz, Oh and Viswanath 2015; Koskela, Jaelkoe and Honkela 2020; Doroshenko et al. 2022.
pub fn delta(terms: &[Term], epsilon: f64, accountant: Accountant, run: Run<'_>) -> Result<f64> {
    nonnegative("epsilon", epsilon)?;
    delta_by(
        terms,
        epsilon,
        accountant,
        Look { grain: Grain::Fine, enough: 0.0 },
        &RefCell::new(Transforms::new()),
        run,
    )
}

/// How carefully a delta is looked at.
#[derive(Clone, Copy)]
pub struct Look {
    /// How fine grids are.
    pub grain: Grain,
    /// A delta of at most this is not looked at any closer.
    pub enough: f64,
}

/// The same as [`delta`], looked at with other care and with transforms that may have been used before.
pub fn delta_by(
    terms: &[Term],
    epsilon: f64,
    accountant: Accountant,
    look: Look,
    transforms: &RefCell<Transforms>,
    run: Run<'_>,
) -> Result<f64> {
    if let Some(shuffled) = one_shuffler(terms, accountant)? {
        return Ok(shuffled.delta(epsilon).max(f64::MIN_POSITIVE));
    }
    let new = |terms: &[Term]| Composed::new(terms, accountant, look.grain, transforms, run);
    let shown = new(terms)?.delta(epsilon, look.enough)?;
    if shown.grid.is_some() || shown.delta < LEAST_DELTA.max(look.enough) {
        return Ok(shown.delta);
    }
    let whole =
        without_sampling(terms).and_then(|whole| new(&whole).and_then(|whole| whole.delta(epsilon, look.enough)).ok());
    let whole = whole.map(|shown| shown.delta);
    Ok(whole.map_or(shown.delta, |whole| shown.delta.min(whole)))
}

/// The least epsilon >= 0 at which a composition has this delta, rounded up; infinite where there is none.
///
/// Cost and source: as [`delta`].
pub fn epsilon(terms: &[Term], delta: f64, accountant: Accountant, run: Run<'_>) -> Result<f64> {
    fraction("delta", delta, 1.0)?;
    if let Some(shuffled) = one_shuffler(terms, accountant)? {
        return Ok(shuffled.epsilon(delta));
    }
    let transforms = RefCell::new(Transforms::new());
    let new = |terms: &[Term]| Composed::new(terms, accountant, Grain::Fine, &transforms, run);
    let shown = new(terms)?.epsilon(delta)?;
    if shown < f64::INFINITY {
        return Ok(shown);
    }
    let whole = without_sampling(terms).and_then(|whole| new(&whole).and_then(|whole| whole.epsilon(delta)).ok());
    Ok(whole.unwrap_or(shown))
}

/// The curve of reports that are shuffled once and meet no other mechanism: it needs no grid.
fn one_shuffler(terms: &[Term], accountant: Accountant) -> Result<Option<Shuffled>> {
    let [Term { mechanism, rounds: 1 }] = terms else { return Ok(None) };
    Ok(match mechanism.checked()? {
        Mechanism { base: Base::Shuffled(epsilon, people, categories), draws: 1, rate: 1.0 }
            if accountant == Accountant::Pld =>
        {
            Some(Shuffled::new(epsilon, people, categories))
        }
        _ => None,
    })
}

/// The mechanisms with every record in every draw. What they show is an upper bound, for a subsample is a mixture of
/// draws that hold the record fewer times or not at all. Windows of subsamples may leave the range of floats where
/// those of the whole do not. `None` where nothing is subsampled.
fn without_sampling(terms: &[Term]) -> Option<Vec<Term>> {
    let whole = |term: &Term| Term { mechanism: Mechanism { rate: 1.0, ..term.mechanism }, ..*term };
    let sampled = terms.iter().any(|term| term.mechanism.rate < 1.0);
    sampled.then(|| terms.iter().map(whole).collect())
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
    grain: Grain,
    transforms: &'a RefCell<Transforms>,
    run: Run<'a>,
}

/// A delta that was shown, and the last grid that was asked for it.
struct Shown {
    delta: f64,
    grid: Option<(Plan, Curve)>,
}

impl<'a> Composed<'a> {
    fn new(
        terms: &[Term],
        accountant: Accountant,
        grain: Grain,
        transforms: &'a RefCell<Transforms>,
        run: Run<'a>,
    ) -> Result<Composed<'a>> {
        let terms = check_terms(terms)?;
        let grids = accountant == Accountant::Pld;
        let any_closed = terms.iter().any(|term| Moments::closed(&term.mechanism).is_some());
        let law = |term: &Term| natural_law(&term.mechanism, grain, run).map(Moments::Law);
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
        Ok(Composed { terms, moments, grids, grain, transforms, run })
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
            let fine = shown.delta.ln() > plan.log_delta - SURPRISE && !plan.too_coarse(slope);
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
        let mut grid = self.proposal(delta, finite, by_moments)?;
        if grid.is_none() {
            let rare = self.moments[0].without_rare(RARE * delta).shown_epsilon(delta);
            let holds = rare < by_moments && self.delta(rare, delta)?.delta <= delta;
            return Ok(if holds { rare } else { by_moments });
        }
        for room in [1.0 / 16.0, 1.0, 4.0, 16.0, 64.0].map(|times| times * ACCURACY) {
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

    /// A grid that shows about where the epsilon of a delta is, of which `finite` is left for losses that are not infinite.
    fn proposal(&self, delta: f64, finite: f64, by_moments: f64) -> Result<Option<(Plan, Curve)>> {
        let aim = Aim::Delta(finite);
        let large = |plan: Plan| plan.points > PILOTED;
        if Plan::new(&self.moments[0], aim, finite.ln(), 0.0, self.grain).is_some_and(large) {
            // That of an epsilon a little too large shows the curve as well as that of the delta.
            if let Some((plan, curve)) = self.grid_of(aim, finite.ln(), 0.0, Grain::Coarse)? {
                let epsilon = at(&plan, &curve, delta).unwrap_or(by_moments).min(by_moments);
                let shown = self.delta(epsilon, 0.0)?;
                if shown.delta >= LOOSE * delta && shown.grid.is_some() {
                    return Ok(shown.grid);
                }
            }
        }
        let (mut grid, mut slope) = (None, 0.0);
        for _ in 0..PASSES {
            grid = self.grid(aim, finite.ln(), slope)?;
            let Some((plan, curve)) = &grid else { break };
            slope = curve.slope(at(plan, curve, delta).unwrap_or(by_moments));
            if !plan.too_coarse(slope) {
                break;
            }
        }
        Ok(grid)
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

    /// The curve on a grid for a delta of about e^log_delta and a curve that falls like e^(-slope * epsilon) or, where a
    /// coarse grid shows something else, for what that shows.
    fn grid(&self, aim: Aim, log_delta: f64, slope: f64) -> Result<Option<(Plan, Curve)>> {
        let Some(plan) = Plan::new(&self.moments[0], aim, log_delta, slope, self.grain) else { return Ok(None) };
        if slope == 0.0
            && self.grain == Grain::Fine
            && plan.points > PILOTED
            && let Some((coarse, curve)) = self.grid_of(aim, log_delta, slope, Grain::Coarse)?
        {
            let (epsilon, log_delta) = match aim {
                Aim::Epsilon(epsilon) => (epsilon, curve.delta((epsilon - coarse.shift).max(0.0)).ln().min(log_delta)),
                Aim::Delta(delta) => (curve.epsilon(delta).unwrap_or(f64::INFINITY), log_delta),
            };
            return self.grid_of(aim, log_delta, curve.slope(epsilon), self.grain);
        }
        self.curve(plan).map(Some)
    }

    fn grid_of(&self, aim: Aim, log_delta: f64, slope: f64, grain: Grain) -> Result<Option<(Plan, Curve)>> {
        let plan = Plan::new(&self.moments[0], aim, log_delta, slope, grain);
        plan.map(|plan| self.curve(plan)).transpose()
    }

    fn curve(&self, plan: Plan) -> Result<(Plan, Curve)> {
        let curve = curve(&plan, &self.terms, &mut self.transforms.borrow_mut(), self.run)?;
        Ok((plan, curve))
    }
}

/// The least epsilon >= 0 at which a grid shows a delta.
fn at(plan: &Plan, curve: &Curve, delta: f64) -> Option<f64> {
    curve.epsilon(delta).map(|epsilon| (epsilon + plan.shift).max(0.0))
}

/// The curve of a composition on a planned grid.
fn curve(plan: &Plan, terms: &[Term], transforms: &mut Transforms, run: Run<'_>) -> Result<Curve> {
    let laws = terms
        .iter()
        .enumerate()
        .map(|(i, term)| Ok((Moments::Law(plan.law(i, &term.mechanism, run)?), term.rounds as f64)));
    let laws = Composition(laws.collect::<Result<_>>()?);
    let log_moment = laws.log_moment(plan.order);
    let first = (plan.bottom / plan.width).floor() as i64 - 1;
    let start = first as f64 * plan.width;
    let (composed, norm) = transforms.compose(plan, &laws, run)?;
    // The last index comes before the first one.
    let (before, after) = composed.split_at(first.rem_euclid(plan.points as i64) as usize);
    let error = TransformError { norm, order: plan.order, log_moment };
    let mut curve = Curve::new(start, plan.width, [after, before], error)?;
    let top = start + (plan.points - 1) as f64 * plan.width;
    let above = (laws.log_moment(plan.top_order) - plan.top_order * top).exp();
    curve.beyond = (laws.infinity() + above) * (1.0 + NEGLIGIBLE);
    Ok(curve)
}
