//! Private answers from votes: how many votes separate a plurality from another winner, tables that turn this distance
//! into a coin, and the sparse vector technique.
//!
//! A table of hazards answers with the winner or, near a tie, with "bottom", an abstention; a table of votes answers
//! with one of two labels. The page `vote_tables` under docs/theory has the proofs.
//!
//! # Examples
//!
//! At most two queries may end in bottom (-1), and the second bottom ends the session. A tie is bottom for certain; far
//! from a tie, a bottom has a probability below beta.
//!
//! ```
//! use hdp_fast_core::noise::Seed;
//! use hdp_fast_core::params::Epsilon;
//! use hdp_fast_core::run::Run;
//! use hdp_fast_core::simd::Isa;
//! use hdp_fast_core::stability::{Promise, TableKind, plurality, respond_to_counts};
//!
//! let (seed, run) = (Seed::from_os()?, Run::alone(Isa::detect()?));
//! let promise = Promise::new(TableKind::Hazard(2), 40, Epsilon::new(1.0)?, 1e-6, 1e-9)?;
//! let table = promise.design(run)?;
//! assert!(promise.verify(&table, run)? <= 1.0);
//!
//! let queries = [[9_000, 0], [5, 5], [0, 9_000], [5, 5], [9_000, 0]];
//! assert_eq!(plurality(&queries[0]).distance, 4_500);
//! assert_eq!(respond_to_counts(&table, queries.as_flattened(), 2, 2, &seed, run)?, (vec![0, -1, 1, -1], 2));
//! # Ok::<(), hdp_fast_core::Error>(())
//! ```

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
pub use histogram::{cell_histograms, histograms};
pub use laplace::AboveThreshold;
pub use promise::{Promise, TableKind};
pub use respond::{Remaining, respond_to_counts, respond_to_ones, respond_twice};
