//! The worst pair of noisy sums over Poisson-many draws, in deviations of the noise.
//!
//! P is the mixture of normal laws around b mu with the weights of a Poisson law, Q that around -b mu; the page
//! `poisson_draws` under docs/theory shows that no neighbors are worse. The two are mirror images, and the loss
//! ln(p / q) grows with the place x: the losses at places from 0 on describe the pair.
//!
//! p(x) is e^(-x^2 / 2) times a polynomial in z = e^(mu x) with positive coefficients, and q(x) the same in 1 / z. Near a
//! center both are evaluated by coefficients that belong to it.

use super::U;
use super::cell::{Cell, MARGIN, nodes};
use super::counts::{Counts, poisson};
use super::normal::tail;
use super::pair::{Grain, MOST_LOSS};

/// The worst pair of a step.
pub struct SampledSum {
    /// The distance of neighboring means.
    mu: f64,
    /// How often the record that differs is drawn, from how often on, and how likely each number is.
    first: u64,
    weights: Vec<f64>,
    /// The probability of all other numbers.
    rest: f64,
    /// The last place, beyond which losses count as infinite.
    end: f64,
    /// What losses are raised by, relative to themselves: more than they are computed too small.
    raised: f64,
}

/// Deviations beyond the last mean that have less than 1e-57 of its mass.
const FARTHEST: f64 = 16.0;

/// Coefficients serve places as far from their center as all powers of z stay between e to minus this and to this.
const REACH: f64 = 16.0;

/// Coefficients below e to this of the largest are left out: within reach they stay below e^-43 of the sum.
const LEAST: f64 = -43.0 - 2.0 * REACH;

/// From this ratio of p and q on their logarithms are subtracted.
const LARGE: f64 = 1e13;

/// Steps of the grid on which moments are taken: in deviations, and relative to the place.
const STEP: f64 = 0.01;
const RELATIVE: f64 = 0.005;

/// Panels on which five nodes integrate to the last digits: a 32nd of a deviation, and three tenths of 1 / mu, where
/// sqrt(p q) has its nearest branch points at a distance of pi / mu.
const PANEL: f64 = 1.0 / 32.0;
const SHARE: f64 = 0.3;

/// Steps of Newton's method, within a bracket that is halved where they leave it.
const STEPS: usize = 100;

/// What is known of a place: the loss, how fast it grows there, and sqrt(p q).
#[derive(Clone, Copy)]
struct Point {
    loss: f64,
    slope: f64,
    density: f64,
}

impl SampledSum {
    /// The pair for a mean number of draws `rate` of the record that differs, where its parts are at most `mu`, apart from
    /// numbers of draws of probability at most about `negligible`.
    pub fn new(mu: f64, rate: f64, negligible: f64) -> SampledSum {
        let Counts { first, mut weights, mut rest } = poisson(rate, negligible);
        // So many draws are as good as revealed.
        let revealed = |b: u64| 2.0 * b as f64 * mu * (FARTHEST + b as f64 * mu) > MOST_LOSS;
        while weights.len() > 1 && revealed(first + weights.len() as u64 - 1) {
            rest += weights.pop().unwrap_or(0.0) * (1.0 + 4.0 * U);
        }
        if revealed(first) {
            rest = 1.0;
        }
        let last = (first + weights.len() as u64 - 1) as f64;
        let end = last * mu + FARTHEST;
        // Exponents with four roundings, powers and sums with two a term, and the search for places.
        let raised = U * (32.0 * (2.0 * end * end + 256.0) + 64.0 * last + 8192.0);
        SampledSum { mu, first, weights, rest: rest.min(1.0), end, raised }
    }

    /// The last number of draws.
    fn last(&self) -> u64 {
        self.first + self.weights.len() as u64 - 1
    }

    /// Whether there are no losses but 0 and infinite ones.
    fn is_blank(&self) -> bool {
        self.rest >= 1.0 || self.last() == 0
    }

