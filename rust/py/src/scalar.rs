//! The door for scalars: whatever Python hands over becomes a checked number or one clear error.

use hdp_fast_core::error::Error;
use hdp_fast_core::memory::zeros;
use hdp_fast_core::params::{Epsilon, POSITIVE};
use num_bigint::BigInt;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyList, PyString, PyTuple};

use crate::error::{parameter, raise};

/// A real number; NaN and infinities are left to the rule of the argument. A bool is none.
pub fn number(name: &str, value: &Bound<'_, PyAny>) -> PyResult<f64> {
    let number = if is_bool(value) || is_no_real(value) { None } else { value.extract().ok() };
    number.ok_or_else(|| parameter(name, show(value), "it must be a real number"))
}

/// Whether a value is one of two that Python converts with a warning alone: numpy's complex numbers, of which it drops
/// the imaginary part, and masked entries, which it makes NaN.
fn is_no_real(value: &Bound<'_, PyAny>) -> bool {
    let kind = value.getattr("dtype").and_then(|dtype| dtype.getattr("kind"));
    kind.is_ok_and(|kind| kind.eq("c").unwrap_or(false)) || value.hasattr("_mask").unwrap_or(false)
}

/// Whether a value is a bool of Python or numpy, both of which convert to the numbers 1 and 0.
fn is_bool(value: &Bound<'_, PyAny>) -> bool {
    let of_numpy = |name: Bound<'_, PyString>| name.to_str().is_ok_and(|name| ["bool", "bool_"].contains(&name));
    value.is_instance_of::<PyBool>() || value.get_type().name().is_ok_and(of_numpy)
}

/// An integer of at least `least` and below 2^63.
pub fn count(name: &str, value: &Bound<'_, PyAny>, least: usize) -> PyResult<usize> {
    let count = if is_bool(value) { None } else { value.extract::<usize>().ok() };
    count.filter(|&count| (least..1 << 63).contains(&count)).ok_or_else(|| {
        let is_large = value.extract().is_ok_and(|integer: BigInt| integer >= BigInt::from(1u64 << 63));
        let rule = if is_large { "an integer below 2**63".into() } else { format!("an integer of at least {least}") };
        parameter(name, show(value), &format!("it must be {rule}"))
    })
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

/// A privacy parameter. Of a text the package says that it breaks the same rule.
pub fn epsilon(value: &Bound<'_, PyAny>) -> PyResult<Epsilon> {
    let is_text = value.is_instance_of::<PyString>() || value.is_instance_of::<PyBytes>();
    let epsilon = Epsilon::new(if is_text { f64::NAN } else { number("epsilon", value)? });
    epsilon.map_err(|_| parameter("epsilon", show(value), POSITIVE))
}

/// Zero bytes, or MemoryError.
pub fn bytes(count: usize) -> PyResult<Vec<u8>> {
    zeros(Some(count)).map_err(raise)
}

/// The value as `shorten` of the package shows it, which a test compares: cut where it is long; of an array, which may
/// be private, its shape.
fn show(value: &Bound<'_, PyAny>) -> String {
    let kind = || value.get_type().name().map_or_else(|_| "?".into(), |name| name.to_string());
    if let Some(shape) = value.getattr("shape").ok().filter(is_shape) {
        return format!("{} of shape {shape}", kind());
    }
    if holds_arrays(value, 3) {
        return format!("{} of arrays", kind());
    }
    // There is none of an int of more digits than Python prints.
    let whole = value.repr().map_or_else(|_| format!("{} of thousands of digits", kind()), |text| text.to_string());
    match whole.char_indices().nth(80) {
        Some((end, _)) => format!("{}...", &whole[..end]),
        None => whole,
    }
}

/// Whether an array stands in lists, tuples or dicts, so many levels deep. Its entries may be private.
fn holds_arrays(value: &Bound<'_, PyAny>, levels: usize) -> bool {
    let items = match value.cast::<PyDict>() {
        Ok(dict) => dict.values().into_any(),
        Err(_) if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() => value.clone(),
        Err(_) => return false,
    };
    let is_array = |item: &Bound<'_, PyAny>| item.getattr("shape").is_ok_and(|shape| is_shape(&shape));
    items.try_iter().is_ok_and(|mut items| {
        items.any(|item| item.is_ok_and(|item| is_array(&item) || levels > 1 && holds_arrays(&item, levels - 1)))
    })
}

fn is_shape(shape: &Bound<'_, PyAny>) -> bool {
    shape.cast::<PyTuple>().is_ok_and(|shape| !shape.is_empty())
}

/// The error of a plan whose fields are not those that plan() made.
pub fn not_a_plan(_: PyErr) -> PyErr {
    raise(Error::Parameter("plan has a field out of range, but it must come from plan()".into()))
}
