//! Lines in the registers of x86-64: one of AVX-512, or two of AVX2.
//!
//! A kernel is written once, for lines of any kind (`simd/real.rs`). Four types of line differ in nothing but the names
//! of their instructions, so that one macro writes them. Each method below is one instruction for each register, where
//! a compiler that is left to itself would find some of them and split others. Lines are used in arms alone, which are
//! entered where the machine has their instructions.
//!
//! A line is an array of registers, lane 0 first. Of all methods, for a line of C registers of P lanes each:
//!
//! ```text
//! splat(x)          registers[i] = splat(x)                                     for i in 0..C
//! load(numbers)     registers[i] = load(&numbers[P i])
//! load_start(some)  registers[i] = load_start(&some[P i], how many of its P numbers there are), zeros behind them
//! store             &numbers[P i] = store(registers[i])
//! add, multiply     registers[i] = add(registers[i], other[i]), each lane rounded by itself, never fused
//! add_bits          registers[i] = of_bits(add_bits(to_bits(registers[i]), to_bits(other[i])))
//! fold_all(lines)   sums[l] = the lanes of lines[l], added up as the portable line does: upper half to lower half
//! ```
//!
//! Sixteen lines are folded together, since a register that is folded alone is soon nearly empty. A step takes the halves
//! of two lines x and y that are to be added, puts both lower ones side by side in one register and both upper ones in
//! another, and adds the two, so that it leaves half as many registers:
//!
//! ```text
//! if a line has two registers: the upper one is added to the lower one
//! while more registers are left than hold one sum for each line:
//!     for each pair of registers x = [x_low, x_high], y = [y_low, y_high]:
//!         register = [x_low, y_low] + [x_high, y_high]
//! ```
//!
//! Lines are paired such that the sums stand in the order of the lines at last.

use std::arch::x86_64::*;

use super::real::{FOLDED, Line};

/// A line of this type, by the instructions that do to one register what the method of the same name does to the line.
macro_rules! line {
    (
        $name:ident: $count:literal x $register:ty,
        lanes => [$number:ty; $lanes:literal],
        many => $many:literal,
        splat => $splat:ident,
        load => $load:ident,
        load_start => $load_start:ident,
        store => $store:ident,
        add => $add:ident,
        multiply => $multiply:ident,
        to_bits => $to_bits:ident,
        add_bits => $add_bits:ident,
        of_bits => $of_bits:ident,
        fold_all => $fold_all:ident $(,)?
    ) => {
        #[derive(Clone, Copy)]
        pub(super) struct $name([$register; $count]);

        impl Line<$number, $lanes> for $name {
            const MANY: bool = $many;

            #[inline(always)]
            fn splat(number: $number) -> Self {
                // SAFETY: only arms for machines with this instruction set use this line.
                $name([unsafe { $splat(number) }; $count])
            }

            #[inline(always)]
            fn load(numbers: &[$number; $lanes]) -> Self {
                let (parts, _) = numbers.as_chunks::<{ $lanes / $count }>();
                // SAFETY: as for `splat`; each part holds as many numbers as a register.
                $name(std::array::from_fn(|i| unsafe { $load(parts[i].as_ptr()) }))
            }

            #[inline(always)]
            fn load_start(numbers: &[$number]) -> Self {
                const PART: usize = $lanes / $count;
                let pointer = numbers.as_ptr();
                // SAFETY: as for `splat`; of each register no lanes are read but those of the numbers that are there.
                $name(std::array::from_fn(|i| unsafe {
                    $load_start(pointer.wrapping_add(i * PART), numbers.len().saturating_sub(i * PART).min(PART))
                }))
            }

            #[inline(always)]
            fn store(self) -> [$number; $lanes] {
                let mut numbers = [0.0; $lanes];
                for (part, register) in numbers.as_chunks_mut::<{ $lanes / $count }>().0.iter_mut().zip(self.0) {
                    // SAFETY: as for `load`.
                    unsafe { $store(part.as_mut_ptr(), register) };
                }
                numbers
            }

            #[inline(always)]
            fn add(self, other: Self) -> Self {
                // SAFETY: as for `splat`.
                $name(std::array::from_fn(|i| unsafe { $add(self.0[i], other.0[i]) }))
            }

            #[inline(always)]
            fn multiply(self, other: Self) -> Self {
                // SAFETY: as for `splat`.
                $name(std::array::from_fn(|i| unsafe { $multiply(self.0[i], other.0[i]) }))
            }

            #[inline(always)]
            fn add_bits(self, other: Self) -> Self {
                // SAFETY: as for `splat`.
                let sum = |i: usize| unsafe { $of_bits($add_bits($to_bits(self.0[i]), $to_bits(other.0[i]))) };
                $name(std::array::from_fn(sum))
            }

            #[inline(always)]
            fn fold_all(lines: &[Self; FOLDED]) -> [$number; FOLDED] {
                let mut sums = [0.0; FOLDED];
                let mut registers = [lines[0].0; FOLDED];
                for i in 1..FOLDED {
                    registers[i] = lines[i].0;
                }
                // SAFETY: as for `splat`.
                unsafe { $fold_all(&registers, &mut sums) };
                sums
            }
        }
    };
}

