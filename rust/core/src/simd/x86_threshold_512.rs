//! AVX-512 arm of the weights beside bounds.
//!
//! As `simd/x86_threshold.rs`, with sets of weights in mask registers and an instruction that moves a set to the front;
//! ties are looked at only where something lies between the bounds.
//!
//! ```text
//! for each step, for each register w of it:
//!     below += w where w < low;  above += 1 where w > high
//! if something is between: for each register: ties += 1 where w = tie;  store the others in front;  count += how many
//! ```

use std::arch::x86_64::*;

use super::beside::{BEYOND, Beside, Bounds, SLACK, STEP};

/// Weights in a register, and registers of a step.
const WIDE: usize = 8;
const PARTS: usize = STEP / WIDE;

pub fn add_steps(steps: &[[f64; STEP]], bounds: Bounds, beside: &mut Beside, open: &mut [f64]) -> usize {
    assert!(open.len() >= steps.len() * STEP + SLACK);
    assert!(is_x86_feature_detected!("avx512f"));
    // SAFETY: the machine has AVX-512 F, and there is room for all weights and a register more.
    unsafe { add_steps_avx512(steps, bounds, beside, open.as_mut_ptr()) }
}

/// # Safety
/// Needs AVX-512 F, and room at `open` for all weights and a register more.
#[target_feature(enable = "avx512f,popcnt")]
unsafe fn add_steps_avx512(steps: &[[f64; STEP]], bounds: Bounds, beside: &mut Beside, open: *mut f64) -> usize {
    let (beyond, one) = (_mm512_set1_epi64(BEYOND as i64), _mm512_set1_epi64(1));
    let [low, high, tie] = [bounds.low, bounds.high, bounds.tie].map(|bound| _mm512_set1_pd(bound));
    // SAFETY: there are as many sums as weights in a step.
    let mut below: [__m512d; PARTS] =
        std::array::from_fn(|i| unsafe { _mm512_loadu_pd(beside.below.as_ptr().add(i * WIDE)) });
    let (mut above, mut ties, mut signs) = (_mm512_setzero_si512(), _mm512_setzero_si512(), _mm512_setzero_si512());
    let mut count = 0;
    for step in steps {
        // SAFETY: the parts are within the step.
        let w: [__m512d; PARTS] = std::array::from_fn(|i| unsafe { _mm512_loadu_pd(step.as_ptr().add(i * WIDE)) });
        let mut sets = [0; PARTS];
        for i in 0..PARTS {
            let bits = _mm512_castpd_si512(w[i]);
            signs = _mm512_or_si512(signs, _mm512_or_si512(bits, _mm512_add_epi64(bits, beyond)));
            let under = _mm512_cmp_pd_mask::<_CMP_LT_OQ>(w[i], low);
            let over = _mm512_cmp_pd_mask::<_CMP_GT_OQ>(w[i], high);
            below[i] = _mm512_mask_add_pd(below[i], under, below[i], w[i]);
            above = _mm512_mask_add_epi64(above, over, above, one);
            sets[i] = !(under | over);
        }
        if sets != [0; PARTS] {
            for (&w, set) in w.iter().zip(sets) {
                let equal = _mm512_mask_cmp_pd_mask::<_CMP_EQ_OQ>(set, w, tie);
                ties = _mm512_mask_add_epi64(ties, equal, ties, one);
                let set = set & !equal;
                // Through a register: compressing to memory takes a hundred cycles on some processors.
                // SAFETY: no more weights were written than read, and there is room for a register more.
                unsafe { _mm512_storeu_pd(open.add(count), _mm512_maskz_compress_pd(set, w)) };
                count += set.count_ones() as usize;
            }
        }
    }
    // SAFETY: as for the loads.
    below.iter().enumerate().for_each(|(i, &sum)| unsafe {
        _mm512_storeu_pd(beside.below.as_mut_ptr().add(i * WIDE), sum);
    });
    beside.above += _mm512_reduce_add_epi64(above) as u64;
    beside.ties += _mm512_reduce_add_epi64(ties) as u64;
    beside.signs |= _mm512_reduce_or_epi64(signs) as u64;
    count
}
