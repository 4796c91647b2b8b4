//! Probabilities near 0 and near 1 with their logarithms, and the steps between them that a Renyi order allows.

/// 2^64 as a float.
const TWO_64: f64 = 18_446_744_073_709_551_616.0;

/// A probability p and its complement r, both with a small relative error.
#[derive(Clone, Copy, Debug)]
pub struct Level {
    pub p: f64,
    pub r: f64,
    pub log_p: f64,
    pub log_r: f64,
}

impl Level {
    /// The probability with ln(p / r) = `logit`.
    pub fn at(logit: f64) -> Level {
        let (log_p, log_r) = (-(-logit).exp().ln_1p(), -logit.exp().ln_1p());
        Level { p: log_p.exp(), r: log_r.exp(), log_p, log_r }
    }

    /// The probability `word` / 2^64; `word` is not 0.
    pub fn of_word(word: u64) -> Level {
        let (p, r) = (word as f64 / TWO_64, (word.wrapping_neg()) as f64 / TWO_64);
        let log_of = |x: f64, rest: f64| if x < 0.5 { x.ln() } else { (-rest).ln_1p() };
        Level { p, r, log_p: log_of(p, r), log_r: log_of(r, p) }
    }

    /// The smallest multiple of 2^-64 not below the probability, from 1 to 2^64 - 1.
    pub fn word(&self) -> u64 {
        let word =
            if self.p < 0.5 { (self.p * TWO_64).ceil() as u64 } else { ((self.r * TWO_64) as u64).wrapping_neg() };
        // A complement below 2^-64 would be none.
        if word == 0 { if self.p < 0.5 { 1 } else { u64::MAX } } else { word }
    }
}

/// What a step may cost: for neighboring probabilities p and q, in either order,
/// p^a q^(1-a) e^-head + (1-p)^a (1-q)^(1-a) <= e^each, a being the order, above 1.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// The order.
    pub order: f64,
    /// Charged when the answer with probability p comes.
    pub head: f64,
    /// Charged with every answer.
    pub each: f64,
}

impl Pace {
    /// By how much the left side exceeds the right one.
    fn excess(&self, from: &Level, to: &Level) -> f64 {
        let one_way = |p: &Level, q: &Level| {
            let rise = self.order - 1.0;
            let heads = p.p * (rise * (p.log_p - q.log_p) - self.head).exp_m1();
            heads + p.r * (rise * (p.log_r - q.log_r)).exp_m1()
        };
        one_way(from, to).max(one_way(to, from)) - self.each.exp_m1()
    }

    /// The largest step down from a logit that is allowed, found from a `guess` of it, and rounded down; zero if none is.
    ///
    /// The excess is convex in the lower probability and not positive where it equals the upper one, so that there is
    /// one boundary.
    fn step(&self, logit: f64, guess: f64) -> f64 {
        let from = Level::at(logit);
        let excess = |step: f64| self.excess(&from, &Level::at(logit - step));
        let (mut good, mut bad) = ((0.0, excess(0.0)), (guess, excess(guess)));
        while bad.1 <= 0.0 {
            good = bad;
            if good.0 > LONGEST_STEP {
                return good.0;
            }
            bad = (2.0 * good.0, excess(2.0 * good.0));
        }
        // The method of Illinois: regula falsi, halving the side that stays.
        let (mut left, mut right) = (good.1.min(-f64::MIN_POSITIVE), bad.1);
        for _ in 0..60 {
            if bad.0 - good.0 <= 1e-9 * bad.0 || bad.0 < SHORTEST_STEP {
                break;
            }
            let middle = (good.0 * right - bad.0 * left) / (right - left);
            let middle =
                if right.is_finite() && middle > good.0 && middle < bad.0 { middle } else { (good.0 + bad.0) / 2.0 };
            let value = excess(middle);
            if value <= 0.0 {
                if value == 0.0 {
                    return middle;
                }
                (good, left, right) = ((middle, value), value, right / 2.0);
            } else {
                (bad, right, left) = ((middle, value), value, left / 2.0);
            }
        }
        good.0
    }
}

/// No probability that is a multiple of 2^-64 is further from another one.
const LONGEST_STEP: f64 = 100.0;

/// Shorter steps would lead nowhere within any number of levels that a table may have.
const SHORTEST_STEP: f64 = 1e-7;

/// Levels of the largest table: more would take longer than a table is worth.
const MOST_LEVELS: usize = 1 << 17;

/// The logits of levels from `start` down to the first with a probability of at most `target`, each step as long as
/// allowed; nothing if that takes too many levels.
pub fn descend(pace: &Pace, start: f64, target: f64) -> Option<Vec<f64>> {
    let (goal, mut logits, mut step) = (logit(target), vec![start], 0.1);
    while logits[logits.len() - 1] > goal {
        let logit = logits[logits.len() - 1];
        step = pace.step(logit, 1.1 * step);
        if step < SHORTEST_STEP || logits.len() >= MOST_LEVELS {
            return None;
        }
        logits.push(logit - step);
    }
    Some(logits)
}

/// About how many steps lead from `start` to `target`: a smooth number to be made small, infinite where none do.
///
/// Long ways are integrals of the reciprocal step, of short ones a part of the last step is counted.
pub fn length(pace: &Pace, start: f64, target: f64) -> f64 {
    const NODES: usize = 64;
    const SHORT: f64 = 100.0;
    let goal = logit(target);
    let (interval, mut step) = ((start - goal) / NODES as f64, 0.1);
    let rates: Vec<f64> = (0..=NODES)
        .map(|node| {
            step = pace.step(start - interval * node as f64, 1.1 * step).max(SHORTEST_STEP);
            step.recip()
        })
        .collect();
    let estimate = interval * (rates.iter().sum::<f64>() - (rates[0] + rates[NODES]) / 2.0);
    if estimate > SHORT {
        return if estimate < MOST_LEVELS as f64 { estimate } else { f64::INFINITY };
    }
    match descend(pace, start, target).as_deref() {
        Some([whole @ .., before, last]) => whole.len() as f64 + (before - goal) / (before - last),
        _ => f64::INFINITY,
    }
}

fn logit(p: f64) -> f64 {
    p.ln() - (-p).ln_1p()
}
