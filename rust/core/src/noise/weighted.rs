//! Independent draws from a distribution with integer weights, exactly.

use super::array::CHUNK as DRAWS;
use super::rng::{Rng, Seed, Stream};
use crate::error::{Error, Result};
use crate::memory::{collected, copied, zeros};
use crate::run::Run;
use crate::simd::{Isa, PART, Parts, SUMS, TARGETS, ask_for_huge_pages, locate, prefetch};

/// A distribution on indices with integer weights: each index has the probability weight / sum of the weights.
///
/// A uniform integer below the sum is located among the cumulative sums. The range is cut into parts, each of which has
/// the leading digits of the sums in it beside the index of the first one, so that a draw mostly reads one place in
/// memory.
pub struct Weighted {
    cumulative: Vec<u64>,
    /// The parts, one after the other, from a place on at which a line of the caches begins.
    table: Vec<u16>,
    start: usize,
    shift: u32,
    /// Of the products that a draw is the upper half of, those with a lower half below this are drawn again.
    uneven: u64,
    isa: Isa,
}

/// Weights that a thread adds up at a time, and parts that it makes.
const CHUNK: usize = 1 << 14;

/// Entries of a line of the caches.
const LINE: usize = 32;

impl Weighted {
    /// The distribution of fewer than 2^32 weights, whose sum must be at least 1 and below 2^64.
    pub fn new(weights: &[u64], run: Run<'_>) -> Result<Weighted> {
        let mut running = copied(weights)?;
        run.try_for_each_chunk(&mut running, CHUNK, |_, running| {
            let mut sum = 0u64;
            for running in running {
                sum = sum.checked_add(*running).ok_or_else(too_large)?;
                *running = sum;
            }
            Ok(())
        })?;
        Weighted::of_chunks(running, CHUNK, run)
    }

    /// The same from cumulative sums within chunks of the given length.
    pub(crate) fn of_chunks(mut running: Vec<u64>, chunk: usize, run: Run<'_>) -> Result<Weighted> {
        if u32::try_from(running.len()).is_err() {
            return Err(wrong("too many"));
        }
        let mut sum = 0u64;
        let mut before = collected(running.chunks(chunk).map(|chunk| chunk.last().copied().unwrap_or(0)))?;
        for sums in &mut before {
            let more = *sums;
            *sums = sum;
            sum = sum.checked_add(more).ok_or_else(too_large)?;
        }
        if sum == 0 {
            return Err(wrong("an array with sum 0"));
        }
        run.try_for_each_chunk(&mut running, chunk, |chunk, running| {
            running.iter_mut().for_each(|running| *running += before[chunk]);
            Ok(())
        })?;
        // An eighth to a quarter as many parts as weights.
        let shift = (u64::BITS - (sum - 1).leading_zeros()).saturating_sub((running.len() / 8).max(1).ilog2() + 1);
        let entries = usize::try_from((sum - 1) >> shift).ok().and_then(|last| (last + 1).checked_mul(PART));
        let mut table: Vec<u16> = zeros(entries.map(|entries| entries + LINE))?;
        ask_for_huge_pages(&mut table);
        let start = table.as_ptr().align_offset(2 * LINE).min(LINE);
        let end = table.len() - LINE + start;
        run.try_for_each_chunk(&mut table[start..end], CHUNK * PART, |chunk, parts| {
            fill_parts((chunk * CHUNK) as u64, parts, &running, shift);
            Ok(())
        })?;
        Ok(Weighted { cumulative: running, table, start, shift, uneven: sum.wrapping_neg() % sum, isa: run.isa })
    }

    /// Draws one index, by a search that takes longer the more weights there are.
    #[inline]
    pub fn draw(&self, rng: &mut Rng) -> usize {
        let target = self.target(rng);
        self.cumulative.partition_point(|&sum| sum <= target)
    }

    /// Appends `count` draws to `out`, the same as if drawn one by one. They are faster together, since many reads of
    /// memory are under way at a time.
    pub fn draw_many(&self, count: usize, out: &mut Vec<usize>, rng: &mut Rng) {
        self.draw_each(count, rng, |index| out.push(index));
    }

    /// Fills an array with independent draws, as `draws` would with [`Self::draw`].
    pub fn fill(&self, out: &mut [i64], purpose: Stream, seed: &Seed, run: Run<'_>) -> Result<()> {
        run.try_for_each_chunk(out, DRAWS, |chunk, out| {
            let mut places = out.iter_mut();
            self.draw_each(places.len(), &mut seed.stream(purpose, chunk as u64), |index| {
                places.next().into_iter().for_each(|place| *place = index as i64);
            });
            Ok(())
        })
    }

    /// Hands `count` draws to `take`. Places in memory are asked for a group ahead.
    fn draw_each(&self, count: usize, rng: &mut Rng, mut take: impl FnMut(usize)) {
        let (parts, mut ahead) = (self.parts(), [0; TARGETS]);
        for first in (0..count + TARGETS).step_by(TARGETS) {
            let now = ahead;
            for target in &mut ahead[..TARGETS.min(count.saturating_sub(first))] {
                *target = self.target(rng);
                prefetch(parts.of(*target));
            }
            if first > 0 {
                let places = self.locate(&now);
                places[..TARGETS.min(count + TARGETS - first)].iter().for_each(|&place| take(place as usize));
            }
        }
    }

