//! Arrays of 0 and 1, or of fractions: read where they stand if each entry is a byte, else by chunks that are copied.

use hdp_fast_core::error::Error;
use hdp_fast_core::noise::CHUNK;
use hdp_fast_core::run::Run;
use numpy::ndarray::s;
use numpy::{PyArray1, PyArrayDescrMethods, PyArrayMethods, PyUntypedArray, PyUntypedArrayMethods, dtype};
use pyo3::prelude::*;

use super::borrow::{Floats, in_use};
use super::check::{checked, shaped, wrong_type};
use super::entry::{Entry, split_row};
use super::{Vector, fresh};
use crate::run::{run, streaming_cost};
use crate::scalar::bytes;

/// A vector of 0/1 entries, a byte each, as a copy of our own.
pub fn bits(name: &str, value: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
    let array = checked(name, value, 1)?;
    let mut copy = bytes(array.len())?;
    read_bits(name, &array, &mut copy, |_, _, bits, copy| {
        copy.copy_from_slice(bits);
        are_bits(copy)
    })?;
    Ok(copy)
}

/// Refuses entries other than 0 and 1.
pub fn check_bits(name: &str, array: &Bound<'_, PyUntypedArray>) -> PyResult<()> {
    read_bits(name, array, &mut vec![(); array.len()], |_, _, bits, _| are_bits(bits))
}

/// A new array of numpy with what `answer(run, chunk, bits, answers)` makes of each chunk of [`CHUNK`] bits. It returns
/// false for bits that are neither 0 nor 1.
pub fn answered_bits<'py>(
    name: &str,
    array: &Bound<'py, PyUntypedArray>,
    answer: impl Fn(Run<'_>, usize, &[u8], &mut [u8]) -> bool + Sync + Send,
) -> PyResult<Vector<'py>> {
    fresh(array.py(), array.len(), |answers| read_bits(name, array, answers, answer))
}

fn are_bits(bits: &[u8]) -> bool {
    bits.iter().fold(0, |seen, bit| seen | bit) <= 1
}

/// Calls `act(run, chunk, bits, out)` for chunks of [`CHUNK`] entries and as many elements of `out`, whatever the type of
/// the entries. It returns false for bits that are neither 0 nor 1.
fn read_bits<T: Send>(
    name: &str,
    array: &Bound<'_, PyUntypedArray>,
    out: &mut [T],
    act: impl Fn(Run<'_>, usize, &[u8], &mut [T]) -> bool + Sync + Send,
) -> PyResult<()> {
    let array = &integral(array)?;
    macro_rules! read_as {
        ($($type:ty)*) => {$(
            if let Ok(array) = array.cast::<PyArray1<$type>>() {
                return read_entries(name, array, out, act);
            }
        )*};
    }
    read_as!(u8 i8 u16 i16 u32 i32 u64 i64);
    Err(wrong_type(name, array))
}

/// The array, or for bool its bytes, since not all of them need be 0 or 1.
pub fn integral<'py>(array: &Bound<'py, PyUntypedArray>) -> PyResult<Bound<'py, PyUntypedArray>> {
    if array.dtype().kind() != b'b' {
        return Ok(array.clone());
    }
    Ok(array.call_method1("view", (dtype::<u8>(array.py()),))?.cast_into()?)
}

/// What agents answer: bits, or fractions to be rounded to bits. Their values are checked when they are read.
pub enum Answers<'py> {
    /// Integers of some type.
    Bits(Bound<'py, PyUntypedArray>),
    Fractions(Floats<'py>),
}

/// A vector of integers, or one of floats.
pub fn answers<'py>(name: &str, value: &Bound<'py, PyAny>) -> PyResult<Answers<'py>> {
    let array = shaped(name, value, 1)?;
    if array.dtype().kind() != b'f' {
        return checked(name, &array, 1).map(Answers::Bits);
    }
    let numpy = value.py().import("numpy")?;
    let floats: Floats<'py> = numpy.call_method1("require", (array, "f8", "CA"))?.extract()?;
    Ok(Answers::Fractions(floats))
}

fn read_entries<E: Entry, T: Send>(
    name: &str,
    array: &Bound<'_, PyArray1<E>>,
    out: &mut [T],
    act: impl Fn(Run<'_>, usize, &[u8], &mut [T]) -> bool + Sync + Send,
) -> PyResult<()> {
    let readable = array.try_readonly().map_err(in_use)?;
    let view = readable.as_array();
    run(array.py(), None, streaming_cost(view.len() * (2 + size_of::<E>())), |run| {
        run.try_for_each_chunk(out, CHUNK, |chunk, out| {
            let entries = view.slice(s![chunk * CHUNK..chunk * CHUNK + out.len()]);
            let right = match E::as_bytes(&entries) {
                Some(bits) => act(run, chunk, bits, out),
                None => {
                    let mut bits = [0; CHUNK];
                    let bits = &mut bits[..out.len()];
                    !split_row(entries, bits) && act(run, chunk, bits, out)
                }
            };
            if right { Ok(()) } else { Err(Error::not_bits(name)) }
        })
    })
}

/// Entries that a thread copies at a time.
pub const COPIED: usize = 1 << 16;
