//! Answers to queries: one exact coin each, and a halt at the last bottom, which is an abstention.

use std::sync::atomic::{AtomicU64, Ordering};

use bytemuck::Zeroable;

use super::distance::{Plurality, plurality};
use super::promise::TableKind;
use crate::error::{Error, Result};
use crate::memory::{collected, room, zeros};
use crate::noise::{Rng, Seed, Stream};
use crate::run::Run;
use crate::simd::{Clear, Isa, WORD, answer_clear, ask_for_huge_pages};

/// Queries whose coins come from one stream; fixed, so that results do not depend on the number of threads.
const CHUNK: usize = 1 << 14;

/// Queries that are answered before the number of bottoms among them is counted.
const BLOCK: usize = CHUNK << 8;

/// Open queries of a word from which on it is faster to look up all of them than one after the other.
const MANY: u32 = 8;

/// The answer that is no label.
const BOTTOM: i8 = -1;

/// True with probability `word` / 2^64, decided by a uniform byte unless that is the first one of the word.
#[inline]
fn coin(word: u64, byte: u8, rng: &mut Rng) -> bool {
    let first = (word >> 56) as u8;
    if byte == first { rng.next_u64() >> 8 < word & (u64::MAX >> 8) } else { byte < first }
}

/// The answer to one query: always bottom at distance 0, otherwise with the probability of its level.
#[inline]
fn hazard(words: &[u64], plurality: Plurality, byte: u8, rng: &mut Rng) -> i64 {
    let level = (plurality.distance as usize).min(words.len());
    if level == 0 || coin(words[level - 1], byte, rng) { i64::from(BOTTOM) } else { i64::from(plurality.winner) }
}

/// Answers queries until `bottoms` of the answers are `bottom` or all queries are answered: `answer(start, out, bytes,
/// rng)` answers those from number `start` on and returns the number of bottoms among the answers.
fn until_halted<T: Copy + Zeroable + PartialEq + Send>(
    queries: usize,
    bottoms: Option<u64>,
    bottom: T,
    seed: &Seed,
    run: Run<'_>,
    answer: impl Fn(usize, &mut [T], &[u8], &mut Rng) -> Result<u64> + Sync + Send,
) -> Result<(Vec<T>, u64)> {
    let mut out: Vec<T> = zeros(Some(queries))?;
    ask_for_huge_pages(&mut out);
    let (most, mut sum) = (bottoms.unwrap_or(u64::MAX), 0);
    for (block, answers) in out.chunks_mut(BLOCK).enumerate() {
        let found = AtomicU64::new(0);
        run.try_for_each_chunk(answers, CHUNK, |chunk, answers| {
            let number = block * (BLOCK / CHUNK) + chunk;
            let mut rng = seed.stream(Stream::Answer, number as u64);
            let mut bytes = [0; CHUNK];
            rng.fill(&mut bytes[..answers.len()]);
            let bottoms = answer(number * CHUNK, answers, &bytes, &mut rng)?;
            found.fetch_add(bottoms, Ordering::Relaxed);
            Ok(())
        })?;
        let found = found.into_inner();
        if bottoms.is_some() && found >= most - sum {
            let places = answers.iter().enumerate().filter(|(_, answer)| **answer == bottom);
            let last = places.map(|(i, _)| i + 1).nth((most - sum).saturating_sub(1) as usize).unwrap_or(0);
            out.truncate(block * BLOCK + last);
            return Ok((out, most));
        }
        sum += found;
    }
    Ok((out, sum))
}

fn count<T: PartialEq>(answers: &[T], answer: T) -> u64 {
    answers.iter().filter(|&other| *other == answer).count() as u64
}

/// Answers queries by a table of hazards, given a histogram of `labels` counts for each query. An answer is the winning
/// label, or -1 for bottom. The last of `bottoms` bottoms ends the answers. Returns them and the number of bottoms.
///
/// Cost: one pass over the counts, and one byte of the stream for each query, rarely more.
pub fn respond_to_counts(
    words: &[u64],
    counts: &[u32],
    labels: usize,
    bottoms: u64,
    seed: &Seed,
    run: Run<'_>,
) -> Result<(Vec<i64>, u64)> {
    let queries = counts.len() / labels.max(1);
    until_halted(queries, Some(bottoms), i64::from(BOTTOM), seed, run, |start, out, bytes, rng| {
        let rows = counts[start * labels..].chunks_exact(labels);
        for ((out, row), &byte) in out.iter_mut().zip(rows).zip(bytes) {
            *out = hazard(words, plurality(row), byte, rng);
        }
        Ok(count(out, i64::from(BOTTOM)))
    })
}

