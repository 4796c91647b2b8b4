//! The delta of a composed loss at every epsilon.

use crate::error::Result;
use crate::memory::zeros;

/// The curve of a discrete loss on an equally spaced grid.
pub struct Curve {
    /// The first grid point.
    pub start: f64,
    /// The distance of grid points.
    pub width: f64,
    /// The hockey-stick divergence at each grid point, of the losses within the grid.
    pub deltas: Vec<f64>,
    /// What to add for losses above the grid and infinite ones.
    pub beyond: f64,
    /// The error of the transforms.
    pub error: TransformError,
}

/// How far the masses of the tilted law may be off, and what tilting back makes of it.
pub struct TransformError {
    /// A bound on the 2-norm of the error.
    pub norm: f64,
    /// The order of the tilt.
    pub order: f64,
    /// ln of the moment of that order.
    pub log_moment: f64,
}

/// Points whose weights follow from one another.
const BLOCK: usize = 64;

/// The recurrence of [`Curve::new`] and what follows round each of up to 2^21 sums a few times, and exponents of up to
/// 2^19 once or twice.
const MARGIN: f64 = 1.0 / (1u64 << 29) as f64;

impl TransformError {
    /// A bound on what the error adds to or takes from delta.
    ///
    /// By Cauchy's inequality it is at most its norm times that of the weights e^(-order x) (1 - e^(epsilon - x))^+
    /// over the grid, the sum of whose squares is at most their integral plus their greatest.
    pub fn at(&self, epsilon: f64, width: f64, points: usize) -> f64 {
        let s = self.order;
        let squares = 1.0 / (width * s * (2.0 * s + 1.0) * (2.0 * s + 2.0)) + 1.0 / (s + 1.0).powi(2);
        self.norm * (self.log_moment - s * epsilon).exp() * squares.min(points as f64).sqrt()
    }
}

impl Curve {
    /// The curve of masses under the tilted law, given in two parts from the first loss up.
    ///
    /// The divergence at a grid point is a mean of that at the next one and of the mass above, with weights e^-width
    /// and 1 - e^-width: all terms are positive, so that nothing cancels. No probability exceeds 1, whatever a mass far
    /// below the tilt overflows to; a mass that is no number counts as 1.
    pub fn new(start: f64, width: f64, tilted: [&[f64]; 2], error: TransformError) -> Result<Curve> {
        let (keep, gain) = ((-width).exp(), -(-width).exp_m1());
        let ratio = (-error.order * width).exp();
        let (mut above, mut delta) = (0.0, 0.0);
        let mut deltas = zeros(Some(tilted[0].len() + tilted[1].len()))?;
        let mut untilted = [0.0; BLOCK];
        let mut end = deltas.len();
        for part in tilted.iter().rev() {
            for masses in part.rchunks(BLOCK) {
                end -= masses.len();
                // From the lowest point up, where weights are large: what overflows or underflows there says no less.
                let mut weight = (error.log_moment - error.order * (start + end as f64 * width)).exp();
                for (mass, untilted) in masses.iter().zip(&mut untilted) {
                    // A negative mass is an error of the transforms; 0 is nearer to the truth.
                    *untilted = if *mass <= 0.0 { 0.0 } else { mass * weight };
                    weight *= ratio;
                }
                for (mass, shown) in untilted.iter().zip(&mut deltas[end..][..masses.len()]).rev() {
                    delta = (keep * delta + gain * above).min(1.0);
                    above = (above + mass).min(1.0);
                    *shown = delta;
                }
            }
        }
        Ok(Curve { start, width, deltas, beyond: 0.0, error })
    }

    /// The delta at an epsilon between the grid point `low` and the next one, rounded up.
    ///
    /// Between grid points the divergence is linear in e^epsilon; `part` says how far, from 0 to 1.
    fn upper(&self, low: usize, part: f64) -> f64 {
        let next = self.deltas.get(low + 1).copied().unwrap_or(0.0);
        let between = self.deltas[low] * (1.0 - part) + next * part;
        let error = self.error.at(self.point(low), self.width, self.deltas.len());
        (between + error) * (1.0 + MARGIN) + self.beyond
    }

    fn point(&self, i: usize) -> f64 {
        self.start + i as f64 * self.width
    }

    /// How fast ln(delta) falls at epsilon; not at all where nothing is left.
    pub fn slope(&self, epsilon: f64) -> f64 {
        let low = self.below(epsilon).min(self.deltas.len() - 2);
        let (here, next) = (self.deltas[low], self.deltas[low + 1]);
        if here > 0.0 { (here / next).ln() / self.width } else { 0.0 }
    }

    /// The last grid point that is not above epsilon, the first where there is none.
    fn below(&self, epsilon: f64) -> usize {
        (((epsilon - self.start) / self.width).max(0.0) as usize).min(self.deltas.len() - 1)
    }

    /// The delta at epsilon, rounded up; 1 below the grid, which says nothing of it.
    pub fn delta(&self, epsilon: f64) -> f64 {
        let low = self.below(epsilon);
        let part = (epsilon - self.point(low)).exp_m1() / self.width.exp_m1();
        let shown = self.upper(low, part.clamp(0.0, 1.0));
        if epsilon >= self.start && shown <= 1.0 { shown } else { 1.0 }
    }

    /// The least epsilon on the grid's range with this delta, rounded up; None if it is beyond the grid.
    pub fn epsilon(&self, delta: f64) -> Option<f64> {
        let holds = |low: usize, part: f64| self.upper(low, part) <= delta;
        let (mut low, mut high) = (0, self.deltas.len() - 1);
        if !holds(high, 0.0) {
            return None;
        }
        if holds(low, 0.0) {
            return Some(self.start);
        }
        while high - low > 1 {
            let middle = usize::midpoint(low, high);
            if holds(middle, 0.0) { high = middle } else { low = middle }
        }
        let part = super::boundary(1.0, 0.0, |part| holds(low, part));
        // Where the error of the transforms, taken at the lower point, leaves no room, the upper point does.
        let part = if holds(low, part) { part } else { 1.0 };
        Some(self.point(low) + (part * self.width.exp_m1()).ln_1p().min(self.width))
    }
}
