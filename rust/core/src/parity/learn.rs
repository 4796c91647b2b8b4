//! The mechanisms: Poisson sampling, an exact solution space, a uniform choice in it.

use super::plan::{Method, Plan};
use super::rates::{base_rate, loop_rate};
use crate::error::{Error, Result};
use crate::gf2::{BitMatrix, System, parity_bits, solve};
use crate::memory::{collected, reserve, room};
use crate::noise::{Fixed, Rejection, Seed, Stream, scale_at_least};
use crate::params::{Epsilon, Neighbors};
use crate::run::Run;

/// Labeled examples. The label of row i is bit i of `labels`, packed 64 to a word.
#[derive(Clone, Copy)]
pub struct Examples<'a> {
    /// The examples, one in each row.
    pub matrix: &'a BitMatrix,
    /// The packed labels.
    pub labels: &'a [u64],
    /// Whether the hypothesis has an intercept, as if every example ended in one more bit, a public 1.
    pub affine: bool,
}

impl Examples<'_> {
    /// Refuses more records than indices of 32 bits can tell apart.
    pub fn check(&self) -> Result<()> {
        match u32::try_from(self.matrix.rows()) {
            Ok(_) => Ok(()),
            Err(_) => Err(Error::parameter("n", self.matrix.rows(), "at most 2^32 - 1 records can be learned from")),
        }
    }
}

/// A private learner whose coins have fixed probabilities.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mechanism {
    method: Method,
    neighbors: Neighbors,
    /// The probability that there is no answer, before each try (LOOP) or for a batch.
    silent: Fixed,
    rate: Fixed,
    batches: u64,
    test_size: u64,
    noise: Rejection,
}

impl Mechanism {
    /// The mechanism of a plan. The sampling rate is computed here from epsilon and never taken from the plan: whatever
    /// the plan says, the mechanism is epsilon-DP.
    pub fn new(epsilon: Epsilon, neighbors: Neighbors, method: Method, plan: &Plan) -> Result<Mechanism> {
        let silent = match method {
            Method::Loop => plan.g,
            Method::Batches => plan.c,
            // The paper's rate is too large for a smaller one.
            Method::Paper => plan.c.filter(|&silent| silent >= 0.5),
        };
        let silent = silent.filter(|&silent| silent > 0.0 && silent < 1.0);
        let batches = if method == Method::Loop { Some(1) } else { plan.k.filter(|&k| k > 0) };
        let (Some(silent), Some(batches)) = (silent, batches) else {
            let text =
                format!("plan has g = {:?}, c = {:?}, k = {:?}, but it must come from plan()", plan.g, plan.c, plan.k);
            return Err(Error::Parameter(text));
        };
        let (rate, noise_scale) = match method {
            Method::Loop => (loop_rate(epsilon, silent, neighbors), 1.0),
            Method::Batches => (base_rate(epsilon, silent, neighbors), 1.0),
            Method::Paper => {
                if epsilon.get() > 0.5 || neighbors == Neighbors::AddRemove {
                    let rule = "the paper's proof covers epsilon <= 1/2 and replaced records only; use loop or batches";
                    return Err(Error::parameter("epsilon", epsilon.get(), rule));
                }
                (epsilon.get() / 4.0, batches as f64 / epsilon.get())
            }
        };
        Ok(Mechanism {
            method,
            neighbors,
            silent: Fixed::at_least(silent),
            rate: Fixed::certainly_below(rate),
            batches,
            test_size: plan.test_size.unwrap_or(0),
            noise: scale_at_least(noise_scale)?,
        })
    }

    /// The number of linear systems that a run solves; where that depends on the data, an upper bound on its
    /// expectation.
    pub fn systems(&self) -> f64 {
        match self.method {
            Method::Loop => self.silent.to_f64().recip(),
            Method::Batches | Method::Paper => self.batches as f64,
        }
    }
}

/// Runs a mechanism. Returns the bits of the hypothesis, with the intercept last if there is one, or `None` for no
/// answer.
///
/// Guarantee: pure epsilon-DP for the epsilon and the neighbor relation of the mechanism, for every data set, including
/// those that no parity fits.
///
/// Cost: an exact solution space of about p n equations for each try or batch.
pub fn learn(examples: &Examples<'_>, mechanism: &Mechanism, seed: &Seed, run: Run<'_>) -> Result<Option<Vec<u8>>> {
    examples.check()?;
    let learner = Learner { examples, mechanism, seed, run };
    match mechanism.method {
        Method::Loop => learner.retry(),
        Method::Batches => Ok(learner.batches(&learner.assignment()?)?.into_iter().flatten().next()),
        Method::Paper => learner.paper(),
    }
}

