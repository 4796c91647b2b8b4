//! The mechanisms: Poisson sampling, an exact solution space, a uniform choice in it.

use super::plan::{Method, Plan};
use super::rates::{base_rate, loop_rate};
use crate::error::{Error, Result};
use crate::gf2::{BitMatrix, Equations, RowSpace, System, parity_bits};
use crate::memory::{reserve, room};
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
            Err(_) => {
                Err(Error::parameter("n", self.matrix.rows(), "at most 2^32 - 1 records can be learned from at once"))
            }
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
}

/// Some of the records of a run, all of which have a public number.
#[derive(Clone, Copy)]
pub struct Part<'a> {
    /// The records.
    pub examples: Examples<'a>,
    /// The number of the first of them; the others follow.
    pub first: u64,
    /// The number of all records of the run.
    pub total: u64,
}

/// All records of a run, in memory or in parts: each answer is a sum over them, of spans or of counts.
pub trait Records {
    /// The number of all records.
    fn total(&self) -> u64;

    /// For each system the span of the records that it samples, which [`Mechanism::add`] gathers from each part.
    fn spaces(&self, systems: &[u64]) -> Result<Vec<RowSpace>>;

    /// For each hypothesis its errors on the test records, which [`Mechanism::errors`] counts in each part.
    fn errors(&self, hypotheses: &[Vec<u8>]) -> Result<Vec<i64>>;
}

impl Mechanism {
    /// Adds those records of a part that a system samples to its equations. Parts come in any order, and spans of some of
    /// them join to that of all: the coins are those of the run and of a record's number, whatever part it lies in.
    ///
    /// Cost: for all parts together an exact solution space of about p n equations.
    pub fn add(
        &self,
        equations: &mut Equations,
        part: &Part<'_>,
        system: u64,
        seed: &Seed,
        run: Run<'_>,
    ) -> Result<()> {
        let sample = self.sample(part, system, seed)?;
        let Examples { matrix, labels, affine } = part.examples;
        equations.add(&System { matrix, rows: Some(&sample), ones: affine, rhs: Some(labels) }, run)
    }

    /// Errors of a hypothesis on those records of a part that are the run's test records.
    pub fn errors(&self, part: &Part<'_>, bits: &[u8], run: Run<'_>) -> Result<i64> {
        let Examples { matrix, labels, .. } = part.examples;
        let intercept = bits.get(matrix.columns()).copied().unwrap_or(0);
        let first = (part.total - self.tested(part.total)).saturating_sub(part.first).min(matrix.rows() as u64);
        let wrong = matrix.dot(&parity_bits(&bits[..matrix.columns()])?, run)?;
        let label = |i: usize| (labels[i / 64] >> (i % 64) & 1) as u8;
        Ok((first as usize..wrong.len()).filter(|&i| wrong[i] ^ intercept != label(i)).count() as i64)
    }

    /// The indices in a part of the records that a system samples.
    fn sample(&self, part: &Part<'_>, system: u64, seed: &Seed) -> Result<Vec<u32>> {
        part.examples.check()?;
        // A word a record, whatever becomes of it: the stream's position is the record's number.
        let (mut coins, mut batches) = (seed.stream(Stream::Sampling, system), seed.stream(Stream::Noise, 1));
        coins.seek(part.first);
        batches.seek(part.first);
        let mut sample = Vec::new();
        for (i, record) in (0..part.examples.matrix.rows() as u32).zip(part.first..) {
            let sampled = self.rate.draw(&mut coins);
            let batch = match (self.method, self.neighbors) {
                (Method::Loop, _) => system,
                (Method::Batches, Neighbors::ReplaceOne) => self.batch_by_position(record, part.total),
                // No other record may change the batch of one where records are added.
                (Method::Batches, Neighbors::AddRemove) => self.batch_by_coin(record, batches.next_u64(), seed),
                (Method::Paper, _) => self.batch_before_test(record, part.total),
            };
            if sampled && batch == system {
                reserve(&mut sample, 1)?;
                sample.push(i);
            }
        }
        Ok(sample)
    }

    fn batch_by_position(&self, record: u64, total: u64) -> u64 {
        (((u128::from(record) + 1) * u128::from(self.batches) - 1) / u128::from(total.max(1))) as u64
    }

    /// A uniform batch. The few words that favor some batches are replaced by those of a stream of the record's own.
    fn batch_by_coin(&self, record: u64, word: u64, seed: &Seed) -> u64 {
        let product = u128::from(word) * u128::from(self.batches);
        if product as u64 >= self.batches {
            return (product >> 64) as u64;
        }
        seed.stream(Stream::Selection, record).below_from(word, self.batches)
    }

    fn batch_before_test(&self, record: u64, total: u64) -> u64 {
        let learned = total - self.tested(total);
        let size = (learned / self.batches).max(1);
        if record < learned { record / size } else { u64::MAX }
    }

    /// The number of test records, which are the last ones.
    fn tested(&self, total: u64) -> u64 {
        self.test_size.min(total)
    }
}

/// Runs a mechanism on records in memory. Returns the bits of the hypothesis, with the intercept last if there is one,
/// or `None` for no answer.
///
/// Guarantee: pure epsilon-DP for the epsilon and the neighbor relation of the mechanism, for every data set, including
/// those that no parity fits.
///
/// Cost: an exact solution space of about p n equations for each try or batch.
pub fn learn(examples: &Examples<'_>, mechanism: &Mechanism, seed: &Seed, run: Run<'_>) -> Result<Option<Vec<u8>>> {
    let part = Part { examples: *examples, first: 0, total: examples.matrix.rows() as u64 };
    examples.check()?;
    learn_from(&InMemory { part, mechanism, seed, run }, mechanism, seed)
}

