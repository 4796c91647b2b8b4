//! Scalars that are valid by construction: mechanisms take these, so that none runs on nonsense.
//!
//! # Examples
//!
//! ```
//! use hdp_fast_core::params::{Epsilon, fraction};
//!
//! assert_eq!(Epsilon::new(0.5)?.get(), 0.5);
//! assert!(Epsilon::new(f64::INFINITY).is_err());
//! assert_eq!(fraction("delta", 1e-6, 1.0)?, 1e-6);
//! assert!(fraction("alpha", 0.5, 0.5).is_err());
//! # Ok::<(), hdp_fast_core::Error>(())
//! ```

use crate::error::{Error, Result};

/// The privacy parameter epsilon: a finite number above 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Epsilon(f64);

impl Epsilon {
    /// Refuses a value that is not finite or not above 0.
    pub fn new(value: f64) -> Result<Epsilon> {
        if value.is_finite() && value > 0.0 {
            Ok(Epsilon(value))
        } else {
            Err(Error::parameter("epsilon", value, "it must be a finite number above 0"))
        }
    }

    /// The value as a float.
    pub fn get(self) -> f64 {
        self.0
    }

    /// The value for formulas in exp(epsilon), cut at 60: a larger one could change no probability that is a multiple
    /// of 2^-64.
    pub fn capped(self) -> f64 {
        self.0.min(60.0)
    }
}

/// Returns a probability or an error rate if it lies strictly between 0 and `limit`, and refuses it otherwise.
pub fn fraction(name: &str, value: f64, limit: f64) -> Result<f64> {
    if value > 0.0 && value < limit {
        Ok(value)
    } else {
        Err(Error::Parameter(format!("{name} = {value}, but it must lie strictly between 0 and {limit}")))
    }
}

/// The pairs of data sets for which a guarantee holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Neighbors {
    /// One record is replaced by another; the number of records is public.
    ReplaceOne,
    /// One record is added or removed; the number of records is private.
    AddRemove,
}
