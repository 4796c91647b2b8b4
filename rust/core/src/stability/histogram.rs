//! Histograms of scores in [0, 1], over bins of equal width and over the same bins shifted by half of it.

use super::distance::{Plurality, plurality};
use crate::error::{Error, Result};
use crate::memory::zeros;
use crate::run::Run;

/// Queries that a thread takes at a time.
const CHUNK: usize = 1 << 10;

/// The result of [`plurality`] for two histograms of the scores on each query, where row i of `scores` holds the score
/// from member i for every query. The first histogram has `bins` bins of equal width over [0, 1]. The second has those
/// bins shifted by half a width that lie within [0, 1], one fewer.
///
/// A score within half a width of 0 or of 1 lies in no bin of the second histogram: its vote is for a label that cannot
/// win. The distance over the others is as exact and as sensitive as ever, since replacing a vote still moves at most
/// one vote from one count to another. A score that is no number in [0, 1] falls into the nearest bin, NaN into the
/// first: an error would reveal it.
///
/// Cost: some nanoseconds for each score.
pub fn histograms(scores: &[f64], bins: usize, out: &mut [[Plurality; 2]], run: Run<'_>) -> Result<()> {
    let queries = out.len();
    if queries == 0 {
        return Ok(());
    }
    if bins < 2 || !scores.len().is_multiple_of(queries) || scores.len() / queries > u32::MAX as usize {
        return Err(Error::Shape(format!("{} scores of {queries} queries in {bins} bins", scores.len())));
    }
    run.try_for_each_chunk(out, CHUNK, |chunk, out| {
        let (start, width) = (chunk * CHUNK, out.len());
        let mut cells: Vec<u32> = zeros(width.checked_mul(2 * bins))?;
        for row in scores.chunks_exact(queries) {
            for (score, cells) in row[start..][..width].iter().zip(cells.chunks_exact_mut(2 * bins)) {
                cells[((2.0 * (score * bins as f64)) as usize).min(2 * bins - 1)] += 1;
            }
        }
        find_winners(&cells, bins, out)?;
        run.check()
    })
}

/// The same for counts of scores in cells of half the width of a bin, `2 * bins` cells for each query: two neighboring
/// ones are a bin of one histogram or of the other.
///
/// Cost: a pass over the counts.
pub fn cell_histograms(cells: &[u32], bins: usize, out: &mut [[Plurality; 2]], run: Run<'_>) -> Result<()> {
    if bins < 2 || Some(cells.len()) != bins.checked_mul(2).and_then(|width| width.checked_mul(out.len())) {
        return Err(Error::Shape(format!("{} counts of {} queries in {bins} bins", cells.len(), out.len())));
    }
    run.try_for_each_chunk(out, CHUNK, |chunk, out| {
        find_winners(&cells[chunk * CHUNK * 2 * bins..][..out.len() * 2 * bins], bins, out)?;
        run.check()
    })
}

fn find_winners(cells: &[u32], bins: usize, out: &mut [[Plurality; 2]]) -> Result<()> {
    let (mut plain, mut shifted): (Vec<u32>, Vec<u32>) = (zeros(Some(bins))?, zeros(Some(bins - 1))?);
    for (out, cells) in out.iter_mut().zip(cells.chunks_exact(2 * bins)) {
        let pairs = |from: usize| cells[from..].chunks_exact(2).map(|pair| pair[0].saturating_add(pair[1]));
        plain.iter_mut().zip(pairs(0)).for_each(|(count, votes)| *count = votes);
        // The first cell and the last are in no shifted bin.
        shifted.iter_mut().zip(pairs(1)).for_each(|(count, votes)| *count = votes);
        *out = [plurality(&plain), plurality(&shifted)];
    }
    Ok(())
}
