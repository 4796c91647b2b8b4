//! Sampling rates: the largest p for which a mechanism is epsilon-DP.

use crate::params::{Epsilon, Neighbors};

/// The sampling rate of the base learner A(c, p), which gives no answer with probability `c` before it looks at the
/// data.
///
/// Replacing a record changes the probability of a hypothesis by a factor of at most (1+p)/(1-p), and that of no answer
/// by one of at most 1 - p + p/c. Adding a record changes them by at most max(1/(1-p), 1+p) and the same 1 - p + p/c.
pub fn base_rate(epsilon: Epsilon, c: f64, neighbors: Neighbors) -> f64 {
    let e = epsilon.capped();
    let by_bottom = c * e.exp_m1() / (1.0 - c);
    let by_hypothesis = match neighbors {
        Neighbors::ReplaceOne => (e / 2.0).tanh(),
        Neighbors::AddRemove => -(-e).exp_m1(),
    };
    by_bottom.min(by_hypothesis)
}

/// The sampling rate of the LOOP learner, which gives up with probability `g` before each try.
///
/// With v = g/(1-g), replacing a record changes every probability by a factor of at most (1+p)/(1-p) * (v+1)/(v+1-p),
/// and adding one by at most max(1/(1-p), (1+p)(v+1)/(v+1-p)). Both equations are solved in the form without
/// cancellation.
pub fn loop_rate(epsilon: Epsilon, g: f64, neighbors: Neighbors) -> f64 {
    let e = epsilon.capped();
    let (power, growth) = (e.exp(), e.exp_m1());
    let v = g / (1.0 - g);
    let survival = v + 1.0;
    match neighbors {
        Neighbors::ReplaceOne => {
            let linear = power * (survival + 1.0) + survival;
            // linear^2 - 4 power survival growth, as a sum of positive terms.
            let discriminant = (power * v).powi(2) + 2.0 * power * survival * (survival + 3.0) + survival * survival;
            let root = discriminant.sqrt();
            2.0 * survival * growth / (linear + root)
        }
        Neighbors::AddRemove => (-(-e).exp_m1()).min(survival * growth / (survival + power)),
    }
}
