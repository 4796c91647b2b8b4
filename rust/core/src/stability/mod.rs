//! Private answers from votes: how far a plurality is from another winner, tables that turn the distance into a coin,
//! and the sparse vector technique.

mod count;
mod design;
mod distance;
mod histogram;
mod laplace;
mod level;
mod respond;
mod table;
mod verify;

pub use count::count_votes;
pub use distance::{Stand, stand, stands};
pub use histogram::histograms;
pub use laplace::AboveThreshold;
pub use respond::{Left, respond_to_counts, respond_to_ones, respond_twice};
pub use table::{Kind, Promise};
