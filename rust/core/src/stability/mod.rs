//! Private answers from votes: how far a plurality is from another winner, tables that turn the distance into a coin,
//! and the sparse vector technique.

mod count;
mod design;
mod distance;
mod histogram;
mod laplace;
mod level;
mod promise;
mod respond;
mod table;
mod verify;

pub use count::count_votes;
pub use distance::{Plurality, pluralities, plurality};
pub use histogram::histograms;
pub use laplace::AboveThreshold;
pub use promise::{Promise, TableKind};
pub use respond::{Remaining, respond_to_counts, respond_to_ones, respond_twice};
