//! Votes of many members on many queries, counted.

use crate::error::{Error, Result};
use crate::run::Run;
use crate::simd::{VOTES, add_votes};

/// Queries of one tile: nearly a page of each member's votes. Counts of different labels that are a whole page apart would
/// drive each other out of the nearest cache.
const WIDTH: usize = 7 << 9;

/// Beyond so many labels a comparison with each costs more than an access at the label.
const FEW_LABELS: usize = 24;

/// Adds up votes: row i of `votes` is what member i says to each of the `queries`; row j of `counts` becomes the votes for
/// each label on query j.
///
/// A vote that is no label counts as one for label 0: an error would tell what a member says.
///
/// Cost: one pass over the votes up to two dozen labels, about a nanosecond a vote beyond.
pub fn count_votes(votes: &[u8], queries: usize, labels: usize, counts: &mut [u32], run: Run<'_>) -> Result<()> {
    if queries == 0 || labels == 0 {
        return Ok(());
    }
    let members = votes.len() / queries;
    if votes.len() % queries != 0 || counts.len() != queries * labels || members > u32::MAX as usize {
        let text = format!("{} votes on {queries} queries do not fit {} counts", votes.len(), counts.len());
        return Err(Error::Shape(text));
    }
    run.try_for_each_chunk(counts, WIDTH * labels, |chunk, counts| {
        let (start, width) = (chunk * WIDTH, counts.len() / labels);
        let row = |member: usize| &votes[member * queries + start..][..width];
        if labels <= FEW_LABELS {
            compare(row, members, counts, labels, run)
        } else {
            scatter(row, members, counts, labels)
        };
        Ok(())
    })
}

/// Compares every vote with every label but 0, whose count is what the others leave.
fn compare<'a>(row: impl Fn(usize) -> &'a [u8], members: usize, counts: &mut [u32], labels: usize, run: Run<'_>) {
    let width = counts.len() / labels;
    let mut tile = vec![0; width * (labels - 1)];
    let mut sums = vec![0; width * (labels - 1)];
    for first in (0..members).step_by(VOTES) {
        let rows: Vec<&[u8]> = (first..members.min(first + VOTES)).map(&row).collect();
        tile.fill(0);
        add_votes(run.isa, &rows, &mut tile);
        sums.iter_mut().zip(&tile).for_each(|(sum, &votes)| *sum += u32::from(votes));
    }
    for (query, counts) in counts.chunks_exact_mut(labels).enumerate() {
        let mut rest = members as u32;
        for (count, sums) in counts[1..].iter_mut().zip(sums.chunks_exact(width)) {
            *count = sums[query];
            rest -= sums[query];
        }
        counts[0] = rest;
    }
}

fn scatter<'a>(row: impl Fn(usize) -> &'a [u8], members: usize, counts: &mut [u32], labels: usize) {
    counts.fill(0);
    for member in 0..members {
        for (counts, &vote) in counts.chunks_exact_mut(labels).zip(row(member)) {
            counts[if usize::from(vote) < labels { usize::from(vote) } else { 0 }] += 1;
        }
    }
}
