//! The exponential function in plain Rust, which the compiler computes for several numbers at a time.
//!
//! That of a system differs from machine to machine in its last digits, is a call for each number, and keeps loops from
//! becoming vectors. This one has no branch, and no operation that an instruction set lacks.
//!
//! ```text
//! whole = x / ln 2, rounded;  rest = x - whole ln 2, in two parts       |rest| <= ln 2 / 2
//! sum   = 1 + rest + ... + rest^13 / 13!, in pairs of pairs
//! e^x   = sum 2^whole, the power by the bits of its exponent
//! ```

/// Adding this to a number of moderate size leaves the nearest integer in the low bits.
const ROUNDER: f64 = (3u64 << 51) as f64;

/// ln 2 in two parts, the first of so few bits that its multiples are exact.
const LN_2: [f64; 2] = [f64::from_bits(0x3fe6_2e42_fee0_0000), 1.908_214_929_270_587_7e-10];

/// Between these the result is a normal number; beyond them it is 0 and infinite.
const LOW: f64 = -709.0;
const HIGH: f64 = 710.0;

/// 1 / k! for k up to 13.
const TAYLOR: [f64; 14] = {
    let (mut terms, mut factorial, mut k) = ([1.0; 14], 1.0, 1);
    while k < 14 {
        factorial *= k as f64;
        terms[k] = 1.0 / factorial;
        k += 1;
    }
    terms
};

/// e^x, with a relative error of at most 5e-16 for x from -708 to 709; 0 below -709, infinite from 709.5 on, and no number
/// for what is none. It is the same on every machine.
#[inline(always)]
pub fn exp(x: f64) -> f64 {
    // Comparisons that leave what is no number as it is.
    let x = if x < LOW { LOW } else { x };
    let x = if x > HIGH { HIGH } else { x };
    let shifted = x * std::f64::consts::LOG2_E + ROUNDER;
    let whole = shifted - ROUNDER;
    let rest = x - whole * LN_2[0] - whole * LN_2[1];
    // |rest| <= ln 2 / 2, so that what the series leaves out is below 5e-18.
    // Terms are paired, so that a processor need not wait for one after the other.
    let pair = |k: usize| TAYLOR[k] + TAYLOR[k + 1] * rest;
    let square = rest * rest;
    let four = |k: usize| pair(k) + pair(k + 2) * square;
    let fourth = square * square;
    let high = four(8) + pair(12) * fourth;
    let sum = (four(0) + four(4) * fourth) + high * (fourth * fourth);
    // The low bits of `shifted` are those of the exponent; those above are shifted out.
    sum * f64::from_bits(shifted.to_bits().wrapping_add(1023) << 52)
}

dispatched! {
    /// Replaces every number by its exponential, by [`exp`].
    exponentials(values: &mut [f64]) = replace
}

#[inline(always)]
fn replace(values: &mut [f64]) {
    for value in values {
        *value = exp(*value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::Isa;

    #[test]
    fn every_arm_computes_the_same() {
        for length in [0, 1, 7, 8, 9, 63, 64, 65] {
            let given: Vec<f64> = (0..length).map(|i| f64::from(i * i) / 7.0 - 720.0).collect();
            let expected: Vec<u64> = given.iter().map(|&x| exp(x).to_bits()).collect();
            for isa in Isa::ALL.into_iter().filter(|isa| isa.available()) {
                let mut values = given.clone();
                exponentials(isa, &mut values);
                assert_eq!(values.into_iter().map(f64::to_bits).collect::<Vec<_>>(), expected, "{isa:?}");
            }
        }
    }

    #[test]
    fn it_is_the_exponential_function_to_a_few_roundings() {
        let mut worst: f64 = 0.0;
        for step in -708_000_i32..=709_000 {
            let x = f64::from(step) / 1000.0 + 1e-5;
            worst = worst.max((exp(x) / x.exp() - 1.0).abs());
        }
        assert!(worst < 5e-16, "{worst}");
    }

    #[test]
    fn it_is_right_at_the_ends() {
        assert_eq!([exp(0.0), exp(-0.0)], [1.0; 2]);
        assert_eq!([exp(-709.5), exp(-1e300), exp(f64::NEG_INFINITY)], [0.0; 3]);
        assert_eq!([exp(710.0), exp(1e300), exp(f64::INFINITY)], [f64::INFINITY; 3]);
        assert!(exp(f64::NAN).is_nan());
    }
}