struct InMemory<'a> {
    part: Part<'a>,
    mechanism: &'a Mechanism,
    seed: &'a Seed,
    run: Run<'a>,
}

impl Records for InMemory<'_> {
    fn total(&self) -> u64 {
        self.part.total
    }

    fn spaces(&self, systems: &[u64]) -> Result<Vec<RowSpace>> {
        let mut spaces = room(Some(systems.len()))?;
        for &system in systems {
            self.run.check()?;
            let Examples { matrix, affine, .. } = self.part.examples;
            let mut equations = Equations::new(matrix.columns() + usize::from(affine))?;
            self.mechanism.add(&mut equations, &self.part, system, self.seed, self.run)?;
            spaces.push(equations.into_space(self.run)?);
        }
        Ok(spaces)
    }

    fn errors(&self, hypotheses: &[Vec<u8>]) -> Result<Vec<i64>> {
        hypotheses.iter().map(|bits| self.mechanism.errors(&self.part, bits, self.run)).collect()
    }
}

/// The same for records wherever they lie, which are asked for spans of samples and for counts of errors alone.
pub fn learn_from(records: &dyn Records, mechanism: &Mechanism, seed: &Seed) -> Result<Option<Vec<u8>>> {
    let learner = Learner { records, mechanism, seed };
    match mechanism.method {
        Method::Loop => learner.retry(),
        Method::Batches => Ok(learner.batches()?.into_iter().flatten().next()),
        Method::Paper => learner.paper(),
    }
}

struct Learner<'a> {
    records: &'a dyn Records,
    mechanism: &'a Mechanism,
    seed: &'a Seed,
}

impl Learner<'_> {
    /// LOOP: draws fresh samples of the same records until one is consistent or the coin gives up.
    fn retry(&self) -> Result<Option<Vec<u8>>> {
        let mut answer = self.seed.stream(Stream::Answer, 0);
        let mut attempt = 0;
        loop {
            if self.mechanism.silent.draw(&mut answer) {
                return Ok(None);
            }
            if let Some(bits) = self.solve(&[attempt])?.swap_remove(0) {
                return Ok(Some(bits));
            }
            attempt += 1;
        }
    }

    /// Runs the base learner on every batch whose coin allows it, even after one has answered: the number of systems
    /// solved must not depend on the data.
    fn batches(&self) -> Result<Vec<Option<Vec<u8>>>> {
        let mut answer = self.seed.stream(Stream::Answer, 0);
        let batches = usize::try_from(self.mechanism.batches).ok();
        let (mut allowed, mut hypotheses) = (room(batches)?, room(batches)?);
        allowed.extend((0..self.mechanism.batches).filter(|_| !self.mechanism.silent.draw(&mut answer)));
        let mut answers = self.solve(&allowed)?.into_iter();
        let mut allowed = allowed.into_iter().peekable();
        hypotheses.extend((0..self.mechanism.batches).map(|j| allowed.next_if_eq(&j).and_then(|_| answers.next()?)));
        Ok(hypotheses)
    }

    /// A uniform solution of each system, or none of one without.
    fn solve(&self, systems: &[u64]) -> Result<Vec<Option<Vec<u8>>>> {
        if systems.is_empty() {
            return Ok(Vec::new());
        }
        let spaces = self.records.spaces(systems)?;
        let draw = |(&system, space): (&u64, &RowSpace)| space.sample(&mut self.seed.stream(Stream::Solution, system));
        systems.iter().zip(&spaces).map(draw).collect()
    }

    /// The algorithm A* of Kasiviswanathan et al. 2011: chooses the batch whose hypothesis has the fewest errors on the
    /// last records, up to noise. No answer counts as an error on every one of them.
    fn paper(&self) -> Result<Option<Vec<u8>>> {
        let mut hypotheses = self.batches()?;
        let tried: Vec<Vec<u8>> = hypotheses.iter().flatten().cloned().collect();
        let mut errors = if tried.is_empty() { Vec::new() } else { self.records.errors(&tried)? }.into_iter();
        let tested = self.mechanism.tested(self.records.total()) as i64;
        let noise = self.mechanism.noise;
        let mut rng = self.seed.stream(Stream::Noise, 0);
        let mut best = (i64::MAX, 0);
        for (j, bits) in hypotheses.iter().enumerate() {
            let wrong = bits.as_ref().and_then(|_| errors.next()).unwrap_or(tested);
            best = best.min((wrong.saturating_add(noise.draw_signed(&mut rng)), j));
        }
        Ok(hypotheses.swap_remove(best.1))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// A batch is the integer part of k times the word over 2^64; words that would favor some batches draw again.
    #[test]
    fn a_batch_is_that_of_the_word_or_of_the_records_own_stream() {
        let epsilon = Epsilon::new(1.0).unwrap();
        let plan = Plan { n: 0, p: 0.0, g: None, c: Some(0.2), k: Some(3), batch_size: None, test_size: None };
        let mechanism = Mechanism::new(epsilon, Neighbors::AddRemove, Method::Batches, &plan).unwrap();
        let seed = Seed::reproducible([1; 32]);
        for (word, batch) in [(1 << 62, 0), (1 << 63, 1), (u64::MAX, 2)] {
            assert_eq!(mechanism.batch_by_coin(7, word, &seed), batch);
        }
        let mut counts = [0; 3];
        (0..3000).for_each(|record| counts[mechanism.batch_by_coin(record, 0, &seed) as usize] += 1);
        assert!(counts.iter().all(|count| (800..1200).contains(count)), "{counts:?}");
        assert_eq!(mechanism.batch_by_coin(7, 0, &seed), mechanism.batch_by_coin(7, 0, &seed));
    }
}
