//! A dominating pair for every mechanism of which only zero-concentrated differential privacy is known.
//!
//! Let f be the curve of a rho-zCDP mechanism as a function of E = e^epsilon: the greatest P(S) - E Q(S). It is convex
//! in E, whatever the mechanism. Three bounds on it hold for P and Q in either order, since those on the moments do:
//!
//! - every order 1 + t gives f(E) <= e^(t ((t + 1) rho - epsilon)) (t / (1 + t))^t / (1 + t), which is least in t where
//!   epsilon = (2 t + 1) rho - ln(1 + 1 / t), and there e^(-t^2 rho) / (1 + t): a dot of the curve for every t;
//! - the divergence of Kullback and Leibler is at most rho, hence f(1) <= sqrt(rho / 2) (Pinsker) and
//!   f(1) <= sqrt(1 - e^-rho) (Bretagnolle and Huber);
//! - f(E) and its mirror image E f*(1 / E) + 1 - E lie below the same dots, hence f(1) below the chord from a dot at E
//!   to its image at 1 / E, which is (2 f(E) + E - 1) / (E + 1) at 1.
//!
//! A convex function below dots lies below their lower hull, which is again the curve of a pair: one with an atom for
//! every corner. The third bound makes the hull and its mirror image convex as a whole. Beyond the last dot the hull
//! goes on level, as an infinite loss of that probability.

use super::boundary;
use super::hull::{Dot, atoms};

/// The worst pair, as [`worst`] finds it.
pub struct Worst {
    /// Losses above 0, ascending, with their masses under P.
    pub atoms: Vec<(f64, f64)>,
    /// The probability of an infinite loss.
    pub infinity: f64,
}

/// Dots a standard deviation, sqrt(2 rho): connecting them adds 4e-5 of itself to the spread of the loss.
const RESOLUTION: f64 = 64.0;

/// The dots end at the order t with t^2 rho this large, where delta is below 1e-57.
const LAST: f64 = 132.0;

/// The worst pair of a rho-zCDP mechanism.
///
/// Cost: O(10^3 (1 + sqrt(rho))). Source: Bun and Steinke 2016; Canonne, Kamath and Steinke 2020, Proposition 12.
pub fn worst(rho: f64) -> Worst {
    let (atoms, infinity) = atoms(dots(rho));
    Worst { atoms, infinity }
}

/// Dots from the loss 0 on, each at most the resolution from the next.
fn dots(rho: f64) -> Vec<Dot> {
    let loss = |t: f64| (2.0 * t + 1.0) * rho - t.recip().ln_1p();
    // At 1 / sqrt(2 rho) the loss is positive, and at this lower order negative.
    let first = boundary(-(2.0 * rho).ln() / 2.0, -2.0 * rho - 1.0, |log| loss(log.exp()) > 0.0).exp();
    let step = (2.0 * rho).sqrt() / RESOLUTION;
    // The derivative of the loss falls, so that a step never takes it further than wanted.
    let next = |&t: &f64| Some(t + step / (2.0 * rho + 1.0 / (t * (t + 1.0))));
    let orders = std::iter::successors(Some(first), next).take_while(|t| t * t * rho < LAST);
    let beyond: Vec<Dot> = orders.map(|t| Dot { loss: loss(t), delta: (-t * t * rho).exp() / (1.0 + t) }).collect();
    let chords = beyond.iter().map(|dot| {
        let half = (dot.loss / 2.0).tanh();
        half + dot.delta * (1.0 - half)
    });
    let least = (rho / 2.0).min(-(-rho).exp_m1()).sqrt().min(1.0);
    let start = Dot { loss: 0.0, delta: chords.fold(least, f64::min) };
    std::iter::once(start).chain(beyond.into_iter().filter(|dot| dot.loss > 0.0)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// So far, and not much nearer where the loss is straightest: what the resolution costs is what it is said to.
    #[test]
    fn each_dot_is_the_resolution_from_the_next() {
        for rho in [1e-6, 1e-3, 0.1, 2.0, 50.0] {
            let (dots, step) = (dots(rho), (2.0 * rho).sqrt() / RESOLUTION);
            let widest = dots.windows(2).map(|pair| pair[1].loss - pair[0].loss).fold(0.0, f64::max);
            assert!((0.95 * step..=step * (1.0 + 1e-9)).contains(&widest), "{rho}: {widest} for {step}");
        }
    }
}
