//! Losses of records, taken from the logarithms of their weights.
//!
//! Weights are integers and losses floats, of which not every arm has a conversion: a float of about 2^52 has the
//! nearest integer in its lowest bits. Losses are checked by a loop of their own, since another thread may change them
//! after it: what is taken is bounded whatever they are.
//!
//! ```text
//! outside |= not 0 <= loss <= 1
//! log -= round((1 - clamp(loss, 0, 1)) step), or step unless the loss is the bit 1
//! ```

/// Adding this leaves the nearest integer in the lowest bits of a float.
const SHIFTER: f64 = (1u64 << 52) as f64;

dispatched! {
    /// Sets `outside` to 1 if a loss lies outside \[0, 1\] or is NaN.
    find_outside(losses: &[f64], outside: &mut u64) = outside_found
}

dispatched! {
    /// Takes (1 - loss) `step`, rounded, from each logarithm. A loss outside \[0, 1\] counts as the nearest one inside,
    /// and NaN as 0. `step` lies between 0 and 2^51.
    take_losses(logs: &mut [i64], losses: &[f64], step: i64) = losses_taken
}

dispatched! {
    /// The same for losses of which the lowest bits count.
    take_bits(logs: &mut [i64], losses: &[u8], step: i64) = bits_taken
}

#[inline(always)]
fn outside_found(losses: &[f64], outside: &mut u64) {
    *outside |= losses.iter().fold(0, |outside, &loss| outside | u64::from(!(0.0..=1.0).contains(&loss)));
}

#[inline(always)]
fn losses_taken(logs: &mut [i64], losses: &[f64], step: i64) {
    let step = step as f64;
    for (log, &loss) in logs.iter_mut().zip(losses) {
        // An instruction each, which gives its second operand for NaN; a clamp would keep it.
        let loss = if loss > 0.0 { loss } else { 0.0 };
        let loss = if loss < 1.0 { loss } else { 1.0 };
        let taken = ((1.0 - loss) * step + SHIFTER).to_bits().wrapping_sub(SHIFTER.to_bits());
        *log = log.wrapping_sub(taken as i64);
    }
}

#[inline(always)]
fn bits_taken(logs: &mut [i64], losses: &[u8], step: i64) {
    for (log, &loss) in logs.iter_mut().zip(losses) {
        *log = log.wrapping_sub(step & i64::from(loss & 1).wrapping_sub(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::{Seed, Stream};
    use crate::simd::Isa;

    #[test]
    fn all_arms_agree_with_the_definition() {
        let mut rng = Seed::reproducible([10; 32]).stream(Stream::Speed, 0);
        for length in (0..70).chain([127, 128, 129, 1000]) {
            let mut losses: Vec<f64> = (0..length).map(|_| rng.below(1001) as f64 / 1000.0).collect();
            let bits: Vec<u8> = (0..length).map(|_| rng.below(256) as u8).collect();
            let logs: Vec<i64> = (0..length).map(|_| -(rng.below(1 << 60) as i64)).collect();
            for wrong in [0.5, -1e-300, f64::NAN, f64::INFINITY, 1.0 + f64::EPSILON, -0.0] {
                losses.iter_mut().skip(length / 2).take(1).for_each(|loss| *loss = wrong);
                let act = |isa| {
                    let (mut outside, mut first, mut second) = (0, logs.clone(), logs.clone());
                    find_outside(isa, &losses, &mut outside);
                    take_losses(isa, &mut first, &losses, 123_456_789_012);
                    take_bits(isa, &mut second, &bits, 123_456_789_012);
                    (outside, first, second)
                };
                let expected = act(Isa::Portable);
                assert_eq!(expected.0, u64::from(!losses.iter().all(|loss| (0.0..=1.0).contains(loss))));
                assert!(Isa::ALL.into_iter().all(|isa| act(isa) == expected), "{length}, {wrong}");
            }
        }
    }
}
