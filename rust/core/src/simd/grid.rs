//! Numbers rounded to a grid, at random or to the nearest point, and integers proposed at random inside of blocks.
//!
//! What is random is decided by comparing a uniform number with a probability, whose digits beyond the first word are needed
//! hardly ever. The bodies compare one word, with room for their own roundings, and have no exact way out: what they do
//! not settle, they say, and what they have written for it means nothing. They are plain Rust; an arm is the same body
//! compiled for an instruction set whose vectors are longer. Conversions between integers and floats go by the bits of
//! a float of about 2^52, since not every arm has others.
//!
//! ```text
//! round_to_grid:  x = steps clamp((number - low) / width, 0, 1);  whole = floor(x)
//!                 out = whole + (u < x - whole), for 52 digits of a uniform u; settled unless these digits tie
//! nearest_points: out = x rounded to the nearest integer, the even one of two; the range is halved first, where its ends
//!                 are large, so that their difference is finite
//! propose:        x = the place in the block that the word begins with, mirrored if the outcome is odd
//!                 accepted if what is left of the word lies below 1 - gamma <= exp(-gamma),
//!                 gamma = (x^2 - start^2) half_precision, with its roundings
//! ```

use super::coins::{clamped, position};

/// Numbers of which one mark says whether all are settled.
pub const ROUNDED: usize = 64;

/// log2 of the number of steps of the finest grid.
pub const MOST_STEPS: u32 = 50;

/// log2 of the size of the largest block.
pub const LARGEST_BLOCK: u32 = 38;

/// Adding this leaves the nearest integer in the lowest bits of a float.
const SHIFTER: f64 = (1u64 << 52) as f64;

/// What a float loses when it is multiplied twice and its error is added, as a part of itself: more than four roundings.
const ROUNDING: f64 = 1.0 / (1u64 << 50) as f64;

dispatched! {
    /// Writes one of the points 0, 1, ..., `steps` next to the position of each number in the range from an end on,
    /// of a width: the one above with the distance from the one below as the probability, as its word decides. `steps` is a
    /// power of two of at most 2^[`MOST_STEPS`]. Of every [`ROUNDED`] numbers one of `settled` says whether words settle
    /// them.
    round_to_grid(numbers: &[f64], range: (f64, f64), steps: f64, words: &[u64], out: &mut [i64], settled: &mut [bool])
        = rounded
}

dispatched! {
    /// Writes the nearest of the points 0, 1, ..., `steps` of an even grid between two ends, the first below the second,
    /// for each number; an even point where two are as near, the first where it is NaN, and the nearer end beyond them.
    /// `steps` is an integer below 2^52.
    nearest_points(numbers: &[f64], ends: (f64, f64), steps: f64, out: &mut [i64]) = nearest
}

dispatched! {
    /// Adds integers to others, saturating.
    add_saturating(sums: &mut [i64], more: &[i64]) = added
}

dispatched! {
    /// Writes an integer in the block of each outcome at the uniform place that its word begins with, and whether the rest
    /// of the word certainly lies below exp(-(x^2 - start^2) `half_precision`). Outcome 2 h means the block of 2^`size`
    /// integers x from 2^`size` h on, and 2 h + 1 that of all -1 - x. `size` is from 1 to [`LARGEST_BLOCK`].
    propose(outcomes: &[u64], words: &[u64], size: u32, half_precision: f64, out: &mut [i64], accepted: &mut [bool])
        = proposed
}

#[inline(always)]
fn rounded(
    numbers: &[f64],
    (low, width): (f64, f64),
    steps: f64,
    words: &[u64],
    out: &mut [i64],
    settled: &mut [bool],
) {
    // A range of width 1 from 0 on needs no division.
    if (low, width) == (0.0, 1.0) {
        rounded_by(numbers, words, out, settled, |number| clamped(number) * steps);
    } else {
        rounded_by(numbers, words, out, settled, |number| position(number, low, width) * steps);
    }
}

#[inline(always)]
fn rounded_by(numbers: &[f64], words: &[u64], out: &mut [i64], settled: &mut [bool], scaled: impl Fn(f64) -> f64) {
    let parts = numbers.chunks(ROUNDED).zip(words.chunks(ROUNDED)).zip(out.chunks_mut(ROUNDED));
    for (((numbers, words), out), settled) in parts.zip(settled) {
        let mut open = 0;
        for ((&number, &word), out) in numbers.iter().zip(words).zip(out) {
            let scaled = scaled(number);
            let nearest = (scaled + SHIFTER) - SHIFTER;
            let whole = nearest - if nearest > scaled { 1.0 } else { 0.0 };
            // The first 52 digits of a uniform number, and the next number of so many digits.
            let drawn = f64::from_bits(1f64.to_bits() | word >> 12) - 1.0;
            let (rest, next) = (scaled - whole, drawn + 1.0 / SHIFTER);
            open |= u64::from((drawn < rest) & (rest < next));
            *out = ((whole + SHIFTER).to_bits().wrapping_sub(SHIFTER.to_bits()) as i64)
                .wrapping_add(i64::from(next <= rest));
        }
        *settled = open == 0;
    }
}

