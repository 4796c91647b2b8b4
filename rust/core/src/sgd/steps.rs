//! The descent: one step after the other, each a sum of clipped gradients with noise.

use super::draws::{Draws, Stock};
use super::losses::{Loss, Objective};
use super::noise::{NoiseSource, grid};
use super::plan::{Output, Plan};
use crate::error::{Error, Result};
use crate::memory::{self, zeros};
use crate::noise::Seed;
use crate::run::Run;
use crate::simd::{Examples, Grid, Isa, Labels, Real, Room, Rows, add_gradients, add_quantized, clipped_scores};

/// Rows that a thread takes at a time. Sums are over parts, so that their rounding does not depend on the threads.
const PART: usize = 1024;

/// Entries read between two looks at the cancel flag, and most steps.
const BLOCK_ENTRIES: usize = 1 << 21;
const BLOCK_STEPS: usize = 4096;

/// Rows whose losses a thread computes at a time.
const CHUNK: usize = 1 << 12;

/// Labeled records, read in place.
#[derive(Clone, Copy)]
pub struct Records<'a, T> {
    pub(crate) entries: &'a [T],
    pub(crate) columns: usize,
    pub(crate) labels: Labels<'a>,
}

impl<'a, T: Real> Records<'a, T> {
    /// Records of `columns` entries each, row by row, with one label each. There must be at least one of both.
    pub fn new(entries: &'a [T], columns: usize, labels: impl Into<Labels<'a>>) -> Result<Records<'a, T>> {
        let labels = labels.into();
        if columns == 0 || labels.is_empty() || labels.len().checked_mul(columns) != Some(entries.len()) {
            let (rows, entries) = (labels.len(), entries.len());
            return Err(Error::Shape(format!("{rows} labels and {columns} columns do not fit {entries} entries")));
        }
        Ok(Records { entries, columns, labels })
    }

    fn rows(&self, bound: f64) -> Rows<'a, T> {
        Rows { entries: self.entries, columns: self.columns, bound }
    }
}

/// Runs projected stochastic gradient descent and returns the model that the plan names, for several classes the weights
/// of one after those of the other.
///
/// Rows of single precision are multiplied and rounded in it. A row whose squared norm is no normal number in its
/// precision counts as zero.
///
/// Guarantee: without noise there is none. With noise, each step has that of [`Noise`](super::Noise), and
/// [`accounting`](mod@crate::accounting) adds the steps up. Sums are divided by `batch_size`, also where the number of
/// draws is drawn: that number stays secret, but for the running time.
///
/// Cost: a read of `batch_size` rows in random order for each step, and a draw of noise for each weight.
pub fn learn<T: Real>(
    records: Records<'_, T>,
    draws: Draws<'_>,
    plan: &Plan,
    seed: &Seed,
    run: Run<'_>,
) -> Result<Vec<f64>> {
    plan.check()?;
    let weights = records.columns.saturating_mul(plan.objective.classes());
    let in_block = (BLOCK_ENTRIES / (plan.batch_size.saturating_mul(weights))).clamp(1, BLOCK_STEPS);
    let most = in_block.min(plan.steps) * plan.batch_size;
    let mut stock = Stock::new(draws, plan, most, records.labels.len(), seed)?;
    let mut descent = Descent::new(records, plan, seed, run)?;
    for number in 1..=plan.steps {
        let mut wanted = stock.begin();
        descent.sums.fill(0.0);
        while wanted > 0 {
            let (rows, count) = stock.take(wanted, run)?;
            descent.add(rows, count)?;
            wanted -= count;
        }
        descent.step(number);
    }
    Ok(descent.result())
}

/// How the gradients of rows are added up.
#[derive(Clone, Copy)]
struct Gradients<'a, T> {
    rows: Rows<'a, T>,
    labels: Labels<'a>,
    objective: Objective,
    most: f64,
    grid: Option<Grid>,
    isa: Isa,
}

