//! Glue of `hdp_fast.local`.

use hdp_fast_core::local;
use pyo3::prelude::*;

use crate::array::{self, Vector};
use crate::noise::seed;
use crate::run::{run, streaming_cost};
use crate::scalar;

/// Binary randomised response: each bit kept with probability e^epsilon / (1 + e^epsilon), flipped otherwise.
///
/// bits: 0/1 array (n,); epsilon > 0; random_state: None draws from the operating system, an int or a numpy Generator
/// makes a reproducible test stream that protects nobody who knows it. Returns uint8 (n,).
///
/// Guarantee: pure epsilon-DP for each bit, whatever the others are; exact coins, the probability rounded towards 1/2.
/// Raises: ShapeError, ParameterError.
/// Cost: O(n), little more than a byte of the random stream a bit.
/// Source: Warner 1965; binary, and hence with less noise than the Gaussian of Kohen and Sheffet.
#[pyfunction]
#[pyo3(signature = (bits, *, epsilon, random_state=None))]
pub fn randomized_response<'py>(
    py: Python<'py>,
    bits: &Bound<'py, PyAny>,
    epsilon: &Bound<'py, PyAny>,
    random_state: Option<&Bound<'py, PyAny>>,
) -> PyResult<Vector<'py>> {
    let epsilon = scalar::epsilon(epsilon)?;
    let mut bits = array::bits("bits", bits)?;
    let seed = seed(py, random_state)?;
    let responses = run(py, None, streaming_cost(16 * bits.len()), |run| {
        local::randomized_response(&mut bits, epsilon, &seed, run)?;
        Ok(bits)
    })?;
    Ok(array::returned(py, responses))
}

/// The probability with which randomised response tells the truth: numerator of a fraction over 2**64.
#[pyfunction]
pub fn truth_probability(epsilon: &Bound<'_, PyAny>) -> PyResult<u64> {
    Ok(local::truth_probability(scalar::epsilon(epsilon)?).0)
}
