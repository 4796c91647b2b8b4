//! One body for several instruction sets: the compiler makes an arm of it for each.

/// Instantiates a body for every arm, under a name that dispatches.
macro_rules! dispatched {
    ($(#[$doc:meta])* $name:ident$(<$($generic:ident: $bound:path),+>)?($($argument:ident: $type:ty),*) = $body:path) => {
        $(#[$doc])*
        pub fn $name$(<$($generic: $bound),+>)?(isa: crate::simd::Isa, $($argument: $type),*) {
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2")]
            unsafe fn avx2$(<$($generic: $bound),+>)?($($argument: $type),*) {
                $body($($argument),*);
            }
            #[cfg(has_gfni_intrinsics)]
            #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vpopcntdq")]
            unsafe fn avx512$(<$($generic: $bound),+>)?($($argument: $type),*) {
                $body($($argument),*);
            }
            match isa {
                // SAFETY: the machine has AVX2.
                #[cfg(target_arch = "x86_64")]
                crate::simd::Isa::Avx2 | crate::simd::Isa::Gfni256 if isa.available() => unsafe { avx2($($argument),*) },
                // SAFETY: the machine has AVX-512 F, BW, VL and VPOPCNTDQ.
                #[cfg(has_gfni_intrinsics)]
                crate::simd::Isa::Gfni if isa.available() => unsafe { avx512($($argument),*) },
                _ => $body($($argument),*),
            }
        }
    };
}
