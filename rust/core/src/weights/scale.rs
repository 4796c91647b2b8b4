//! The scale at which integer weights have a sum in a public window.

use std::iter::repeat_n;

use super::power::{POINT, mantissa};
use crate::error::Result;
use crate::memory::{collected, reserve, room, zeros};
use crate::run::Run;
use crate::simd::ask_for_huge_pages;

/// Weights that a thread looks at a time.
pub const CHUNK: usize = 1 << 14;

/// The share of kappa that the public window of sums costs: kappa_eff = kappa (1 - 2^-12). Wide enough that n weights
/// that are all rounded at once do not jump over it.
pub const WINDOW: f64 = 1.0 / 4096.0;

/// Logarithms stay above -2^61 units, so that adding the scale cannot overflow.
pub const DEEPEST: i64 = 1 << 61;

/// Weights in a sample that says where to start.
const SAMPLE: usize = 1 << 14;

/// Standard deviations around the scale of the sample between which that of all is expected.
const TRUSTED: f64 = 4.0;

/// A distance to the scale of the sample, in binary digits, beyond which a pass would not tell more.
const WIDEST: f64 = 1.0;

/// A binary digit in units of logarithms.
const UNIT: f64 = (1u64 << POINT) as f64;

/// The integer weights of records with these logarithms, at a scale, the logarithm of c, at which their sum lies in the
/// window: cumulative sums within chunks of [`CHUNK`].
///
/// The scale follows from the weights alone, not from earlier draws, so that with a fixed seed a run that was interrupted
/// draws what it would have drawn.
pub fn running_sums(logs: &[i64], kappa: f64, digits: u32, run: Run<'_>) -> Result<Vec<u64>> {
    let window = Window::new(kappa * logs.len() as f64, digits);
    let mut running: Vec<u64> = zeros(Some(logs.len()))?;
    ask_for_huge_pages(&mut running);
    let mut scale = match logs.len() / SAMPLE {
        0..4 => search(&window, top(logs), |scale| sums(logs, scale, digits, run))?,
        stride => expected_scale(logs, stride, &window, digits, run)?,
    };
    if !window.holds(fill(&mut running, logs, scale, digits, run)?) {
        scale = search(&window, scale, |scale| sums(logs, scale, digits, run))?;
        fill(&mut running, logs, scale, digits, run)?;
    }
    Ok(running)
}

/// The scale at which the greatest weight is 1.
fn top(logs: &[i64]) -> i64 {
    -logs.iter().copied().max().unwrap_or(0)
}

/// Writes cumulative sums of integer weights, those of each chunk, and returns the sum of all. Sums saturate: those that
/// would not fit into a word are far above the window.
fn fill(running: &mut [u64], logs: &[i64], scale: i64, digits: u32, run: Run<'_>) -> Result<u64> {
    run.try_for_each_chunk(running, CHUNK, |chunk, running| {
        let mut sum = 0u64;
        for (running, &log) in running.iter_mut().zip(&logs[chunk * CHUNK..]) {
            sum = sum.saturating_add(integer_weight(log + scale, digits));
            *running = sum;
        }
        Ok(())
    })?;
    Ok(running.chunks(CHUNK).filter_map(|chunk| chunk.last()).fold(0, |sum: u64, &more| sum.saturating_add(more)))
}

/// A scale that very probably fits, by one pass over the weights.
///
/// A sample says where the scale lies but for some deviations. Between them, weights well above 1 stay capped and those
/// well below 1 grow in proportion, so that only the others are looked at in each step of the search.
fn expected_scale(logs: &[i64], stride: usize, window: &Window, digits: u32, run: Run<'_>) -> Result<i64> {
    let sample = collected(logs.iter().copied().step_by(stride))?;
    let of_sample = |scale| sums(&sample, scale, digits, run.sequential());
    let start = search(&window.of(sample.len() as f64 / logs.len() as f64), top(&sample), of_sample)?;
    let deviation = of_sample(start)?.deviation(digits);
    if deviation * TRUSTED > WIDEST {
        return Ok(start);
    }
    let sides = Sides::new(logs, start, (deviation * TRUSTED * UNIT) as i64, digits, run)?;
    search(window, start, |scale| {
        let growth = ((scale - start) as f64 / UNIT).exp2();
        let mut totals = sums(&sides.open, scale, digits, run)?;
        totals.add(Sums { all: (sides.below as f64 * growth) as u64, capped: 0 });
        totals.add(Sums { all: sides.capped, capped: sides.capped });
        Ok(totals)
    })
}

/// Integer weights at a scale, and the logarithms of those that some other scale near it may cap or uncap.
#[derive(Default)]
struct Sides {
    capped: u64,
    below: u64,
    open: Vec<i64>,
}

impl Sides {
    fn new(logs: &[i64], scale: i64, reach: i64, digits: u32, run: Run<'_>) -> Result<Sides> {
        let mut parts = collected((0..logs.len().div_ceil(CHUNK)).map(|_| Sides::default()))?;
        run.try_for_each_chunk(&mut parts, 1, |chunk, part| {
            let start = chunk * CHUNK;
            part[0].add(&logs[start..logs.len().min(start + CHUNK)], scale, reach, digits)
        })?;
        let mut sides = Sides { open: room(Some(parts.iter().map(|part| part.open.len()).sum()))?, ..Sides::default() };
        for part in parts {
            sides.capped = sides.capped.saturating_add(part.capped);
            sides.below = sides.below.saturating_add(part.below);
            sides.open.extend_from_slice(&part.open);
        }
        Ok(sides)
    }

