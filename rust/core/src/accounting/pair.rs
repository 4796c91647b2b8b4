//! A symmetric dominating pair in the coordinate of the mechanism that runs on the subsample.
//!
//! Only positive losses are described, by their mass under sqrt(P Q): that of the opposite loss is the same.

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

    /// The density of the base's loss under sqrt(P Q).
    pub fn density(&self, loss: f64) -> f64 {
        let from = self.components.partition_point(|component| component.reach <= loss);
        let square = loss * loss;
        let value = |part: &Component| {
            if part.curvature == 0.0 { part.height } else { part.height * (-part.curvature * square).exp() }
        };
        self.components[from..].iter().map(value).sum()
    }

    /// The widest panel on which five nodes integrate a density to the last digits: a 64th of a standard deviation of
    /// a bell curve, and less than a unit of an exponential.
    pub fn panel(&self) -> f64 {
        self.scale.map_or(0.5, |scale| (scale / 64.0).min(0.5))
    }

    /// Losses of the base, from 0 to the largest, dense enough for moments; every end is among them and, where there is
    /// no scale, every atom.
    pub fn natural_grid(&self) -> Vec<f64> {
        let ends = self.components.iter().map(|component| component.reach);
        let atoms = self.atoms.iter().map(|atom| atom.loss);
        let last = atoms.clone().chain(ends.clone()).fold(0.0, f64::max);
        let mut grid = vec![0.0, last];
        grid.extend(ends);
        if let Some(scale) = self.scale {
            let next = |&loss: &f64| Some(loss + (scale / RESOLUTION).max(RELATIVE * loss));
            grid.extend(std::iter::successors(Some(scale / RESOLUTION), next).take_while(|&loss| loss < last));
        } else {
            grid.extend(atoms);
        }
        grid.sort_by(f64::total_cmp);
        grid.dedup();
        grid
    }
}
