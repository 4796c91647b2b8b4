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

/// The delta of mu-Gaussian differential privacy at epsilon >= 0, rounded up.
///
/// Phi(-low) - e^epsilon Phi(-high) with low, high = epsilon/mu -+ mu/2; where both are tails, their densities agree up
/// to the factor e^epsilon, so that only the two Mills' ratios are subtracted.
///
/// Cost: constant. Source: Balle and Wang 2018, Theorem 8; Dong, Roth and Su 2022, Corollary 1.
pub fn gaussian_delta(mu: f64, epsilon: f64) -> f64 {
    let middle = epsilon / mu;
    let (low, high) = (middle - mu / 2.0, middle + mu / 2.0);
    let height = density(low);
    // Both ends move together by a few roundings of `middle` and mu/2, and the curve no faster than the density.
    let moved = 4.0 * U * (middle + mu) * height + 2.0 * U * low * low * height;
    let other = height * mills(high);
    let (one, one_error) = if low < 0.0 {
        (libm::erfc(low * FRAC_1_SQRT_2) / 2.0, 4.0 * U * (1.0 + low.abs() * height))
    } else {
        let one = height * mills(low);
        (one, one * mills_error(low))
    };
    let error = one_error + other * mills_error(high) + moved;
    (one - other + error + f64::MIN_POSITIVE).min(1.0)
}

/// The least epsilon >= 0 at which mu-Gaussian differential privacy has this delta, rounded up.
///
/// Cost: constant. Source: as [`gaussian_delta`].
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

/// The largest mu for which mu-Gaussian differential privacy implies (epsilon, delta), rounded down.
///
/// Cost: constant. Source: Balle and Wang 2018 (the analytic Gaussian mechanism; sigma = sensitivity / mu).
pub fn gaussian_mu(epsilon: f64, delta: f64) -> f64 {
    let holds = |mu: f64| gaussian_delta(mu, epsilon) <= delta;
    let mut small = (epsilon + 1.0).min(1.0);
    while !holds(small) && small > f64::MIN_POSITIVE {
        small /= 2.0;
    }
    let mut large = 2.0 * small;
    while holds(large) && large < f64::MAX / 4.0 {
        large *= 2.0;
    }
    boundary(small, large, holds)
}
