//! AVX2 and AVX-512 arms of the screen: a tile of scores stays in registers while the features pass.
//!
//! Six halfspaces and as many records as leave registers for a weight and the values of a feature: 16 with the 16
//! registers of AVX2, 64 with the 32 of AVX-512. Products are fused with sums: the margins of `simd/screen.rs` hold for
//! any order of roundings.
//!
//! ```text
//! scores[h][v] = bias[h] signs[v]
//! for each feature: scores[h][v] = fma(weight[h], values[v], scores[h][v])
//! wrong = signs of the scores;  sure = all magnitudes > margin
//! ```

// The AVX-512 arm is compiled only where the compiler has these intrinsics; see the gate in `simd/screen.rs`.
#![allow(clippy::incompatible_msrv)]

use std::arch::x86_64::*;

use super::tile::{ABREAST, Rough, TILE, Tile, UNSURE};

/// Whether the machine has AVX2 and fused multiplications, as all have that have one of them.
pub fn fused() -> bool {
    is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma")
}

pub fn screen_fused(tile: Tile<'_>, rough: Rough<'_>, counts: &mut [u8]) {
    assert_lengths(tile, rough, counts);
    assert!(fused());
    // SAFETY: the machine has AVX2 and FMA, and the lengths that the kernel relies on were checked above.
    unsafe { screen_avx2(tile, rough, counts) }
}

