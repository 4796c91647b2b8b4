//! Many coins at a time, a uniform byte for each: what a byte does not settle is marked, a bit for each coin.
//!
//! A coin is tossed by comparing the digits of a uniform number with those of its probability. The first eight digits
//! differ for 255 coins in 256, so that a byte for each is enough, and the marked ones get their next digits one by
//! one, elsewhere. Positions are compared by plain Rust, of which each arm is compiled for longer vectors. Bits have
//! arms of their own, since comparisons of bytes give the marks of many coins in one instruction.
//!
//! ```text
//! keep_or_flip, for each 64 bits:          the same probability for all, whose first digits are `first`
//!     answer = bit ^ (byte >= first)
//!     open   = byte = first, a bit each
//! toss_positions, for each 64 numbers:     a probability for each, p = clamp((number - low) / width, 0, 1)
//!     coin   = byte + 1 <= 256 p
//!     open   = byte < 256 p < byte + 1, a bit each
//! ```

use super::Isa;
#[cfg(target_arch = "x86_64")]
use super::x86_coins;

/// Coins whose marks are gathered in one word.
pub const COINS: usize = 64;

/// Replaces each uniform byte by its bit if the byte is below `first`, else by the other bit; and marks in `open` each
/// byte that equals `first`, the i-th of every [`COINS`] by bit i. Returns false if any of the bits is neither 0 nor 1:
/// then what the bytes are replaced by means nothing.
///
/// There are as many bits as bytes, and a word of `open` for every [`COINS`] of them.
pub fn keep_or_flip(isa: Isa, bytes: &mut [u8], bits: &[u8], first: u8, open: &mut [u64]) -> bool {
    assert!(bytes.len() == bits.len() && open.len() == bytes.len().div_ceil(COINS));
    let ((whole, rest), (bits, bits_of_rest)) = (bytes.as_chunks_mut(), bits.as_chunks());
    let (open, open_of_rest) = open.split_at_mut(whole.len());
    let seen = match isa {
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 | Isa::Gfni256 if isa.available() => x86_coins::flip_avx2(whole, bits, first, open),
        #[cfg(has_gfni_intrinsics)]
        Isa::Gfni if isa.available() => x86_coins::flip_avx512(whole, bits, first, open),
        _ => flip_portably(whole, bits, first, open),
    };
    let seen_in_rest = match open_of_rest.first_mut() {
        Some(open) => flipped(rest, bits_of_rest, first, open),
        None => 0,
    };
    seen | seen_in_rest <= 1
}

fn flip_portably(bytes: &mut [[u8; COINS]], bits: &[[u8; COINS]], first: u8, open: &mut [u64]) -> u8 {
    let parts = bytes.iter_mut().zip(bits).zip(open);
    parts.fold(0, |seen, ((bytes, bits), open)| seen | flipped(bytes, bits, first, open))
}

/// Returns the disjunction of the bits.
#[inline(always)]
fn flipped(bytes: &mut [u8], bits: &[u8], first: u8, open: &mut u64) -> u8 {
    let (mut ties, mut seen) = ([0; COINS], 0);
    for ((byte, &bit), tie) in bytes.iter_mut().zip(bits).zip(&mut ties) {
        *tie = u8::from(*byte == first);
        *byte = bit ^ u8::from(*byte >= first);
        seen |= bit;
    }
    *open = gathered(&ties);
    seen
}

dispatched! {
    /// Replaces uniform bytes by coins whose probabilities are the positions of numbers in the range from `low` to `low +
    /// width`: by 1 if the byte is below the first digits of its position times 256, else by 0. Marks bytes that equal
    /// those digits as [`keep_or_flip`] does, unless nothing follows the digits.
    toss_positions(bytes: &mut [u8], numbers: &[f64], low: f64, width: f64, open: &mut [u64]) = placed
}

/// The position of a number in a range, from 0 at its low end to 1 at its high end. A number out of range counts as the
/// nearer end and NaN as the low end.
#[inline(always)]
pub fn position(number: f64, low: f64, width: f64) -> f64 {
    clamped((number - low) / width)
}

/// The nearest number in \[0, 1\], and 0 for NaN: by an instruction for each end.
#[inline(always)]
pub(super) fn clamped(number: f64) -> f64 {
    let number = if number > 0.0 { number } else { 0.0 };
    if number < 1.0 { number } else { 1.0 }
}

#[inline(always)]
fn placed(bytes: &mut [u8], numbers: &[f64], low: f64, width: f64, open: &mut [u64]) {
    // A range of width 1 from 0 on, as that of fractions, needs no division.
    if (low, width) == (0.0, 1.0) {
        scaled(bytes, numbers, open, clamped);
    } else {
        scaled(bytes, numbers, open, |number| position(number, low, width));
    }
}

#[inline(always)]
fn scaled(bytes: &mut [u8], numbers: &[f64], open: &mut [u64], position: impl Fn(f64) -> f64) {
    let (whole, rest) = bytes.as_chunks_mut::<COINS>();
    let (numbers, numbers_of_rest) = numbers.as_chunks::<COINS>();
    let (open, open_of_rest) = open.split_at_mut(whole.len());
    // The compiler knows the length of nearly all.
    for ((bytes, numbers), open) in whole.iter_mut().zip(numbers).zip(open) {
        *open = compared(bytes, numbers, &position);
    }
    if let Some(open) = open_of_rest.first_mut() {
        *open = compared(rest, numbers_of_rest, &position);
    }
}

