//! Reports of many people that a shuffler mixes: the worst pair when one person's value changes.
//!
//! Whatever the pure randomizer, another's report is one of two common laws with probability p' each, a third one with
//! probability g, and otherwise a report of its own; the differing person's is the three with probabilities that depend
//! on its value. So counts of those three dominate what is seen; the page `shuffled_reports` under docs/theory proves
//! it. Given m reports of the first two laws and k of the third, the loss is 2 artanh(theta l R): theta = tanh(epsilon /
//! 2), R the mean of m fair signs, and l = 1 / (1 + ratio k / m) the probability that the differing report is among the
//! m. The curve of (m, k) falls as m grows and l stays, since R of more signs is R with noise; it is convex in l; and k
//! of a larger m is stochastically smaller. Three uses:
//!
//! - a block of neighboring m has the curve of its least m, with the l and the k of its largest;
//! - between nodes of k the mass is split linearly in l;
//! - what lies outside of windows has the curve of one report that nobody hides: the mechanism stays pure.
//!
//! Binary reports have a curve of their own: their sum, for every number of the others whose bit is 1. Here a block of
//! neighboring numbers has the curve of those people whose bit is the same in all of it; the others only hide more.

use super::U;
use super::counts::{Counts, binomial};
use super::hull::{Dot, atoms};

/// More people than these count as these.
const MOST_PEOPLE: u64 = 1_000_000_000;
/// The same where the sums of bits are formed.
const MOST_BITS: u64 = 1_000_000;

/// Above this epsilon of one report nobody hides it.
const LARGEST: f64 = 60.0;

/// What windows leave out at either end, and those of bits, whose sums are long.
const NEGLIGIBLE: f64 = 1e-60;
const NEGLIGIBLE_BITS: f64 = 1e-45;

/// A block holds a number of reports m up to this part of it, and a window this many nodes: the epsilon grows by a
/// thousandth at most.
const BLOCK: u64 = 1024;
const NODES: usize = 33;

/// Up to so many people blocks of bits are one part in so many of their distance from the nearer end, and at least that
/// part of a 64th of all: the worst numbers are near the ends.
const SIZES: [(u64, u64); 6] = [(256, 256), (4_000, 32), (20_000, 16), (100_000, 8), (300_000, 4), (MOST_BITS, 2)];
const NEAREST: u64 = 64;

/// Every curve is raised by this part of itself: windows, tails of tails and a dozen operations a term.
const MARGIN: f64 = 1e-10;
/// Sums of bits are raised by this part of the larger of two numbers whose difference they are.
const OF_DIFFERENCES: f64 = 4e-11;

/// Dots to a standard deviation, and relative to the loss; where a pair has few losses each has a dot of its own.
const RESOLUTION: f64 = 64.0;
const RELATIVE: f64 = 0.004;
const FEW: usize = 4096;
/// No dots are closer, relative to the largest loss.
const LEAST_STEP: f64 = 1e-8;

/// Reports of one randomizer behind a shuffler.
pub struct Shuffled {
    /// The privacy parameter of one report.
    epsilon: f64,
    /// The common laws; nothing where nobody hides.
    mixed: Vec<Mixed>,
    /// The probability of what is not listed.
    rest: f64,
    bits: Option<Bits>,
}

/// A block of numbers of reports of the first two laws.
struct Mixed {
    /// The least number.
    size: u64,
    /// By 1 / l - 1, how likely l is.
    nodes: Vec<(f64, f64)>,
    /// The fair coins of that many reports.
    tails: Tails,
}

/// Sums of the lower half of a binomial law of fair coins.
struct Tails {
    first: u64,
    /// Of masses up to an outcome, and of those sums before an outcome.
    once: Vec<f64>,
    twice: Vec<f64>,
}

impl Shuffled {
    /// The worst pair of `people` reports with this epsilon: of any randomizer, or of one that answers with one of
    /// `categories` categories, the true one or else any other (0 for any).
    pub fn new(epsilon: f64, people: u64, categories: u64) -> Shuffled {
        let mut shuffled = Shuffled { epsilon, mixed: Vec::new(), rest: 1.0, bits: None };
        if epsilon > LARGEST {
            return shuffled;
        }
        shuffled.mix(people.min(MOST_PEOPLE), categories);
        if categories == 2 {
            shuffled.bits = Some(Bits::new(epsilon, people.min(MOST_BITS)));
        }
        shuffled
    }

