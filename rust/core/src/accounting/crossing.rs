//! The search for the boundary of what a privacy target allows.

use super::pair::Grain;

/// Where a search begins, how far it goes and what it asks for.
#[derive(Clone, Copy, Debug)]
pub struct Range {
    /// The first number that is tried.
    pub start: f64,
    /// The least number, above 0.
    pub low: f64,
    /// The largest number.
    pub high: f64,
    /// Whether delta falls as the number grows: large numbers are then the private ones.
    pub falling: bool,
    /// Whether only whole numbers are tried.
    pub whole: bool,
    /// A search ends this close to the boundary, in the ratio of two numbers; of whole numbers none is left out where it
    /// is 0.
    pub tolerance: f64,
}

impl Range {
    /// A range of noise, which makes delta fall.
    pub fn of_noise(low: f64, high: f64) -> Range {
        let start = low.sqrt() * high.sqrt();
        Range { start, low, high, falling: true, whole: false, tolerance: TOLERANCE }
    }
}

/// How well a boundary is searched for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Care {
    /// The number returned meets the target.
    Shown,
    /// The number returned is about the boundary, on either side: for comparisons.
    Guessed,
}

/// The search for the number at which a delta crosses its target.
///
/// Delta is nearly a power of the number in the exponent: ln(-ln delta) against the logarithm of the number is close to
/// a line, which the search follows. First it does so by rough deltas, as far as they can tell, and then by those that
/// count. It brackets what it looks for, and ends on the side that is private.
pub struct Crossing {
    range: Range,
    /// ln(-ln delta) of the target, and the target.
    level: f64,
    target: f64,
    grain: Grain,
    /// How fast the line rises, as far as is known.
    slope: f64,
    good: Option<Point>,
    bad: Option<Point>,
    last: Option<Point>,
    asked: f64,
    tries: usize,
    /// The width of the last bracket, and how many tries in a row have not halved it.
    width: f64,
    slow: usize,
    /// Whether the slope was measured, and whether rough deltas are all that is asked for.
    measured: bool,
    guessed: bool,
    ended: bool,
}

/// A number that was tried, and how much more private than wanted it is.
#[derive(Clone, Copy)]
struct Point {
    at: f64,
    spare: f64,
    good: bool,
}

/// The tolerance of most searches.
pub const TOLERANCE: f64 = 1e-5;

/// A number that meets the target is the last where the line says that the boundary is closer than this part of the
/// tolerance.
const SURE: f64 = 0.75;

/// Rough deltas show the boundary no better.
const ROUGH: f64 = 1e-3;

/// No step is larger than this factor.
const STRIDE: f64 = 16.0;

/// After so many tries on one side of the boundary steps are longer than a line says, and after so many in all a bracket
/// is halved, whatever line its ends are on.
const HASTE: usize = 3;
const PATIENCE: usize = 12;

/// Where delta is this far from its target, in logarithms of logarithms, there is no line.
const FAR: f64 = 3.0;

/// How far from the boundary an end is wanted, as a part of the tolerance.
const ASIDE: f64 = 0.35;

impl Crossing {
    /// A search that has tried nothing yet. Without a look at rough deltas it starts with those that count, and shows what
    /// it returns.
    pub fn new(range: Range, target: f64, rough: bool, care: Care) -> Crossing {
        let guessed = rough && care == Care::Guessed;
        let grain = if rough { Grain::Coarse } else { Grain::Fine };
        let slope = if range.falling { 2.0 } else { -2.0 };
        let asked = range.start.clamp(range.low, range.high);
        let (level, good, bad, last) = (level(target), None, None, None);
        let (tries, width, slow, measured, ended) = (0, f64::INFINITY, 0, false, false);
        Crossing {
            range,
            level,
            target,
            grain,
            slope,
            good,
            bad,
            last,
            asked,
            tries,
            width,
            slow,
            measured,
            guessed,
            ended,
        }
    }

    /// The number to try next, and how carefully; None at the end.
    pub fn next(&self) -> Option<(f64, Grain)> {
        (!self.ended).then_some((self.asked, self.grain))
    }

    /// The last number that meets the target, if any does; about the boundary where that is all that was asked for.
    pub fn boundary(&self) -> Option<f64> {
        if self.guessed { Some(self.asked) } else { self.good.map(|point| point.at) }
    }

    /// Takes the delta of the number that was to be tried.
    pub fn tell(&mut self, delta: f64) {
        let (spare, good) = (level(delta) - self.level, delta <= self.target);
        let point = Point { at: self.asked, spare: spare.clamp(-FAR, FAR), good };
        self.learn(point);
        self.tries += 1;
        let rough = self.grain == Grain::Coarse;
        let next = match (self.good, self.bad) {
            (Some(good), Some(bad)) => {
                let near = good.at.max(bad.at) <= (1.0 + self.tolerance()) * good.at.min(bad.at);
                if near && (rough || !self.exact()) { None } else { self.between(good, bad) }
            }
            _ => self.beyond(point),
        };
        match next {
            _ if self.is_close(point) => self.ended = true,
            Some(next) if !(rough && point.spare.abs() < ROUGH) => self.asked = next,
            _ if rough => self.refine(),
            _ => self.ended = true,
        }
    }

