//! Checked scalars: every public entry takes these, so that no mechanism runs on nonsense.

use crate::error::{Error, Result};

/// A privacy parameter: finite and positive.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Epsilon(f64);

impl Epsilon {
    /// Checks `epsilon > 0` and finite.
    pub fn new(value: f64) -> Result<Epsilon> {
        if value.is_finite() && value > 0.0 {
            Ok(Epsilon(value))
        } else {
            Err(Error::parameter("epsilon", value, "it must be a finite number above 0"))
        }
    }

    /// The value.
    pub fn get(self) -> f64 {
        self.0
    }

    /// The value for formulas in exp(epsilon): capped where a larger one could change no coin of 64 bits.
    pub fn capped(self) -> f64 {
        self.0.min(60.0)
    }
}

/// A probability or error strictly between 0 and `limit`.
pub fn fraction(name: &str, value: f64, limit: f64) -> Result<f64> {
    if value > 0.0 && value < limit {
        Ok(value)
    } else {
        Err(Error::Parameter(format!("{name} = {value}, but it must lie strictly between 0 and {limit}")))
    }
}

/// Which pairs of data sets a guarantee speaks of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Neighbors {
    /// One record replaced by another; the number of records is public.
    ReplaceOne,
    /// One record added or removed.
    AddRemove,
}
