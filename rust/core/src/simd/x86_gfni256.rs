//! AVX2 + GFNI arm of the GF(2) product, for processors without AVX-512: one instruction multiplies 32 rows of eight bits
//! by an 8 x 8 tile.
//!
//! The eight planes of a product would fill all sixteen registers. So four planes are added up after the other four, in
//! eight registers of sums: the left factor is read twice and each tile once, for two registers of 32 rows.
//!
//! ```text
//! load:         tile[j][k] = rows 8 k .. and columns 8 j .. of the right factor, turned into the instruction's order
//! add_product:  for each four planes j of the product, each plane k of the left factor:
//!                   acc[j] ^= plane[k] tile[j][k], for the upper and for the lower 32 rows
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
        for columns in [0, 4] {
            // SAFETY: a block is sixteen aligned registers, two for each plane.
            let at = unsafe { sum.0.as_mut_ptr().cast::<__m256i>().add(2 * columns) };
            // SAFETY: as above.
            let mut acc: [__m256i; 8] = unsafe { std::array::from_fn(|v| _mm256_load_si256(at.add(v))) };
            for (s, tiles) in tiles.0.iter().enumerate() {
                // SAFETY: s < a.len() and i < a[s].len() by this function's contract.
                let planes = unsafe { a.get_unchecked(s).get_unchecked(i) }.0.as_ptr().cast::<__m256i>();
                for k in 0..8 {
                    // SAFETY: plane k is two registers of the block.
                    let rows: [__m256i; 2] =
                        unsafe { std::array::from_fn(|v| _mm256_load_si256(planes.add(2 * k + v))) };
                    for (j, sums) in acc.as_chunks_mut::<2>().0.iter_mut().enumerate() {
                        let tile = _mm256_set1_epi64x(tiles[8 * (columns + j) + k] as i64);
                        for (sum, rows) in sums.iter_mut().zip(rows) {
                            *sum = _mm256_xor_si256(*sum, _mm256_gf2p8affine_epi64_epi8::<0>(rows, tile));
                        }
                    }
                }
            }
            for (v, sum) in acc.into_iter().enumerate() {
                // SAFETY: as for the loads above.
                unsafe { _mm256_store_si256(at.add(v), sum) };
            }
        }
    }
}
