//! The door for scalars: whatever Python hands over becomes a checked number or one clear error.

use hdp_fast_core::error::Error;
use hdp_fast_core::memory::zeros;
use hdp_fast_core::params::Epsilon;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyString};

use crate::error::{parameter, raise};

/// A real number; NaN and infinities are left to the rule of the argument. A bool is none.
pub fn number(name: &str, value: &Bound<'_, PyAny>) -> PyResult<f64> {
    let number = if is_bool(value) { None } else { value.extract().ok() };
    number.ok_or_else(|| parameter(name, show(value), "it must be a real number"))
}

/// Whether a value is a bool of Python or numpy, both of which convert to the numbers 1 and 0.
fn is_bool(value: &Bound<'_, PyAny>) -> bool {
    let of_numpy = |name: Bound<'_, PyString>| name.to_str().is_ok_and(|name| ["bool", "bool_"].contains(&name));
    value.is_instance_of::<PyBool>() || value.get_type().name().is_ok_and(of_numpy)
}

/// An integer of at least `least`.
pub fn count(name: &str, value: &Bound<'_, PyAny>, least: usize) -> PyResult<usize> {
    let count = if is_bool(value) { None } else { value.extract::<usize>().ok() };
    count
        .filter(|&count| count >= least)
        .ok_or_else(|| parameter(name, show(value), &format!("it must be an integer of at least {least}")))
}

/// One of a few words.
pub fn word<T: Copy>(name: &str, value: &Bound<'_, PyAny>, words: &[(&str, T)]) -> PyResult<T> {
    let text = value.extract::<String>().unwrap_or_default();
    let meaning = words.iter().find(|(word, _)| *word == text).map(|(_, meaning)| *meaning);
    meaning.ok_or_else(|| {
        let allowed: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        parameter(name, show(value), &format!("it must be one of {}", allowed.join(", ")))
    })
}

/// A privacy parameter.
pub fn epsilon(value: &Bound<'_, PyAny>) -> PyResult<Epsilon> {
    Epsilon::new(number("epsilon", value)?).map_err(raise)
}

/// Zero bytes, or MemoryError.
pub fn bytes(count: usize) -> PyResult<Vec<u8>> {
    zeros(Some(count)).map_err(raise)
}

/// The value as Python shows it, cut where it is long; of an array, which may be private, its shape.
fn show(value: &Bound<'_, PyAny>) -> String {
    if let Some(shape) = value.getattr("shape").ok().filter(|shape| shape.len().is_ok_and(|length| length > 0)) {
        return format!("{} of shape {shape}", value.get_type());
    }
    let whole = value.repr().map_or_else(|_| "?".into(), |text| text.to_string());
    match whole.char_indices().nth(80) {
        Some((end, _)) => format!("{}...", &whole[..end]),
        None => whole,
    }
}

/// The error of a plan whose fields are not those that plan() made.
pub fn not_a_plan(_: PyErr) -> PyErr {
    raise(Error::Parameter("plan has a field out of range, but it must come from plan()".into()))
}
