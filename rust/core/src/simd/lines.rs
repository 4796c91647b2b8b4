//! Arms whose vectors are lines of the cache, and what floats of either precision are.

use super::Isa;
use super::real::{InLines, Real};
#[cfg(target_arch = "x86_64")]
use super::x86_lines::{Avx2Doubles, Avx2Singles};
#[cfg(has_gfni_intrinsics)]
use super::x86_lines::{Avx512Doubles, Avx512Singles};
use crate::error::Result;
use crate::memory::reserve;

/// Defines the arms for numbers of one type.
macro_rules! arms {
    ($name:ident: [$number:ty; $lanes:literal], avx2 => $avx2:ident, avx512 => $avx512:ident) => {
        fn $name<W: InLines<$number>>(isa: Isa, work: W) {
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2")]
            unsafe fn avx2<W: InLines<$number>>(work: W) {
                work.run::<$avx2, $lanes>();
            }
            #[cfg(has_gfni_intrinsics)]
            #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vpopcntdq")]
            unsafe fn avx512<W: InLines<$number>>(work: W) {
                work.run::<$avx512, $lanes>();
            }
            match isa {
                // SAFETY: the machine has AVX2.
                #[cfg(target_arch = "x86_64")]
                Isa::Avx2 | Isa::Gfni256 if isa.available() => unsafe { avx2(work) },
                // SAFETY: the machine has AVX-512 F, BW, VL and VPOPCNTDQ.
                #[cfg(has_gfni_intrinsics)]
                Isa::Gfni if isa.available() => unsafe { avx512(work) },
                _ => work.run::<[$number; $lanes], $lanes>(),
            }
        }
    };
}
arms!(in_singles: [f32; 16], avx2 => Avx2Singles, avx512 => Avx512Singles);
arms!(in_doubles: [f64; 8], avx2 => Avx2Doubles, avx512 => Avx512Doubles);

/// Makes a type of floats a `Real` whose bits are a word of this type, by functions for what its precision decides.
macro_rules! real {
    ($type:ty: $word:ty, all_of => $all_of:expr, total_of_bits => $total_of_bits:expr, in_lines => $in_lines:expr) => {
        impl Real for $type {
            const ROUNDER: $type = (3u64 << (<$type>::MANTISSA_DIGITS - 2)) as $type;
            const LEAST: f64 = <$type>::MIN_POSITIVE as f64;
            const EPSILON: f64 = <$type>::EPSILON as f64;
            fn of(value: f64) -> $type {
                value as $type
            }
            fn all_of<'a>(values: &'a [f64], room: &'a mut Vec<$type>) -> Result<&'a [$type]> {
                $all_of(values, room)
            }
            fn get(self) -> f64 {
                self.into()
            }
            #[inline(always)]
            fn add_bits(self, other: $type) -> $type {
                <$type>::from_bits(self.to_bits().wrapping_add(other.to_bits()))
            }
            #[inline(always)]
            fn total_of_bits(self, terms: usize) -> f64 {
                $total_of_bits(self.to_bits(), terms as $word)
            }
            fn in_lines(isa: Isa, work: impl InLines<$type>) {
                $in_lines(isa, work);
            }
        }
    };
}
real!(f64: u64, all_of => |values, _| Ok(values), total_of_bits => total_of_doubles, in_lines => in_doubles);
real!(f32: u32, all_of => rounded, total_of_bits => total_of_singles, in_lines => in_singles);

#[inline(always)]
fn total_of_doubles(sum: u64, terms: u64) -> f64 {
    // As a double again, since no conversion of such integers is known to all instruction sets.
    let rounder = f64::ROUNDER.to_bits();
    f64::from_bits(sum.wrapping_sub(rounder.wrapping_mul(terms.wrapping_sub(1)))) - f64::ROUNDER
}

#[inline(always)]
fn total_of_singles(sum: u32, terms: u32) -> f64 {
    f64::from(sum.wrapping_sub(f32::ROUNDER.to_bits().wrapping_mul(terms)).cast_signed())
}

fn rounded<'a>(values: &[f64], room: &'a mut Vec<f32>) -> Result<&'a [f32]> {
    room.clear();
    reserve(room, values.len())?;
    room.extend(values.iter().map(|&value| value as f32));
    Ok(room)
}
