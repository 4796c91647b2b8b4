//! Glue of `hdp_fast.local`.

use hdp_fast_core::local::{self, Hadamard, Kary, Range, Window};
use hdp_fast_core::noise::{CHUNK, Rng, Seed, Stream, draws_for};
use hdp_fast_core::params::Epsilon;
use pyo3::prelude::*;

use crate::array::{self, Answers, Floats, Integers, Vector, filled};
use crate::error::raise;
use crate::noise::{DRAW, Fraction, integer_law, rational};
use crate::run::streaming_cost;
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
    match array::answers("bits", bits)? {
        Answers::Bits(bits) => array::changed_bits("bits", &bits, CHUNK, |_, _, _| Ok(())).map(drop),
        Answers::Fractions(_) => Ok(()),
    }
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
    match array::answers("bits", bits)? {
        Answers::Bits(bits) => {
            let response = local::BinaryResponse::new(epsilon);
            array::changed_bits("bits", &bits, CHUNK, |run, chunk, bits| {
                response.answer(chunk, bits, &seed, run.isa);
                Ok(())
            })
        }
        Answers::Fractions(fractions) => rounded_bits(py, &fractions, Range::UNIT, epsilon, &seed),
    }
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
    rounded_bits(py, &values, range(ends)?, scalar::epsilon(epsilon)?, &seed)
}

fn rounded_bits<'py>(
    py: Python<'py>,
    values: &Floats<'_>,
    range: Range,
    epsilon: Epsilon,
    seed: &Seed,
) -> PyResult<Vector<'py>> {
    let values = values.as_slice()?;
    filled(py, values.len(), streaming_cost(12 * values.len()), |bits, run| {
        local::rounded_response(values, range, bits, epsilon, seed, run)
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
    filled(py, values.len(), 2.0 * DRAW * values.len() as f64, |out, run| {
        local::noisy(values, range, log2_steps, make(&scale, values.len()).as_ref(), out, &seed, run)
    })
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
    responses(py, values.as_slice()?, &seed, |value, words, rng| window.draw(value, words, rng))
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
    responses(py, values.as_slice()?, &seed, |value, words, rng| kary.draw(value, words, rng))
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
    responses(py, values.as_slice()?, &seed, |value, words, rng| hadamard.draw(value, words, rng))
}

fn responses<'py, const WORDS: usize, I: Copy + Sync>(
    py: Python<'py>,
    values: &[I],
    seed: &Seed,
    draw: impl Fn(I, [u64; WORDS], &mut Rng) -> i64 + Sync + Send,
) -> PyResult<Vector<'py, i64>> {
    filled(py, values.len(), DRAW * values.len() as f64, |out, run| {
        draws_for(values, out, Stream::Response, seed, run, draw)
    })
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
