//! The search for tables with few levels.

use super::level::{Level, Pace, descend, length};
use super::promise::Promise;
use crate::golden::lowest;

/// A point of the search and what it costs.
#[derive(Clone, Copy)]
struct Candidate {
    /// ln(order - 1).
    order: f64,
    /// The share of the divergence that bottoms pay for; the queries pay for the rest.
    bottoms: f64,
    /// ln of the share of delta for an answer at distance 0.
    passed: f64,
}

/// The probabilities of "bottom" in units of 2^-64, from level 1 on, for an epsilon smaller by the share `loss`.
pub fn design_hazard(promise: &Promise, bottoms: u64, loss: f64) -> Option<Vec<u64>> {
    let (epsilon, target) = (promise.epsilon.get() * (1.0 - loss), promise.target());
    let plan = |candidate: Candidate| {
        let (order, passed) = (1.0 + candidate.order.exp(), promise.delta * candidate.passed.exp());
        let divergence = (order - 1.0) * divergence(epsilon, promise.delta - passed, order);
        let head = candidate.bottoms * divergence / bottoms as f64;
        let each = (1.0 - candidate.bottoms) * divergence / promise.queries as f64;
        let first = passed / bottoms as f64;
        (divergence > 0.0).then_some((Pace { order, head, each }, (-first).ln_1p() - first.ln()))
    };
    let cost = |candidate| plan(candidate).map_or(f64::INFINITY, |(pace, start)| length(&pace, start, target));
    let (pace, start) = plan(search(typical_order(promise), cost))?;
    Some(words(&descend(&pace, start, target)?))
}

/// One coordinate after the other, in ever smaller surroundings.
fn search(order: f64, cost: impl Fn(Candidate) -> f64) -> Candidate {
    let mut best = Candidate { order, bottoms: 0.5, passed: -2.3 };
    for width in [1.0, 0.4, 0.16, 0.06] {
        let near = |x: f64, reach: f64, floor: f64, ceiling: f64, set: &dyn Fn(f64) -> Candidate| {
            let (low, high) = ((x - reach * width).max(floor), (x + reach * width).min(ceiling));
            set(lowest(low, high, 10, |x| cost(set(x))).0)
        };
        best = near(best.order, 2.0, -20.0, 20.0, &|order| Candidate { order, ..best });
        best = near(best.bottoms, 0.5, 0.0, 1.0, &|bottoms| Candidate { bottoms, ..best });
        best = near(best.passed, 2.0, -20.0, -0.1, &|passed| Candidate { passed, ..best });
    }
    best
}

/// The probabilities of the label with fewer votes in units of 2^-64, from level 1 on, for an epsilon smaller by the
/// share `loss`.
pub fn design_vote(promise: &Promise, loss: f64) -> Option<Vec<u64>> {
    let (epsilon, target) = (promise.epsilon.get() * (1.0 - loss), promise.target());
    let plan = |x: f64| {
        let order = 1.0 + x.exp();
        let divergence = (order - 1.0) * divergence(epsilon, promise.delta, order);
        (divergence > 0.0).then_some(Pace { order, head: 0.0, each: divergence / promise.queries as f64 })
    };
    let middle = typical_order(promise);
    let cost = |x| plan(x).map_or(f64::INFINITY, |pace| length(&pace, 0.0, target));
    let pace = plan(lowest(middle - 2.0, middle + 2.0, 30, cost).0)?;
    Some(words(descend(&pace, 0.0, target)?.get(1..)?))
}

/// ln(order - 1) for the order where half of epsilon is left for the divergence.
fn typical_order(promise: &Promise) -> f64 {
    (-2.0 * promise.delta.ln() / promise.epsilon.get()).ln()
}

/// The divergence of an order that implies an epsilon at a delta. Source: Canonne, Kamath and Steinke 2020,
/// Proposition 12.
fn divergence(epsilon: f64, delta: f64, order: f64) -> f64 {
    epsilon - (-order.recip()).ln_1p() + (delta.ln() + order.ln()) / (order - 1.0)
}

fn words(logits: &[f64]) -> Vec<u64> {
    logits.iter().map(|&logit| Level::at(logit).word()).collect()
}
