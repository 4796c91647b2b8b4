//! Additive models of binned columns: noisy Newton steps on sums over bins, one column after the other.
//!
//! A record has a bin in each column, and its score is a base plus a value of each of its bins: all are integers, in units of
//! 2^-16. What it adds to a sum is its residual, an integer between two limits that are public, in the one bin that it has
//! in the column whose turn it is.
//!
//! ```text
//! for each round, for each column:
//!     for each record:  score += what the bin of the column before has gained;  sums[bin] += its residual
//!     released = sums + noise
//!     average += rate (released + curvature shape - average)
//!     shape    = gain average
//! ```
//!
//! - A residual is label less score, or label less probability, cut to an integer and then to the limits. However scores are
//!   rounded, it lies between them, so that another record in the place of one moves the sums by at most their distance
//!   (the same bin) or by the root of two squares (two bins).
//! - Scores of integers are the same in any order, residuals are made of one record alone by [`exp`], which rounds alike
//!   everywhere, and sums of integers are exact: parts, threads and instruction sets change no bit.
//! - Average and shape are functions of what was released and of public numbers.

use crate::error::{Error, Result};
use crate::memory::{collected, zeros};
use crate::run::Run;
use crate::simd::{Work, exp, vectorized};

/// Integers that make up 1.
const ONE: f64 = (1u32 << 16) as f64;

/// The largest value of a bin, of the base and of a limit; and how many columns may add up.
const LARGEST: i32 = 1 << 20;
const MOST_COLUMNS: usize = 1 << 10;

/// No label is larger.
const LARGEST_LABEL: u64 = 1 << 40;

/// Records whose residuals are made side by side, and whose sums stay below 2^31.
const BLOCK: usize = 1 << 10;

/// Records of a part, which a thread takes at a time.
const PART: usize = 1 << 13;

/// Records by their bins.
#[derive(Clone, Copy, Debug)]
pub struct Binned<'a> {
    bins: &'a [u8],
    widths: &'a [usize],
    labels: &'a [i64],
}

/// What residuals are made of.
#[derive(Clone, Copy, Debug)]
pub struct Residuals {
    /// Whether scores are log-odds, and labels 0 or 2^16; else residuals are label less score.
    pub logistic: bool,
    /// What all scores begin with.
    pub base: i32,
    /// The least residual, and the largest.
    pub limits: (i32, i32),
}

/// Public numbers and noise of the steps.
#[derive(Clone, Copy, Debug)]
pub struct Rounds<'a> {
    /// How far an average moves in each round.
    pub rates: &'a [f64],
    /// An integer for each round and bin, those of a round side by side.
    pub noise: &'a [i64],
    /// For each bin what a sum falls by if its value grows by 1.
    pub curvatures: &'a [f64],
    /// For each column the matrix that makes a shape of an average, row by row.
    pub gains: &'a [f64],
}

impl<'a> Binned<'a> {
    /// Records with these labels, whose bins stand column by column, each below the width of its column.
    pub fn new(bins: &'a [u8], widths: &'a [usize], labels: &'a [i64]) -> Result<Binned<'a>> {
        let rows = labels.len();
        if rows == 0 || widths.is_empty() || rows.checked_mul(widths.len()) != Some(bins.len()) {
            let text = format!("{rows} labels and {} columns do not fit {} bins", widths.len(), bins.len());
            return Err(Error::Shape(text));
        }
        if widths.len() > MOST_COLUMNS {
            return Err(Error::parameter(
                "widths",
                widths.len(),
                &format!("it must have {MOST_COLUMNS} columns at most"),
            ));
        }
        let fits = |(column, &width): (&[u8], &usize)| column.iter().all(|&bin| usize::from(bin) < width);
        if labels.iter().any(|label| label.unsigned_abs() > LARGEST_LABEL) {
            return Err(Error::parameter("labels", "an array", "each must lie within 2^40"));
        }
        if !bins.chunks_exact(rows).zip(widths).all(fits) {
            return Err(Error::parameter("bins", "an array", "each must be below the width of its column"));
        }
        Ok(Binned { bins, widths, labels })
    }

    fn column(&self, place: usize) -> &'a [u8] {
        &self.bins[place * self.labels.len()..][..self.labels.len()]
    }
}

