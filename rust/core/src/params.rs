//! Scalars that are valid by construction: mechanisms take these, so that none runs on nonsense.
//!
//! Rules that the Python package has, too, stand here once, in the words of `hdp_fast/_support/validate.py`: the same
//! mistake reads the same, whoever finds it. `tests/test_error_texts.py` holds both equal.
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
        positive("epsilon", value).map(Epsilon)
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

/// Returns a number if it is finite and above 0, and refuses it otherwise.
pub fn positive(name: &str, value: f64) -> Result<f64> {
    require(value > 0.0 && value < f64::INFINITY, name, value, POSITIVE)
}

/// The rule of [`positive`] in words.
pub const POSITIVE: &str = "it must be finite and above 0";

/// Returns a number if it is finite and at least 0, and refuses it otherwise.
pub fn nonnegative(name: &str, value: f64) -> Result<f64> {
    require((0.0..f64::INFINITY).contains(&value), name, value, "it must be finite and at least 0")
}

/// Returns a probability or a share if it lies in (0, 1\], and refuses it otherwise.
pub fn share(name: &str, value: f64) -> Result<f64> {
    require(value > 0.0 && value <= 1.0, name, value, "it must lie in (0, 1]")
}

/// Returns a count if it lies from 1 to `most`, and refuses it otherwise.
pub fn count(name: &str, value: u64, most: u64) -> Result<u64> {
    if (1..=most).contains(&value) { Ok(value) } else { Err(Error::parameter(name, value, &count_rule(most))) }
}

/// The rule of [`count`] in words.
pub fn count_rule(most: u64) -> String {
    format!("it must be an integer from 1 to {most}")
}

fn require(holds: bool, name: &str, value: f64, rule: &str) -> Result<f64> {
    if holds { Ok(value) } else { Err(Error::parameter(name, value, rule)) }
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
