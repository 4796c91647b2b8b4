//! Adaptation from public to private records: one pass over the rows computes all that a step over the weighted losses
//! needs.
//!
//! # Examples
//!
//! Predictions 1 and 2 for labels 1 and 1: the losses are 0 and 1. With weights that are eliminated, the record with
//! the larger loss gets the smaller weight.
//!
//! ```
//! use hdp_fast_core::adaptation::{Loss, Weights, pass};
//! use hdp_fast_core::run::Run;
//! use hdp_fast_core::sgd::Records;
//! use hdp_fast_core::simd::Isa;
//!
//! let run = Run::alone(Isa::detect()?);
//! let records = Records::new(&[1.0, 2.0], 1, &[1.0, 1.0][..])?;
//! let weighted = pass(records, Loss::Squared, &[1.0], Weights::Given(&[0.5, 0.5]), None, run)?;
//! assert_eq!((weighted.objective, weighted.losses), (0.5, Some(vec![0.0, 1.0])));
//!
//! // The weights become 1 and 1/2, and the gradient the sum of weight times 2 (prediction - label) times row.
//! let weights = Weights::Eliminated { cap: 1.0, kappa_1: 0.25, offset: 0.0 };
//! let eliminated = pass(records, Loss::Squared, &[1.0], weights, None, run)?;
//! assert_eq!((eliminated.objective, eliminated.gradient), (1.25, vec![2.0]));
//! # Ok::<(), hdp_fast_core::Error>(())
//! ```

mod integers;
mod losses;
mod pass;
mod weights;

pub use integers::{Grid, to_integers};
pub use losses::Loss;
pub use pass::{Found, pass};
pub use weights::Weights;