    /// Whether all numbers up to the last are tried.
    fn exact(&self) -> bool {
        self.range.tolerance == 0.0
    }

    /// Whether a point ends the search by itself.
    fn is_close(&self, point: Point) -> bool {
        let distance = (point.spare / self.slope).abs();
        let shown = self.grain == Grain::Fine && point.good && self.measured;
        shown && !self.exact() && distance <= SURE * self.tolerance()
    }

    /// Keeps a point, and the slope of a line through it and the one before where they are far enough apart.
    fn learn(&mut self, point: Point) {
        if let Some(last) = self.last.replace(point) {
            let distance = (point.at / last.at).ln();
            let slope = (point.spare - last.spare) / distance;
            let known = point.spare.abs().max(last.spare.abs()) < FAR && distance.abs() > ROUGH / 4.0;
            if known && slope * self.slope > 0.0 && slope.is_finite() {
                (self.slope, self.measured) = (slope, true);
            }
        }
        *(if point.good { &mut self.good } else { &mut self.bad }) = Some(point);
    }

    /// Begins with the deltas that count where the rough ones end.
    fn refine(&mut self) {
        let ends = [self.good, self.bad];
        let nearest = ends.iter().flatten().min_by(|one, other| one.spare.abs().total_cmp(&other.spare.abs()));
        self.asked = self.inside(nearest.map_or(self.asked, |point| self.root(*point)));
        (self.good, self.bad, self.last, self.grain) = (None, None, None, Grain::Fine);
        (self.tries, self.width, self.slow, self.ended) = (0, f64::INFINITY, 0, self.guessed);
    }

    /// Where the line through a point crosses the target.
    fn root(&self, point: Point) -> f64 {
        let step = -point.spare / self.slope;
        point.at * step.exp().clamp(STRIDE.recip(), STRIDE)
    }

    /// A number within the range, whole where only these are tried.
    fn inside(&self, at: f64) -> f64 {
        let at = at.clamp(self.range.low, self.range.high);
        if self.range.whole { at.floor() } else { at }
    }

    /// On which side of a point the boundary is.
    fn outward(&self, point: Point) -> f64 {
        if point.good == self.range.falling { -1.0 } else { 1.0 }
    }

    /// A number a little beyond the boundary, seen from a point: the line is off by about the square of the distance.
    fn across(&self, point: Point) -> f64 {
        let distance = (self.root(point) / point.at).ln();
        let more = ASIDE * self.tolerance() + distance * distance / 4.0;
        point.at * (distance + more * self.outward(point)).exp()
    }

    /// A number beyond the boundary, where only one side of it is known; None where the range ends.
    fn beyond(&self, point: Point) -> Option<f64> {
        let outward = self.outward(point);
        let stride = if self.tries > HASTE { STRIDE.powf(0.25 * outward) } else { 1.0 };
        let next = self.inside(self.across(point) * stride);
        if (next - point.at) * outward > 0.0 {
            return Some(next);
        }
        let least = self.inside(if self.range.whole { point.at + outward } else { point.at * STRIDE.powf(outward) });
        (least != point.at).then_some(least)
    }

    /// A number between one that meets the target and one that does not; None where there is none.
    fn between(&mut self, good: Point, bad: Point) -> Option<f64> {
        let middle = good.at.sqrt() * bad.at.sqrt();
        let width = (bad.at / good.at).ln().abs();
        self.slow = if width > 0.5 * self.width { self.slow + 1 } else { 0 };
        self.width = width;
        let nearest = if good.spare.abs() < bad.spare.abs() { good } else { bad };
        let wanted = if self.tries > PATIENCE || self.slow > 2 { middle } else { self.across(nearest) };
        let (low, high) = (good.at.min(bad.at), good.at.max(bad.at));
        let strictly = |at: f64| (low < at && at < high).then_some(at);
        if self.range.whole {
            return strictly(wanted.round().max(low + 1.0).min(high - 1.0));
        }
        strictly(wanted).or_else(|| strictly(middle))
    }

    fn tolerance(&self) -> f64 {
        if self.grain == Grain::Coarse { ROUGH } else { self.range.tolerance.max(TOLERANCE) }
    }
}

/// ln(-ln delta), for no delta the end of what floats can tell.
fn level(delta: f64) -> f64 {
    (-delta.ln()).clamp(f64::EPSILON, 1e3).ln()
}
