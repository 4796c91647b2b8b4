//! Local randomizers: what they refuse, and their laws under a fixed key.
#![allow(clippy::unwrap_used, missing_docs)]

use hdp_fast_core::local::{Categories, Geometry, Kary, Range, Selection, Space, Subsets, Window, keep_probability};
use hdp_fast_core::noise::{Rng, Seed, Stream, draws_for};
use hdp_fast_core::params::Epsilon;
use hdp_fast_core::run::Run;
use hdp_fast_core::simd::Isa;

type Draw = Box<dyn Fn(&mut Rng) -> i64>;

fn epsilon(value: f64) -> Epsilon {
    Epsilon::new(value).unwrap()
}

fn stream() -> Rng {
    Seed::reproducible([7; 32]).stream(Stream::Response, 0)
}

fn words<const WORDS: usize>(rng: &mut Rng) -> [u64; WORDS] {
    std::array::from_fn(|_| rng.next_u64())
}

#[test]
fn nonsense_is_refused() {
    for (low, width) in [(f64::NAN, 1.0), (0.0, 0.0), (0.0, -1.0), (0.0, f64::INFINITY), (f64::INFINITY, 1.0)] {
        assert!(Range::new(low, width).is_err());
    }
    for (log2_steps, length) in [(8, 0), (8, 257), (61, 1), (64, 1), (u32::MAX, 1)] {
        assert!(Window::new(Range::UNIT, log2_steps, length, epsilon(1.0)).is_err());
    }
    for k in [0, 1, (1 << 31) + 1, 1 << 32, u64::MAX] {
        assert!(Kary::new(k, epsilon(1.0)).is_err());
    }
    for (q, dimension) in [(0, 3), (1, 3), (4, 3), (9, 2), (32_771, 2), (3, 0), (3, 1), (2, 32), (3, u32::MAX)] {
        assert!(Space::new(q, dimension).is_err(), "{q} {dimension}");
    }
    for (items, width) in [(0, 0), (5, 0), (5, 6), (40, 20), (1 << 15, 1), (u32::MAX, u32::MAX)] {
        assert!(Subsets::all(items, width).is_err(), "{items} {width}");
    }
    for (items, width) in [(0, 0), (2, 1), (9, 2), (7, 0), (7, 7), (32_771, 2), (u32::MAX, 3)] {
        assert!(Subsets::progressions(items, width).is_err(), "{items} {width}");
    }
    for k in [0, 1, 8, u64::MAX] {
        assert!(Geometry::new(k, Space::new(2, 3).unwrap(), epsilon(1.0)).is_err());
        assert!(Selection::new(k, Subsets::all(7, 2).unwrap(), epsilon(1.0)).is_err());
    }
    let run = Run::alone(Isa::Portable);
    for (counts, k) in [(0, 1), (6, 1), (8, 1), (7, 0), (7, 8)] {
        assert!(Space::new(2, 3).unwrap().add_up(&vec![0; counts], k, run).is_err());
        assert!(Subsets::all(7, 1).unwrap().add_up(&vec![0; counts], k, run).is_err());
    }
}

#[test]
fn every_number_has_a_position() {
    let range = Range::new(-2.0, 8.0).unwrap();
    for (value, position) in [(-2.0, 0.0), (0.0, 0.25), (6.0, 1.0), (7.0, 1.0), (-1e308, 0.0), (f64::INFINITY, 1.0)] {
        assert_eq!(range.position(value), position);
    }
    assert_eq!(range.position(f64::NAN), 0.0);
}

#[test]
fn outcomes_of_ones_own_are_rounded_down() {
    for (value, kept, all) in
        [(1e-9, 1, 1000), (0.5, 3, 7), (1.0, 1, 2), (10.0, 1, 1 << 40), (60.0, 1, 2), (700.0, 1, 2)]
    {
        let chance = keep_probability(epsilon(value), kept, all).to_f64();
        let odds = f64::min(value, 60.0).exp_m1() * kept as f64 / all as f64;
        let exact = odds / (1.0 + odds);
        // A part of itself and a unit of 2^-64 are given up.
        assert!(chance <= exact && chance >= exact * (1.0 - 1e-13) - 1e-19);
    }
}

#[test]
fn all_outcomes_and_no_others_come_up() {
    let (mut rng, privacy) = (stream(), epsilon(0.1));
    let window = Window::new(Range::UNIT, 4, 11, privacy).unwrap();
    let kary = Kary::new(9, privacy).unwrap();
    let geometry = Geometry::new(12, Space::new(3, 3).unwrap(), privacy).unwrap();
    let sets = Selection::new(5, Subsets::all(5, 2).unwrap(), privacy).unwrap();
    let lines = Selection::new(6, Subsets::progressions(7, 3).unwrap(), privacy).unwrap();
    let draws: [(&str, usize, Draw); 5] = [
        ("window", 27, Box::new(move |rng| window.draw(0.7, words(rng), rng))),
        ("kary", 9, Box::new(move |rng| kary.draw(70, rng.next_u64(), rng))),
        ("geometry", 13, Box::new(move |rng| geometry.draw(-70, rng.next_u64(), rng))),
        ("sets", 10, Box::new(move |rng| sets.draw(70, rng.next_u64(), rng))),
        ("lines", 21, Box::new(move |rng| lines.draw(70, rng.next_u64(), rng))),
    ];
    for (name, outcomes, draw) in draws {
        let mut seen = vec![0; outcomes];
        (0..2000).for_each(|_| seen[usize::try_from(draw(&mut rng)).unwrap()] += 1);
        assert!(seen.iter().all(|&count| count > 0), "{name}: {seen:?}");
    }
}

