//! Sample sizes and parameters, from public quantities alone.

use super::rates::{base_rate, loop_rate};
use crate::error::{Error, Result};
use crate::golden::lowest;
use crate::params::{Epsilon, Neighbors, fraction, nonnegative};

/// How the base learner is repeated until it answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// LOOP: retries on the same records. It needs the fewest records.
    Loop,
    /// Disjoint batches of records: the number of systems solved does not depend on the data.
    Batches,
    /// The algorithm A* of Kasiviswanathan et al. 2011 as printed, for comparison.
    Paper,
}

/// What is to be learned, how well, and how privately.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// The number of unknown bits, the intercept included.
    pub unknowns: usize,
    /// The error that the hypothesis may have on the distribution of the examples, in (0, 1/2).
    pub alpha: f64,
    /// The probability of failure, in [1e-15, 1). To give no answer is a failure, too.
    pub beta: f64,
    /// The privacy parameter.
    pub epsilon: Epsilon,
    /// The neighbor relation.
    pub neighbors: Neighbors,
}

/// A number of records and the parameters that go with it. A parameter that the method does not have is `None`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plan {
    /// The number of records that are needed.
    pub n: u64,
    /// The sampling rate.
    pub p: f64,
    /// The probability of giving up before a try (LOOP).
    pub g: Option<f64>,
    /// The probability that a batch gives no answer.
    pub c: Option<f64>,
    /// The number of batches.
    pub k: Option<u64>,
    /// The number of records in a batch.
    pub batch_size: Option<u64>,
    /// The number of records in the paper's test set.
    pub test_size: Option<u64>,
}

const MOST_UNKNOWNS: usize = 1 << 32;

/// For a smaller beta the coins of 64 bits would be too coarse, and the wait for a release too long.
const LEAST_BETA: f64 = 1e-15;

impl Target {
    fn check(&self) -> Result<()> {
        if !(1..=MOST_UNKNOWNS).contains(&self.unknowns) {
            return Err(Error::parameter("d", self.unknowns, "there must be 1 to 2^32 unknown bits"));
        }
        fraction("alpha", self.alpha, 0.5)?;
        fraction("beta", self.beta, 1.0)?;
        if self.beta < LEAST_BETA {
            return Err(Error::parameter("beta", self.beta, "it must be at least 1e-15"));
        }
        Ok(())
    }

    /// Records of a Poisson sample of rate p after which Pr[error > alpha] <= b (docs/theory/parities.md,
    /// Theorem 4, minimized over s).
    fn records(&self, p: f64, b: f64) -> f64 {
        let d = self.unknowns as f64 - 1.0;
        let needed = |s: f64| {
            let log_potential = d * (1.0 - s) * std::f64::consts::LN_2 - b.ln();
            log_potential / -(-p * self.alpha * (2.0 - s.exp2())).ln_1p()
        };
        minimize(needed, 0.0, 1.0).ceil()
    }
}

/// The least value of a function with a single valley, which may be at its lower end.
fn minimize(f: impl Fn(f64) -> f64, low: f64, high: f64) -> f64 {
    lowest(low, high, 40, &f).1.min(f(low))
}

/// Candidates for the probability of giving up, as parts of beta.
fn give_up(beta: f64) -> impl Iterator<Item = f64> {
    (1..10).map(move |tenth| beta * f64::from(tenth) / 10.0)
}

/// A number of records as an integer; one too large for any plan where it is NaN.
fn counted(records: f64) -> u64 {
    if records >= 0.0 { records as u64 } else { u64::MAX }
}

/// Plans a method with the fewest records; [`Method::Paper`] has the constants of the paper.
pub fn plan(target: &Target, method: Method) -> Result<Plan> {
    let plan = best_plan(target, method)?;
    if plan.n < 1 << 62 {
        return Ok(plan);
    }
    let (epsilon, alpha) = (target.epsilon.get(), target.alpha);
    Err(Error::Parameter(format!("epsilon = {epsilon} and alpha = {alpha} need more than 2^62 records")))
}

/// The plan, however many records it needs.
fn best_plan(target: &Target, method: Method) -> Result<Plan> {
    target.check()?;
    let plans = candidates(target, method).into_iter().filter_map(|candidate| candidate.plan(target));
    plans.min_by(fewer).ok_or_else(|| Error::parameter("beta", target.beta, "no plan reaches it"))
}

/// The parameters of a method that are tried.
#[derive(Clone, Copy)]
enum Candidate {
    Loop(f64),
    Batches(f64, u64),
    Paper,
}

impl Candidate {
    fn plan(self, target: &Target) -> Option<Plan> {
        match self {
            Candidate::Loop(g) => Some(plan_loop(target, g)),
            Candidate::Batches(c, k) => plan_batch(target, c, k),
            Candidate::Paper => Some(plan_paper(target)),
        }
    }
}

/// All parameters that are tried for a target, whatever its error.
fn candidates(target: &Target, method: Method) -> Vec<Candidate> {
    match method {
        Method::Loop => give_up(target.beta).map(Candidate::Loop).collect(),
        Method::Batches => batches(target),
        Method::Paper => vec![Candidate::Paper],
    }
}