/// The values of all bins, in units of 2^-16, after steps from shapes of 0.
///
/// Guarantee: with noise of deviation sigma from [`noise::fill_rounded`](mod@crate::noise), all steps together are as private
/// as one Gaussian mechanism whose mu has the square steps (distance / sigma)^2, each round having as many steps as there are
/// columns. The squared distance is the larger one of (high - low)^2 and 2 max(low^2, high^2), for the limits.
///
/// Cost: a pass over the labels and one column of bins for each step.
pub fn fit_shapes(records: Binned<'_>, residuals: Residuals, rounds: Rounds<'_>, run: Run<'_>) -> Result<Vec<i32>> {
    let bins = check(records, residuals, rounds)?;
    let mut averages: Vec<f64> = zeros(Some(bins))?;
    let mut shapes: Vec<i32> = zeros(Some(bins))?;
    let mut scores: Vec<i32> = zeros(Some(records.labels.len()))?;
    scores.fill(residuals.base);
    let most = records.widths.iter().copied().max().unwrap_or(1);
    let mut sums: Vec<i64> = zeros(records.labels.len().div_ceil(PART).checked_mul(most))?;
    let pairs = scores.chunks_mut(PART).zip(sums.chunks_exact_mut(most));
    let mut parts = collected(pairs.map(|(scores, sums)| Part { scores, sums }))?;
    let starts = collected((0..records.widths.len()).map(|column| records.widths[..column].iter().sum::<usize>()))?;
    let mut gained = Gained { column: 0, values: vec![0; records.widths[0]] };
    for (noise, rate) in rounds.noise.chunks_exact(bins).zip(rounds.rates) {
        let mut gains = rounds.gains;
        for (column, (&width, &first)) in records.widths.iter().zip(&starts).enumerate() {
            run.try_for_each_chunk(&mut parts, 1, |number, parts| {
                parts.iter_mut().try_for_each(|part| {
                    run.check()?;
                    part.add_up(records, residuals, number * PART, &gained, column, run);
                    Ok(())
                })
            })?;
            let (gain, rest) = gains.split_at(width * width);
            gains = rest;
            let average = &mut averages[first..][..width];
            let values = &mut shapes[first..][..width];
            for (bin, average) in average.iter_mut().enumerate() {
                let sum = parts.iter().fold(0i64, |sum, part| sum.wrapping_add(part.sums[bin]));
                // As integers first: what is not released is not rounded.
                let released = sum.wrapping_add(noise[first + bin]) as f64 / ONE;
                let wanted = released + rounds.curvatures[first + bin] * (f64::from(values[bin]) / ONE);
                *average += rate * (wanted - *average);
            }
            gained = step(column, gain, average, values);
        }
    }
    Ok(shapes)
}

/// The number of all bins, where the arrays fit together.
fn check(records: Binned<'_>, residuals: Residuals, rounds: Rounds<'_>) -> Result<usize> {
    let bins: usize = records.widths.iter().sum();
    let squares: usize = records.widths.iter().map(|width| width * width).sum();
    let fits = rounds.curvatures.len() == bins && rounds.gains.len() == squares;
    if !fits || Some(rounds.noise.len()) != rounds.rates.len().checked_mul(bins) {
        return Err(Error::Shape(format!("the arrays do not fit {} rounds of {bins} bins", rounds.rates.len())));
    }
    let (low, high) = residuals.limits;
    if !(-LARGEST..=LARGEST).contains(&low) || !(low..=LARGEST).contains(&high) {
        return Err(Error::parameter("limits", format!("({low}, {high})"), "they must be in order, within 2^20"));
    }
    if !(-LARGEST..=LARGEST).contains(&residuals.base) {
        return Err(Error::parameter("base", residuals.base, "it must lie within 2^20"));
    }
    Ok(bins)
}

/// The values that the bins of a column have gained.
struct Gained {
    column: usize,
    values: Vec<i32>,
}

/// The shape of a column by its average, and by how much it has changed.
fn step(column: usize, gain: &[f64], average: &[f64], shape: &mut [i32]) -> Gained {
    let mut values = Vec::with_capacity(shape.len());
    for (row, value) in gain.chunks_exact(average.len()).zip(shape) {
        let sum: f64 = row.iter().zip(average).map(|(gain, average)| gain * average).sum();
        // What is no number becomes 0.
        let new = ((sum * ONE).round() as i32).clamp(-LARGEST, LARGEST);
        values.push(new - *value);
        *value = new;
    }
    Gained { column, values }
}

/// Consecutive records: their scores, and sums over them.
struct Part<'a> {
    scores: &'a mut [i32],
    sums: &'a mut [i64],
}

impl Part<'_> {
    /// Adds what bins have gained to scores, and residuals to the sums of a column, from the record `first` on.
    fn add_up(
        &mut self,
        records: Binned<'_>,
        residuals: Residuals,
        first: usize,
        gained: &Gained,
        column: usize,
        run: Run<'_>,
    ) {
        self.sums.fill(0);
        let count = self.scores.len();
        let before = &records.column(gained.column)[first..][..count];
        let (bins, labels) = (&records.column(column)[first..][..count], &records.labels[first..][..count]);
        let mut rest = [0i32; BLOCK];
        let blocks = self.scores.chunks_mut(BLOCK).zip(before.chunks(BLOCK));
        for ((scores, before), (bins, labels)) in blocks.zip(bins.chunks(BLOCK).zip(labels.chunks(BLOCK))) {
            for (score, bin) in scores.iter_mut().zip(before) {
                *score += gained.values[usize::from(*bin)];
            }
            let rest = &mut rest[..scores.len()];
            vectorized(run.isa, Subtract { residuals, scores, labels, rest });
            for (rest, bin) in rest.iter().zip(bins) {
                self.sums[usize::from(*bin)] += i64::from(*rest);
            }
        }
    }
}

/// Makes residuals of scores and labels.
struct Subtract<'a> {
    residuals: Residuals,
    scores: &'a [i32],
    labels: &'a [i64],
    rest: &'a mut [i32],
}

impl Work for Subtract<'_> {
    #[inline(always)]
    fn work(self) {
        let (low, high) = self.residuals.limits;
        let (low, high) = (i64::from(low), i64::from(high));
        let pairs = self.rest.iter_mut().zip(self.scores.iter().zip(self.labels));
        if self.residuals.logistic {
            for (rest, (score, label)) in pairs {
                let score = f64::from(*score) / ONE;
                // The exponential of what is below 0 never overflows.
                let small = exp(-score.abs());
                let share = (if score < 0.0 { small } else { 1.0 }) / (1.0 + small);
                *rest = (*label - (share * ONE) as i64).clamp(low, high) as i32;
            }
        } else {
            for (rest, (score, label)) in pairs {
                *rest = (*label - i64::from(*score)).clamp(low, high) as i32;
            }
        }
    }
}
