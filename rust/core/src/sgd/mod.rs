//! Stochastic gradient descent for linear models over a ball, with or without noise that protects the records.

mod draws;
mod losses;
mod noise;
mod plan;
mod steps;

pub use draws::Draws;
pub use losses::Loss;
pub use noise::{Noise, UNITS};
pub use plan::Plan;
pub use steps::{Records, learn, losses, scores, slopes};
