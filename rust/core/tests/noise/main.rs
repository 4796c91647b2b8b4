//! Random bits: rounding directions, exactness on streams that are known, and laws under a fixed key.
#![allow(clippy::unwrap_used, missing_docs)]

mod arrays;
mod bernoulli;
mod choices;
mod laws;

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use hdp_fast_core::local::{randomized_response, truth_probability};
use hdp_fast_core::noise::{
    Bernoulli, Candidates, DiscreteGaussian, DiscreteLaplace, Fixed, Geometric, Rational, Rng, RoundedGaussian, Seed,
    Stream, Weighted, coins, scale_at_least, uniform_integers,
};
use hdp_fast_core::params::Epsilon;
use hdp_fast_core::run::Run;
use hdp_fast_core::simd::Isa;
use num_bigint::BigUint;

fn seed() -> Seed {
    Seed::reproducible([42; 32])
}

fn stream(index: u64) -> Rng {
    seed().stream(Stream::Noise, index)
}

fn two_to(exponent: i32) -> f64 {
    2f64.powi(exponent)
}

fn ratio(numerator: u64, denominator: u64) -> Rational {
    Rational::new(numerator.into(), denominator.into())
}

fn ratio_coin(numerator: u64, denominator: u64) -> Bernoulli {
    Bernoulli::ratio(ratio(numerator, denominator))
}

/// The exact number that a float is.
fn exactly(value: f64) -> Rational {
    let (bits, exponent) = (value.to_bits() & ((1 << 52) - 1), value.to_bits() >> 52);
    let (mantissa, exponent) = if exponent == 0 { (bits, 1) } else { (bits | 1 << 52, exponent) };
    let two = |power: u64| BigUint::from(1u32) << power;
    Rational::new(BigUint::from(mantissa) * two(exponent), two(1075))
}

/// Pearson's statistic of counts against probabilities, and the number of cells with at least ten expected.
fn misfit(counts: &BTreeMap<i64, u64>, law: impl Fn(i64) -> f64, reach: i64) -> (f64, usize) {
    let draws: u64 = counts.values().sum();
    let expected: Vec<(i64, f64)> = (-reach..=reach).map(|x| (x, law(x) * draws as f64)).collect();
    let cells: Vec<&(i64, f64)> = expected.iter().filter(|(_, e)| *e >= 10.0).collect();
    let seen = |x: &i64| counts.get(x).copied().unwrap_or(0) as f64;
    let inside: f64 = cells.iter().map(|(x, e)| (seen(x) - e).powi(2) / e).sum();
    let rest = draws as f64 - cells.iter().map(|(_, e)| e).sum::<f64>();
    let seen_rest = draws as f64 - cells.iter().map(|(x, _)| seen(x)).sum::<f64>();
    (inside + (seen_rest - rest).powi(2) / rest.max(10.0), cells.len())
}

/// Far beyond what chi-square with so many degrees of freedom reaches with probability 1e-6.
fn limit(cells: usize) -> f64 {
    let cells = cells as f64;
    cells + 5.0 * (2.0 * cells).sqrt() + 25.0
}

fn counts(draw: impl Fn(&mut Rng) -> i64, index: u64) -> BTreeMap<i64, u64> {
    let mut rng = stream(index);
    let mut counts = BTreeMap::new();
    (0..200_000).for_each(|_| *counts.entry(draw(&mut rng)).or_default() += 1);
    counts
}

fn follows(law: impl Fn(i64) -> f64, counts: &BTreeMap<i64, u64>) -> bool {
    let (statistic, cells) = misfit(counts, law, 600);
    statistic < limit(cells)
}
