//! Exact randomness: the random stream, and discrete distributions drawn from it without any error.
//!
//! A draw compares the digits of a uniform number with those of a probability, as many as it takes. A probability that
//! is no multiple of 2^-64 is enclosed by intervals of integers to any precision.
//!
//! # Examples
//!
//! Noise for 10,000 counts of sensitivity 1, each of which shall be released with epsilon = 1/2: discrete Laplace noise
//! of scale 2.
//!
//! ```
//! use hdp_fast_core::noise::{DiscreteLaplace, Rational, Seed, Stream, noise};
//! use hdp_fast_core::run::Run;
//! use hdp_fast_core::simd::Isa;
//!
//! let scale = Rational::from_integer(2_u32.into());
//! let law = DiscreteLaplace::new(&scale, 10_000);
//! let mut drawn = vec![0; 10_000];
//! noise(&mut drawn, &law, Stream::Noise, &Seed::from_os()?, Run::alone(Isa::detect()?))?;
//! let mean = drawn.iter().sum::<i64>() as f64 / 10_000.0;
//! assert!(mean.abs() < 0.3);
//! # Ok::<(), hdp_fast_core::Error>(())
//! ```

mod array;
mod bernoulli;
mod bracket;
mod deviate;
mod exponential;
mod gaussian;
mod geometric;
mod interval;
mod kept;
mod laplace;
mod normal;
mod normal_law;
mod poisson;
mod rng;
mod round;
mod rounded;
mod select;
mod table;
mod uniform;
mod weighted;

pub use array::{CHUNK, IntegerNoise, coins, draws_for, noise, uniform_integers};
pub use bernoulli::{Bernoulli, Fixed};
pub use exponential::{exp_minus_coin, high, upper_half};
pub use gaussian::DiscreteGaussian;
pub use geometric::Rejection;
pub use interval::Rational;
pub use laplace::{DiscreteLaplace, Geometric, scale_at_least};
pub use normal::ContinuousGaussian;
pub use poisson::Poisson;
pub use rng::{Rng, Seed, Stream};
pub use round::{round, rounded_position};
pub use rounded::RoundedGaussian;
pub use select::Candidates;
pub use weighted::Weighted;
