//! The guarantee of a finished table, from its integers alone, every error of rounding against it.

use super::level::Level;
use super::promise::{Promise, TableKind};
use crate::golden::lowest;
use crate::run::Run;

/// Bounds the relative error of a few operations and library calls.
const U: f64 = 1.0 / (1u64 << 50) as f64;

/// Relative margin of what is done to a divergence.
const MARGIN: f64 = 1.0 / (1u64 << 40) as f64;

/// The ordered pairs of neighboring levels whose answers both have positive probability, as numbers.
struct Pairs<'a> {
    levels: Vec<(Level, Level)>,
    /// ln of the probability of level 1 beside a certain bottom at level 0.
    certain: Option<f64>,
    run: Run<'a>,
}

/// The terms of one pair at one order, rounded up.
struct Terms {
    /// ln of p^a q^(1-a).
    head: f64,
    /// ln of (1-p)^a (1-q)^(1-a).
    tail: f64,
}

/// The least epsilon at the promised delta that any order proves for a table, rounded up; infinite if none does, or if the
/// caller asks to stop.
///
/// For an order a and charges A of a bottom and B of a query with p^a q^(1-a) e^-A + (1-p)^a (1-q)^(1-a) <= e^B for all
/// ordered pairs of neighboring levels from 1 on, exp((a - 1) loss - A bottoms - B queries) is a supermartingale, whoever
/// chooses the queries: the divergence of order a is at most (A T + B m) / (a - 1). At levels 1 and 0, where bottom is
/// certain, a query is answered with probability 1 - p_1 at most or uses up a bottom, which adds T (1 - p_1) to delta.
/// For any order and B, A follows as the largest that a pair asks for.
pub fn certified_epsilon(promise: &Promise, words: &[u64], run: Run<'_>) -> f64 {
    let levels: Vec<Level> = words.iter().map(|&word| Level::of_word(word)).collect();
    let (bottoms, first, rest) = match promise.kind {
        TableKind::Hazard(bottoms) => {
            (Some(bottoms as f64), None, promise.delta - bottoms as f64 * levels[0].r * (1.0 + U))
        }
        TableKind::Vote => (None, Some(Level::of_word(1 << 63)), promise.delta),
    };
    let certain = bottoms.map(|_| levels[0].log_p);
    let chain: Vec<Level> = first.into_iter().chain(levels).collect();
    let both_ways = |pair: &[Level]| [(pair[0], pair[1]), (pair[1], pair[0])];
    let pairs = Pairs { levels: chain.windows(2).flat_map(both_ways).collect(), certain, run };
    let rest = rest * (1.0 - U);
    let at = |x: f64| {
        if run.canceled() || rest <= 0.0 {
            return f64::INFINITY;
        }
        let order = 1.0 + x.exp();
        let cost = pairs.cost(order, bottoms, promise.queries as f64) / (order - 1.0);
        let (conversion, target) = ((-order.recip()).ln_1p(), (rest.ln() + order.ln()) / (order - 1.0));
        cost + conversion - target + MARGIN * (cost - conversion + target.abs())
    };
    // Orders from 1.00001 to a million.
    let least = lowest(-11.0, 14.0, 45, at).1;
    // What is no number proves nothing.
    if least.is_nan() { f64::INFINITY } else { least.max(0.0) }
}

impl Pairs<'_> {
    /// The least A T + B m over all charges that are enough for every pair at an order.
    fn cost(&self, order: f64, bottoms: Option<f64>, queries: f64) -> f64 {
        let terms: Vec<Terms> = self.levels.iter().map(|(p, q)| Terms::new(order, p, q)).collect();
        // Without bottoms A = 0, which each pair's own sum allows for; with A = 0 no larger B is needed.
        let all = terms.iter().map(Terms::whole).fold(0.0, f64::max);
        let certain = self.certain.map_or(0.0, |log_p| (1.0 - order) * log_p * (1.0 + U));
        let most = all.max(certain);
        let Some(bottoms) = bottoms else { return most * queries };
        let least = terms.iter().map(|term| term.tail).fold(0.0, f64::max);
        let cost = |each: f64| {
            if self.run.canceled() {
                return f64::INFINITY;
            }
            let head = terms.iter().map(|term| term.charge(each)).fold((certain - each).max(0.0), f64::max);
            head * bottoms + each * queries
        };
        let ends = cost(least).min(cost(most));
        lowest(least, most, 50, cost).1.min(ends)
    }
}

impl Terms {
    fn new(order: f64, p: &Level, q: &Level) -> Terms {
        let log = |from: f64, to: f64| {
            let error = U * (order * from.abs() + (order - 1.0) * to.abs());
            from + (order - 1.0) * (from - to) + error
        };
        Terms { head: log(p.log_p, q.log_p), tail: log(p.log_r, q.log_r) }
    }

    /// The B that is enough without any A, rounded up.
    fn whole(&self) -> f64 {
        let sum = (self.head.exp() + self.tail.exp()) * (1.0 + U);
        if sum.is_finite() {
            ((sum - 1.0) * (1.0 + U) + 2.0 * U).ln_1p()
        } else {
            self.head.max(self.tail) + std::f64::consts::LN_2
        }
    }

    /// The least A for a B: ln of p^a q^(1-a) / (e^B - (1-p)^a (1-q)^(1-a)), rounded up; no power of a is formed, which
    /// would leave the range of floats.
    fn charge(&self, each: f64) -> f64 {
        let room = each - self.tail - 2.0 * U * (each + self.tail.abs());
        if room > 0.0 {
            let log = each + (-(-room).exp_m1()).ln();
            self.head - log + 2.0 * U * (1.0 + self.head.abs() + log.abs() + each)
        } else {
            f64::INFINITY
        }
    }
}
