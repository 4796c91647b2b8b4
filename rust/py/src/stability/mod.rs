//! Glue of `hdp_fast.stability`, which carries the documentation.

mod table;
mod threshold;
mod votes;

pub use table::AnswerTable;
pub use threshold::AboveThreshold;
pub use votes::{cell_winners, count_votes, pluralities};
