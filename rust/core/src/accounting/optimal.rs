//! Optimal composition of equal (epsilon, delta) guarantees.

use super::binomial::binomial;
use super::{U, boundary};

/// Outcomes rarer than this add less than it to delta.
const NEGLIGIBLE: f64 = 1e-290;

/// Relative margin of a sum of up to 2^20 terms and of what is done to it.
const MARGIN: f64 = 1.0 / (1u64 << 30) as f64;

/// The delta at `target` of `rounds` mechanisms that are each (epsilon, delta), chosen adaptively; rounded up.
///
/// The worst case is randomised response that with probability delta says all: the number of truthful answers is
/// binomial, and the curve at any target, not only at the paper's, is the exact hockey-stick divergence.
///
/// Cost: O(sqrt(rounds)). Source: Kairouz, Oh and Viswanath 2017, Theorem 3.3.
pub fn optimal_delta(epsilon: f64, delta: f64, rounds: u64, target: f64) -> f64 {
    let law = binomial(rounds, (1.0 + (-epsilon).exp()).recip(), NEGLIGIBLE);
    let answers = (law.first..).zip(&law.weights);
    let hockey_stick: f64 = answers.map(|(truthful, weight)| weight * excess(epsilon, rounds, truthful, target)).sum();
    let silent = rounds as f64 * (-delta).ln_1p();
    ((-silent.exp_m1() + silent.exp() * hockey_stick) * (1.0 + MARGIN) + law.rest).min(1.0)
}

/// (1 - e^(target - loss))^+, the loss rounded up.
fn excess(epsilon: f64, rounds: u64, truthful: u64, target: f64) -> f64 {
    let loss = (2.0 * truthful as f64 - rounds as f64) * epsilon;
    (-(target - loss).exp_m1() + 4.0 * U * loss.abs()).clamp(0.0, 1.0) * f64::from(u8::from(loss > target))
}

/// The least epsilon at which `rounds` mechanisms that are each (epsilon, delta) have the delta `target`, rounded up;
/// infinite where no epsilon does.
///
/// Cost: O(sqrt(rounds)). Source: as [`optimal_delta`].
pub fn optimal_epsilon(epsilon: f64, delta: f64, rounds: u64, target: f64) -> f64 {
    let holds = |found: f64| optimal_delta(epsilon, delta, rounds, found) <= target;
    let most = epsilon * rounds as f64;
    match (holds(0.0), holds(most)) {
        (true, _) => 0.0,
        (_, true) => boundary(most, 0.0, holds),
        _ => f64::INFINITY,
    }
}
