//! Answers to queries with two labels where a vote is so clear that one byte nearly always decides its coin.

use std::ops::Not;

/// The number of queries of which it is said together whether some are open.
pub const FEW: usize = 16;

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
    /// Writes the answers to clear queries, and whether there are others among every [`FEW`], which fewer at the end
    /// always count as. Raises `most` to the largest number of votes.
    answer_clear(clear: Clear, ones: &[u32], bytes: &[u8], answers: &mut [i8], open: &mut [bool], most: &mut u32)
        = answered
}

/// Queries that are worked on at a time: what is written about them stays in the nearest cache.
const SOME: usize = 64 * FEW;

#[inline(always)]
fn answered(clear: Clear, ones: &[u32], bytes: &[u8], answers: &mut [i8], open: &mut [bool], most: &mut u32) {
    let (between, either) = (clear.high - clear.low, clear.bytes[0] ^ clear.bytes[1]);
    let mut marks = [0u8; SOME];
    let (ones, bytes) = (ones.chunks(SOME), bytes.chunks(SOME));
    let blocks = ones.zip(bytes).zip(answers.chunks_mut(SOME)).zip(open.chunks_mut(SOME / FEW));
    // Loops that do one thing each, on numbers of two sizes at most: only those become vectors in all arms.
    for (((ones, bytes), answers), open) in blocks {
        let marks = &mut marks[..ones.len()];
        let mut largest = *most;
        for votes in ones {
            largest = largest.max(*votes);
        }
        *most = largest;
        for (answer, votes) in answers.iter_mut().zip(ones) {
            *answer = i8::from(*votes >= clear.high);
        }
        for (mark, votes) in marks.iter_mut().zip(ones) {
            *mark = u8::from(votes.wrapping_sub(clear.low) < between);
        }
        for ((mark, answer), byte) in marks.iter_mut().zip(answers).zip(bytes) {
            *mark |= u8::from(*byte == clear.bytes[0] ^ (either & (*answer as u8).wrapping_neg()));
        }
        for (open, marks) in open.iter_mut().zip(marks.chunks(FEW)) {
            *open = <[u8; FEW]>::try_from(marks).is_ok_and(|marks| u128::from_ne_bytes(marks) == 0).not();
        }
    }
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
            for count in [0, 1, 15, 16, 17, 63, 64, 65, 400] {
                let ones: Vec<u32> = (0..count).map(|i| if i == 5 { u32::MAX } else { rng.below(10) as u32 }).collect();
                let bytes: Vec<u8> = (0..count).map(|_| (rng.below(9) * 32).min(255) as u8).collect();
                for isa in Isa::ALL {
                    let (mut answers, mut open, mut most) = (vec![0; count], vec![false; count.div_ceil(FEW)], 1);
                    answer_clear(isa, clear, &ones, &bytes, &mut answers, &mut open, &mut most);
                    assert_eq!(most, ones.iter().copied().fold(1, u32::max));
                    for (block, open) in open.into_iter().enumerate() {
                        let range = block * FEW..count.min((block + 1) * FEW);
                        let is_open = |i: usize| {
                            let high = ones[i] >= clear.high;
                            (ones[i] >= clear.low && !high) || bytes[i] == clear.bytes[usize::from(high)]
                        };
                        assert_eq!(open, range.len() < FEW || range.clone().any(is_open), "{}", isa.name());
                        let answered = |i: usize| answers[i] == i8::from(ones[i] >= clear.high);
                        assert!(open || range.clone().all(answered), "{}", isa.name());
                    }
                }
            }
        }
    }
}
