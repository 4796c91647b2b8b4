//! A descent with momentum on all records, whose gradients are exact sums of integers.
//!
//! What a record adds to a sum is z r^T: its row z of integers, and a vector r of integer residuals, one for each column of
//! weights. However scores are rounded, and whatever weights and labels are, no entry's norm exceeds the length that the
//! caller asks for:
//!
//! ```text
//! limit = length / max(|z|, 1) * (1 - 2^-30)
//! r     = the residuals times 2^bits, shrunk to a norm of at most limit, each cut towards 0
//! ```
//!
//! - |z|^2 is an exact sum of squares of 16 bits, in 64. Its root, the quotient and the norm of the residuals are rounded,
//!   which is less than 2^-30 for up to 2^10 classes, and cuts lengthen nothing. So |z r^T| = |z| |r| <= length, and two
//!   records are at most twice as far apart.
//! - |z_j r_k| <= length, and magnitudes of n records add up to less than 2^53, which is checked: sums of a part in floats
//!   are exact, and those of parts are added as integers. Threads, blocks and their order change no bit.
//! - Scores are sums in single precision in an order of their own for each row, and [`exp`] rounds alike everywhere: no
//!   instruction set changes a bit either.
//!
//! Of a target, whose loss is squared, the residual is score less target, within [-256, 256], and its limit is all that the
//! proof needs, too: one column of weights, and integers below 2^38 before they are shrunk.
//!
//! ```text
//! for each step:
//!     for each block of rows, while the nearest caches hold it:
//!         widen entries to singles;  scores = rows weights;  r by scores and labels;  sums += rows^T r
//!     gradient = (sums + noise) unit;  speed = momentum speed + gradient;  weights -= rate speed
//! ```

use bytemuck::pod_align_to;

use crate::error::{Error, Result};
use crate::memory::zeros;
use crate::params::positive;
use crate::run::Run;
use crate::simd::{
    Derivatives, MOST_CLASSES, Real, RowBlock, Softmax, Work, add_block, block_products, exp, vectorized,
};

/// More than the rounding of a norm, a root and a quotient.
const SHORTER: f64 = 1.0 - 1.0 / (1u64 << 30) as f64;

/// Integers from here on are not all floats.
const EXACT: f64 = (1u64 << 53) as f64;

/// Adding it to a number below a third of it and subtracting it again leaves the nearest integer.
const ROUNDER: f64 = <f64 as Real>::ROUNDER;

/// The most digits of residuals behind the point: with them, and a sign, they are far below a third of `ROUNDER`.
const MOST_BITS: u32 = 30;

/// No residual of a target counts as larger: 2^8 with `MOST_BITS` digits is far below a third of `ROUNDER`, too.
const LARGEST_RESIDUAL: f64 = 256.0;

/// Bytes of a block of rows in single precision, and how many rows at most.
const BLOCK_BYTES: usize = 1 << 15;
const BLOCK_ROWS: usize = 1 << 10;

/// Parts that threads share, and how many rows a part has at least for each class: then sums take less room than rows.
const PARTS: usize = 64;
const ROWS_FOR_A_CLASS: usize = 32;

/// Records whose residuals are computed side by side.
const ABREAST: usize = 8;

/// Records as integers, and how large their residuals may be.
#[derive(Clone, Copy, Debug)]
pub struct IntegerRecords<'a> {
    entries: &'a [i16],
    columns: usize,
    labels: &'a [i16],
    classes: usize,
    limits: &'a [f64],
}

/// Where the points of integers are, and how much a record may add.
#[derive(Clone, Copy, Debug)]
pub struct Places {
    /// What an entry of 1 of a row stands for.
    pub unit: f64,
    /// Digits of residuals behind the point.
    pub bits: u32,
    /// The largest norm of what a record adds to a sum, an integer.
    pub length: f64,
}

/// The steps of a descent.
#[derive(Clone, Copy, Debug)]
pub struct Steps {
    /// What a step's speed is multiplied with.
    pub rate: f64,
    /// The share of its speed that a step keeps.
    pub momentum: f64,
    /// The number of the last models that are averaged, at least 1.
    pub averaged: usize,
}

