//! Lines of the cache as vectors of numbers: what the body of a kernel is written in where a compiler would not find the
//! vectors by itself.
//!
//! The portable line defines what the others compute, lane by lane and without fusing products with sums.

use super::Isa;
use super::rows::Real;
#[cfg(target_arch = "x86_64")]
use super::x86_lines::{Avx2Doubles, Avx2Singles};
#[cfg(has_gfni_intrinsics)]
use super::x86_lines::{Avx512Doubles, Avx512Singles};

/// Work on numbers of one type, written for lines of any kind. It must be marked `#[inline(always)]`, so that it is
/// compiled for every arm.
pub trait InLines<T: Real> {
    /// Does the work.
    fn run<L: Line<T, LANES>, const LANES: usize>(self);
}

/// Defines the arms for numbers of one type.
macro_rules! arms {
    ($name:ident, $number:ty, $lanes:literal, $avx2:ident, $avx512:ident) => {
        pub(super) fn $name<W: InLines<$number>>(isa: Isa, work: W) {
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
                Isa::Avx2 if isa.available() => unsafe { avx2(work) },
                // SAFETY: the machine has AVX-512 F, BW, VL and VPOPCNTDQ.
                #[cfg(has_gfni_intrinsics)]
                Isa::Gfni if isa.available() => unsafe { avx512(work) },
                _ => work.run::<[$number; $lanes], $lanes>(),
            }
        }
    };
}
arms!(in_singles, f32, 16, Avx2Singles, Avx512Singles);
arms!(in_doubles, f64, 8, Avx2Doubles, Avx512Doubles);

/// The numbers of a line of the cache, 64 bytes.
pub trait Line<T: Real, const LANES: usize>: Copy {
    /// Whether the machine has so many registers that many lines can be kept in them.
    const MANY: bool;
    /// The same number in all lanes.
    fn splat(number: T) -> Self;
    /// The line of these numbers.
    fn load(numbers: &[T; LANES]) -> Self;
    /// The line of these numbers, fewer than a line has, and of zeros behind them.
    fn load_start(numbers: &[T]) -> Self;
    /// The numbers.
    fn store(self) -> [T; LANES];
    /// The sums.
    fn add(self, other: Self) -> Self;
    /// The products.
    fn multiply(self, other: Self) -> Self;
    /// The sums of the bits as integers, without what leaves a lane.
    fn add_bits(self, other: Self) -> Self;

    /// The sum of all lanes: the upper half is added to the lower one until one number is left.
    #[inline(always)]
    fn fold(self) -> T {
        let sums = self.store();
        // Loops of known lengths, which leave no loop.
        let mut eight = [T::default(); 8];
        eight.copy_from_slice(&sums[..8]);
        if LANES == 16 {
            for lane in 0..8 {
                eight[lane] += sums[LANES - 8 + lane];
            }
        }
        let [a, b, c, d, e, f, g, h] = eight;
        ((a + e) + (c + g)) + ((b + f) + (d + h))
    }
}

impl<T: Real, const LANES: usize> Line<T, LANES> for [T; LANES] {
    const MANY: bool = false;

    #[inline(always)]
    fn splat(number: T) -> Self {
        [number; LANES]
    }

    #[inline(always)]
    fn load(numbers: &[T; LANES]) -> Self {
        *numbers
    }

    #[inline(always)]
    fn load_start(numbers: &[T]) -> Self {
        let mut line = [T::default(); LANES];
        line.iter_mut().zip(numbers).for_each(|(lane, number)| *lane = *number);
        line
    }

    #[inline(always)]
    fn store(self) -> [T; LANES] {
        self
    }

    #[inline(always)]
    fn add(mut self, other: Self) -> Self {
        for lane in 0..LANES {
            self[lane] += other[lane];
        }
        self
    }

    #[inline(always)]
    fn multiply(mut self, other: Self) -> Self {
        for lane in 0..LANES {
            self[lane] = self[lane] * other[lane];
        }
        self
    }

    #[inline(always)]
    fn add_bits(mut self, other: Self) -> Self {
        for lane in 0..LANES {
            self[lane] = self[lane].add_bits(other[lane]);
        }
        self
    }
}
