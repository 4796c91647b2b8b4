//! Local randomizers: what one person's device answers.
//!
//! Each answers with integers, none of which is more than e^epsilon times as likely for one value as for another, unless
//! noise says otherwise; probabilities are multiples of 2^-64, rounded towards the flatter law.

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

/// The probability of drawing from `kept` outcomes, and else from `all` including them, that makes each of them e^epsilon
/// times as likely as any other, rounded down to a multiple of 2^-64; 0 < kept <= all.
pub fn keep_probability(epsilon: Epsilon, kept: u64, all: u64) -> Fixed {
    let odds = epsilon.capped().exp_m1() * (kept as f64 / all as f64);
    Fixed::certainly_below(odds / (1.0 + odds))
}
