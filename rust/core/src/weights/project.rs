//! Projection onto kappa-dense weights: min(c w, 1) with the smallest c at which they sum to kappa n.
//!
//! 1 / c is a threshold between the weights that are capped and those that are scaled. It is found by selection: a sample
//! of the weights says where it lies but for a small share of them, one pass over all confirms that and collects the
//! share, and halving finds it there.

use crate::error::{Error, Result};
use crate::memory::{collected, copied, reserve, room};
use crate::run::Run;

/// Weights that a thread looks at a time.
const CHUNK: usize = 1 << 16;

/// Weights in the sample, and how far around its own threshold the sample is trusted: six standard deviations of a rank.
const SAMPLE: usize = 1 << 16;
const TRUSTED: usize = 3 << 8;

/// Running sums, so that the processor need not wait for one to add to it.
const LANES: usize = 8;

/// How much c is raised so that the sum does not fall below kappa n through rounding: the sums of chunks and of lanes
/// err by less than 2^-37 of themselves up to 2^40 weights.
const MARGIN: f64 = 1.0 / (1u64 << 36) as f64;

/// Writes min(c w, 1) to `out`, which has the length of `w`, for the smallest c at which the sum is kappa n. Rounding
/// may make the sum a little larger, never smaller.
///
/// The weights must be finite and at least 0, kappa in (0, 1], and at least kappa n of the weights positive.
///
/// Cost: O(n) expected, two passes over w.
pub fn project(w: &[f64], kappa: f64, out: &mut [f64], run: Run<'_>) -> Result<()> {
    let c = dense_scale(w, kappa, run)?;
    if !c.is_normal() {
        out.copy_from_slice(w);
        return project_extreme(out, kappa, run);
    }
    run.try_for_each_chunk(out, CHUNK, |chunk, out| {
        let start = chunk * CHUNK;
        out.iter_mut().zip(&w[start..]).for_each(|(out, &w)| *out = (c * w).min(1.0));
        Ok(())
    })
}

/// The same as [`project`], in place.
pub fn project_in_place(w: &mut [f64], kappa: f64, run: Run<'_>) -> Result<()> {
    let c = dense_scale(w, kappa, run)?;
    if c.is_normal() { cap(w, c, run) } else { project_extreme(w, kappa, run) }
}

fn cap(w: &mut [f64], c: f64, run: Run<'_>) -> Result<()> {
    run.try_for_each_chunk(w, CHUNK, |_, w| {
        w.iter_mut().for_each(|w| *w = (c * *w).min(1.0));
        Ok(())
    })
}

/// Weights whose sums, or c itself, leave the range of floats: divided by a power of two above the threshold and cut at
/// 1 before the search, which changes neither what is capped nor, by more than rounding, what is scaled.
///
/// Cost: a few passes more.
fn project_extreme(w: &mut [f64], kappa: f64, run: Run<'_>) -> Result<()> {
    let (target, positive) = (kappa * w.len() as f64, w.iter().filter(|&&w| w > 0.0).count() as f64);
    if positive < target {
        return Err(too_few(positive, target));
    }
    if positive == target {
        w.iter_mut().for_each(|w| *w = f64::from(u8::from(*w > 0.0)));
        return Ok(());
    }
    let unit = Unit::above_threshold(w, target, run)?;
    run.try_for_each_chunk(w, CHUNK, |_, w| {
        w.iter_mut().for_each(|w| *w = unit.share(*w));
        Ok(())
    })?;
    cap(w, dense_scale(w, kappa, run)?, run)
}

/// A power of two as the reciprocal of its root, since it may lie out of the range of floats.
#[derive(Clone, Copy)]
struct Unit(f64, f64);

impl Unit {
    /// The exponent of the least of all floats.
    const LEAST: i32 = -1074;

    /// Sums of weights down to 2^-APART of a unit lose nothing: smaller ones come to less than rounding.
    const APART: i32 = 900;

    fn new(exponent: i32) -> Unit {
        let half = exponent / 2;
        Unit(2f64.powi(-half), 2f64.powi(half - exponent))
    }

    /// min(w / unit, 1).
    fn share(self, w: f64) -> f64 {
        (w * self.0 * self.1).min(1.0)
    }

    /// A unit at or above the threshold, and less than 2^(APART + 2) times as large.
    fn above_threshold(w: &[f64], target: f64, run: Run<'_>) -> Result<Unit> {
        let largest = w.iter().copied().fold(0.0, f64::max).log2().clamp(f64::from(Unit::LEAST), 1024.0);
        let top = largest.ceil() as i32 + 1;
        for steps in [2, 1] {
            let unit = Unit::new((top - steps * Unit::APART).max(Unit::LEAST));
            let mut sum = 0.0;
            for w in w.chunks(CHUNK) {
                run.check()?;
                sum += w.iter().map(|&w| unit.share(w)).sum::<f64>();
            }
            if sum < target {
                return Ok(unit);
            }
        }
        Ok(Unit::new(top))
    }
}

/// The smallest c at which the sum of min(c w, 1) is kappa n, raised by more than rounding can take away.
///
/// The weights must be finite and at least 0, and kappa in (0, 1]; at least kappa n of them must be positive.
fn dense_scale(w: &[f64], kappa: f64, run: Run<'_>) -> Result<f64> {
    let mut search = Search::new(kappa * w.len() as f64);
    let mut open = bracketed(w, &mut search, run)?;
    search.halve(&mut open);
    search.scale()
}

