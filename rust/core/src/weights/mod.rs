//! Weights over records: projection onto kappa-dense ones, multiplicative updates, exact draws.

mod dense;
mod power;
mod project;

pub use dense::{DenseWeights, Losses};
pub use project::{dense_scale, project, project_in_place};
