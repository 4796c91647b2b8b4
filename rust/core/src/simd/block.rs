//! The 64 x 64 bit block that every GF(2) kernel works on.

/// The number of rows, and of columns, of a [`Block`].
pub const BLOCK: usize = 64;

/// A 64 x 64 bit matrix in eight byte planes: byte `64 j + r` holds columns `8 j .. 8 j + 8` of row r, column `8 j` in
/// the lowest bit.
///
/// The planes make one layout serve every arm: a run of 64 bytes is one AVX-512 register of table indices, a single
/// byte is an index into a table of 256 sums of rows, and eight neighboring bytes are an 8 x 8 tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, align(64))]
pub struct Block(pub [u8; BLOCK * BLOCK / 8]);

// SAFETY: an array of bytes, of which zeros are valid ones.
unsafe impl bytemuck::Zeroable for Block {}

impl Block {
    /// The block whose bits are all zero.
    pub const ZERO: Block = Block([0; BLOCK * BLOCK / 8]);

    /// The block whose row r is `rows[r]`, column 0 in the lowest bit.
    pub fn from_rows(rows: &[u64; BLOCK]) -> Block {
        let mut block = Block::ZERO;
        for at in (0..BLOCK).step_by(8) {
            block.set_eight_rows(at, std::array::from_fn(|r| rows[at + r]));
        }
        block
    }

    /// Replaces rows `at .. at + 8`; `at` is a multiple of eight.
    #[inline]
    pub fn set_eight_rows(&mut self, at: usize, rows: [u64; 8]) {
        for (plane, bytes) in self.0.chunks_exact_mut(BLOCK).zip(transpose_bytes(rows)) {
            plane[at..at + 8].copy_from_slice(&bytes.to_le_bytes());
        }
    }

    /// The rows as words, column 0 in the lowest bit.
    pub fn to_rows(&self) -> [u64; BLOCK] {
        let mut rows = [0; BLOCK];
        for (at, eight) in rows.chunks_exact_mut(8).enumerate() {
            let bytes = |j: usize| std::array::from_fn(|r| self.0[BLOCK * j + 8 * at + r]);
            eight.copy_from_slice(&transpose_bytes(std::array::from_fn(|j| u64::from_le_bytes(bytes(j)))));
        }
        rows
    }

    /// Row r as a word.
    #[inline]
    pub fn row(&self, r: usize) -> u64 {
        u64::from_le_bytes(std::array::from_fn(|j| self.0[BLOCK * j + r]))
    }

    /// Replaces row r.
    #[inline]
    pub fn set_row(&mut self, r: usize, word: u64) {
        for (j, byte) in word.to_le_bytes().into_iter().enumerate() {
            self.0[BLOCK * j + r] = byte;
        }
    }

    /// Copies `count` rows of `from`, starting at its row `start`, to the rows of this block starting at `at`.
    #[inline]
    pub fn copy_rows(&mut self, at: usize, from: &Block, start: usize, count: usize) {
        if count == BLOCK {
            // Nearly all calls copy a whole block, for which eight calls of memmove would take longer than the copy.
            *self = *from;
            return;
        }
        for j in 0..8 {
            let source = &from.0[BLOCK * j + start..][..count];
            self.0[BLOCK * j + at..][..count].copy_from_slice(source);
        }
    }

    /// Whether every bit is zero.
    pub fn is_zero(&self) -> bool {
        self.0.iter().fold(0, |seen, byte| seen | byte) == 0
    }
}

/// Transposes 8 x 8 bytes: byte j of word r goes to byte r of word j.
#[inline]
pub(super) fn transpose_bytes(mut words: [u64; 8]) -> [u64; 8] {
    for (distance, mask) in [(4, 0x0000_0000_ffff_ffff), (2, 0x0000_ffff_0000_ffff), (1, 0x00ff_00ff_00ff_00ff)] {
        for r in (0..8).filter(|r| r & distance == 0) {
            // Exchanges the upper half of each part of one word with the lower half of the same part of the other.
            let moved = (words[r] >> (8 * distance) ^ words[r + distance]) & mask;
            words[r] ^= moved << (8 * distance);
            words[r + distance] ^= moved;
        }
    }
    words
}
