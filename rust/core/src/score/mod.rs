//! Errors of many hypotheses over bits, in one call.

mod columns;
mod lists;
mod monomials;

pub use columns::Columns;
pub use lists::Lists;
pub use monomials::{at_least_errors, conjunction_errors};
