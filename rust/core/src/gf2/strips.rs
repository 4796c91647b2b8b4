//! The working layout of the elimination: strips of 64 columns, each contiguous over the rows.

use crate::run::Run;
use crate::simd::{BLOCK, Block};

/// A bit matrix as strips of 64 columns; a strip is one [`Block`] per 64 rows. Rows and columns that pad it are zero.
pub struct Strips {
    rows: usize,
    height: usize,
    blocks: Vec<Block>,
}

/// Strips that one task fills together: eight words are one cache line of a packed row.
const STRIPS_PER_TASK: usize = 8;

impl Strips {
    /// `rows` rows of `words` words each, where `read(row, first, out)` copies words `first..` of a row into `out`.
    pub fn gather(rows: usize, words: usize, run: Run<'_>, read: impl Fn(usize, usize, &mut [u64]) + Sync) -> Strips {
        // A strip of no rows still has a block, so that the number of strips is kept.
        let height = rows.div_ceil(BLOCK).max(1);
        let mut blocks = vec![Block::ZERO; height * words];
        run.for_each_chunk(
            &mut blocks,
            height * STRIPS_PER_TASK,
            || (),
            |_, task, part| {
                fill(part, height, rows, task * STRIPS_PER_TASK, &read);
            },
        );
        Strips { rows, height, blocks }
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

    /// Strips `from..to` as one run of blocks, and those after `to` as another.
    pub fn split_mut(&mut self, from: usize, to: usize) -> (&mut [Block], &mut [Block]) {
        let (head, tail) = self.blocks.split_at_mut(to * self.height);
        (&mut head[from * self.height..], tail)
    }
}

fn fill(part: &mut [Block], height: usize, rows: usize, first: usize, read: &impl Fn(usize, usize, &mut [u64])) {
    let strips = part.len() / height;
    let mut line = [0; STRIPS_PER_TASK];
    let mut words = [[0; BLOCK]; STRIPS_PER_TASK];
    for i in 0..height {
        let count = BLOCK.min(rows - BLOCK * i);
        for r in 0..BLOCK {
            line.fill(0);
            if r < count {
                read(BLOCK * i + r, first, &mut line[..strips]);
            }
            for (strip, word) in words.iter_mut().zip(line) {
                strip[r] = word;
            }
        }
        for (g, strip) in words.iter().take(strips).enumerate() {
            part[g * height + i] = Block::from_rows(strip);
        }
    }
}
