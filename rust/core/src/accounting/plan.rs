//! The grid on which a composition is computed, and how its laws are tilted.

use super::curve::TransformError;
use super::law::Law;
use super::mechanism::{LossGrid, Mechanism};
use super::moments::{Composition, Moments};
use super::pair::Grain;
use super::{U, rough_valley};
use crate::error::Result;
use crate::run::Run;

/// Bounds on the size of the transforms, which the window of the composed loss must fit.
const LEAST_POINTS: usize = 1 << 14;
const MOST_POINTS: usize = 1 << 20;

/// Grid points to which one round's losses may extend.
const MOST_CELLS: f64 = (1 << 19) as f64;

/// What connecting the dots may add to delta, relative to it, when the grid is fine enough.
pub const ACCURACY: f64 = 2e-4;

/// How much more a coarse grid may add, and how many fewer points it may have.
const COARSER: f64 = 64.0;
const FEWER: usize = 8;

/// What it may add to epsilon, relative to that, where that says more: where delta changes by more than itself before
/// epsilon changes in its sixth digit.
const RELATIVE: f64 = 4e-6;

/// Losses that are dropped add this part to delta.
pub const NEGLIGIBLE: f64 = 1e-7;

/// Minus ln of the mass of the tilted loss that may wrap around on either side of the window: it only adds to delta.
const WRAPPED: f64 = 30.0;

/// Grids wider than this have no use, and masses at such losses, kept under sqrt(P Q), may be too small for a float: a
/// law that lost them would look private.
const WIDEST: f64 = 256.0;

/// Exponents much larger than this lose digits that the margins do not cover; moments alone are better there.
const LARGEST_EXPONENT: f64 = (1 << 18) as f64;

/// Smaller orders of a tilt, as parts of the moments' order, that may shorten a window; the first that can is taken.
const SMALLER: [f64; 4] = [0.5, 0.65, 0.8, 1.0];

/// What the transforms' error may add to delta for the sake of a shorter window.
const SPENT: f64 = ACCURACY / 4.0;

/// How often a grid is widened as small losses come to matter less.
const WIDENED: usize = 6;

/// A bound on the relative error of a Fourier transform, in the 2-norm, for every doubling of its points: Higham,
/// Accuracy and Stability of Numerical Algorithms, Theorem 24.2, with 6 U for a butterfly and 10 U for weights whose
/// angles carry three roundings, and half as much again for butterflies arranged otherwise.
pub const TRANSFORM: f64 = 24.0 * U;

/// No loss may be more grid points from 0.
const MOST_STEPS: f64 = (1u64 << 48) as f64;

/// A slope above this multiple of the order of the tilt is that of a jump.
const STEEPEST: f64 = 20.0;

/// A curve so much steeper than planned for asks for a new plan.
const STEEPER: f64 = 1.5;

/// What a composition is asked for.
#[derive(Clone, Copy)]
pub enum Aim {
    /// Its delta at an epsilon.
    Epsilon(f64),
    /// Its epsilon at a delta.
    Delta(f64),
}

/// The grid of a composition, and how its laws are tilted.
///
/// Masses are multiplied by e^(order * loss) before they are transformed and divided by it afterwards. With the order
/// that the moments' bound uses, the tilted loss lies about where delta is asked for: the transforms' errors, relative
/// to the largest mass, are then small relative to delta, too.
pub struct Plan {
    /// The order of the tilt.
    pub order: f64,
    /// Where the window of the composed loss begins.
    pub bottom: f64,
    /// The order at which the mass above the window is bounded.
    pub top_order: f64,
    /// The distance of grid points.
    pub width: f64,
    /// Their number, a power of two.
    pub points: usize,
    /// ln of the delta that is taken to be about that of the composition.
    pub log_delta: f64,
    /// The curve is taken to fall like e^(-slope * epsilon).
    slope: f64,
    /// A steeper one would ask for no finer grid.
    steepest: f64,
    /// Whether no grid may be finer.
    finest: bool,
    /// A bound on what rounding moved the composed loss by.
    pub shift: f64,
    /// The probability that is dropped of each round, in the number of changed draws and, below, in the tail.
    negligible: f64,
    /// For each mechanism, the loss above which the tail is dropped, and its probability.
    cuts: Vec<(f64, f64)>,
}

