//! Coins: rounding directions, exactness on streams that are known, and laws under a fixed key.
#![allow(clippy::unwrap_used, missing_docs)]

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use hdp_fast_core::local::{randomized_response, truth_probability};
use hdp_fast_core::noise::{Bernoulli, DiscreteLaplace, Fixed, Rng, Seed, Stream, bernoulli_array};
use hdp_fast_core::params::Epsilon;
use hdp_fast_core::run::Run;
use hdp_fast_core::simd::Isa;

const TWO_64: f64 = 18_446_744_073_709_551_616.0;

const PURPOSES: [Stream; 7] = [
    Stream::Sampling,
    Stream::Answer,
    Stream::Solution,
    Stream::Response,
    Stream::Bernoulli,
    Stream::Noise,
    Stream::Speed,
];

fn seed() -> Seed {
    Seed::reproducible([42; 32])
}

fn stream(index: u64) -> Rng {
    seed().stream(Stream::Noise, index)
}

fn words(rng: &mut Rng, count: usize) -> Vec<u64> {
    (0..count).map(|_| rng.next_u64()).collect()
}

fn two_to(exponent: i32) -> f64 {
    2f64.powi(exponent)
}

/// Probabilities where rounding could go wrong, all below one.
fn edge_cases() -> Vec<f64> {
    let powers = (1..=70).map(|k| two_to(-k));
    let near_one = (1..=53).map(|k| 1.0 - two_to(-k));
    let plain = [0.0, 5e-324, f64::MIN_POSITIVE, 1e-300, 1e-25, 1e-10, 0.1, 1.0 / 3.0, 0.7, 0.5 + two_to(-53)];
    powers.chain(near_one).chain(plain).collect()
}

#[test]
fn certainly_below_stays_below_by_more_than_its_inputs_error() {
    for p in edge_cases() {
        // Scaling by a power of two is exact, and so is the truncation.
        let exact = (p * TWO_64) as u128;
        let rounded = u128::from(Fixed::certainly_below(p).0);
        assert!(rounded <= exact - (exact >> 46), "{p:e}");
        assert!(rounded + (exact >> 44) + 1 >= exact, "{p:e}: lower than needed");
    }
    assert_eq!(Fixed::certainly_below(0.0), Fixed(0));
    assert_eq!(Fixed::certainly_below(5e-324), Fixed(0));
    assert_eq!(Fixed::certainly_below(two_to(-64)), Fixed(0));
    // tanh gives one for a large epsilon.
    assert!(Fixed::certainly_below(1.0).0 < u64::MAX - (1 << 18));
}

#[test]
fn at_least_is_the_smallest_multiple_not_below() {
    for p in edge_cases() {
        let scaled = p * TWO_64;
        let expected = scaled as u128 + u128::from(scaled.fract() > 0.0);
        assert_eq!(u128::from(Fixed::at_least(p).0), expected, "{p:e}");
    }
    assert_eq!(Fixed::at_least(0.0), Fixed(0));
    assert_eq!(Fixed::at_least(5e-324), Fixed(1));
    assert_eq!(Fixed::at_least(two_to(-64) * 1.5), Fixed(2));
    assert_eq!(Fixed::at_least(1.0 - two_to(-53)), Fixed(u64::MAX - (1 << 11) + 1));
}

#[test]
fn fixed_draws_compare_one_word() {
    for index in 0..1000 {
        let word = stream(index).next_u64();
        assert!(!Fixed(0).draw(&mut stream(index)));
        assert!(!Fixed(word).draw(&mut stream(index)));
        assert!(Fixed(word + 1).draw(&mut stream(index)));
    }
    let mut rng = stream(0);
    Fixed(1 << 63).draw(&mut rng);
    assert_eq!(rng.next_u64(), words(&mut stream(0), 2)[1]);
    assert_eq!(Fixed(1 << 62).to_f64(), 0.25);
}

