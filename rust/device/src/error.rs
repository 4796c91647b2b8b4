//! Why a device refuses, in words for the person who holds it.

use alloc::string::{String, ToString};
use core::fmt;

/// What a device refuses, and the rule that it breaks. It is decided before anything is drawn, and depends on the question,
/// the invitation and what a person typed, never on the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The field, the argument or the input.
    pub name: String,
    /// What it must be.
    pub rule: String,
}

/// The result of what a device may refuse.
pub type Result<T> = core::result::Result<T, Refusal>;

impl Refusal {
    /// Refuses what bears a name, since it breaks a rule.
    pub fn new(name: impl ToString, rule: impl ToString) -> Refusal {
        Refusal { name: name.to_string(), rule: rule.to_string() }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.rule)
    }
}

impl core::error::Error for Refusal {}
