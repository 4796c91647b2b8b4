//! AVX-512 + GFNI arm of the GF(2) product: one instruction multiplies 64 rows of eight bits by an 8 x 8 tile.
//!
//! A plane of the left factor, 64 rows of eight bits, is one register; the product of a block takes 64 such
//! instructions, two of whose results are added to a third in another.
//!
//! ```text
//! load:         tile[j][k] = rows 8 k .. and columns 8 j .. of the right factor, turned into the instruction's order
//! add_product:  for each two planes k, k + 1 of the left factor, each plane j of the product:
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
        assert!(is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("gfni"));
        assert!(is_x86_feature_detected!("avx512bw"));
        self.0.resize(blocks.len(), [0; 64]);
        for (tiles, block) in self.0.iter_mut().zip(blocks) {
            // SAFETY: the machine has AVX-512 F, BW and GFNI.
            unsafe { transpose_tiles(tiles, block) };
        }
    }
}

/// # Safety
/// Needs AVX-512 F, BW and GFNI.
#[target_feature(enable = "avx512f,avx512bw,gfni")]
unsafe fn transpose_tiles(tiles: &mut [u64; 64], block: &Block) {
    // Multiplying the anti-identity by a tile transposes it, up to the order of rows that the reversal repairs.
    let anti_identity = _mm512_set1_epi64(0x0102_0408_1020_4080_u64 as i64);
    let reversal = _mm512_set4_epi32(0x0809_0a0b, 0x0c0d_0e0f, 0x0001_0203, 0x0405_0607);
    let from = block.0.as_ptr().cast::<__m512i>();
    let to = tiles.as_mut_ptr().cast::<__m512i>();
    for j in 0..8 {
        // SAFETY: plane j is 64 aligned bytes of the block; eight words of `tiles` start at 8 j.
        unsafe {
            let plane = _mm512_shuffle_epi8(_mm512_load_si512(from.add(j)), reversal);
            _mm512_storeu_si512(to.add(j), _mm512_gf2p8affine_epi64_epi8::<0>(anti_identity, plane));
        }
    }
}

pub fn add_product(c: &mut [Block], a: &[&[Block]], tiles: &Tiles) {
    assert!(a.len() == tiles.0.len() && a.iter().all(|blocks| blocks.len() == c.len()));
    assert!(is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("gfni"));
    // SAFETY: the machine has AVX-512 F and GFNI, and the lengths that the kernel relies on were checked above.
    unsafe { add_product_gfni(c, a, tiles) }
}

/// # Safety
/// Needs AVX-512 F and GFNI, `a.len() == tiles.0.len()` and `a[s].len() == c.len()` for every s.
#[target_feature(enable = "avx512f,gfni")]
unsafe fn add_product_gfni(c: &mut [Block], a: &[&[Block]], tiles: &Tiles) {
    for (i, sum) in c.iter_mut().enumerate() {
        let at = sum.0.as_mut_ptr().cast::<__m512i>();
        // SAFETY: a block is eight aligned registers.
        let mut acc: [__m512i; 8] = unsafe { std::array::from_fn(|j| _mm512_load_si512(at.add(j))) };
        for (s, tiles) in tiles.0.iter().enumerate() {
            // SAFETY: s < a.len() and i < a[s].len() by this function's contract.
            let planes = unsafe { a.get_unchecked(s).get_unchecked(i) }.0.as_ptr().cast::<__m512i>();
            for pair in 0..4 {
                // SAFETY: planes 2 pair and 2 pair + 1 are inside the block.
                let (first, second) =
                    unsafe { (_mm512_load_si512(planes.add(2 * pair)), _mm512_load_si512(planes.add(2 * pair + 1))) };
                for (j, sum) in acc.iter_mut().enumerate() {
                    let tile = |k: usize| _mm512_set1_epi64(tiles[8 * j + k] as i64);
                    let left = _mm512_gf2p8affine_epi64_epi8::<0>(first, tile(2 * pair));
                    let right = _mm512_gf2p8affine_epi64_epi8::<0>(second, tile(2 * pair + 1));
                    // 0x96 is the truth table of a three-way exclusive or.
                    *sum = _mm512_ternarylogic_epi64::<0x96>(*sum, left, right);
                }
            }
        }
        for (j, sum) in acc.into_iter().enumerate() {
            // SAFETY: as for the loads above.
            unsafe { _mm512_store_si512(at.add(j), sum) };
        }
    }
}
