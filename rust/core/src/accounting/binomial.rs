//! Binomial weights with a small relative error, whatever the number of trials.

use super::U;

/// The weights of consecutive outcomes, and a bound on the weight of all others.
pub struct Binomial {
    /// The first outcome listed.
    pub first: u64,
    /// Weights of the outcomes from `first` on, rounded up.
    pub weights: Vec<f64>,
    /// The weight of every outcome not listed is at most this in all.
    pub rest: f64,
}

/// The law of the number of successes, without two tails of weight at most `negligible` each.
///
/// Weights relative to that of the mode follow from one another by ratios, so that no logarithm of a factorial loses
/// its last digits; divided by their sum, each is at or above its true value up to rounding, of four operations a step.
pub fn binomial(trials: u64, rate: f64, negligible: f64) -> Binomial {
    if rate >= 1.0 {
        return Binomial { first: trials, weights: vec![1.0], rest: 0.0 };
    }
    let odds = rate / (1.0 - rate);
    let mode = (((trials as f64 + 1.0) * rate) as u64).min(trials);
    let up = |k: u64| (trials - k) as f64 / (k + 1) as f64 * odds;
    let down = |k: u64| k as f64 / (trials - k + 1) as f64 / odds;
    let (above, rest_above) = side(negligible, trials - mode, |i| up(mode + i));
    let (below, rest_below) = side(negligible, mode, |i| down(mode - i));
    let total: f64 = 1.0 + above.iter().sum::<f64>() + below.iter().sum::<f64>();
    let scale = (1.0 + 8.0 * U * (above.len() + below.len() + 4) as f64) / total;
    let weights = below.iter().rev().chain([&1.0]).chain(&above).map(|weight| weight * scale).collect();
    Binomial { first: mode - below.len() as u64, weights, rest: rest_above + rest_below }
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
