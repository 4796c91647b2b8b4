//! Reports about categories, a word of the random stream for each: its upper half decides whether the value is told,
//! its lower half what is told otherwise.
//!
//! A report needs a coin of probability p, which has 64 digits, and a uniform integer without bias: both may take more
//! words than one, but hardly any report among a few categories does. So the bodies compute as if one word were enough,
//! without a branch, and have no exact way out: where a word does not settle its report, they say so, and what they
//! have written means nothing. They are plain Rust; an arm is the same body compiled for an instruction set whose
//! vectors are longer.
//!
//! ```text
//! for each 64 reports:
//!     told   = upper half of the word < upper half of p;    settled if they differ
//!     any    = (k * lower half) >> 32;                      settled if the low digits of k * lower half are at least k
//!     report = own value if told, else any
//! settled = all of them are
//! ```

/// Reports of which one mark says whether all are settled.
pub const REPORTS: usize = 64;

/// The lower half of a word.
const LOWER: u64 = u32::MAX as u64;

/// The halves of the probability, in units of 2^-64, with which the value is told.
#[derive(Clone, Copy, Debug)]
pub struct Keep {
    upper: u64,
    lower: u64,
}

impl Keep {
    /// The probability `word` / 2^64.
    pub fn new(word: u64) -> Keep {
        Keep { upper: word >> 32, lower: word & LOWER }
    }

    /// Whether a coin of 32 digits shows that the value is told: it does, or not, or `more` digits decide.
    #[inline]
    pub fn is_told(self, word: u64, more: impl FnOnce() -> u64) -> bool {
        let coin = word >> 32;
        if coin == self.upper { more() >> 32 < self.lower } else { coin < self.upper }
    }

    /// The same with all ones for true, and whether that is certain.
    #[inline(always)]
    fn mask(self, word: u64) -> (u64, bool) {
        // Signed comparisons, since not every arm has others; the numbers have 32 digits.
        let coin = (word >> 32) as i64;
        (u64::from(coin < self.upper as i64).wrapping_neg(), coin != self.upper as i64)
    }
}

/// A uniform integer below a bound of at most 2^31: the integer part of the bound times a word's lower half divided by
/// 2^32, where the words that would favor some integers are rejected (Lemire 2019).
#[derive(Clone, Copy, Debug)]
pub struct Below(pub u32);

impl Below {
    /// Draws with `word` first, and with what `more` gives as long as words are rejected.
    #[inline]
    pub fn draw(self, word: u64, mut more: impl FnMut() -> u64) -> u64 {
        let (mut product, bound) = (self.product(word), u64::from(self.0));
        if product & LOWER < bound {
            while product & LOWER < (1 << 32) % bound {
                product = self.product(more());
            }
        }
        product >> 32
    }

    /// The same, and whether that is certain.
    #[inline(always)]
    fn settle(self, word: u64) -> (u64, bool) {
        let product = self.product(word);
        (product >> 32, (product & LOWER) as i64 >= i64::from(self.0))
    }

    #[inline(always)]
    fn product(self, word: u64) -> u64 {
        (word & LOWER).wrapping_mul(u64::from(self.0))
    }
}

/// Division of numbers below 2^31 by one number, without an instruction for it (Granlund and Montgomery 1994).
#[derive(Clone, Copy, Debug)]
pub struct Divisor {
    number: u32,
    /// 2^`shift` divided by the number, rounded up, where the number is at most 2^(`shift` - 31).
    factor: u32,
    shift: u32,
}

impl Divisor {
    /// Divides by a number from 1 to 2^31.
    pub fn new(number: u32) -> Divisor {
        let shift = 31 + u64::from(number).next_power_of_two().trailing_zeros();
        Divisor { number, factor: (1u64 << shift).div_ceil(u64::from(number)) as u32, shift }
    }

    /// The quotient and the rest.
    #[inline(always)]
    pub fn divide(self, value: u64) -> (u64, u64) {
        let quotient = (value & LOWER).wrapping_mul(u64::from(self.factor)).wrapping_shr(self.shift);
        (quotient, value.wrapping_sub((quotient & LOWER).wrapping_mul(u64::from(self.number))))
    }
}

dispatched! {
    /// Writes the value, or else any of the values below the bound, each as its word means. Of every [`REPORTS`] of them
    /// one of `settled` says whether the words settle them. A value out of range counts as the nearest one inside.
    tell_values(values: &[i64], words: &[u64], keep: Keep, any: Below, out: &mut [i64], settled: &mut [bool]) = values_told
}

#[inline(always)]
fn values_told(values: &[i64], words: &[u64], keep: Keep, any: Below, out: &mut [i64], settled: &mut [bool]) {
    let parts = values.chunks(REPORTS).zip(words.chunks(REPORTS)).zip(out.chunks_mut(REPORTS));
    for (((values, words), out), settled) in parts.zip(settled) {
        let mut open = 0;
        for ((&value, &word), out) in values.iter().zip(words).zip(out) {
            let ((told, first), (other, second)) = (keep.mask(word), any.settle(word));
            // Only one of the two is ever told.
            *out = (other ^ ((other ^ clamped(value, any.0)) & told)) as i64;
            open |= u64::from(!(first & second));
        }
        *settled = open == 0;
    }
}

