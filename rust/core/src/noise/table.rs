//! Inversion of a discrete law by a table of certified bounds on its cumulative mass.

use bytemuck::cast_slice_mut;

use super::bracket::Bracket;
use super::interval::Interval;
use super::rng::Rng;
use super::uniform::Uniform;

/// A law on 0, 1, 2, ...
pub trait Law: Sync {
    /// The cumulative masses Pr\[X <= 0\], Pr\[X <= 1\], ... to about `bits` bits, at least until they are within
    /// 2^-bits of one.
    fn cumulative(&self, bits: u64) -> impl Iterator<Item = Interval>;

    /// The number of outcomes, or `None` if there are infinitely many.
    fn outcomes(&self) -> Option<usize>;

    /// Numbers proportional to the masses of the first outcomes, in their order: what a table is made with ten times as
    /// fast, where brackets settle its words.
    fn weights(&self) -> Option<Weights> {
        None
    }
}

/// Brackets of at most [`MOST_TERMS`](super::bracket::MOST_TERMS) numbers: the masses of a law times a factor.
pub struct Weights {
    /// The numbers, each at most one.
    pub masses: Vec<Bracket>,
    /// One divided by the factor, unless that is one.
    pub share: Option<Bracket>,
}

/// The first 64 binary digits of the cumulative mass of every outcome that such a word can tell apart.
///
/// A draw compares one word with them; only on equality, with probability 2^-64 an outcome, it draws more digits and
/// computes the mass to more bits until they differ. So every draw is exact.
pub struct Table<L> {
    cumulative: Vec<u64>,
    /// For every leading part of a word the first outcome that it can mean, or an earlier one.
    guide: Vec<u16>,
    shift: u32,
    law: L,
}

/// Words that are looked up at a time.
pub const BLOCK: usize = 512;

impl<L: Law> Table<L> {
    /// The table of a law.
    pub fn new(law: L) -> Table<L> {
        let cumulative = law.weights().and_then(|weights| quick_words(&law, &weights));
        let cumulative = cumulative.unwrap_or_else(|| exact_words(&law));
        // At most two outcomes begin in most parts, so that two steps nearly always find the outcome.
        let parts = cumulative.len().next_power_of_two().max(2);
        let shift = 64 - parts.trailing_zeros();
        let (mut guide, mut part) = (vec![0; parts], 0);
        for (outcome, &last) in cumulative.iter().enumerate() {
            let next = (last >> shift) as usize + 1;
            guide[part.min(next)..next].fill(u16::try_from(outcome).unwrap_or(u16::MAX));
            part = next;
        }
        Table { guide, cumulative, shift, law }
    }

    /// One draw.
    #[inline]
    pub fn draw(&self, rng: &mut Rng) -> u64 {
        let word = rng.next_u64();
        self.find(word, rng)
    }

    /// Fills an array with draws.
    pub fn fill(&self, out: &mut [u64], rng: &mut Rng) {
        for block in out.chunks_mut(BLOCK) {
            rng.words(block);
            block.iter_mut().for_each(|word| *word = self.find(*word, rng));
        }
    }

    /// The outcome that a word means: two steps without a branch, since the processor could not foresee them.
    #[inline(always)]
    fn find(&self, word: u64, rng: &mut Rng) -> u64 {
        let mut outcome = usize::from(self.guide[(word >> self.shift) as usize]);
        outcome += usize::from(self.cumulative[outcome] < word);
        outcome += usize::from(self.cumulative[outcome] < word);
        if self.cumulative[outcome] <= word { self.find_farther(outcome, word, rng) } else { outcome as u64 }
    }

    #[cold]
    #[inline(never)]
    fn find_farther(&self, mut outcome: usize, word: u64, rng: &mut Rng) -> u64 {
        while self.cumulative[outcome] < word {
            outcome += 1;
        }
        if self.cumulative[outcome] == word { self.resolve_tie(outcome, word, rng) } else { outcome as u64 }
    }

    #[cold]
    fn resolve_tie(&self, mut outcome: usize, word: u64, rng: &mut Rng) -> u64 {
        let mut uniform = Uniform::starting(word);
        // What a law does not list any more is within a unit of one.
        let listed = |n: usize, bits| self.law.cumulative(bits).nth(n);
        let nth = |n: usize, bits| listed(n, bits).unwrap_or_else(|| Interval::up_to(1u32.into(), bits).complement());
        while Some(outcome + 1) != self.law.outcomes() && !uniform.below(|bits| nth(outcome, bits), rng) {
            outcome += 1;
        }
        outcome as u64
    }
}

/// 0, -1, 1, -2, 2, ... for 0, 1, 2, 3, 4, ...
pub fn unfolded(zigzag: u64) -> i64 {
    (zigzag >> 1) as i64 ^ -((zigzag & 1) as i64)
}