    /// Lists the blocks.
    fn mix(&mut self, people: u64, categories: u64) {
        let lie = (-self.epsilon).exp() / (1.0 + (-self.epsilon).exp());
        // The probability that the differing report is of the first two laws, g, and the ratio.
        let (chosen, common, ratio) = match categories {
            0 | 2 => (1.0, 0.0, 0.0),
            _ => {
                let (odds, others) = (self.epsilon.exp(), (categories - 2) as f64);
                ((odds + 1.0) / (odds + 1.0 + others), others / (odds + 1.0 + others), 2.0 * lie)
            }
        };
        let twice = (2.0 * chosen * lie).min(1.0);
        let of_rest = (common / (1.0 - twice)).min(1.0);
        let others = binomial(people - 1, twice, NEGLIGIBLE);
        let mass = |m: u64| [chosen * weight(&others, m.checked_sub(1)), (1.0 - chosen) * weight(&others, Some(m))];
        self.rest = others.rest;
        let last = others.first + others.weights.len() as u64;
        let mut low = others.first;
        while low <= last {
            let high = last.min(low + low / BLOCK);
            let whole: f64 = (low..=high).flat_map(mass).sum();
            let [with, without] = mass(high);
            if low > 0 && whole > 0.0 {
                let share = if without > 0.0 { with / (with + without) } else { 1.0 };
                let third = third(people - high, of_rest, share);
                let (tails, missed) = Tails::new(low);
                self.rest += whole * (third.rest + 2.0 * missed);
                let nodes = spread(&third, high, ratio);
                let nodes = nodes.into_iter().map(|(odds, weight)| (odds, weight * whole)).collect();
                self.mixed.push(Mixed { size: low, nodes, tails });
            }
            low = high + 1;
        }
        self.rest = self.rest.min(1.0);
    }

    /// The delta at an epsilon of at least 0, rounded up.
    pub fn delta(&self, epsilon: f64) -> f64 {
        let alone = alone(self.epsilon, epsilon);
        if alone == 0.0 || self.mixed.is_empty() {
            return alone;
        }
        let mixed: f64 = self.mixed.iter().map(|block| block.delta(self.epsilon, epsilon, alone)).sum();
        let shown = (mixed + self.rest * alone) * (1.0 + MARGIN);
        let bits = self.bits.as_ref().map_or(1.0, |bits| bits.delta(self.epsilon, epsilon));
        shown.min(bits).min(alone)
    }

    /// The least epsilon of at least 0 with this delta, rounded up.
    pub fn epsilon(&self, delta: f64) -> f64 {
        let holds = |epsilon: f64| self.delta(epsilon) <= delta;
        if holds(0.0) { 0.0 } else { super::boundary(self.epsilon, 0.0, holds) }
    }

    /// Losses above 0 with their masses: of a pair that is at most as private.
    pub fn atoms(&self) -> Vec<(f64, f64)> {
        let dots = self.losses().into_iter().map(|loss| Dot { loss, delta: self.delta(loss) });
        atoms(dots.collect()).0
    }

    /// Ascending losses from 0 to the largest, dense where the curve bends.
    fn losses(&self) -> Vec<f64> {
        if self.mixed.is_empty() {
            return vec![0.0, self.epsilon];
        }
        let theta = (self.epsilon / 2.0).tanh();
        let deviation = |block: &Mixed| {
            let share: f64 = block.nodes.iter().map(|&(odds, weight)| weight / (1.0 + odds)).sum();
            share / (block.size as f64).sqrt()
        };
        let scale = (2.0 * theta * self.mixed.iter().map(deviation).sum::<f64>()).min(self.epsilon);
        let first = (scale / RESOLUTION).max(self.epsilon * LEAST_STEP);
        let next = |&loss: &f64| Some(loss + first.max(RELATIVE * loss));
        let mut losses: Vec<f64> =
            std::iter::successors(Some(0.0), next).take_while(|&loss| loss < self.epsilon).collect();
        let corners = self.mixed.iter().map(|block| block.nodes.len() * (block.size as usize / 2 + 1)).sum::<usize>();
        if corners <= FEW {
            for block in &self.mixed {
                let size = block.size as f64;
                let signs = (0..=block.size / 2).map(|i| (size - 2.0 * i as f64) / size);
                losses.extend(signs.flat_map(|mean| {
                    block.nodes.iter().map(move |&(odds, _)| 2.0 * (theta * mean / (1.0 + odds)).atanh())
                }));
            }
        }
        losses.retain(|loss| (0.0..self.epsilon).contains(loss));
        losses.push(self.epsilon);
        losses.sort_by(f64::total_cmp);
        losses.dedup();
        losses
    }
}

