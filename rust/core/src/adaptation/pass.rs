//! One pass over the rows: predictions, losses, weights and the weighted gradient of a block after the other, while the
//! nearest caches hold it.

use super::integers::Grid;
use super::losses::{Evaluate, Loss};
use super::weights::{Eliminate, Multiply, Weights};
use crate::error::{Error, Result};
use crate::memory::{collected, zeros};
use crate::run::Run;
use crate::sgd::Records;
use crate::simd::{Real, RowBlock, add_block, block_products, vectorized};

/// Bytes of a block of rows, and how many of them at most.
const BLOCK_BYTES: usize = 1 << 15;
const BLOCK_ROWS: usize = 1 << 10;

/// Parts that threads share; sums are over parts, so that their rounding does not depend on the threads.
const PARTS: usize = 64;

/// The result of a pass.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// The sum over all records, with weight q and loss l: of q (l + offset) + kappa_1 cap^2 / q where weights are
    /// eliminated, and of q l where they are given.
    pub objective: f64,
    /// The sum of q times the gradient of the loss in the model, with the shape of the model; a sum of integers where
    /// there is a grid.
    pub gradient: Vec<f64>,
    /// The loss of every record, where weights are given.
    pub losses: Option<Vec<f64>>,
}

/// Computes the objective and its gradient at a model. The model holds one weight for each column; for
/// [`Loss::Softmax`] as many for each class, one class after the other.
///
/// Rows of single precision are multiplied with the model in it; all else is double precision. The result does not
/// depend on the number of threads.
///
/// Cost: one read of the rows.
pub fn pass<T: Real>(
    records: Records<'_, T>,
    loss: Loss,
    model: &[f64],
    weights: Weights<'_>,
    grid: Option<Grid>,
    run: Run<'_>,
) -> Result<Found> {
    check(model.len(), records.columns, loss)?;
    let rule = "an adaptation takes real numbers";
    let labels = records.labels.reals().ok_or_else(|| Error::parameter("labels", "integers", rule))?;
    weights.check(labels.len())?;
    grid.map_or(Ok(()), |grid| grid.check(labels.len()))?;
    let mut rounded = Vec::new();
    let task = Task { records, labels, loss, model: T::all_of(model, &mut rounded)?, weights, grid };
    let kept = if matches!(weights, Weights::Given(_)) { labels.len() } else { 0 };
    let mut losses: Vec<f64> = zeros(Some(kept))?;
    let size = task.part_rows();
    let count = labels.len().div_ceil(size);
    let mut gradients: Vec<f64> = zeros(count.checked_mul(model.len()))?;
    let mut kept = losses.chunks_mut(size);
    let part = |gradient| Part { objective: 0.0, gradient, losses: kept.next().unwrap_or_default() };
    let mut parts = collected(gradients.chunks_exact_mut(model.len()).map(part))?;
    run.try_for_each_chunk(&mut parts, 1, |number, parts| {
        parts.iter_mut().try_for_each(|part| task.add_up(number * size, size, part, run))
    })?;
    let objective = parts.iter().map(|part| part.objective).sum();
    let gradient = total(gradients, model.len());
    Ok(Found { objective, gradient, losses: (!losses.is_empty()).then_some(losses) })
}

fn check(model: usize, columns: usize, loss: Loss) -> Result<()> {
    let fits = if loss == Loss::Softmax { model.is_multiple_of(columns) && model > columns } else { model == columns };
    let rule = "it must have one for each, and of each of two classes or more for softmax";
    if fits {
        Ok(())
    } else {
        Err(Error::Shape(format!("the model has {model} weights for {columns} columns, but {rule}")))
    }
}

/// Sums over some consecutive records.
struct Part<'a> {
    objective: f64,
    gradient: &'a mut [f64],
    losses: &'a mut [f64],
}

/// The sum of gradients of `weights` entries each, in their order.
fn total(mut gradients: Vec<f64>, weights: usize) -> Vec<f64> {
    let (total, others) = gradients.split_at_mut(weights);
    for gradient in others.chunks_exact(weights) {
        total.iter_mut().zip(gradient).for_each(|(sum, value)| *sum += value);
    }
    gradients.truncate(weights);
    gradients
}

#[derive(Clone, Copy)]
struct Task<'a, T> {
    records: Records<'a, T>,
    labels: &'a [f64],
    loss: Loss,
    model: &'a [T],
    weights: Weights<'a>,
    grid: Option<Grid>,
}

impl<T: Real> Task<'_, T> {
    fn classes(&self) -> usize {
        self.model.len() / self.records.columns
    }

    fn block_rows(&self) -> usize {
        (BLOCK_BYTES / (size_of::<T>() * self.records.columns)).clamp(4, BLOCK_ROWS) / 4 * 4
    }

    /// The number of rows of a part, so large that the sums take no more room than the rows.
    fn part_rows(&self) -> usize {
        let share = self.labels.len().div_ceil(PARTS).max(2 * self.classes());
        share.next_multiple_of(self.block_rows())
    }

    /// Adds up at most `count` records from the first one on.
    fn add_up(&self, first: usize, count: usize, part: &mut Part<'_>, run: Run<'_>) -> Result<()> {
        let (size, end) = (self.block_rows(), self.labels.len().min(first + count));
        let (mut scores, mut losses): (Vec<f64>, Vec<f64>) =
            (zeros(size.checked_mul(self.classes()))?, zeros(Some(size))?);
        for start in (first..end).step_by(size) {
            run.check()?;
            let rows = size.min(end - start);
            let room = (&mut scores[..rows * self.classes()], &mut losses[..rows]);
            part.objective += self.block(start, room, start - first, part, run);
        }
        Ok(())
    }

    /// Adds the gradients of a block to those of its part; its objective.
    fn block(
        &self,
        start: usize,
        (scores, losses): (&mut [f64], &mut [f64]),
        within: usize,
        part: &mut Part<'_>,
        run: Run<'_>,
    ) -> f64 {
        let Records { entries, columns, .. } = self.records;
        let (entries, next) = entries[start * columns..].split_at(losses.len() * columns);
        let next = &next[..next.len().min(entries.len())];
        let (ahead, later) = next.split_at(next.len() / 2);
        let rows = RowBlock { entries, columns, ahead };
        block_products(run.isa, rows, self.model, scores);
        let labels = &self.labels[start..][..losses.len()];
        vectorized(run.isa, Evaluate { loss: self.loss, labels, scores, losses });
        let mut objective = 0.0;
        let weights = match self.weights {
            Weights::Eliminated { cap, kappa_1, offset } => {
                vectorized(run.isa, Eliminate { cap, kappa_1, offset, losses, objective: &mut objective });
                losses
            }
            Weights::Given(weights) => {
                let weights = &weights[start..][..losses.len()];
                objective = losses.iter().zip(weights).map(|(loss, weight)| loss * weight).sum();
                part.losses[within..][..losses.len()].copy_from_slice(losses);
                weights
            }
        };
        vectorized(run.isa, Multiply { weights, grid: self.grid, derivatives: scores });
        add_block(run.isa, RowBlock { ahead: later, ..rows }, scores, part.gradient);
        objective
    }
}
