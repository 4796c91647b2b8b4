//! min(c w, 1), in place, into memory that is read soon, or past the caches.
//!
//! There is nothing to compute: what counts is how often the memory is touched. An ordinary store reads a line into the
//! caches before it writes it; a streamed one does not, and needs whole, aligned registers.
//!
//! ```text
//! out[i] = c w[i] if c w[i] < 1 else 1
//! past the caches: the entries before the first aligned one as above, then registers streamed, then the rest as above
//! ```

use super::Isa;

dispatched! {
    /// Writes min(c w, 1) to `out`, which has as many entries as `w`.
    cap(w: &[f64], c: f64, out: &mut [f64]) = cap_all
}

dispatched! {
    /// The same in place.
    cap_in_place(w: &mut [f64], c: f64) = cap_each
}

/// The same as [`cap`] with stores that do not read `out` into the caches first: faster where the caches do not hold
/// `out` anyway, but slower into memory that was not written before.
pub fn cap_past_caches(isa: Isa, w: &[f64], c: f64, out: &mut [f64]) {
    match isa {
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 | Isa::Gfni256 | Isa::Gfni if isa.available() => {
            let ahead = out.as_ptr().align_offset(WIDE * size_of::<f64>()).min(out.len());
            let (w, out) = (&w[..out.len()], out);
            let ((start, w), (out_start, out)) = (w.split_at(ahead), out.split_at_mut(ahead));
            cap(isa, start, c, out_start);
            let whole = out.len() / WIDE * WIDE;
            cap(isa, &w[whole..], c, &mut out[whole..]);
            let (w, out) = (&w[..whole], &mut out[..whole]);
            // SAFETY: both arms need AVX2 only; `out` begins where a register may be stored, and both have the same
            // length of whole registers.
            unsafe { stream(w, c, out) }
        }
        _ => cap(isa, w, c, out),
    }
}

/// Weights in a register.
#[cfg(target_arch = "x86_64")]
const WIDE: usize = 4;

/// # Safety
/// Needs AVX2, slices of the same length, a multiple of that of a register, and an address of `out` that is one, too.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn stream(w: &[f64], c: f64, out: &mut [f64]) {
    use std::arch::x86_64::*;
    let (c, one) = (_mm256_set1_pd(c), _mm256_set1_pd(1.0));
    for (w, out) in w.chunks_exact(WIDE).zip(out.chunks_exact_mut(WIDE)) {
        // SAFETY: both have the length of a register, and `out` its alignment.
        unsafe {
            let scaled = _mm256_mul_pd(_mm256_loadu_pd(w.as_ptr()), c);
            _mm256_stream_pd(out.as_mut_ptr(), _mm256_min_pd(scaled, one));
        }
    }
    // Streamed stores are not ordered with others, such as those that tell another thread that this one is done.
    _mm_sfence();
}

#[inline(always)]
fn capped(w: f64, c: f64) -> f64 {
    let scaled = w * c;
    // One instruction, other than `min`, which asks for NaN.
    if scaled < 1.0 { scaled } else { 1.0 }
}

#[inline(always)]
fn cap_all(w: &[f64], c: f64, out: &mut [f64]) {
    out.iter_mut().zip(w).for_each(|(out, &w)| *out = capped(w, c));
}

#[inline(always)]
fn cap_each(w: &mut [f64], c: f64) {
    w.iter_mut().for_each(|w| *w = capped(*w, c));
}
