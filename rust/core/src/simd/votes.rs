//! Votes counted label by label, a byte a count.
//!
//! A count for each query and label in a byte has room for 255 votes, which is how many rows are counted before counts
//! are added to wider ones elsewhere. The portable body compares every vote with every label; the arm looks votes up,
//! two labels at a time.
//!
//! ```text
//! for each 15 rows of votes (missing ones say 0), for each 64 queries:
//!     for each label: count[label][query] += how many of the rows say it
//! ```

#[cfg(target_arch = "x86_64")]
use super::x86_votes;
use super::{GROUP, Isa, LANE};

/// The number of rows of votes for which a count in a byte has room.
pub const VOTES: usize = 255;

/// Rows that the portable body compares at a time; a loop over more of them would not be unrolled.
const FEW: usize = 5;

/// Counts votes: adds to `tile[lane * labels + label - 1][i]` the number of rows that vote for `label`, from 1 to
/// `labels`, on query `LANE * lane + i`.
///
/// There may be at most [`VOTES`] rows, all of the same length, and 255 labels. `tile` has room for as many queries as
/// a row has votes, and holds zeros before the call.
pub fn add_votes(isa: Isa, rows: &[&[u8]], labels: usize, tile: &mut [[u8; LANE]]) {
    if tile.is_empty() {
        // Label 0 is not counted.
        return;
    }
    let width = rows.first().map_or(0, |row| row.len());
    let (whole, last) = tile.split_at_mut(width / LANE * labels);
    // What says 0 is not counted: neither rows that a group lacks nor queries that the last lane does.
    let silent = vec![0; width];
    for group in rows.chunks(GROUP) {
        let group = std::array::from_fn(|i| group.get(i).copied().unwrap_or(&silent));
        add_group(isa, group.map(|row| &row[..width / LANE * LANE]), labels, whole);
        if !last.is_empty() {
            let padded = group.map(|row| padded(&row[width / LANE * LANE..]));
            add_group(isa, padded.each_ref().map(|row| &row[..]), labels, last);
        }
    }
}

fn padded(votes: &[u8]) -> [u8; LANE] {
    let mut lane = [0; LANE];
    lane[..votes.len()].copy_from_slice(votes);
    lane
}

/// Rows of whole lanes.
fn add_group(isa: Isa, rows: [&[u8]; GROUP], labels: usize, tile: &mut [[u8; LANE]]) {
    match isa {
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 | Isa::Gfni256 | Isa::Gfni if isa.available() => x86_votes::add_group(rows, labels, tile),
        _ => add_compared(rows, labels, tile),
    }
}

fn add_compared(rows: [&[u8]; GROUP], labels: usize, tile: &mut [[u8; LANE]]) {
    for (lane, counts) in tile.chunks_exact_mut(labels).enumerate() {
        for start in (0..GROUP).step_by(FEW) {
            let few: [&[u8]; FEW] = std::array::from_fn(|i| &rows[start + i][lane * LANE..][..LANE]);
            for (label, counts) in (1..=u8::MAX).zip(counts.iter_mut()) {
                add_few(few, label, counts);
            }
        }
    }
}

/// Loops of fixed length, which the compiler turns into vectors; wrapping, since checked sums would not be. None passes the
/// number of rows.
fn add_few(few: [&[u8]; FEW], label: u8, counts: &mut [u8; LANE]) {
    let mut sums = [0u8; LANE];
    for votes in few {
        sums.iter_mut().zip(votes).for_each(|(sum, &vote)| *sum = sum.wrapping_add(u8::from(vote == label)));
    }
    counts.iter_mut().zip(sums).for_each(|(count, sum)| *count = count.wrapping_add(sum));
}
