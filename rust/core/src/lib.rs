//! Kernels and mechanisms for learning under differential privacy in the hybrid model.
//!
//! Layers, imports only leftwards: `error`, `params`, `memory` <- `noise`, `simd`, `run`, `pool` <- `gf2`, `linear`, `score`, `accounting`, `weights`, `sgd` <- `parity`, `local`, `stability`, `adaptation`.
//! Nothing here knows Python.

pub mod accounting;
pub mod adaptation;
pub mod error;
pub mod gf2;
pub mod linear;
pub mod local;
pub mod memory;
pub mod noise;
pub mod params;
pub mod parity;
pub mod pool;
pub mod run;
pub mod score;
pub mod sgd;
pub mod simd;
pub mod stability;
pub mod weights;

pub use error::{Error, Result};
