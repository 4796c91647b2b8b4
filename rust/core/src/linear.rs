//! A halfspace that separates labeled records: Newton's method on their squared slacks, from a start nearby. Not
//! private.
//!
//! It minimizes |w|^2 / 2 + cost times the sum of max(0, 1 - margin)^2. Where a halfspace separates all records, few of
//! them are near it, so that every step but the first ones touches only those: the Newton system holds the records of
//! margin below 1, and is solved by conjugate gradients without being formed. All records are looked at again before
//! the search ends.
//!
//! # Examples
//!
//! ```
//! use hdp_fast_core::linear::{Goal, Records, separate};
//! use hdp_fast_core::run::Run;
//! use hdp_fast_core::simd::Isa;
//!
//! let entries = [0.0, 1.0, 0.2, 2.0, 1.0, -1.0, 3.0, 0.5];
//! let records = Records::new(&entries, 2, &[0, 0, 1, 1], true)?;
//! let goal = Goal { cost: 1e3, margin: 0.5 };
//! let halfspace = separate(records, &[0, 1, 2, 3], None, goal, Run::alone(Isa::detect()?))?;
//! assert_eq!(halfspace.errors, 0);
//! assert!(halfspace.weights[0] > 0.0 && halfspace.weights[1] < 0.0);
//! # Ok::<(), hdp_fast_core::Error>(())
//! ```

use crate::error::{Error, Result};
use crate::memory::{collected, copied, room, zeros};
use crate::run::Run;
use crate::simd::{Matrix, Real, add_projections, add_rows, inner_products};

/// Rows that a thread takes at a time. Sums are over chunks, so that their rounding does not depend on the threads.
const CHUNK: usize = 256;

/// Records kept in sight for each unknown: enough that it rarely happens that another record is cut by where the steps
/// lead.
const NEAR: usize = 6;

/// How often all records are looked at, and how many steps are taken in between, at most.
const MOST_PASSES: usize = 20;
const MOST_STEPS: usize = 30;

/// A step that improves the objective by less than this share of it is the last one.
const STAGNANT: f64 = 1e-3;

/// The share of the gradient that conjugate gradients may leave: at first, and where steps that leave more do not
/// improve the objective any more. After them, the largest number of iterations.
const LOOSE: f64 = 0.1;
const STRICT: f64 = 1e-4;
const MOST_ITERATIONS: usize = 300;

/// Labeled records, read in place.
#[derive(Clone, Copy)]
pub struct Records<'a, T> {
    matrix: Matrix<'a, T>,
    labels: &'a [u8],
}

impl<'a, T: Real> Records<'a, T> {
    /// Records of `columns` entries each, row by row, with one label of 0 or 1 each. `intercept` says whether a
    /// halfspace may have a bias, that is, miss the origin.
    pub fn new(entries: &'a [T], columns: usize, labels: &'a [u8], intercept: bool) -> Result<Records<'a, T>> {
        if labels.len().checked_mul(columns) != Some(entries.len()) {
            let (rows, entries) = (labels.len(), entries.len());
            return Err(Error::Shape(format!("{rows} labels and {columns} columns do not fit {entries} entries")));
        }
        let constant = T::of(f64::from(u8::from(intercept)));
        Ok(Records { matrix: Matrix { entries, columns, constant }, labels })
    }

    fn sign(&self, row: usize) -> f64 {
        if self.labels[row] == 0 { -1.0 } else { 1.0 }
    }
}

/// What the search minimizes, and when it may end.
#[derive(Clone, Copy, Debug)]
pub struct Goal {
    /// The weight of the squared slacks beside half the squared norm of the weights.
    pub cost: f64,
    /// The search ends once every record has this margin, in units where a margin of 1 costs nothing. Above 1 it ends
    /// only at the least objective.
    pub margin: f64,
}

/// The halfspace that predicts 1 where the inner product of weights and record, plus the bias, is at least 0.
#[derive(Clone, Debug)]
pub struct Halfspace {
    /// One weight for each column.
    pub weights: Vec<f64>,
    /// The bias.
    pub bias: f64,
    /// The number of records given to [`separate`] that the halfspace gets wrong or that lie on its boundary.
    pub errors: usize,
}

