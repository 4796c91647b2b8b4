//! Glue of `hdp_fast.local`.

use hdp_fast_core::local::{self, Categories, Geometry, Kary, Range, Selection, Space, Subsets, Window};
use hdp_fast_core::noise::{Seed, Stream, draws_for};
use pyo3::prelude::*;

use crate::array::{self, Answers, Floats, Integers, Vector, filled, returned};
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
pub fn check_bits(py: Python<'_>, bits: &Bound<'_, PyAny>) -> PyResult<()> {
    match array::answers("bits", bits)? {
        Answers::Bits(bits) => array::check_bits("bits", &bits),
        Answers::Fractions(fractions) => {
            let fractions = fractions.as_slice()?;
            run(py, None, streaming_cost(size_of_val(fractions)), |run| local::check_fractions("bits", fractions, run))
        }
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
            array::answered_bits("bits", &bits, |run, chunk, bits, answers| {
                response.answer(chunk, bits, answers, &seed, run.isa)
            })
        }
        Answers::Fractions(fractions) => {
            let fractions = fractions.as_slice()?;
            filled(py, fractions.len(), streaming_cost(12 * fractions.len()), |answers, run| {
                local::fraction_response(fractions, answers, epsilon, &seed, run)
            })
        }
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
    let (values, range, epsilon) = (values.as_slice()?, range(ends)?, scalar::epsilon(epsilon)?);
    filled(py, values.len(), streaming_cost(12 * values.len()), |bits, run| {
        local::rounded_response(values, range, bits, epsilon, &seed, run)
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
    let values = values.as_slice()?;
    filled(py, values.len(), DRAW * values.len() as f64, |out, run| {
        draws_for(values, out, Stream::Response, &seed, run, |value, words, rng| window.draw(value, words, rng))
    })
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
    reports(py, values.as_slice()?, &seed, &kary)
}

/// Subset selection, to integers as in respond_kary, by sets of that width: all of them, or those of a modulus.
#[pyfunction]
#[pyo3(signature = (values, k, width, modulus, epsilon, seed))]
pub fn respond_subsets<'py>(
    py: Python<'py>,
    values: Integers<'py>,
    k: u32,
    width: u32,
    modulus: Option<u32>,
    epsilon: &Bound<'py, PyAny>,
    seed: Key,
) -> PyResult<Vector<'py, i64>> {
    let (sets, epsilon) = (subsets(k, width, modulus)?, scalar::epsilon(epsilon)?);
    reports(py, values.as_slice()?, &seed, &Selection::new(u64::from(k), sets, epsilon).map_err(raise)?)
}

/// How many of the reports that were counted so hold each value: int64 (k,).
#[pyfunction]
#[pyo3(signature = (counts, k, width, modulus))]
pub fn add_subsets<'py>(
    py: Python<'py>,
    counts: Integers<'py>,
    k: u32,
    width: u32,
    modulus: Option<u32>,
) -> PyResult<Vector<'py, i64>> {
    let (sets, counts) = (subsets(k, width, modulus)?, counts.as_slice()?);
    let held = run(py, None, streaming_cost(size_of_val(counts)), |run| sets.add_up(counts, k as usize, run))?;
    Ok(returned(py, held))
}

fn subsets(k: u32, width: u32, modulus: Option<u32>) -> PyResult<Subsets> {
    modulus.map_or_else(|| Subsets::all(k, width), |modulus| Subsets::progressions(modulus, width)).map_err(raise)
}

/// Projective geometry response, in a space of so many coordinates over a field of q elements, to integers as in
/// respond_kary.
#[pyfunction]
pub fn respond_geometry<'py>(
    py: Python<'py>,
    values: Integers<'py>,
    k: u64,
    q: u32,
    dimension: u32,
    epsilon: &Bound<'py, PyAny>,
    seed: Key,
) -> PyResult<Vector<'py, i64>> {
    let (space, epsilon) = (Space::new(q, dimension).map_err(raise)?, scalar::epsilon(epsilon)?);
    reports(py, values.as_slice()?, &seed, &Geometry::new(k, space, epsilon).map_err(raise)?)
}

/// How many of the reports that were counted so lie on the hyperplane of each value: int64 (k,).
#[pyfunction]
pub fn add_geometry<'py>(
    py: Python<'py>,
    counts: Integers<'py>,
    k: usize,
    q: u32,
    dimension: u32,
) -> PyResult<Vector<'py, i64>> {
    let (space, counts) = (Space::new(q, dimension).map_err(raise)?, counts.as_slice()?);
    let cost = streaming_cost(size_of_val(counts)) * f64::from(q) * f64::from(dimension);
    let held = run(py, None, cost, |run| space.add_up(counts, k, run))?;
    Ok(returned(py, held))
}

fn reports<'py>(
    py: Python<'py>,
    values: &[i64],
    seed: &Seed,
    categories: &(impl Categories + Send),
) -> PyResult<Vector<'py, i64>> {
    let cost = streaming_cost(2 * size_of_val(values));
    filled(py, values.len(), cost, |out, run| local::report(categories, values, out, seed, run))
}

/// How often each of 0, ..., size - 1 occurs: int64 (size,); None if there is any other number.
#[pyfunction]
pub fn count_reports<'py>(py: Python<'py>, reports: Integers<'py>, size: usize) -> PyResult<Option<Vector<'py, i64>>> {
    let reports = reports.as_slice()?;
    let counts = run(py, None, streaming_cost(size_of_val(reports)), |run| local::count_reports(reports, size, run))?;
    Ok(counts.map(|counts| returned(py, counts)))
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
