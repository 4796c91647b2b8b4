//! Weights over records: projection onto kappa-dense ones, multiplicative updates, exact draws.

mod dense;
mod power;
mod project;

pub use dense::{DenseWeights, Losses};
pub use project::{project, project_in_place};
