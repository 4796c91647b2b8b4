//! Why a device refuses, in words for the person who holds it.

use alloc::string::String;
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
    #[cold]
    pub fn new(name: &str, rule: &str) -> Refusal {
        Refusal { name: name.into(), rule: rule.into() }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.rule)
    }
}

impl core::error::Error for Refusal {}

/// Refuses unless a condition holds.
pub(crate) fn require(holds: bool, name: &str, rule: &str) -> Result<()> {
    if holds { Ok(()) } else { Err(Refusal::new(name, rule)) }
}

/// Both ends of an interval that has a width.
pub(crate) fn interval(low: f64, high: f64, name: &str) -> Result<(f64, f64)> {
    require(low < high && (high - low).is_finite(), name, "low must be below high, their difference finite")?;
    Ok((low, high))
}
