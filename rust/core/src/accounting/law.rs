//! A discrete law of the privacy loss that dominates a pair: the dots of its curve, connected.

use super::U;
use super::cell::{Cell, MARGIN};
use super::pair::Pair;
use super::sampled_sum::SampledSum;
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

/// Below it twice an exponent is one, too, of a number that a float holds.
const LEAST_EXPONENT: f64 = 340.0;

/// Losses whose factors are computed together.
const BLOCK: usize = 128;

/// Cells that one thread takes at a time.
pub const CHUNK: usize = 1 << 8;

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
        Ok(Law::of_parts(parts, round, pair.infinity + beyond, run))
    }

    /// The law of a noisy sum on grid points at these places, whose losses ascend from 0. What lies beyond the last becomes
    /// an infinite loss.
    pub fn of_sum(sum: &SampledSum, places: &[f64], losses: Vec<f64>, run: Run<'_>) -> Result<Law> {
        let mut parts = vec![[0.0; 2]; places.len() - 1];
        run.try_for_each_chunk(&mut parts, CHUNK, |chunk, parts| {
            let first = chunk * CHUNK;
            sum.integrate(&places[first..], &losses[first..], parts);
            Ok(())
        })?;
        let infinity = places.last().map_or(1.0, |&last| sum.infinity(last));
        Ok(Law::of_parts(parts, losses, infinity, run))
    }

    /// The law with what each cell puts on its two ends.
    fn of_parts(parts: Vec<[f64; 2]>, losses: Vec<f64>, infinity: f64, run: Run<'_>) -> Law {
        let mut masses = vec![0.0; losses.len()];
        for (i, [low, high]) in parts.into_iter().enumerate() {
            masses[i] += low * (1.0 + MARGIN);
            masses[i + 1] += high * (1.0 + MARGIN);
        }
        let mut law = Law { losses, masses, infinity: infinity.min(1.0), isa: run.isa };
        law.complete();
        law
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_end_is_dropped() {
        let parts = vec![[0.1, 0.2], [0.0, 0.0], [0.0, 0.0]];
        let law = Law::of_parts(parts, vec![0.0, 1.0, 2.0, 3.0], 0.0, Run::alone(Isa::Portable));
        assert_eq!((law.losses.as_slice(), law.masses.len()), ([0.0, 1.0].as_slice(), 2));
    }
}
