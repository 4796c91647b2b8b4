//! Votes of many members on many queries, counted.

use crate::error::{Error, Result};
use crate::memory::{collected, zeros};
use crate::run::Run;
use crate::simd::{LANE, VOTES, add_votes};

/// Queries of one tile at most: rows stand far apart in memory, which only gets fast along a row.
const WIDTH: usize = 1 << 16;

/// Counts of one tile at most, which are to stay in the second cache.
const COUNTS: usize = 1 << 19;

/// Members whose votes a count in two bytes has room for.
const MEMBERS: usize = VOTES * 257;

/// Counts votes: row i of `votes` holds the labels that member i gives to the `queries` queries, and row j of `counts`
/// receives the number of votes for each label on query j.
///
/// A vote that is no label counts as one for label 0: an error would reveal what a member votes.
///
/// Cost: one pass over the votes for up to ten labels, and about as long again for every ten more.
pub fn count_votes(votes: &[u8], queries: usize, labels: usize, counts: &mut [u32], run: Run<'_>) -> Result<()> {
    if queries == 0 || labels == 0 {
        return Ok(());
    }
    let members = votes.len() / queries;
    if !votes.len().is_multiple_of(queries) || counts.len() != queries * labels || members > u32::MAX as usize {
        let text = format!("{} votes on {queries} queries do not fit {} counts", votes.len(), counts.len());
        return Err(Error::Shape(text));
    }
    let width = WIDTH.min(COUNTS / labels / LANE * LANE).max(LANE);
    run.try_for_each_chunk(counts, width * labels, |chunk, counts| {
        let (start, width) = (chunk * width, counts.len() / labels);
        let row = |member: usize| &votes[member * queries + start..][..width];
        counts.fill(0);
        count_tile(row, members, counts, labels, run)
    })
}

/// Counts the votes for every label but 0, whose count is what the others leave: in bytes, then in words of two, then
/// in `counts`.
fn count_tile<'a>(
    row: impl Fn(usize) -> &'a [u8],
    members: usize,
    counts: &mut [u32],
    labels: usize,
    run: Run<'_>,
) -> Result<()> {
    let lanes = (counts.len() / labels).div_ceil(LANE);
    let mut tile: Vec<[u8; LANE]> = zeros(lanes.checked_mul(labels - 1))?;
    let mut sums: Vec<[u16; LANE]> = zeros(Some(tile.len()))?;
    for start in (0..members).step_by(MEMBERS) {
        let end = members.min(start + MEMBERS);
        sums.fill([0; LANE]);
        for first in (start..end).step_by(VOTES) {
            run.check()?;
            let rows = collected((first..end.min(first + VOTES)).map(&row))?;
            tile.fill([0; LANE]);
            add_votes(run.isa, &rows, labels - 1, &mut tile);
            // No sum passes the number of members, and a checked one would not be vectorized.
            let both = sums.as_flattened_mut().iter_mut().zip(tile.as_flattened());
            both.for_each(|(sum, &votes)| *sum = sum.wrapping_add(u16::from(votes)));
        }
        add_sums((end - start) as u32, &sums, counts, labels);
    }
    Ok(())
}

fn add_sums(members: u32, sums: &[[u16; LANE]], counts: &mut [u32], labels: usize) {
    for (lane, counts) in counts.chunks_mut(LANE * labels).enumerate() {
        let sums = &sums[lane * (labels - 1)..][..labels - 1];
        for (query, counts) in counts.chunks_exact_mut(labels).enumerate() {
            // Labels are counted ten at a time: those who change the votes meanwhile may be counted twice.
            let mut rest = members;
            for (count, sums) in counts[1..].iter_mut().zip(sums) {
                *count += u32::from(sums[query]);
                rest = rest.saturating_sub(u32::from(sums[query]));
            }
            counts[0] += rest;
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn what_stood_in_the_counts_before_is_gone() {
        // Three members on two queries; 9 is no label.
        let (votes, mut counts) = ([1, 0, 2, 1, 1, 9], [7; 6]);
        count_votes(&votes, 2, 3, &mut counts, Run::alone(crate::simd::Isa::Portable)).unwrap();
        assert_eq!(counts, [0, 2, 1, 2, 1, 0]);
    }

    #[test]
    fn votes_that_change_between_two_labels_leave_none_for_the_first() {
        let mut counts = [1, 0, 0];
        add_sums(2, &[[2; LANE], [1; LANE]], &mut counts, 3);
        assert_eq!(counts, [1, 2, 1]);
    }
}
