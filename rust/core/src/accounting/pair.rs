//! A symmetric dominating pair in the coordinate of the mechanism that runs on the subsample.
//!
//! Only positive losses are described, by their mass under sqrt(P Q): that of the opposite loss is the same.

use crate::simd::exp;

/// Losses above it in one round count as infinite: their mass under Q could not be told from 0.
pub const MOST_LOSS: f64 = 1200.0;

/// How fine grids are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grain {
    /// As fine as guarantees ask for.
    Fine,
    /// Fine enough for a look at a curve: what it shows is an upper bound, too, but a loose one.
    Coarse,
}

/// A single loss.
#[derive(Clone, Copy, Debug)]
pub struct Atom {
    /// The loss, above 0.
    pub loss: f64,
    /// Its mass.
    pub mass: f64,
}

/// A density height * e^(-curvature * loss^2) on losses from 0 to `reach`.
#[derive(Clone, Copy, Debug)]
pub struct Component {
    /// Where the density ends.
    pub reach: f64,
    /// Its value near 0.
    pub height: f64,
    /// How fast it falls.
    pub curvature: f64,
}

/// A part of a sum that is below this share of it needs no exponential: its upper bound is as good.
const NEGLIGIBLE: f64 = 1e-16;

/// The value of a sum of densities at a loss.
pub fn density(components: &[Component], loss: f64) -> f64 {
    let square = loss * loss;
    components.iter().fold(0.0, |sum, part| {
        let level = part.curvature == 0.0 || part.height < NEGLIGIBLE * sum;
        // Where a density has not ended, this is far above the least number of a float.
        sum + if level { part.height } else { part.height * exp(-part.curvature * square) }
    })
}

impl Component {
    /// The widest panel on which five nodes integrate this density, and any that reaches further, to the last digits: a
    /// 32nd of a standard deviation of a bell curve, and less than a unit of an exponential.
    pub fn panel(&self) -> f64 {
        let deviation = (2.0 * self.curvature).sqrt().recip();
        (deviation / 32.0).min(0.5)
    }
}

/// Densities on some losses.
pub struct Densities {
    /// Those that count, those that end first in front.
    components: Vec<Component>,
    /// At least the sum of all others.
    pub rest: f64,
}

impl Densities {
    /// The densities that reach beyond a loss.
    pub fn beyond(&self, loss: f64) -> &[Component] {
        &self.components[self.components.partition_point(|component| component.reach <= loss)..]
    }
}

/// Atoms and densities of the losses of the base, given that a draw changed; the rest of P has the loss 0.
pub struct Pair {
    /// The probability that a draw changes.
    pub eta: f64,
    /// Single losses, ascending.
    pub atoms: Vec<Atom>,
    /// Densities, those that end first in front.
    pub components: Vec<Component>,
    /// The probability of an infinite loss.
    pub infinity: f64,
    /// The scale on which densities and dense atoms vary, if there are any.
    pub scale: Option<f64>,
}

/// Steps a scale, and a relative one, of the grid on which moments are taken.
const RESOLUTION: f64 = 100.0;
const RELATIVE: f64 = 0.005;

/// Above it e^loss is not formed.
const LARGE: f64 = 30.0;

impl Pair {
    /// A pair with no loss yet but an infinite one.
    pub fn new(eta: f64, infinity: f64) -> Pair {
        Pair { eta, atoms: Vec::new(), components: Vec::new(), infinity, scale: None }
    }

    /// Brings atoms and densities into their order.
    pub fn sort(&mut self) {
        self.atoms.sort_by(|one, other| one.loss.total_cmp(&other.loss));
        self.components.sort_by(|one, other| one.reach.total_cmp(&other.reach));
    }

    /// The loss of a round where the base has the loss e: ln(1 + eta (e^e - 1)).
    pub fn round_loss(&self, base: f64) -> f64 {
        if self.eta >= 1.0 {
            base
        } else if base < LARGE {
            (self.eta * base.exp_m1()).ln_1p()
        } else {
            base + (self.eta + (1.0 - self.eta) * (-base).exp()).ln()
        }
    }

    /// The inverse of [`Pair::round_loss`].
    pub fn base_loss(&self, round: f64) -> f64 {
        if self.eta >= 1.0 {
            round
        } else if round < LARGE {
            (round.exp_m1() / self.eta).ln_1p()
        } else {
            round - self.eta.ln() + (-(1.0 - self.eta) * (-round).exp()).ln_1p()
        }
    }

    /// The densities on losses between two bounds. Those that are negligible everywhere between them, as those of few
    /// changed draws are at losses of many, become a number that is not below their sum.
    pub fn between(&self, low: f64, high: f64) -> Densities {
        let beyond = &self.components[self.components.partition_point(|component| component.reach <= low)..];
        let at = |component: &Component, loss: f64| density(std::slice::from_ref(component), loss);
        let whole = beyond.iter().filter(|component| component.reach >= high);
        let least = NEGLIGIBLE * whole.map(|component| at(component, high)).fold(0.0, f64::max);
        let (small, components): (Vec<_>, Vec<_>) =
            beyond.iter().copied().partition(|component| at(component, low) < least);
        Densities { rest: small.iter().map(|component| at(component, low)).sum(), components }
    }

    /// Losses of the base, from 0 to the largest, dense enough for moments; every end is among them and, where there is
    /// no scale, every atom.
    ///
    /// Where it is coarse steps are four times as wide.
    pub fn natural_grid(&self, grain: Grain) -> Vec<f64> {
        let ends = self.components.iter().map(|component| component.reach);
        let atoms = self.atoms.iter().map(|atom| atom.loss);
        let last = atoms.clone().chain(ends.clone()).fold(0.0, f64::max);
        let mut grid = vec![0.0, last];
        grid.extend(ends);
        if let Some(scale) = self.scale {
            let wider = if grain == Grain::Coarse { 4.0 } else { 1.0 };
            let (first, share) = (wider * scale / RESOLUTION, wider * RELATIVE);
            let next = |&loss: &f64| Some(loss + first.max(share * loss));
            grid.extend(std::iter::successors(Some(first), next).take_while(|&loss| loss < last));
        } else {
            grid.extend(atoms);
        }
        grid.sort_by(f64::total_cmp);
        grid.dedup();
        grid
    }
}
