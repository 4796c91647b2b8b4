//! Projection onto kappa-dense weights: min(c w, 1) with the smallest c at which they sum to kappa n.

use super::threshold::dense_scale;
use crate::error::{Error, Result};
use crate::run::Run;
use crate::simd;

/// Weights that a thread looks at a time.
const CHUNK: usize = 1 << 16;

/// Where the result of a projection goes.
pub enum Out<'a> {
    /// To memory that was not written yet, or that will be read at once.
    Fresh(&'a mut [f64]),
    /// To memory in use.
    Used(&'a mut [f64]),
}

/// Results of so many weights are not held by the caches of today's processors.
const LARGE: usize = 1 << 21;

/// Writes min(c w, 1) to `out`, which has the length of `w`, for the smallest c at which the sum is kappa n. Rounding
/// may make the sum a little larger, never smaller.
///
/// Refuses weights that are not finite numbers of at least 0, and fewer than kappa n weights above 0, before anything is
/// written; kappa must lie in (0, 1].
///
/// Cost: O(n) expected, two passes over w.
pub fn project(w: &[f64], kappa: f64, out: Out<'_>, run: Run<'_>) -> Result<()> {
    let c = dense_scale(w, kappa, run)?;
    let past_caches = matches!(&out, Out::Used(out) if out.len() >= LARGE);
    let (Out::Fresh(out) | Out::Used(out)) = out;
    if !c.is_normal() {
        count_positive(w, kappa)?;
        out.copy_from_slice(w);
        return project_extreme(out, kappa, run);
    }
    run.try_for_each_chunk(out, CHUNK, |chunk, out| {
        let w = &w[chunk * CHUNK..][..out.len()];
        if past_caches {
            simd::cap_past_caches(run.isa, w, c, out);
        } else {
            simd::cap(run.isa, w, c, out);
        }
        Ok(())
    })
}

/// The same as [`project`], in place; weights that are refused stay as they are.
pub fn project_in_place(w: &mut [f64], kappa: f64, run: Run<'_>) -> Result<()> {
    let c = dense_scale(w, kappa, run)?;
    if c.is_normal() { cap(w, c, run) } else { project_extreme(w, kappa, run) }
}

fn cap(w: &mut [f64], c: f64, run: Run<'_>) -> Result<()> {
    run.try_for_each_chunk(w, CHUNK, |_, w| {
        simd::cap_in_place(run.isa, w, c);
        Ok(())
    })
}

/// Weights whose sums, or c itself, leave the range of floats: divided by a power of two above the threshold and cut at
/// 1 before the search, which changes neither what is capped nor, by more than rounding, what is scaled.
///
/// Cost: a few passes more.
fn project_extreme(w: &mut [f64], kappa: f64, run: Run<'_>) -> Result<()> {
    let target = kappa * w.len() as f64;
    if count_positive(w, kappa)? == target {
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

/// The number of weights above 0; an error if there are fewer than kappa n.
fn count_positive(w: &[f64], kappa: f64) -> Result<f64> {
    let (target, positive) = (kappa * w.len() as f64, w.iter().filter(|&&w| w > 0.0).count() as f64);
    if positive < target {
        let rule = format!("it must have at least kappa n = {target}");
        return Err(Error::Parameter(format!("w has {positive} positive entries, but {rule}")));
    }
    Ok(positive)
}
