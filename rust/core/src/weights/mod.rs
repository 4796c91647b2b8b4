//! Weights over records: projection onto kappa-dense ones, multiplicative updates, and exact draws from them.
//!
//! Weights of n records are kappa-dense if none exceeds 1 and they sum to kappa n at least: normalized, no record has
//! more than 1 / (kappa n) of the mass, and so no record is drawn often. The page `dense_weights` under docs/theory has
//! the bounds.
//!
//! # Examples
//!
//! Boosting by dense weights: records with a loss of 1, on which a hypothesis was wrong, keep their weight, and the
//! others lose.
//!
//! ```
//! use hdp_fast_core::run::Run;
//! use hdp_fast_core::simd::Isa;
//! use hdp_fast_core::weights::{DenseWeights, Losses, Out, project};
//!
//! let run = Run::alone(Isa::detect()?);
//! let mut weights = DenseWeights::new(4, 0.5, 1.0)?;
//! weights.update(Losses::Bits(&[1, 1, 0, 0]), run)?;
//! let probabilities = weights.probabilities(run)?;
//! assert!(probabilities[0] > probabilities[2]);
//! assert!(probabilities.iter().all(|&probability| probability <= weights.rate()));
//!
//! // The largest weight is capped at 1, the others are scaled, and the sum becomes kappa n = 2.
//! let mut dense = [0.0; 4];
//! project(&[8.0, 1.0, 1.0, 2.0], 0.5, Out::Fresh(&mut dense), run)?;
//! let expected = [1.0, 0.25, 0.25, 0.5];
//! assert!(dense.iter().zip(expected).all(|(dense, expected)| (dense - expected).abs() < 1e-9));
//! # Ok::<(), hdp_fast_core::Error>(())
//! ```

mod dense;
mod losses;
mod power;
mod project;
mod scale;
mod threshold;

pub use dense::{DenseWeights, check_weights};
pub use losses::Losses;
pub use project::{Out, project, project_in_place};
