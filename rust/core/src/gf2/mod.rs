//! Bit-packed linear algebra over GF(2).

mod eliminate;
mod matrix;
mod solve;
mod space;
mod strips;

pub use matrix::{BitMatrix, parity_bits};
pub use solve::{System, rank, solve};
pub use space::Solution;
