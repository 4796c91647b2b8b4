//! A discrete law of the privacy loss that dominates a pair: the dots of its curve, connected.

use super::U;
use super::pair::{Densities, Pair, density};
use crate::error::Result;
use crate::run::Run;
use crate::simd::{Isa, exponentials};

/// Symmetric masses at losses 0 = x_0 < x_1 < ..., and at their opposites, under sqrt(P Q).
///
/// The mass of x under P is e^(x/2) times that, and that of -x is e^(-x/2) times it.
#[derive(Clone)]
pub struct Law {
    /// Losses, from 0 up.
    pub losses: Vec<f64>,
    /// Mass of the loss and, again, of its opposite; that of 0 stands for itself alone.
    pub masses: Vec<f64>,
    /// The probability of an infinite loss under P.
    pub infinity: f64,
    /// By which instructions its moments are taken.
    isa: Isa,
}

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

/// Below it twice an exponent is one, too, of a number that a float holds.
const LEAST_EXPONENT: f64 = 340.0;

/// 1 / (k + 1)!, and up to where so many terms give all digits.
const SERIES: [f64; 8] = [1.0, 1.0 / 2.0, 1.0 / 6.0, 1.0 / 24.0, 1.0 / 120.0, 1.0 / 720.0, 1.0 / 5040.0, 1.0 / 40320.0];
const SHORT: f64 = 1.0 / 16.0;

/// Losses whose factors are computed together.
const BLOCK: usize = 128;

/// Cells that one thread takes at a time.
const CHUNK: usize = 1 << 8;

/// A cell between neighboring grid points.
struct Cell {
    /// Its ends in the coordinate of the base.
    base: [f64; 2],
    /// From a mass under sqrt(P Q) of the base at the lower end to that of the round at either end.
    factors: [f64; 2],
    /// e^(the cell's width in the coordinate of the base) - 1.
    growth: f64,
}

impl Law {
    /// The law on grid points at the losses `base` of the base, `round` of the round, both ascending from 0. What lies
    /// beyond the last is left out: it has probability at most `beyond` under P, and becomes an infinite loss.
    ///
    /// Both masses of what lies in a cell, under P and under Q, are kept by splitting it between the cell's ends
    /// linearly in e^loss: the curve then connects its own dots at the grid points and dominates the pair in between.
    pub fn new(pair: &Pair, base: &[f64], round: Vec<f64>, beyond: f64, run: Run<'_>) -> Result<Law> {
        let cell = |i: usize| Cell::new([base[i], base[i + 1]], [round[i], round[i + 1]]);
        let mut parts = vec![[0.0; 2]; base.len() - 1];
        run.try_for_each_chunk(&mut parts, CHUNK, |chunk, parts| {
            let first = chunk * CHUNK;
            let densities = pair.between(base[first], base[first + parts.len()]);
            parts.iter_mut().enumerate().for_each(|(i, part)| *part = cell(first + i).integrate(&densities));
            Ok(())
        })?;
        for atom in &pair.atoms {
            // An atom on a grid point belongs to the cell below it.
            let above = base.partition_point(|&point| point < atom.loss);
            if (1..base.len()).contains(&above) {
                cell(above - 1).add(&mut parts[above - 1], atom.loss, atom.mass);
            }
        }
        let mut masses = vec![0.0; base.len()];
        for (i, [low, high]) in parts.into_iter().enumerate() {
            masses[i] += low * (1.0 + MARGIN);
            masses[i + 1] += high * (1.0 + MARGIN);
        }
        let mut law = Law { losses: round, masses, infinity: (pair.infinity + beyond).min(1.0), isa: run.isa };
        law.complete();
        Ok(law)
    }

    /// Gives what is left of P to the loss 0, and drops an empty end.
    fn complete(&mut self) {
        // The first cell and its mirror image both end at 0.
        self.masses[0] *= 2.0;
        let mut elsewhere = 0.0;
        for rate in [0.5, -0.5] {
            self.tilted(rate, 0.0, |_, mass, factor| elsewhere += mass * factor);
        }
        // The masses above are too large by at most twice their margin; the sum's rounding is far below it.
        self.masses[0] += (1.0 - self.infinity - elsewhere - self.masses[0]).max(0.0) + 4.0 * MARGIN;
        let length = self.masses.iter().rposition(|&mass| mass > 0.0).map_or(1, |last| last + 1);
        self.masses.truncate(length);
        self.losses.truncate(length);
        if !(elsewhere.is_finite() && self.infinity >= 0.0) {
            // What is no number says nothing of privacy.
            (self.losses, self.masses, self.infinity) = (vec![0.0], vec![1.0], 1.0);
        }
    }

    /// The largest finite loss.
    pub fn largest(&self) -> f64 {
        self.losses.last().copied().unwrap_or(0.0)
    }

    /// ln of the mean of e^(order * loss) under P, infinite losses left out. The order is that of Renyi minus 1.
    pub fn log_moment(&self, order: f64) -> f64 {
        let rate = (order + 0.5).abs();
        let shift = rate * self.largest();
        let mirrored = self.losses.iter().zip(&self.masses).skip(1);
        let sum: f64 = if shift < LEAST_EXPONENT {
            let least = (-2.0 * shift).exp();
            let mut sum = 0.0;
            self.tilted(rate, -shift, |_, mass, upper| sum += mass * (upper + least / upper));
            sum
        } else {
            mirrored.map(|(loss, mass)| mass * ((rate * loss - shift).exp() + (-rate * loss - shift).exp())).sum()
        };
        (sum + self.masses[0] * (-shift).exp()).ln() + shift
    }