/// Fills an array with what a table of 0, -1, 1, -2, 2, ... draws.
pub fn fill_unfolded<L: Law>(table: &Table<L>, out: &mut [i64], rng: &mut Rng) {
    table.fill(cast_slice_mut(out), rng);
    out.iter_mut().for_each(|value| *value = unfolded(*value as u64));
}

/// Fills an array with what is accepted: `propose` makes a value, or nothing, of an outcome of the table and a word.
/// `quick` makes the same values of many of them, and marks those for which little arithmetic shows that they are
/// accepted, which is nearly always.
#[inline(always)]
pub(super) fn fill_accepted<L: Law>(
    table: &Table<L>,
    out: &mut [i64],
    rng: &mut Rng,
    quick: impl Fn(&[u64], &[u64], &mut [i64], &mut [bool]),
    propose: impl Fn(u64, u64, &mut Rng) -> Option<i64>,
) {
    let (mut outcomes, mut words, mut done) = ([0; BLOCK], [0; BLOCK], 0);
    while done < out.len() {
        let out = &mut out[done..];
        let (count, mut accepted, mut kept) = (out.len().min(BLOCK), [false; BLOCK], 0);
        let (outcomes, words) = (&mut outcomes[..count], &mut words[..count]);
        table.fill(outcomes, rng);
        rng.words(words);
        quick(outcomes, words, &mut out[..count], &mut accepted[..count]);
        // Those that are accepted move up.
        for i in 0..count {
            if accepted[i] {
                out[kept] = out[i];
                kept += 1;
            } else if let Some(value) = propose(outcomes[i], words[i], rng) {
                out[kept] = value;
                kept += 1;
            }
        }
        done += kept;
    }
}

/// The words of the table by intervals of as many digits as it takes.
fn exact_words(law: &impl Law) -> Vec<u64> {
    let mut bits = 128;
    loop {
        match settled_words(law, law.cumulative(bits).map(|mass| mass.first_word())) {
            Some(words) => break words,
            None => bits *= 2,
        }
    }
}

/// The words of the table by brackets; `None` if they do not settle every word.
fn quick_words(law: &impl Law, weights: &Weights) -> Option<Vec<u64>> {
    let sums = weights.masses.iter().scan(Bracket::up_to(0), |sum, &mass| {
        *sum = sum.plus(mass);
        Some(weights.share.map_or(*sum, |share| sum.times(share)).first_word())
    });
    settled_words(law, sums)
}

