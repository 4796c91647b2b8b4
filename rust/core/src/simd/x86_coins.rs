//! AVX2 and AVX-512 arms of bits that are kept or flipped, a uniform byte for each.
//!
//! A comparison of 32 or 64 bytes gives their marks in one instruction, and what is seen of the bits is only their
//! disjunction, so that no branch depends on any of them. AVX2 has no unsigned comparison: a byte is at least another
//! if it is the larger of both.
//!
//! ```text
//! for each register of bytes and bits:
//!     answers = bits ^ (bytes >= first);  open = bytes = first;  seen |= bits
//! ```

// The AVX-512 arm is compiled only where the compiler has these intrinsics.
#![allow(clippy::incompatible_msrv)]

use std::arch::x86_64::*;

/// Coins whose marks are gathered in one word.
const COINS: usize = 64;

pub fn flip_avx2(bytes: &mut [[u8; COINS]], bits: &[[u8; COINS]], first: u8, open: &mut [u64]) -> u8 {
    assert!(is_x86_feature_detected!("avx2"));
    // SAFETY: the machine has AVX2.
    unsafe { avx2(bytes, bits, first, open) }
}

#[cfg(has_gfni_intrinsics)]
pub fn flip_avx512(bytes: &mut [[u8; COINS]], bits: &[[u8; COINS]], first: u8, open: &mut [u64]) -> u8 {
    assert!(is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512bw"));
    // SAFETY: the machine has AVX-512 F and BW.
    unsafe { avx512(bytes, bits, first, open) }
}

/// # Safety
/// Needs AVX2.
#[target_feature(enable = "avx2")]
unsafe fn avx2(bytes: &mut [[u8; COINS]], bits: &[[u8; COINS]], first: u8, open: &mut [u64]) -> u8 {
    let (least, one, mut seen) = (_mm256_set1_epi8(first as i8), _mm256_set1_epi8(1), _mm256_setzero_si256());
    for ((bytes, bits), open) in bytes.iter_mut().zip(bits).zip(open) {
        *open = 0;
        for (half, (bytes, bits)) in bytes.as_chunks_mut::<32>().0.iter_mut().zip(bits.as_chunks::<32>().0).enumerate()
        {
            // SAFETY: both hold the 32 bytes of a register.
            let (byte, bit) =
                unsafe { (_mm256_loadu_si256(bytes.as_ptr().cast()), _mm256_loadu_si256(bits.as_ptr().cast())) };
            let flips = _mm256_cmpeq_epi8(_mm256_max_epu8(byte, least), byte);
            let ties = _mm256_movemask_epi8(_mm256_cmpeq_epi8(byte, least)) as u32;
            *open |= u64::from(ties) << (32 * half);
            seen = _mm256_or_si256(seen, bit);
            let answers = _mm256_xor_si256(bit, _mm256_and_si256(flips, one));
            // SAFETY: there are 32 bytes.
            unsafe { _mm256_storeu_si256(bytes.as_mut_ptr().cast(), answers) };
        }
    }
    let mut all = [0; 32];
    // SAFETY: there are 32 bytes.
    unsafe { _mm256_storeu_si256(all.as_mut_ptr().cast(), seen) };
    all.into_iter().fold(0, |all, seen| all | seen)
}

/// # Safety
/// Needs AVX-512 F and BW.
#[cfg(has_gfni_intrinsics)]
#[target_feature(enable = "avx512f,avx512bw")]
unsafe fn avx512(bytes: &mut [[u8; COINS]], bits: &[[u8; COINS]], first: u8, open: &mut [u64]) -> u8 {
    let (least, one, mut seen) = (_mm512_set1_epi8(first as i8), _mm512_set1_epi8(1), _mm512_setzero_si512());
    for ((bytes, bits), open) in bytes.iter_mut().zip(bits).zip(open) {
        // SAFETY: both hold the 64 bytes of a register.
        let (byte, bit) =
            unsafe { (_mm512_loadu_si512(bytes.as_ptr().cast()), _mm512_loadu_si512(bits.as_ptr().cast())) };
        *open = _mm512_cmpeq_epi8_mask(byte, least);
        let flips = _mm512_maskz_mov_epi8(_mm512_cmpge_epu8_mask(byte, least), one);
        seen = _mm512_or_si512(seen, bit);
        // SAFETY: there are 64 bytes.
        unsafe { _mm512_storeu_si512(bytes.as_mut_ptr().cast(), _mm512_xor_si512(bit, flips)) };
    }
    let mut all = [0; COINS];
    // SAFETY: there are 64 bytes.
    unsafe { _mm512_storeu_si512(all.as_mut_ptr().cast(), seen) };
    all.into_iter().fold(0, |all, seen| all | seen)
}
