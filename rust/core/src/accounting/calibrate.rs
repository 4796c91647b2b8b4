//! The least noise, the largest rate and the most rounds at which a privacy target is met.

use std::cell::RefCell;

use super::Accountant;
use super::compose::{Look, delta_by};
use super::crossing::{Care, Crossing, Range, TOLERANCE};
use super::mechanism::{Base, Mechanism, Term};
use super::pair::Grain;
use super::transform::Transforms;
use crate::error::Result;
use crate::run::Run;

/// What all runs together must keep, and how it is shown.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Privacy parameter, a finite number of at least 0.
    pub epsilon: f64,
    /// Privacy parameter, strictly between 0 and 1.
    pub delta: f64,
    /// How losses are added up.
    pub accountant: Accountant,
}

/// No smaller rate is looked for, and no more rounds.
const LEAST_RATE: f64 = 1e-15;
const MOST_ROUNDS: f64 = (1u64 << 40) as f64;

/// Of a delta that is a smaller part than this of the one asked for, moments say enough.
const FAR: f64 = 1e-2;

/// A search that asks for the mechanisms of one number after another.
pub struct Search {
    crossing: Crossing,
    target: Target,
    transforms: RefCell<Transforms>,
}

impl Search {
    /// The search for the boundary of a range.
    pub fn new(range: Range, target: Target, care: Care) -> Search {
        let rough = target.accountant == Accountant::Pld;
        let crossing = Crossing::new(range, target.delta, rough, care);
        Search { crossing, target, transforms: RefCell::new(Transforms::new()) }
    }

    /// The number whose mechanisms are examined next; None at the end.
    pub fn next_number(&self) -> Option<f64> {
        self.crossing.next().map(|(number, _)| number)
    }

    /// Takes the mechanisms of that number.
    pub fn examine(&mut self, terms: &[Term], run: Run<'_>) -> Result<()> {
        if let Some((_, grain)) = self.crossing.next() {
            let Target { epsilon, delta, accountant } = self.target;
            let enough = if grain == Grain::Coarse { FAR * delta } else { 0.0 };
            let look = Look { grain, enough };
            self.crossing.tell(delta_by(terms, epsilon, accountant, look, &self.transforms, run)?);
        }
        Ok(())
    }

    /// The number next to the boundary at which [`delta`](super::delta) meets the target, None where there is none; a guess
    /// where that is all that was asked for.
    pub fn boundary(&self) -> Option<f64> {
        self.crossing.boundary()
    }

    /// Examines one number after another.
    fn run(mut self, terms: impl Fn(f64) -> Term, run: Run<'_>) -> Result<Option<f64>> {
        while let Some(number) = self.next_number() {
            self.examine(&[terms(number)], run)?;
        }
        Ok(self.boundary())
    }
}

/// The least standard deviation between two bounds of Gaussian noise, for a sensitivity of 1, with which `rounds` rounds
/// on subsamples meet the target, up to a factor of 1 + 1e-5 and never below; None where the upper bound is not enough.
///
/// Cost: about ten compositions, most of them rough.
pub fn smallest_noise(
    [low, high]: [f64; 2],
    draws: u64,
    rate: f64,
    rounds: u64,
    target: Target,
    run: Run<'_>,
) -> Result<Option<f64>> {
    let mechanism = |noise: f64| Mechanism { base: Base::Gaussian(noise.recip()), draws, rate };
    Search::new(Range::of_noise(low, high), target, Care::Shown)
        .run(|noise| Term { mechanism: mechanism(noise), rounds }, run)
}

/// The largest rate at which `rounds` runs on subsamples meet the target, up to a factor of 1 + 1e-5 and never above;
/// None where it is below 1e-15. No rate is larger than a curve can be had for, see [`Mechanism::most_rate`].
///
/// Cost: as [`smallest_noise`].
pub fn largest_rate(
    base: Base,
    draws: u64,
    rounds: u64,
    target: Target,
    care: Care,
    run: Run<'_>,
) -> Result<Option<f64>> {
    // Where few draws are expected to change, curves are cheap: no large rate is tried unasked.
    let start = (0.01 / draws as f64).min(1.0);
    let high = Mechanism { base, draws, rate: 1.0 }.most_rate();
    let range = Range { start, low: LEAST_RATE, high, falling: false, whole: false, tolerance: TOLERANCE };
    let mechanism = |rate: f64| Mechanism { base, draws, rate };
    Search::new(range, target, care).run(|rate| Term { mechanism: mechanism(rate), rounds }, run)
}

/// How many draws at a rate meet the target in every one of `rounds` rounds, within a ten-thousandth of the most; 0 where
/// not even one does.
///
/// Cost: as [`smallest_noise`].
pub fn largest_draws(base: Base, rate: f64, rounds: u64, target: Target, care: Care, run: Run<'_>) -> Result<u64> {
    let high = Mechanism { base, draws: 1, rate }.most_draws();
    // Where few draws are expected to change, curves are cheap.
    let start = 0.01 / rate;
    let range = Range { start, low: 1.0, high, falling: false, whole: true, tolerance: 10.0 * TOLERANCE };
    let mechanism = |draws: f64| Mechanism { base, draws: draws as u64, rate };
    let most = Search::new(range, target, care).run(|draws| Term { mechanism: mechanism(draws), rounds }, run)?;
    Ok(most.map_or(0, |draws| draws as u64))
}

/// How many rounds meet the target, at most 2^40.
///
/// Cost: as [`smallest_noise`], and some more where there are very many.
pub fn largest_rounds(mechanism: Mechanism, target: Target, run: Run<'_>) -> Result<u64> {
    let range = Range { start: 1.0, low: 1.0, high: MOST_ROUNDS, falling: false, whole: true, tolerance: 0.0 };
    let most = Search::new(range, target, Care::Shown).run(|rounds| Term { mechanism, rounds: rounds as u64 }, run)?;
    Ok(most.map_or(0, |rounds| rounds as u64))
}