/// Searches a halfspace for the records of the given rows. The search begins at `start`, which holds a weight for each
/// column and then the bias, or at zeros.
///
/// Nothing here is private. Cost: about 40 bytes for each row given and a handful of passes over them; far more passes
/// without a start.
pub fn separate<T: Real>(
    records: Records<'_, T>,
    rows: &[usize],
    start: Option<&[f64]>,
    goal: Goal,
    run: Run<'_>,
) -> Result<Halfspace> {
    let width = records.matrix.columns + 1;
    if let Some(&row) = rows.iter().find(|&&row| row >= records.labels.len()) {
        return Err(Error::parameter("indices", row, &format!("there are {} records", records.labels.len())));
    }
    let w = match start {
        Some(start) => collected(start.iter().map(|&w| T::of(w)))?,
        None => zeros(Some(width))?,
    };
    if w.len() != width {
        return Err(Error::Shape(format!("start has length {}, but it must be {width}", w.len())));
    }
    Search { records, shrinkage: (2.0 * goal.cost).recip(), margin: goal.margin, run, w }.separated(rows)
}

struct Search<'a, T> {
    records: Records<'a, T>,
    shrinkage: f64,
    margin: f64,
    run: Run<'a>,
    w: Vec<T>,
}

/// Records that the steps look at.
struct Near {
    rows: Vec<usize>,
    margins: Vec<f64>,
}

/// Records of margin below 1; the factor of each is its slack times its sign.
struct Active {
    rows: Vec<usize>,
    factors: Vec<f64>,
}

impl<T: Real> Search<'_, T> {
    fn separated(mut self, rows: &[usize]) -> Result<Halfspace> {
        let (mut last, mut passes) = (f64::INFINITY, 0);
        loop {
            let margins = self.margins(rows, &self.w)?;
            let objective = self.objective(&margins)?;
            let settled = (last - objective).abs() <= STAGNANT * objective;
            if settled || passes == MOST_PASSES || all_reach(self.margin, &margins) {
                return self.halfspace(&margins);
            }
            last = objective;
            passes += 1;
            self.descend(nearest(rows, margins, NEAR * self.w.len())?)?;
        }
    }

    fn halfspace(&self, margins: &[f64]) -> Result<Halfspace> {
        let mut weights = collected(self.w.iter().map(|w| w.get()))?;
        let bias = weights.pop().unwrap_or_default() * self.records.matrix.constant.get();
        Ok(Halfspace { weights, bias, errors: margins.iter().filter(|&&margin| margin <= 0.0).count() })
    }

    /// Newton steps, until all records in sight have the margin or nothing improves.
    fn descend(&mut self, mut near: Near) -> Result<()> {
        let (mut last, mut left) = (f64::INFINITY, LOOSE);
        for _ in 0..MOST_STEPS {
            let objective = self.objective(&near.margins)?;
            let stagnant = last - objective <= STAGNANT * objective;
            if stagnant && left <= STRICT || all_reach(self.margin, &near.margins) {
                break;
            }
            left = if stagnant { left / 10.0 } else { left };
            last = objective;
            let direction = self.direction(&self.active(&near)?, left)?;
            let changes = self.margins(&near.rows, &direction)?;
            let length = self.length(&near.margins, &changes, &direction);
            add_scaled(&mut self.w, length, &direction);
            near.margins.iter_mut().zip(changes).for_each(|(margin, change)| *margin += length * change);
        }
        Ok(())
    }

    fn objective(&self, margins: &[f64]) -> Result<f64> {
        let slacks: f64 = margins.iter().map(|margin| (1.0 - margin).max(0.0).powi(2)).sum();
        let objective = (self.shrinkage * inner(&self.w, &self.w) + slacks) / 2.0;
        // A NaN among the margins is dropped by max, hence the second look.
        if objective.is_finite() && margins.iter().all(|margin| margin.is_finite()) {
            return Ok(objective);
        }
        Err(Error::Parameter("X has an entry that is not finite, or so large that products overflow".into()))
    }

    fn active(&self, near: &Near) -> Result<Active> {
        let count = near.margins.iter().filter(|&&margin| margin < 1.0).count();
        let mut active = Active { rows: room(Some(count))?, factors: room(Some(count))? };
        for (&row, &margin) in near.rows.iter().zip(&near.margins).filter(|&(_, &margin)| margin < 1.0) {
            active.rows.push(row);
            active.factors.push((1.0 - margin) * self.records.sign(row));
        }
        Ok(active)
    }

    /// Where Newton's step leads: conjugate gradients, until they have left this share of the gradient.
    fn direction(&self, active: &Active, share_left: f64) -> Result<Vec<T>> {
        let mut residual = self.sum(&active.rows, |start, rows, sum| {
            add_rows(self.run.isa, self.records.matrix, rows, &active.factors[start..start + rows.len()], sum);
        })?;
        add_scaled(&mut residual, -self.shrinkage, &self.w);
        let mut direction = zeros(Some(residual.len()))?;
        let mut conjugate = copied(&residual)?;
        let mut squared = inner(&residual, &residual);
        let enough = squared * share_left * share_left;
        for _ in 0..MOST_ITERATIONS {
            let mut image = self.sum(&active.rows, |_, rows, sum| {
                add_projections(self.run.isa, self.records.matrix, rows, &conjugate, sum);
            })?;
            add_scaled(&mut image, self.shrinkage, &conjugate);
            let curvature = inner(&conjugate, &image);
            // At the minimum. What has overflowed goes on, for the objective to report.
            if curvature == 0.0 {
                break;
            }
            let step = squared / curvature;
            add_scaled(&mut direction, step, &conjugate);
            add_scaled(&mut residual, -step, &image);
            let left = inner(&residual, &residual);
            if left <= enough {
                break;
            }
            let share = T::of(left / squared);
            conjugate.iter_mut().zip(&residual).for_each(|(old, &new)| *old = new + share * *old);
            squared = left;
        }
        Ok(direction)
    }

    /// The length of the step that minimizes the objective: Newton's method on its slope, which is piecewise linear and
    /// rises, or halving where that leaves the interval known to hold the root.
    fn length(&self, margins: &[f64], changes: &[f64], direction: &[T]) -> f64 {
        let (along, squared) = (inner(&self.w, direction), inner(direction, direction));
        let (mut low, mut high, mut length) = (0.0, f64::INFINITY, 1.0);
        for _ in 0..20 {
            let mut slope = self.shrinkage * (along + length * squared);
            let mut curvature = self.shrinkage * squared;
            for (margin, change) in margins.iter().zip(changes) {
                let slack = (1.0 - margin - length * change).max(0.0);
                slope -= slack * change;
                curvature += if slack > 0.0 { change * change } else { 0.0 };
            }
            if slope < 0.0 {
                low = length
            } else {
                high = length
            }
            let newton = length - slope / curvature;
            let halved = if high.is_finite() { (low + high) / 2.0 } else { 2.0 * length };
            let next = if newton > low && newton < high { newton } else { halved };
            if (next - length).abs() < 1e-6 * length {
                break;
            }
            length = next;
        }
        length
    }

    /// Sign times inner product with w, for each row.
    fn margins(&self, rows: &[usize], w: &[T]) -> Result<Vec<f64>> {
        let mut margins: Vec<f64> = zeros(Some(rows.len()))?;
        self.run.try_for_each_chunk(&mut margins, CHUNK, |chunk, margins| {
            let rows = &rows[chunk * CHUNK..][..margins.len()];
            inner_products(self.run.isa, self.records.matrix, rows, w, margins);
            margins.iter_mut().zip(rows).for_each(|(margin, &row)| *margin *= self.records.sign(row));
            Ok(())
        })?;
        Ok(margins)
    }

    /// The sum of what `add` adds for each chunk of the rows, given the position of its first one.
    fn sum(&self, rows: &[usize], add: impl Fn(usize, &[usize], &mut [T]) + Sync + Send) -> Result<Vec<T>> {
        let width = self.w.len();
        let mut parts: Vec<T> = zeros(rows.len().div_ceil(CHUNK).checked_mul(width))?;
        self.run.try_for_each_chunk(&mut parts, width, |chunk, part| {
            let start = chunk * CHUNK;
            add(start, &rows[start..rows.len().min(start + CHUNK)], part);
            Ok(())
        })?;
        let mut total = zeros(Some(width))?;
        parts.chunks_exact(width).for_each(|part| add_scaled(&mut total, 1.0, part));
        Ok(total)
    }
}