struct Learner<'a> {
    examples: &'a Examples<'a>,
    mechanism: &'a Mechanism,
    seed: &'a Seed,
    run: Run<'a>,
}

impl Learner<'_> {
    /// LOOP: draws fresh samples of the same records until one is consistent or the coin gives up.
    fn retry(&self) -> Result<Option<Vec<u8>>> {
        let mut answer = self.seed.stream(Stream::Answer, 0);
        let mut attempt = 0;
        loop {
            self.run.check()?;
            if self.mechanism.silent.draw(&mut answer) {
                return Ok(None);
            }
            if let Some(bits) = self.sample_and_solve(attempt, |_| true)? {
                return Ok(Some(bits));
            }
            attempt += 1;
        }
    }

    /// Runs the base learner on every batch whose coin allows it, even after one has answered: the number of systems
    /// solved must not depend on the data.
    fn batches(&self, batch_of: &dyn Fn(usize) -> u64) -> Result<Vec<Option<Vec<u8>>>> {
        let mut answer = self.seed.stream(Stream::Answer, 0);
        let batches = usize::try_from(self.mechanism.batches).ok();
        let (mut silent, mut hypotheses) = (room(batches)?, room(batches)?);
        silent.extend((0..self.mechanism.batches).map(|_| self.mechanism.silent.draw(&mut answer)));
        for (j, silent) in (0..).zip(silent) {
            hypotheses.push(if silent { None } else { self.sample_and_solve(j, |i| batch_of(i) == j)? });
        }
        Ok(hypotheses)
    }

    /// Batches by position if records are replaced; by a coin for each record if one may be added, since then no
    /// other record may change its batch.
    fn assignment(&self) -> Result<Box<dyn Fn(usize) -> u64>> {
        let (n, k) = (self.examples.matrix.rows(), self.mechanism.batches);
        Ok(match self.mechanism.neighbors {
            Neighbors::ReplaceOne => {
                Box::new(move |i| (((i as u128 + 1) * u128::from(k) - 1) / n.max(1) as u128) as u64)
            }
            Neighbors::AddRemove => {
                let mut rng = self.seed.stream(Stream::Noise, 1);
                let batch = collected((0..n).map(|_| rng.below(k)))?;
                Box::new(move |i| batch[i])
            }
        })
    }

    fn sample_and_solve(&self, attempt: u64, eligible: impl Fn(usize) -> bool) -> Result<Option<Vec<u8>>> {
        let mut rng = self.seed.stream(Stream::Sampling, attempt);
        let rate = self.mechanism.rate;
        let mut sample = Vec::new();
        for i in (0..self.examples.matrix.rows()).filter(|&i| rate.draw(&mut rng) && eligible(i)) {
            reserve(&mut sample, 1)?;
            sample.push(i as u32);
        }
        let system = System {
            matrix: self.examples.matrix,
            rows: Some(&sample),
            ones: self.examples.affine,
            rhs: Some(self.examples.labels),
        };
        let solution = solve(&system, self.run)?;
        solution.sample(&mut self.seed.stream(Stream::Solution, attempt), self.run)
    }

    /// The algorithm A* of Kasiviswanathan et al. 2011: chooses the batch whose hypothesis has the fewest errors on the
    /// last records, up to noise. No answer counts as an error on every one of them.
    fn paper(&self) -> Result<Option<Vec<u8>>> {
        let (n, k) = (self.examples.matrix.rows() as u64, self.mechanism.batches);
        let test = self.mechanism.test_size.min(n);
        let size = ((n - test) / k).max(1);
        let mut hypotheses = self.batches(&move |i| if (i as u64) < n - test { i as u64 / size } else { u64::MAX })?;
        let noise = self.mechanism.noise;
        let mut rng = self.seed.stream(Stream::Noise, 0);
        let mut best = (i64::MAX, 0);
        for (j, bits) in hypotheses.iter().enumerate() {
            let errors = bits.as_ref().map_or(Ok(test as i64), |bits| self.errors(bits, (n - test) as usize))?;
            best = best.min((errors.saturating_add(noise.draw_signed(&mut rng)), j));
        }
        Ok(hypotheses.swap_remove(best.1))
    }

    /// Errors of a hypothesis on the records from `first` on.
    fn errors(&self, bits: &[u8], first: usize) -> Result<i64> {
        let columns = self.examples.matrix.columns();
        let intercept = bits.get(columns).copied().unwrap_or(0);
        let wrong = self.examples.matrix.dot(&parity_bits(&bits[..columns])?, self.run)?;
        let label = |i: usize| (self.examples.labels[i / 64] >> (i % 64) & 1) as u8;
        Ok((first..wrong.len()).filter(|&i| wrong[i] ^ intercept != label(i)).count() as i64)
    }
}