/// 0, 1, ..., members: the votes that there may be for label 1.
fn tally(members: u32) -> impl ExactSizeIterator<Item = u32> {
    (0..members as usize + 1).map(|ones| ones as u32)
}

/// What to answer for every number of votes for label 1, of two labels.
struct Coins {
    /// The probability of heads in units of 2^-64.
    words: Vec<u64>,
    /// Its first byte, and the answer to tails.
    quick: Vec<(u8, i8)>,
    /// The answer to heads.
    heads: i8,
}

impl Coins {
    fn new(kind: TableKind, words: &[u64], members: u32) -> Result<Coins> {
        match kind {
            TableKind::Hazard(_) => Coins::hazard(words, members),
            TableKind::Vote => Coins::vote(words, members),
        }
    }

    fn hazard(words: &[u64], members: u32) -> Result<Coins> {
        let pluralities = collected(tally(members).map(|ones| plurality(&[members - ones, ones])))?;
        let level = |plurality: &Plurality| (plurality.distance as usize).min(words.len());
        let word = |plurality: &Plurality| words[level(plurality).max(1) - 1];
        // At distance 0 both sides of the coin say bottom.
        let tail = |plurality: &Plurality| if level(plurality) == 0 { BOTTOM } else { plurality.winner as i8 };
        Coins::of(collected(pluralities.iter().map(word))?, pluralities.iter().map(tail), BOTTOM)
    }

    fn vote(words: &[u64], members: u32) -> Result<Coins> {
        let word = |ones: u32| {
            let level = ((2 * i64::from(ones) - i64::from(members)).unsigned_abs() / 2) as usize;
            let minority = if level == 0 { 1 << 63 } else { words[level.min(words.len()) - 1] };
            // Of the two labels the minority's is 1 where fewer say 1.
            if 2 * u64::from(ones) <= u64::from(members) { minority } else { minority.wrapping_neg() }
        };
        Coins::of(collected(tally(members).map(word))?, std::iter::repeat(0), 1)
    }

    fn of(words: Vec<u64>, tails: impl Iterator<Item = i8>, heads: i8) -> Result<Coins> {
        let mut quick = room(Some(words.len()))?;
        quick.extend(words.iter().map(|word| (word >> 56) as u8).zip(tails));
        Ok(Coins { words, quick, heads })
    }

    /// The place of a count in the tables, which another thread may have raised since it was checked.
    #[inline]
    fn place(&self, ones: u32) -> usize {
        (ones as usize).min(self.quick.len() - 1)
    }

    /// The numbers of votes whose coins a byte decides unless it is the one that is named.
    fn clear(&self) -> Clear {
        let outcome = |&(first, tail): &(u8, i8)| match first {
            0 => Some((first, tail)),
            u8::MAX => Some((first, self.heads)),
            _ => None,
        };
        let alike = |side: &(u8, i8), answer: i8| {
            let side = outcome(side).filter(|(_, always)| *always == answer);
            move |coin: &&(u8, i8)| side.is_some() && outcome(coin) == side
        };
        let (first, last) = (&self.quick[0], &self.quick[self.quick.len() - 1]);
        let low = self.quick.iter().take_while(alike(first, 0)).count();
        let high = self.quick[low..].iter().rev().take_while(alike(last, 1)).count();
        Clear { low: low as u32, high: (self.quick.len() - high) as u32, bytes: [first.0, last.0] }
    }

    /// Answers queries, clear ones many at a time; the number of bottoms.
    fn answer(&self, clear: Clear, out: &mut [i8], ones: &[u32], bytes: &[u8], rng: &mut Rng, isa: Isa) -> Result<u64> {
        let (mut open, mut most) = ([0; CHUNK / WORD], 0);
        let open = &mut open[..ones.len().div_ceil(WORD)];
        answer_clear(isa, clear, ones, bytes, out, open, &mut most);
        if most as usize >= self.quick.len() {
            return Err(Error::parameter("ones", "entries above members", "each must lie in [0, members]"));
        }
        let words = out.chunks_mut(WORD).zip(ones.chunks(WORD)).zip(bytes.chunks(WORD)).zip(open);
        let mut bottoms = 0;
        for (((out, ones), bytes), open) in words.filter(|(_, open)| **open != 0) {
            if open.count_ones() < MANY {
                // Clear answers are no bottoms.
                bottoms += self.answer_some(*open, out, ones, bytes, rng);
            } else {
                let undecided = self.answer_all(out, ones, bytes);
                self.answer_some(undecided, out, ones, bytes, rng);
                bottoms += count(out, BOTTOM);
            }
        }
        Ok(bottoms)
    }

