//! The Poisson distribution of a whole mean, exactly.

use super::interval::{Interval, Rational};
use super::rng::Rng;
use super::table::{Law, Table};

/// The Poisson distribution: Pr\[X = k\] = e^-m m^k / k! for a whole mean m.
///
/// A sum of independent draws of smaller means is one of the sum of their means, so that a table of a few hundred
/// outcomes is enough for any mean; both laws are exact.
pub struct Poisson {
    whole: Option<Table<Part>>,
    times: u64,
    rest: Option<Table<Part>>,
}

/// The largest mean of a table; it keeps tables in the fastest cache.
const MOST: u64 = 256;

impl Poisson {
    /// The distribution of a mean.
    pub fn new(mean: u64) -> Poisson {
        let table = |mean: u64| (mean > 0).then(|| Table::new(Part { mean }));
        let times = mean / MOST;
        Poisson { whole: table(MOST.min(times * MOST)), times, rest: table(mean % MOST) }
    }

    /// Draws one integer.
    ///
    /// Cost: a look into a table for every 256 of the mean.
    pub fn draw(&self, rng: &mut Rng) -> u64 {
        let rest = self.rest.iter().map(|table| table.draw(rng)).sum::<u64>();
        let whole = self.whole.iter().map(|table| (0..self.times).map(|_| table.draw(rng)).sum::<u64>());
        rest + whole.sum::<u64>()
    }
}

/// The law of a mean of at most [`MOST`].
struct Part {
    mean: u64,
}

impl Law for Part {
    fn cumulative(&self, bits: u64) -> impl Iterator<Item = Interval> {
        let mean = self.mean;
        // A mass errs by about k units times its ratio to the first, which is below e^(2 mean) < 2^(3 mean).
        let work = bits + 3 * mean + 64;
        let whole = |x: u64| Interval::ratio(&Rational::from_integer(x.into()), work);
        let (factor, first) = (whole(mean), Interval::exp_minus(&Rational::from_integer(mean.into()), work));
        let masses = std::iter::successors(Some((0, first)), move |(k, mass)| {
            Some((k + 1, mass.times(&factor).divided_by(k + 1)))
        });
        // From twice the mean on all that follows is at most the last mass.
        let counts = masses.take_while(move |(k, mass)| *k <= 2 * mean || !mass.is_negligible());
        counts.scan(Interval::up_to(0u32.into(), work), move |sum, (_, mass)| {
            *sum = sum.plus(&mass);
            Some(sum.rounded(bits))
        })
    }

    fn outcomes(&self) -> Option<usize> {
        None
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::rng::{Seed, Stream};
    use super::*;

    /// Beside the masses by logarithms of factorials, to the digits that these have.
    #[test]
    fn cumulative_masses_are_those_of_the_definition() {
        for mean in [1, 2, 7, 100, 255, 256] {
            let (mut sum, mut log) = (0.0, -(mean as f64));
            let law = Part { mean };
            for (k, mass) in law.cumulative(128).enumerate() {
                if k > 0 {
                    log += (mean as f64 / k as f64).ln();
                }
                sum += log.exp();
                let word = mass.first_word().unwrap() as f64 / 2f64.powi(64);
                assert!((word - sum.min(1.0)).abs() < 1e-12, "{mean} {k} {word} {sum}");
            }
            assert!(sum > 1.0 - 1e-12);
        }
    }

    /// Chi-square with a false alarm in 10^6 runs, of means on both sides of a table.
    #[test]
    fn counts_follow_the_law() {
        for (index, mean) in [1u64, 5, 255, 256, 257, 700].into_iter().enumerate() {
            let law = Poisson::new(mean);
            let mut rng = Seed::reproducible([9; 32]).stream(Stream::Sampling, index as u64);
            let draws = 200_000;
            let mut seen = std::collections::HashMap::<u64, u64>::new();
            (0..draws).for_each(|_| *seen.entry(law.draw(&mut rng)).or_default() += 1);
            let (mut log, mut statistic, mut cells, mut expected, mut found) = (-(mean as f64), 0.0, 0, 0.0, 0);
            for k in 0..=2 * mean + 60 {
                if k > 0 {
                    log += (mean as f64 / k as f64).ln();
                }
                expected += draws as f64 * log.exp();
                found += seen.get(&k).copied().unwrap_or(0);
                // Cells of at least 50 draws; what is left at the end is less.
                if expected >= 50.0 {
                    statistic += (found as f64 - expected).powi(2) / expected;
                    (cells, expected, found) = (cells + 1, 0.0, 0);
                }
            }
            // Wilson and Hilferty: 4.75 deviations of the cube root.
            let freedom = f64::from(cells);
            let part = 2.0 / (9.0 * freedom);
            let most = freedom * (1.0 - part + 4.75 * part.sqrt()).powi(3);
            assert!(statistic < most, "mean {mean}: {statistic} of {most}");
        }
    }
}
