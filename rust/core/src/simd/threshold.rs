//! Weights beside two bounds: how many lie above, what those below sum to, and which lie between.
//!
//! A threshold is searched for by passes that narrow two bounds; what is decided by them is counted or added up in one
//! pass over the weights, and only those between are kept for the next one. The portable body defines the kernel. All
//! arms add the same weights in the same 32 lanes, so that they agree bit for bit.
//!
//! ```text
//! for each 32 weights, lane by lane:
//!     below += w if w < low;  above += 1 if w > high;  ties += 1 if w = tie and it lies between
//!     signs |= bits of w, and those of w, its exponent one larger     the highest is set if w < 0 or not finite
//!     open  = the others, in their order
//! after a block of them: take(open)
//! ```

use super::Isa;
use super::beside::{BEYOND, Beside, Bounds, SLACK, STEP};
#[cfg(target_arch = "x86_64")]
use super::x86_threshold;
#[cfg(has_gfni_intrinsics)]
use super::x86_threshold_512;
use crate::error::Result;

/// Weights whose open ones are collected before they are taken.
const BLOCK: usize = 1 << 11;

/// Adds up and counts the weights beside the bounds, and hands those between them, in their order, to `take`.
pub fn divide(isa: Isa, w: &[f64], bounds: Bounds, mut take: impl FnMut(&[f64]) -> Result<()>) -> Result<Beside> {
    // What fills the last step is 0 and so below.
    let bounds = Bounds { low: bounds.low.max(f64::from_bits(1)), ..bounds };
    let (mut beside, mut open) = (Beside::default(), [0.0; BLOCK + SLACK]);
    for block in w.chunks(BLOCK) {
        let (steps, rest) = block.as_chunks();
        let mut count = add_steps(isa, steps, bounds, &mut beside, &mut open);
        if !rest.is_empty() {
            take(&open[..count])?;
            let mut last = [0.0; STEP];
            last[..rest.len()].copy_from_slice(rest);
            count = add_steps(isa, &[last], bounds, &mut beside, &mut open);
        }
        take(&open[..count])?;
    }
    Ok(beside)
}

/// The number of weights of a block between the bounds, which are written to the beginning of `open`.
fn add_steps(
    isa: Isa,
    steps: &[[f64; STEP]],
    bounds: Bounds,
    beside: &mut Beside,
    open: &mut [f64; BLOCK + SLACK],
) -> usize {
    match isa {
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 | Isa::Gfni256 if isa.available() => x86_threshold::add_steps(steps, bounds, beside, open),
        #[cfg(has_gfni_intrinsics)]
        Isa::Gfni if isa.available() => x86_threshold_512::add_steps(steps, bounds, beside, open),
        _ => add_portable(steps, bounds, beside, open),
    }
}

fn add_portable(steps: &[[f64; STEP]], bounds: Bounds, beside: &mut Beside, open: &mut [f64]) -> usize {
    let Bounds { low, high, tie } = bounds;
    let mut count = 0;
    for step in steps {
        let mut others = 0;
        for (sum, &w) in beside.below.iter_mut().zip(step) {
            let (below, above, equal) = (w < low, w > high, w == tie && w >= low && w <= high);
            *sum += if below { w } else { 0.0 };
            beside.above += u64::from(above);
            beside.ties += u64::from(equal);
            beside.signs |= w.to_bits() | w.to_bits().wrapping_add(BEYOND);
            others += u32::from(!(below | above | equal));
        }
        if others > 0 {
            for &w in step.iter().filter(|&&w| !(w < low || w > high || w == tie)) {
                open[count] = w;
                count += 1;
            }
        }
    }
    count
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::noise::{Seed, Stream};
    use crate::simd::{cap, cap_in_place, cap_past_caches};

    /// Weights with many equal ones, zeros of either sign, and what no weight may be.
    fn weights(length: usize) -> Vec<f64> {
        let mut rng = Seed::reproducible([9; 32]).stream(Stream::Speed, length as u64);
        let kinds = [0.0, -0.0, 0.5, 0.5, 0.25, 1e-320, 1e300, f64::NAN, f64::INFINITY, -1.0];
        let mut draw = |_| match rng.below(12) {
            kind if kind < 10 && length.is_multiple_of(3) => kinds[kind as usize],
            _ => rng.below(1000) as f64 / 1000.0,
        };
        (0..length).map(&mut draw).collect()
    }

    fn lengths() -> impl Iterator<Item = usize> {
        (0..70).chain([127, 128, 129, 2047, 2048, 2049, 2080, 5000])
    }

    #[test]
    fn all_arms_agree_with_the_definition() {
        let bounds = [(0.25, 0.5), (0.4, 0.6), (1e-320, f64::INFINITY), (0.5f64.next_up(), 0.5), (2.0, 3.0)];
        for w in lengths().map(weights) {
            for (low, high) in bounds {
                for tie in [f64::NAN, 0.5, 0.7] {
                    let act = |isa| {
                        let mut open = Vec::new();
                        let beside = divide(isa, &w, Bounds { low, high, tie }, |more| {
                            open.extend(more.iter().map(|w| w.to_bits()));
                            Ok(())
                        });
                        (beside.unwrap(), open)
                    };
                    let (beside, open) = act(Isa::Portable);
                    for isa in Isa::ALL {
                        assert_eq!(act(isa), (beside.clone(), open.clone()), "{isa:?}, {}", w.len());
                    }
                    assert_eq!(beside.above(), w.iter().filter(|&&w| w > high).count() as u64);
                    let between = w.iter().filter(|&&w| !(w < low || w > high));
                    let (ties, others): (Vec<f64>, Vec<f64>) = between.partition(|&&w| w == tie);
                    assert_eq!(beside.ties(), ties.len() as u64);
                    assert_eq!(open, others.iter().map(|w| w.to_bits()).collect::<Vec<u64>>());
                    let plain = |w: &f64| w.is_finite() && w.is_sign_positive();
                    assert_eq!(beside.suspect(), !w.iter().all(plain));
                }
            }
        }
    }

    #[test]
    fn every_way_to_cap_is_the_same() {
        for w in lengths().map(weights) {
            let expected: Vec<u64> = w.iter().map(|w| (w * 1.7).min(1.0).to_bits()).collect();
            for isa in Isa::ALL {
                for write in [cap, cap_past_caches] {
                    for ahead in 0..5 {
                        let mut out = vec![7.0; w.len() + ahead];
                        write(isa, &w, 1.7, &mut out[ahead..]);
                        assert_eq!(out[ahead..].iter().map(|out| out.to_bits()).collect::<Vec<u64>>(), expected);
                    }
                }
                let mut out = w.clone();
                cap_in_place(isa, &mut out, 1.7);
                assert_eq!(out.iter().map(|out| out.to_bits()).collect::<Vec<u64>>(), expected, "{isa:?}");
            }
        }
    }
}
