//! Independent draws from a distribution with integer weights, exactly.

use super::rng::Rng;
use crate::error::{Error, Result};
use crate::memory::{collected, zeros};
use crate::run::Run;
use crate::simd::prefetch;

/// A distribution on indices with integer weights: each index has the probability weight / sum of the weights.
///
/// A uniform integer below the sum is located among the cumulative sums. A guide table says for each part of the range
/// where the search begins.
pub struct Weighted {
    cumulative: Vec<u64>,
    guide: Vec<u32>,
    shift: u32,
}

/// Weights that a thread adds up at a time.
const CHUNK: usize = 1 << 16;

impl Weighted {
    /// The distribution of fewer than 2^32 weights, whose sum must be at least 1 and below 2^64.
    pub fn new(weights: Vec<u64>, run: Run<'_>) -> Result<Weighted> {
        const RULE: &str = "there must be fewer than 2^32, with a sum of at least 1 and below 2^64";
        let wrong = |what: &str| Err(Error::parameter("weights", what, RULE));
        if u32::try_from(weights.len()).is_err() {
            return wrong("too many");
        }
        let whole = weights.iter().map(|&weight| u128::from(weight)).sum::<u128>();
        let Ok(sum) = u64::try_from(whole) else {
            return wrong("an array with too large a sum");
        };
        if sum == 0 {
            return wrong("an array with sum 0");
        }
        let cumulative = cumulated(weights, run)?;
        // As many parts as weights, or up to twice as many.
        let shift = (u64::BITS - (sum - 1).leading_zeros()).saturating_sub(cumulative.len().ilog2() + 1);
        let mut guide: Vec<u32> = zeros(usize::try_from((sum - 1) >> shift).ok().map(|last| last + 1))?;
        run.try_for_each_chunk(&mut guide, CHUNK, |chunk, guide| {
            let part = |i: usize| ((chunk * CHUNK + i) as u64) << shift;
            let mut index = cumulative.partition_point(|&sum| sum <= part(0));
            for (i, first) in guide.iter_mut().enumerate() {
                while cumulative[index] <= part(i) {
                    index += 1;
                }
                *first = index as u32;
            }
            Ok(())
        })?;
        Ok(Weighted { cumulative, guide, shift })
    }

    /// Draws one index.
    #[inline]
    pub fn draw(&self, rng: &mut Rng) -> usize {
        let target = self.target(rng);
        self.located(target, self.guide[self.part(target)])
    }

    /// Appends `count` draws to `out`, the same as if drawn one by one. They are faster together, since many reads of
    /// memory are under way at a time.
    pub fn draw_many(&self, count: usize, out: &mut Vec<usize>, rng: &mut Rng) {
        const GROUP: usize = 64;
        let mut targets = [0; GROUP];
        let mut starts = [0; GROUP];
        for first in (0..count).step_by(GROUP) {
            let size = GROUP.min(count - first);
            for target in &mut targets[..size] {
                *target = self.target(rng);
                prefetch(&self.guide[self.part(*target)..][..1]);
            }
            for (start, &target) in starts.iter_mut().zip(&targets[..size]) {
                *start = self.guide[self.part(target)];
                prefetch(&self.cumulative[*start as usize..][..1]);
            }
            let pairs = targets[..size].iter().zip(&starts);
            out.extend(pairs.map(|(&target, &start)| self.located(target, start)));
        }
    }

    #[inline]
    fn target(&self, rng: &mut Rng) -> u64 {
        rng.below(self.cumulative[self.cumulative.len() - 1])
    }

    #[inline]
    fn part(&self, target: u64) -> usize {
        (target >> self.shift) as usize
    }

    /// The index of the target, which is not before the one that its part begins with.
    #[inline]
    fn located(&self, target: u64, start: u32) -> usize {
        let mut index = start as usize;
        while self.cumulative[index] <= target {
            index += 1;
        }
        index
    }
}

/// The cumulative sums, in place: within chunks at once, then the chunks' own.
fn cumulated(mut weights: Vec<u64>, run: Run<'_>) -> Result<Vec<u64>> {
    run.try_for_each_chunk(&mut weights, CHUNK, |_, weights| {
        let mut sum = 0;
        weights.iter_mut().for_each(|weight| {
            sum += *weight;
            *weight = sum;
        });
        Ok(())
    })?;
    let mut sum = 0;
    let before = collected(weights.chunks(CHUNK).map(|chunk| {
        let before = sum;
        sum += chunk.last().copied().unwrap_or(0);
        before
    }))?;
    run.try_for_each_chunk(&mut weights, CHUNK, |chunk, weights| {
        weights.iter_mut().for_each(|weight| *weight += before[chunk]);
        Ok(())
    })?;
    Ok(weights)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::rng::{Seed, Stream};
    use super::*;
    use crate::simd::Isa;

    #[test]
    fn many_draws_are_those_of_one_by_one() {
        let weights = (0..1000).map(|i| i * i % 97).collect();
        let law = Weighted::new(weights, Run::alone(Isa::Portable)).unwrap();
        let stream = || Seed::reproducible([4; 32]).stream(Stream::Integers, 0);
        for count in [0, 1, 63, 64, 65, 1000] {
            let (mut many, mut rng) = (Vec::new(), stream());
            law.draw_many(count, &mut many, &mut rng);
            let mut rng = stream();
            assert_eq!(many, (0..count).map(|_| law.draw(&mut rng)).collect::<Vec<usize>>());
        }
    }
}