#[cfg(has_gfni_intrinsics)]
pub fn screen_wide(tile: Tile<'_>, rough: Rough<'_>, counts: &mut [u8]) {
    assert_lengths(tile, rough, counts);
    assert!(is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512bw"));
    // SAFETY: the machine has AVX-512 F and BW, and the lengths that the kernel relies on were checked above.
    unsafe { screen_avx512(tile, rough, counts) }
}

fn assert_lengths(tile: Tile<'_>, rough: Rough<'_>, counts: &[u8]) {
    let (features, count) = (rough.features, counts.len());
    assert!(tile.columns.len() == features * TILE && rough.weights.len() == features * count);
    assert!(rough.biases.len() == count && rough.margins.len() == count && count.is_multiple_of(ABREAST));
}

/// Registers of records in the AVX2 arm: with six halfspaces they take twelve of the sixteen for scores.
const FEW: usize = 2;

/// # Safety
/// Needs AVX2 and FMA, and the lengths of [`assert_lengths`].
#[target_feature(enable = "avx2,fma")]
unsafe fn screen_avx2(tile: Tile<'_>, rough: Rough<'_>, counts: &mut [u8]) {
    for (group, counts) in counts.chunks_exact_mut(ABREAST).enumerate() {
        let first = group * ABREAST;
        let margins: [f32; ABREAST] = std::array::from_fn(|i| rough.margin(first + i, tile));
        let (mut wrong, mut unsure) = ([0u64; ABREAST], 0);
        for part in (0..TILE).step_by(8 * FEW) {
            // SAFETY: there are six halfspaces from the first one on, and sixteen records from the part on.
            let scores = unsafe { scores_avx2(tile, rough, first, part) };
            for i in 0..ABREAST {
                let [a, b] = scores[i];
                let magnitude = _mm256_set1_ps(-0.0);
                let least = _mm256_min_ps(_mm256_andnot_ps(magnitude, a), _mm256_andnot_ps(magnitude, b));
                let sure = _mm256_movemask_ps(_mm256_cmp_ps::<_CMP_GT_OQ>(least, _mm256_set1_ps(margins[i])));
                unsure |= i32::from(sure != 0xff) << i;
                let bits = _mm256_movemask_ps(a) | _mm256_movemask_ps(b) << 8;
                wrong[i] |= (bits as u64) << part;
            }
        }
        for (i, count) in counts.iter_mut().enumerate() {
            let number = (wrong[i] & tile.valid).count_ones() as u8;
            *count = if unsure >> i & 1 == 0 { number } else { UNSURE };
        }
    }
}

/// # Safety
/// Needs AVX2 and FMA, the lengths of [`assert_lengths`], [`ABREAST`] halfspaces from `first` on, a multiple of it, and
/// `part + 16 <= TILE`.
#[inline]
#[target_feature(enable = "avx2,fma")]
unsafe fn scores_avx2(tile: Tile<'_>, rough: Rough<'_>, first: usize, part: usize) -> [[__m256; FEW]; ABREAST] {
    let biases = &rough.biases[first..][..ABREAST];
    // SAFETY: weights and columns have the lengths that were checked.
    unsafe {
        let weights = rough.weights.as_ptr().add(first * rough.features);
        let (columns, signs) = (tile.columns.as_ptr().add(part), tile.signs.as_ptr().add(part));
        let signs: [__m256; FEW] = std::array::from_fn(|v| _mm256_loadu_ps(signs.add(8 * v)));
        // No zeros that are written over: the compiler would write them to memory, a tenth of the time.
        let mut scores: [[__m256; FEW]; ABREAST] =
            std::array::from_fn(|i| signs.map(|sign| _mm256_mul_ps(_mm256_set1_ps(biases[i]), sign)));
        for feature in 0..rough.features {
            let column = columns.add(feature * TILE);
            let values: [__m256; FEW] = std::array::from_fn(|v| _mm256_loadu_ps(column.add(8 * v)));
            for (i, scores) in scores.iter_mut().enumerate() {
                let weight = _mm256_set1_ps(*weights.add(feature * ABREAST + i));
                for (score, &value) in scores.iter_mut().zip(&values) {
                    *score = _mm256_fmadd_ps(weight, value, *score);
                }
            }
        }
        scores
    }
}

/// Registers of records in the AVX-512 arm: with six halfspaces they take 24 of the 32 for scores.
#[cfg(has_gfni_intrinsics)]
const MANY: usize = 4;

/// # Safety
/// Needs AVX-512 F and BW, and the lengths of [`assert_lengths`].
#[cfg(has_gfni_intrinsics)]
#[target_feature(enable = "avx512f,avx512bw,popcnt")]
unsafe fn screen_avx512(tile: Tile<'_>, rough: Rough<'_>, counts: &mut [u8]) {
    for (group, counts) in counts.chunks_exact_mut(ABREAST).enumerate() {
        let first = group * ABREAST;
        // SAFETY: there are six halfspaces from the first one on.
        let scores = unsafe { scores_avx512(tile, rough, first) };
        for (i, count) in counts.iter_mut().enumerate() {
            let margin = _mm512_set1_ps(rough.margin(first + i, tile));
            let zero = _mm512_setzero_ps();
            let opposite = _mm512_sub_ps(zero, margin);
            let above = joined(scores[i].map(|score| _mm512_cmp_ps_mask::<_CMP_GT_OQ>(score, margin)));
            let below = joined(scores[i].map(|score| _mm512_cmp_ps_mask::<_CMP_LT_OQ>(score, opposite)));
            let number = (below & tile.valid).count_ones() as u8;
            *count = if above | below == u64::MAX { number } else { UNSURE };
        }
    }
}

#[cfg(has_gfni_intrinsics)]
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn joined([a, b, c, d]: [__mmask16; MANY]) -> u64 {
    let (low, high) = (_mm512_kunpackw(b.into(), a.into()), _mm512_kunpackw(d.into(), c.into()));
    _mm512_kunpackd(high.into(), low.into())
}

/// # Safety
/// Needs AVX-512 F, the lengths of [`assert_lengths`], and [`ABREAST`] halfspaces from `first` on, a multiple of it.
#[cfg(has_gfni_intrinsics)]
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn scores_avx512(tile: Tile<'_>, rough: Rough<'_>, first: usize) -> [[__m512; MANY]; ABREAST] {
    let biases = &rough.biases[first..][..ABREAST];
    // SAFETY: weights and columns have the lengths that were checked.
    unsafe {
        let (columns, weights) = (tile.columns.as_ptr(), rough.weights.as_ptr().add(first * rough.features));
        let signs: [__m512; MANY] = std::array::from_fn(|v| _mm512_loadu_ps(tile.signs.as_ptr().add(16 * v)));
        // No zeros that are written over: the compiler would write them to memory, a tenth of the time.
        let mut scores: [[__m512; MANY]; ABREAST] =
            std::array::from_fn(|i| signs.map(|sign| _mm512_mul_ps(_mm512_set1_ps(biases[i]), sign)));
        for feature in 0..rough.features {
            let column = columns.add(feature * TILE);
            let values: [__m512; MANY] = std::array::from_fn(|v| _mm512_loadu_ps(column.add(16 * v)));
            for (i, scores) in scores.iter_mut().enumerate() {
                let weight = _mm512_set1_ps(*weights.add(feature * ABREAST + i));
                for (score, &value) in scores.iter_mut().zip(&values) {
                    *score = _mm512_fmadd_ps(weight, value, *score);
                }
            }
        }
        scores
    }
}
