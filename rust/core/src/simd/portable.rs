//! The definition of the GF(2) product: the method of the four Russians with tables of 256 sums of eight rows.
//!
//! A row of the product is the sum of those rows of the right factor that a row of the left factor names, 64 bits of
//! it. Eight of these bits name one of 256 sums, which are computed once for all rows of all left factors.
//!
//! ```text
//! load:         for each eight rows of the right factor: table[subset] = the sum of the rows in it
//! add_product:  for each row of the left factor, for each byte k of it: row of the product ^= table k at this byte
//! ```

use super::block::{BLOCK, Block};

/// For each group of eight rows of the right factor, the sums of all its 256 subsets.
#[derive(Default)]
pub struct Tiles(Vec<[[u64; 256]; 8]>);

impl Tiles {
    pub fn load(&mut self, blocks: &[Block]) {
        self.0.resize(blocks.len(), [[0; 256]; 8]);
        for (tables, block) in self.0.iter_mut().zip(blocks) {
            let rows = block.to_rows();
            for (table, group) in tables.iter_mut().zip(rows.chunks_exact(8)) {
                for (bit, row) in group.iter().enumerate() {
                    let half = 1 << bit;
                    for subset in 0..half {
                        table[half + subset] = table[subset] ^ row;
                    }
                }
            }
        }
    }
}

pub fn add_product(c: &mut [Block], a: &[&[Block]], tiles: &Tiles) {
    for (i, sum) in c.iter_mut().enumerate() {
        let mut rows = sum.to_rows();
        for (factor, tables) in a.iter().zip(&tiles.0) {
            let indices = &factor[i].0;
            for (r, row) in rows.iter_mut().enumerate() {
                for (k, table) in tables.iter().enumerate() {
                    *row ^= table[usize::from(indices[BLOCK * k + r])];
                }
            }
        }
        *sum = Block::from_rows(&rows);
    }
}
