//! Which records a step looks at, drawn ahead so that the memory can be asked for them in time.

use super::plan::Plan;
use crate::error::{Error, Result};
use crate::memory::room;
use crate::noise::{Poisson, Rng, Seed, Stream, Weighted};
use crate::run::Run;

/// Which rows the steps draw.
#[derive(Clone, Copy)]
pub enum Draws<'a> {
    /// These indices in this order, one for each draw of each step.
    Given(&'a [usize]),
    /// Uniform, independent draws with replacement.
    Uniform,
    /// The same, but their number in each step has a Poisson law, whose mean is the batch size. So each record is drawn
    /// independently of all others, a Poisson number of times.
    Poisson,
    /// Independent draws with replacement, with probabilities by integer weights.
    Weighted(&'a Weighted),
}

/// The draws of a run: one stream of rows, of which each step takes some.
///
/// Rows are drawn in blocks whatever the steps take, so that their memory does not depend on the numbers that are drawn.
pub struct Stock<'a> {
    draws: Draws<'a>,
    records: usize,
    batch: usize,
    counts: Option<(Poisson, Rng)>,
    rng: Rng,
    block: Vec<usize>,
    most: usize,
    /// The rows of the present block, those of it that were taken, and those of all blocks before it.
    length: usize,
    taken: usize,
    before: usize,
    /// The steps that have not begun.
    steps: usize,
}

impl<'a> Stock<'a> {
    /// Prepares the draws of a plan from this number of records, at most `most` of them in a block.
    pub fn new(draws: Draws<'a>, plan: &Plan, most: usize, records: usize, seed: &Seed) -> Result<Stock<'a>> {
        if let Draws::Given(rows) = draws {
            if Some(rows.len()) != plan.steps.checked_mul(plan.batch_size) {
                let rule = "there must be one for each draw of each step";
                return Err(Error::Shape(format!("indices has length {}, but {rule}", rows.len())));
            }
            if let Some(row) = rows.iter().find(|&&row| row >= records) {
                return Err(Error::parameter("indices", row, "each must be from 0 to n - 1"));
            }
        }
        let law = || (Poisson::new(plan.batch_size as u64), seed.stream(Stream::Sampling, 1));
        Ok(Stock {
            draws,
            records,
            batch: plan.batch_size,
            counts: matches!(draws, Draws::Poisson).then(law),
            rng: seed.stream(Stream::Sampling, 0),
            block: room(Some(most))?,
            most,
            length: 0,
            taken: 0,
            before: 0,
            steps: plan.steps,
        })
    }

    /// How many rows the next step takes.
    pub fn begin(&mut self) -> usize {
        self.steps -= 1;
        match &mut self.counts {
            Some((law, rng)) => law.draw(rng) as usize,
            None => self.batch,
        }
    }

    /// Up to `wanted` rows of a step, at least one of them, and how many they are; the rows behind them will be needed next.
    pub fn take(&mut self, wanted: usize, run: Run<'_>) -> Result<(&[usize], usize)> {
        if self.taken == self.length {
            run.check()?;
            self.refill(wanted);
        }
        let (start, count) = (self.taken, wanted.min(self.length - self.taken));
        self.taken += count;
        let block = if let Draws::Given(rows) = self.draws { &rows[self.before..] } else { &self.block[..] };
        Ok((&block[start..self.length], count))
    }

    fn refill(&mut self, wanted: usize) {
        let count = self.steps.saturating_mul(self.batch).saturating_add(wanted).min(self.most);
        self.before += self.length;
        (self.length, self.taken) = (count, 0);
        let Stock { draws, records, rng, block, .. } = self;
        block.clear();
        match draws {
            Draws::Given(_) => {}
            Draws::Uniform | Draws::Poisson => block.extend((0..count).map(|_| rng.below(*records as u64) as usize)),
            Draws::Weighted(law) => law.draw_many(count, block, rng),
        }
    }
}