/// Where a descent went.
#[derive(Clone, Debug, PartialEq)]
pub struct Path {
    /// The mean of the last models, one class after the other.
    pub weights: Vec<f64>,
    /// The mean over their steps of the inner product of noisy gradient and model.
    pub along: f64,
}

/// The largest norm of the residuals of each row of integers, for a record that adds at most `length`.
pub fn limits(entries: &[i16], columns: usize, length: f64, run: Run<'_>) -> Result<Vec<f64>> {
    if columns == 0 || !entries.len().is_multiple_of(columns) {
        return Err(Error::Shape(format!("{} entries do not fill rows of {columns}", entries.len())));
    }
    positive("length", length)?;
    let mut limits: Vec<f64> = zeros(Some(entries.len() / columns))?;
    run.try_for_each_chunk(&mut limits, BLOCK_ROWS, |chunk, limits| {
        let rows = &entries[chunk * BLOCK_ROWS * columns..][..limits.len() * columns];
        vectorized(run.isa, Limits { rows, columns, length, limits });
        Ok(())
    })?;
    Ok(limits)
}

struct Limits<'a> {
    rows: &'a [i16],
    columns: usize,
    length: f64,
    limits: &'a mut [f64],
}

impl Work for Limits<'_> {
    #[inline(always)]
    fn work(self) {
        for (row, limit) in self.rows.chunks_exact(self.columns).zip(self.limits) {
            let mut squared = 0i64;
            for &z in row {
                // At most 2^30, and no row has 2^33 of them: checks for what cannot be would keep the loop from vectors.
                let z = i32::from(z);
                squared = squared.wrapping_add(i64::from(z.wrapping_mul(z)));
            }
            *limit = self.length / (squared.max(1) as f64).sqrt() * SHORTER;
        }
    }
}

