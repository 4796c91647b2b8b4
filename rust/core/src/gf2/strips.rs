//! The working layout of the elimination: strips of 64 columns, each contiguous over the rows.

use crate::error::Result;
use crate::memory::zeros;
use crate::run::Run;
use crate::simd::{BLOCK, Block, ask_for_huge_pages};

/// A bit matrix as strips of 64 columns; a strip is one [`Block`] per 64 rows. Rows and columns that pad it are zero.
pub struct Strips {
    rows: usize,
    height: usize,
    blocks: Vec<Block>,
}

/// Strips that one of several tasks fills together: a few cache lines of a packed row, and blocks that fit L1.
const STRIPS_PER_TASK: usize = 40;

/// Rows of a task that are filled before the caller is asked whether to go on.
const ROWS_UNASKED: usize = 2048;

impl Strips {
    /// `rows` rows of `words` words each, where `read(row, first, out)` copies words `first..` of a row into `out`.
    pub fn gather(
        rows: usize,
        words: usize,
        run: Run<'_>,
        read: impl Fn(usize, usize, &mut [u64]) + Sync,
    ) -> Result<Strips> {
        // A strip of no rows still has a block, so that the number of strips is kept.
        let height = rows.div_ceil(BLOCK).max(1);
        let mut blocks = zeros(height.checked_mul(words))?;
        ask_for_huge_pages(&mut blocks);
        // On one thread whole rows: memory is read fastest in order.
        let strips = if run.parallel() { STRIPS_PER_TASK } else { words.max(1) };
        run.try_for_each_chunk(&mut blocks, height * strips, |task, part| {
            fill(part, height, rows, task * strips, &read, run)
        })?;
        Ok(Strips { rows, height, blocks })
    }

    /// Number of rows, without the padding.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Blocks in a strip.
    pub fn height(&self) -> usize {
        self.height
    }

    /// Number of strips.
    pub fn len(&self) -> usize {
        self.blocks.len() / self.height
    }

    /// Strip g, columns 64 g .. 64 g + 64.
    pub fn strip(&self, g: usize) -> &[Block] {
        &self.blocks[g * self.height..][..self.height]
    }

    /// Strips `from..middle`, `middle..to` and those after, each as a run of blocks.
    pub fn split_mut(&mut self, from: usize, middle: usize, to: usize) -> (&mut [Block], &mut [Block], &mut [Block]) {
        let (head, tail) = self.blocks.split_at_mut(to * self.height);
        let (first, second) = head.split_at_mut(middle * self.height);
        (&mut first[from * self.height..], second, tail)
    }
}

/// Fills strips from `first` on. Eight rows are read at a time, each of them in one go.
fn fill(
    part: &mut [Block],
    height: usize,
    rows: usize,
    first: usize,
    read: &impl Fn(usize, usize, &mut [u64]),
    run: Run<'_>,
) -> Result<()> {
    let strips = part.len() / height;
    let mut lines: Vec<u64> = zeros(Some(8 * strips))?;
    for top in (0..rows).step_by(8) {
        if top.is_multiple_of(ROWS_UNASKED) {
            run.check()?;
        }
        lines.fill(0);
        for (row, line) in (top..rows).zip(lines.chunks_exact_mut(strips)) {
            read(row, first, line);
        }
        for g in 0..strips {
            let words = std::array::from_fn(|r| lines[r * strips + g]);
            part[g * height + top / BLOCK].set_eight_rows(top % BLOCK, words);
        }
    }
    Ok(())
}
