//! What is no array of numbers of the right shape, refused.

use hdp_fast_core::error::Error;
use numpy::{PyArrayDescrMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use crate::error::{parameter, raise};

/// Refuses a list of masked arrays, whose masks numpy would drop in silence.
fn refuse_masked_rows(name: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
    if !value.is_instance_of::<PyList>() && !value.is_instance_of::<PyTuple>() {
        return Ok(());
    }
    let masked = value.py().import("numpy.ma")?.getattr("MaskedArray")?;
    for row in value.try_iter()? {
        if row?.is_instance(&masked)? {
            return Err(masked_array(name));
        }
    }
    Ok(())
}

fn masked_array(name: &str) -> PyErr {
    parameter(name, "masked array", "masked entries are neither 0 nor 1: fill them first")
}

/// The value as an array of so many dimensions.
pub fn shaped<'py>(name: &str, value: &Bound<'py, PyAny>, dimensions: usize) -> PyResult<Bound<'py, PyUntypedArray>> {
    let numpy = value.py().import("numpy")?;
    refuse_masked_rows(name, value)?;
    let untouched = numpy.call_method1("asanyarray", (value,));
    let array = untouched.map_err(|_| parameter(name, value.get_type(), "it must be an array of 0 and 1"))?;
    let array = array.cast_into::<PyUntypedArray>()?;
    if array.hasattr("mask")? {
        return Err(masked_array(name));
    }
    if array.ndim() != dimensions {
        let shape = array.getattr("shape")?;
        return Err(raise(Error::Shape(format!(
            "{name} has shape {shape}, but it must have {dimensions} dimension(s)"
        ))));
    }
    // An empty list is an array of floats, and yet holds nothing but bits.
    if array.len() == 0 {
        return Ok(numpy.call_method1("zeros", (array.getattr("shape")?, "uint8"))?.cast_into()?);
    }
    Ok(array)
}

/// The value as an array of integers, aligned and in the machine's byte order.
pub fn checked<'py>(name: &str, value: &Bound<'py, PyAny>, dimensions: usize) -> PyResult<Bound<'py, PyUntypedArray>> {
    let numpy = value.py().import("numpy")?;
    let array = shaped(name, value, dimensions)?;
    if !matches!(array.dtype().kind(), b'b' | b'i' | b'u') {
        return Err(wrong_type(name, &array));
    }
    // A byte has no order and needs no alignment.
    if array.dtype().itemsize() == 1 {
        return Ok(array);
    }
    let native = array.dtype().call_method1("newbyteorder", ("=",))?;
    Ok(numpy.call_method1("require", (array, native, "A"))?.cast_into()?)
}

pub fn wrong_type(name: &str, array: &Bound<'_, PyUntypedArray>) -> PyErr {
    let rule = "its dtype must be bool or an integer type, as after .astype('uint8'), and every entry 0 or 1";
    parameter(name, format!("array of {}", array.dtype()), rule)
}