impl<'a> IntegerRecords<'a> {
    /// Records of `columns` integers each, row by row, with the number of its class, below `classes`, and its limit for
    /// each. Two classes have one column of weights, more have one each. One class stands for a target: labels are its
    /// integers, in the unit of the rows, and the loss is squared.
    pub fn new(
        entries: &'a [i16],
        columns: usize,
        labels: &'a [i16],
        classes: usize,
        limits: &'a [f64],
    ) -> Result<IntegerRecords<'a>> {
        let rows = labels.len();
        if columns == 0 || rows == 0 || rows.checked_mul(columns) != Some(entries.len()) || limits.len() != rows {
            let (entries, limits) = (entries.len(), limits.len());
            let text = format!("{rows} labels, {limits} limits and {columns} columns do not fit {entries} entries");
            return Err(Error::Shape(text));
        }
        if !(1..=MOST_CLASSES).contains(&classes) {
            return Err(Error::parameter("classes", classes, &format!("it must be between 1 and {MOST_CLASSES}")));
        }
        let is_class = |&label: &i16| usize::try_from(label).is_ok_and(|label| label < classes);
        if classes > 1 && !labels.iter().all(is_class) {
            let rule = format!("they must be numbers of {classes} classes");
            return Err(Error::parameter("labels", "a vector", &rule));
        }
        Ok(IntegerRecords { entries, columns, labels, classes, limits })
    }

    /// The number of records.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// The number of columns of weights.
    pub fn models(&self) -> usize {
        if self.classes <= 2 { 1 } else { self.classes }
    }

    /// The number of weights.
    pub fn weights(&self) -> usize {
        self.columns * self.models()
    }

    /// The sum of what all records add at these weights, one class after the other; exact.
    ///
    /// Replacing a record moves it by at most twice the length, in the norm of all entries.
    pub fn add_gradients(&self, weights: &[f64], places: Places, run: Run<'_>) -> Result<Vec<i64>> {
        self.check(weights.len(), places)?;
        let mut sums = Sums::new(self)?;
        sums.add(self, weights, places, run)?;
        Ok(sums.total)
    }

    /// Counts of margins between edges, for each of two groups of pairs of classes: how much the score of a record's class
    /// is above that of each other.
    ///
    /// The outer bins have no end, and a margin on an edge counts above it. `edges` are those between bins, in their
    /// order. `second` says of each class and other one, row by row, whether their margin is of the second group, whose
    /// counts come last. A record has a margin fewer than there are classes: replacing it moves the counts by at most the root of 2
    /// times their number.
    pub fn count_margins(
        &self,
        weights: &[f64],
        edges: &[f64],
        second: &[u8],
        unit: f64,
        run: Run<'_>,
    ) -> Result<Vec<i64>> {
        self.check(weights.len(), Places { unit, bits: 0, length: 1.0 })?;
        if self.classes < 2 {
            return Err(Error::parameter("classes", self.classes, "targets have no margins"));
        }
        if second.len() != self.classes * self.classes {
            let text = format!("there are {} pairs, but {} classes have their square", second.len(), self.classes);
            return Err(Error::Shape(text));
        }
        let size = self.part_rows();
        let (bins, model) = (2 * (edges.len() + 1), singles(weights)?);
        let mut counts: Vec<i64> = zeros(self.len().div_ceil(size).checked_mul(bins))?;
        run.try_for_each_chunk(&mut counts, bins, |part, counts| {
            self.for_each_block(part * size, size, &model, run, |block, scores, _| {
                let labels = &self.labels[block.start..][..block.rows];
                for (scores, &label) in scores.chunks_exact_mut(self.models()).zip(labels) {
                    scores.iter_mut().for_each(|score| *score *= unit);
                    let second = &second[label as usize * self.classes..][..self.classes];
                    count_row(scores, label as usize, edges, second, counts);
                }
            })
        })?;
        Ok((0..bins).map(|bin| counts[bin..].iter().step_by(bins).sum()).collect())
    }

    fn check(&self, weights: usize, places: Places) -> Result<()> {
        if weights != self.weights() {
            let text = format!("the model has {weights} weights, but it must have {}", self.weights());
            return Err(Error::Shape(text));
        }
        positive("unit", places.unit)?;
        positive("length", places.length)?;
        if places.bits > MOST_BITS {
            return Err(Error::parameter("bits", places.bits, &format!("it must be at most {MOST_BITS}")));
        }
        let rule = format!("times {} records it must stay below 2^53", self.len());
        let fits = places.length * (self.len() as f64) < EXACT;
        if fits { Ok(()) } else { Err(Error::parameter("length", places.length, &rule)) }
    }

    fn block_rows(&self) -> usize {
        (BLOCK_BYTES / (size_of::<f32>() * self.columns)).clamp(ABREAST, BLOCK_ROWS) / ABREAST * ABREAST
    }

    fn part_rows(&self) -> usize {
        let share = self.len().div_ceil(PARTS).max(ROWS_FOR_A_CLASS * self.models());
        share.next_multiple_of(self.block_rows())
    }

    /// Calls `act` with each block of at most `count` records from the first one on, their scores without the unit of the
    /// rows, and the rows in single precision.
    fn for_each_block(
        &self,
        first: usize,
        count: usize,
        model: &[f32],
        run: Run<'_>,
        mut act: impl FnMut(Block, &mut [f64], RowBlock<'_, f32>),
    ) -> Result<()> {
        let (size, end) = (self.block_rows(), self.len().min(first + count));
        let mut wide: Vec<f32> = zeros(size.checked_mul(self.columns))?;
        let mut scores: Vec<f64> = zeros(size.checked_mul(self.models()))?;
        for start in (first..end).step_by(size) {
            run.check()?;
            let rows = size.min(end - start);
            let (wide, scores) = (&mut wide[..rows * self.columns], &mut scores[..rows * self.models()]);
            let (entries, next) = self.entries[start * self.columns..].split_at(wide.len());
            vectorized(run.isa, Widen { entries, wide });
            // The next block is half as long as this one in single precision: all of it comes meanwhile.
            let (_, ahead, _) = pod_align_to(&next[..next.len().min(entries.len())]);
            let block = RowBlock { entries: wide, columns: self.columns, ahead };
            block_products(run.isa, block, model, scores);
            act(Block { start, rows }, scores, RowBlock { ahead: &[], ..block });
        }
        Ok(())
    }
}

/// Consecutive records.
#[derive(Clone, Copy)]
struct Block {
    start: usize,
    rows: usize,
}

/// The weights in single precision.
fn singles(weights: &[f64]) -> Result<Vec<f32>> {
    let mut room = Vec::new();
    f32::all_of(weights, &mut room)?;
    Ok(room)
}

