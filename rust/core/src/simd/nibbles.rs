//! Tables for arms that look up half bytes: sums over subsets of four rows, a byte of columns each.
//!
//! A shuffle looks half bytes up in a table of 16 bytes, as many at a time as a register holds. So the tables of
//! `simd/portable.rs` are cut twice: by half bytes of the left factor, and by bytes of the product.
//!
//! ```text
//! load:         for each eight rows k and each byte j of columns: tables of the lower and of the upper four rows,
//!                   table[subset] = byte j of the sum of the rows in it
//! add_product:  for each register of rows, each byte k of the left factor, each byte j of columns:
//!                   acc[j] ^= shuffle(lower table, byte k & 15) ^ shuffle(upper table, byte k >> 4)
//! ```

use super::block::{BLOCK, Block};

/// For a group of eight rows and a byte of columns: sums over subsets of the lower four rows, then of the upper four.
#[derive(Clone, Copy)]
#[repr(C, align(32))]
pub struct Nibbles(pub [u8; 32]);

/// Entry s, `8 k + j` serves rows 64 s + 8 k .. + 8 and columns 8 j .. 8 j + 8.
#[derive(Default)]
pub struct Tiles(pub Vec<[Nibbles; 64]>);

impl Tiles {
    pub fn load(&mut self, blocks: &[Block]) {
        self.0.resize(blocks.len(), [Nibbles([0; 32]); 64]);
        for (tables, block) in self.0.iter_mut().zip(blocks) {
            for (j, plane) in block.0.chunks_exact(BLOCK).enumerate() {
                for (k, rows) in plane.as_chunks::<4>().0.chunks_exact(2).enumerate() {
                    for (table, rows) in tables[8 * k + j].0.as_chunks_mut::<16>().0.iter_mut().zip(rows) {
                        *table = subset_sums(*rows);
                    }
                }
            }
        }
    }
}

/// The sums over all subsets of four bytes. A multiplication copies a byte to the places of the subsets that hold it.
fn subset_sums(rows: [u8; 4]) -> [u8; 16] {
    let [a, b, c, d] = rows.map(u64::from);
    let lower = a.wrapping_mul(0x0100_0100_0100_0100)
        ^ b.wrapping_mul(0x0101_0000_0101_0000)
        ^ c.wrapping_mul(0x0101_0101_0000_0000);
    let upper = lower ^ d.wrapping_mul(0x0101_0101_0101_0101);
    (u128::from(upper) << 64 | u128::from(lower)).to_le_bytes()
}
