//! Weights over records: projection onto kappa-dense ones.

mod project;

pub use project::{dense_scale, project, project_in_place};
