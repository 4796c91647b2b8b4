//! Glue of `hdp_fast.local`.

use hdp_fast_core::Result;
use hdp_fast_core::local::{self, Hadamard, Kary, Range, Window};
use hdp_fast_core::memory::zeros;
use hdp_fast_core::noise::{Rng, Seed, Stream, draws_for};
use hdp_fast_core::params::Epsilon;
use pyo3::prelude::*;

use crate::array::{self, Answers, Floats, Integers, Vector};
use crate::error::raise;
use crate::noise::{DRAW, Fraction, integer_law, rational};
use crate::run::{run, streaming_cost};
use crate::scalar;
use crate::seed::Key;

/// Low and width.
type Ends = (f64, f64);

fn range((low, width): Ends) -> PyResult<Range> {
    Range::new(low, width).map_err(raise)
}

/// Refuses what randomized_response would refuse as its bits.
#[pyfunction]
pub fn check_bits(bits: &Bound<'_, PyAny>) -> PyResult<()> {
    array::answers("bits", bits).map(drop)
}

/// Binary randomized response; the documentation is that of hdp_fast.local.randomized_response.
#[pyfunction]
pub fn randomized_response<'py>(
    py: Python<'py>,
    bits: &Bound<'py, PyAny>,
    epsilon: &Bound<'py, PyAny>,
    seed: Key,
) -> PyResult<Vector<'py>> {
    let epsilon = scalar::epsilon(epsilon)?;
    let responses = match array::answers("bits", bits)? {
        Answers::Bits(mut bits) => run(py, None, streaming_cost(16 * bits.len()), |run| {
            local::randomized_response(&mut bits, epsilon, &seed, run)?;
            Ok(bits)
        }),
        Answers::Fractions(fractions) => rounded_bits(py, &fractions, Range::UNIT, epsilon, &seed),
    }?;
    Ok(array::returned(py, responses))
}

/// Binary randomized response to numbers in a range, float64 (n,); any other number counts as the nearer end, NaN as low.
#[pyfunction]
pub fn respond_binary<'py>(
    py: Python<'py>,
    values: Floats<'py>,
    ends: Ends,
    epsilon: &Bound<'py, PyAny>,
    seed: Key,
) -> PyResult<Vector<'py>> {
    let epsilon = scalar::epsilon(epsilon)?;
    Ok(array::returned(py, rounded_bits(py, &values, range(ends)?, epsilon, &seed)?))
}

fn rounded_bits(py: Python<'_>, values: &Floats<'_>, range: Range, epsilon: Epsilon, seed: &Seed) -> PyResult<Vec<u8>> {
    let values = values.as_slice()?;
    let mut bits = scalar::bytes(values.len())?;
    run(py, None, streaming_cost(40 * bits.len()), |run| {
        local::rounded_response(values, range, &mut bits, epsilon, seed, run)?;
        Ok(bits)
    })
}

/// Numbers as in respond_binary on a grid of 2^log2_steps, with "laplace" or "gaussian" noise of that scale.
#[pyfunction]
pub fn respond_noisy<'py>(
    py: Python<'py>,
    values: Floats<'py>,
    ends: Ends,
    log2_steps: u32,
    law: &Bound<'py, PyAny>,
    scale: Fraction,
    seed: Key,
) -> PyResult<Vector<'py, i64>> {
    let values = values.as_slice()?;
    let (range, make, scale) = (range(ends)?, integer_law(law)?, rational(scale));
    responses(py, values, seed, || local::noisy(range, log2_steps, make(&scale, values.len())))
}

/// The piecewise mechanism, on 2^log2_steps + length cells, of numbers as in respond_binary.
#[pyfunction]
pub fn respond_window<'py>(
    py: Python<'py>,
    values: Floats<'py>,
    ends: Ends,
    log2_steps: u32,
    length: u64,
    epsilon: &Bound<'py, PyAny>,
    seed: Key,
) -> PyResult<Vector<'py, i64>> {
    let window = Window::new(range(ends)?, log2_steps, length, scalar::epsilon(epsilon)?).map_err(raise)?;
    responses(py, values.as_slice()?, seed, || Ok(move |value, rng: &mut Rng| window.draw(value, rng)))
}

/// k-ary randomized response to integers in [0, k), int64 (n,); any other counts as the nearer end.
#[pyfunction]
pub fn respond_kary<'py>(
    py: Python<'py>,
    values: Integers<'py>,
    k: u64,
    epsilon: &Bound<'py, PyAny>,
    seed: Key,
) -> PyResult<Vector<'py, i64>> {
    let kary = Kary::new(k, scalar::epsilon(epsilon)?).map_err(raise)?;
    responses(py, values.as_slice()?, seed, || Ok(move |value, rng: &mut Rng| kary.draw(value, rng)))
}

/// Hadamard response, in blocks of 2^log2_size columns, to integers as in respond_kary.
#[pyfunction]
pub fn respond_hadamard<'py>(
    py: Python<'py>,
    values: Integers<'py>,
    k: u32,
    blocks: u32,
    log2_size: u32,
    epsilon: &Bound<'py, PyAny>,
    seed: Key,
) -> PyResult<Vector<'py, i64>> {
    let hadamard = Hadamard::new(k, blocks, log2_size, scalar::epsilon(epsilon)?).map_err(raise)?;
    responses(py, values.as_slice()?, seed, || Ok(move |value, rng: &mut Rng| hadamard.draw(value, rng)))
}

fn responses<'py, I: Copy + Sync, D: Fn(I, &mut Rng) -> i64 + Sync + Send>(
    py: Python<'py>,
    values: &[I],
    seed: Key,
    law: impl FnOnce() -> Result<D> + Send,
) -> PyResult<Vector<'py, i64>> {
    let mut drawn: Vec<i64> = zeros(Some(values.len())).map_err(raise)?;
    let drawn = run(py, None, DRAW * values.len() as f64, |run| {
        draws_for(values, &mut drawn, Stream::Response, &seed, run, law()?)?;
        Ok(drawn)
    })?;
    Ok(array::returned(py, drawn))
}

/// The probability with which randomized response tells the truth: numerator of a fraction over 2**64.
#[pyfunction]
pub fn truth_probability(epsilon: &Bound<'_, PyAny>) -> PyResult<u64> {
    Ok(local::truth_probability(scalar::epsilon(epsilon)?).0)
}

/// That of drawing from `kept` outcomes, and else from `all` including them.
#[pyfunction]
pub fn keep_probability(epsilon: &Bound<'_, PyAny>, kept: u64, all: u64) -> PyResult<u64> {
    Ok(local::keep_probability(scalar::epsilon(epsilon)?, kept, all).0)
}