#[test]
fn certain_coins_take_nothing_from_the_stream() {
    let never = [Bernoulli::float(0.0), Bernoulli::ratio(0, 1), Bernoulli::ratio(0, u64::MAX)];
    let always = [Bernoulli::float(1.0), Bernoulli::ratio(1, 1), Bernoulli::ratio(u64::MAX, u64::MAX)];
    let mut rng = stream(1);
    assert!(never.iter().all(|coin| !coin.draw(&mut rng)));
    assert!(always.iter().all(|coin| coin.draw(&mut rng)));
    assert_eq!(rng.next_u64(), stream(1).next_u64());
}

/// Reads the stream as the binary digits of a number u in [0, 1): the coin must be true exactly if u < p.
#[test]
fn ratios_are_compared_exactly_with_the_digits_of_the_stream() {
    for denominator in [2, 3, 1_000_000_007, 1 << 63, u64::MAX - 58, u64::MAX] {
        for index in 0..300 {
            let digits = words(&mut stream(index), 2);
            let d = u128::from(denominator);
            let below = ((u128::from(digits[0]) * d + ((u128::from(digits[1]) * d) >> 64)) >> 64) as u64;
            assert!(!Bernoulli::ratio(below, denominator).draw(&mut stream(index)), "{below}/{denominator}");
            assert!(Bernoulli::ratio(below + 1, denominator).draw(&mut stream(index)), "{below}/{denominator}");
        }
    }
}

#[test]
fn floats_are_compared_exactly_with_the_digits_of_the_stream() {
    for index in 0..20_000 {
        // The 53 leading bits; in one of 2^11 streams the next ones are zeros too, and the first word is a tie.
        let below = (stream(index).next_u64() >> 11) as f64 * two_to(-53);
        assert!(!Bernoulli::float(below).draw(&mut stream(index)));
        assert!(Bernoulli::float(below + two_to(-53)).draw(&mut stream(index)));
    }
}

#[test]
fn floats_with_bits_beyond_the_first_word_need_the_second() {
    let mut rng = stream(2);
    let mut position = 0;
    let first = loop {
        let word = rng.next_u64();
        if word < 1 << 42 {
            break word;
        }
        position += 1;
    };
    let second = rng.next_u64();
    let coin = |fraction: u64| Bernoulli::float((first as f64 + fraction as f64 / 1024.0) / TWO_64);
    let draw = |coin: Bernoulli| {
        let mut rng = stream(2);
        words(&mut rng, position);
        coin.draw(&mut rng)
    };
    assert!(!draw(coin(second >> 54)));
    assert!(draw(coin((second >> 54) + 1)));
    assert!(!draw(Bernoulli::float(5e-324)));
}

#[test]
fn tiny_floats_are_drawn_where_the_stream_starts_with_enough_zeros() {
    let mut rng = stream(3);
    for exponent in [10, 16, 20] {
        let hits = (0..1 << 22).filter(|_| Bernoulli::float(two_to(-exponent)).draw(&mut rng)).count() as f64;
        let expected = two_to(22 - exponent);
        assert!((hits - expected).abs() < 6.0 * expected.sqrt(), "2^-{exponent}: {hits}");
    }
}

#[test]
fn a_key_repeats_itself_and_no_other_stream() {
    let mut seen = BTreeMap::new();
    for (k, key) in [[0; 32], [42; 32], [43; 32]].into_iter().enumerate() {
        for purpose in PURPOSES {
            for index in [0, 1, 2, 255, 256, 1 << 32, (1 << 56) - 1] {
                let mut rng = Seed::reproducible(key).stream(purpose, index);
                let start = words(&mut rng, 3);
                assert_eq!(start, words(&mut Seed::reproducible(key).stream(purpose, index), 3));
                let earlier = seen.insert(start, (k, purpose, index));
                assert_eq!(earlier, None, "key {k}, {purpose:?}, {index}");
            }
        }
    }
}

#[test]
fn streams_do_not_overlap_at_neighbouring_indices() {
    let all: Vec<u64> = (0..64).flat_map(|index| words(&mut stream(index), 1000)).collect();
    let distinct: std::collections::BTreeSet<u64> = all.iter().copied().collect();
    assert_eq!(distinct.len(), all.len());
}

