//! The causes of failure, each with a message that names the argument, its value and the rule.
//!
//! # Examples
//!
//! Callers tell causes apart by the variant and show the message to people.
//!
//! ```
//! use hdp_fast_core::Error;
//! use hdp_fast_core::params::Epsilon;
//!
//! let error = Epsilon::new(-1.0).unwrap_err();
//! assert!(matches!(error, Error::Parameter(_)));
//! assert_eq!(error.to_string(), "epsilon = -1, but it must be finite and above 0");
//! ```

use std::fmt;

/// Why a call could not be carried out. It never depends on private values beyond shape, type, domain and number of
/// records.
#[derive(Clone, Debug, PartialEq)]
pub enum Error {
    /// The shapes of two arguments do not fit together.
    Shape(String),
    /// A value lies outside the domain of its argument.
    Parameter(String),
    /// There are fewer records than the plan needs.
    InsufficientSamples(String),
    /// The caller asked to stop.
    Canceled,
    /// The operating system gave no entropy or no thread.
    System(String),
    /// An allocation of this many bytes failed.
    Memory(usize),
}

/// The result of a fallible operation of this crate.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// The error for a value outside its domain, with the message "`name` = `value`, but `rule`".
    pub fn parameter(name: &str, value: impl fmt::Display, rule: &str) -> Error {
        Error::Parameter(format!("{name} = {value}, but {rule}"))
    }

    /// The error for an array of bits that holds something else. It may be private: neither place nor value is told.
    pub fn not_bits(name: &str) -> Error {
        Error::Parameter(format!("{name} holds something else, but every entry must be 0 or 1"))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Shape(text) | Error::Parameter(text) | Error::InsufficientSamples(text) | Error::System(text) => {
                f.write_str(text)
            }
            Error::Memory(bytes) => write!(f, "{bytes} bytes are not available"),
            Error::Canceled => f.write_str("canceled by the caller"),
        }
    }
}

impl std::error::Error for Error {}
