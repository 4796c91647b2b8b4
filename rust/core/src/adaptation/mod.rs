//! Adaptation from public to private records: what a step over the weighted losses needs of the rows, in one pass.

mod integers;
mod losses;
mod pass;
mod weights;

pub use integers::{Grid, to_integers};
pub use losses::Loss;
pub use pass::{Found, pass};
pub use weights::Weights;