    /// The probability under P of an infinite loss, or a place beyond this one, rounded up.
    pub fn infinity(&self, place: f64) -> f64 {
        if self.is_blank() {
            return self.rest;
        }
        let chance = |x: f64| if x < 0.0 { 1.0 } else { tail(x) };
        let draws = self.first..=self.last();
        let beyond: f64 = draws.zip(&self.weights).map(|(b, weight)| weight * chance(place - b as f64 * self.mu)).sum();
        (self.rest + beyond * (1.0 + MARGIN)).min(1.0)
    }

    /// Places from 0 to the last, dense enough for moments, and four times as far apart where the grain is coarse.
    pub fn natural_grid(&self, grain: Grain) -> Vec<f64> {
        if self.is_blank() {
            return vec![0.0];
        }
        let wider = if grain == Grain::Coarse { 4.0 } else { 1.0 };
        let next = |&place: &f64| Some(place + wider * STEP.max(RELATIVE * place));
        let places = std::iter::successors(Some(0.0), next).take_while(|&place| place < self.end);
        places.chain([self.end]).collect()
    }

    /// The losses at ascending places, rounded up.
    pub fn losses(&self, places: &[f64]) -> Vec<f64> {
        if self.is_blank() {
            return vec![0.0; places.len()];
        }
        let mut walk = Walk::new(self);
        places.iter().map(|&place| walk.at(place).loss).collect()
    }

    /// The places of ascending losses, the last place for those that are not reached.
    pub fn places(&self, losses: &[f64], places: &mut [f64]) {
        let (mut walk, mut from) = (Walk::new(self), 0.0);
        for (&loss, place) in losses.iter().zip(places) {
            from = if self.is_blank() || loss <= 0.0 { 0.0 } else { walk.find(loss, from) };
            *place = from;
        }
    }

    /// What the pair puts on the two ends of each cell between neighboring places and their losses.
    pub fn integrate(&self, places: &[f64], losses: &[f64], parts: &mut [[f64; 2]]) {
        if self.is_blank() {
            return;
        }
        let (mut walk, panel) = (Walk::new(self), PANEL.min(SHARE / self.mu));
        for (i, part) in parts.iter_mut().enumerate() {
            let ([low, high], [mut start, stop]) = ([losses[i], losses[i + 1]], [places[i], places[i + 1]]);
            let cell = Cell::new([low, high], [low, high]);
            while start < stop {
                let end = stop.min(start + panel);
                let width = end - start;
                for (at, weight) in nodes(width, panel) {
                    let point = walk.at(start + at * width);
                    cell.add(part, point.loss.clamp(low, high), weight * width * point.density);
                }
                start = end;
            }
        }
    }
}

/// A walk along places, with the coefficients about one of them.
struct Walk<'a> {
    pair: &'a SampledSum,
    center: f64,
    reach: f64,
    /// The number of draws of the first coefficients.
    first: u64,
    /// The coefficients of p and q, divided by e to the exponent.
    coefficients: Vec<[f64; 2]>,
    exponent: f64,
}