    /// Answers queries, at most a word of them, without a branch that depends on them; which of them a byte does not
    /// decide.
    fn answer_all(&self, out: &mut [i8], ones: &[u32], bytes: &[u8]) -> u64 {
        let mut undecided = 0;
        for (i, ((out, &ones), &byte)) in out.iter_mut().zip(ones).zip(bytes).enumerate() {
            let (first, tail) = self.quick[self.place(ones)];
            // A mask, since a branch would be guessed wrong for every other query.
            let head = u8::from(byte < first).wrapping_neg() as i8;
            *out = tail ^ ((tail ^ self.heads) & head);
            undecided |= u64::from(byte == first) << i;
        }
        undecided
    }

    /// Answers those of the queries that a word names; the number of bottoms among them.
    #[inline]
    fn answer_some(&self, mut open: u64, out: &mut [i8], ones: &[u32], bytes: &[u8], rng: &mut Rng) -> u64 {
        let mut bottoms = 0;
        while open != 0 {
            let i = open.trailing_zeros() as usize;
            let place = self.place(ones[i]);
            out[i] = if coin(self.words[place], bytes[i], rng) { self.heads } else { self.quick[place].1 };
            bottoms += u64::from(out[i] == BOTTOM);
            open &= open - 1;
        }
        bottoms
    }
}

/// Answers queries with two labels, given how many of the members vote for label 1.
///
/// A table of hazards answers -1 for bottom, 0 or 1, and the last of `bottoms` bottoms ends the answers. A table of
/// votes answers every query with 0 or 1. Returns the answers and the number of bottoms.
///
/// Cost: O(members), and a nanosecond or less for each query, with one byte of the stream and rarely more.
pub fn respond_to_ones(
    kind: TableKind,
    words: &[u64],
    ones: &[u32],
    members: u32,
    bottoms: Option<u64>,
    seed: &Seed,
    run: Run<'_>,
) -> Result<(Vec<i8>, u64)> {
    let coins = Coins::new(kind, words, members)?;
    let clear = coins.clear();
    until_halted(ones.len(), bottoms, BOTTOM, seed, run, |start, out, bytes, rng| {
        coins.answer(clear, out, &ones[start..][..out.len()], bytes, rng, run.isa)
    })
}

/// What is left of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remaining {
    /// The number of answers that may still be bottom.
    pub bottoms: u64,
    /// The number of queries that may still be asked, whatever their answers.
    pub queries: u64,
}

impl Remaining {
    /// Whether the session is over: no query may be answered any more.
    pub fn over(&self) -> bool {
        self.bottoms == 0 || self.queries == 0
    }
}

/// Answers pairs of queries by a table of hazards and takes what they use from `left`. The second query of a pair is
/// asked only after a bottom on the first and while something is left. The answer to a pair is twice the winner of the
/// first query, or one more than twice the winner of the second, or -1 for bottom.
///
/// Cost: some ten nanoseconds for each pair, on one thread, since each depends on what the others have left.
pub fn respond_twice(
    words: &[u64],
    pairs: &[[Plurality; 2]],
    left: &mut Remaining,
    seed: &Seed,
    run: Run<'_>,
) -> Result<Vec<i64>> {
    let mut out = room(Some(pairs.len()))?;
    let (mut rng, mut now) = (seed.stream(Stream::Answer, 0), *left);
    for (number, pair) in pairs.iter().enumerate() {
        if number % CHUNK == 0 {
            run.check()?;
        }
        if now.over() {
            break;
        }
        let mut answer = i64::from(BOTTOM);
        for (second, &plurality) in (0..).zip(pair) {
            let byte = rng.next_u64() as u8;
            now.queries -= 1;
            let found = hazard(words, plurality, byte, &mut rng);
            if found >= 0 {
                answer = 2 * found + second;
                break;
            }
            now.bottoms -= 1;
            if now.over() {
                break;
            }
        }
        out.push(answer);
    }
    *left = now;
    Ok(out)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_count_that_was_raised_after_its_check_is_that_of_all_members() {
        let coins = Coins::new(TableKind::Vote, &[1 << 62, 1 << 60], 9).unwrap();
        let mut rng = Seed::reproducible([6; 32]).stream(Stream::Answer, 0);
        for byte in 0..=u8::MAX {
            let (mut raised, mut all) = ([0], [0]);
            coins.answer_some(1, &mut raised, &[u32::MAX], &[byte], &mut rng);
            coins.answer_some(1, &mut all, &[9], &[byte], &mut rng);
            assert!(raised == all || byte == coins.quick[9].0, "{byte}");
        }
    }
}
