//! Vectors of numpy, borrowed by its rules.

use hdp_fast_core::error::Error;
use numpy::{BorrowError, Element, PyArray1, PyArrayMethods, PyReadonlyArray1, PyReadwriteArray1};
use pyo3::Borrowed;
use pyo3::prelude::*;

use crate::error::raise;

/// A contiguous vector of numpy, to read.
pub struct ToRead<'py, T: Element>(PyReadonlyArray1<'py, T>);

impl<'a, 'py, T: Element + 'a> FromPyObject<'a, 'py> for ToRead<'py, T> {
    type Error = PyErr;

    fn extract(value: Borrowed<'a, 'py, PyAny>) -> PyResult<ToRead<'py, T>> {
        value.cast::<PyArray1<T>>()?.try_readonly().map(ToRead).map_err(in_use)
    }
}

impl<T: Element> ToRead<'_, T> {
    /// The entries.
    pub fn as_slice(&self) -> PyResult<&[T]> {
        Ok(self.0.as_slice()?)
    }
}

/// A contiguous float64 vector of numpy, to write.
pub struct FloatsToWrite<'py>(PyReadwriteArray1<'py, f64>);

impl<'a, 'py> FromPyObject<'a, 'py> for FloatsToWrite<'py> {
    type Error = PyErr;

    fn extract(value: Borrowed<'a, 'py, PyAny>) -> PyResult<FloatsToWrite<'py>> {
        value.cast::<PyArray1<f64>>()?.try_readwrite().map(FloatsToWrite).map_err(in_use)
    }
}

impl FloatsToWrite<'_> {
    /// The entries.
    pub fn as_slice_mut(&mut self) -> PyResult<&mut [f64]> {
        Ok(self.0.as_slice_mut()?)
    }
}

/// The error of an array that a call of another thread writes, or reads while this one would write it.
pub fn in_use(_: BorrowError) -> PyErr {
    raise(Error::Parameter("an array is in use by another call, but none may be written while it is read".into()))
}

/// int64, to read.
pub type Integers<'py> = ToRead<'py, i64>;

/// int16, to read.
pub type ShortIntegers<'py> = ToRead<'py, i16>;

/// float64, to read.
pub type Floats<'py> = ToRead<'py, f64>;

/// float32, to read.
pub type SingleFloats<'py> = ToRead<'py, f32>;

/// uint8, to read.
pub type Bits<'py> = ToRead<'py, u8>;

/// uint32, to read.
pub type Counts<'py> = ToRead<'py, u32>;

/// uint64, to read.
pub type Weights<'py> = ToRead<'py, u64>;