/// What is known of the threshold 1 / c: the number of weights above it, and the sum of those below.
struct Search {
    target: f64,
    capped: f64,
    scaled: f64,
    least_capped: f64,
}

impl Search {
    fn new(target: f64) -> Search {
        Search { target, capped: 0.0, scaled: 0.0, least_capped: f64::INFINITY }
    }

    /// The sum of min(w / threshold, 1), given those weights more that are capped and scaled at it.
    fn sum_at(&self, threshold: f64, capped: f64, scaled: f64) -> f64 {
        self.capped + capped + (self.scaled + scaled) / threshold
    }

    /// Finds the threshold among the weights that are still open.
    fn halve(&mut self, mut open: &mut [f64]) {
        while !open.is_empty() {
            let middle = open.len() / 2;
            let (above, pivot, below) = open.select_nth_unstable_by(middle, |a, b| b.total_cmp(a));
            let rest = below.iter().sum::<f64>() + *pivot;
            // At the threshold itself it makes no difference whether a weight is capped or scaled.
            if *pivot <= 0.0 || self.sum_at(*pivot, above.len() as f64, rest) >= self.target {
                self.scaled += rest;
                open = above;
            } else {
                self.capped += above.len() as f64 + 1.0;
                self.least_capped = *pivot;
                open = below;
            }
        }
    }

    fn scale(&self) -> Result<f64> {
        if self.scaled > 0.0 {
            Ok((self.target - self.capped) / self.scaled * (1.0 + MARGIN))
        } else if self.capped >= self.target {
            Ok(self.least_capped.recip())
        } else {
            Err(too_few(self.capped, self.target))
        }
    }
}

fn too_few(positive: f64, target: f64) -> Error {
    Error::Parameter(format!("w has {positive} positive entries, but it must have at least kappa n = {target}"))
}

/// Counts and sums the weights that certainly lie above or below the threshold, and returns the others.
fn bracketed(w: &[f64], search: &mut Search, run: Run<'_>) -> Result<Vec<f64>> {
    let (low, high) = bracket(w, search.target / w.len() as f64)?;
    let mut parts = collected((0..w.len().div_ceil(CHUNK)).map(|_| Part::default()))?;
    run.try_for_each_chunk(&mut parts, 1, |chunk, part| {
        let start = chunk * CHUNK;
        part[0] = count_chunk(&w[start..w.len().min(start + CHUNK)], low, high)?;
        Ok(())
    })?;
    let mut open = room(Some(parts.iter().map(|part| part.open.len()).sum()))?;
    parts.iter().for_each(|part| open.extend_from_slice(&part.open));
    let (capped, scaled) = parts.iter().fold((0.0, 0.0), |sums, part| (sums.0 + part.capped, sums.1 + part.scaled));
    let inside: f64 = open.iter().sum();
    let below_high = high.is_infinite() || search.sum_at(high, capped, scaled + inside) < search.target;
    let above_low = low <= 0.0 || search.sum_at(low, capped + open.len() as f64, scaled) >= search.target;
    if !(below_high && above_low) {
        // The sample misled: rare, or weights that follow its stride.
        return copied(w);
    }
    (search.capped, search.scaled) = (capped, scaled);
    Ok(open)
}

/// Bounds that probably hold the threshold between them.
fn bracket(w: &[f64], kappa: f64) -> Result<(f64, f64)> {
    let stride = w.len() / SAMPLE;
    if stride < 4 {
        return Ok((0.0, f64::INFINITY));
    }
    let mut sample = collected(w.iter().copied().step_by(stride))?;
    let mut search = Search::new(kappa * sample.len() as f64);
    search.halve(&mut sample);
    let Ok(c) = search.scale() else { return Ok((0.0, f64::INFINITY)) };
    let above = sample.iter().filter(|&&w| w * c >= 1.0).count();
    let mut ranked = |rank: usize| *sample.select_nth_unstable_by(rank, |a, b| b.total_cmp(a)).1;
    let low = if above + TRUSTED < w.len().div_ceil(stride) { ranked(above + TRUSTED) } else { 0.0 };
    let high = if above > TRUSTED { ranked(above - TRUSTED) } else { f64::INFINITY };
    Ok((low, high))
}

/// What one chunk adds.
#[derive(Default)]
struct Part {
    capped: f64,
    scaled: f64,
    open: Vec<f64>,
}

fn count_chunk(w: &[f64], low: f64, high: f64) -> Result<Part> {
    let (mut capped, mut scaled, mut open) = ([0u64; LANES], [0.0; LANES], Vec::new());
    for group in w.chunks(LANES) {
        let mut undecided = false;
        for (lane, &w) in group.iter().enumerate() {
            capped[lane] += u64::from(w >= high);
            scaled[lane] += if w < low { w } else { 0.0 };
            undecided |= w >= low && w < high;
        }
        if undecided {
            reserve(&mut open, LANES)?;
            open.extend(group.iter().filter(|&&w| w >= low && w < high));
        }
    }
    Ok(Part { capped: capped.iter().sum::<u64>() as f64, scaled: scaled.iter().sum(), open })
}
