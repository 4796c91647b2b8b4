//! Several runs of mechanisms of bounded range: the optimum over all adaptive choices of them.
//!
//! A run is dominated by one of the coins of offset t, 0 <= t <= epsilon: the loss is t with probability
//! p = (1 - e^(t - epsilon)) / (1 - e^-epsilon) under P, and else t - epsilon. Which offset is the worst depends on the
//! losses so far, so that the worst curve of k runs is
//!
//! ```text
//! H_0(g) = (1 - e^g)^+,    H_k(g) = max over t of p H_{k-1}(g - t) + (1 - p) H_{k-1}(g - t + epsilon)
//! ```
//!
//! (Dong, Durfee and Rogers 2020.) A single run has the coins' envelope. The envelope composed with itself is what
//! a choice of the offset after the outcome could do: its variance is a third larger.
//!
//! Each curve is kept by dots on a grid that divides epsilon, which are connected linearly in e^g. The connected curve
//! is convex in e^g, lies above the true one, and is again a curve of coins and their mixtures; so is what follows from
//! it.
//!
//! Runs may take turns with other mechanisms. Write S for the composition with a fixed pair and T for a run: S is linear
//! and positive, so that T S <= S T at every curve. Moving all runs to the front only raises the bound, and what k of
//! them do to any curve is at most its composition with the pair of H_k. So blocks of runs compose like other pairs.

use super::U;

/// Runs of a block. More of them gain less than a hundredth of epsilon, and cost the square.
pub const MOST_RUNS: u64 = 32;

/// Steps of the grid in an epsilon, times the number of runs.
const STEPS: u64 = 512;

/// How often the offset within a cell is improved before the tangent there bounds the rest.
const SECANTS: usize = 8;

/// What the few roundings of one dot may take from it; all terms are positive.
const RAISED: f64 = 1.0 + 32.0 * U;

/// The losses above 0 of a block of runs, ascending, and their probabilities under P, rounded up.
///
/// Cost: 2^18 cells at most.
pub fn worst_losses(epsilon: f64, runs: u64) -> Vec<(f64, f64)> {
    let steps = (STEPS / runs).max(1);
    let width = epsilon / steps as f64;
    let cells = Cells::new(epsilon, steps as usize);
    let mut curve = vec![0.0; (runs * steps) as usize + 1];
    for run in 1..=runs {
        cells.run(&mut curve, (run * steps) as usize);
    }
    let slope = |low: usize| curve[low] - curve.get(low + 1).copied().unwrap_or(0.0);
    let (growth, ratio) = (width.exp_m1(), width.exp());
    let mass = |i: usize| {
        let (below, above) = (slope(i - 1) * ratio, slope(i));
        ((below - above).max(0.0) + 4.0 * U * (below + above)) / growth
    };
    (1..curve.len()).map(|i| (i as f64 * width, mass(i))).collect()
}

/// Offsets between two neighboring points of the grid. Their e^-t is the upper end's times u = 1 + part * growth, part
/// from 0 at the upper end to 1 at the lower.
struct Cell {
    /// The probability of the loss t at the upper end, and of the other loss.
    first: f64,
    other: f64,
    /// From 1 - 1 / u to the change of the former.
    factor: f64,
}

/// All offsets, and the grid below 0.
struct Cells {
    cells: Vec<Cell>,
    /// e^width - 1.
    growth: f64,
    /// 1 - e^-g at the grid points g from 0 to epsilon.
    falls: Vec<f64>,
}

impl Cells {
    fn new(epsilon: f64, steps: usize) -> Cells {
        let width = epsilon / steps as f64;
        let whole = -(-epsilon).exp_m1();
        let cell = |step: usize| {
            let offset = step as f64 * width;
            let rest = if step == steps { 0.0 } else { epsilon - offset };
            Cell {
                first: -(-rest).exp_m1() / whole,
                other: offset.exp_m1() * (-epsilon).exp() / whole,
                factor: (-rest).exp() / whole,
            }
        };
        let cells = (0..=steps).map(cell).collect();
        let falls = (0..=steps).map(|step| -(-(step as f64) * width).exp_m1()).collect();
        Cells { cells, growth: width.exp_m1(), falls }
    }

    /// Replaces the dots of a curve at 0 and above by those after one more run, the first `last` of which are not 0.
    fn run(&self, curve: &mut [f64], last: usize) {
        let steps = self.cells.len() - 1;
        // The curve from -epsilon up: exchanging P and Q changes the signs of losses and nothing else.
        let mirrored = (1..=steps).rev().map(|i| self.falls[i] + (1.0 - self.falls[i]) * curve[i]);
        let before: Vec<f64> = mirrored.chain(curve.iter().copied()).chain(std::iter::repeat_n(0.0, steps)).collect();
        for (i, dot) in curve.iter_mut().enumerate().take(last) {
            // After the loss t at the first offset, 0, and after the other loss.
            let (firsts, others) = (&before[i..=i + steps], &before[i + steps..=i + 2 * steps]);
            *dot = self.worst(firsts, others) * RAISED;
        }
    }

