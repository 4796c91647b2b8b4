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
        // The last column is for votes that cannot win.
        let count = width.checked_mul(bins);
        let (mut plain, mut shifted): (Vec<u32>, Vec<u32>) = (zeros(count)?, zeros(count)?);
        for row in scores.chunks_exact(queries) {
            let scores = row[start..][..width].iter();
            for ((score, plain), shifted) in
                scores.zip(plain.chunks_exact_mut(bins)).zip(shifted.chunks_exact_mut(bins))
            {
                let place = score * bins as f64;
                plain[(place as usize).min(bins - 1)] += 1;
                shifted[if place >= 0.5 { ((place - 0.5) as usize).min(bins - 1) } else { bins - 1 }] += 1;
            }
        }
        let rows = plain.chunks_exact(bins).zip(shifted.chunks_exact(bins));
        for (out, (plain, shifted)) in out.iter_mut().zip(rows) {
            *out = [plurality(plain), plurality(&shifted[..bins - 1])];
        }
        run.check()
    })
}