#[test]
fn with_epsilon_large_the_value_is_told() {
    let (mut rng, certain) = (stream(), epsilon(60.0));
    let kary = Kary::new(1000, certain).unwrap();
    for value in 0..1000 {
        assert_eq!(kary.draw(value, rng.next_u64(), &mut rng), value);
    }
}

/// The coordinates of a point of the space, and of a value.
fn coordinates(q: usize, dimension: u32, place: usize) -> (Vec<usize>, Vec<usize>) {
    let (mut start, mut power) = (0, 1);
    while place >= start + power {
        (start, power) = (start + power, power * q);
    }
    let number = power + place - start;
    let point: Vec<usize> = (0..dimension).map(|i| number / q.pow(i) % q).collect();
    (point.clone(), point.into_iter().rev().collect())
}

/// Each report about a value holds it, each of its reports comes up, and they add up to what one by one gives.
fn agrees(
    k: usize,
    holds: impl Fn(usize, usize) -> bool,
    draw: Draw2<'_>,
    add_up: impl Fn(&[i64]) -> Vec<i64>,
    all: usize,
) {
    let mut rng = stream();
    for value in 0..k {
        let mut seen = vec![false; all];
        (0..20 * all).for_each(|_| seen[usize::try_from(draw(value as i64, &mut rng)).unwrap()] = true);
        assert_eq!(seen, (0..all).map(|report| holds(report, value)).collect::<Vec<_>>(), "{value}");
    }
    let counts: Vec<i64> = (0..all).map(|_| (rng.next_u64() >> 54) as i64).collect();
    let one_by_one = |value: usize| (0..all).filter(|&report| holds(report, value)).map(|report| counts[report]).sum();
    assert_eq!(add_up(&counts), (0..k).map(one_by_one).collect::<Vec<i64>>());
}

type Draw2<'a> = &'a dyn Fn(i64, &mut Rng) -> i64;

#[test]
fn points_are_those_of_the_hyperplane_of_the_value() {
    for (q, dimension) in [(2, 2), (2, 3), (2, 5), (3, 2), (3, 3), (3, 4), (5, 3), (7, 2), (7, 3), (13, 2)] {
        let space = Space::new(q, dimension).unwrap();
        let all = (0..dimension).map(|i| q.pow(i) as usize).sum::<usize>();
        for k in [2, (all / 2).max(2), all] {
            let geometry = Geometry::new(k as u64, space.clone(), epsilon(60.0)).unwrap();
            let holds = |report, value| {
                let ((y, _), (_, v)) =
                    (coordinates(q as usize, dimension, report), coordinates(q as usize, dimension, value));
                y.iter().zip(&v).map(|(y, v)| y * v).sum::<usize>() % q as usize == 0
            };
            let draw: Draw2<'_> = &|value, rng| geometry.draw(value, rng.next_u64(), rng);
            let run = Run::alone(Isa::Portable);
            agrees(k, holds, draw, |counts| space.add_up(counts, k, run).unwrap(), all);
        }
    }
}

#[test]
fn sets_are_those_with_the_value() {
    let in_order = |items: u32, width: u32| {
        let mut sets: Vec<u32> = (0u32..1 << items).filter(|set| set.count_ones() == width).collect();
        sets.sort_unstable();
        sets
    };
    let run = Run::alone(Isa::Portable);
    for (items, width) in [(2, 1), (2, 2), (5, 1), (5, 2), (5, 4), (6, 3), (7, 7), (9, 4)] {
        let (subsets, sets) = (Subsets::all(items, width).unwrap(), in_order(items, width));
        let selection = Selection::new(u64::from(items), subsets.clone(), epsilon(60.0)).unwrap();
        let draw: Draw2<'_> = &|value, rng| selection.draw(value, rng.next_u64(), rng);
        let k = items as usize;
        agrees(
            k,
            |report, value| sets[report] >> value & 1 == 1,
            draw,
            |counts| subsets.add_up(counts, k, run).unwrap(),
            sets.len(),
        );
    }
    for (items, width, k) in [(3, 1, 2), (3, 2, 3), (5, 2, 4), (7, 3, 7), (11, 5, 8), (13, 12, 13)] {
        let subsets = Subsets::progressions(items, width).unwrap();
        let selection = Selection::new(k as u64, subsets.clone(), epsilon(60.0)).unwrap();
        let draw: Draw2<'_> = &|value, rng| selection.draw(value, rng.next_u64(), rng);
        let p = items as usize;
        let holds = |report: usize, value| ((report / p + 1) * value + report % p) % p < width as usize;
        agrees(k, holds, draw, |counts| subsets.add_up(counts, k, run).unwrap(), (p - 1) / 2 * p);
    }
}

#[test]
fn draws_have_their_own_inputs() {
    let inputs: Vec<u32> = (0..40_000).collect();
    let mut drawn = vec![(0, 0); inputs.len()];
    let seed = Seed::reproducible([7; 32]);
    let run = Run::alone(Isa::Portable);
    draws_for(&inputs, &mut drawn, Stream::Response, &seed, run, |input, [word], _| (input, word)).unwrap();
    assert!(inputs.iter().zip(&drawn).all(|(input, (same, _))| input == same));
    let mut again = seed.stream(Stream::Response, 1);
    assert_eq!(drawn[1 << 14].1, again.next_u64());
}