impl<'a> Walk<'a> {
    fn new(pair: &'a SampledSum) -> Walk<'a> {
        let mut walk = Walk { pair, center: 0.0, reach: 0.0, first: 0, coefficients: Vec::new(), exponent: 0.0 };
        walk.settle(0.0);
        walk
    }

    /// Computes the coefficients about a place.
    fn settle(&mut self, center: f64) {
        let SampledSum { mu, first, ref weights, .. } = *self.pair;
        let exponents = |(b, weight): (u64, &f64)| {
            let (log, mean) = (weight.ln(), b as f64 * mu);
            [-1.0, 1.0].map(|sign| log - (center + sign * mean).powi(2) / 2.0)
        };
        let exponents: Vec<[f64; 2]> = (first..).zip(weights).map(exponents).collect();
        let most = [0, 1].map(|i| exponents.iter().map(|pair| pair[i]).fold(f64::NEG_INFINITY, f64::max));
        let counts = |pair: &[f64; 2]| pair[0] - most[0] > LEAST || pair[1] - most[1] > LEAST;
        // The weights have a single peak, and so have the exponents: what counts may have a gap, but that is kept.
        let start = exponents.iter().position(counts).unwrap_or(0);
        let stop = exponents.iter().rposition(counts).unwrap_or(0);
        // The number 0 is kept: p and q agree in it.
        self.first = if start == 0 { first } else { first + start as u64 };
        self.exponent = f64::midpoint(most[0], most[1]);
        let scaled = |pair: &[f64; 2]| pair.map(|exponent| (exponent - self.exponent).exp());
        self.coefficients = exponents[start..=stop].iter().map(scaled).collect();
        self.center = center;
        self.reach = REACH / (self.pair.last() as f64 * mu);
    }

    fn at(&mut self, place: f64) -> Point {
        if (place - self.center).abs() > self.reach {
            self.settle(place);
        }
        let (mu, raised) = (self.pair.mu, self.pair.raised);
        let from_center = mu * (place - self.center);
        let powers = [from_center.exp(), (-from_center).exp()];
        let start = [1.0, -1.0].map(|sign| (sign * self.first as f64 * from_center).exp());
        // Sums over all numbers of draws, over those above 0, and times the numbers.
        let (mut sums, mut moved, mut means) = ([0.0; 2], [0.0; 2], [0.0; 2]);
        for (k, pair) in self.coefficients.iter().enumerate().rev() {
            let b = (self.first + k as u64) as f64;
            for i in 0..2 {
                sums[i] = sums[i] * powers[i] + pair[i];
                moved[i] = moved[i] * powers[i] + if b > 0.0 { pair[i] } else { 0.0 };
                means[i] = means[i] * powers[i] + b * pair[i];
            }
        }
        for i in 0..2 {
            [sums[i], moved[i], means[i]] = [sums[i], moved[i], means[i]].map(|sum| sum * start[i]);
        }
        let excess = if self.center == 0.0 { self.small_excess(place, powers) } else { moved[0] - moved[1] };
        let [p, q] = sums;
        let loss = if p < LARGE * q { (excess / q).ln_1p() } else { p.ln() - q.ln() };
        let exponent = self.exponent - (place - self.center) * (place + self.center) / 2.0;
        let density = exponent.exp() * (p * q).sqrt() / (2.0 * std::f64::consts::PI).sqrt();
        let growth = 1.0 + raised;
        Point { loss: loss * growth, slope: mu * (means[0] / p + means[1] / q), density: density * growth }
    }

    /// p - q by positive terms about 0, where the coefficients of both are the same: z^b - z^-b is z times that of b - 1,
    /// and z^-(b - 1) times z - 1 / z.
    fn small_excess(&self, place: f64, [power, inverse]: [f64; 2]) -> f64 {
        let once = 2.0 * (self.pair.mu * place).sinh();
        let (mut below, mut difference, mut excess) = (1.0, 0.0, 0.0);
        for b in 1..self.first + self.coefficients.len() as u64 {
            difference = power * difference + below * once;
            below *= inverse;
            if let Some(k) = b.checked_sub(self.first) {
                excess += self.coefficients[k as usize][0] * difference;
            }
        }
        excess
    }

    /// The place of a loss above 0, from a place of less on; the last one where it is not reached.
    fn find(&mut self, loss: f64, from: f64) -> f64 {
        let (mut low, mut high, mut place) = (from, self.pair.end, from);
        for _ in 0..STEPS {
            let point = self.at(place);
            *(if point.loss <= loss { &mut low } else { &mut high }) = place;
            let next = place + (loss - point.loss) / point.slope;
            let next = if low < next && next < high { next } else { f64::midpoint(low, high) };
            if (next - place).abs() <= 4.0 * U * next {
                break;
            }
            place = next;
        }
        place
    }
}
