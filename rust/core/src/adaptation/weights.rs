//! Weights of records: given, or those that minimize the objective at the losses.

use super::integers::Grid;
use crate::error::{Error, Result};
use crate::params::nonnegative;
use crate::simd::Work;

/// Running sums, as many as the longest vectors hold.
const LANES: usize = 8;

/// Where the weights q of records with losses l come from.
#[derive(Clone, Copy, Debug)]
pub enum Weights<'a> {
    /// The weights in (0, cap] that minimize q (l + offset) + kappa_1 cap^2 / q, hence cap min(1, sqrt(kappa_1 / (l +
    /// offset))).
    Eliminated {
        /// The largest weight.
        cap: f64,
        /// The raised loss from which on weights fall below `cap`.
        kappa_1: f64,
        /// What is added to each loss.
        offset: f64,
    },
    /// These weights, one for each record.
    Given(&'a [f64]),
}

impl Weights<'_> {
    /// Refuses weights that do not fit this number of records, and parameters that are negative or not finite.
    pub fn check(&self, records: usize) -> Result<()> {
        match *self {
            Weights::Given(weights) if weights.len() == records => Ok(()),
            Weights::Given(weights) => {
                Err(Error::Shape(format!("weights has length {}, but there are {records} records", weights.len())))
            }
            Weights::Eliminated { cap, kappa_1, offset } => {
                for (name, value) in [("cap", cap), ("kappa_1", kappa_1), ("offset", offset)] {
                    nonnegative(name, value)?;
                }
                Ok(())
            }
        }
    }
}

/// Turns losses into weights, and writes the objective.
pub(super) struct Eliminate<'a> {
    pub cap: f64,
    pub kappa_1: f64,
    pub offset: f64,
    pub losses: &'a mut [f64],
    pub objective: &'a mut f64,
}

impl Work for Eliminate<'_> {
    #[inline(always)]
    fn work(self) {
        let Eliminate { cap, kappa_1, offset, losses, objective } = self;
        let mut sums = [0.0; LANES];
        let weigh = |sum: &mut f64, loss: &mut f64| {
            let raised = *loss + offset;
            // Where both are 0 the ratio is no number, of which min takes the other argument.
            let weight = cap * (kappa_1 / raised).sqrt().min(1.0);
            *sum += weight * (raised + raised.max(kappa_1));
            *loss = weight;
        };
        let mut chunks = losses.chunks_exact_mut(LANES);
        for losses in &mut chunks {
            sums.iter_mut().zip(losses).for_each(|(sum, loss)| weigh(sum, loss));
        }
        sums.iter_mut().zip(chunks.into_remainder()).for_each(|(sum, loss)| weigh(sum, loss));
        *objective = sums.iter().sum();
    }
}

/// Multiplies derivatives by weights: what each row is multiplied with in the gradient.
pub(super) struct Multiply<'a> {
    pub weights: &'a [f64],
    pub grid: Option<Grid>,
    /// As many for each weight as there are classes.
    pub derivatives: &'a mut [f64],
}

impl Work for Multiply<'_> {
    #[inline(always)]
    fn work(self) {
        let Multiply { weights, grid, derivatives } = self;
        if derivatives.len() == weights.len() {
            // The same loop as below, which the compiler turns into vectors where a row has one entry.
            for (value, weight) in derivatives.iter_mut().zip(weights) {
                multiplied(std::slice::from_mut(value), *weight, grid);
            }
        } else {
            let classes = derivatives.len() / weights.len().max(1);
            for (row, weight) in derivatives.chunks_exact_mut(classes).zip(weights) {
                multiplied(row, *weight, grid);
            }
        }
    }
}

#[inline(always)]
fn multiplied(row: &mut [f64], weight: f64, grid: Option<Grid>) {
    match grid {
        Some(grid) => grid.round(row, weight),
        None => {
            for value in row {
                *value *= weight;
            }
        }
    }
}