    fn add(&mut self, logs: &[i64], scale: i64, reach: i64, digits: u32) -> Result<()> {
        for &log in logs {
            let x = log + scale;
            if x >= reach {
                self.capped = self.capped.saturating_add(1 << digits);
            } else if x < -reach {
                self.below = self.below.saturating_add(integer_weight(x, digits));
            } else {
                reserve(&mut self.open, 1)?;
                self.open.push(log);
            }
        }
        Ok(())
    }
}

/// floor(2^digits min(2^x, 1)) for x in units of 2^-48; never decreases with x.
#[inline]
pub fn integer_weight(x: i64, digits: u32) -> u64 {
    if x >= 0 {
        return 1 << digits;
    }
    let shift = 62 - i64::from(digits) - (x >> POINT);
    if shift > 63 { 0 } else { mantissa(x as u64 & ((1 << POINT) - 1)) >> shift }
}

/// What the weights at a scale come to.
#[derive(Clone, Copy, Default)]
struct Sums {
    all: u64,
    /// Of it, weights that are capped.
    capped: u64,
}

fn sums(logs: &[i64], scale: i64, digits: u32, run: Run<'_>) -> Result<Sums> {
    let mut parts = collected(repeat_n(Sums::default(), logs.len().div_ceil(CHUNK)))?;
    run.try_for_each_chunk(&mut parts, 1, |chunk, part| {
        let start = chunk * CHUNK;
        for &log in &logs[start..logs.len().min(start + CHUNK)] {
            let weight = integer_weight(log + scale, digits);
            part[0].add(Sums { all: weight, capped: if log + scale >= 0 { weight } else { 0 } });
        }
        Ok(())
    })?;
    let mut sums = Sums::default();
    parts.into_iter().for_each(|part| sums.add(part));
    Ok(sums)
}

impl Sums {
    /// Saturates: far above the window it does not matter by how much.
    fn add(&mut self, other: Sums) {
        self.all = self.all.saturating_add(other.all);
        self.capped = self.capped.saturating_add(other.capped);
    }

    /// The standard deviation, in binary digits, of a scale at which independent weights have this sum.
    fn deviation(self, digits: u32) -> f64 {
        let relative = ((1u64 << digits) as f64 / self.all as f64).sqrt();
        relative * self.all as f64 / (self.all - self.capped) as f64 * std::f64::consts::LOG2_E
    }
}

/// The public window for the sum of the integer weights: K_hi = kappa n 2^b, and K_lo so that (K_hi - K_lo + 2^b) / K_hi
/// is at most the rate; a quarter of the width is left for rounding.
///
/// A step of the scale raises n weights by at most one each, and all of them together by kappa n 2^b 2^-48: less than the
/// width, for kappa n^2 at most 2^49. So some scale meets the window, on every data set.
pub struct Window {
    pub low: f64,
    pub high: f64,
}

impl Window {
    /// The window of weights whose sum is `mass`, in units of 2^-digits.
    pub fn new(mass: f64, digits: u32) -> Window {
        let unit = (1u64 << digits) as f64;
        let high = mass * unit;
        Window { low: high - 0.75 * WINDOW * unit, high }
    }

    fn holds(&self, sum: u64) -> bool {
        (self.low..=self.high).contains(&(sum as f64))
    }

    /// That of a sample, which need not meet it better than its own noise.
    fn of(&self, share: f64) -> Window {
        Window { low: self.low * share * 0.999, high: self.high * share }
    }
}

/// Newton's steps on the sum, which takes the capped weights for settled, inside a bracket that is halved if need be.
fn search(window: &Window, start: i64, mut sums: impl FnMut(i64) -> Result<Sums>) -> Result<i64> {
    // At kappa n >= 1, 2^-64 is too small a scale for any weights.
    let (mut low, mut high, mut scale) = (-(64i64 << POINT), DEEPEST, start);
    let target = (window.low + window.high) / 2.0;
    for round in 0.. {
        let totals = sums(scale)?;
        let (all, capped) = (totals.all as f64, totals.capped as f64);
        if window.holds(totals.all) || high - low <= 1 {
            break;
        }
        if all < window.low {
            low = scale
        } else {
            high = scale
        }
        let step = ((target - capped) / (all - capped)).log2() * UNIT;
        let newton = if step.is_finite() { scale.saturating_add(step as i64) } else { i64::MAX };
        let halved = low + (high - low) / 2;
        scale = if round < 40 && low < newton && newton < high { newton } else { halved };
    }
    Ok(scale)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::{Seed, Stream};

    #[test]
    fn integer_weights_never_decrease() {
        let mut rng = Seed::reproducible([11; 32]).stream(Stream::Speed, 0);
        for digits in [13, 31, 40, 52] {
            for _ in 0..2000 {
                let x = -((rng.next_u64() >> (2 + rng.below(50))) as i64);
                let weights: Vec<u64> = (x - 3..x + 4).map(|x| integer_weight(x, digits)).collect();
                assert!(weights.is_sorted(), "2^{digits} at {x}");
            }
            for whole in 0..60 {
                let x = -(whole << POINT);
                let weights: Vec<u64> = (x - 3..x + 4).map(|x| integer_weight(x, digits)).collect();
                assert!(weights.is_sorted(), "2^{digits} at {x}");
                assert_eq!(weights[3], (1u64 << digits) >> whole);
            }
        }
    }
}
