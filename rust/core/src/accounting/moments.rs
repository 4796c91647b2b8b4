//! Guarantees from the moments of the privacy loss: Renyi differential privacy.

use super::law::Law;
use super::mechanism::{LossGrid, Mechanism};
use super::pair::Grain;
use super::{U, valley};
use crate::error::{Error, Result};
use crate::run::Run;

/// Events so rare are left out of the moments and added to delta.
const NEGLIGIBLE: f64 = 1e-60;

/// The moments of one round.
#[derive(Clone)]
pub enum Moments {
    /// ln E e^(order * loss) <= order (order + 1) rho: a Gaussian mechanism, or any that is rho-zCDP.
    Quadratic(f64),
    /// Those of a law that dominates the round.
    Law(Law),
}

impl Moments {
    /// The best known moments of a mechanism.
    fn new(mechanism: &Mechanism, run: Run<'_>) -> Result<Moments> {
        Moments::closed(mechanism).map_or_else(|| natural_law(mechanism, Grain::Fine, run).map(Moments::Law), Ok)
    }

    /// Moments in closed form, where they are known.
    pub fn closed(mechanism: &Mechanism) -> Option<Moments> {
        mechanism.concentrated().map(Moments::Quadratic)
    }

    fn log_moment(&self, order: f64) -> f64 {
        match self {
            Moments::Quadratic(rho) => order * (order + 1.0) * rho,
            Moments::Law(law) => law.log_moment(order),
        }
    }

    /// The law, if these are the moments of one.
    pub fn law(&self) -> Option<&Law> {
        match self {
            Moments::Quadratic(_) => None,
            Moments::Law(law) => Some(law),
        }
    }

    fn infinity(&self) -> f64 {
        self.law().map_or(0.0, |law| law.infinity)
    }

    /// The largest finite loss.
    fn largest(&self) -> f64 {
        self.law().map_or(f64::INFINITY, Law::largest)
    }
}

/// The law of a mechanism on a grid of its own, dense enough for moments.
pub fn natural_law(mechanism: &Mechanism, grain: Grain, run: Run<'_>) -> Result<Law> {
    mechanism.law(NEGLIGIBLE, LossGrid::Natural(grain), run)
}

/// The moments of a composition.
pub struct Composition(pub Vec<(Moments, f64)>);

impl Composition {
    /// The number of rounds.
    pub fn rounds(&self) -> f64 {
        self.0.iter().map(|(_, rounds)| rounds).sum()
    }

    /// ln E e^(order * loss) of the whole.
    pub fn log_moment(&self, order: f64) -> f64 {
        self.0.iter().map(|(moments, rounds)| rounds * moments.log_moment(order)).sum()
    }

    /// The mean number of losses that are not 0, under the laws tilted by e^(order * loss), as far as [`Law::moved`]
    /// counts them.
    pub fn moved(&self, order: f64, width: f64) -> f64 {
        let divergence = |moments: &Moments| moments.law().map_or(1.0, |law| law.moved(order, width));
        self.0.iter().map(|(moments, rounds)| rounds * divergence(moments)).sum()
    }

    /// About the sum over all rounds of [`Law::norm_beside_zero`].
    pub fn norm_beside_zero(&self, order: f64, width: f64) -> f64 {
        let norm = |moments: &Moments| moments.law().map_or(0.0, |law| law.norm_beside_zero(order, width));
        self.0.iter().map(|(moments, rounds)| rounds * norm(moments)).sum()
    }

    /// The probability that some loss is infinite, rounded up.
    pub fn infinity(&self) -> f64 {
        let finite: f64 = self.0.iter().map(|(moments, rounds)| rounds * (-moments.infinity()).ln_1p()).sum();
        -finite.exp_m1() * (1.0 + 16.0 * U)
    }

    /// The composition in which losses are infinite that are rarer, all rounds together, than `chance`.
    pub fn without_rare(&self, chance: f64) -> Composition {
        let each = chance / self.rounds();
        let cut = |moments: &Moments| match moments {
            Moments::Law(law) => Moments::Law(law.without_rare(each)),
            Moments::Quadratic(rho) => Moments::Quadratic(*rho),
        };
        Composition(self.0.iter().map(|(moments, rounds)| (cut(moments), *rounds)).collect())
    }

