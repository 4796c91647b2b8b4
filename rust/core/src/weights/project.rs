//! Projection onto kappa-dense weights: min(c w, 1) with the smallest c at which they sum to kappa n.
//!
//! 1 / c is a threshold between the weights that are capped and those that are scaled. It is found by selection: a sample
//! of the weights says where it lies but for a small share of them, one pass over all confirms that and collects the
//! share, and halving finds it there.

use crate::error::{Error, Result};
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

/// Writes min(c w, 1) to `out`, of the same length as `w`; the entries sum to kappa n or a little more.
///
/// Cost: O(n) expected, two passes over w.
pub fn project(w: &[f64], kappa: f64, out: &mut [f64], run: Run<'_>) -> Result<()> {
    let c = dense_scale(w, kappa, run)?;
    run.try_for_each_chunk(out, CHUNK, |chunk, out| {
        let start = chunk * CHUNK;
        out.iter_mut().zip(&w[start..]).for_each(|(out, &w)| *out = (c * w).min(1.0));
        Ok(())
    })
}

/// In place.
pub fn project_in_place(w: &mut [f64], kappa: f64, run: Run<'_>) -> Result<()> {
    let c = dense_scale(w, kappa, run)?;
    run.try_for_each_chunk(w, CHUNK, |_, w| {
        w.iter_mut().for_each(|w| *w = (c * *w).min(1.0));
        Ok(())
    })
}

/// The smallest c at which the sum of min(c w, 1) is kappa n, raised by less than rounding can take away.
///
/// The weights must be finite and at least 0, and kappa in (0, 1]; at least kappa n of them must be positive.
fn dense_scale(w: &[f64], kappa: f64, run: Run<'_>) -> Result<f64> {
    let mut search = Search::new(kappa * w.len() as f64);
    let mut open = bracketed(w, &mut search, run)?;
    search.halve(&mut open);
    search.scale()
}

/// What is known of the threshold 1 / c: so many weights lie above it, and those below sum to so much.
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
            let rule = "it must have at least kappa n";
            Err(Error::Parameter(format!("w has {} positive entries, but {rule} = {}", self.capped, self.target)))
        }
    }
}

/// Counts and sums the weights that certainly lie above or below the threshold, and returns the others.
fn bracketed(w: &[f64], search: &mut Search, run: Run<'_>) -> Result<Vec<f64>> {
    let (low, high) = bracket(w, search.target / w.len() as f64);
    let mut parts: Vec<Part> = (0..w.len().div_ceil(CHUNK)).map(|_| Part::default()).collect();
    run.try_for_each_chunk(&mut parts, 1, |chunk, part| {
        let start = chunk * CHUNK;
        part[0] = look(&w[start..w.len().min(start + CHUNK)], low, high);
        Ok(())
    })?;
    let open: Vec<f64> = parts.iter().flat_map(|part| part.open.iter().copied()).collect();
    let (capped, scaled) = parts.iter().fold((0.0, 0.0), |sums, part| (sums.0 + part.capped, sums.1 + part.scaled));
    let inside: f64 = open.iter().sum();
    let below_high = high.is_infinite() || search.sum_at(high, capped, scaled + inside) < search.target;
    let above_low = low <= 0.0 || search.sum_at(low, capped + open.len() as f64, scaled) >= search.target;
    if !(below_high && above_low) {
        // The sample misled: rare, or weights that follow its stride.
        return Ok(w.to_vec());
    }
    (search.capped, search.scaled) = (capped, scaled);
    Ok(open)
}

/// Bounds that probably hold the threshold between them.
fn bracket(w: &[f64], kappa: f64) -> (f64, f64) {
    let stride = w.len() / SAMPLE;
    if stride < 4 {
        return (0.0, f64::INFINITY);
    }
    let mut sample: Vec<f64> = w.iter().copied().step_by(stride).collect();
    let mut search = Search::new(kappa * sample.len() as f64);
    search.halve(&mut sample);
    let Ok(c) = search.scale() else { return (0.0, f64::INFINITY) };
    let above = sample.iter().filter(|&&w| w * c >= 1.0).count();
    let mut ranked = |rank: usize| *sample.select_nth_unstable_by(rank, |a, b| b.total_cmp(a)).1;
    let low = if above + TRUSTED < ranked_length(w, stride) { ranked(above + TRUSTED) } else { 0.0 };
    let high = if above > TRUSTED { ranked(above - TRUSTED) } else { f64::INFINITY };
    (low, high)
}

fn ranked_length(w: &[f64], stride: usize) -> usize {
    w.len().div_ceil(stride)
}

/// What one chunk adds.
#[derive(Default)]
struct Part {
    capped: f64,
    scaled: f64,
    open: Vec<f64>,
}

fn look(w: &[f64], low: f64, high: f64) -> Part {
    let (mut capped, mut scaled, mut open) = ([0u64; LANES], [0.0; LANES], Vec::new());
    for group in w.chunks(LANES) {
        let mut undecided = false;
        for (lane, &w) in group.iter().enumerate() {
            capped[lane] += u64::from(w >= high);
            scaled[lane] += if w < low { w } else { 0.0 };
            undecided |= w >= low && w < high;
        }
        if undecided {
            open.extend(group.iter().filter(|&&w| w >= low && w < high));
        }
    }
    Part { capped: capped.iter().sum::<u64>() as f64, scaled: scaled.iter().sum(), open }
}