line! {
    Avx2Singles: 2 x __m256,
    lanes => [f32; 16],
    many => false,
    splat => _mm256_set1_ps,
    load => _mm256_loadu_ps,
    load_start => load_8_singles,
    store => _mm256_storeu_ps,
    add => _mm256_add_ps,
    multiply => _mm256_mul_ps,
    to_bits => _mm256_castps_si256,
    add_bits => _mm256_add_epi32,
    of_bits => _mm256_castsi256_ps,
    fold_all => fold_8_singles,
}
line! {
    Avx2Doubles: 2 x __m256d,
    lanes => [f64; 8],
    many => false,
    splat => _mm256_set1_pd,
    load => _mm256_loadu_pd,
    load_start => load_4_doubles,
    store => _mm256_storeu_pd,
    add => _mm256_add_pd,
    multiply => _mm256_mul_pd,
    to_bits => _mm256_castpd_si256,
    add_bits => _mm256_add_epi64,
    of_bits => _mm256_castsi256_pd,
    fold_all => fold_4_doubles,
}
#[cfg(has_gfni_intrinsics)]
line! {
    Avx512Singles: 1 x __m512,
    lanes => [f32; 16],
    many => true,
    splat => _mm512_set1_ps,
    load => _mm512_loadu_ps,
    load_start => load_16_singles,
    store => _mm512_storeu_ps,
    add => _mm512_add_ps,
    multiply => _mm512_mul_ps,
    to_bits => _mm512_castps_si512,
    add_bits => _mm512_add_epi32,
    of_bits => _mm512_castsi512_ps,
    fold_all => fold_16_singles,
}
#[cfg(has_gfni_intrinsics)]
line! {
    Avx512Doubles: 1 x __m512d,
    lanes => [f64; 8],
    many => true,
    splat => _mm512_set1_pd,
    load => _mm512_loadu_pd,
    load_start => load_8_doubles,
    store => _mm512_storeu_pd,
    add => _mm512_add_pd,
    multiply => _mm512_mul_pd,
    to_bits => _mm512_castpd_si512,
    add_bits => _mm512_add_epi64,
    of_bits => _mm512_castsi512_pd,
    fold_all => fold_8_doubles,
}

