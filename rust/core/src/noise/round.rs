//! Numbers rounded at random to an integer next to them, with exactly the number as the mean.

use super::bernoulli::TWO_64;
use super::rng::Rng;

/// Fills `bits` with one bit for each number, 1 with probability exactly its position in [0, 1]. Nearly always takes
/// one byte of the stream for each.
///
/// A float is a finite binary number: it stays exact when it is multiplied by a power of two and its integer part is
/// taken away.
pub fn round(numbers: &[f64], position: impl Fn(f64) -> f64, bits: &mut [u8], rng: &mut Rng) {
    rng.fill(bits);
    // Bytes at the position's own first digits become 2, so that the pass over all needs no branch.
    for (bit, &number) in bits.iter_mut().zip(numbers) {
        let (digits, scaled) = (f64::from(*bit), position(number) * 256.0);
        *bit = u8::from(digits < scaled) + u8::from((digits < scaled) & (digits + 1.0 > scaled));
    }
    // One word in 32 holds such a byte.
    let undecided = |bytes: &[u8]| bytes.iter().fold(0, |any, byte| any | byte) >= 2;
    for (bits, numbers) in bits.chunks_mut(8).zip(numbers.chunks(8)).filter(|(bits, _)| undecided(bits)) {
        for (bit, &number) in bits.iter_mut().zip(numbers).filter(|(bit, _)| **bit == 2) {
            *bit = u8::from(below((position(number) * 256.0).fract(), || rng.next_u64()));
        }
    }
}

/// Rounds a number in [0, 2^63) at random to one of its integer neighbors, so that the mean is exactly the number.
#[inline]
pub fn rounded_number(number: f64, rng: &mut Rng) -> u64 {
    number as u64 + u64::from(below(number.fract(), || rng.next_u64()))
}

/// Whether a uniform number in [0, 1), drawn 64 binary digits at a time, lies below `number` in [0, 1).
fn below(mut number: f64, mut word: impl FnMut() -> u64) -> bool {
    while number > 0.0 {
        let scaled = number * TWO_64;
        let (drawn, digits) = (word(), scaled as u64);
        if drawn != digits {
            return drawn < digits;
        }
        number = scaled.fract();
    }
    false
}

#[cfg(test)]
mod tests {
    use super::below;

    /// Digits of a number, and what is drawn: the first difference decides, and a number without more digits is not
    /// exceeded.
    #[test]
    fn digits_decide_one_after_another() {
        let number = 2f64.powi(-3) + 2f64.powi(-54);
        let first = (1 << 61) | (1 << 10);
        let long = 2f64.powi(-65) + 2f64.powi(-117);
        for (number, words, expected) in [
            (number, [first - 1, 0, 0], true),
            (number, [first + 1, 0, 0], false),
            (number, [first, 0, 0], false),
            (long, [1, 0, 0], false),
            (long, [0, (1 << 63) - 1, 0], true),
            (long, [0, 1 << 63, 0], true),
            (long, [0, (1 << 63) | (1 << 11), 0], false),
            (2f64.powi(-1074), [0, 0, 0], true),
            (0.0, [0, 0, 0], false),
        ] {
            let mut drawn = words.into_iter().chain(std::iter::repeat(0));
            assert_eq!(below(number, || drawn.next().unwrap_or(0)), expected, "{number:e}, {words:?}");
        }
    }
}
