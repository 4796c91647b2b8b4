//! The logarithm of one more than a number in plain Rust, which the compiler computes for several numbers at a time.
//!
//! That of a system differs from machine to machine in its last digits, and keeps loops from becoming vectors.
//!
//! ```text
//! t = x, or (x - 1) / 2 if x > sqrt 2 - 1          1 + x = 2 (1 + t) in the second case
//! z = t / (2 + t);  ln(1 + t) = 2 artanh z = 2 (z + z^3 / 3 + z^5 / 5 + ...), in pairs of pairs
//! ln(1 + x) = that, plus ln 2 in the second case
//! ```

/// 2 / (2 k + 1) for k from 1 on.
const SERIES: [f64; 10] = {
    let (mut terms, mut k) = ([0.0; 10], 0);
    while k < 10 {
        terms[k] = 2.0 / (2 * k + 3) as f64;
        k += 1;
    }
    terms
};

/// From here on half of 1 + x is nearer to 1.
const MIDDLE: f64 = 0.414_213_562_373_095_05;

/// ln(1 + x) for x from 0 to 1, with a relative error of at most 5e-16, and no number for what is none. It is the same on
/// every machine.
#[inline(always)]
pub fn ln_1p(x: f64) -> f64 {
    let above = x > MIDDLE;
    // ln(1 + x) is ln 2 + ln(1 + t) for the second of these.
    let t = if above { (x - 1.0) * 0.5 } else { x };
    let z = t / (2.0 + t);
    // ln(1 + t) is 2 artanh z. |z| <= 0.172, so that what the series leaves out is below 1e-17 of it.
    let square = z * z;
    let pair = |k: usize| SERIES[k] + SERIES[k + 1] * square;
    let fourth = square * square;
    let four = |k: usize| pair(k) + pair(k + 2) * fourth;
    let eighth = fourth * fourth;
    let sum = 2.0 * z + z * square * (four(0) + (four(4) + pair(8) * eighth) * eighth);
    sum + if above { std::f64::consts::LN_2 } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_logarithm_to_a_few_roundings() {
        let mut worst: f64 = 0.0;
        for step in 1..=1_000_000 {
            for x in [f64::from(step) / 1e6, f64::from(step) / 1e13, (f64::from(step) / -2e3).exp()] {
                worst = worst.max((ln_1p(x) / x.ln_1p() - 1.0).abs());
            }
        }
        assert!(worst < 5e-16, "{worst}");
        assert_eq!([ln_1p(0.0), ln_1p(1.0)], [0.0, std::f64::consts::LN_2]);
        assert!(ln_1p(f64::NAN).is_nan());
    }
}