impl<T: Real> Gradients<'_, T> {
    fn add(self, drawn: &[usize], count: usize, model: &[T], room: &mut Room, sum: &mut [f64]) {
        let examples = Examples { rows: self.rows, labels: self.labels, loss: self.objective, most: self.most };
        match self.grid {
            Some(grid) => add_quantized(self.isa, examples, grid, (drawn, count), model, room, sum),
            None => add_gradients(self.isa, examples, (drawn, count), model, room, sum),
        }
    }

    fn room(self, draws: usize) -> Result<Room> {
        Room::new::<T>(draws, self.rows.columns, self.objective.classes())
    }
}

struct Descent<'a, T> {
    gradients: Gradients<'a, T>,
    plan: &'a Plan,
    noise: NoiseSource,
    run: Run<'a>,
    /// Mean gradients for each unit of the sums, and the first step's length.
    unit: f64,
    first: f64,
    model: Vec<f64>,
    /// Room for the model in the precision of the rows, and for the kernel.
    rounded: Vec<T>,
    room: Room,
    total: Vec<f64>,
    sums: Vec<f64>,
}

impl<'a, T: Real> Descent<'a, T> {
    fn new(records: Records<'a, T>, plan: &'a Plan, seed: &Seed, run: Run<'a>) -> Result<Descent<'a, T>> {
        let count = records.columns.checked_mul(plan.objective.classes());
        let model = first_model(plan, count)?;
        let weights = model.len();
        let grid = grid::<T>(&plan.noise, plan.clip_norm, weights);
        let steepest = plan.domain.diameter(weights) / plan.noisy_gradient_norm(weights);
        let gradients = Gradients {
            rows: records.rows(plan.norm_bound),
            labels: records.labels,
            objective: plan.objective,
            most: plan.clip_norm,
            grid,
            isa: run.isa,
        };
        Ok(Descent {
            gradients,
            rounded: memory::room(Some(weights))?,
            room: gradients.room(plan.batch_size)?,
            noise: NoiseSource::new(&plan.noise, plan.clip_norm, plan.steps.saturating_mul(weights), seed),
            unit: 1.0 / (grid.map_or(1.0, |grid| grid.scale) * plan.batch_size as f64),
            first: if plan.strong_convexity > 0.0 { 1.0 / plan.strong_convexity } else { steepest },
            model,
            total: zeros(Some(weights))?,
            sums: zeros(weights.checked_mul(plan.batch_size.div_ceil(PART)))?,
            plan,
            run,
        })
    }

    /// The step of this number, counted from 1, by the gradients that were added up.
    fn step(&mut self, number: usize) {
        let (sum, others) = self.sums.split_at_mut(self.model.len());
        for other in others.chunks_exact(sum.len()) {
            sum.iter_mut().zip(other).for_each(|(sum, other)| *sum += other);
        }
        self.noise.add(sum);
        let number = number as f64;
        let length = self.first / if self.plan.strong_convexity > 0.0 { number } else { number.sqrt() };
        let (kept, factor) = (1.0 - length * self.plan.l2, length * self.unit);
        for ((w, total), gradient) in self.model.iter_mut().zip(&mut self.total).zip(sum) {
            *total += *w;
            *w = *w * kept - factor * *gradient;
        }
        if self.plan.l1 > 0.0 {
            shrink(&mut self.model, length * self.plan.l1);
        }
        self.plan.domain.project(&mut self.model);
    }

    /// Adds the gradients of the first `count` rows to the sums of the parts; the rows behind them are needed next.
    ///
    /// Rounded to integers, the gradient of a record is the same wherever it stands among the rows: only so may a record
    /// that is drawn b times count b times, whatever else is drawn.
    fn add(&mut self, mut rows: &[usize], mut count: usize) -> Result<()> {
        let (parts, weights) = (self.sums.len() / self.model.len(), self.model.len());
        let (gradients, model) = (self.gradients, T::all_of(&self.model, &mut self.rounded)?);
        while count > 0 {
            let now = count.min(parts * PART);
            if parts == 1 {
                gradients.add(rows, now, model, &mut self.room, &mut self.sums);
            } else {
                self.run.try_for_each_chunk(&mut self.sums, weights, |part, sum| {
                    let start = part * PART;
                    if start < now {
                        let mut room = gradients.room(PART)?;
                        gradients.add(&rows[start..], PART.min(now - start), model, &mut room, sum);
                    }
                    Ok(())
                })?;
            }
            (rows, count) = (&rows[now..], count - now);
        }
        Ok(())
    }

    fn result(mut self) -> Vec<f64> {
        if self.plan.output == Output::Last {
            return self.model;
        }
        let share = 1.0 / self.plan.steps as f64;
        self.total.iter_mut().for_each(|total| *total *= share);
        self.total
    }
}

/// The model before the first step, of this number of weights; `None` stands for a number that overflowed.
fn first_model(plan: &Plan, weights: Option<usize>) -> Result<Vec<f64>> {
    let mut model: Vec<f64> = zeros(weights)?;
    if let Some(start) = &plan.start {
        if start.len() != model.len() {
            let rule = format!("the model has {} weights", model.len());
            return Err(Error::Shape(format!("start has {} weights, but {rule}", start.len())));
        }
        model.copy_from_slice(start);
    }
    plan.domain.project(&mut model);
    Ok(model)
}

/// Moves every entry towards 0 by `by`, and to 0 where it is nearer.
fn shrink(model: &mut [f64], by: f64) {
    model.iter_mut().for_each(|w| *w = (w.abs() - by).max(0.0).copysign(*w));
}

/// The inner product of a model with every row, where rows longer than `norm_bound` are shrunk to it. A model of
/// several classes has one for each, row by row.
///
/// Cost: one pass over the rows.
pub fn scores<T: Real>(records: Records<'_, T>, norm_bound: f64, model: &[f64], run: Run<'_>) -> Result<Vec<f64>> {
    if model.is_empty() || !model.len().is_multiple_of(records.columns) {
        let (weights, columns) = (model.len(), records.columns);
        return Err(Error::Shape(format!("the model has {weights} weights, but X has {columns} columns")));
    }
    let classes = model.len() / records.columns;
    let mut scores: Vec<f64> = zeros(records.labels.len().checked_mul(classes))?;
    let rows = records.rows(norm_bound);
    let mut rounded = Vec::new();
    let model = T::all_of(model, &mut rounded)?;
    run.try_for_each_chunk(&mut scores, CHUNK * classes, |chunk, scores| {
        clipped_scores(run.isa, rows, chunk * CHUNK, model, scores);
        Ok(())
    })?;
    Ok(scores)
}

/// The loss of a model on every record, divided by `largest` and cut at 1.
///
/// Cost: one pass over the rows.
pub fn losses<T: Real>(
    records: Records<'_, T>,
    norm_bound: f64,
    model: &[f64],
    (loss, largest): (Loss, f64),
    run: Run<'_>,
) -> Result<Vec<f64>> {
    of_scores(records, norm_bound, model, run, |score, label| (loss.value(score, label) / largest).min(1.0))
}

/// The derivative of the loss in the score, for every record.
///
/// Cost: one pass over the rows.
pub fn slopes<T: Real>(
    records: Records<'_, T>,
    norm_bound: f64,
    model: &[f64],
    loss: Loss,
    run: Run<'_>,
) -> Result<Vec<f64>> {
    of_scores(records, norm_bound, model, run, |score, label| loss.slope(score, label))
}

fn of_scores<T: Real>(
    records: Records<'_, T>,
    norm_bound: f64,
    model: &[f64],
    run: Run<'_>,
    value: impl Fn(f64, f64) -> f64 + Sync,
) -> Result<Vec<f64>> {
    let mut values = scores(records, norm_bound, model, run)?;
    if values.len() != records.labels.len() {
        let rule = format!("X has {} columns", records.columns);
        return Err(Error::Shape(format!("the model has {} weights, but {rule}", model.len())));
    }
    run.try_for_each_chunk(&mut values, CHUNK, |chunk, values| {
        let first = chunk * CHUNK;
        values.iter_mut().enumerate().for_each(|(i, score)| *score = value(*score, records.labels.get(first + i)));
        Ok(())
    })?;
    Ok(values)
}