fn fewer(one: &Plan, other: &Plan) -> std::cmp::Ordering {
    one.n.cmp(&other.n)
}

fn plan_loop(target: &Target, g: f64) -> Plan {
    let p = loop_rate(target.epsilon, g, target.neighbors);
    let n = counted(target.records(p, (target.beta - g) / (1.0 - g)));
    Plan { n, p, g: Some(g), c: None, k: None, batch_size: None, test_size: None }
}

fn batches(target: &Target) -> Vec<Candidate> {
    let e = target.epsilon.capped().exp();
    let largest = match target.neighbors {
        Neighbors::ReplaceOne => 1.0 / (e + 2.0),
        Neighbors::AddRemove => 1.0 / (e + 1.0),
    };
    // A larger c than that which allows the largest rate only loses; smaller ones are tried on a grid.
    let grid = (0..1000).map(|i| 10f64.powf(-3.0 * (1.0 - f64::from(i) / 999.0))).filter(|&c| c < largest);
    let tried = grid.chain([largest]).flat_map(|c| {
        let first = (target.beta.ln() / c.ln()).floor().max(0.0) as u64 + 1;
        (first..first + 3).map(move |k| Candidate::Batches(c, k))
    });
    tried.collect()
}

fn plan_batch(target: &Target, c: f64, k: u64) -> Option<Plan> {
    let silent = c.powi(i32::try_from(k).ok()?);
    let b = (target.beta - silent) / (1.0 - silent);
    if b <= 0.0 {
        return None;
    }
    let p = base_rate(target.epsilon, c, target.neighbors);
    let (n, batch_size) = match target.neighbors {
        Neighbors::ReplaceOne => {
            let size = counted(target.records(p, b));
            (size.saturating_mul(k), size)
        }
        // A record is in the sample of batch j with probability p/k, whatever the sizes of the batches.
        Neighbors::AddRemove => {
            let n = counted(target.records(p / k as f64, b));
            (n, n.div_ceil(k))
        }
    };
    Some(Plan { n, p, g: None, c: Some(c), k: Some(k), batch_size: Some(batch_size), test_size: None })
}

/// The plan of Kasiviswanathan et al. 2011, Section 4: k = log_{4/3}(1/beta'), n' = 8 (d ln 2 + ln 4) / (epsilon
/// alpha'), and the smallest test set that the proof allows, with alpha' = alpha/5 and the beta' = beta/3 that its
/// union bound needs.
fn plan_paper(target: &Target) -> Plan {
    let (alpha, beta) = (target.alpha / 5.0, target.beta / 3.0);
    let epsilon = target.epsilon.get();
    let k = (beta.recip().ln() / (4f64 / 3.0).ln()).ceil();
    let batch = 8.0 * (target.unknowns as f64 * std::f64::consts::LN_2 + 4f64.ln()) / (epsilon * alpha);
    let union = (k / beta).ln() / alpha;
    let test = counted((10.0 * union).max(k * union / epsilon).ceil());
    let (k, batch) = (counted(k), counted(batch.ceil()));
    let n = batch.saturating_mul(k).saturating_add(test);
    Plan { n, p: epsilon / 4.0, g: None, c: Some(0.5), k: Some(k), batch_size: Some(batch), test_size: Some(test) }
}

/// The error for which parameters are chosen when nothing better is known.
const TYPICAL_ERROR: f64 = 0.05;

/// The smallest error that a method promises with `n` records, or `None` if it promises none below 1/2, and the
/// parameters to use. `target.alpha` is not used.
///
/// Where a record may be added or removed, n is private: then the parameters do not depend on it, and no error is
/// promised.
pub fn promise(target: &Target, method: Method, n: u64) -> Result<(Option<f64>, Plan)> {
    let at = |alpha: f64| best_plan(&Target { alpha, ..*target }, method);
    if target.neighbors == Neighbors::AddRemove {
        return Ok((None, at(TYPICAL_ERROR)?));
    }
    Target { alpha: LARGEST_ERROR, ..*target }.check()?;
    let tried: Vec<(usize, Candidate)> = candidates(target, method).into_iter().enumerate().collect();
    let mut best: Option<(usize, Promise)> = None;
    // Few candidates promise less than the best so far; those far apart come first, so that fewer do later.
    for &(number, candidate) in tried.iter().step_by(APART).chain(&tried) {
        let plan = |alpha: f64| candidate.plan(&Target { alpha, ..*target }).filter(|plan| plan.n <= n);
        let level = best.and_then(|(first, best)| Some((first, best, plan(best.alpha)?)));
        match level {
            None if best.is_some() => {}
            Some((first, promise, plan_at)) if plan(promise.below).is_none() => {
                if (plan_at.n, number) < (promise.plan.n, first) {
                    best = Some((number, Promise { plan: plan_at, ..promise }));
                }
            }
            _ => best = least_error(plan).map(|promise| (number, promise)).or(best),
        }
    }
    match best {
        Some((_, promise)) => Ok((Some(promise.alpha), promise.plan)),
        None => Ok((None, at(LARGEST_ERROR)?)),
    }
}

