//! Error counts that are sums over blocks of records.

use crate::error::Result;
use crate::memory::zeros;
use crate::run::Run;

/// Parts of the work for each thread, so that one on a busy core can leave some to the others.
const SHARES: usize = 4;

/// Where hypotheses are more than this, their counts take more memory than balance is worth.
const MANY: usize = 1 << 16;

/// The sums over all blocks of what `add` adds for each hypothesis.
///
/// Cost: beside that of `add`, eight bytes a hypothesis and thread.
pub(super) fn sum(
    hypotheses: usize,
    blocks: usize,
    run: Run<'_>,
    add: impl Fn(usize, &mut [i64]) -> Result<()> + Sync + Send,
) -> Result<Vec<i64>> {
    let threads = if run.parallel() { rayon::current_num_threads() } else { 1 };
    let shares = if hypotheses <= MANY { SHARES } else { 1 };
    let parts = (threads * shares).min(blocks).max(1);
    let mut sums = zeros(parts.checked_mul(hypotheses))?;
    run.try_for_each_chunk(&mut sums, hypotheses.max(1), |part, sums| {
        (part..blocks).step_by(parts).try_for_each(|block| {
            run.check()?;
            add(block, sums)
        })
    })?;
    let (total, rest) = sums.split_at_mut(hypotheses);
    for part in rest.chunks_exact(hypotheses.max(1)) {
        total.iter_mut().zip(part).for_each(|(total, part)| *total += part);
    }
    sums.truncate(hypotheses);
    Ok(sums)
}
