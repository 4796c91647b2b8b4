//! Glue of `hdp_fast.stability`, which carries the documentation.

mod table;
mod threshold;
mod votes;

pub use table::AnswerTable;
pub use threshold::AboveThreshold;
pub use votes::{count_votes, pluralities};
