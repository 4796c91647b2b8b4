//! Local randomizers: what the device of one person answers.
//!
//! Each answers with integers, none of which is more than e^epsilon times as likely for one value as for another;
//! [`noisy`] has the guarantee of its noise instead. Probabilities are multiples of 2^-64, rounded towards the flatter
//! distribution. The page `randomized_response` under docs/theory has the estimates.
//!
//! # Examples
//!
//! Ten thousand people answer a question of yes or no, of which 30 % have a one. Each keeps the bit with a probability
//! that is public, and so the share of ones follows from the answers.
//!
//! ```
//! use hdp_fast_core::local::{randomized_response, truth_probability};
//! use hdp_fast_core::noise::Seed;
//! use hdp_fast_core::params::Epsilon;
//! use hdp_fast_core::run::Run;
//! use hdp_fast_core::simd::Isa;
//!
//! let epsilon = Epsilon::new(1.0)?;
//! let bits: Vec<u8> = (0..10_000).map(|person| u8::from(person % 10 < 3)).collect();
//! let mut answers = vec![0; bits.len()];
//! randomized_response(&bits, &mut answers, epsilon, &Seed::from_os()?, Run::alone(Isa::detect()?))?;
//!
//! let truth = truth_probability(epsilon).to_f64();
//! let mean = answers.iter().map(|&bit| f64::from(bit)).sum::<f64>() / 10_000.0;
//! let share = (mean - (1.0 - truth)) / (2.0 * truth - 1.0);
//! assert!((share - 0.3).abs() < 0.1);
//! # Ok::<(), hdp_fast_core::Error>(())
//! ```

mod binary;
mod category;
mod geometry;
mod kary;
mod range;
mod subsets;
mod window;

use hdp_fast_device::probability;

use crate::noise::Fixed;
use crate::params::Epsilon;

pub use binary::{
    BinaryResponse, check_fractions, fraction_response, randomized_response, rounded_response, truth_probability,
};
pub use category::{Categories, count_reports, report};
pub use geometry::{Geometry, Space};
pub use kary::Kary;
pub use range::{Range, noisy};
pub use subsets::{Selection, Subsets};
pub use window::Window;

/// The probability with which a randomizer draws from its `kept` outcomes, while it otherwise draws from `all`
/// outcomes, which include them. Rounded down to a multiple of 2^-64, it makes each kept outcome at most e^epsilon
/// times as likely as any other. There must be 0 < kept <= all.
pub fn keep_probability(epsilon: Epsilon, kept: u64, all: u64) -> Fixed {
    Fixed(probability::keep_probability(epsilon.get(), kept, all))
}

fn is_prime(number: u32) -> bool {
    number > 1 && (2..number).take_while(|d| d * d <= number).all(|d| !number.is_multiple_of(d))
}
