//! The private PARITY learner (Kasiviswanathan et al. 2011, Section 4, with the constants of a sharper analysis).
//!
//! Every mechanism is pure epsilon-DP and exact: its coins have probabilities that are multiples of 2^-64, rounded in
//! the direction that protects. The page `parities` under docs/theory has the proofs.
//!
//! # Examples
//!
//! How many records must there be, at ten thousand unknown bits, for a hypothesis that is wrong on at most 5 % of all
//! records? The front page of this crate shows how to learn from them.
//!
//! ```
//! use hdp_fast_core::params::{Epsilon, Neighbors};
//! use hdp_fast_core::parity::{Method, Target, loop_rate, plan};
//!
//! let (epsilon, neighbors) = (Epsilon::new(1.0)?, Neighbors::ReplaceOne);
//! let target = Target { unknowns: 10_000, alpha: 0.05, beta: 0.05, epsilon, neighbors };
//! let sharp = plan(&target, Method::Loop)?;
//! let printed = plan(&target, Method::Paper)?;
//! assert_eq!((sharp.n, printed.n), (330_555, 83_204_509));
//!
//! // A try samples each record with probability p, the largest for which the learner is epsilon-DP.
//! let give_up = sharp.g.unwrap();
//! assert_eq!(sharp.p, loop_rate(epsilon, give_up, neighbors));
//! # Ok::<(), hdp_fast_core::Error>(())
//! ```

mod learn;
mod plan;
mod rates;

pub use learn::{Examples, Mechanism, Part, Records, learn, learn_from};
pub use plan::{Method, Plan, Target, plan, plan_uniform_target, promise};
pub use rates::{base_rate, loop_rate};
