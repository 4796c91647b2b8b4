//! Optimal composition of equal (epsilon, delta) guarantees.

use super::counts::{Counts, binomial};
use super::{U, boundary};

/// Outcomes rarer than this add less than it to delta.
const NEGLIGIBLE: f64 = 1e-290;

/// Relative margin of a sum of up to 2^20 terms and of what is done to it.
const MARGIN: f64 = 1.0 / (1u64 << 30) as f64;

/// The delta at epsilon = `target` of `rounds` mechanisms that are each (epsilon, delta)-DP and chosen adaptively,
/// rounded up.
///
/// The worst case is randomized response that with probability delta reveals everything. The number of truthful answers
/// is binomial, and the curve is the exact hockey-stick divergence at any target, not only at those of the paper.
///
/// Cost: O(sqrt(rounds)). Source: Kairouz, Oh and Viswanath 2017, Theorem 3.3.
pub fn optimal_delta(epsilon: f64, delta: f64, rounds: u64, target: f64) -> f64 {
    Answers::new(epsilon, delta, rounds).delta(target)
}

/// The least epsilon at which `rounds` mechanisms that are each (epsilon, delta)-DP have the delta `target`, rounded
/// up; infinite where there is none.
///
/// Cost: O(sqrt(rounds)). Source: as [`optimal_delta`].
pub fn optimal_epsilon(epsilon: f64, delta: f64, rounds: u64, target: f64) -> f64 {
    let answers = Answers::new(epsilon, delta, rounds);
    let holds = |epsilon: f64| answers.delta(epsilon) <= target;
    let most = rounds as f64 * epsilon * (1.0 + 8.0 * U);
    match (holds(0.0), holds(most)) {
        (true, _) => 0.0,
        (_, true) => boundary(most, 0.0, holds),
        _ => f64::INFINITY,
    }
}

/// The law of the truthful answers among those of randomized response, none of which says all.
struct Answers {
    epsilon: f64,
    rounds: u64,
    law: Counts,
    /// ln of the probability that none says all.
    silent: f64,
}

impl Answers {
    fn new(epsilon: f64, delta: f64, rounds: u64) -> Answers {
        let law = binomial(rounds, (1.0 + (-epsilon).exp()).recip(), NEGLIGIBLE);
        Answers { epsilon, rounds, law, silent: rounds as f64 * (-delta).ln_1p() }
    }

    fn delta(&self, target: f64) -> f64 {
        let answers = (self.law.first..).zip(&self.law.weights);
        let hockey_stick: f64 = answers.map(|(truthful, weight)| weight * self.excess(truthful, target)).sum();
        let some = -self.silent.exp_m1();
        ((some + self.silent.exp() * hockey_stick) * (1.0 + MARGIN) + self.law.rest).min(1.0)
    }

    /// (1 - e^(target - loss))^+, rounded up: the loss is, before anything is asked of it.
    fn excess(&self, truthful: u64, target: f64) -> f64 {
        let loss = (2.0 * truthful as f64 - self.rounds as f64) * self.epsilon * (1.0 + 4.0 * U);
        if loss > target { -(target - loss).exp_m1() } else { 0.0 }
    }
}