#[test]
fn keys_of_the_system_differ() {
    let [one, other] = [(); 2].map(|()| Seed::from_os().unwrap().stream(Stream::Noise, 0).next_u64());
    assert_ne!(one, other);
}

#[test]
fn below_takes_the_first_word_that_biases_nothing() {
    for bound in [1, 2, 3, 10, (1 << 63) - 1, 1 << 63, (1 << 63) + 1, 3 << 62, u64::MAX] {
        let biased = ((1u128 << 64) % u128::from(bound)) as u64;
        for index in 0..100 {
            let expected = words(&mut stream(index), 100).into_iter().find(|&word| word >= biased).unwrap() % bound;
            assert_eq!(stream(index).below(bound), expected, "below {bound}");
        }
    }
}

/// Pearson's statistic of counts against probabilities, and the number of cells with at least ten expected.
fn misfit(counts: &BTreeMap<i64, u64>, law: impl Fn(i64) -> f64, reach: i64) -> (f64, usize) {
    let draws: u64 = counts.values().sum();
    let expected: Vec<(i64, f64)> = (-reach..=reach).map(|x| (x, law(x) * draws as f64)).collect();
    let cells: Vec<&(i64, f64)> = expected.iter().filter(|(_, e)| *e >= 10.0).collect();
    let seen = |x: &i64| counts.get(x).copied().unwrap_or(0) as f64;
    let inside: f64 = cells.iter().map(|(x, e)| (seen(x) - e).powi(2) / e).sum();
    let rest = draws as f64 - cells.iter().map(|(_, e)| e).sum::<f64>();
    let seen_rest = draws as f64 - cells.iter().map(|(x, _)| seen(x)).sum::<f64>();
    (inside + (seen_rest - rest).powi(2) / rest.max(10.0), cells.len())
}

/// Far beyond what chi-square with so many degrees of freedom reaches with probability 1e-6.
fn limit(cells: usize) -> f64 {
    let cells = cells as f64;
    cells + 5.0 * (2.0 * cells).sqrt() + 25.0
}

fn laplace_law(scale: f64) -> impl Fn(i64) -> f64 {
    let q = (-1.0 / scale).exp();
    move |x| (1.0 - q) / (1.0 + q) * q.powi(x.unsigned_abs() as i32)
}

fn laplace_counts(scale: f64, index: u64) -> BTreeMap<i64, u64> {
    let (noise, mut rng) = (DiscreteLaplace::at_least(scale).unwrap(), stream(index));
    let mut counts = BTreeMap::new();
    (0..200_000).for_each(|_| *counts.entry(noise.draw(&mut rng)).or_default() += 1);
    counts
}

#[test]
fn discrete_laplace_follows_its_mass_and_no_other() {
    for (index, scale) in (10..).zip([0.05, 0.3, 1.0, 2.5, 4.0, 30.0]) {
        let counts = laplace_counts(scale, index);
        let (statistic, cells) = misfit(&counts, laplace_law(scale), 600);
        assert!(statistic < limit(cells), "scale {scale}: {statistic} over {cells} cells");
        if scale >= 0.3 {
            let (statistic, cells) = misfit(&counts, laplace_law(0.95 * scale), 600);
            assert!(statistic > limit(cells), "scale {scale} passes for another: {statistic}");
        }
    }
}

#[test]
fn discrete_laplace_rounds_its_scale_up_by_little() {
    let text = |scale: f64| format!("{:?}", DiscreteLaplace::at_least(scale).unwrap());
    for scale in [1e-9, 0.3, 1.0, 2.0 / 0.3, 1e6] {
        let text = text(scale);
        let numbers: Vec<u64> =
            text.split(|c: char| !c.is_ascii_digit()).filter_map(|part| part.parse().ok()).collect();
        let made = numbers[0] as f64 / numbers[1] as f64;
        assert!(made > scale && made <= scale * (1.0 + 1e-14) + 2.0 * two_to(-20), "{scale} became {made}");
    }
    for scale in [0.0, -1.0, f64::NAN, f64::INFINITY, two_to(40)] {
        assert!(DiscreteLaplace::at_least(scale).is_err(), "{scale}");
    }
}

