//! Votes counted label by label, a byte a count.
//!
//! The body is plain Rust; an arm is the same body compiled for wider vectors, which hold 32 or 64 counts instead of 16.

use super::prefetch;

/// Rows of votes that a count in a byte has room for.
pub const VOTES: usize = 248;

/// Rows whose votes are added in registers before a count is written back.
const GROUP: usize = 8;

/// Counts that the compiler keeps in vectors.
const LANE: usize = 64;

dispatched! {
    /// Adds to `tile[(label - 1) * width + query]` the rows that say `label` to `query`, width being the length of a row.
    ///
    /// At most [`VOTES`] rows, all of one length, which divides that of the tile; counts are 0 at first.
    add_votes(rows: &[&[u8]], tile: &mut [u8]) = add
}

#[inline(always)]
fn add(rows: &[&[u8]], tile: &mut [u8]) {
    let width = rows.first().map_or(0, |row| row.len()).max(1);
    for (number, group) in rows.chunks(GROUP).enumerate() {
        // Rows stand far apart in memory, which the machine does not expect.
        for row in rows.iter().skip((number + 1) * GROUP).take(GROUP) {
            prefetch(row);
        }
        let whole: Option<&[&[u8]; GROUP]> = group.try_into().ok();
        for (label, counts) in (1..).zip(tile.chunks_exact_mut(width)) {
            match whole {
                Some(group) => add_group(group, label, counts),
                None => group.iter().for_each(|row| add_row(row, label, counts)),
            }
        }
    }
}

/// Loops of fixed length, which the compiler turns into vectors without a tail.
#[inline(always)]
fn add_group(group: &[&[u8]; GROUP], label: u8, counts: &mut [u8]) {
    let vectors = counts.len() / LANE * LANE;
    for start in (0..vectors).step_by(LANE) {
        let mut sums = [0u8; LANE];
        for row in group {
            for (sum, &vote) in sums.iter_mut().zip(&row[start..][..LANE]) {
                *sum = sum.wrapping_add(u8::from(vote == label));
            }
        }
        for (count, sum) in counts[start..][..LANE].iter_mut().zip(sums) {
            *count = count.wrapping_add(sum);
        }
    }
    group.iter().for_each(|row| add_row(&row[vectors..], label, &mut counts[vectors..]));
}

#[inline(always)]
fn add_row(row: &[u8], label: u8, counts: &mut [u8]) {
    for (count, &vote) in counts.iter_mut().zip(row) {
        *count = count.wrapping_add(u8::from(vote == label));
    }
}