fn count_row(scores: &[f64], label: usize, edges: &[f64], second: &[u8], counts: &mut [i64]) {
    let mut count = |margin: f64, other: usize| {
        let bin = edges.iter().filter(|edge| **edge <= margin).count();
        counts[bin + if second[other] != 0 { edges.len() + 1 } else { 0 }] += 1;
    };
    if let [score] = scores {
        count(if label == 1 { *score } else { -score }, 1 - label);
    } else {
        for (class, score) in scores.iter().enumerate() {
            if class != label {
                count(scores[label] - score, class);
            }
        }
    }
}

struct Widen<'a> {
    entries: &'a [i16],
    wide: &'a mut [f32],
}

impl Work for Widen<'_> {
    #[inline(always)]
    fn work(self) {
        for (wide, &entry) in self.wide.iter_mut().zip(self.entries) {
            *wide = f32::from(entry);
        }
    }
}

/// Sums over parts of the records, and over all.
struct Sums {
    parts: Vec<f64>,
    total: Vec<i64>,
}

impl Sums {
    fn new(records: &IntegerRecords<'_>) -> Result<Sums> {
        let parts = records.len().div_ceil(records.part_rows());
        let weights = records.weights();
        Ok(Sums { parts: zeros(parts.checked_mul(weights))?, total: zeros(Some(weights))? })
    }

    /// Replaces the sums by those at other weights.
    fn add(&mut self, records: &IntegerRecords<'_>, weights: &[f64], places: Places, run: Run<'_>) -> Result<()> {
        let (size, model) = (records.part_rows(), singles(weights)?);
        run.try_for_each_chunk(&mut self.parts, weights.len(), |part, sum| {
            sum.fill(0.0);
            let mut columns: Vec<[f64; ABREAST]> = zeros(Some(records.models()))?;
            records.for_each_block(part * size, size, &model, run, |block, scores, rows| {
                let Block { start, rows: count } = block;
                let (labels, limits) = (&records.labels[start..][..count], &records.limits[start..][..count]);
                let target = records.classes < 2;
                vectorized(run.isa, Residuals { labels, limits, places, target, columns: &mut columns, scores });
                add_block(run.isa, rows, scores, sum);
            })
        })?;
        self.total.fill(0);
        for part in self.parts.chunks_exact(weights.len()) {
            // Below 2^53, all of them together, too.
            self.total.iter_mut().zip(part).for_each(|(total, sum)| *total += *sum as i64);
        }
        Ok(())
    }
}

/// Turns scores without the unit of the rows into residuals, as integers.
struct Residuals<'a> {
    labels: &'a [i16],
    limits: &'a [f64],
    places: Places,
    /// Whether labels are integers of a target.
    target: bool,
    /// Room for some records, an array for each column of weights.
    columns: &'a mut [[f64; ABREAST]],
    /// As many for each label as there are columns of weights.
    scores: &'a mut [f64],
}

impl Work for Residuals<'_> {
    #[inline(always)]
    fn work(self) {
        let Residuals { labels, limits, places, target, columns, scores } = self;
        let scale = f64::from(1u32 << places.bits);
        if target {
            for ((score, label), limit) in scores.iter_mut().zip(labels).zip(limits) {
                let rest = (*score - f64::from(*label)) * places.unit;
                *score = shorten(rest.clamp(-LARGEST_RESIDUAL, LARGEST_RESIDUAL) * scale, *limit);
            }
            return;
        }
        if scores.len() == labels.len() {
            for ((score, label), limit) in scores.iter_mut().zip(labels).zip(limits) {
                *score = shorten((logistic(*score * places.unit) - f64::from(*label)) * scale, *limit);
            }
            return;
        }
        let models = scores.len() / labels.len().max(1);
        let groups = labels.chunks(ABREAST).zip(limits.chunks(ABREAST)).zip(scores.chunks_mut(ABREAST * models));
        for ((labels, limits), scores) in groups {
            for (row, scores) in scores.chunks_exact(models).enumerate() {
                for (column, score) in columns.iter_mut().zip(scores) {
                    column[row] = score * places.unit;
                }
            }
            shrink(&mut *columns, labels, limits, scale);
            for (row, scores) in scores.chunks_exact_mut(models).enumerate() {
                for (column, score) in columns.iter().zip(scores) {
                    *score = column[row];
                }
            }
        }
    }
}

