//! What is composed: mechanisms by the worst pair of output distributions on neighboring data sets.

use super::U;
use super::bounded_range::worst_losses;
use super::concentrated::worst;
use super::counts::binomial;
use super::law::{CHUNK, Law};
use super::normal::tail;
use super::pair::{Atom, Component, Grain, MOST_LOSS, Pair};
use super::sampled_sum::SampledSum;
use super::shuffled::Shuffled;
use crate::error::{Error, Result};
use crate::params::{Epsilon, count, fraction, positive, share};
use crate::run::Run;

/// A mechanism, described by its guarantee when one record changes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Base {
    /// The mechanism is pure epsilon-DP, for the epsilon given; the worst case is randomized response.
    Pure(f64),
    /// The log-ratios of the probabilities lie within an interval of length epsilon, the number given: the exact
    /// exponential mechanism.
    BoundedRange(f64),
    /// Runs of mechanisms of bounded range that may be chosen adaptively, given by the epsilon of each and by how many
    /// they are, from 1 to 512.
    BoundedRanges(f64, u64),
    /// Gaussian noise of standard deviation sigma, given by mu = sensitivity / sigma.
    Gaussian(f64),
    /// Continuous Laplace noise, given by epsilon = sensitivity / scale.
    Laplace(f64),
    /// Integer-valued Laplace noise on a statistic of integer sensitivity, given by epsilon = sensitivity / scale and
    /// the sensitivity, from 1 to 4096.
    DiscreteLaplace(f64, u64),
    /// The mechanism is (epsilon, delta)-DP, for the two numbers given; the worst case is randomized response that with
    /// probability delta reveals everything.
    Approximate(f64, f64),
    /// The mechanism is known only to be rho-zCDP, for the rho given; when b of its records change, it is b^2 rho-zCDP.
    Concentrated(f64),
    /// A sum with Gaussian noise over draws whose number has a Poisson law, given by the largest norm of a record's part /
    /// standard deviation, and by how often a record is drawn on average. It is a round by itself: one draw at rate 1.
    SampledSum(f64, f64),
    /// Reports of people that a shuffler mixes, each pure epsilon-DP: given by epsilon, the number of people, and the number
    /// of categories where the randomizer answers with the true one or else with any other (0 for any randomizer). It is a
    /// round by itself: one draw at rate 1.
    Shuffled(f64, u64, u64),
}

/// A mechanism, possibly on a subsample: `base` runs on `draws` records drawn with replacement. When one record is
/// replaced, each draw changes with probability at most `rate`. One draw at rate 1 is `base` itself.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mechanism {
    /// The mechanism that runs on the sample.
    pub base: Base,
    /// The number of draws in the sample.
    pub draws: u64,
    /// The largest probability of any record in one draw, in [0, 1].
    pub rate: f64,
}

/// A mechanism and the number of times it runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Term {
    /// The mechanism that runs.
    pub mechanism: Mechanism,
    /// How often it runs, from 1 to 2^53.
    pub rounds: u64,
}

/// More atoms than a multiple of this are not worth a better curve than the pure one.
const MOST_SENSITIVITY: f64 = 4096.0;

/// More runs of bounded range in one block take more than the steps of its grid.
const MOST_RUNS: u64 = 512;

/// More draws that change on average would take minutes to add up, and leave no privacy to speak of.
const MOST_CHANGES: f64 = 1e4;
/// A rate of changes that counts as this, if it is smaller: the terms of a changed record would be lost beside the others.
const LEAST_CHANGES: f64 = 1e-20;

/// The same for an epsilon of shuffled reports, whose curve is formed from differences of probabilities.
const LEAST_SHUFFLED: f64 = 1e-9;

/// Losses and rates below it count as large as it: their squares, and shares of them, would not be told from 0.
const LEAST: f64 = 1e-100;

/// Standard deviations after which a Gaussian loss counts as infinite; the tail is below 1e-57.
const FARTHEST: f64 = 16.0;

/// The losses at which a law has its masses.
pub enum LossGrid {
    /// Those of the mechanism's own grid.
    Natural(Grain),
    /// These, ascending from 0; the last is exceeded with at most the probability that comes with them.
    At(Vec<f64>, f64),
}