/// The first digits of cumulative masses up to the last that they can tell from one; `None` if any is not settled.
fn settled_words(law: &impl Law, masses: impl Iterator<Item = Option<u64>>) -> Option<Vec<u64>> {
    let last = law.outcomes().map_or(usize::MAX, |outcomes| outcomes - 1);
    let mut words = Vec::new();
    for word in masses {
        // The last outcome of a finite law takes whatever is left.
        words.push(if words.len() == last { u64::MAX } else { word? });
        if words.last() == Some(&u64::MAX) {
            return Some(words);
        }
    }
    None
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::geometric::Digit;
    use super::super::interval::Rational;
    use super::super::normal_law::Normal;
    use super::super::rng::{Seed, Stream};
    use super::super::rounded::Rounded;
    use super::*;

    /// Thirds: their digits never end, and every 64 of them are alike.
    struct Thirds;

    const THIRD: u64 = u64::MAX / 3;

    impl Law for Thirds {
        fn cumulative(&self, bits: u64) -> impl Iterator<Item = Interval> {
            (1u32..4).map(move |i| Interval::ratio(&Rational::new(i.into(), 3u32.into()), bits))
        }

        fn outcomes(&self) -> Option<usize> {
            Some(3)
        }
    }

    /// Words of tables beside those that tests/vectors/cumulative.py computed from the definitions.
    #[test]
    fn tables_hold_the_first_digits_of_the_cumulative_masses() {
        let vectors = include_str!("../../../../tests/vectors/cumulative.txt");
        let mut tables: std::collections::HashMap<String, Vec<u64>> = Default::default();
        for line in vectors.lines() {
            let (case, entry) = line
                .rsplit_once(' ')
                .and_then(|(rest, word)| Some((rest.rsplit_once(' ')?, word)))
                .map(|((case, i), word)| (case, (i, word)))
                .unwrap();
            let words = tables.entry(case.into()).or_insert_with(|| words_of(case));
            let (i, word) = (entry.0.parse::<usize>().unwrap(), u64::from_str_radix(entry.1, 16).unwrap());
            assert_eq!(words[i], word, "{line}");
        }
        assert_eq!(tables.len(), 14);
    }

    fn words_of(case: &str) -> Vec<u64> {
        let parts: Vec<&str> = case.split(' ').collect();
        let (numerator, denominator) = parts[1].split_once('/').unwrap();
        let scale = Rational::new(numerator.parse().unwrap(), denominator.parse().unwrap());
        let base = parts[2].parse::<usize>().ok().filter(|&base| base > 0);
        let normal = |mirrored| Table::new(Normal { variance: &scale * &scale, mirrored }).cumulative;
        let digit = |signed| Table::new(Digit { rate: scale.recip(), base, signed }).cumulative;
        match parts[0] {
            "signed" => digit(true),
            "digit" => digit(false),
            "gaussian" => normal(false),
            "rounded" => Table::new(Rounded { sigma: scale }).cumulative,
            _ => normal(true),
        }
    }

    /// Wherever brackets settle the words, they are those of intervals; and for common scales they do.
    #[test]
    fn quick_words_are_the_exact_ones() {
        let mut settled = 0;
        let mut check = |law: &dyn Fn() -> [Option<Vec<u64>>; 2], case: String| {
            let [quick, exact] = law();
            assert!(quick.is_none() || quick == exact, "{case}");
            settled += u32::from(quick.is_some());
        };
        fn both<L: Law>(law: L) -> [Option<Vec<u64>>; 2] {
            [law.weights().and_then(|weights| quick_words(&law, &weights)), Some(exact_words(&law))]
        }
        let mut rng = Seed::reproducible([6; 32]).stream(Stream::Speed, 0);
        for round in 0..60u64 {
            let scale = Rational::new((rng.below(24_000) + 1001).into(), 1000u32.into());
            let rate = scale.recip();
            for signed in [false, true] {
                check(&|| both(Digit { rate: rate.clone(), base: None, signed }), format!("{scale} {signed}"));
                check(&|| both(Digit { rate: rate.clone(), base: Some(4096), signed }), format!("{scale} of 4096"));
                for base in [2, 128, 1024] {
                    let rate = &rate / num_bigint::BigUint::from(1u32 + round as u32 * 40_000);
                    check(&|| both(Digit { rate: rate.clone(), base: Some(base), signed }), format!("{rate} {base}"));
                }
                let variance = &scale * &scale * num_bigint::BigUint::from(1 + round % 7);
                check(&|| both(Normal { variance: variance.clone(), mirrored: signed }), format!("{variance}"));
            }
        }
        assert!(settled >= 710, "{settled} of 720");
    }

    #[test]
    fn a_block_of_draws_is_that_of_one_by_one() {
        let laws = [1u64, 7, 24].map(|scale| Digit {
            rate: Rational::new(1u32.into(), scale.into()),
            base: None,
            signed: scale == 7,
        });
        for table in laws.map(Table::new) {
            for count in [0, 1, 511, 512, 513, 20_000] {
                let stream = || Seed::reproducible([4; 32]).stream(Stream::Noise, count as u64);
                let (mut block, mut rng, mut one) = (vec![0; count], stream(), stream());
                table.fill(&mut block, &mut rng);
                assert_eq!(block, (0..count).map(|_| table.draw(&mut one)).collect::<Vec<u64>>());
            }
        }
    }

    #[test]
    fn a_tie_is_decided_by_the_digits_that_follow() {
        let (table, seed) = (Table::new(Thirds), Seed::reproducible([5; 32]));
        assert_eq!(table.cumulative, [THIRD, 2 * THIRD, u64::MAX]);
        for index in 0..200 {
            let mut stream = seed.stream(Stream::Noise, index);
            let next = seed.stream(Stream::Noise, index).next_u64();
            assert_eq!(table.resolve_tie(0, THIRD, &mut stream), u64::from(next > THIRD));
            let mut stream = seed.stream(Stream::Noise, index);
            assert_eq!(table.resolve_tie(1, 2 * THIRD, &mut stream), 1 + u64::from(next > 2 * THIRD));
            assert_eq!(table.resolve_tie(2, u64::MAX, &mut stream), 2);
        }
    }

    #[test]
    fn a_tie_beyond_the_table_goes_on_along_the_tail() {
        let law = Digit { rate: Rational::new(1u32.into(), 2u32.into()), base: None, signed: false };
        let (table, seed) = (Table::new(law), Seed::reproducible([5; 32]));
        let last = table.cumulative.len() - 1;
        // Given that 64 digits are ones, what follows them is a uniform share of a tail of 2^-64.
        let excess: Vec<f64> = (0..400)
            .map(|index| table.resolve_tie(last, u64::MAX, &mut seed.stream(Stream::Noise, index)) as f64)
            .map(|outcome| outcome - 128.0 * 2f64.ln())
            .collect();
        let mean = excess.iter().sum::<f64>() / 400.0;
        // floor(2 ln(1 / u) + 128 ln 2) for uniform u: 2 on average, half less for the floor, deviation 2.
        assert!((mean - 1.5).abs() < 0.5, "{mean}");
        assert!(excess.iter().all(|&excess| excess > -1.0));
    }
}
