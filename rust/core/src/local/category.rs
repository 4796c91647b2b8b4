//! Reports about categories, drawn in blocks, and how often each has been made.

use crate::error::Result;
use crate::memory::zeros;
use crate::noise::{CHUNK, Rng, Seed, Stream};
use crate::run::Run;
use crate::simd::{Isa, REPORTS};

/// How many reports half a word can tell apart.
pub(super) const MOST_REPORTS: u32 = 1 << 31;

/// Reports whose words are drawn at a time.
const BLOCK: usize = 512;

/// A randomizer of categories, each draw of which nearly always takes one word.
pub trait Categories: Sync {
    /// Draws a report about a value from a word, and rarely from more of them. A value out of range counts as the nearest
    /// one inside.
    fn draw(&self, value: i64, word: u64, rng: &mut Rng) -> i64;

    /// Draws as many reports as there are values; of every [`REPORTS`] of them, `settled` becomes false where a word alone
    /// does not settle one, and what is written means nothing. As provided, a word settles nothing.
    fn draw_certain(&self, _isa: Isa, _values: &[i64], _words: &[u64], _out: &mut [i64], settled: &mut [bool]) {
        settled.fill(false);
    }
}

/// Fills an array with a report about each value; `values` and `out` have the same length.
pub fn report(categories: &impl Categories, values: &[i64], out: &mut [i64], seed: &Seed, run: Run<'_>) -> Result<()> {
    run.try_for_each_chunk(out, CHUNK, |chunk, out| {
        let mut rng = seed.stream(Stream::Response, chunk as u64);
        let (values, mut words) = (&values[chunk * CHUNK..], [0; BLOCK]);
        for (values, out) in values.chunks(BLOCK).zip(out.chunks_mut(BLOCK)) {
            let (words, mut settled) = (&mut words[..out.len()], [true; BLOCK / REPORTS]);
            rng.words(words);
            categories.draw_certain(run.isa, &values[..out.len()], words, out, &mut settled);
            let parts = values.chunks(REPORTS).zip(words.chunks(REPORTS)).zip(out.chunks_mut(REPORTS));
            for (((values, words), out), _) in parts.zip(settled).filter(|(_, settled)| !settled) {
                let inputs = values.iter().zip(words);
                out.iter_mut().zip(inputs).for_each(|(out, (&value, &word))| {
                    *out = categories.draw(value, word, &mut rng);
                });
            }
        }
        Ok(())
    })
}

/// Reports that are counted between two questions whether to stop.
const COUNTED: usize = 1 << 16;

/// How often each of 0, ..., `size` - 1 occurs among the reports; nothing if another number does.
pub fn count_reports(reports: &[i64], size: usize, run: Run<'_>) -> Result<Option<Vec<i64>>> {
    let (left, right) = reports.split_at(if run.parallel() { reports.len() / 2 } else { 0 });
    let (left, right) = run.join(|| counted(left, size, run), || counted(right, size, run));
    let (Some(left), Some(mut right)) = (left?, right?) else { return Ok(None) };
    right.iter_mut().zip(left).for_each(|(count, more)| *count += more);
    Ok(Some(right))
}

fn counted(reports: &[i64], size: usize, run: Run<'_>) -> Result<Option<Vec<i64>>> {
    let mut counts = zeros(Some(size))?;
    for part in reports.chunks(COUNTED) {
        run.check()?;
        let mut outside = false;
        for &report in part {
            match usize::try_from(report).ok().and_then(|report| counts.get_mut(report)) {
                Some(count) => *count += 1i64,
                None => outside = true,
            }
        }
        if outside {
            return Ok(None);
        }
    }
    Ok(Some(counts))
}
