//! What tests of kernels share.

use hdp_fast_core::simd::{Isa, Real};

/// The instruction sets of this machine.
pub fn arms() -> impl Iterator<Item = Isa> {
    Isa::ALL.into_iter().filter(|isa| isa.available())
}

/// Multiples of 1/8 between -1 and 1, whose short sums are exact in either precision.
pub fn entries<T: Real>(count: usize) -> Vec<T> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let next = |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        T::of(((state >> 33) % 17) as f64 / 8.0 - 1.0)
    };
    (0..count).map(next).collect()
}
