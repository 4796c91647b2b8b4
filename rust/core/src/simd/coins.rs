//! Many coins at a time, a uniform byte for each: what the byte does not settle is marked.
//!
//! The bodies are plain Rust; an arm is the same body compiled for an instruction set whose vectors are longer.

/// Coins whose marks are gathered in one byte.
pub const COINS: usize = 64;

/// What becomes of a byte that does not settle its coin.
pub const UNDECIDED: u8 = 2;

dispatched! {
    /// Replaces each uniform byte by 1 if it is below `first`, by [`UNDECIDED`] if it equals it, else by 0. Of every
    /// [`COINS`] of them one byte of `marks` says whether any is undecided, by being at least that.
    toss(bytes: &mut [u8], first: u8, marks: &mut [u8]) = tossed
}

dispatched! {
    /// The same for coins whose probabilities are the positions of numbers in the range from `low` to `low + width`: a
    /// byte equals the first digits of its position times 256, or is below.
    toss_positions(bytes: &mut [u8], numbers: &[f64], low: f64, width: f64, marks: &mut [u8]) = placed
}

/// The position of a number in a range, from 0 at its low end to 1 at its high end. A number out of range counts as the
/// nearer end and NaN as the low end.
#[inline(always)]
pub fn position(number: f64, low: f64, width: f64) -> f64 {
    let position = (number - low) / width;
    if position > 0.0 { position.min(1.0) } else { 0.0 }
}

#[inline(always)]
fn tossed(bytes: &mut [u8], first: u8, marks: &mut [u8]) {
    marked(bytes, marks, |coins| {
        coins.iter_mut().fold(0, |mark, byte| {
            *byte = u8::from(*byte < first) | u8::from(*byte == first) << 1;
            mark | *byte
        })
    });
}

#[inline(always)]
fn placed(bytes: &mut [u8], numbers: &[f64], low: f64, width: f64, marks: &mut [u8]) {
    // A range of width 1 from 0 on, as that of fractions, needs no division.
    if (low, width) == (0.0, 1.0) {
        scaled(bytes, numbers, marks, |number| if number > 0.0 { number.min(1.0) } else { 0.0 });
    } else {
        scaled(bytes, numbers, marks, |number| position(number, low, width));
    }
}

#[inline(always)]
fn scaled(bytes: &mut [u8], numbers: &[f64], marks: &mut [u8], position: impl Fn(f64) -> f64) {
    let mut numbers = numbers.chunks(COINS);
    marked(bytes, marks, |coins| {
        let numbers = numbers.next().unwrap_or_default();
        coins.iter_mut().zip(numbers).fold(0, |mark, (byte, &number)| {
            let (digits, scaled) = (f64::from(*byte), position(number) * 256.0);
            *byte = u8::from(digits < scaled) + u8::from((digits < scaled) & (digits + 1.0 > scaled));
            mark | *byte
        })
    });
}

/// Calls `toss` for every [`COINS`] bytes, and keeps what it returns. The compiler knows the length of nearly all.
#[inline(always)]
fn marked(bytes: &mut [u8], marks: &mut [u8], mut toss: impl FnMut(&mut [u8]) -> u8) {
    let (whole, rest) = bytes.as_chunks_mut::<COINS>();
    let last = whole.len();
    for (coins, mark) in whole.iter_mut().zip(&mut *marks) {
        *mark = toss(coins);
    }
    if !rest.is_empty() {
        marks[last] = toss(rest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::{Seed, Stream};
    use crate::simd::Isa;

    const LENGTHS: [usize; 10] = [0, 1, 15, 63, 64, 65, 127, 128, 129, 1000];

    fn arms() -> impl Iterator<Item = Isa> {
        Isa::ALL.into_iter().filter(|isa| isa.available())
    }

    fn bytes(length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        Seed::reproducible([6; 32]).stream(Stream::Speed, length as u64).fill(&mut bytes);
        bytes
    }

    /// What a coin of probability `scaled` / 256 becomes.
    fn tossed_alone(byte: u8, scaled: f64) -> u8 {
        match f64::from(byte) {
            byte if byte + 1.0 <= scaled => 1,
            byte if byte < scaled => UNDECIDED,
            _ => 0,
        }
    }

    fn marks_agree(coins: &[u8], marks: &[u8]) {
        for (coins, mark) in coins.chunks(COINS).zip(marks) {
            assert_eq!(*mark >= UNDECIDED, coins.contains(&UNDECIDED));
        }
    }

    #[test]
    fn every_arm_tosses_as_one_by_one() {
        for (length, first) in LENGTHS.into_iter().flat_map(|length| [0, 1, 127, 128, 255].map(|first| (length, first)))
        {
            for isa in arms() {
                let (mut coins, mut marks) = (bytes(length), vec![0; length.div_ceil(COINS)]);
                toss(isa, &mut coins, first, &mut marks);
                let alone = |byte: u8| if byte == first { UNDECIDED } else { u8::from(byte < first) };
                assert_eq!(coins, bytes(length).into_iter().map(alone).collect::<Vec<u8>>(), "{isa:?}");
                marks_agree(&coins, &marks);
            }
        }
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
                for isa in arms() {
                    let (mut coins, mut marks) = (bytes(length), vec![0; length.div_ceil(COINS)]);
                    toss_positions(isa, &mut coins, &numbers, low, width, &mut marks);
                    let alone = |(byte, &number)| tossed_alone(byte, 256.0 * position(number, low, width));
                    let expected: Vec<u8> = bytes(length).into_iter().zip(&numbers).map(alone).collect();
                    assert_eq!(coins, expected, "{isa:?} {low} {width}");
                    marks_agree(&coins, &marks);
                }
            }
        }
    }
}
