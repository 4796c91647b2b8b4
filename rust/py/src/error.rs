//! Causes of failure as the exceptions of `hdp_fast.exceptions`.

use hdp_fast_core::Error;
use hdp_fast_device::Refusal;
use pyo3::exceptions::{PyKeyboardInterrupt, PyMemoryError, PyOSError};
use pyo3::prelude::*;

/// The exception of a cause. A function, not `From`: the orphan rule forbids that here.
pub fn raise(cause: Error) -> PyErr {
    let (name, text) = match cause {
        Error::Shape(text) => ("ShapeError", text),
        Error::Parameter(text) => ("ParameterError", text),
        Error::InsufficientSamples(text) => ("InsufficientSamples", text),
        Error::Canceled => return PyKeyboardInterrupt::new_err(()),
        Error::System(text) => return PyOSError::new_err(text),
        Error::Memory(bytes) => return PyMemoryError::new_err(format!("{bytes} bytes are not available")),
    };
    // Defined in Python, where users read and catch them.
    Python::attach(|py| match py.import("hdp_fast.exceptions").and_then(|module| module.getattr(name)) {
        Ok(class) => match class.call1((text,)) {
            Ok(value) => PyErr::from_value(value),
            Err(error) => error,
        },
        Err(error) => error,
    })
}

/// A value outside the domain of its argument.
pub fn parameter(name: &str, value: impl std::fmt::Display, rule: &str) -> PyErr {
    raise(Error::parameter(name, value, rule))
}

/// What the device's code refuses.
pub fn raise_refusal(refusal: Refusal) -> PyErr {
    raise(Error::Parameter(refusal.to_string()))
}
