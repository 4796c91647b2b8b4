//! Errors of many hypotheses, in one call.

mod columns;
mod halfspaces;
mod lists;
mod monomials;
mod sum;

pub use columns::Columns;
pub use halfspaces::Halfspaces;
pub use lists::Lists;
pub use monomials::{at_least_errors, conjunction_errors};
