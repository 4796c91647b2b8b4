//! Guarantees as pure functions: curves of single mechanisms, their composition, and the inverses of both.
//!
//! Everything returned as a guarantee is rounded outward: a delta or an epsilon never lies below the bound it stands
//! for, a noise parameter never above. The margins are derived where they are added; there U stands for 2^-53.
//!
//! All mechanisms here are dominated by a pair (P, Q) that is symmetric: exchanging P and Q changes the sign of the
//! privacy loss ln(dP/dQ) and nothing else. One half of such a pair describes it, and no guarantee depends on which of
//! the two neighbors is the first. The pages `joint_convexity`, `poisson_draws`,
//! `shuffled_reports` and `one_gaussian_budget` under docs/theory have proofs.
//!
//! # Examples
//!
//! How much Gaussian noise is (1, 10^-6)-DP, for one release and for a hundred? The standard deviation is sensitivity /
//! mu.
//!
//! ```
//! use hdp_fast_core::accounting::{Accountant, Base, Mechanism, Term, epsilon, gaussian_mu};
//! use hdp_fast_core::run::Run;
//! use hdp_fast_core::simd::Isa;
//!
//! let mu = gaussian_mu(1.0, 1e-6);
//! assert!((4.0..5.0).contains(&mu.recip()));
//!
//! // A hundred releases may each have a tenth of mu.
//! let mechanism = Mechanism { base: Base::Gaussian(mu / 10.0), draws: 1, rate: 1.0 };
//! let releases = [Term { mechanism, rounds: 100 }];
//! let total = epsilon(&releases, 1e-6, Accountant::Pld, Run::alone(Isa::detect()?))?;
//! assert!((0.999..1.001).contains(&total));
//! # Ok::<(), hdp_fast_core::Error>(())
//! ```

mod bounded_range;
mod calibrate;
mod cell;
mod compose;
mod concentrated;
mod counts;
mod crossing;
mod curve;
mod hull;
mod law;
mod mechanism;
mod moments;
mod normal;
mod optimal;
mod pair;
mod plan;
mod sampled_sum;
mod shuffled;
mod terms;
mod transform;

pub use calibrate::{Search, Target, largest_draws, largest_rate, largest_rounds, smallest_noise};
pub use compose::{delta, epsilon};
pub use crossing::{Care, Range};
pub use mechanism::{Base, Mechanism, Term};
pub use moments::{renyi_divergence, renyi_epsilon};
pub use normal::{gaussian_delta, gaussian_epsilon, gaussian_mu};
pub use optimal::{optimal_delta, optimal_epsilon};

use crate::golden::lowest;

/// Unit roundoff of a double.
const U: f64 = f64::EPSILON / 2.0;

/// How the privacy losses of the rounds are added up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accountant {
    /// By the distribution of the privacy loss: tight up to the grid on which it is computed.
    Pld,
    /// By the moments of the privacy loss, that is, by Renyi differential privacy: faster and less tight.
    Rdp,
}

/// The last point where `holds`, between one where it does and one where it does not.
fn boundary(mut good: f64, mut bad: f64, holds: impl Fn(f64) -> bool) -> f64 {
    // Enough to reach neighboring doubles within twenty orders of magnitude.
    for _ in 0..120 {
        let middle = f64::midpoint(good, bad);
        if holds(middle) { good = middle } else { bad = middle }
    }
    good
}

/// The least value of a function of ln(x) with a single valley, and the x where it is.
fn valley(f: impl Fn(f64) -> f64) -> (f64, f64) {
    narrowed_valley(52, f)
}

/// The same to three digits of x, which are enough where any x will do.
fn rough_valley(f: impl Fn(f64) -> f64) -> (f64, f64) {
    narrowed_valley(26, f)
}

/// The same with a number of evaluations.
fn narrowed_valley(evaluations: usize, f: impl Fn(f64) -> f64) -> (f64, f64) {
    // Losses from 1e-12 to 1e3 have their moments within these orders.
    let (log, value) = lowest(-30.0, 45.0, evaluations, |log| f(log.exp()));
    (log.exp(), value)
}
