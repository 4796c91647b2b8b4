//! Local randomisers: what one person's device answers.
//!
//! Each draws from a finite mixture of laws on integers in which no outcome is more than e^epsilon times as likely for one
//! value as for another; probabilities are multiples of 2^-64, rounded towards the flatter law.

mod binary;
mod hadamard;
mod kary;
mod range;
mod window;

use crate::noise::Fixed;
use crate::params::Epsilon;

pub use binary::{randomized_response, rounded_response, truth_probability};
pub use hadamard::Hadamard;
pub use kary::Kary;
pub use range::{Range, noisy};
pub use window::Window;

/// The probability of `inside` outcomes together if each is e^epsilon times as likely as each of `outside` others, rounded
/// down to a multiple of 2^-64; both counts positive and below 2^62.
pub fn inside_probability(epsilon: Epsilon, inside: u64, outside: u64) -> Fixed {
    let others = outside as f64 / inside as f64 * (-epsilon.capped()).exp();
    Fixed::certainly_below(1.0 / (1.0 + others))
}
