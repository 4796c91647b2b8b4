//! The causes of failure, each naming the argument, its value and the rule.

use std::fmt;

/// Why a call could not be carried out. Never depends on private values beyond shape, dtype, domain and n.
#[derive(Clone, Debug, PartialEq)]
pub enum Error {
    /// Shapes of arguments that do not fit together.
    Shape(String),
    /// A value outside the domain of its argument.
    Parameter(String),
    /// Fewer records than the plan needs.
    InsufficientSamples(String),
    /// The caller asked to stop.
    Canceled,
    /// The operating system gave no entropy or no thread.
    System(String),
    /// There is no room for so many bytes.
    Memory(usize),
}

/// Result of a fallible operation of this crate.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// A value outside its domain: `name` = `value`, but `rule`.
    pub fn parameter(name: &str, value: impl fmt::Display, rule: &str) -> Error {
        Error::Parameter(format!("{name} = {value}, but {rule}"))
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
