//! Private answers from votes: how far a plurality is from another winner, tables that turn the distance into a coin,
//! and the sparse vector technique.

mod count;
mod distance;

pub use count::count_votes;
pub use distance::{Stand, stand, stands};