impl Base {
    /// Checks the parameters, and raises those that floats could not square.
    fn checked(self) -> Result<Base> {
        match self {
            Base::Gaussian(mu) => {
                positive("mu", mu)?;
            }
            Base::Concentrated(rho) => {
                positive("rho", rho)?;
            }
            Base::Pure(epsilon) | Base::BoundedRange(epsilon) | Base::Laplace(epsilon) => {
                Epsilon::new(epsilon)?;
            }
            Base::DiscreteLaplace(epsilon, sensitivity) => {
                Epsilon::new(epsilon)?;
                if !(1.0..=MOST_SENSITIVITY).contains(&(sensitivity as f64)) {
                    let rule = "it must be an integer from 1 to 4096; Pure covers any other";
                    return Err(Error::parameter("sensitivity", sensitivity, rule));
                }
            }
            Base::BoundedRanges(epsilon, runs) => {
                Epsilon::new(epsilon)?;
                count("runs", runs, MOST_RUNS)?;
            }
            Base::Shuffled(epsilon, people, categories) => {
                positive("local_epsilon", epsilon)?;
                count("n", people, 1 << 53)?;
                if categories == 1 {
                    return Err(Error::parameter("categories", categories, "it must be an integer of at least 2"));
                }
            }
            Base::Approximate(epsilon, delta) => {
                Epsilon::new(epsilon)?;
                fraction("delta", delta, 1.0)?;
            }
            Base::SampledSum(mu, rate) => {
                positive("mu", mu)?;
                if !(rate > 0.0 && rate <= MOST_CHANGES) {
                    return Err(Error::parameter("rate", rate, "it must lie in (0, 10000]"));
                }
            }
        }
        Ok(self.raised())
    }

    /// A mechanism that is at most as private: every guarantee gets weaker as its parameter grows.
    fn raised(self) -> Base {
        match self {
            Base::Pure(epsilon) => Base::Pure(epsilon.max(LEAST)),
            Base::BoundedRange(epsilon) => Base::BoundedRange(epsilon.max(LEAST)),
            Base::BoundedRanges(epsilon, runs) => Base::BoundedRanges(epsilon.max(LEAST), runs),
            Base::Gaussian(mu) => Base::Gaussian(mu.max(LEAST)),
            Base::Laplace(epsilon) => Base::Laplace(epsilon.max(LEAST)),
            Base::DiscreteLaplace(epsilon, sensitivity) => Base::DiscreteLaplace(epsilon.max(LEAST), sensitivity),
            Base::Approximate(epsilon, delta) => Base::Approximate(epsilon.max(LEAST), delta),
            Base::Concentrated(rho) => Base::Concentrated(rho.max(LEAST)),
            Base::SampledSum(mu, rate) => Base::SampledSum(mu.max(LEAST), rate.max(LEAST_CHANGES)),
            Base::Shuffled(epsilon, people, categories) => {
                Base::Shuffled(epsilon.max(LEAST_SHUFFLED), people, categories)
            }
        }
    }

