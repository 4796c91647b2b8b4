//! Glue of `hdp_fast.noise`, which carries the documentation.

use hdp_fast_core::Result;
use hdp_fast_core::memory::zeros;
use hdp_fast_core::noise::{
    Bernoulli, Candidates, DiscreteGaussian, DiscreteLaplace, Geometric, Rational, Rng, RoundedGaussian, Stream,
    Weighted, coins, draws,
};
use hdp_fast_core::run::Run;
use num_bigint::BigUint;
use pyo3::prelude::*;

use crate::array::{self, Integers, Vector, Weights};
use crate::error::raise;
use crate::run::{run, streaming_cost};
use crate::scalar::{bytes, count, word};
use crate::seed::Key;

/// A rough cost of a draw, in nanoseconds.
pub const DRAW: f64 = 30.0;

/// A non-negative fraction as hdp_fast.noise hands it over, its denominator positive.
pub type Fraction = (BigUint, BigUint);

/// The same as a rational number.
pub fn rational((numerator, denominator): Fraction) -> Rational {
    Rational::new(numerator, denominator)
}

/// Coins of probability p, or exp(-p) if `exponential`: uint8 (size,).
#[pyfunction]
pub fn bernoulli<'py>(
    py: Python<'py>,
    p: Fraction,
    exponential: bool,
    size: &Bound<'py, PyAny>,
    seed: Key,
) -> PyResult<Vector<'py>> {
    let size = count("size", size, 0)?;
    let mut drawn = bytes(size)?;
    let coin = if exponential { Bernoulli::exp_minus } else { Bernoulli::ratio }(rational(p));
    let drawn = run(py, None, streaming_cost(size.saturating_mul(8)), |run| {
        coins(&mut drawn, &coin, Stream::Bernoulli, &seed, run, |out, coins| out.copy_from_slice(coins))?;
        Ok(drawn)
    })?;
    Ok(array::returned(py, drawn))
}

/// Draws of one of the laws with a scale: "geometric", "laplace", "gaussian" or "rounded_gaussian"; int64 (size,).
#[pyfunction]
pub fn integer_noise<'py>(
    py: Python<'py>,
    law: &Bound<'py, PyAny>,
    scale: Fraction,
    size: &Bound<'py, PyAny>,
    seed: Key,
) -> PyResult<Vector<'py, i64>> {
    let make = integer_law(law)?;
    let scale = rational(scale);
    integers(py, size, Stream::Noise, seed, move |size, _| Ok(make(&scale, size)))
}

/// A law of integers.
type IntegerLaw = Box<dyn Fn(&mut Rng) -> i64 + Sync + Send>;

/// What makes such a law from its scale and the number of draws.
type Make = fn(&Rational, usize) -> IntegerLaw;

/// The maker of the law of that name.
pub fn integer_law(name: &Bound<'_, PyAny>) -> PyResult<Make> {
    let laws: [(&str, Make); 4] = [
        ("geometric", |scale, size| law_of(Geometric::new(scale, size), Geometric::draw)),
        ("laplace", |scale, size| law_of(DiscreteLaplace::new(scale, size), DiscreteLaplace::draw)),
        ("gaussian", |scale, size| law_of(DiscreteGaussian::new(scale, size), DiscreteGaussian::draw)),
        ("rounded_gaussian", |scale, size| law_of(RoundedGaussian::new(scale, size), RoundedGaussian::draw)),
    ];
    word("law", name, &laws)
}

fn law_of<L: Sync + Send + 'static>(law: L, draw: fn(&L, &mut Rng) -> i64) -> IntegerLaw {
    Box::new(move |rng| draw(&law, rng))
}

/// Uniform integers below a positive bound: int64 (size,).
#[pyfunction]
pub fn uniform_integers<'py>(
    py: Python<'py>,
    bound: u64,
    size: &Bound<'py, PyAny>,
    seed: Key,
) -> PyResult<Vector<'py, i64>> {
    integers(py, size, Stream::Integers, seed, |_, _| Ok(move |rng: &mut Rng| rng.below(bound) as i64))
}

/// Indices drawn with integer weights: int64 (size,).
#[pyfunction]
pub fn weighted_draws<'py>(
    py: Python<'py>,
    weights: Weights<'py>,
    size: &Bound<'py, PyAny>,
    seed: Key,
) -> PyResult<Vector<'py, i64>> {
    let (weights, size) = (weights.as_slice()?, count("size", size, 0)?);
    array::filled(py, size, |drawn| {
        run(py, None, DRAW * size as f64, |run| Weighted::new(weights, run)?.fill(drawn, Stream::Integers, &seed, run))
    })
}

fn integers<'py, D: Fn(&mut Rng) -> i64 + Sync + Send>(
    py: Python<'py>,
    size: &Bound<'py, PyAny>,
    purpose: Stream,
    seed: Key,
    law: impl FnOnce(usize, Run<'_>) -> Result<D> + Send,
) -> PyResult<Vector<'py, i64>> {
    let size = count("size", size, 0)?;
    let mut drawn: Vec<i64> = zeros(Some(size)).map_err(raise)?;
    let drawn = run(py, None, DRAW * size as f64, |run| {
        let draw = law(size, run)?;
        draws(&mut drawn, purpose, &seed, run, draw)?;
        Ok(drawn)
    })?;
    Ok(array::returned(py, drawn))
}

/// The index of a candidate: method "permute_and_flip" or "exponential_mechanism", scores int64 (k,) with k >= 1.
#[pyfunction]
pub fn select(
    py: Python<'_>,
    method: &Bound<'_, PyAny>,
    scores: Integers<'_>,
    rate: Fraction,
    seed: Key,
) -> PyResult<usize> {
    let scores = scores.as_slice()?;
    let methods = [("permute_and_flip", true), ("exponential_mechanism", false)];
    let permute = word("method", method, &methods)?;
    let mut rng = seed.stream(Stream::Selection, 0);
    run(py, None, DRAW * scores.len() as f64, |run| {
        let candidates = Candidates::new(scores, rational(rate));
        if permute {
            candidates.permute_and_flip(&mut rng, run)
        } else {
            candidates.exponential_mechanism(&mut rng, run)
        }
    })
}
