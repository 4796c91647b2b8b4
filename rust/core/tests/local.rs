//! Local randomizers: what they refuse, and their laws under a fixed key.
#![allow(clippy::unwrap_used, missing_docs)]

use hdp_fast_core::local::{Categories, Hadamard, Kary, Range, Window, keep_probability};
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
    for (k, blocks, log2_size) in [(1, 1, 1), (4, 1, 2), (4, 0, 8), (4, 4, 0), (4, 1, 32), (4, 1, u32::MAX), (4, 2, 31)]
    {
        assert!(Hadamard::new(k, blocks, log2_size, epsilon(1.0)).is_err());
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
    let hadamard = Hadamard::new(9, 3, 2, privacy).unwrap();
    let draws: [(&str, usize, Draw); 3] = [
        ("window", 27, Box::new(move |rng| window.draw(0.7, words(rng), rng))),
        ("kary", 9, Box::new(move |rng| kary.draw(70, rng.next_u64(), rng))),
        ("hadamard", 12, Box::new(move |rng| hadamard.draw(-70, rng.next_u64(), rng))),
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
    let (kary, hadamard) = (Kary::new(1000, certain).unwrap(), Hadamard::new(1000, 9, 7, certain).unwrap());
    for value in 0..1000 {
        assert_eq!(kary.draw(value, rng.next_u64(), &mut rng), value);
        let column = hadamard.draw(value, rng.next_u64(), &mut rng);
        let (block, row) = (value % 9, 1 + value / 9);
        assert_eq!((column >> 7, (column & 127 & row).count_ones() % 2), (block, 0));
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
