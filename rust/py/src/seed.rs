//! The random bits of a call.

use std::ops::Deref;

use hdp_fast_core::noise::Seed;
use pyo3::Borrowed;
use pyo3::prelude::*;

use crate::error::raise;

/// The argument `seed`: 32 bytes give the same random bits again, None those of the operating system.
pub struct Key(Seed);

impl Key {
    /// That of the operating system.
    pub fn from_os() -> PyResult<Key> {
        Seed::from_os().map(Key).map_err(raise)
    }
}

impl<'a, 'py> FromPyObject<'a, 'py> for Key {
    type Error = PyErr;

    fn extract(value: Borrowed<'a, 'py, PyAny>) -> PyResult<Key> {
        match value.extract::<Option<[u8; 32]>>()? {
            None => Key::from_os(),
            Some(bytes) => Ok(Key(Seed::reproducible(bytes))),
        }
    }
}

impl Deref for Key {
    type Target = Seed;

    fn deref(&self) -> &Seed {
        &self.0
    }
}

/// Made before all classes, for which PyO3 needs hash maps: without entropy those panic, and this is an OSError.
#[pymodule]
pub mod entropy {
    use super::*;

    #[pymodule_init]
    fn require() -> PyResult<()> {
        Seed::from_os().map(drop).map_err(raise)
    }
}