/// What a call writes on the calling thread and on three.
fn alone_and_together(act: impl Fn(Run<'_>) -> Vec<u8> + Sync) -> [Vec<u8>; 2] {
    let flag = AtomicBool::new(false);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap();
    [act(Run::alone(Isa::Portable)), pool.install(|| act(Run::new(Isa::detect().unwrap(), true, &flag)))]
}

fn epsilon(value: f64) -> Epsilon {
    Epsilon::new(value).unwrap()
}

const LENGTHS: [usize; 5] = [0, 1, 1 << 14, (1 << 14) + 1, 200_000];

#[test]
fn randomized_response_does_not_depend_on_the_number_of_threads() {
    for length in LENGTHS {
        let [alone, together] = alone_and_together(|run| {
            let mut bits = vec![0; length];
            randomized_response(&mut bits, epsilon(1.0), &seed(), run);
            bits
        });
        assert_eq!(alone, together, "{length} bits");
        assert!(alone.iter().all(|&bit| bit <= 1));
    }
}

#[test]
fn bernoulli_arrays_do_not_depend_on_the_number_of_threads_and_start_alike() {
    let draw = |length: usize| {
        let [alone, together] = alone_and_together(|run| {
            let mut bits = vec![7; length];
            bernoulli_array(&Bernoulli::ratio(1, 3), &mut bits, &seed(), run);
            bits
        });
        assert_eq!(alone, together, "{length} draws");
        alone
    };
    let long = draw(200_000);
    for length in LENGTHS {
        assert_eq!(draw(length), long[..length]);
    }
}

#[test]
fn a_lie_is_the_same_coin_for_both_bits() {
    let answers = [0, 1].map(|bit| {
        let mut bits = vec![bit; 50_000];
        randomized_response(&mut bits, epsilon(0.5), &seed(), Run::alone(Isa::Portable));
        bits
    });
    assert!(answers[0].iter().zip(&answers[1]).all(|(no, yes)| no ^ yes == 1));
    let lies = answers[0].iter().filter(|&&bit| bit == 1).count() as f64;
    let p = 1.0 / (1.0 + 0.5f64.exp());
    assert!((lies - 50_000.0 * p).abs() < 6.0 * (50_000.0 * p * (1.0 - p)).sqrt(), "{lies} lies");
}

#[test]
fn chunks_have_coins_of_their_own() {
    let mut bits = vec![0; 8 << 14];
    randomized_response(&mut bits, epsilon(1e-9), &seed(), Run::alone(Isa::Portable));
    for (i, one) in bits.chunks(1 << 14).enumerate() {
        for other in bits.chunks(1 << 14).skip(i + 1) {
            let equal = one.iter().zip(other).filter(|(a, b)| a == b).count();
            assert!(equal.abs_diff(1 << 13) < 500, "{equal} of 16384 coins are equal");
        }
    }
}

#[test]
fn truth_probability_spends_no_more_than_epsilon() {
    let mut previous = 1 << 63;
    for value in [1e-300, 1e-15, 1e-3, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 31.0, 60.0, 1e9] {
        let truth = truth_probability(epsilon(value)).0;
        assert!(truth >= previous, "truth becomes rarer at epsilon = {value}");
        previous = truth;
        // The advantage 2 truth - 1 is exact in a float but for its last digits.
        let advantage = (truth - (1 << 63)) as f64 / two_to(63);
        let lie = truth.wrapping_neg() as f64;
        let spent = if advantage < 0.5 { 2.0 * advantage.atanh() } else { (truth as f64 / lie).ln() };
        assert!(spent <= value, "epsilon = {value} spends {spent}");
        // The margin of 2^-45 is relative to the truth; what it costs grows with the rarity of a lie.
        let least = if value <= 5.0 { value * (1.0 - 1e-11) - two_to(-62) } else { 0.9 * value.min(30.0) };
        assert!(spent >= least, "epsilon = {value} spends only {spent}");
    }
}