/// The value, or the nearest one below `k`.
#[inline(always)]
fn clamped(value: i64, k: u32) -> u64 {
    value.max(0).min(i64::from(k) - 1) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::{Seed, Stream};
    use crate::simd::Isa;

    fn arms() -> impl Iterator<Item = Isa> {
        Isa::ALL.into_iter().filter(|isa| isa.available())
    }

    fn never() -> u64 {
        unreachable!("the word settles it")
    }

    /// The value and the word of each of so many reports, with ends and ties among them.
    fn inputs(length: usize, keep: u64, k: u32) -> (Vec<i64>, Vec<u64>) {
        let mut rng = Seed::reproducible([6; 32]).stream(Stream::Speed, length as u64);
        let ends = [i64::MIN, -1, 0, 1, i64::from(k) - 1, i64::from(k), i64::MAX];
        let value = |i: usize, word: u64| ends.get(i % 30).copied().unwrap_or((word % u64::from(k)) as i64);
        let word = |i: usize, word: u64| match i {
            70 => keep & !LOWER | word & LOWER,
            150 => word & !LOWER,
            _ => word,
        };
        (0..length).map(|i| (value(i, rng.next_u64()), word(i, rng.next_u64()))).unzip()
    }

    type Write<'a> = &'a dyn Fn(Isa, &[i64], &[u64], &mut [i64], &mut [bool]);

    /// Every arm writes the same as one report after the other, and settles all parts but those with a doubt.
    fn agrees(keep: u64, k: u32, any: Below, write: Write<'_>, one: impl Fn(i64, u64) -> u64) {
        let doubtful = |word: &u64| word >> 32 == keep >> 32 || any.product(*word) & LOWER < u64::from(any.0);
        for length in [0, 1, 7, 8, 63, 64, 65, 129, 300] {
            let (values, words) = inputs(length, keep, k);
            let expected: Vec<bool> = words.chunks(REPORTS).map(|words| !words.iter().any(doubtful)).collect();
            for isa in arms() {
                let (mut out, mut settled) = (vec![-1; length], vec![true; length.div_ceil(REPORTS)]);
                write(isa, &values, &words, &mut out, &mut settled);
                assert_eq!(settled, expected, "{isa:?} {k} {length}");
                for i in (0..length).filter(|i| settled[i / REPORTS]) {
                    assert_eq!(out[i], one(values[i], words[i]) as i64, "{isa:?} {k} {i} of {length}");
                }
            }
        }
    }

    #[test]
    fn every_arm_tells_values_as_one_by_one() {
        for (keep, k) in [(1 << 63, 2), (u64::MAX / 3, 128), (u64::MAX / 700, 1000), (1 << 62, (1 << 24) - 3)] {
            let (law, any) = (Keep::new(keep), Below(k));
            let write: Write<'_> =
                &|isa, values, words, out, settled| tell_values(isa, values, words, law, any, out, settled);
            agrees(keep, k, any, write, |value, word| {
                if law.is_told(word, never) { value.clamp(0, i64::from(k) - 1) as u64 } else { any.draw(word, never) }
            });
        }
    }

    #[test]
    fn a_value_is_told_with_all_digits_of_the_probability() {
        let keep = Keep::new(5 << 32 | 7);
        assert!(keep.is_told(5 << 32 | LOWER, || 6 << 32 | LOWER));
        assert!(!keep.is_told(5 << 32, || 7 << 32));
        assert!(keep.is_told(4 << 32 | LOWER, never));
        assert!(!keep.is_told(6 << 32, never));
    }

    /// All lower halves that mean an outcome at once are counted: as many for each outcome.
    #[test]
    fn no_outcome_is_favored() {
        for bound in [3 << 20 | 1, (1 << 24) - 1, 1 << 24, 1_000_003 << 10, (1 << 31) - 1, 1 << 31] {
            let below = Below(bound);
            for outcome in [0, 1, 12_345, u64::from(bound) / 3, u64::from(bound) - 2, u64::from(bound) - 1] {
                let start = ((outcome << 32) / u64::from(bound)).saturating_sub(2);
                let end = (((outcome + 1) << 32) / u64::from(bound) + 2).min(1 << 32);
                // What a rejected word leads to is another outcome.
                let other = if outcome == 0 { LOWER } else { 1 };
                let sure = (start..end).filter(|&word| below.draw(word, || other) == outcome);
                assert_eq!(sure.count() as u64, (1 << 32) / u64::from(bound), "{outcome} of {bound}");
            }
        }
    }

    #[test]
    fn quotients_are_exact() {
        let mut rng = Seed::reproducible([6; 32]).stream(Stream::Speed, 1);
        let numbers = [1, 2, 3, 7, 9, 641, 65_535, 65_536, 65_537, 1 << 24, (1 << 30) + 1, (1 << 31) - 1, 1 << 31];
        for number in numbers {
            let (divisor, whole) = (Divisor::new(number), u64::from(number));
            let multiples = (0..200).map(|_| (rng.next_u64() >> 33) / whole * whole);
            let near = multiples.flat_map(|value| [value.saturating_sub(1), value, value + 1]);
            for value in near.chain([0, 1, (1 << 31) - 1]).filter(|&value| value < 1 << 31) {
                assert_eq!(divisor.divide(value), (value / whole, value % whole), "{value} / {number}");
            }
        }
    }
}
