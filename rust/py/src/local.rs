//! Glue of `hdp_fast.local`.

use hdp_fast_core::local;
use pyo3::prelude::*;

use crate::array::{self, Answers, Vector};
use crate::noise::seed;
use crate::run::{run, streaming_cost};
use crate::scalar;

/// Refuses what randomized_response would refuse as its bits.
#[pyfunction]
pub fn check_bits(bits: &Bound<'_, PyAny>) -> PyResult<()> {
    array::answers("bits", bits).map(drop)
}

/// Binary randomised response; the documentation is that of hdp_fast.local.randomized_response.
#[pyfunction]
#[pyo3(signature = (bits, *, epsilon, random_state=None))]
pub fn randomized_response<'py>(
    py: Python<'py>,
    bits: &Bound<'py, PyAny>,
    epsilon: &Bound<'py, PyAny>,
    random_state: Option<&Bound<'py, PyAny>>,
) -> PyResult<Vector<'py>> {
    let epsilon = scalar::epsilon(epsilon)?;
    let answers = array::answers("bits", bits)?;
    let seed = seed(py, random_state)?;
    let responses = match answers {
        Answers::Bits(mut bits) => run(py, None, streaming_cost(16 * bits.len()), |run| {
            local::randomized_response(&mut bits, epsilon, &seed, run)?;
            Ok(bits)
        }),
        Answers::Fractions(fractions) => {
            let fractions = fractions.as_slice()?;
            let mut bits = scalar::bytes(fractions.len())?;
            run(py, None, streaming_cost(40 * bits.len()), |run| {
                local::rounded_response(fractions, &mut bits, epsilon, &seed, run)?;
                Ok(bits)
            })
        }
    }?;
    Ok(array::returned(py, responses))
}

/// The probability with which randomised response tells the truth: numerator of a fraction over 2**64.
#[pyfunction]
pub fn truth_probability(epsilon: &Bound<'_, PyAny>) -> PyResult<u64> {
    Ok(local::truth_probability(scalar::epsilon(epsilon)?).0)
}