/// Loads the first `count` of eight numbers, and zeros.
///
/// # Safety
///
/// The machine must have AVX2, and so many numbers be there.
#[inline(always)]
unsafe fn load_8_singles(numbers: *const f32, count: usize) -> __m256 {
    // SAFETY: the caller's promise; a masked load reads no other lanes.
    unsafe {
        let mask = _mm256_cmpgt_epi32(_mm256_set1_epi32(count as i32), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
        _mm256_maskload_ps(numbers, mask)
    }
}

/// The same for the first of four.
///
/// # Safety
///
/// The same.
#[inline(always)]
unsafe fn load_4_doubles(numbers: *const f64, count: usize) -> __m256d {
    // SAFETY: the same.
    unsafe {
        let mask = _mm256_cmpgt_epi64(_mm256_set1_epi64x(count as i64), _mm256_setr_epi64x(0, 1, 2, 3));
        _mm256_maskload_pd(numbers, mask)
    }
}

/// The same for the first of 16.
///
/// # Safety
///
/// The machine must have AVX-512 F, and so many numbers be there.
#[cfg(has_gfni_intrinsics)]
#[inline(always)]
unsafe fn load_16_singles(numbers: *const f32, count: usize) -> __m512 {
    // SAFETY: the same.
    unsafe { _mm512_maskz_loadu_ps(((1u32 << count) - 1) as __mmask16, numbers) }
}

/// The same for the first of eight.
///
/// # Safety
///
/// The machine must have AVX-512 F, and so many numbers be there.
#[cfg(has_gfni_intrinsics)]
#[inline(always)]
unsafe fn load_8_doubles(numbers: *const f64, count: usize) -> __m512d {
    // SAFETY: the same.
    unsafe { _mm512_maskz_loadu_pd(((1u32 << count) - 1) as __mmask8, numbers) }
}

/// The sums of lines in two registers each. Loops alone: what the compiler would not inline, such as functions for arrays,
/// would have no vectors.
///
/// # Safety
///
/// The machine must have AVX2.
#[inline(always)]
unsafe fn fold_8_singles(lines: &[[__m256; 2]; FOLDED], sums: &mut [f32; FOLDED]) {
    for (lines, sums) in lines.as_chunks::<8>().0.iter().zip(sums.as_chunks_mut::<8>().0) {
        // SAFETY: the caller's promise.
        unsafe {
            let mut eight = [_mm256_setzero_ps(); 8];
            for i in 0..8 {
                eight[i] = _mm256_add_ps(lines[i][0], lines[i][1]);
            }
            for i in 0..4 {
                let (x, y) = (eight[i], eight[i + 4]);
                eight[i] = _mm256_add_ps(_mm256_permute2f128_ps::<0x20>(x, y), _mm256_permute2f128_ps::<0x31>(x, y));
            }
            for i in 0..2 {
                let (x, y) = (_mm256_castps_pd(eight[2 * i]), _mm256_castps_pd(eight[2 * i + 1]));
                let (low, high) = (_mm256_unpacklo_pd(x, y), _mm256_unpackhi_pd(x, y));
                eight[i] = _mm256_add_ps(_mm256_castpd_ps(low), _mm256_castpd_ps(high));
            }
            let [x, y, ..] = eight;
            let folded = _mm256_add_ps(_mm256_shuffle_ps::<0x88>(x, y), _mm256_shuffle_ps::<0xdd>(x, y));
            _mm256_storeu_ps(sums.as_mut_ptr(), folded);
        }
    }
}

/// The same.
///
/// # Safety
///
/// The same.
#[inline(always)]
unsafe fn fold_4_doubles(lines: &[[__m256d; 2]; FOLDED], sums: &mut [f64; FOLDED]) {
    for (lines, sums) in lines.as_chunks::<4>().0.iter().zip(sums.as_chunks_mut::<4>().0) {
        // SAFETY: the caller's promise.
        unsafe {
            let mut four = [_mm256_setzero_pd(); 4];
            for i in 0..4 {
                four[i] = _mm256_add_pd(lines[i][0], lines[i][1]);
            }
            for i in 0..2 {
                let (x, y) = (four[i], four[i + 2]);
                four[i] = _mm256_add_pd(_mm256_permute2f128_pd::<0x20>(x, y), _mm256_permute2f128_pd::<0x31>(x, y));
            }
            let [x, y, ..] = four;
            let folded = _mm256_add_pd(_mm256_unpacklo_pd(x, y), _mm256_unpackhi_pd(x, y));
            _mm256_storeu_pd(sums.as_mut_ptr(), folded);
        }
    }
}

/// The same for lines in one register each.
///
/// # Safety
///
/// The machine must have AVX-512 F.
#[cfg(has_gfni_intrinsics)]
#[inline(always)]
unsafe fn fold_16_singles(lines: &[[__m512; 1]; FOLDED], sums: &mut [f32; FOLDED]) {
    // SAFETY: the caller's promise.
    unsafe {
        let mut eight = [_mm512_setzero_ps(); 8];
        for i in 0..8 {
            // Lines that are 4 apart side by side.
            let ([x], [y]) = (lines[i / 4 * 8 + i % 4], lines[i / 4 * 8 + i % 4 + 4]);
            eight[i] = _mm512_add_ps(_mm512_shuffle_f32x4::<0x44>(x, y), _mm512_shuffle_f32x4::<0xee>(x, y));
        }
        for i in 0..4 {
            let (x, y) = (eight[i], eight[i + 4]);
            eight[i] = _mm512_add_ps(_mm512_shuffle_f32x4::<0x88>(x, y), _mm512_shuffle_f32x4::<0xdd>(x, y));
        }
        for i in 0..2 {
            let (x, y) = (_mm512_castps_pd(eight[2 * i]), _mm512_castps_pd(eight[2 * i + 1]));
            let (low, high) = (_mm512_unpacklo_pd(x, y), _mm512_unpackhi_pd(x, y));
            eight[i] = _mm512_add_ps(_mm512_castpd_ps(low), _mm512_castpd_ps(high));
        }
        let [x, y, ..] = eight;
        let folded = _mm512_add_ps(_mm512_shuffle_ps::<0x88>(x, y), _mm512_shuffle_ps::<0xdd>(x, y));
        _mm512_storeu_ps(sums.as_mut_ptr(), folded);
    }
}

/// The same.
///
/// # Safety
///
/// The same.
#[cfg(has_gfni_intrinsics)]
#[inline(always)]
unsafe fn fold_8_doubles(lines: &[[__m512d; 1]; FOLDED], sums: &mut [f64; FOLDED]) {
    for (lines, sums) in lines.as_chunks::<8>().0.iter().zip(sums.as_chunks_mut::<8>().0) {
        // SAFETY: the caller's promise.
        unsafe {
            let mut four = [_mm512_setzero_pd(); 4];
            for i in 0..4 {
                let ([x], [y]) = (lines[i / 2 * 4 + i % 2], lines[i / 2 * 4 + i % 2 + 2]);
                four[i] = _mm512_add_pd(_mm512_shuffle_f64x2::<0x44>(x, y), _mm512_shuffle_f64x2::<0xee>(x, y));
            }
            for i in 0..2 {
                let (x, y) = (four[i], four[i + 2]);
                four[i] = _mm512_add_pd(_mm512_shuffle_f64x2::<0x88>(x, y), _mm512_shuffle_f64x2::<0xdd>(x, y));
            }
            let [x, y, ..] = four;
            let folded = _mm512_add_pd(_mm512_unpacklo_pd(x, y), _mm512_unpackhi_pd(x, y));
            _mm512_storeu_pd(sums.as_mut_ptr(), folded);
        }
    }
}
