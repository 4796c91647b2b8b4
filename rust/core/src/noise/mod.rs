//! Coins: the random stream and exact discrete distributions drawn from it.

mod bernoulli;
mod laplace;
mod rng;

pub use bernoulli::{Bernoulli, Fixed, bernoulli_array};
pub use laplace::DiscreteLaplace;
pub use rng::{Rng, Seed, Stream};
