//! What a respondent's device does, on any host: no file, no clock, no network, and random bytes from outside.
//!
//! # Examples
//!
//! ```
//! use hdp_fast_device::stage::Shares;
//!
//! // Of 1,000 people about a third is asked the first query, by a rule that everybody can compute again.
//! let shares = Shares::new([7; 16], &[1, 2]).unwrap();
//! let first = (1..=1000).filter(|&number| shares.place(number) == 0).count();
//! assert!((280..390).contains(&first));
//! ```
#![no_std]
#![deny(unsafe_code)]

extern crate alloc;

pub mod device;
mod error;
mod features;
mod form;
mod json;
mod models;
pub mod probability;
pub mod query;
mod question;
mod randomizer;
pub mod signature;
pub mod stage;
mod text;
#[cfg(target_arch = "wasm32")]
mod wasm;

pub use error::{Refusal, Result};
pub use features::SINE;
