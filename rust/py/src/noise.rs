//! Glue of `hdp_fast.noise`, which carries the documentation.

use hdp_fast_core::noise::{
    Bernoulli, Candidates, DiscreteGaussian, DiscreteLaplace, Geometric, IntegerNoise, Rational, RoundedGaussian,
    Stream, Weighted, coins, noise,
};
use num_bigint::BigUint;
use pyo3::Borrowed;
use pyo3::prelude::*;

use crate::array::{Integers, Vector, Weights, filled};
use crate::run::{run, streaming_cost};
use crate::scalar::{count, word};
use crate::seed::Key;

/// A rough cost of a draw, in nanoseconds.
pub const DRAW: f64 = 8.0;

/// The same of a draw by weights, which waits for memory.
const WEIGHTED_DRAW: f64 = 30.0;

/// A non-negative fraction as hdp_fast.noise hands it over, its denominator positive.
pub struct Fraction(BigUint, BigUint);

impl<'a, 'py> FromPyObject<'a, 'py> for Fraction {
    type Error = PyErr;

    fn extract(value: Borrowed<'a, 'py, PyAny>) -> PyResult<Fraction> {
        // Words are read much faster than integers of any length.
        if let Ok((numerator, denominator)) = value.extract::<(u64, u64)>() {
            return Ok(Fraction(numerator.into(), denominator.into()));
        }
        let (numerator, denominator) = value.extract()?;
        Ok(Fraction(numerator, denominator))
    }
}

/// The same as a rational number.
pub fn rational(Fraction(numerator, denominator): Fraction) -> Rational {
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
    let coin = if exponential { Bernoulli::exp_minus } else { Bernoulli::ratio }(rational(p));
    filled(py, size, streaming_cost(size.saturating_mul(3)), |out, run| {
        coins(out, &coin, Stream::Bernoulli, &seed, run)
    })
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
    let (make, scale) = (integer_law(law)?, rational(scale));
    let size = count("size", size, 0)?;
    filled(py, size, DRAW * size as f64, |out, run| noise(out, make(&scale, size).as_ref(), Stream::Noise, &seed, run))
}

/// What makes a law of integers from its scale and the number of draws.
type Make = fn(&Rational, usize) -> Box<dyn IntegerNoise>;

/// The maker of the law of that name.
pub fn integer_law(name: &Bound<'_, PyAny>) -> PyResult<Make> {
    let laws: [(&str, Make); 4] = [
        ("geometric", |scale, size| Box::new(Geometric::new(scale, size))),
        ("laplace", |scale, size| Box::new(DiscreteLaplace::new(scale, size))),
        ("gaussian", |scale, size| Box::new(DiscreteGaussian::new(scale, size))),
        ("rounded_gaussian", |scale, size| Box::new(RoundedGaussian::new(scale, size))),
    ];
    word("law", name, &laws)
}

/// Uniform integers below a positive bound: int64 (size,).
#[pyfunction]
pub fn uniform_integers<'py>(
    py: Python<'py>,
    bound: u64,
    size: &Bound<'py, PyAny>,
    seed: Key,
) -> PyResult<Vector<'py, i64>> {
    let size = count("size", size, 0)?;
    filled(py, size, DRAW * size as f64, |out, run| {
        hdp_fast_core::noise::uniform_integers(out, bound, Stream::Integers, &seed, run)
    })
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
    filled(py, size, WEIGHTED_DRAW * size as f64, |out, run| {
        Weighted::new(weights, run)?.fill(out, Stream::Integers, &seed, run)
    })
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
