//! Answers to queries with two labels where a vote is so clear that one byte nearly always decides what is answered.
//!
//! A vote is clear where the rarer answer has a probability below 1/256, so that one uniform byte decides, all but one
//! of its values: one query in 256 is left open. All else is comparisons. They are loops that do one thing each over
//! blocks that stay in the nearest cache: a loop over bytes and words at once would become vectors in some arms alone.
//!
//! ```text
//! for each block of queries:
//!     votes  = a copy, and `most` its largest          another thread may change them afterwards
//!     answer = votes >= high
//!     mark   = low <= votes < high, or byte = bytes[answer]
//!     open   = the marks, a bit each
//! ```

use super::prefetch::prefetch;

/// The number of queries of which one word says which are open.
pub const WORD: usize = 64;

/// Which numbers of votes for label 1 are clear: those below `low`, with the answer 0, and those from `high` on, with the
/// answer 1. On either side one byte alone leaves the answer open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clear {
    /// The first number that is not clear, or no longer so.
    pub low: u32,
    /// The first number from which on all are clear, at least `low`.
    pub high: u32,
    /// The bytes that leave the answer open below `low` and from `high` on.
    pub bytes: [u8; 2],
}

dispatched! {
    /// Writes the answers to clear queries, and which others there are, a bit for each query. Raises `most` to the largest
    /// number of votes.
    answer_clear(clear: Clear, ones: &[u32], bytes: &[u8], answers: &mut [i8], open: &mut [u64], most: &mut u32)
        = answered
}

/// Queries that are worked on at a time: what is written about them stays in the nearest cache.
const SOME: usize = 16 * WORD;

#[inline(always)]
fn answered(clear: Clear, ones: &[u32], bytes: &[u8], answers: &mut [i8], open: &mut [u64], most: &mut u32) {
    let (between, either) = (clear.high - clear.low, clear.bytes[0] ^ clear.bytes[1]);
    let (mut marks, mut kept) = ([0u8; SOME], [0u32; SOME]);
    let (later, bytes) = (ones.chunks(SOME).skip(1).chain([&[][..]]), bytes.chunks(SOME));
    let blocks =
        ones.chunks(SOME).zip(later).zip(bytes).zip(answers.chunks_mut(SOME)).zip(open.chunks_mut(SOME / WORD));
    // Loops that do one thing each, on numbers of two sizes at most: only those become vectors in all arms.
    for ((((ones, later), bytes), answers), open) in blocks {
        // The loops after the first one would let the memory rest.
        prefetch(later);
        // There is no query behind the last one.
        marks[ones.len()..].fill(0);
        let marked = &mut marks[..ones.len()];
        let kept = &mut kept[..ones.len()];
        let mut largest = *most;
        // What another thread changes after this is not looked at.
        for (kept, votes) in kept.iter_mut().zip(ones) {
            *kept = *votes;
            largest = largest.max(*kept);
        }
        *most = largest;
        for (answer, votes) in answers.iter_mut().zip(&*kept) {
            *answer = i8::from(*votes >= clear.high);
        }
        for (mark, votes) in marked.iter_mut().zip(&*kept) {
            *mark = u8::from(votes.wrapping_sub(clear.low) < between);
        }
        for ((mark, answer), byte) in marked.iter_mut().zip(answers).zip(bytes) {
            *mark |= u8::from(*byte == clear.bytes[0] ^ (either & (*answer as u8).wrapping_neg()));
        }
        for (open, marks) in open.iter_mut().zip(marks.as_chunks::<WORD>().0) {
            *open = gathered(marks);
        }
    }
}

/// The lowest bits of bytes that are 0 or 1.
#[inline(always)]
fn gathered(marks: &[u8; WORD]) -> u64 {
    // Each product has the eight bits in its highest byte: bit i is moved by 56 - 7 i.
    const MOVES: u64 = 0x0102_0408_1020_4080;
    let eights = marks.as_chunks::<8>().0.iter().enumerate();
    eights.fold(0, |bits, (i, eight)| bits | (u64::from_le_bytes(*eight).wrapping_mul(MOVES) >> 56) << (8 * i))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::{Seed, Stream};
    use crate::simd::Isa;

    #[test]
    fn all_arms_answer_what_is_clear() {
        let mut rng = Seed::reproducible([9; 32]).stream(Stream::Speed, 0);
        for clear in [(0, 0, [0, 0]), (3, 6, [0, 255]), (9, 9, [0, 0]), (0, u32::MAX, [0, 255])] {
            let clear = Clear { low: clear.0, high: clear.1, bytes: clear.2 };
            for count in [0, 1, 15, 16, 17, 63, 64, 65, 127, 400, 1023, 1024, 1025] {
                let ones: Vec<u32> = (0..count).map(|i| if i == 5 { u32::MAX } else { rng.below(10) as u32 }).collect();
                let bytes: Vec<u8> = (0..count).map(|_| (rng.below(9) * 32).min(255) as u8).collect();
                for isa in Isa::ALL {
                    let (mut answers, mut open, mut most) = (vec![0; count], vec![!0; count.div_ceil(WORD)], 1);
                    answer_clear(isa, clear, &ones, &bytes, &mut answers, &mut open, &mut most);
                    assert_eq!(most, ones.iter().copied().fold(1, u32::max));
                    for i in 0..open.len() * WORD {
                        let is_open = i < count && {
                            let high = ones[i] >= clear.high;
                            (ones[i] >= clear.low && !high) || bytes[i] == clear.bytes[usize::from(high)]
                        };
                        assert_eq!(open[i / WORD] >> (i % WORD) & 1 == 1, is_open, "{} {i}", isa.name());
                        assert!(is_open || i >= count || answers[i] == i8::from(ones[i] >= clear.high));
                    }
                }
            }
        }
    }
}
