//! The curve of Gaussian differential privacy and its inverses.

use std::f64::consts::{FRAC_1_SQRT_2, PI};

use super::{U, boundary};

/// The density of the standard normal distribution.
fn density(x: f64) -> f64 {
    (-x * x / 2.0).exp() / (2.0 * PI).sqrt()
}

/// Above it the continued fraction below has converged.
const FAR: f64 = 12.0;

/// Mills' ratio: the upper tail of the standard normal distribution over its density, for x >= 0.
fn mills(x: f64) -> f64 {
    if x < FAR {
        return (PI / 2.0).sqrt() * (x * x / 2.0).exp() * libm::erfc(x * FRAC_1_SQRT_2);
    }
    (1..40).rev().fold(x, |below, k| x + f64::from(k) / below).recip()
}

/// A bound on the relative error of [`mills`]: exp and erfc within one unit in the last place each, and their
/// arguments' rounding, which they amplify by x^2.
fn mills_error(x: f64) -> f64 {
    U * (8.0 + 4.0 * x.min(FAR).powi(2))
}

/// The upper tail of the standard normal distribution for x >= 0, rounded up.
pub fn tail(x: f64) -> f64 {
    density(x) * mills(x) * (1.0 + mills_error(x) + U * (4.0 + 2.0 * x * x))
}

/// Beyond this number of standard deviations the normal distribution has no mass that a float could tell from 0 or 1.
const FARTHEST: f64 = 40.0;

/// What moves the ends by more can't be accounted for by slopes.
const COARSEST: f64 = 1e-3;

/// The delta of mu-Gaussian differential privacy at epsilon >= 0, rounded up.
///
/// It is Phi(-low) - e^epsilon Phi(-high), where low is epsilon/mu - mu/2 and high is epsilon/mu + mu/2. Source: Balle
/// and Wang 2018, Theorem 8; Dong, Roth and Su 2022, Corollary 1.
pub fn gaussian_delta(mu: f64, epsilon: f64) -> f64 {
    let middle = epsilon / mu;
    let (low, high) = (middle - mu / 2.0, middle + mu / 2.0);
    // What a few roundings of `middle` and mu/2 move the ends by.
    let moved = 4.0 * U * (middle + mu);
    let shown = if low - moved > FARTHEST {
        0.0
    } else if low < -FARTHEST {
        1.0
    } else if moved > COARSEST {
        // Without its second part delta is at most the tail beyond the least that `low` may be.
        if low > moved { tail(low - moved) } else { 1.0 }
    } else if low < 0.0 {
        body(epsilon, low, high, moved)
    } else {
        tails(low, high, moved).min(tangent(mu, low, moved))
    };
    if shown < 1.0 { shown + f64::MIN_POSITIVE } else { 1.0 }
}

/// Where `low` is negative: the mass between the ends less (1 - e^-epsilon) e^epsilon Phi(-high). The former is of the
/// order of mu, the latter of mu^2.
fn body(epsilon: f64, low: f64, high: f64, moved: f64) -> f64 {
    let height = density(low);
    let between = (libm::erf(high * FRAC_1_SQRT_2) + libm::erf(-low * FRAC_1_SQRT_2)) / 2.0;
    let less = height * mills(high) * -(-epsilon).exp_m1();
    let error = 8.0 * U * between + less * (mills_error(high) + U * (4.0 + 2.0 * low * low));
    between - less + error + 2.0 * moved * height
}

/// Where both ends are tails their densities agree up to the factor e^epsilon, so that only the Mills' ratios are
/// subtracted.
fn tails(low: f64, high: f64, moved: f64) -> f64 {
    let (height, one, other) = (density(low), mills(low), mills(high));
    let error = one * mills_error(low) + other * mills_error(high) + moved + 2.0 * U * low * low;
    height * (one - other + error)
}

/// The same bounded by the slope of Mills' ratio, which is convex: better where mu is so small that the ratios agree.
///
/// In all it is mu times the integral of the tail beyond `low`, which changes with it by less than low + 2 of itself.
fn tangent(mu: f64, low: f64, moved: f64) -> f64 {
    let slope = 1.0 - low * mills(low) + mills_error(low) + 2.0 * U;
    mu * density(low) * slope * (1.0 + 2.0 * moved * (low + 2.0) + U * (8.0 + 2.0 * low * low))
}

/// The least epsilon >= 0 at which mu-Gaussian differential privacy has this delta, rounded up. Source: as
/// [`gaussian_delta`].
pub fn gaussian_epsilon(mu: f64, delta: f64) -> f64 {
    let holds = |epsilon: f64| gaussian_delta(mu, epsilon) <= delta;
    if holds(0.0) {
        return 0.0;
    }
    let mut enough = mu * (mu / 2.0 + 40.0);
    while !holds(enough) && enough < f64::MAX / 4.0 {
        enough *= 2.0;
    }
    if holds(enough) { boundary(enough, 0.0, holds) } else { f64::INFINITY }
}

/// The largest mu for which mu-Gaussian differential privacy implies (epsilon, delta)-DP, rounded down. The analytic
/// Gaussian mechanism has sigma = sensitivity / mu. Source: Balle and Wang 2018.
pub fn gaussian_mu(epsilon: f64, delta: f64) -> f64 {
    let holds = |mu: f64| gaussian_delta(mu, epsilon) <= delta;
    // The curve at 0 is at most mu times the density's height of 0.4.
    let least = 2.0 * delta;
    let mut small = 1.0;
    while small > least && !holds(small) {
        small /= 2.0;
    }
    let small = least.max(small);
    let mut large = 2.0 * small;
    while holds(large) && large < f64::MAX / 4.0 {
        large *= 2.0;
    }
    boundary(small, large, holds)
}