    /// Calls `act` with every loss above 0, from the lowest up, its mass, and e^(rate * loss + constant); where there is no
    /// mass with 1 in place of that, which may be infinite.
    #[inline(always)]
    fn tilted(&self, rate: f64, constant: f64, mut act: impl FnMut(f64, f64, f64)) {
        let mut factors = [0.0; BLOCK];
        for (losses, masses) in self.losses[1..].chunks(BLOCK).zip(self.masses[1..].chunks(BLOCK)) {
            let factors = &mut factors[..losses.len()];
            factors.iter_mut().zip(losses).for_each(|(factor, loss)| *factor = rate * loss + constant);
            exponentials(self.isa, factors);
            for ((loss, mass), factor) in losses.iter().zip(masses).zip(factors) {
                act(*loss, *mass, if *mass == 0.0 { 1.0 } else { *factor });
            }
        }
    }

    /// The probability, under the law tilted by e^(order * loss), that the loss is not 0; a loss x that is small beside
    /// a grid's width counts for 6 x / width of itself, as rounding it to the grid seldom moves it.
    pub fn moved(&self, order: f64, width: f64) -> f64 {
        let (rate, log_moment) = (order + 0.5, self.log_moment(order));
        let mut sum = 0.0;
        for rate in [rate, -rate] {
            self.tilted(rate, -log_moment, |loss, mass, factor| sum += mass * factor * (6.0 * loss / width).min(1.0));
        }
        sum.min(1.0)
    }

    /// About the 2-norm of the masses tilted by e^(order * loss) on a grid, that at 0 left out.
    pub fn norm_beside_zero(&self, order: f64, width: f64) -> f64 {
        let (rate, log_moment) = (order + 0.5, self.log_moment(order));
        let (mut squares, mut sum, mut cell) = (0.0, 0.0, 0.0);
        self.tilted(rate, -log_moment, |loss, mass, factor| {
            let place = (loss / width).floor().max(1.0);
            if place > cell {
                (squares, sum, cell) = (squares + sum * sum, 0.0, place);
            }
            sum += mass * factor * (loss / width).min(1.0);
        });
        // Opposite losses have at most as much.
        (2.0 * (squares + sum * sum)).sqrt()
    }

    /// The masses under P tilted by e^(order * loss), their sum 1, on a cycle of equally spaced grid points.
    ///
    /// Exponents beyond those that the masses' own margin allows for raise them once more, and their sum by as much (in
    /// logarithms) as is returned.
    pub fn tilt(&self, order: f64, cycle: &mut [f64]) -> f64 {
        let (rate, points) = (order + 0.5, cycle.len());
        let raised = 8.0 * U * rate * self.largest();
        let log_moment = self.log_moment(order) - raised;
        cycle.fill(0.0);
        cycle[0] = self.masses[0] * (-log_moment).exp();
        let mut place = 0;
        self.tilted(rate, -log_moment, |_, mass, factor| {
            place = if place + 1 == points { 0 } else { place + 1 };
            cycle[place] += mass * factor;
        });
        place = 0;
        self.tilted(-rate, -log_moment, |_, mass, factor| {
            place = if place == 0 { points - 1 } else { place - 1 };
            cycle[place] += mass * factor;
        });
        raised
    }

    /// The law in which the losses above one that is exceeded with probability at most `chance` under P are infinite.
    /// Their opposites become 0, which is less private.
    pub fn without_rare(&self, chance: f64) -> Law {
        let (mut law, _) = self.without_tail(chance);
        let dropped = self.losses.iter().zip(&self.masses).skip(law.losses.len());
        let opposites: f64 = dropped.map(|(loss, mass)| mass * (-loss / 2.0).exp()).sum();
        law.masses[0] += opposites * (1.0 + MARGIN);
        law
    }

    /// The law without the losses above one that is exceeded with probability at most `chance` under P, and a bound on
    /// that probability.
    pub fn without_tail(&self, chance: f64) -> (Law, f64) {
        let (mut kept, mut beyond) = (self.losses.len(), 0.0);
        while kept > 1 {
            // The cell above this point gave it a part of its own mass.
            let more = beyond + self.masses[kept - 1] * (self.losses[kept - 1] / 2.0).exp();
            if more <= chance { (kept, beyond) = (kept - 1, more) } else { break }
        }
        // The cell below the first point left out stays whole.
        let kept = (kept + 1).min(self.losses.len());
        let (losses, masses) = (self.losses[..kept].to_vec(), self.masses[..kept].to_vec());
        (Law { losses, masses, infinity: (self.infinity + beyond).min(1.0), isa: self.isa }, beyond)
    }
}

impl Cell {
    fn new(base: [f64; 2], round: [f64; 2]) -> Cell {
        let factors = round.map(|round| ((round - base[0]) / 2.0).exp());
        Cell { base, factors, growth: exp_m1(base[1] - base[0]) }
    }

    /// What the densities put on the two ends.
    fn integrate(&self, densities: &Densities) -> [f64; 2] {
        let mut ends = [0.0; 2];
        let [mut start, stop] = self.base;
        while start < stop {
            let components = densities.beyond(start);
            let Some(component) = components.first() else { break };
            let panel = component.panel();
            let end = stop.min(component.reach).min(start + panel);
            let width = end - start;
            let nodes = if NARROWER * width <= panel { &FEW_NODES[..] } else { &NODES };
            for (at, weight) in nodes {
                let loss = start + at * width;
                self.add(&mut ends, loss, weight * width * (densities.rest + density(components, loss)));
            }
            start = end;
        }
        ends
    }

    /// Splits a mass at a loss of the base between the ends.
    fn add(&self, ends: &mut [f64; 2], loss: f64, mass: f64) {
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
}