#[inline(always)]
fn nearest(numbers: &[f64], (low, high): (f64, f64), steps: f64, out: &mut [i64]) {
    // Halves of large ends do not overflow; of small ones, being subnormal, they would be equal.
    let part = if low.abs().max(high.abs()) < 1.0 { 1.0 } else { 0.5 };
    let start = low * part;
    let width = high * part - start;
    for (&number, out) in numbers.iter().zip(out) {
        // NaN is not above the lower end, and counts as it.
        let number = if number > low { number } else { low };
        let number = if number < high { number } else { high };
        let scaled = (number * part - start) / width * steps;
        *out = (scaled + SHIFTER).to_bits().wrapping_sub(SHIFTER.to_bits()) as i64;
    }
}

#[inline(always)]
fn added(sums: &mut [i64], more: &[i64]) {
    sums.iter_mut().zip(more).for_each(|(sum, &more)| *sum = sum.saturating_add(more));
}

/// log2 of the outcomes that are looked at; the place of others may be out of range.
const MOST_OUTCOMES: u32 = 12;

#[inline(always)]
fn proposed(outcomes: &[u64], words: &[u64], size: u32, half_precision: f64, out: &mut [i64], accepted: &mut [bool]) {
    let all = 1u64.wrapping_shl(size).wrapping_sub(1);
    let inputs = outcomes.iter().zip(words);
    for ((&outcome, &word), (out, accepted)) in inputs.zip(out.iter_mut().zip(accepted)) {
        let (start, negative) = ((outcome >> 1).wrapping_shl(size), outcome & 1);
        let rest = word.wrapping_shr(64 - size);
        *out = (start.wrapping_add(rest) ^ negative.wrapping_neg()) as i64;
        let over = rest.wrapping_add(negative);
        let gamma = to_float(over) * to_float(over.wrapping_add(start).wrapping_add(start)) * half_precision;
        // exp(-x) lies above 1 - x; there is room for the roundings of x and of 1 - x, each below half a unit of 2^-52.
        let most = (word.wrapping_shl(size) | all) >> 12;
        let line = (1.0 - (gamma + gamma * ROUNDING)) * SHIFTER;
        *accepted = (to_float(most.wrapping_add(8)) < line) & (outcome >> MOST_OUTCOMES == 0);
    }
}