    /// The largest finite loss, rounded up.
    fn largest(&self) -> f64 {
        let losses: f64 = self.0.iter().map(|(moments, rounds)| rounds * moments.largest()).sum();
        losses * (1.0 + ROUNDING)
    }

    /// ln of the delta at `epsilon`, infinite losses left out, and the order that shows it. Negative infinity beyond
    /// the largest loss, which no order that is looked at shows where losses are as small as those of a thin subsample.
    pub fn log_delta(&self, epsilon: f64) -> (f64, f64) {
        let (order, log_delta) = valley(|order| {
            let (moment, cost) = (self.log_moment(order), conversion(order));
            moment + cost + ROUNDING * (moment.abs() - cost) - order * epsilon * (1.0 - ROUNDING)
        });
        (order, if epsilon >= self.largest() { f64::NEG_INFINITY } else { log_delta })
    }

    /// The epsilon at a delta, infinite losses left out, and the order that shows it.
    pub fn epsilon(&self, delta: f64) -> (f64, f64) {
        valley(|order| converted(order, self.log_moment(order), delta))
    }

    /// The delta at `epsilon`, infinite losses included, rounded up.
    pub fn shown_delta(&self, epsilon: f64) -> f64 {
        self.with_infinite(self.log_delta(epsilon).1)
    }

    /// The delta of finite losses, given by its logarithm, and of infinite ones.
    pub fn with_infinite(&self, log_finite: f64) -> f64 {
        let shown = (log_finite.exp() + self.infinity()) * (1.0 + 4.0 * U);
        if shown <= 1.0 { shown.max(f64::MIN_POSITIVE) } else { 1.0 }
    }

    /// The least epsilon >= 0 at which [`Composition::shown_delta`] is this delta, rounded up; infinite where none is.
    pub fn shown_epsilon(&self, delta: f64) -> f64 {
        let finite = delta - self.infinity();
        let mut epsilon =
            if finite > 0.0 { self.epsilon(finite).1.max(0.0).min(self.largest()) } else { f64::INFINITY };
        // The two conversions round differently, and at different orders.
        let mut more = epsilon.max(LEAST_STEP) * ROUNDING;
        loop {
            if epsilon.is_infinite() || self.shown_delta(epsilon) <= delta {
                return epsilon;
            }
            (epsilon, more) = (epsilon + more, 2.0 * more);
        }
    }
}

/// Relative margin of what is done to moments: sums of thousands of terms and a few operations.
const ROUNDING: f64 = 1.0 / (1u64 << 40) as f64;

/// Where an epsilon of 0 is not enough, something of this order is tried.
const LEAST_STEP: f64 = 1e-30;

/// ln of (order / (1 + order))^order / (1 + order): the most that e^(-order * (loss - epsilon)) leaves of
/// (1 - e^(epsilon - loss))^+.
fn conversion(order: f64) -> f64 {
    -order * order.recip().ln_1p() - order.ln_1p()
}

/// The epsilon that a moment implies at a delta, rounded up.
fn converted(order: f64, log_moment: f64, delta: f64) -> f64 {
    let (cost, target) = (conversion(order), -delta.ln());
    (log_moment + cost + target + ROUNDING * (log_moment.abs() - cost + target)) / order
}

/// An upper bound on the Renyi divergence of order `order` > 1 of a mechanism, rounded up. It is infinite where
/// infinite losses have a probability above 1e-50.
///
/// Cost: O(10^3) exponentials for every number of changed draws. Source: Mironov 2017.
pub fn renyi_divergence(mechanism: &Mechanism, order: f64, run: Run<'_>) -> Result<f64> {
    if !(order > 1.0 && order.is_finite()) {
        return Err(Error::parameter("order", order, "it must be a finite number above 1"));
    }
    let moments = Moments::new(&mechanism.checked()?, run)?;
    let moment = moments.log_moment(order - 1.0);
    let bound = (moment + ROUNDING * moment.abs() + 4.0 * U) / (order - 1.0);
    Ok(if moments.infinity() <= 1e-50 { bound } else { f64::INFINITY })
}

/// The epsilon at `delta` that a Renyi divergence of order `order` > 1 implies, rounded up.
///
/// Source: Canonne, Kamath and Steinke 2020, Proposition 12.
pub fn renyi_epsilon(order: f64, divergence: f64, delta: f64) -> f64 {
    converted(order - 1.0, (order - 1.0) * divergence, delta).max(0.0)
}
