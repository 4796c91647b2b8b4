//! Weights of how often something happens, with a small relative error, whatever the number of trials.

use super::U;

/// The weights of consecutive outcomes, and a bound on the weight of all others.
pub struct Counts {
    /// The first outcome listed.
    pub first: u64,
    /// Weights of the outcomes from `first` on, rounded up.
    pub weights: Vec<f64>,
    /// The weight of every outcome not listed is at most this in all.
    pub rest: f64,
}

/// The binomial law of the number of successes, without two tails of weight at most `negligible` each.
pub fn binomial(trials: u64, rate: f64, negligible: f64) -> Counts {
    if rate >= 1.0 {
        return Counts { first: trials, weights: vec![1.0], rest: 0.0 };
    }
    let odds = rate / (1.0 - rate);
    let mode = (((trials as f64 + 1.0) * rate) as u64).min(trials);
    let up = |k: u64| (trials - k) as f64 / (k + 1) as f64 * odds;
    let down = |k: u64| k as f64 / (trials - k + 1) as f64 / odds;
    around(mode, trials - mode, negligible, up, down)
}

/// The Poisson law of this mean, likewise.
pub fn poisson(mean: f64, negligible: f64) -> Counts {
    around(mean as u64, u64::MAX, negligible, |k| mean / (k + 1) as f64, |k| k as f64 / mean)
}

/// The law whose weights follow from that of the mode by their ratios: at each outcome that to the next one up, or down.
///
/// So no logarithm of a factorial loses its last digits. Divided by their sum, weights are at or above their true values
/// up to rounding, of four operations a step.
fn around(mode: u64, above: u64, negligible: f64, up: impl Fn(u64) -> f64, down: impl Fn(u64) -> f64) -> Counts {
    let (above, rest_above) = side(negligible, above, |i| up(mode + i));
    let (below, rest_below) = side(negligible, mode, |i| down(mode - i));
    let total: f64 = 1.0 + above.iter().sum::<f64>() + below.iter().sum::<f64>();
    let scale = (1.0 + 8.0 * U * (above.len() + below.len() + 4) as f64) / total;
    let weights = below.iter().rev().chain([&1.0]).chain(&above).map(|weight| weight * scale).collect();
    Counts { first: mode - below.len() as u64, weights, rest: rest_above + rest_below }
}

/// Weights on one side of the mode, nearest first, and a bound on those left out: the ratios fall, so that what
/// follows is below a geometric series.
fn side(negligible: f64, steps: u64, ratio: impl Fn(u64) -> f64) -> (Vec<f64>, f64) {
    let (mut weights, mut last) = (Vec::new(), 1.0);
    for step in 0..steps {
        let factor = ratio(step);
        let rest = if factor < 1.0 { last * factor / (1.0 - factor) } else { f64::INFINITY };
        if rest <= negligible {
            return (weights, rest);
        }
        last *= factor;
        weights.push(last);
    }
    (weights, 0.0)
}