/// The least error that a candidate promises, one that it does not, and its plan.
#[derive(Clone, Copy)]
struct Promise {
    alpha: f64,
    below: f64,
    plan: Plan,
}

/// Every so many candidates are looked at first.
const APART: usize = 32;

/// The largest error that is promised.
const LARGEST_ERROR: f64 = 0.499_999;

/// The promise of the plans of an error, where the largest has one.
fn least_error(plan_at: impl Fn(f64) -> Option<Plan>) -> Option<Promise> {
    let (mut below, mut alpha) = (0.0, LARGEST_ERROR);
    let mut plan = plan_at(alpha)?;
    for _ in 0..40 {
        let middle = (below + alpha) / 2.0;
        match plan_at(middle) {
            Some(better) => (alpha, plan) = (middle, better),
            None => below = middle,
        }
    }
    Some(Promise { alpha, below, plan })
}

/// Plans a method for records from a source whose chi-squared divergence from the uniform target is `chi2` (Kohen and
/// Sheffet 2022, Appendix B): with probability 1 - beta the answer is the only solution, hence right everywhere.
/// `target.alpha` is not used, and [`Method::Paper`] is refused.
pub fn plan_uniform_target(target: &Target, chi2: f64, method: Method) -> Result<Plan> {
    Target { alpha: 0.25, ..*target }.check()?;
    nonnegative("chi2", chi2)?;
    let spanning = |p: f64, b: f64| counted(draws_until_spanning(target.unknowns, chi2, p, b));
    let best = match method {
        Method::Loop => give_up(target.beta)
            .map(|g| {
                let p = loop_rate(target.epsilon, g, target.neighbors);
                let n = spanning(p, (target.beta - g) / (1.0 - g));
                Plan { n, p, g: Some(g), c: None, k: None, batch_size: None, test_size: None }
            })
            .min_by(fewer),
        Method::Batches => best_plan(&Target { alpha: 0.25, ..*target }, method).ok().map(|plan| {
            let (c, k) = (plan.c.unwrap_or(0.5), plan.k.unwrap_or(1));
            let silent = c.powi(k as i32);
            let rate = if target.neighbors == Neighbors::AddRemove { plan.p / k as f64 } else { plan.p };
            let size = spanning(rate, (target.beta - silent) / (1.0 - silent));
            let n = if target.neighbors == Neighbors::AddRemove { size } else { size.saturating_mul(k) };
            Plan { n, batch_size: Some(n.div_ceil(k)), ..plan }
        }),
        Method::Paper => return Err(Error::parameter("method", "paper", "a plan from chi2 needs loop or batches")),
    };
    let best = best.ok_or_else(|| Error::parameter("beta", target.beta, "no plan reaches it"))?;
    if best.n < 1 << 62 {
        return Ok(best);
    }
    let epsilon = target.epsilon.get();
    Err(Error::Parameter(format!("epsilon = {epsilon} and chi2 = {chi2} need more than 2^62 records")))
}

/// The least probability that a source gives to an event of probability `t` under a target at this divergence
/// (docs/theory/plans.md, the corollary of Theorem 1), in a form without cancellation or overflow.
fn least_on_source(t: f64, chi2: f64) -> f64 {
    2.0 * t * t / (2.0 * t + chi2 + chi2.sqrt() * (chi2 + 4.0 * t * (1.0 - t)).sqrt())
}

/// Chernoff bound on the draws after which a Poisson sample spans the space except with probability b: step i waits
/// for a vector outside a space of dimension i, which the uniform target draws with probability 1 - 2^(i-d).
fn draws_until_spanning(d: usize, chi2: f64, p: f64, b: f64) -> f64 {
    let rate = |missing: f64| p * least_on_source(1.0 - (-missing).exp2(), chi2);
    // Up to 64 dimensions from the end every step has the same rate, to the last bit of a float.
    let (alike, rates) = (d.saturating_sub(64), (1..=d.min(64)).map(|missing| rate(missing as f64)));
    let mut steps: Vec<(f64, f64)> = rates.map(|q| (1.0, q)).collect();
    steps.push((alike as f64, rate(64.0)));
    let bound = |t: f64| {
        // ln E[e^(tG)] = -ln(1 - (1 - e^-t) / q) for each waiting time G.
        let logs = steps.iter().map(|(count, q)| -count * ((-t).exp_m1() / q).ln_1p());
        (logs.sum::<f64>() - b.ln()) / t
    };
    let limit = -(-rate(1.0)).ln_1p();
    if limit <= f64::MIN_POSITIVE {
        return f64::INFINITY;
    }
    // Pr[G > n] = Pr[G >= n + 1], hence the one record less.
    minimize(bound, limit * 1e-9, limit * (1.0 - 1e-9)).ceil() - 1.0
}