impl Plan {
    /// A grid for a delta of about e^log_delta and a curve that falls at least like e^(-slope * epsilon); None where no
    /// grid is of any use.
    pub fn new(moments: &Composition, aim: Aim, log_delta: f64, slope: f64, grain: Grain) -> Option<Plan> {
        let log_dropped = log_delta + NEGLIGIBLE.ln();
        let negligible = log_dropped.exp() / moments.rounds();
        let (moments, cuts) = without_tails(moments, negligible);
        let farthest = cuts.iter().map(|cut| cut.0).fold(0.0, f64::max);
        let (order, epsilon) = match aim {
            Aim::Epsilon(epsilon) => (moments.log_delta(epsilon).0, epsilon),
            Aim::Delta(delta) => moments.epsilon(delta),
        };
        let order = order.min(LARGEST_EXPONENT / farthest.max(epsilon));
        let tilted = moments.log_moment(order);
        let reach = |sign: f64| rough_valley(|s| (moments.log_moment(order + sign * s) - tilted + WRAPPED) / s).1;
        let (bottom, highest) = ((-reach(-1.0)).min(epsilon), reach(1.0));
        let top = |width: f64| {
            let moved = if width > 0.0 { moments.moved(order, width) } else { 0.0 };
            top(&moments, moved, width, log_dropped)
        };
        let narrowest = top(0.0).1.max(highest) - bottom;
        let steepest = (STEEPEST * order).min(LARGEST_EXPONENT / epsilon);
        let slope = slope.min(steepest).max(order).max(WRAPPED / narrowest);
        let (coarser, [least_points, most_points]) = match grain {
            Grain::Fine => (1.0, [LEAST_POINTS, MOST_POINTS]),
            Grain::Coarse => (COARSER, [LEAST_POINTS, MOST_POINTS].map(|points| points / FEWER)),
        };
        let accuracy = coarser * ACCURACY.max(RELATIVE * slope * epsilon);
        let allowed = |moved: f64| (12.0 * accuracy / (slope * (slope + 1.0) * moved.max(1.5))).sqrt();
        let least = (narrowest / (most_points - 4) as f64).max(farthest / MOST_CELLS);
        // Small losses count for less on wider grids: from below this never overshoots.
        let wanted = (0..WIDENED).fold(least, |width, _| allowed(moments.moved(order, width)).max(width));
        let finest = wanted <= least;
        let (top_order, needed) = top(wanted);
        let mut window = Window { order, bottom, top: needed.max(highest) };
        let mut points = window.points(wanted, least_points);
        let width = window.width(points, wanted, farthest);
        if let Aim::Epsilon(epsilon) = aim
            && points > least_points
        {
            window = Spared { epsilon, log_delta, needed, width }.shorten(&moments, window);
            points = window.points(width, least_points).min(points);
        }
        let Window { order: tilt, bottom, top } = window;
        let moves = moments.0.iter().zip(&cuts).map(|((_, rounds), cut)| rounds * cut.0);
        let plan = Plan {
            order: tilt,
            bottom,
            top_order,
            width,
            points,
            log_delta,
            slope,
            steepest,
            finest,
            shift: 16.0 * U * moves.sum::<f64>(),
            negligible,
            cuts,
        };
        plan.usable(&moments, order, bottom.abs().max(top.abs()).max(farthest)).then_some(plan)
    }

    /// Whether a grid on which the farthest point is `largest` away from 0 shows more than the moments of an order.
    fn usable(&self, moments: &Composition, order: f64, largest: f64) -> bool {
        // Every round's error is at least a small part of the masses that stay at 0. Where many times that exceeds the
        // moments' bound, it may hide what a grid could show.
        let still: f64 = moments.rounds() - moments.moved(order, self.width);
        let error = TRANSFORM * (self.points as f64).log2() * still.max(0.0);
        error * error <= order * self.width
            && (f64::MIN_POSITIVE..=WIDEST).contains(&self.width)
            && largest * order <= 2.0 * LARGEST_EXPONENT
            && largest / self.width <= MOST_STEPS
    }

    /// Whether a curve that falls like e^(-slope * epsilon) asks for a finer grid than this, and can have one.
    pub fn too_coarse(&self, slope: f64) -> bool {
        !self.finest && slope.min(self.steepest) > STEEPER * self.slope
    }

    /// The law of one round of the i-th mechanism on the grid.
    pub fn law(&self, i: usize, mechanism: &Mechanism, run: Run<'_>) -> Result<Law> {
        let (farthest, beyond) = self.cuts[i];
        let cells = (farthest / self.width).ceil() as usize + 1;
        let round: Vec<f64> = (0..=cells).map(|i| i as f64 * self.width).collect();
        mechanism.law(self.negligible, LossGrid::At(round, beyond), run)
    }
}

/// How laws are tilted, and where the window of the composed loss begins and ends.
#[derive(Clone, Copy)]
struct Window {
    order: f64,
    bottom: f64,
    top: f64,
}