#[inline(always)]
fn compared(bytes: &mut [u8], numbers: &[f64], position: impl Fn(f64) -> f64) -> u64 {
    let mut ties = [0; COINS];
    for ((byte, &number), tie) in bytes.iter_mut().zip(numbers).zip(&mut ties) {
        let (digits, scaled) = (f64::from(*byte), position(number) * 256.0);
        let (started, over) = (u8::from(digits < scaled), u8::from(digits + 1.0 > scaled));
        *byte = started & (over ^ 1);
        *tie = started & over;
    }
    gathered(&ties)
}

/// A bit for every byte that is 1; all others are 0.
#[inline(always)]
fn gathered(ties: &[u8; COINS]) -> u64 {
    if ties.iter().fold(0, |any, tie| any | tie) == 0 {
        return 0;
    }
    let (words, _) = ties.as_chunks::<8>();
    // The multiplication gathers the lowest bits of eight bytes in the top byte.
    let gather = |&word| u64::from_le_bytes(word).wrapping_mul(0x0102_0408_1020_4080) >> 56;
    words.iter().map(gather).enumerate().fold(0, |marks, (i, byte)| marks | byte << (8 * i))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::{Seed, Stream};

    const LENGTHS: [usize; 11] = [0, 1, 15, 63, 64, 65, 127, 128, 129, 192, 1000];

    fn arms() -> impl Iterator<Item = Isa> {
        Isa::ALL.into_iter().filter(|isa| isa.available())
    }

    fn bytes(length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        Seed::reproducible([6; 32]).stream(Stream::Speed, length as u64).fill(&mut bytes);
        bytes
    }

    /// The coins and marks that a function makes one by one.
    fn alone(length: usize, mut one: impl FnMut(usize, u8) -> (u8, bool)) -> (Vec<u8>, Vec<u64>) {
        let (coins, ties): (Vec<u8>, Vec<bool>) =
            bytes(length).into_iter().enumerate().map(|(i, byte)| one(i, byte)).unzip();
        let marks =
            ties.chunks(COINS).map(|ties| (0..).zip(ties).fold(0, |marks, (i, &tie)| marks | u64::from(tie) << i));
        (coins, marks.collect())
    }

    #[test]
    fn every_arm_keeps_and_flips_as_one_by_one() {
        for (length, first) in LENGTHS.into_iter().flat_map(|length| [0, 1, 127, 128, 255].map(|first| (length, first)))
        {
            let bits: Vec<u8> = bytes(length + 1)[1..].iter().map(|byte| byte & 1).collect();
            let expected = alone(length, |i, byte| (bits[i] ^ u8::from(byte >= first), byte == first));
            for isa in arms() {
                let (mut coins, mut open) = (bytes(length), vec![7; length.div_ceil(COINS)]);
                assert!(keep_or_flip(isa, &mut coins, &bits, first, &mut open));
                assert_eq!((coins, open), expected, "{isa:?} {length} {first}");
            }
        }
    }

    #[test]
    fn every_arm_sees_what_is_no_bit() {
        for (length, wrong) in LENGTHS.into_iter().skip(1).flat_map(|length| [2, 128, 255].map(|wrong| (length, wrong)))
        {
            for (isa, place) in arms().flat_map(|isa| [0, length / 2, length - 1].map(|place| (isa, place))) {
                let mut bits = vec![1; length];
                bits[place] = wrong;
                let (mut coins, mut open) = (bytes(length), vec![0; length.div_ceil(COINS)]);
                assert!(!keep_or_flip(isa, &mut coins, &bits, 100, &mut open), "{isa:?} {length} {place}");
            }
        }
    }

    /// A byte of a coin of probability `scaled` / 256.
    fn tossed(byte: u8, scaled: f64) -> (u8, bool) {
        let byte = f64::from(byte);
        (u8::from(byte + 1.0 <= scaled), byte < scaled && byte + 1.0 > scaled)
    }

    #[test]
    fn every_arm_tosses_positions_as_one_by_one() {
        for (low, width) in [(0.0, 1.0), (-3.0, 8.0), (0.1, 1e-3)] {
            for length in LENGTHS {
                let mut rng = Seed::reproducible([7; 32]).stream(Stream::Speed, length as u64);
                let ends = [f64::NAN, f64::INFINITY, -f64::INFINITY, -0.0, low, low + width, 5e-324, -1.0, 1e9];
                let number = |i: usize| match ends.get(i % 40) {
                    Some(&end) => end,
                    None => low + width * (rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64,
                };
                let numbers: Vec<f64> = (0..length).map(number).collect();
                let expected = alone(length, |i, byte| tossed(byte, 256.0 * position(numbers[i], low, width)));
                for isa in arms() {
                    let (mut coins, mut open) = (bytes(length), vec![7; length.div_ceil(COINS)]);
                    toss_positions(isa, &mut coins, &numbers, low, width, &mut open);
                    assert_eq!((coins, open), expected.clone(), "{isa:?} {low} {width}");
                }
            }
        }
    }
}
