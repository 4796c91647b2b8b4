//! How many votes must change before the winner of a plurality vote can be changed by one more.

use crate::error::{Error, Result};
use crate::run::Run;

/// Histograms that a thread takes at a time.
const CHUNK: usize = 1 << 14;

/// The outcome of a plurality vote, where the smallest label wins a tie.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Plurality {
    /// The label with the most votes.
    pub winner: u32,
    /// The distance to instability, which is how many votes must be replaced before one more could change the winner;
    /// `u32::MAX` where there is only one label.
    pub distance: u32,
}

/// The winner of a histogram with one count for each label, and its distance to instability.
///
/// The distance is the minimum over all r != t of floor((ct(t) - ct(r) - 1 + `[t < r]`) / 2), where t is the winner, ct
/// counts votes, and the bracket is 1 where t < r and 0 otherwise. It changes by at most one when one vote is replaced,
/// and is 0 on both sides if the winner changes. The smallest of the labels with the most votes among the others
/// attains the minimum: a smaller count is at most equal to it even with the advantage of a smaller label. Source:
/// Bassily, Thakkar and Thakurta 2018, Definition 3.1, computed exactly.
#[inline]
pub fn plurality(counts: &[u32]) -> Plurality {
    // The order of these words is that of the plurality: more votes, then a smaller label.
    let rank = |(label, &votes): (u32, &u32)| u64::from(votes) << 32 | u64::from(!label);
    let (first, second) = (0..)
        .zip(counts)
        .map(rank)
        .fold((0, 0), |(first, second): (u64, u64), rank| (first.max(rank), second.max(first.min(rank))));
    let winner = !(first as u32);
    if counts.len() < 2 {
        return Plurality { winner: 0, distance: u32::MAX };
    }
    let rival_first = u32::from(!(second as u32) < winner);
    let margin = (first >> 32) as u32 - (second >> 32) as u32 - rival_first;
    Plurality { winner, distance: margin / 2 }
}

/// The result of [`plurality`] for each of many histograms, of `labels` counts each, one after the other.
///
/// Cost: one pass over the counts.
pub fn pluralities(counts: &[u32], labels: usize, out: &mut [Plurality], run: Run<'_>) -> Result<()> {
    if labels == 0 || counts.len() != labels * out.len() {
        return Err(Error::Shape(format!("{} counts, but {} histograms of {labels} labels", counts.len(), out.len())));
    }
    run.try_for_each_chunk(out, CHUNK, |chunk, out| {
        let rows = counts[chunk * CHUNK * labels..].chunks_exact(labels);
        out.iter_mut().zip(rows).for_each(|(out, row)| *out = plurality(row));
        Ok(())
    })
}
