//! The private PARITY learner (Kasiviswanathan et al. 2011, Section 4, with the constants of a sharper analysis).
//!
//! Every mechanism is pure epsilon-DP and exact: its coins are multiples of 2^-64 rounded in the safe direction.

mod learn;
mod plan;
mod rates;

pub use learn::{Examples, Mechanism, learn};
pub use plan::{Method, Plan, Target, plan, plan_uniform_target, promise};
pub use rates::{base_rate, loop_rate};
