//! The threshold between weights that are capped and weights that are scaled, by selection.
//!
//! A sample of the weights says between which bounds it lies. One pass over all of them counts and sums what is beside
//! the bounds and collects the few between, among which Newton's steps end. Nothing but time depends on the sample.

use crate::error::{Error, Result};
use crate::memory::{collected, reserve, room};
use crate::noise::high;
use crate::run::Run;
use crate::simd::{Beside, Bounds, divide};

/// Weights that a thread looks at a time.
const CHUNK: usize = 1 << 16;

/// So few weights are not sampled.
const FEW: usize = 1 << 14;

/// Weights in the sample: one at a place of its own in each of as many stretches of the same length, so that periods
/// don't mislead it.
const SAMPLE: usize = 1 << 12;

/// Standard deviations around the threshold of the sample between which that of all is expected.
const TRUSTED: f64 = 4.0;

/// Of the sample, what must be equal to count as a tie.
const TIED: usize = 8;

/// Steps after which halving is tried beside Newton's. They hardly ever are as many.
const QUICK: usize = 20;

/// Rounds after which a bound is moved all the way.
const MOST: u32 = 8;

/// The least of all floats above 0, at which every weight but 0 is capped.
const LEAST: f64 = f64::from_bits(1);

/// What leaves room for rounding between bounds that are equal but for it.
const ROUNDING: f64 = 1.0 / (1 << 30) as f64;

/// How much c is raised so that the sum does not fall below kappa n through rounding: the sums of chunks and of lanes
/// err by less than 2^-37 of themselves up to 2^32 weights.
const MARGIN: f64 = 1.0 / (1u64 << 36) as f64;

/// The smallest c at which the sum of min(c w, 1) is kappa n, raised by more than rounding can take away; or a number
/// that is not normal where sums leave the range of floats or too few weights are above 0.
///
/// Refuses weights that are negative or not finite. kappa must lie in (0, 1].
pub fn dense_scale(w: &[f64], kappa: f64, run: Run<'_>) -> Result<f64> {
    let target = kappa * w.len() as f64;
    let sums = if w.len() <= FEW {
        let at = |threshold| Ok(divided(w, beside(threshold), run)?.sums());
        solve(target, f64::INFINITY, at)?
    } else {
        solve_bracketed(w, target, run)?
    };
    Ok(sums.threshold(target).recip() * (1.0 + MARGIN))
}

/// What weights come to at a threshold.
#[derive(Clone, Copy)]
struct Sums {
    /// The number of those above it, which are capped.
    capped: f64,
    /// The sum of the others, which are scaled.
    scaled: f64,
}

impl Sums {
    /// The sum of min(w / threshold, 1).
    fn at(self, threshold: f64) -> f64 {
        self.capped + self.scaled / threshold
    }

    /// Where that sum would be the target, were the same weights capped.
    fn threshold(self, target: f64) -> f64 {
        self.scaled / (target - self.capped)
    }
}

/// The sums at the threshold where min(w / threshold, 1) has the sum `target`; `sums` has them for any threshold.
///
/// As a function of c = 1 / threshold the sum is concave. So Newton's steps, after the first, approach from small c on,
/// and end where they pass no weight any more.
fn solve(target: f64, start: f64, mut sums: impl FnMut(f64) -> Result<Sums>) -> Result<Sums> {
    let (mut low, mut threshold) = (0.0, start);
    let mut known = sums(start)?;
    if known.capped >= target {
        (threshold, known) = (f64::INFINITY, sums(f64::INFINITY)?);
    }
    for step in 0.. {
        let next = known.threshold(target);
        // Beyond the first step, what does not fall is at the threshold up to rounding.
        if !next.is_finite() || (step > 0 && next >= threshold) {
            break;
        }
        let there = sums(next)?;
        if there.capped == known.capped || there.capped >= target {
            break;
        }
        (threshold, known) = (next, there);
        if step > QUICK {
            let middle = halfway(low, threshold);
            let there = sums(middle)?;
            if there.capped >= target || there.at(middle) >= target {
                low = middle;
            } else {
                (threshold, known) = (middle, there);
            }
        }
    }
    Ok(known)
}

