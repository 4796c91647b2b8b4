//! 2^x for fixed-point x <= 0, strictly increasing in x: rounding must never let the weights of neighbors cross.

use crate::noise::{high, upper_half};

/// Binary digits of x after the point.
pub const POINT: u32 = 48;

/// Digits that a table looks up.
const GROUP: u32 = 10;

/// ln 2 in units of 2^-128.
const LN_2: u128 = 0xB172_17F7_D1CF_79AB_C9E3_B398_03F2_F6AF;

/// In units of 2^-126.
const ONE: u128 = 1 << 126;

/// 2^(i / 2^10) and 2^(i / 2^20) in units of 2^-62, rounded down. Made by the compiler, as a table filled at first use
/// could be waited for for ever by a child that was forked meanwhile.
static COARSE: [u64; 1 << GROUP] = powers(GROUP);
static FINE: [u64; 1 << GROUP] = powers(2 * GROUP);

const fn powers(digits: u32) -> [u64; 1 << GROUP] {
    let root = exp(LN_2 >> (digits + 2));
    let (mut power, mut words, mut i) = (ONE, [1 << 62; 1 << GROUP], 1);
    while i < words.len() {
        power = upper_half(power, root) << 2;
        words[i] = (power >> 64) as u64;
        i += 1;
    }
    words
}

/// exp(x) by its series, for a small x.
const fn exp(x: u128) -> u128 {
    let (mut term, mut sum, mut n) = (ONE, 0, 0);
    while term > 0 {
        sum += term;
        n += 1;
        term = (upper_half(term, x) << 2) / n;
    }
    sum
}

/// 2^(fraction / 2^48) in units of 2^-62, for a fraction below 2^48; less than 2^63.
///
/// Two entries and four products, each rounded down, leave it less than 16 units too low, while each step of the fraction
/// raises it by 2^13: it increases strictly.
#[inline]
pub fn mantissa(fraction: u64) -> u64 {
    let entry = |shift: u32| (fraction >> shift) as usize & ((1 << GROUP) - 1);
    let product = u128::from(COARSE[entry(POINT - GROUP)]) * u128::from(FINE[entry(POINT - 2 * GROUP)]);
    let base = (product >> 62) as u64;
    // The rest is below 2^-20: 2^rest - 1 = z + z^2 / 2 up to 2^-64, in units of 2^-64.
    let rest = (fraction & ((1 << (POINT - 2 * GROUP)) - 1)) << (64 - POINT);
    let z = high(rest, (LN_2 >> 64) as u64);
    base + high(base, z + high(z, z) / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNIT: f64 = (1u64 << POINT) as f64;

    #[test]
    fn mantissas_are_powers_of_two() {
        for i in 0..100_000u64 {
            let fraction = (i * 2_814_749_767 + i * i) % (1 << POINT);
            let exact = (fraction as f64 / UNIT).exp2() * (1u64 << 62) as f64;
            assert!((mantissa(fraction) as f64 - exact).abs() <= exact * 4.0 * f64::EPSILON, "{fraction}");
        }
        assert_eq!(mantissa(0), 1 << 62);
        // The square root of two to 62 digits.
        let root = mantissa(1 << (POINT - 1));
        let square = u128::from(root) * u128::from(root);
        assert!(square <= 2 << 124 && (2 << 124) - square < u128::from(root) * 40, "{root}");
    }

    #[test]
    fn mantissas_increase_with_every_step() {
        let starts = [0, 1 << 27, (1 << 28) - 50, (1 << 38) - 50, 3 << 38, (1 << POINT) - 101];
        for start in starts {
            let values: Vec<u64> = (start..start + 100).map(mantissa).collect();
            assert!(values.windows(2).all(|pair| pair[0] + (1 << 12) < pair[1]), "from {start}");
        }
        assert!(mantissa((1 << POINT) - 1) < 1 << 63);
    }
}
