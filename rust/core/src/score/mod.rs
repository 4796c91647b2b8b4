//! Errors of many hypotheses on the same records, in one call. The counts are exact and not private.
//!
//! # Examples
//!
//! All conjunctions of at most two literals over two features, where the label is the conjunction of both.
//!
//! ```
//! use hdp_fast_core::gf2::BitMatrix;
//! use hdp_fast_core::run::Run;
//! use hdp_fast_core::score::{Columns, conjunction_errors};
//! use hdp_fast_core::simd::Isa;
//!
//! let run = Run::alone(Isa::detect()?);
//! let records = BitMatrix::from_words(4, 2, vec![0b00, 0b01, 0b10, 0b11])?;
//! let labels = BitMatrix::from_words(1, 4, vec![0b1000])?;
//! let errors = conjunction_errors(&Columns::pack(&records, run)?, &labels, 2, run)?;
//! // The empty one; x0, not x0; x1, not x1; x0 and x1, not x0 and x1, x0 and not x1, neither.
//! assert_eq!(errors, [3, 1, 3, 1, 3, 0, 2, 2, 2]);
//! # Ok::<(), hdp_fast_core::Error>(())
//! ```

mod columns;
mod halfspaces;
mod lists;
mod monomials;
mod rough;
mod sum;

pub use columns::Columns;
pub use halfspaces::Halfspaces;
pub use lists::Lists;
pub use monomials::{at_least_errors, conjunction_errors};