impl Window {
    fn length(&self) -> f64 {
        self.top - self.bottom
    }

    /// The size of a grid of this width.
    fn points(&self, width: f64, least: usize) -> usize {
        let points = (self.length() / width).min(MOST_POINTS as f64).ceil() as usize + 4;
        points.next_power_of_two().clamp(least, MOST_POINTS)
    }

    /// The width of a grid of so many points, on which none wider than `wanted` is needed.
    fn width(&self, points: usize, wanted: f64, farthest: f64) -> f64 {
        // What rounding the size up leaves is used for a finer grid, as long as it costs nothing.
        let width = (self.length() / (points - 4) as f64).max(wanted.min(farthest / points as f64));
        // The largest loss, often an atom, falls on a grid point: randomized response is then not widened at all.
        if farthest > width { farthest / (farthest / width).floor() } else { width }
    }
}

/// What a window for the delta at an epsilon must keep apart, and on what grid.
struct Spared {
    epsilon: f64,
    /// ln of the delta that is taken to be about that of the composition.
    log_delta: f64,
    /// Where what lies above may be dropped.
    needed: f64,
    width: f64,
}

impl Spared {
    /// A shorter window with a smaller order, where there is one.
    ///
    /// Where tails are heavy the moments' order makes several of the largest losses as likely as one, and a window that
    /// holds them all is many times as long as what lies about epsilon. A smaller order costs digits, of which few
    /// rounds have enough.
    fn shorten(&self, moments: &Composition, longest: Window) -> Window {
        let limit = SPENT.max(2.0 * self.error(moments, longest.order));
        let shorter = SMALLER.into_iter().find_map(|part| {
            let window = self.window(moments, part * longest.order);
            (window.length() < longest.length() && self.error(moments, window.order) <= limit).then_some(window)
        });
        shorter.unwrap_or(longest)
    }

    /// The window of an order outside of which losses add as little to the delta at epsilon as those that are dropped.
    ///
    /// A loss y that wraps around by W is seen at y - W or y + W with e^(order W) or e^(-order W) times its mass. Seen
    /// above epsilon, it adds at most e^(order (y - epsilon)) times its mass to delta; and to be seen there, one from
    /// above must exceed epsilon + W.
    fn window(&self, moments: &Composition, order: f64) -> Window {
        let log_dropped = self.log_delta + NEGLIGIBLE.ln();
        let reach = |sign: f64| {
            let seen = |s: f64| moments.log_moment(order + sign * s) - order * self.epsilon;
            rough_valley(|s| (seen(s) - log_dropped) / s).1
        };
        let bottom = (-reach(-1.0)).min(self.epsilon);
        let top = self.needed.max(self.epsilon).max(bottom + reach(1.0) - self.epsilon);
        Window { order, bottom, top }
    }

    /// About how large the transforms' error is, relative to delta.
    fn error(&self, moments: &Composition, order: f64) -> f64 {
        let once = TRANSFORM * ((MOST_POINTS as f64).log2() + 1.0);
        let norm = once * moments.norm_beside_zero(order, self.width) + 8.0 * U * moments.rounds();
        let error = TransformError { norm, order, log_moment: moments.log_moment(order) - self.log_delta };
        error.at(self.epsilon, self.width, MOST_POINTS)
    }
}

/// The top of the window where dots `width` apart are connected, and the order at which the mass above it is bounded.
///
/// Connecting dots adds to the moment of order s, relative to it, s (s + 1) width^2 / 12 or a little more for every loss
/// that is not 0.
fn top(moments: &Composition, moved: f64, width: f64, log_dropped: f64) -> (f64, f64) {
    let at = |s: f64| {
        let spread = moved * (s * (s + 1.0) * width * width / 8.0).exp_m1();
        (moments.log_moment(s) + spread - log_dropped) / s
    };
    let (order, top) = rough_valley(at);
    let order = order.min(LARGEST_EXPONENT / top.abs());
    (order, at(order))
}

/// The composition of laws without their tails, the last loss that each kept, and what it lost.
fn without_tails(moments: &Composition, chance: f64) -> (Composition, Vec<(f64, f64)>) {
    let laws = moments.0.iter().filter_map(|(moments, rounds)| moments.law().map(|law| (law, *rounds)));
    let (kept, cuts) = laws
        .map(|(law, rounds)| {
            let (law, beyond) = law.without_tail(chance);
            let cut = (law.largest(), beyond);
            ((Moments::Law(law), rounds), cut)
        })
        .unzip();
    (Composition(kept), cuts)
}
