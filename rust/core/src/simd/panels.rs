//! Products of matrices stored in panels of eight columns.
//!
//! A panel holds eight columns of a matrix, row by row: two panels are read from beginning to end for the 64 entries of
//! their product, whose running sums stay in registers, half of them at a time. Every entry of a product is a sum in
//! the order of the rows, begun at what stands there before, and products are not fused with sums: an entry depends on
//! its own two columns alone, not on its place in a panel, and all arms round alike.
//!
//! ```text
//! for each right panel b and each left panel a (below b alone, if only lower blocks are wanted):
//!     for each half of the block's eight rows i:
//!         sums[i][j] = block[i][j]
//!         for each row: sums[i][j] += a[row][i] b[row][j]
//!         block[i][j] = sums[i][j]
//! ```

use crate::error::Result;
use crate::memory::zeros;

/// The number of columns in a panel.
pub const PANEL: usize = 8;

/// The number of entries in the product of two panels.
pub const BLOCK_ENTRIES: usize = PANEL * PANEL;

/// The number of rows of a block whose running sums the registers hold.
const TALL: usize = 4;

/// Which blocks of a product are wanted, and in what order they are stored.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Blocks {
    /// All of them, row by row.
    All,
    /// Those on the diagonal and below it, row by row.
    Lower,
}

dispatched! {
    /// Adds to every wanted block of `out` the product of a left panel, transposed, with a right panel. All panels have
    /// `depth` rows, at least one. A block is stored row by row; its row is a column of the left panel.
    add_blocks(left: &[f64], right: &[f64], depth: usize, wanted: Blocks, out: &mut [f64]) = blocks
}

#[inline(always)]
fn blocks(left: &[f64], right: &[f64], depth: usize, wanted: Blocks, out: &mut [f64]) {
    let length = depth * PANEL;
    let rights = right.len() / length;
    for (j, b) in right.chunks_exact(length).enumerate() {
        let first = if wanted == Blocks::Lower { j } else { 0 };
        for (i, a) in left.chunks_exact(length).enumerate().skip(first) {
            let before = if wanted == Blocks::Lower { i * (i + 1) / 2 } else { i * rights };
            let block = &mut out[(before + j) * BLOCK_ENTRIES..][..BLOCK_ENTRIES];
            add_half::<0>(a, b, block);
            add_half::<TALL>(a, b, block);
        }
    }
}

/// Adds to four rows of a block, from row `TOP` on.
#[inline(always)]
fn add_half<const TOP: usize>(left: &[f64], right: &[f64], block: &mut [f64]) {
    let mut sums = [[0.0; PANEL]; TALL];
    let rows = &mut block[TOP * PANEL..][..TALL * PANEL];
    for (sums, row) in sums.iter_mut().zip(rows.chunks_exact(PANEL)) {
        sums.copy_from_slice(row);
    }
    for (a, b) in left.chunks_exact(PANEL).zip(right.chunks_exact(PANEL)) {
        for i in 0..TALL {
            for j in 0..PANEL {
                sums[i][j] += a[TOP + i] * b[j];
            }
        }
    }
    for (sums, row) in sums.iter().zip(rows.chunks_exact_mut(PANEL)) {
        row.copy_from_slice(sums);
    }
}

/// Copies rows to panels of eight columns; what is beyond the last column stays as it was.
pub fn pack_panels(rows: &[f64], columns: usize, panels: &mut [f64]) {
    let count = rows.len() / columns;
    for (i, row) in rows.chunks_exact(columns).enumerate() {
        for (j, entries) in row.chunks(PANEL).enumerate() {
            panels[(j * count + i) * PANEL..][..entries.len()].copy_from_slice(entries);
        }
    }
}

/// The number of entries in the blocks of a symmetric matrix on its diagonal and below.
pub fn lower_entries(columns: usize) -> Option<usize> {
    let panels = columns.div_ceil(PANEL);
    panels.checked_mul(panels + 1)?.checked_mul(BLOCK_ENTRIES / 2)
}

/// A whole symmetric matrix, row by row, from its lower blocks.
pub fn mirror(lower: &[i64], columns: usize) -> Result<Vec<i64>> {
    let mut whole = zeros(columns.checked_mul(columns))?;
    for i in 0..columns {
        let panel = i / PANEL;
        let blocks = &lower[panel * (panel + 1) / 2 * BLOCK_ENTRIES..];
        for j in 0..=i {
            let value = blocks[j / PANEL * BLOCK_ENTRIES + i % PANEL * PANEL + j % PANEL];
            whole[i * columns + j] = value;
            whole[j * columns + i] = value;
        }
    }
    Ok(whole)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::noise::{Seed, Stream};
    use crate::simd::Isa;

    #[test]
    fn all_arms_add_in_the_order_of_the_rows() {
        let mut rng = Seed::reproducible([7; 32]).stream(Stream::Speed, 0);
        for (lefts, rights, depth) in [(1, 1, 1), (2, 3, 7), (3, 2, 64), (2, 2, 130)] {
            let mut reals = |count| (0..count).map(|_| rng.below(1 << 40) as f64 / 1e11 - 5.0).collect::<Vec<f64>>();
            let (left, right) = (reals(lefts * depth * PANEL), reals(rights * depth * PANEL));
            let before = reals(lefts * rights * BLOCK_ENTRIES);
            for isa in Isa::ALL {
                let mut out = before.clone();
                add_blocks(isa, &left, &right, depth, Blocks::All, &mut out);
                for (at, (&out, &before)) in out.iter().zip(&before).enumerate() {
                    let (block, row, column) = (at / BLOCK_ENTRIES, at / PANEL % PANEL, at % PANEL);
                    let (i, j) = (block / rights, block % rights);
                    let entry =
                        |k: usize| left[(i * depth + k) * PANEL + row] * right[(j * depth + k) * PANEL + column];
                    assert_eq!(out, (0..depth).fold(before, |sum, k| sum + entry(k)));
                }
            }
        }
    }

    #[test]
    fn lower_blocks_are_those_of_the_whole_product() {
        let panels: Vec<f64> = (0..3 * 5 * PANEL).map(|i| (i * i % 101) as f64).collect();
        let (mut all, mut lower) = (vec![0.0; 9 * BLOCK_ENTRIES], vec![0.0; 6 * BLOCK_ENTRIES]);
        add_blocks(Isa::Portable, &panels, &panels, 5, Blocks::All, &mut all);
        add_blocks(Isa::Portable, &panels, &panels, 5, Blocks::Lower, &mut lower);
        for (at, block) in [0, 3, 4, 6, 7, 8].into_iter().zip(lower.chunks_exact(BLOCK_ENTRIES)) {
            assert_eq!(block, &all[at * BLOCK_ENTRIES..][..BLOCK_ENTRIES]);
        }
    }
}
