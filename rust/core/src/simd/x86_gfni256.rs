//! AVX2 + GFNI arm of the GF(2) product, for processors without AVX-512: one instruction multiplies 32 rows of eight bits
//! by an 8 x 8 tile.
//!
//! The eight planes of a product would fill all sixteen registers. So the upper and the lower 32 rows are added up one after
//! the other, in eight registers of sums: each tile is read twice, which costs less than registers that do not suffice.
//!
//! ```text
//! load:         tile[j][k] = rows 8 k .. and columns 8 j .. of the right factor, turned into the instruction's order
//! add_product:  for each half of the rows, each two planes k, k + 1 of the left factor, each plane j of the product:
//!                   acc[j] ^= plane[k] tile[j][k] ^ plane[k + 1] tile[j][k + 1]
//! ```

// This file is compiled only where the compiler has these intrinsics; see the gate in `simd/mod.rs`.
#![allow(clippy::incompatible_msrv)]

use std::arch::x86_64::*;

use super::block::Block;

/// `tiles[s][8 j + k]` is the 8 x 8 tile of rows 64 s + 8 k .. and columns 8 j .. in the instruction's own order:
/// byte 7 - i holds column i, bit k of it row k.
#[derive(Default)]
pub struct Tiles(Vec<[u64; 64]>);

impl Tiles {
    pub fn load(&mut self, blocks: &[Block]) {
        assert!(is_x86_feature_detected!("avx2") && is_x86_feature_detected!("gfni"));
        self.0.resize(blocks.len(), [0; 64]);
        for (tiles, block) in self.0.iter_mut().zip(blocks) {
            // SAFETY: the machine has AVX2 and GFNI.
            unsafe { transpose_tiles(tiles, block) };
        }
    }
}

/// # Safety
/// Needs AVX2 and GFNI.
#[target_feature(enable = "avx2,gfni")]
unsafe fn transpose_tiles(tiles: &mut [u64; 64], block: &Block) {
    // Multiplying the anti-identity by a tile transposes it, up to the order of rows that the reversal repairs.
    let anti_identity = _mm256_set1_epi64x(0x0102_0408_1020_4080_u64 as i64);
    let reversal = _mm256_broadcastsi128_si256(_mm_set_epi32(0x0809_0a0b, 0x0c0d_0e0f, 0x0001_0203, 0x0405_0607));
    let from = block.0.as_ptr().cast::<__m256i>();
    let to = tiles.as_mut_ptr().cast::<__m256i>();
    for half in 0..16 {
        // SAFETY: half a plane is 32 aligned bytes of the block; it becomes four words of `tiles`.
        unsafe {
            let rows = _mm256_shuffle_epi8(_mm256_load_si256(from.add(half)), reversal);
            _mm256_storeu_si256(to.add(half), _mm256_gf2p8affine_epi64_epi8::<0>(anti_identity, rows));
        }
    }
}

pub fn add_product(c: &mut [Block], a: &[&[Block]], tiles: &Tiles) {
    assert!(a.len() == tiles.0.len() && a.iter().all(|blocks| blocks.len() == c.len()));
    assert!(is_x86_feature_detected!("avx2") && is_x86_feature_detected!("gfni"));
    // SAFETY: the machine has AVX2 and GFNI, and the lengths that the kernel relies on were checked above.
    unsafe { add_product_gfni(c, a, tiles) }
}

/// # Safety
/// Needs AVX2 and GFNI, `a.len() == tiles.0.len()` and `a[s].len() == c.len()` for every s.
#[target_feature(enable = "avx2,gfni")]
unsafe fn add_product_gfni(c: &mut [Block], a: &[&[Block]], tiles: &Tiles) {
    for (i, sum) in c.iter_mut().enumerate() {
        for half in 0..2 {
            // SAFETY: half a block is every other one of its sixteen aligned registers.
            let at = unsafe { sum.0.as_mut_ptr().cast::<__m256i>().add(half) };
            // SAFETY: as above.
            let mut acc: [__m256i; 8] = unsafe { std::array::from_fn(|j| _mm256_load_si256(at.add(2 * j))) };
            for (s, tiles) in tiles.0.iter().enumerate() {
                // SAFETY: s < a.len() and i < a[s].len() by this function's contract.
                let block = unsafe { a.get_unchecked(s).get_unchecked(i) };
                // SAFETY: as for the sums.
                let planes = unsafe { block.0.as_ptr().cast::<__m256i>().add(half) };
                for pair in 0..4 {
                    // SAFETY: planes 2 pair and 2 pair + 1 are inside the block.
                    let (first, second) = unsafe {
                        (_mm256_load_si256(planes.add(4 * pair)), _mm256_load_si256(planes.add(4 * pair + 2)))
                    };
                    for (j, sum) in acc.iter_mut().enumerate() {
                        let tile = |k: usize| _mm256_set1_epi64x(tiles[8 * j + k] as i64);
                        let left = _mm256_gf2p8affine_epi64_epi8::<0>(first, tile(2 * pair));
                        let right = _mm256_gf2p8affine_epi64_epi8::<0>(second, tile(2 * pair + 1));
                        *sum = _mm256_xor_si256(*sum, _mm256_xor_si256(left, right));
                    }
                }
            }
            for (j, sum) in acc.into_iter().enumerate() {
                // SAFETY: as for the loads above.
                unsafe { _mm256_store_si256(at.add(2 * j), sum) };
            }
        }
    }
}