/// An integer below 2^52 as a float; of a larger one a number that is no smaller than 2^52, or anything from 2^53 on.
#[inline(always)]
fn to_float(integer: u64) -> f64 {
    f64::from_bits(SHIFTER.to_bits().wrapping_add(integer)) - SHIFTER
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::{Rng, Seed, Stream};
    use crate::simd::Isa;

    const LENGTHS: [usize; 8] = [0, 1, 7, 63, 64, 65, 129, 500];

    fn arms() -> impl Iterator<Item = Isa> {
        Isa::ALL.into_iter().filter(|isa| isa.available())
    }

    fn stream(index: usize) -> Rng {
        Seed::reproducible([6; 32]).stream(Stream::Speed, index as u64)
    }

    /// By integers: a float in [0, 1] with `log2_steps` more digits than 128 would not fit, but is not drawn.
    fn rounded_alone(number: f64, (low, width): (f64, f64), log2_steps: u32, word: u64) -> (i64, bool) {
        let scaled = position(number, low, width) * 2f64.powi(log2_steps as i32);
        let (whole, rest) = (scaled.floor(), scaled - scaled.floor());
        let drawn = (word >> 12) as f64 / SHIFTER;
        let (certain_up, certain_down) = (drawn + 1.0 / SHIFTER <= rest, drawn >= rest);
        (whole as i64 + i64::from(certain_up), certain_up | certain_down)
    }

    #[test]
    fn every_arm_rounds_as_one_by_one() {
        for (length, log2_steps) in
            LENGTHS.into_iter().flat_map(|length| [0, 1, 7, 30, MOST_STEPS].map(|k| (length, k)))
        {
            for (low, width) in [(0.0, 1.0), (-3.0, 8.0), (0.1, 1e-3)] {
                let mut rng = stream(length);
                let ends = [f64::NAN, f64::INFINITY, -f64::INFINITY, -0.0, low, low + width, 5e-324, -1.0, 1e9];
                let number = |i: usize| match ends.get(i % 40) {
                    Some(&end) => end,
                    None => low + width * (rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64,
                };
                let numbers: Vec<f64> = (0..length).map(number).collect();
                let mut words = vec![0; length];
                rng.words(&mut words);
                // The digits of a position: a tie, where that has more.
                for i in (70..length).step_by(150) {
                    let scaled = position(numbers[i], low, width) * 2f64.powi(log2_steps as i32);
                    words[i] = (((scaled - scaled.floor()) * SHIFTER) as u64) << 12;
                }
                let alone: Vec<(i64, bool)> =
                    (0..length).map(|i| rounded_alone(numbers[i], (low, width), log2_steps, words[i])).collect();
                let expected: Vec<bool> = alone.chunks(ROUNDED).map(|part| part.iter().all(|one| one.1)).collect();
                for isa in arms() {
                    let (mut out, mut settled) = (vec![-1; length], vec![true; expected.len()]);
                    let steps = 2f64.powi(log2_steps as i32);
                    round_to_grid(isa, &numbers, (low, width), steps, &words, &mut out, &mut settled);
                    assert_eq!(settled, expected, "{isa:?} {length} {log2_steps}");
                    for i in (0..length).filter(|i| settled[i / ROUNDED]) {
                        assert_eq!(out[i], alone[i].0, "{isa:?} {length} {log2_steps} {i}");
                    }
                }
            }
        }
    }

    #[test]
    fn every_arm_finds_the_nearest_point_as_one_by_one() {
        let ends =
            [(0.0, 1.0), (-3.0, 8.0), (0.1, 0.101), (-5e-324, 5e-324), (-1e308, 1.7e308), (1.0, 1.0 + f64::EPSILON)];
        for (length, (low, high)) in LENGTHS.into_iter().flat_map(|length| ends.map(|pair| (length, pair))) {
            for steps in [1.0, 2.0, 3.0, 1000.0, (1u64 << 20) as f64, (1u64 << 51) as f64] {
                let mut rng = stream(length);
                let odd = [f64::NAN, f64::INFINITY, -f64::INFINITY, -0.0, low, high, 5e-324, -1.0, 1e9, f64::MAX];
                let number = |i: usize| match odd.get(i % 40) {
                    Some(&number) => number,
                    // Some are ties of a coarse grid.
                    None if i.is_multiple_of(3) => low / 2.0 + high / 2.0,
                    None => low + (high / 2.0 - low / 2.0) * (rng.next_u64() >> 11) as f64 / (1u64 << 52) as f64,
                };
                let numbers: Vec<f64> = (0..length).map(number).collect();
                let part = if low.abs() < 1.0 && high.abs() < 1.0 { 1.0 } else { 0.5 };
                let alone = |&number: &f64| {
                    let inside = if number.is_nan() { low } else { number.clamp(low, high) };
                    ((inside * part - low * part) / (high * part - low * part) * steps).round_ties_even() as i64
                };
                let expected: Vec<i64> = numbers.iter().map(alone).collect();
                assert!(expected.iter().all(|&point| (0..=steps as i64).contains(&point)));
                for isa in arms() {
                    let mut out = vec![-1; length];
                    nearest_points(isa, &numbers, (low, high), steps, &mut out);
                    assert_eq!(out, expected, "{isa:?} {length} {low} {high} {steps}");
                }
            }
        }
    }

    #[test]
    fn every_arm_adds_as_one_by_one() {
        for length in LENGTHS {
            let integer = |i: usize| [i64::MAX, i64::MIN, -1, 0, 7, 1 << 40][i % 6];
            let (one, other): (Vec<i64>, Vec<i64>) = (0..length).map(|i| (integer(i), integer(i / 6))).unzip();
            let expected: Vec<i64> = one.iter().zip(&other).map(|(one, &other)| one.saturating_add(other)).collect();
            for isa in arms() {
                let mut sums = one.clone();
                add_saturating(isa, &mut sums, &other);
                assert_eq!(sums, expected, "{isa:?} {length}");
            }
        }
    }

    #[test]
    fn every_arm_proposes_as_one_by_one() {
        for (length, size) in
            LENGTHS.into_iter().flat_map(|length| [1, 4, 20, LARGEST_BLOCK].map(|size| (length, size)))
        {
            let (mut rng, mut words, mut outcomes) = (stream(length), vec![0; length], vec![0; length]);
            rng.words(&mut words);
            rng.words(&mut outcomes);
            outcomes.iter_mut().enumerate().for_each(|(i, outcome)| *outcome >>= if i % 20 == 3 { 10 } else { 53 });
            let half_precision = 0.5 / (50.0 * 2f64.powi(size as i32)).powi(2);
            let mut certain = 0;
            for isa in arms() {
                let (mut out, mut accepted) = (vec![0; length], vec![false; length]);
                propose(isa, &outcomes, &words, size, half_precision, &mut out, &mut accepted);
                for i in (0..length).filter(|&i| accepted[i]) {
                    let start = u128::from(outcomes[i] >> 1) << size;
                    let x = start + u128::from(words[i] >> (64 - size));
                    let value = if outcomes[i] & 1 == 0 { x as i64 } else { -1 - x as i64 };
                    assert_eq!(out[i], value, "{isa:?} {size}");
                    let magnitude = u128::from(value.unsigned_abs());
                    let gamma = (magnitude * magnitude - start * start) as f64 * half_precision;
                    let coin = (words[i] << size) as f64 / 2f64.powi(64);
                    assert!(coin < (-gamma).exp() && outcomes[i] < 1 << 12, "{isa:?} {size} {i}");
                    certain += 1;
                }
                let (mut same, mut marks) = (vec![0; length], vec![false; length]);
                propose(Isa::Portable, &outcomes, &words, size, half_precision, &mut same, &mut marks);
                assert_eq!(marks, accepted, "{isa:?} {size}");
            }
            assert!(length < 100 || certain > length / 4, "{certain} of {length}");
        }
    }
}