/// The float in the middle between two that are at least 0, in their order.
fn halfway(low: f64, high: f64) -> f64 {
    f64::from_bits(u64::midpoint(low.to_bits(), high.to_bits()))
}

/// The same for many weights: [`solve`] among those between bounds that hold the threshold.
///
/// Bounds that do not are replaced on the side of which the threshold is. The other one is not tested again, so that
/// rounding cannot lead back.
fn solve_bracketed(w: &[f64], target: f64, run: Run<'_>) -> Result<Sums> {
    let (mut bounds, start) = bracket(w, target, run)?;
    let (mut below_high, mut above_low) = (false, false);
    let mut rounds = 0;
    loop {
        let all = divided(w, bounds, run)?;
        let inside = divided(&all.open, beside(f64::INFINITY), run)?.below + all.tied;
        let at_high = Sums { capped: all.above, scaled: all.below + inside };
        let at_low = Sums { capped: all.above + all.ties + all.open.len() as f64, scaled: all.below };
        below_high |= bounds.high == f64::INFINITY || at_high.capped < target && at_high.at(bounds.high) <= target;
        above_low |= bounds.low == LEAST || at_low.at(bounds.low) >= target;
        if !below_high {
            above_low = true;
            bounds = Bounds { low: bounds.high, high: f64::INFINITY, ..bounds };
        } else if !above_low {
            let few = (w.len() as f64 - at_low.capped) * 8.0 < w.len() as f64;
            let low = if few || rounds > MOST { LEAST } else { lower(at_low.threshold(target), bounds.low) };
            bounds = Bounds { low, high: bounds.low, ..bounds };
            rounds += 1;
        } else {
            return solve(target, start.clamp(bounds.low, bounds.high), |threshold| {
                let open = divided(&all.open, beside(threshold), run)?.sums();
                let (ties, tied) = if bounds.tie > threshold { (all.ties, 0.0) } else { (0.0, all.tied) };
                Ok(Sums { capped: all.above + ties + open.capped, scaled: all.below + tied + open.scaled })
            });
        }
    }
}

/// A bound well below the threshold, of which one of Newton's steps from `high` on says that it is at most `next`.
fn lower(next: f64, high: f64) -> f64 {
    let low = next - 4.0 * (high - next) - ROUNDING * next;
    if low > LEAST { low } else { LEAST }
}

/// Bounds between which the threshold probably lies, and the threshold of the sample.
fn bracket(w: &[f64], target: f64, run: Run<'_>) -> Result<(Bounds, f64)> {
    let mut sample = collected((0..SAMPLE).map(|stretch| w[place(stretch, w.len())]))?;
    let size = sample.len() as f64;
    let target = target / w.len() as f64 * size;
    let root = |target, start| {
        let sums = solve(target, start, |threshold| Ok(divided(&sample, beside(threshold), run.sequential())?.sums()))?;
        Ok(sums.threshold(target).clamp(LEAST, f64::MAX))
    };
    let start: f64 = root(target, f64::INFINITY)?;
    let spread = TRUSTED * (squares(&sample, start) - target / size * target).max(0.0).sqrt();
    let low = root(target + spread, start)? * (1.0 - ROUNDING);
    let high = if spread < target { root(target - spread, start)? * (1.0 + ROUNDING) } else { f64::INFINITY };
    // What is no number in the sample is refused by the pass over all.
    let (low, high) = if low <= high { (low.max(LEAST), high) } else { (LEAST, f64::INFINITY) };
    sample.retain(|w| (low..=high).contains(w));
    Ok((Bounds { low, high, tie: most_frequent(&mut sample) }, start))
}