    /// The largest mean of the two curves over all offsets; entry `steps - j` of each belongs to the j-th.
    fn worst(&self, firsts: &[f64], others: &[f64]) -> f64 {
        let steps = self.cells.len() - 1;
        let mut worst = firsts[steps];
        for (step, cell) in self.cells.iter().enumerate().skip(1) {
            let (upper, lower) = (steps - step, steps - step + 1);
            worst = worst.max(cell.first * firsts[upper] + cell.other * others[upper]);
            let ends = Ends { first: [firsts[upper], firsts[lower]], other: [others[upper], others[lower]] };
            if cell.slope(&ends, 0.0, self.growth) > 0.0 && cell.slope(&ends, 1.0, self.growth) < 0.0 {
                worst = worst.max(cell.peak(&ends, self.growth));
            }
        }
        worst
    }
}

/// What the curves are at both ends of a cell.
struct Ends {
    first: [f64; 2],
    other: [f64; 2],
}

impl Cell {
    /// The mean of both curves at a part of the cell.
    fn mean(&self, ends: &Ends, part: f64, growth: f64) -> f64 {
        let between = |[upper, lower]: [f64; 2]| upper * (1.0 - part) + lower * part;
        let change = self.factor * part * growth / (1.0 + part * growth);
        (self.first + change) * between(ends.first) + (self.other - change).max(0.0) * between(ends.other)
    }

    /// The derivative of the mean, which falls.
    fn slope(&self, ends: &Ends, part: f64, growth: f64) -> f64 {
        let apart = [ends.first[0] - ends.other[0], ends.first[1] - ends.other[1]];
        let change = apart[1] - apart[0];
        let u = 1.0 + part * growth;
        let moved = apart[0] + part * (u + 1.0) * change;
        ends.other[1] - ends.other[0] + self.first * change + self.factor * growth * moved / (u * u)
    }

    /// The largest mean in a cell where it is not at an end, rounded up: a concave function lies below its tangents.
    fn peak(&self, ends: &Ends, growth: f64) -> f64 {
        let slope = |part: f64| self.slope(ends, part, growth);
        let (mut low, mut high) = ((0.0, slope(0.0)), (1.0, slope(1.0)));
        let (mut part, mut here) = low;
        for _ in 0..SECANTS {
            let before = here;
            part = low.0 + (high.0 - low.0) * low.1 / (low.1 - high.1);
            here = slope(part);
            // An end that stays twice counts for half, lest it stay for ever.
            let kept = if here * before > 0.0 { 0.5 } else { 1.0 };
            if here > 0.0 {
                (low, high.1) = ((part, here), kept * high.1);
            } else {
                (high, low.1) = ((part, here), kept * low.1);
            }
        }
        self.mean(ends, part, growth) + here.abs()
    }
}

#[cfg(test)]
mod tests {
    use super::super::cell::MARGIN;
    use super::*;

    /// The curve of losses above 0 at a point of the grid.
    fn delta(losses: &[(f64, f64)], at: f64) -> f64 {
        losses.iter().map(|(loss, mass)| if *loss > at { -(at - loss).exp_m1() * mass } else { 0.0 }).sum()
    }

    #[test]
    fn one_run_has_the_envelope_of_all_offsets() {
        for epsilon in [1e-100, 1e-9, 0.1, 1.0, 8.0, 300.0] {
            let losses = worst_losses(epsilon, 1);
            for (at, _) in &losses[..losses.len() - 1] {
                // Losses and sums are rounded here, too; a law's own margin covers as much.
                let envelope = |at: f64| ((at - epsilon) / 2.0).exp_m1().powi(2) / -(-epsilon).exp_m1();
                let shown = delta(&losses, *at);
                assert!(shown >= envelope(at + 8.0 * U * epsilon) * (1.0 - MARGIN), "{epsilon} {at}");
                assert!(shown <= envelope(*at) * (1.0 + 1e-9), "{epsilon} {at}");
            }
        }
    }

    #[test]
    fn every_offset_stays_below_the_peak_of_its_cell() {
        let cells = Cells::new(2.0, 4);
        let ends = Ends { first: [0.7, 0.75], other: [0.1, 0.4] };
        for cell in &cells.cells[1..] {
            let [upper, lower] = [0.0, 1.0].map(|part| cell.slope(&ends, part, cells.growth));
            let top = (0..=1000).map(|i| cell.mean(&ends, f64::from(i) / 1000.0, cells.growth)).fold(0.0, f64::max);
            if upper > 0.0 && lower < 0.0 {
                let peak = cell.peak(&ends, cells.growth);
                assert!(peak >= top && peak < top + 1e-6);
            }
        }
    }
}