/// A residual of at most the limit, cut towards 0; what is no number is 0.
#[inline(always)]
fn shorten(rest: f64, limit: f64) -> f64 {
    let size = rest.abs();
    let size = if size <= limit { size } else { limit };
    cut(if rest.abs() >= 0.0 { size } else { 0.0 }).copysign(rest)
}

/// The probability of class 1.
#[inline(always)]
fn logistic(score: f64) -> f64 {
    // The exponential of what is below 0 never overflows.
    let small = exp(-score.abs());
    (if score < 0.0 { small } else { 1.0 }) / (1.0 + small)
}

/// The largest integer that is at most so large; 0 for what is no number.
#[inline(always)]
fn cut(size: f64) -> f64 {
    let nearest = size + ROUNDER - ROUNDER;
    let below = if nearest > size { nearest - 1.0 } else { nearest };
    if below > 0.0 { below } else { 0.0 }
}

/// Turns scores of up to eight records, an array for each class, into their residuals.
#[inline(always)]
fn shrink(columns: &mut [[f64; ABREAST]], labels: &[i16], limits: &[f64], scale: f64) {
    let (mut wanted, mut most, mut squared) = ([0.0; ABREAST], [0.0; ABREAST], [0.0; ABREAST]);
    wanted.iter_mut().zip(labels).for_each(|(wanted, label)| *wanted = f64::from(*label));
    most.iter_mut().zip(limits).for_each(|(most, limit)| *most = *limit);
    Softmax.differentiate(columns, &wanted);
    for column in columns.iter_mut() {
        for i in 0..ABREAST {
            column[i] *= scale;
            squared[i] += column[i] * column[i];
        }
    }
    let mut shares = [0.0; ABREAST];
    for i in 0..ABREAST {
        let length = squared[i].sqrt();
        shares[i] = if length <= most[i] { 1.0 } else { most[i] / length };
    }
    for column in columns {
        for i in 0..ABREAST {
            column[i] = cut(column[i].abs() * shares[i]).copysign(column[i]);
        }
    }
}

/// Follows noisy gradients from weights of 0, with momentum.
///
/// `noise` has an integer for each step and weight, those of a class side by side, which is added to the sum. A mean
/// gradient is a sum times 2^-bits and the unit of the rows, by the number of records.
///
/// Guarantee: with noise of deviation sigma from [`noise::fill_rounded`](mod@crate::noise), all steps together are as
/// private as one Gaussian mechanism whose mu has the square steps (2 length / sigma)^2.
///
/// Cost: a read of the rows for each step.
pub fn descend(records: IntegerRecords<'_>, places: Places, steps: Steps, noise: &[i64], run: Run<'_>) -> Result<Path> {
    let count = records.weights();
    records.check(count, places)?;
    if !noise.len().is_multiple_of(count) {
        return Err(Error::Shape(format!("noise has {} integers, but a step has {count} weights", noise.len())));
    }
    let first = (noise.len() / count).checked_sub(steps.averaged).filter(|_| steps.averaged > 0);
    let rule = format!("it must be between 1 and the number of steps, {}", noise.len() / count);
    let first = first.ok_or_else(|| Error::parameter("averaged", steps.averaged, &rule))?;
    let unit = places.unit / f64::from(1u32 << places.bits) / records.len() as f64;
    let mut sums = Sums::new(&records)?;
    let [mut weights, mut speed, mut mean]: [Vec<f64>; 3] =
        [zeros(Some(count))?, zeros(Some(count))?, zeros(Some(count))?];
    let mut along = 0.0;
    for (step, noise) in noise.chunks_exact(count).enumerate() {
        sums.add(&records, &weights, places, run)?;
        for (i, (sum, noise)) in sums.total.iter().zip(noise).enumerate() {
            // As integers first: what is not released is not rounded.
            let gradient = sum.wrapping_add(*noise) as f64 * unit;
            if step >= first {
                along += gradient * weights[i];
            }
            speed[i] = steps.momentum * speed[i] + gradient;
            weights[i] -= steps.rate * speed[i];
            if step >= first {
                mean[i] += weights[i];
            }
        }
    }
    let averaged = steps.averaged as f64;
    mean.iter_mut().for_each(|weight| *weight /= averaged);
    Ok(Path { weights: mean, along: along / averaged })
}