    #[inline]
    fn target(&self, rng: &mut Rng) -> u64 {
        rng.below_even(self.cumulative[self.cumulative.len() - 1], self.uneven)
    }

    fn parts(&self) -> Parts<'_> {
        Parts { table: &self.table[self.start..], shift: self.shift }
    }

    /// The number of cumulative sums up to each target.
    fn locate(&self, targets: &[u64; TARGETS]) -> [u64; TARGETS] {
        let (mut places, mut open) = ([0; TARGETS], 0);
        locate(self.isa, self.parts(), targets, &mut places, &mut open);
        while open > 0 {
            let i = open.trailing_zeros() as usize;
            // The digits beyond decide, or further sums.
            while self.cumulative[places[i] as usize] <= targets[i] {
                places[i] += 1;
            }
            open &= open - 1;
        }
        places
    }
}

/// Describes parts, of which the first has the number `number`.
fn fill_parts(number: u64, table: &mut [u16], cumulative: &[u64], shift: u32) {
    let parts = Parts { table: &[], shift };
    let mut index = cumulative.partition_point(|&sum| sum <= number << shift);
    for (part, number) in table.chunks_exact_mut(PART).zip(number..) {
        let start = number << shift;
        while cumulative[index] == start {
            index += 1;
        }
        part.fill(u16::MAX);
        (part[SUMS], part[SUMS + 1]) = (index as u16, (index >> 16) as u16);
        // The last part may end beyond all sums, and beyond a word.
        let inside = cumulative[index..].iter().take_while(|&&sum| sum >> shift == number);
        let mut count = 0;
        for &sum in inside {
            if count < SUMS {
                part[count] = parts.digits(sum);
            }
            count += 1;
        }
        index += count;
    }
}

const RULE: &str = "there must be fewer than 2^32, with a sum of at least 1 and below 2^64";

fn wrong(what: &str) -> Error {
    Error::parameter("weights", what, RULE)
}

fn too_large() -> Error {
    wrong("an array with too large a sum")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// Laws with long runs of small weights or zeros between large ones, and sums from 1 to nearly 2^64.
    fn shapes() -> Vec<Vec<u64>> {
        let mut rng = Seed::reproducible([5; 32]).stream(Stream::Speed, 0);
        let mut shapes = vec![vec![1], vec![3, 0, 0], vec![1; 5000], vec![u64::MAX / 5001; 5000]];
        for n in [2, 15, 16, 100, 3000, 20_000] {
            shapes.push((0..n).map(|i| i * i % 97).collect());
            shapes.push((0..n).map(|i| if i % 100 == 7 || n < 100 { 1 << 40 } else { 1 }).collect());
            shapes.push((0..n).map(|i| if i == n / 2 { 1 << 50 } else { 1 }).collect());
            shapes.push((0..n).map(|_| rng.next_u64() >> (15 + rng.below(40))).chain([1]).collect());
        }
        shapes
    }

    #[test]
    fn every_target_is_located_by_plain_search() {
        let mut rng = Seed::reproducible([6; 32]).stream(Stream::Speed, 0);
        for weights in shapes() {
            let law = Weighted::new(&weights, Run::alone(Isa::Portable)).unwrap();
            let sum = *law.cumulative.last().unwrap();
            assert_eq!(sum, weights.iter().sum::<u64>());
            let places = (0..500).map(|_| rng.below(sum)).collect::<Vec<u64>>();
            let near = law.cumulative.iter().take(500).flat_map(|&sum| [sum.wrapping_sub(1), sum, sum + 1]);
            let targets: Vec<u64> = near.chain(places).chain([0, sum - 1]).filter(|&target| target < sum).collect();
            for some in targets.chunks(TARGETS) {
                let mut group = [0; TARGETS];
                group[..some.len()].copy_from_slice(some);
                for (target, place) in group.into_iter().zip(law.locate(&group)) {
                    let expected = law.cumulative.partition_point(|&sum| sum <= target);
                    assert_eq!(place, expected as u64, "{target} of {sum}, {} weights", weights.len());
                }
            }
        }
    }

    #[test]
    fn many_draws_are_those_of_one_by_one() {
        let weights: Vec<u64> = (0..1000).map(|i| i * i % 97).collect();
        let law = Weighted::new(&weights, Run::alone(Isa::Portable)).unwrap();
        let stream = || Seed::reproducible([4; 32]).stream(Stream::Integers, 0);
        for count in [0, 1, 63, 64, 65, 1000] {
            let (mut many, mut rng) = (Vec::new(), stream());
            law.draw_many(count, &mut many, &mut rng);
            let mut rng = stream();
            assert_eq!(many, (0..count).map(|_| law.draw(&mut rng)).collect::<Vec<usize>>());
            let mut filled = vec![0; count];
            law.fill(&mut filled, Stream::Integers, &Seed::reproducible([4; 32]), Run::alone(Isa::Portable)).unwrap();
            assert!(filled.iter().zip(&many).all(|(&filled, &drawn)| filled == drawn as i64));
        }
    }
}