/// The records of least margin: `count` of them, or all below 1 if those are more.
fn nearest(rows: &[usize], mut margins: Vec<f64>, count: usize) -> Result<Near> {
    let below = margins.iter().filter(|&&margin| margin < 1.0).count();
    let count = count.max(below);
    if count >= rows.len() {
        return Ok(Near { rows: copied(rows)?, margins });
    }
    let mut ranked = collected(margins.iter().copied().zip(rows.iter().copied()))?;
    ranked.select_nth_unstable_by(count, |a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    ranked.truncate(count);
    // Read in the order in which they lie in memory.
    ranked.sort_unstable_by_key(|&(_, row)| row);
    margins.clear();
    margins.extend(ranked.iter().map(|&(margin, _)| margin));
    Ok(Near { rows: collected(ranked.iter().map(|&(_, row)| row))?, margins })
}

fn all_reach(goal: f64, margins: &[f64]) -> bool {
    margins.iter().all(|&margin| margin >= goal)
}

fn inner<T: Real>(a: &[T], b: &[T]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a.get() * b.get()).sum()
}

fn add_scaled<T: Real>(sum: &mut [T], factor: f64, of: &[T]) {
    let factor = T::of(factor);
    sum.iter_mut().zip(of).for_each(|(sum, &x)| *sum += factor * x);
}
