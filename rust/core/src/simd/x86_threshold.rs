//! AVX2 arm of the weights beside bounds.
//!
//! Hardly any step of 32 weights has an open one, so that a step is eight registers of comparisons and one branch.
//! Where there are open ones, a table of the 16 sets of four weights says how to move those of a register to the front.
//!
//! ```text
//! for each step, for each register w of it:
//!     below += w & (w < low);  above -= w > high;  ties -= w = tie and between
//! if not all are decided: for each register: store it, its open weights in front;  count += how many they are
//! ```

use std::arch::x86_64::*;

use super::beside::{BEYOND, Beside, Bounds, SLACK, STEP};

/// Weights in a register, and registers of a step.
const WIDE: usize = 4;
const PARTS: usize = STEP / WIDE;

/// For each set of four weights, the halves of those in it, to be moved to the front.
static FRONT: [[u32; 2 * WIDE]; 1 << WIDE] = front();

const fn front() -> [[u32; 2 * WIDE]; 1 << WIDE] {
    let mut places = [[0; 2 * WIDE]; 1 << WIDE];
    let mut set = 0;
    while set < places.len() {
        let (mut weight, mut next) = (0, 0);
        while weight < WIDE {
            if set >> weight & 1 == 1 {
                places[set][next] = 2 * weight as u32;
                places[set][next + 1] = 2 * weight as u32 + 1;
                next += 2;
            }
            weight += 1;
        }
        set += 1;
    }
    places
}

pub fn add_steps(steps: &[[f64; STEP]], bounds: Bounds, beside: &mut Beside, open: &mut [f64]) -> usize {
    assert!(open.len() >= steps.len() * STEP + SLACK);
    assert!(is_x86_feature_detected!("avx2"));
    // SAFETY: the machine has AVX2, and there is room for all weights and a register more.
    unsafe { add_steps_avx2(steps, bounds, beside, open.as_mut_ptr()) }
}

/// # Safety
/// Needs AVX2, and room at `open` for all weights and a register more.
#[target_feature(enable = "avx2,popcnt")]
unsafe fn add_steps_avx2(steps: &[[f64; STEP]], bounds: Bounds, beside: &mut Beside, open: *mut f64) -> usize {
    let beyond = _mm256_set1_epi64x(BEYOND as i64);
    let [low, high, tie] = [bounds.low, bounds.high, bounds.tie].map(|bound| _mm256_set1_pd(bound));
    // SAFETY: there are as many sums as weights in a step.
    let mut below: [__m256d; PARTS] =
        std::array::from_fn(|i| unsafe { _mm256_loadu_pd(beside.below.as_ptr().add(i * WIDE)) });
    let (mut above, mut ties, mut signs) = (_mm256_setzero_si256(), _mm256_setzero_si256(), _mm256_setzero_si256());
    let mut count = 0;
    for step in steps {
        let mut sets = [_mm256_setzero_pd(); PARTS];
        for i in 0..PARTS {
            // SAFETY: the part is within the step.
            let w = unsafe { _mm256_loadu_pd(step.as_ptr().add(i * WIDE)) };
            let bits = _mm256_castpd_si256(w);
            signs = _mm256_or_si256(signs, _mm256_or_si256(bits, _mm256_add_epi64(bits, beyond)));
            let under = _mm256_cmp_pd::<_CMP_LT_OQ>(w, low);
            let over = _mm256_cmp_pd::<_CMP_GT_OQ>(w, high);
            below[i] = _mm256_add_pd(below[i], _mm256_and_pd(w, under));
            above = _mm256_sub_epi64(above, _mm256_castpd_si256(over));
            let decided = _mm256_or_pd(under, over);
            let equal = _mm256_andnot_pd(decided, _mm256_cmp_pd::<_CMP_EQ_OQ>(w, tie));
            ties = _mm256_sub_epi64(ties, _mm256_castpd_si256(equal));
            sets[i] = _mm256_or_pd(decided, equal);
        }
        let all = sets.iter().fold(_mm256_cmp_pd::<_CMP_TRUE_UQ>(low, low), |all, &set| _mm256_and_pd(all, set));
        if _mm256_movemask_pd(all) != 0b1111 {
            for (i, set) in sets.into_iter().enumerate() {
                let set = !_mm256_movemask_pd(set) as usize & 0b1111;
                // SAFETY: the part is within the step, the table has all sets, and no more weights were written than read.
                unsafe {
                    let w = _mm256_loadu_si256(step.as_ptr().add(i * WIDE).cast());
                    let places = _mm256_loadu_si256(FRONT[set].as_ptr().cast());
                    _mm256_storeu_si256(open.add(count).cast(), _mm256_permutevar8x32_epi32(w, places));
                }
                count += set.count_ones() as usize;
            }
        }
    }
    // SAFETY: as for the loads.
    below.iter().enumerate().for_each(|(i, &sum)| unsafe {
        _mm256_storeu_pd(beside.below.as_mut_ptr().add(i * WIDE), sum);
    });
    beside.above += words(above).iter().sum::<u64>();
    beside.ties += words(ties).iter().sum::<u64>();
    beside.signs |= words(signs).iter().fold(0, |all, signs| all | signs);
    count
}

#[target_feature(enable = "avx2")]
fn words(register: __m256i) -> [u64; WIDE] {
    let mut words = [0; WIDE];
    // SAFETY: the words have the register's size.
    unsafe { _mm256_storeu_si256(words.as_mut_ptr().cast(), register) };
    words
}
