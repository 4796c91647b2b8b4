//! Stochastic gradient descent for linear models over a ball or a box, with or without noise that protects the records.
//!
//! # Examples
//!
//! Fifty steps with the hinge loss on toy records. The noise on the sum of 1000 clipped gradients has a standard
//! deviation of four times their largest norm.
//!
//! ```
//! use hdp_fast_core::noise::{Rational, Seed};
//! use hdp_fast_core::run::Run;
//! use hdp_fast_core::sgd::{Domain, Draws, Loss, Noise, Objective, Output, Plan, Records, learn};
//! use hdp_fast_core::simd::Isa;
//!
//! let records = Records::new(&[1.0, -1.0, 1.0], 1, &[1.0, -1.0, 1.0][..])?;
//! let plan = Plan {
//!     objective: Objective::Linear(Loss::Hinge(1.0)),
//!     steps: 50,
//!     batch_size: 1000,
//!     domain: Domain::Ball(1.0),
//!     output: Output::Mean,
//!     start: None,
//!     norm_bound: 1.0,
//!     clip_norm: 1.0,
//!     l1: 0.0,
//!     l2: 0.0,
//!     strong_convexity: 0.0,
//!     noise: Noise::Exact(Rational::from_integer(4_u32.into())),
//! };
//! let model = learn(records, Draws::Uniform, &plan, &Seed::from_os()?, Run::alone(Isa::detect()?))?;
//! assert!(model[0] > 0.9);
//! # Ok::<(), hdp_fast_core::Error>(())
//! ```

mod draws;
mod full_batch;
mod losses;
mod noise;
mod plan;
mod steps;

pub use draws::Draws;
pub use full_batch::{IntegerRecords, Path, Places, Steps, descend, limits};
pub use losses::{Loss, Objective};
pub use noise::{Noise, UNITS};
pub use plan::{Domain, Output, Plan};
pub use steps::{Records, learn, losses, scores, slopes};
