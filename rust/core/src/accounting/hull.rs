//! The pair whose curve connects dots of another: what lies below dots lies below their lower convex hull.
//!
//! As a function of e^loss the hull is the curve of a pair with an atom for every corner. Beyond the last dot it goes on
//! level, as an infinite loss of that probability.

/// A point of a curve.
#[derive(Clone, Copy)]
pub struct Dot {
    /// The privacy loss.
    pub loss: f64,
    /// The delta there.
    pub delta: f64,
}

/// Every mass is raised by this part of itself. A corner is a difference of two slopes, each with a few roundings; the
/// delta at any dot, a sum over corners beyond it, is off by those times the number of dots, below 1e4.
const MARGIN: f64 = 1.0 / (1u64 << 34) as f64;

/// The losses above 0 of the pair, ascending, with their masses under P, and the probability of an infinite loss.
///
/// The dots ascend from the loss 0.
pub fn atoms(dots: Vec<Dot>) -> (Vec<(f64, f64)>, f64) {
    let hull = hull(dots);
    let bends = hull.windows(3).map(|dots| (dots[1].loss, bend(dots[0], dots[1], dots[2])));
    let mut atoms: Vec<(f64, f64)> = bends.collect();
    let [.., previous, last] = hull[..] else { return (atoms, 1.0) };
    atoms.push((last.loss, fall(previous, last)));
    atoms.iter_mut().for_each(|(_, mass)| *mass = mass.max(0.0) * (1.0 + MARGIN));
    (atoms, last.delta * (1.0 + MARGIN))
}

/// The corners of the lower convex hull in e^loss of dots with ascending losses.
fn hull(dots: Vec<Dot>) -> Vec<Dot> {
    let mut corners: Vec<Dot> = Vec::new();
    for dot in dots {
        while let [.., before, last] = corners[..] {
            if bend(before, last, dot) > 0.0 {
                break;
            }
            corners.pop();
        }
        corners.push(dot);
    }
    corners
}

/// How much steeper the curve is before a dot than after it, times e^loss: the mass under P of an atom there.
fn bend(before: Dot, at: Dot, after: Dot) -> f64 {
    fall(before, at) - (at.delta - after.delta) / (after.loss - at.loss).exp_m1()
}

/// How steeply the curve falls between two dots, times e^loss at the second.
fn fall(before: Dot, at: Dot) -> f64 {
    (before.delta - at.delta) / -(before.loss - at.loss).exp_m1()
}