/// The delta of one report that nobody hides, rounded up.
fn alone(largest: f64, epsilon: f64) -> f64 {
    if epsilon >= largest {
        return 0.0;
    }
    // (E - w) / (E + 1) without forming either.
    (-(epsilon - largest).exp_m1() / (1.0 + (-largest).exp()) * (1.0 + 8.0 * U)).min(1.0)
}

/// The weight of an outcome.
fn weight(counts: &Counts, outcome: Option<u64>) -> f64 {
    let place = outcome.and_then(|outcome| outcome.checked_sub(counts.first));
    place.and_then(|place| counts.weights.get(place as usize)).copied().unwrap_or(0.0)
}

/// The number of reports of the third law among `left`; with probability 1 - `share` one of them is the differing one.
fn third(left: u64, rate: f64, share: f64) -> Counts {
    let with = binomial(left, rate, NEGLIGIBLE);
    if share >= 1.0 || left == 0 {
        return with;
    }
    let without = binomial(left - 1, rate, NEGLIGIBLE);
    let first = with.first.min(without.first + 1);
    let last = (with.first + with.weights.len() as u64).max(without.first + without.weights.len() as u64 + 1);
    let mass = |k: u64| share * weight(&with, Some(k)) + (1.0 - share) * weight(&without, k.checked_sub(1));
    Counts { first, weights: (first..last).map(mass).collect(), rest: with.rest + without.rest }
}

/// Nodes of k by 1 / l - 1 with their weights, to which those of all numbers k are split.
fn spread(third: &Counts, size: u64, ratio: f64) -> Vec<(f64, f64)> {
    let odds = |place: usize| ratio * (third.first + place as u64) as f64 / size as f64;
    let last = third.weights.len() - 1;
    let places: Vec<usize> =
        if last < NODES { (0..=last).collect() } else { (0..NODES).map(|node| node * last / (NODES - 1)).collect() };
    let mut nodes: Vec<(f64, f64)> = places.iter().map(|&place| (odds(place), 0.0)).collect();
    let mut node = 0;
    for (place, &weight) in third.weights.iter().enumerate() {
        while node + 1 < places.len() && places[node + 1] <= place {
            node += 1;
        }
        let (here, next) = (places[node], places.get(node + 1).copied().unwrap_or(places[node] + 1));
        let part = (next - place) as f64 / (next - here) as f64 * ((1.0 + odds(here)) / (1.0 + odds(place)));
        nodes[node].1 += part * weight;
        if let Some(next) = nodes.get_mut(node + 1) {
            next.1 += (1.0 - part).max(0.0) * weight;
        }
    }
    nodes
}

impl Mixed {
    /// Its part of delta, at an epsilon where one report that nobody hides has the delta `alone`.
    fn delta(&self, largest: f64, epsilon: f64, alone: f64) -> f64 {
        let (steep, growth) = ((1.0 + epsilon.exp()) * (largest / 2.0).tanh(), epsilon.exp_m1());
        // What no sign being negative tells, and how much less one more does: m (1 + odds) times the latter is 2 steep.
        let part = |&(odds, weight): &(f64, f64)| {
            let slope = 2.0 * steep / (1.0 + odds) / self.size as f64;
            let value = (2.0 * alone * (1.0 + 8.0 * U) - odds * growth * (1.0 - 8.0 * U)) / (1.0 + odds);
            if value <= 0.0 { 0.0 } else { weight * slope * self.tails.excess(value / slope * (1.0 + 16.0 * U)) }
        };
        self.nodes.iter().map(part).sum()
    }
}