/// The place in a stretch, which depends on nothing else but their numbers.
fn place(stretch: usize, n: usize) -> usize {
    let start = |stretch: usize| (stretch as u128 * n as u128 / SAMPLE as u128) as u64;
    let first = start(stretch);
    let mixed = (stretch as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (first + high(mixed ^ mixed >> 29, start(stretch + 1) - first)) as usize
}

/// The sum of min(w / threshold, 1)^2.
fn squares(sample: &[f64], threshold: f64) -> f64 {
    let mut sums = [0.0; 16];
    for group in sample.as_chunks::<16>().0 {
        for (sum, w) in sums.iter_mut().zip(group) {
            let share = w / threshold;
            *sum += if share < 1.0 { share * share } else { 1.0 };
        }
    }
    sums.iter().sum()
}

/// The most frequent of values, if it is frequent; else NaN, which equals none.
fn most_frequent(values: &mut [f64]) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    let runs = values.chunk_by(|a, b| a == b);
    runs.max_by_key(|run| run.len()).filter(|run| run.len() >= TIED).map_or(f64::NAN, |run| run[0])
}

/// Bounds that leave nothing between: weights up to the threshold are added up, those above it counted.
fn beside(threshold: f64) -> Bounds {
    Bounds { low: threshold.next_up(), high: threshold, tie: f64::NAN }
}

/// Weights beside bounds, and those between.
struct Divided {
    above: f64,
    below: f64,
    ties: f64,
    /// The sum of the ties.
    tied: f64,
    open: Vec<f64>,
}

impl Divided {
    fn sums(&self) -> Sums {
        Sums { capped: self.above, scaled: self.below }
    }
}

/// What one chunk adds.
#[derive(Default)]
struct Part {
    beside: Beside,
    open: Vec<f64>,
}

/// Divides the weights chunk by chunk, so that sums do not depend on the number of threads.
fn divided(w: &[f64], bounds: Bounds, run: Run<'_>) -> Result<Divided> {
    let mut parts = collected((0..w.len().div_ceil(CHUNK)).map(|_| Part::default()))?;
    run.try_for_each_chunk(&mut parts, 1, |chunk, part| {
        let start = chunk * CHUNK;
        part[0] = divided_chunk(&w[start..w.len().min(start + CHUNK)], bounds, run)?;
        Ok(())
    })?;
    let mut open = room(Some(parts.iter().map(|part| part.open.len()).sum()))?;
    parts.iter().for_each(|part| open.extend_from_slice(&part.open));
    let sum = |number: fn(&Beside) -> f64| parts.iter().map(|part| number(&part.beside)).sum::<f64>();
    let ties = sum(|beside| beside.ties() as f64);
    let tied = if ties > 0.0 { ties * bounds.tie } else { 0.0 };
    Ok(Divided { above: sum(|beside| beside.above() as f64), below: sum(Beside::below), ties, tied, open })
}

fn divided_chunk(w: &[f64], bounds: Bounds, run: Run<'_>) -> Result<Part> {
    let mut open = Vec::new();
    let beside = divide(run.isa, w, bounds, |more| {
        reserve(&mut open, more.len())?;
        open.extend_from_slice(more);
        Ok(())
    })?;
    if beside.suspect() && !w.iter().all(|w| (0.0..f64::INFINITY).contains(w)) {
        return Err(Error::Parameter("w has an entry that is not a finite number of at least 0".into()));
    }
    Ok(Part { beside, open })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::simd::Isa;

    /// Beyond either bound of a sample that is heavier, or lighter, than all other weights.
    #[test]
    fn the_threshold_lies_anywhere_beside_a_sample_unlike_the_rest() {
        let n = 5 * FEW;
        for (sampled, other) in [(2.0, 1.0), (1.0, 2.0), (1e9, 1.0), (1.0, 1e9)] {
            let mut w: Vec<f64> = (0..n).map(|i| other * (1.0 + (i % 1000) as f64 / 1000.0)).collect();
            (0..SAMPLE).for_each(|stretch| w[place(stretch, n)] *= sampled / other);
            for kappa in [0.02, 0.3, 0.9] {
                let c = dense_scale(&w, kappa, Run::alone(Isa::Portable)).unwrap();
                let (sum, target) = (w.iter().map(|w| (c * w).min(1.0)).sum::<f64>(), kappa * n as f64);
                assert!((target..=target * (1.0 + 1e-9)).contains(&sum), "{sampled} {other} {kappa}: {sum}");
            }
        }
    }
}