    /// Adds to `pair` what the base says when `size` of its records are changed, at the given weight.
    ///
    /// Densities and atoms are those of the loss under sqrt(P Q), which do not depend on the sign of the loss.
    fn add(self, pair: &mut Pair, size: f64, weight: f64) {
        let share = weight / pair.eta;
        let (loss, lost) = match self {
            Base::Gaussian(mu) => {
                let spread = size * mu;
                (spread * (FARTHEST + spread / 2.0), tail(FARTHEST))
            }
            Base::Concentrated(rho) => {
                let spread = size * (2.0 * rho).sqrt();
                (spread * (FARTHEST + spread / 2.0), 0.0)
            }
            Base::Approximate(epsilon, delta) => {
                let growth = (size * epsilon).exp_m1() / epsilon.exp_m1();
                (size * epsilon, if growth.is_finite() { (delta * growth * (1.0 + 1e-13)).min(1.0) } else { 1.0 })
            }
            Base::BoundedRanges(epsilon, runs) => (size * epsilon * runs as f64, 0.0),
            Base::Pure(epsilon)
            | Base::BoundedRange(epsilon)
            | Base::Laplace(epsilon)
            | Base::DiscreteLaplace(epsilon, _) => (size * epsilon, 0.0),
            Base::Shuffled(epsilon, ..) => (size * epsilon, 0.0),
            // It has a pair of its own; as a base of others nothing is known of it.
            Base::SampledSum(..) => (f64::INFINITY, 1.0),
        };
        if loss > MOST_LOSS {
            pair.infinity += weight;
            return;
        }
        pair.infinity += weight * lost;
        let half = (loss / 2.0).exp();
        let mut atom = |loss: f64, mass: f64| pair.atoms.push(Atom { loss, mass: share * mass });
        match self {
            Base::Pure(_) | Base::Approximate(..) => atom(loss, (1.0 - lost) / (half + half.recip())),
            Base::BoundedRange(_) => {
                let height = share / (4.0 * (loss / 2.0).sinh());
                pair.components.push(Component { reach: loss, height, curvature: 0.0 });
            }
            Base::BoundedRanges(epsilon, runs) => {
                let losses = worst_losses(size * epsilon, runs);
                losses.into_iter().for_each(|(loss, mass)| atom(loss, mass * (-loss / 2.0).exp()));
            }
            Base::Gaussian(mu) => {
                let variance = (size * mu).powi(2);
                let height = share * (-variance / 8.0).exp() / (2.0 * std::f64::consts::PI * variance).sqrt();
                pair.components.push(Component { reach: loss, height, curvature: 1.0 / (2.0 * variance) });
            }
            Base::Laplace(_) => {
                atom(loss, half.recip() / 2.0);
                pair.components.push(Component { reach: loss, height: share / (4.0 * half), curvature: 0.0 });
            }
            Base::DiscreteLaplace(_, sensitivity) => {
                let steps = size * sensitivity as f64;
                let decay = (-loss / steps).exp();
                atom(loss, half.recip() / (1.0 + decay));
                let inner = (-(-loss / steps).exp_m1()) / (1.0 + decay) / half;
                // Losses at or below 0 follow by symmetry.
                (1..)
                    .map(|k| loss * (1.0 - 2.0 * f64::from(k) / steps))
                    .take_while(|&loss| loss > 0.0)
                    .for_each(|loss| atom(loss, inner));
            }
            Base::Concentrated(rho) => {
                let worst = worst(size * size * rho);
                pair.infinity += weight * worst.infinity;
                worst.atoms.iter().for_each(|&(loss, mass)| atom(loss, mass * (-loss / 2.0).exp()));
            }
            // Of several changed reports nothing is known but that each is pure.
            Base::Shuffled(..) if size > 1.0 => atom(loss, 1.0 / (half + half.recip())),
            Base::Shuffled(epsilon, people, categories) => {
                let atoms = Shuffled::new(epsilon, people, categories).atoms();
                atoms.into_iter().for_each(|(loss, mass)| atom(loss, mass * (-loss / 2.0).exp()));
            }
            Base::SampledSum(..) => {}
        }
    }

    /// The scale on which the law of a single changed record varies; None where it has a few atoms and no density.
    fn scale(self) -> Option<f64> {
        match self {
            Base::Gaussian(mu) => Some(mu),
            Base::Concentrated(rho) => Some((2.0 * rho).sqrt()),
            Base::BoundedRange(epsilon) | Base::Laplace(epsilon) => Some(epsilon),
            Base::Pure(_)
            | Base::DiscreteLaplace(..)
            | Base::Approximate(..)
            | Base::BoundedRanges(..)
            | Base::Shuffled(..)
            | Base::SampledSum(..) => None,
        }
    }
}

impl Mechanism {
    /// Refuses parameters out of range, and raises those that are so small that floats could not square them.
    pub fn checked(self) -> Result<Mechanism> {
        let Mechanism { base, draws, rate } = self;
        let raised = base.checked()?;
        count("draws", draws, 1 << 53)?;
        share("rate", rate)?;
        let changes = if rate < 1.0 { draws as f64 * rate } else { 1.0 };
        if changes > MOST_CHANGES {
            return Err(Error::parameter("draws * rate", changes, "it must be at most 10,000 below rate 1"));
        }
        if let Base::DiscreteLaplace(_, sensitivity) = base {
            let atoms = sensitivity as f64 * (draws as f64 * rate).max(1.0);
            let rule = "it must be at most 4096; Pure covers any other";
            if atoms > MOST_SENSITIVITY {
                return Err(Error::parameter("sensitivity * draws * rate", atoms, rule));
            }
        }
        Ok(Mechanism { base: raised, draws, rate: rate.max(LEAST) })
    }

