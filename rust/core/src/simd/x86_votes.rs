//! AVX2 arm of the votes: a shuffle looks up 32 of them in a table of what each adds to two counts of half a byte.
//!
//! A comparison counts one label of 32 votes; a shuffle in a table that holds 1 for one label and 16 for the next
//! counts two. Half a byte has room for the 15 rows of a group.
//!
//! ```text
//! for each ten labels from `first` on, for each 32 queries:
//!     for each of 15 rows: places = vote - first, 0 .. 15 or with the highest bit, for which a shuffle gives 0
//!                          sums[pair] += shuffle(table[pair], places)
//!     counts of 2 pair += sums & 15;  counts of 2 pair + 1 += sums >> 4
//! ```

use std::arch::x86_64::*;

use super::{GROUP, LANE};

/// Pairs of labels counted at a time: more tables and sums than the registers hold would go to memory and back.
const PAIRS: usize = 5;

/// Bytes of a register.
const WIDE: usize = 32;

/// Table j has 1 for vote 2 j and 16 for vote 2 j + 1, the same in both halves of a register.
static TABLES: [[u8; WIDE]; PAIRS] = tables();

const fn tables() -> [[u8; WIDE]; PAIRS] {
    let mut tables = [[0; WIDE]; PAIRS];
    let mut vote = 0;
    while vote < 2 * PAIRS {
        let one = if vote % 2 == 0 { 1 } else { 16 };
        tables[vote / 2][vote] = one;
        tables[vote / 2][vote + 16] = one;
        vote += 1;
    }
    tables
}

pub fn add_group(rows: [&[u8]; GROUP], labels: usize, tile: &mut [[u8; LANE]]) {
    assert!(labels > 0 && rows.iter().all(|row| row.len() == tile.len() / labels * LANE));
    assert!(is_x86_feature_detected!("avx2"));
    // SAFETY: the machine has AVX2, and the lengths that the kernel relies on were checked above.
    unsafe { add_group_avx2(rows, labels, tile) }
}

/// # Safety
/// Needs AVX2, and rows of `tile.len() / labels` lanes each.
#[target_feature(enable = "avx2")]
unsafe fn add_group_avx2(rows: [&[u8]; GROUP], labels: usize, tile: &mut [[u8; LANE]]) {
    for (lane, counts) in tile.chunks_exact_mut(labels).enumerate() {
        for (panel, counts) in counts.chunks_mut(2 * PAIRS).enumerate() {
            let first = (1 + 2 * PAIRS * panel) as u8;
            for part in (0..LANE).step_by(WIDE) {
                // SAFETY: there are as many lanes in each row as in the tile.
                unsafe {
                    let votes = rows.map(|row| row.as_ptr().add(lane * LANE + part));
                    match counts.len().div_ceil(2) {
                        1 => add_pairs::<1>(votes, first, counts, part),
                        2 => add_pairs::<2>(votes, first, counts, part),
                        3 => add_pairs::<3>(votes, first, counts, part),
                        4 => add_pairs::<4>(votes, first, counts, part),
                        _ => add_pairs::<PAIRS>(votes, first, counts, part),
                    }
                }
            }
        }
    }
}

/// Adds votes for labels from `first` on to the bytes from `part` on of each one's counts.
///
/// # Safety
/// Needs AVX2, 32 bytes at each pointer, and `part + 32 <= LANE`.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn add_pairs<const N: usize>(votes: [*const u8; GROUP], first: u8, counts: &mut [[u8; LANE]], part: usize) {
    // SAFETY: a table is 32 bytes.
    let tables: [__m256i; N] = std::array::from_fn(|j| unsafe { _mm256_loadu_si256(TABLES[j].as_ptr().cast()) });
    let (first, beyond) = (_mm256_set1_epi8(first as i8), _mm256_set1_epi8(0x70));
    let mut sums = [_mm256_setzero_si256(); N];
    for votes in votes {
        // SAFETY: there are 32 bytes.
        let votes = unsafe { _mm256_loadu_si256(votes.cast()) };
        // Whatever is not 0 to 15 gets the highest bit, for which a shuffle gives 0. What was below `first` is more than
        // 15 now, or near the last labels of all more than any that is left.
        let places = _mm256_adds_epu8(_mm256_sub_epi8(votes, first), beyond);
        for (sum, table) in sums.iter_mut().zip(tables) {
            *sum = _mm256_add_epi8(*sum, _mm256_shuffle_epi8(table, places));
        }
    }
    let low = _mm256_set1_epi8(0x0f);
    for (pair, sum) in counts.chunks_mut(2).zip(sums) {
        let halves = [_mm256_and_si256(sum, low), _mm256_and_si256(_mm256_srli_epi16(sum, 4), low)];
        for (counts, half) in pair.iter_mut().zip(halves) {
            // SAFETY: the part is within the counts of a label.
            unsafe {
                let at = counts.as_mut_ptr().add(part).cast::<__m256i>();
                _mm256_storeu_si256(at, _mm256_add_epi8(_mm256_loadu_si256(at), half));
            }
        }
    }
}
