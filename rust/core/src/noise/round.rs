//! Numbers rounded at random to an integer next to them, with exactly the number as the mean.

use super::bernoulli::{TWO_64, fill_coins};
use super::rng::Rng;
use crate::simd::{Isa, position, toss_positions};

/// Fills `bits` with one bit for each number, 1 with probability exactly its position in the range from `low` to `low +
/// width`. Nearly always takes one byte of the stream for each.
///
/// A float is a finite binary number: it stays exact when it is multiplied by a power of two and its integer part is
/// taken away.
pub fn round(numbers: &[f64], (low, width): (f64, f64), bits: &mut [u8], isa: Isa, rng: &mut Rng) {
    let toss = |start, bytes: &mut [u8], open: &mut [u64]| {
        toss_positions(isa, bytes, &numbers[start..][..bytes.len()], low, width, open);
    };
    let digits = |i: usize| position(numbers[i], low, width) * 256.0;
    fill_coins(bits, rng, toss, |i, rng| below(digits(i).fract(), || rng.next_u64()));
}

/// Rounds a position in [0, 1] at random to one of the two points next to it of a grid of 2^log2_steps steps, at most 2^60,
/// so that the mean is exactly the position. The word nearly always decides.
#[inline]
pub fn rounded_position(position: f64, log2_steps: u32, word: u64, rng: &mut Rng) -> u64 {
    // The first 62 digits, of which the grid point has some; drawn ones are compared with the others.
    let (digits, others) = ((position * (1u64 << 62) as f64) as i64 as u64, 62 - log2_steps);
    let (rest, drawn) = (digits & ((1 << others) - 1), word >> (64 - others));
    let up = if rest == drawn { is_above(position, log2_steps, word, rng) } else { drawn < rest };
    (digits >> others) + u64::from(up)
}

/// Decides by all digits of what is between the position and the grid point below.
#[cold]
#[inline(never)]
fn is_above(position: f64, log2_steps: u32, word: u64, rng: &mut Rng) -> bool {
    let mut first = Some(word);
    let rest = (position * (1u64 << log2_steps) as f64).fract();
    below(rest, || first.take().unwrap_or_else(|| rng.next_u64()))
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
    use super::super::rng::{Seed, Stream};
    use super::{below, rounded_position};

    /// One comparison of all digits, for positions with few and with many of them.
    #[test]
    fn positions_are_rounded_as_all_their_digits_say() {
        let stream = |index| Seed::reproducible([8; 32]).stream(Stream::Speed, index);
        for index in 0..20_000u64 {
            let log2_steps = (index % 61) as u32;
            let uniform = (stream(index).next_u64() >> 11) as f64 * 2f64.powi(-53);
            let position = match index % 7 {
                0 => 0.0,
                1 => 1.0,
                2 => uniform * 2f64.powi(-50),
                // Its digits are those of the word that is drawn: a tie.
                3 => uniform * 2f64.powi(-(log2_steps as i32)),
                _ => uniform,
            };
            let number = position * (1u64 << log2_steps) as f64;
            let (mut one, mut other) = (stream(index), stream(index));
            let expected = number as u64 + u64::from(number.fract() > 0.0 && below(number.fract(), || one.next_u64()));
            let word = other.next_u64();
            assert_eq!(rounded_position(position, log2_steps, word, &mut other), expected, "{position} {log2_steps}");
        }
    }

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
