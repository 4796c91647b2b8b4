//! AVX2 arm of the GF(2) product: tables of 16 sums of four rows, looked up 32 rows at a time by a byte shuffle.
//!
//! The tables, and what is looked up in them, are those of `simd/nibbles.rs`.

use std::arch::x86_64::*;

use super::block::{BLOCK, Block};
use super::nibbles::Tiles;

pub fn add_product(c: &mut [Block], a: &[&[Block]], tiles: &Tiles) {
    assert!(a.len() == tiles.0.len() && a.iter().all(|blocks| blocks.len() == c.len()));
    assert!(is_x86_feature_detected!("avx2"));
    // SAFETY: the machine has AVX2, and the lengths that the kernel relies on were checked above.
    unsafe { add_product_avx2(c, a, tiles) }
}

/// # Safety
/// Needs AVX2, `a.len() == tiles.0.len()` and `a[s].len() == c.len()` for every s.
#[target_feature(enable = "avx2")]
unsafe fn add_product_avx2(c: &mut [Block], a: &[&[Block]], tiles: &Tiles) {
    let low = _mm256_set1_epi8(0x0f);
    for (i, sum) in c.iter_mut().enumerate() {
        for columns in [0, 4] {
            let planes = &mut sum.0[BLOCK * columns..][..4 * BLOCK];
            let at = planes.as_mut_ptr().cast::<__m256i>();
            // SAFETY: `planes` is 256 bytes, eight registers, 64-byte aligned by `Block`.
            let mut acc: [__m256i; 8] = unsafe { std::array::from_fn(|v| _mm256_load_si256(at.add(v))) };
            for (s, tables) in tiles.0.iter().enumerate() {
                // SAFETY: s < a.len() and i < a[s].len() by this function's contract.
                let index_planes = unsafe { a.get_unchecked(s).get_unchecked(i) }.0.as_ptr().cast::<__m256i>();
                for k in 0..8 {
                    // SAFETY: plane k of a block is 64 bytes, two aligned registers; k < 8.
                    let (first, second) = unsafe {
                        (_mm256_load_si256(index_planes.add(2 * k)), _mm256_load_si256(index_planes.add(2 * k + 1)))
                    };
                    let nibbles = [
                        _mm256_and_si256(first, low),
                        _mm256_and_si256(_mm256_srli_epi16(first, 4), low),
                        _mm256_and_si256(second, low),
                        _mm256_and_si256(_mm256_srli_epi16(second, 4), low),
                    ];
                    for j in 0..4 {
                        let table = tables[8 * k + columns + j].0.as_ptr().cast::<__m128i>();
                        // SAFETY: a table is 32 aligned bytes, two 128-bit halves.
                        let (lower, upper) = unsafe {
                            (
                                _mm256_broadcastsi128_si256(_mm_load_si128(table)),
                                _mm256_broadcastsi128_si256(_mm_load_si128(table.add(1))),
                            )
                        };
                        let first = _mm256_xor_si256(
                            _mm256_shuffle_epi8(lower, nibbles[0]),
                            _mm256_shuffle_epi8(upper, nibbles[1]),
                        );
                        let second = _mm256_xor_si256(
                            _mm256_shuffle_epi8(lower, nibbles[2]),
                            _mm256_shuffle_epi8(upper, nibbles[3]),
                        );
                        acc[2 * j] = _mm256_xor_si256(acc[2 * j], first);
                        acc[2 * j + 1] = _mm256_xor_si256(acc[2 * j + 1], second);
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
