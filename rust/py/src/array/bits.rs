//! Arrays of 0 and 1, or of fractions, as copies of our own.

use hdp_fast_core::Result;
use hdp_fast_core::error::Error;
use hdp_fast_core::run::Run;
use numpy::ndarray::s;
use numpy::{PyArray1, PyArrayDescrMethods, PyArrayMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::prelude::*;

use super::borrow::{Floats, in_use};
use super::check::{checked, shaped, wrong_type};
use super::entry::{Entry, not_bits, split_row};
use super::{Vector, fresh};
use crate::error::raise;
use crate::run::{run, streaming_cost};
use crate::scalar::bytes;

/// A vector of 0/1 entries, a byte each, as a copy of our own.
pub fn bits(name: &str, value: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
    let array = checked(name, value, 1)?;
    let mut bits = bytes(array.len())?;
    copy_bits(name, &array, &mut bits, COPIED, |_, _, _| Ok(()))?;
    Ok(bits)
}

/// The same as an array of numpy, where `act(run, chunk, bits)` changes chunks of so many bits after they are copied.
pub fn changed_bits<'py>(
    name: &str,
    array: &Bound<'py, PyUntypedArray>,
    chunk: usize,
    act: impl Fn(Run<'_>, usize, &mut [u8]) -> Result<()> + Sync + Send,
) -> PyResult<Vector<'py>> {
    fresh(array.py(), array.len(), |bits| copy_bits(name, array, bits, chunk, act))
}

fn copy_bits(
    name: &str,
    array: &Bound<'_, PyUntypedArray>,
    out: &mut [u8],
    chunk: usize,
    act: impl Fn(Run<'_>, usize, &mut [u8]) -> Result<()> + Sync + Send,
) -> PyResult<()> {
    macro_rules! copied_from {
        ($($type:ty)*) => {$(
            if let Ok(array) = array.cast::<PyArray1<$type>>() {
                return copy_entries(name, array, out, chunk, act);
            }
        )*};
    }
    copied_from!(bool u8 i8 u16 i16 u32 i32 u64 i64);
    Err(wrong_type(name, array))
}

/// What agents answer: bits, or fractions to be rounded to bits.
pub enum Answers<'py> {
    /// Integers of some type, whose values are checked when they are copied.
    Bits(Bound<'py, PyUntypedArray>),
    Fractions(Floats<'py>),
}

/// A vector of 0/1 entries, or one of floats in [0, 1].
pub fn answers<'py>(name: &str, value: &Bound<'py, PyAny>) -> PyResult<Answers<'py>> {
    let array = shaped(name, value, 1)?;
    if array.dtype().kind() != b'f' {
        return checked(name, &array, 1).map(Answers::Bits);
    }
    let numpy = value.py().import("numpy")?;
    let floats: Floats<'py> = numpy.call_method1("require", (array, "f8", "CA"))?.extract()?;
    let values = floats.as_slice()?;
    let inside = |values: &[f64]| values.iter().fold(true, |all, value| all & (*value >= 0.0) & (*value <= 1.0));
    let (left, right) = values.split_at(values.len() / 2);
    let cost = streaming_cost(size_of_val(values));
    if run(value.py(), None, cost, |run| Ok(run.join(|| inside(left), || inside(right))))? != (true, true) {
        let text = format!("{name} holds something else, but every entry must lie in [0, 1]");
        return Err(raise(Error::Parameter(text)));
    }
    Ok(Answers::Fractions(floats))
}

fn copy_entries<T: Entry>(
    name: &str,
    array: &Bound<'_, PyArray1<T>>,
    out: &mut [u8],
    chunk: usize,
    act: impl Fn(Run<'_>, usize, &mut [u8]) -> Result<()> + Sync + Send,
) -> PyResult<()> {
    let readable = array.try_readonly().map_err(in_use)?;
    let view = readable.as_array();
    run(array.py(), None, streaming_cost(view.len() * (2 + size_of::<T>())), |run| {
        run.try_for_each_chunk(out, chunk, |number, bits| {
            let start = number * chunk;
            let wrong = split_row(view.slice(s![start..start + bits.len()]), bits);
            if wrong { Err(not_bits(name)) } else { act(run, number, bits) }
        })
    })
}

/// Entries that a thread copies at a time.
pub const COPIED: usize = 1 << 16;
