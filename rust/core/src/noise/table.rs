//! Inversion of a discrete law by a table of certified bounds on its cumulative mass.

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
}

/// The first 64 binary digits of the cumulative mass of every outcome that such a word can tell apart.
///
/// A draw compares one word with them; only on equality, with probability 2^-64 an outcome, it draws more digits and
/// computes the mass to more bits until they differ. So every draw is exact.
pub struct Table<L> {
    cumulative: Vec<u64>,
    /// For every leading part of a word the first outcome that it can mean.
    guide: Vec<u32>,
    shift: u32,
    law: L,
}

impl<L: Law> Table<L> {
    /// The table of a law.
    pub fn new(law: L) -> Table<L> {
        let mut bits = 128;
        let cumulative = loop {
            match first_words(&law, bits) {
                Some(words) => break words,
                None => bits *= 2,
            }
        };
        let parts = (4 * cumulative.len()).next_power_of_two().max(2);
        let shift = 64 - parts.trailing_zeros();
        let mut outcome = 0;
        let first = |part: usize| {
            while cumulative[outcome] < (part as u64) << shift {
                outcome += 1;
            }
            outcome as u32
        };
        Table { guide: (0..parts).map(first).collect(), cumulative, shift, law }
    }

    /// One draw.
    #[inline]
    pub fn draw(&self, rng: &mut Rng) -> u64 {
        let word = rng.next_u64();
        let mut outcome = self.guide[(word >> self.shift) as usize] as usize;
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

/// The words of the table; `None` if this number of bits does not settle every word.
fn first_words(law: &impl Law, bits: u64) -> Option<Vec<u64>> {
    let last = law.outcomes().map_or(usize::MAX, |outcomes| outcomes - 1);
    let mut words = Vec::new();
    for mass in law.cumulative(bits) {
        // The last outcome of a finite law takes whatever is left.
        words.push(if words.len() == last { u64::MAX } else { mass.first_word()? });
        if words.last() == Some(&u64::MAX) {
            break;
        }
    }
    Some(words)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::gaussian::Normal;
    use super::super::geometric::Digit;
    use super::super::interval::Rational;
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
