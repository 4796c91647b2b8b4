//! Coins: the random stream and discrete distributions drawn from it, exactly.
//!
//! A draw compares the digits of a uniform number with those of a probability, as many as it takes. Probabilities that are
//! no multiples of 2^-64 are enclosed by intervals of integers (`interval`) to any precision.

mod array;
mod bernoulli;
mod exponential;
mod gaussian;
mod geometric;
mod interval;
mod laplace;
mod normal;
mod rng;
mod round;
mod select;
mod table;
mod uniform;
mod weighted;

pub use array::{coins, draws, draws_for, rounded};
pub use bernoulli::{Bernoulli, Fixed};
pub use exponential::{exp_minus_coin, high, upper_half};
pub use gaussian::DiscreteGaussian;
pub use geometric::Rejection;
pub use interval::Rational;
pub use laplace::{DiscreteLaplace, Geometric, scale_at_least};
pub use normal::ContinuousGaussian;
pub use rng::{Rng, Seed, Stream};
pub use round::rounded_number;
pub use select::Candidates;
pub use weighted::Weighted;
