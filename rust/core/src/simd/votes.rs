//! Votes counted label by label, a byte a count.
//!
//! The body is plain Rust; the arm is the same body compiled for vectors that hold 32 counts instead of 16.

use std::ops::Range;

use super::{Isa, prefetch};

/// Rows of votes that a count in a byte has room for.
pub const VOTES: usize = 248;

/// Rows whose votes are added in registers before a count is written back.
const GROUP: usize = 8;

/// Counts that the compiler keeps in vectors.
const LANE: usize = 64;

/// Votes of a row whose counts for some labels stay in the nearest cache, with the votes of a group.
const PART: usize = 1 << 9;

/// Rows whose votes are counted before the next part's: more would have more pages than the machine remembers.
const BLOCK: usize = 1 << 6;

/// Adds to `tile[(label - 1) * width + query]` the rows that say `label` to `query`, width being the length of a row.
///
/// At most [`VOTES`] rows, all of one length, which divides that of the tile; counts are 0 at first.
pub fn add_votes(isa: Isa, rows: &[&[u8]], tile: &mut [u8]) {
    // A comparison of 64 bytes gives a mask, which takes one more step to become bytes again; of 32 it gives bytes.
    add_compared(if isa == Isa::Gfni { Isa::Avx2 } else { isa }, rows, tile);
}

dispatched! {
    add_compared(rows: &[&[u8]], tile: &mut [u8]) = add
}

#[inline(always)]
fn add(rows: &[&[u8]], tile: &mut [u8]) {
    let width = rows.first().map_or(0, |row| row.len()).max(1);
    for block in rows.chunks(BLOCK) {
        for start in (0..width).step_by(PART) {
            let part = start..width.min(start + PART);
            for (number, group) in block.chunks(GROUP).enumerate() {
                // Rows stand far apart in memory, which the machine does not expect.
                let next = block.get((number + 1) * GROUP..).unwrap_or_default();
                next.iter().take(GROUP).for_each(|row| prefetch(&row[part.clone()]));
                for (label, counts) in (1..).zip(tile.chunks_exact_mut(width)) {
                    add_part(group, part.clone(), label, &mut counts[part.clone()]);
                }
            }
        }
    }
}

#[inline(always)]
fn add_part(group: &[&[u8]], part: Range<usize>, label: u8, counts: &mut [u8]) {
    let whole: Option<&[&[u8]; GROUP]> = group.try_into().ok();
    match whole {
        Some(group) => add_group(group.map(|row| &row[part.clone()]), label, counts),
        None => group.iter().for_each(|row| add_row(&row[part.clone()], label, counts)),
    }
}

/// One pass for eight rows: the counts are read and written once.
///
/// Loops of fixed length, which the compiler turns into vectors without a tail.
#[inline(always)]
fn add_group(rows: [&[u8]; GROUP], label: u8, counts: &mut [u8]) {
    let vectors = counts.len() / LANE * LANE;
    for (place, counts) in counts.chunks_exact_mut(LANE).enumerate() {
        let mut sums = [0u8; LANE];
        for row in rows {
            let votes = &row[place * LANE..][..LANE];
            sums.iter_mut().zip(votes).for_each(|(sum, &vote)| *sum = sum.wrapping_add(u8::from(vote == label)));
        }
        counts.iter_mut().zip(sums).for_each(|(count, sum)| *count = count.wrapping_add(sum));
    }
    rows.iter().for_each(|row| add_row(&row[vectors..], label, &mut counts[vectors..]));
}

#[inline(always)]
fn add_row(row: &[u8], label: u8, counts: &mut [u8]) {
    for (count, &vote) in counts.iter_mut().zip(row) {
        *count = count.wrapping_add(u8::from(vote == label));
    }
}
