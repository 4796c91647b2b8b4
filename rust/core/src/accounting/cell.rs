//! Cells between neighboring losses, and how the mass in one is split between its ends.

use super::pair::{Densities, density};

/// Every mass is raised by this part of itself. It covers the quadrature's error (below 1e-13 by the remainder of
/// Gauss's rule on panels as narrow as [`Component::panel`](super::pair::Component::panel) asks), the rounding of exponents up to 1200 (below 3e-13), the
/// few dozen operations a mass takes, and those by which it is tilted later.
pub const MARGIN: f64 = 1.0 / (1u64 << 39) as f64;

/// Nodes and weights of Gauss's rule on [0, 1].
const NODES: [(f64, f64); 5] = [
    (0.046_910_077_030_668_004, 0.118_463_442_528_094_54),
    (0.230_765_344_947_158_46, 0.239_314_335_249_683_24),
    (0.5, 0.284_444_444_444_444_44),
    (0.769_234_655_052_841_5, 0.239_314_335_249_683_24),
    (0.953_089_922_969_332, 0.118_463_442_528_094_54),
];

/// The same of three nodes, which are enough for panels that are as much narrower.
const FEW_NODES: [(f64, f64); 3] = [
    (0.112_701_665_379_258_31, 0.277_777_777_777_777_8),
    (0.5, 0.444_444_444_444_444_4),
    (0.887_298_334_620_741_7, 0.277_777_777_777_777_8),
];
const NARROWER: f64 = 12.0;

/// 1 / (k + 1)!, and up to where so many terms give all digits.
const SERIES: [f64; 8] = [1.0, 1.0 / 2.0, 1.0 / 6.0, 1.0 / 24.0, 1.0 / 120.0, 1.0 / 720.0, 1.0 / 5040.0, 1.0 / 40320.0];
const SHORT: f64 = 1.0 / 16.0;

/// Gauss's rule on a panel of this width, where `panel` is the widest for which five nodes are enough.
pub fn nodes(width: f64, panel: f64) -> &'static [(f64, f64)] {
    if NARROWER * width <= panel { &FEW_NODES } else { &NODES }
}

/// A cell between neighboring grid points.
pub struct Cell {
    /// Its ends in the coordinate of the base.
    base: [f64; 2],
    /// From a mass under sqrt(P Q) of the base at the lower end to that of the round at either end.
    factors: [f64; 2],
    /// e^(the cell's width in the coordinate of the base) - 1.
    growth: f64,
}

impl Cell {
    /// The cell between two losses of the base and those of the round.
    pub fn new(base: [f64; 2], round: [f64; 2]) -> Cell {
        let factors = round.map(|round| ((round - base[0]) / 2.0).exp());
        Cell { base, factors, growth: exp_m1(base[1] - base[0]) }
    }

    /// What the densities put on the two ends.
    pub fn integrate(&self, densities: &Densities) -> [f64; 2] {
        let mut ends = [0.0; 2];
        let [mut start, stop] = self.base;
        while start < stop {
            let components = densities.beyond(start);
            let Some(component) = components.first() else { break };
            let panel = component.panel();
            let end = stop.min(component.reach).min(start + panel);
            let width = end - start;
            for (at, weight) in nodes(width, panel) {
                let loss = start + at * width;
                self.add(&mut ends, loss, weight * width * (densities.rest + density(components, loss)));
            }
            start = end;
        }
        ends
    }

    /// Splits a mass at a loss of the base between the ends.
    pub fn add(&self, ends: &mut [f64; 2], loss: f64, mass: f64) {
        let [low, high] = self.base;
        // (e^loss - e^low) / (e^high - e^low), from half of the distance, whose exponential is the next factor.
        let half = exp_m1((loss - low) / 2.0);
        let upper = if self.growth < f64::MAX {
            half * (2.0 + half) / self.growth
        } else {
            (loss - high).exp() * (low - loss).exp_m1() / (low - high).exp_m1()
        };
        let (upper, shrunk) = (upper.min(1.0), (1.0 + half).recip());
        // From sqrt(P Q) of the base to Q, which the split keeps, and on to sqrt(P Q) of the round at either end. A mass
        // that is almost too small for a float grows first.
        ends[0] += mass * self.factors[0] * shrunk * (1.0 - upper);
        ends[1] += mass * self.factors[1] * shrunk * upper;
    }
}

/// e^x - 1, by its series where that is short.
#[inline(always)]
fn exp_m1(x: f64) -> f64 {
    if x.abs() > SHORT {
        return x.exp_m1();
    }
    let square = x * x;
    let pair = |k: usize| SERIES[k] + SERIES[k + 1] * x;
    x * (pair(0) + square * (pair(2) + square * (pair(4) + square * pair(6))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_exponentials_are_right_to_the_last_digits() {
        for step in -4000..=4000 {
            let x = f64::from(step) / 64000.0 + 1e-9;
            assert!((exp_m1(x) / x.exp_m1() - 1.0).abs() < 1e-15, "{x}");
        }
        assert_eq!([exp_m1(0.0), exp_m1(f64::INFINITY)], [0.0, f64::INFINITY]);
    }

    #[test]
    fn a_mass_on_an_end_of_a_cell_stays_there() {
        for high in [1e-3, 1.0, 30.0, 800.0] {
            let cell = Cell::new([0.0, high], [0.0, high]);
            let split = |loss: f64| {
                let mut ends = [0.0; 2];
                cell.add(&mut ends, loss, 1.0);
                ends
            };
            assert_eq!(split(0.0), [1.0, 0.0], "{high}");
            let [low, top] = split(high);
            assert!(low.abs() < 1e-12 && (top - 1.0).abs() < 1e-12, "{high}: {low} {top}");
        }
    }
}
