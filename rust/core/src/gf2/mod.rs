//! Bit-packed linear algebra over GF(2).

mod eliminate;
mod matrix;
mod solve;
mod strips;

pub use matrix::{BitMatrix, parity_bits};
pub use solve::{Solution, System, rank, solve};
