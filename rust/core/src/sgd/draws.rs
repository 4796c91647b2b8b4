//! Which records a step looks at, drawn ahead so that the memory can be asked for them in time.

use crate::error::{Error, Result};
use crate::memory::room;
use crate::noise::{Rng, Seed, Stream, Weighted};

/// Which rows the steps draw.
#[derive(Clone, Copy)]
pub enum Draws<'a> {
    /// These indices in this order, one for each draw of each step.
    Given(&'a [usize]),
    /// Uniform, independent draws with replacement.
    Uniform,
    /// Independent draws with replacement, with probabilities by integer weights.
    Weighted(&'a Weighted),
}

/// The draws of a run, one block after the other.
pub struct Blocks<'a> {
    draws: Draws<'a>,
    records: usize,
    rng: Rng,
    block: Vec<usize>,
}

impl<'a> Blocks<'a> {
    /// Prepares `all` draws from this number of records, at most `most` of them in a block; `None` stands for a number
    /// that overflowed.
    pub fn new(draws: Draws<'a>, all: Option<usize>, most: usize, records: usize, seed: &Seed) -> Result<Blocks<'a>> {
        if let Draws::Given(rows) = draws {
            if Some(rows.len()) != all {
                let rule = "there must be one for each draw of each step";
                return Err(Error::Shape(format!("indices has length {}, but {rule}", rows.len())));
            }
            if let Some(row) = rows.iter().find(|&&row| row >= records) {
                return Err(Error::parameter("indices", row, "each must be from 0 to n - 1"));
            }
        }
        let block = room(Some(most))?;
        Ok(Blocks { draws, records, rng: seed.stream(Stream::Sampling, 0), block })
    }

    /// The next `count` draws, of which the first has the number `first`.
    pub fn next(&mut self, first: usize, count: usize) -> &[usize] {
        let Blocks { draws, records, rng, block } = self;
        block.clear();
        match draws {
            Draws::Given(rows) => return &rows[first..first + count],
            Draws::Uniform => block.extend((0..count).map(|_| rng.below(*records as u64) as usize)),
            Draws::Weighted(law) => law.draw_many(count, block, rng),
        }
        block
    }
}