    /// The most draws at this rate that [`Mechanism::checked`] takes, apart from rounding.
    pub fn most_draws(&self) -> f64 {
        let draws = (1u64 << 53) as f64;
        let changes = if self.rate < 1.0 { MOST_CHANGES / self.rate } else { draws };
        let atoms = match self.base {
            Base::DiscreteLaplace(_, sensitivity) => MOST_SENSITIVITY / (sensitivity as f64 * self.rate),
            _ => draws,
        };
        (draws.min(changes).min(atoms) * (1.0 - 8.0 * U)).floor().max(1.0)
    }

    /// The largest rate with so many draws that [`Mechanism::checked`] takes, apart from rounding, but for 1 itself.
    pub fn most_rate(&self) -> f64 {
        let draws = self.draws as f64;
        let atoms = match self.base {
            Base::DiscreteLaplace(_, sensitivity) => MOST_SENSITIVITY / (sensitivity as f64 * draws),
            _ => MOST_CHANGES / draws,
        };
        ((MOST_CHANGES / draws).min(atoms) * (1.0 - 8.0 * U)).min(1.0)
    }

    /// The rho of a mechanism that is rho-zCDP as a whole.
    pub fn concentrated(&self) -> Option<f64> {
        let draws = self.draws as f64;
        match self.base {
            Base::Gaussian(mu) if self.rate >= 1.0 => Some((draws * mu).powi(2) / 2.0 * (1.0 + 8.0 * U)),
            Base::Concentrated(rho) if self.rate >= 1.0 => Some(draws * draws * rho * (1.0 + 8.0 * U)),
            _ => None,
        }
    }

    /// The dominating law on a grid: at the losses of a round, up to what is exceeded with probability at most `beyond`, or
    /// on the mechanism's own grid, which is dense enough for moments. It leaves out what `Mechanism::pair` does.
    pub fn law(&self, negligible: f64, grid: LossGrid, run: Run<'_>) -> Result<Law> {
        if let Base::SampledSum(mu, rate) = self.base {
            return sum_law(&SampledSum::new(mu, rate, negligible), grid, run);
        }
        let pair = self.pair(negligible);
        match grid {
            LossGrid::Natural(grain) => {
                let base = pair.natural_grid(grain);
                let round = base.iter().map(|&loss| pair.round_loss(loss)).collect();
                Law::new(&pair, &base, round, 0.0, run)
            }
            LossGrid::At(round, beyond) => {
                let base: Vec<f64> = round.iter().map(|&loss| pair.base_loss(loss)).collect();
                Law::new(&pair, &base, round, beyond, run)
            }
        }
    }

    /// The dominating pair, apart from events of probability at most about `negligible`, which count as an infinite
    /// loss.
    ///
    /// Advanced joint convexity: with eta the probability that any draw changes, the curve of the round at e', where
    /// e^e' = 1 + eta (e^e - 1), is the mean over the number of changed draws of the base's curves at e. In terms of
    /// masses: the loss e of the base under Q, given at least one change, moves to e'.
    fn pair(&self, negligible: f64) -> Pair {
        let Mechanism { base, draws, rate } = *self;
        let eta = if rate >= 1.0 { 1.0 } else { -(draws as f64 * (-rate).ln_1p()).exp_m1() };
        let changed = binomial(draws, rate, negligible);
        let mut pair = Pair::new(eta, changed.rest);
        for (size, &weight) in (changed.first..).zip(&changed.weights).filter(|&(size, _)| size > 0) {
            base.add(&mut pair, size as f64, weight);
        }
        let least = changed.first.max(1) as f64;
        pair.scale = base.scale().map(|scale| scale * least);
        pair.sort();
        pair
    }
}

/// The law of a noisy sum on a grid.
fn sum_law(sum: &SampledSum, grid: LossGrid, run: Run<'_>) -> Result<Law> {
    match grid {
        LossGrid::Natural(grain) => {
            let places = sum.natural_grid(grain);
            let losses = sum.losses(&places);
            Law::of_sum(sum, &places, losses, run)
        }
        LossGrid::At(losses, _) => {
            let mut places = vec![0.0; losses.len()];
            run.try_for_each_chunk(&mut places, CHUNK, |chunk, places| {
                sum.places(&losses[chunk * CHUNK..], places);
                Ok(())
            })?;
            Law::of_sum(sum, &places, losses, run)
        }
    }
}