impl Tails {
    /// Those of so many coins, and the probability of what is left out.
    fn new(coins: u64) -> (Tails, f64) {
        let counts = binomial(coins, 0.5, NEGLIGIBLE);
        // Up to one beyond the middle, which an epsilon of 0 may reach by rounding.
        let kept = counts.weights.iter().take((coins / 2 + 2 - counts.first) as usize);
        let sums = |state: &mut f64, mass: f64| {
            let before = *state;
            *state += mass;
            Some((before, *state))
        };
        let once: Vec<f64> = kept.scan(0.0, |sum, &mass| sums(sum, mass)).map(|(_, after)| after).collect();
        let twice = once.iter().scan(0.0, |sum, &mass| sums(sum, mass)).map(|(before, _)| before).collect();
        (Tails { first: counts.first, once, twice }, counts.rest)
    }

    /// The mean of how far outcomes lie below a number that is near half of all or less.
    fn excess(&self, number: f64) -> f64 {
        let Some(place) = (number as u64).checked_sub(self.first) else { return 0.0 };
        let place = (place as usize).min(self.once.len() - 1);
        (number - (self.first + place as u64) as f64) * self.once[place] + self.twice[place]
    }
}

/// Sums of bits by randomized response.
struct Bits {
    blocks: Vec<Block>,
    /// The probability of sums that are not listed.
    rest: f64,
}

/// The sum of the others' reports: masses and the sums of those from each on.
struct Block {
    masses: Vec<f64>,
    tails: Vec<f64>,
}

/// Ascending numbers from 0 to `people`, between which blocks lie.
fn block_ends(people: u64) -> Vec<u64> {
    let parts = SIZES.iter().find(|(most, _)| people <= *most).map_or(2, |(_, parts)| *parts);
    let next = |&end: &u64| Some(end + (people / (NEAREST * parts)).max(end / parts).max(1));
    let lower: Vec<u64> = std::iter::successors(Some(0), next).take_while(|&end| 2 * end < people).collect();
    let upper: Vec<u64> = lower.iter().rev().map(|end| people - end).collect();
    [lower, upper].concat()
}

impl Bits {
    fn new(epsilon: f64, people: u64) -> Bits {
        let (others, lie) = (people - 1, (1.0 + epsilon.exp()).recip());
        let mut bits = Bits { blocks: Vec::new(), rest: 0.0 };
        for pair in block_ends(people).windows(2) {
            // From pair[0] to pair[1] - 1 of the others have the bit 1.
            let (yes, no) =
                (binomial(pair[0], lie, NEGLIGIBLE_BITS), binomial(others - (pair[1] - 1), lie, NEGLIGIBLE_BITS));
            let mut masses = vec![0.0; yes.weights.len() + no.weights.len() - 1];
            for (i, lies) in yes.weights.iter().rev().enumerate() {
                for (mass, one) in masses[i..].iter_mut().zip(&no.weights) {
                    *mass += lies * one;
                }
            }
            let mut tails = masses.clone();
            for i in (0..tails.len() - 1).rev() {
                tails[i] += tails[i + 1];
            }
            bits.rest = bits.rest.max(yes.rest + no.rest);
            bits.blocks.push(Block { masses, tails });
        }
        bits
    }

    /// The delta at an epsilon, rounded up: a person with the bit 1 is told from one with the bit 0 by a large sum. A small
    /// sum that tells the opposite is the same with all bits exchanged.
    fn delta(&self, largest: f64, epsilon: f64) -> f64 {
        // A sum counts where `more` times the mass of the sum of the others one below exceeds `less` times that of the sum.
        let more = alone(largest, epsilon);
        let less = more + epsilon.exp_m1();
        let of_block = |block: &Block| {
            let mass = |i: usize| block.masses.get(i).copied().unwrap_or(0.0);
            let (mut low, mut high) = (1, block.masses.len());
            while low < high {
                let middle = usize::midpoint(low, high);
                if more * block.masses[middle - 1] > less * mass(middle) { high = middle } else { low = middle + 1 }
            }
            let (above, below) = (more * block.tails[low - 1], less * block.tails.get(low).copied().unwrap_or(0.0));
            above - below + OF_DIFFERENCES * (above + below)
        };
        let worst = self.blocks.iter().map(of_block).fold(0.0, f64::max);
        (worst + self.rest * more) * (1.0 + MARGIN)
    }
}
