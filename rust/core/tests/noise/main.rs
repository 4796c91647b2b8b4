//! Coins: rounding directions, exactness on streams that are known, and laws under a fixed key.
#![allow(clippy::unwrap_used, missing_docs)]

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use hdp_fast_core::local::{randomized_response, truth_probability};
use hdp_fast_core::noise::{
    Bernoulli, Candidates, DiscreteGaussian, DiscreteLaplace, Fixed, Geometric, Rational, Rng, RoundedGaussian, Seed,
    Stream, Weighted, coins, scale_at_least, uniform_integers,
};
use hdp_fast_core::params::Epsilon;
use hdp_fast_core::run::Run;
use hdp_fast_core::simd::Isa;
use num_bigint::BigUint;

const TWO_64: f64 = 18_446_744_073_709_551_616.0;

const PURPOSES: [Stream; 9] = [
    Stream::Sampling,
    Stream::Answer,
    Stream::Solution,
    Stream::Response,
    Stream::Bernoulli,
    Stream::Noise,
    Stream::Speed,
    Stream::Selection,
    Stream::Integers,
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

fn ratio(numerator: u64, denominator: u64) -> Rational {
    Rational::new(numerator.into(), denominator.into())
}

fn ratio_coin(numerator: u64, denominator: u64) -> Bernoulli {
    Bernoulli::ratio(ratio(numerator, denominator))
}

/// The exact number that a float is.
fn exactly(value: f64) -> Rational {
    let (bits, exponent) = (value.to_bits() & ((1 << 52) - 1), value.to_bits() >> 52);
    let (mantissa, exponent) = if exponent == 0 { (bits, 1) } else { (bits | 1 << 52, exponent) };
    let two = |power: u64| BigUint::from(1u32) << power;
    Rational::new(BigUint::from(mantissa) * two(exponent), two(1075))
}

fn float_coin(p: f64) -> Bernoulli {
    Bernoulli::ratio(exactly(p))
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
    let never = [float_coin(0.0), ratio_coin(0, 1), ratio_coin(0, u64::MAX)];
    let always = [float_coin(1.0), ratio_coin(1, 1), ratio_coin(u64::MAX, u64::MAX)];
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
            assert!(!ratio_coin(below, denominator).draw(&mut stream(index)), "{below}/{denominator}");
            assert!(ratio_coin(below + 1, denominator).draw(&mut stream(index)), "{below}/{denominator}");
        }
    }
}

#[test]
fn floats_are_compared_exactly_with_the_digits_of_the_stream() {
    for index in 0..20_000 {
        // The 53 leading bits; in one of 2^11 streams the next ones are zeros too, and the first word is a tie.
        let below = (stream(index).next_u64() >> 11) as f64 * two_to(-53);
        assert!(!float_coin(below).draw(&mut stream(index)));
        assert!(float_coin(below + two_to(-53)).draw(&mut stream(index)));
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
    let coin = |fraction: u64| float_coin((first as f64 + fraction as f64 / 1024.0) / TWO_64);
    let draw = |coin: Bernoulli| {
        let mut rng = stream(2);
        words(&mut rng, position);
        coin.draw(&mut rng)
    };
    assert!(!draw(coin(second >> 54)));
    assert!(draw(coin((second >> 54) + 1)));
    assert!(!draw(float_coin(5e-324)));
}

#[test]
fn tiny_floats_are_drawn_where_the_stream_starts_with_enough_zeros() {
    let mut rng = stream(3);
    for exponent in [10, 16, 20] {
        let hits = (0..1 << 22).filter(|_| float_coin(two_to(-exponent)).draw(&mut rng)).count() as f64;
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
fn streams_do_not_overlap_at_neighboring_indices() {
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
            let products = words(&mut stream(index), 100).into_iter().map(|word| u128::from(word) * u128::from(bound));
            let expected = products.into_iter().find(|&product| product as u64 >= biased).unwrap() >> 64;
            assert_eq!(u128::from(stream(index).below(bound)), expected, "below {bound}");
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

fn gaussian_law(sigma: f64) -> impl Fn(i64) -> f64 {
    let mass = move |x: i64| (-(x as f64 / sigma).powi(2) / 2.0).exp();
    let whole: f64 = (-(12.0 * sigma) as i64 - 2..=(12.0 * sigma) as i64 + 2).map(mass).sum();
    move |x| mass(x) / whole
}

fn counts(draw: impl Fn(&mut Rng) -> i64, index: u64) -> BTreeMap<i64, u64> {
    let mut rng = stream(index);
    let mut counts = BTreeMap::new();
    (0..200_000).for_each(|_| *counts.entry(draw(&mut rng)).or_default() += 1);
    counts
}

fn follows(law: impl Fn(i64) -> f64, counts: &BTreeMap<i64, u64>) -> bool {
    let (statistic, cells) = misfit(counts, law, 600);
    statistic < limit(cells)
}

/// Both constructions: that for few draws and that for many.
const SIZES: [usize; 2] = [1, 1 << 20];

#[test]
fn discrete_laplace_follows_its_mass_and_no_other() {
    for (index, scale) in (10..).zip([0.05, 0.3, 1.0, 2.5, 4.0, 30.0]) {
        for size in SIZES {
            let noise = DiscreteLaplace::new(&exactly(scale), size);
            let counts = counts(|rng| noise.draw(rng), index);
            assert!(follows(laplace_law(scale), &counts), "scale {scale}, {size} draws");
            assert!(scale < 0.3 || !follows(laplace_law(0.95 * scale), &counts), "scale {scale} passes for another");
        }
    }
}

#[test]
fn geometric_is_the_magnitude_of_a_sign_and_a_laplace_draw() {
    for (index, scale) in (20..).zip([0.3, 2.5, 30.0]) {
        for size in SIZES {
            let noise = Geometric::new(&exactly(scale), size);
            let q = (-1.0 / scale).exp();
            let counts = counts(|rng| noise.draw(rng), index);
            let law = |x: i64| if x < 0 { 0.0 } else { (1.0 - q) * q.powi(x as i32) };
            assert!(follows(law, &counts), "scale {scale}, {size} draws");
        }
    }
}

#[test]
fn discrete_gaussian_follows_its_mass_and_no_other() {
    for (index, sigma) in (30..).zip([0.2, 0.7, 1.0, 3.5, 20.0, 63.9, 70.0, 150.0]) {
        for size in SIZES {
            let noise = DiscreteGaussian::new(&exactly(sigma), size);
            let counts = counts(|rng| noise.draw(rng), index);
            assert!(follows(gaussian_law(sigma), &counts), "sigma {sigma}, {size} draws");
            assert!(sigma < 0.7 || !follows(gaussian_law(0.95 * sigma), &counts), "sigma {sigma} passes for another");
        }
    }
}

#[test]
fn rounded_gaussian_follows_its_mass_and_no_other() {
    let law = |sigma: f64| {
        let tail = move |x: f64| libm::erfc(x / sigma / std::f64::consts::SQRT_2) / 2.0;
        move |x: i64| {
            let (inner, outer) = (x.abs() as f64 - 0.5, x.abs() as f64 + 0.5);
            if x == 0 { 1.0 - 2.0 * tail(outer) } else { tail(inner) - tail(outer) }
        }
    };
    for (index, sigma) in (30..).zip([0.2, 0.7, 1.0, 3.5, 20.0, 63.9, 70.0, 150.0]) {
        for size in [1, 1 << 13, 1 << 20] {
            let noise = RoundedGaussian::new(&exactly(sigma), size);
            let counts = counts(|rng| noise.draw(rng), index);
            assert!(follows(law(sigma), &counts), "sigma {sigma}, {size} draws");
            assert!(sigma < 0.7 || !follows(law(0.95 * sigma), &counts), "sigma {sigma} passes for another");
        }
    }
}

#[test]
fn huge_scales_stay_in_range_and_tiny_ones_give_zero() {
    let huge = Rational::from(BigUint::from((1u64 << 50) - 1));
    let tiny = Rational::new(1u32.into(), BigUint::from(1u32) << 1074u32);
    for size in SIZES {
        for law in 0..4 {
            let draw = |scale: &Rational, rng: &mut Rng| match law {
                0 => DiscreteLaplace::new(scale, size).draw(rng),
                1 => Geometric::new(scale, size).draw(rng),
                2 => RoundedGaussian::new(scale, size).draw(rng),
                _ => DiscreteGaussian::new(scale, size).draw(rng),
            };
            let mut rng = stream(40);
            let mean = (0..40).map(|_| draw(&huge, &mut rng).unsigned_abs() as f64).sum::<f64>() / 40.0;
            assert!((0.4..1.9).contains(&(mean / (1u64 << 50) as f64)), "{mean:e}");
            assert!((0..40).all(|_| draw(&tiny, &mut rng) == 0 && draw(&Rational::default(), &mut rng) == 0));
        }
    }
}

#[test]
fn coins_of_exp_minus_come_at_their_rate() {
    for (index, x) in (50..).zip([1e-9, 0.1, 1.0, 5.0]) {
        let coin = Bernoulli::exp_minus(exactly(x));
        let hits = counts(|rng| i64::from(coin.draw(rng)), index).get(&1).copied().unwrap_or(0) as f64;
        let expected = 200_000.0 * (-x).exp();
        assert!((hits - expected).abs() <= 6.0 * (expected * (1.0 - (-x).exp())).sqrt() + 1.0, "exp(-{x}): {hits}");
    }
    let mut rng = stream(54);
    assert!(Bernoulli::exp_minus(Rational::default()).draw(&mut rng));
    assert!(!Bernoulli::exp_minus(exactly(1e300)).draw(&mut rng));
    assert!(!Bernoulli::exp_minus(exactly(100.0)).draw(&mut rng));
}

/// Pr[i] of permute-and-flip, by all orders.
fn permute_and_flip_law(accept: &[f64]) -> Vec<f64> {
    let mut law = vec![0.0; accept.len()];
    let mut visit = vec![(vec![], 1.0)];
    while let Some((tried, chance)) = visit.pop() {
        let left: Vec<usize> = (0..accept.len()).filter(|i| !tried.contains(i)).collect();
        for &i in &left {
            let chance: f64 = chance / left.len() as f64;
            law[i] += chance * accept[i];
            visit.push(([tried.clone(), vec![i]].concat(), chance * (1.0 - accept[i])));
        }
    }
    law
}

#[test]
fn candidates_are_chosen_by_their_laws() {
    let scores = [3, -1, 3, 2, 0];
    let candidates = Candidates::new(&scores, ratio(2, 5));
    let accept: Vec<f64> = scores.iter().map(|&score| (-0.4 * (3 - score) as f64).exp()).collect();
    let run = Run::alone(Isa::Portable);
    let flipped = counts(|rng| candidates.permute_and_flip(rng, run).unwrap() as i64, 60);
    let law = permute_and_flip_law(&accept);
    let at = |law: &[f64], i: i64| usize::try_from(i).ok().and_then(|i| law.get(i)).copied().unwrap_or(0.0);
    assert!(follows(|i| at(&law, i), &flipped));
    let drawn = counts(|rng| candidates.exponential_mechanism(rng, run).unwrap() as i64, 61);
    let whole: f64 = accept.iter().sum();
    assert!(follows(|i| at(&accept, i) / whole, &drawn));
    assert!(!follows(|i| at(&law, i), &drawn), "the two laws differ");
}

#[test]
fn extreme_scores_neither_overflow_nor_win() {
    let scores = [i64::MIN, i64::MAX, i64::MIN];
    for rate in [ratio(1, 1), ratio(1, u64::MAX), Rational::from(BigUint::from(1u32) << 2000u32)] {
        let candidates = Candidates::new(&scores, rate.clone());
        let mut rng = stream(62);
        let run = Run::alone(Isa::Portable);
        let wins = (0..300).filter(|_| candidates.exponential_mechanism(&mut rng, run).unwrap() == 1).count();
        let expected = if rate < ratio(1, 1) { 300.0 / (1.0 + 2.0 / 1f64.exp()) } else { 300.0 };
        assert!((wins as f64 - expected).abs() < 45.0, "{wins}");
        assert!(rate < ratio(1, 1) || wins == 300);
    }
}

fn weighted(weights: &[u64]) -> hdp_fast_core::Result<Weighted> {
    Weighted::new(weights, Run::alone(Isa::Portable))
}

#[test]
fn weighted_draws_come_at_their_weights() {
    let weights = [5, 0, 1, 0, 0, 14, 0];
    let law = weighted(&weights).unwrap();
    let drawn = counts(|rng| law.draw(rng) as i64, 63);
    assert!(follows(
        |i| usize::try_from(i).ok().and_then(|i| weights.get(i)).map_or(0.0, |&w| w as f64 / 20.0),
        &drawn
    ));
    assert_eq!(drawn.keys().copied().collect::<Vec<_>>(), [0, 2, 5]);
    let large = weighted(&[u64::MAX - 1, 1]).unwrap();
    assert!((0..100).all(|index| large.draw(&mut stream(index)) == 0));
    let one = weighted(&[1]).unwrap();
    assert_eq!(one.draw(&mut stream(0)), 0);
    for wrong in [&[][..], &[0, 0], &[u64::MAX, 1]] {
        assert!(weighted(wrong).is_err(), "{wrong:?}");
    }
}

/// The first place where the cumulative sum exceeds the target, by plain search.
#[test]
fn weighted_draws_find_the_same_place_as_a_plain_search() {
    for length in [1, 2, 3, 7, 64, 1000, 5000] {
        for largest in [2, 1000, u64::MAX >> 14] {
            let mut rng = stream(length);
            let weights: Vec<u64> = (0..length).map(|i| rng.below(largest) + u64::from(i == 0)).collect();
            let law = weighted(&weights).unwrap();
            for index in 0..300 {
                let mut target = stream(index).below(weights.iter().sum());
                let expected = weights
                    .iter()
                    .position(|&w| {
                        w > target || {
                            target -= w;
                            false
                        }
                    })
                    .unwrap();
                assert_eq!(law.draw(&mut stream(index)), expected, "{length} weights below {largest}");
            }
        }
    }
}

#[test]
fn the_scale_of_few_draws_is_rounded_up_by_little() {
    let text = |scale: f64| format!("{:?}", scale_at_least(scale).unwrap());
    for scale in [1e-9, 0.3, 1.0, 2.0 / 0.3, 1e6] {
        let text = text(scale);
        let numbers: Vec<u64> =
            text.split(|c: char| !c.is_ascii_digit()).filter_map(|part| part.parse().ok()).collect();
        let made = numbers[0] as f64 / numbers[1] as f64;
        assert!(made > scale && made <= scale * (1.0 + 1e-14) + 2.0 * two_to(-20), "{scale} became {made}");
    }
    for scale in [0.0, -1.0, f64::NAN, f64::INFINITY, two_to(40)] {
        assert!(scale_at_least(scale).is_err(), "{scale}");
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
            let mut answers = vec![7; length];
            randomized_response(&vec![0; length], &mut answers, epsilon(1.0), &seed(), run).unwrap();
            answers
        });
        assert_eq!(alone, together, "{length} bits");
        assert!(alone.iter().all(|&bit| bit <= 1));
    }
}

#[test]
fn arrays_do_not_depend_on_the_number_of_threads() {
    let drawn = |length: usize| {
        let [alone, together] = alone_and_together(|run| {
            let mut bits = vec![7; length];
            let coin = ratio_coin(1, 3);
            coins(&mut bits, &coin, Stream::Bernoulli, &seed(), run).unwrap();
            bits
        });
        assert_eq!(alone, together, "{length} draws");
        alone
    };
    LENGTHS.into_iter().for_each(|length| drop(drawn(length)));
    for length in LENGTHS {
        let [alone, together] = alone_and_together(|run| {
            let mut values = vec![-1; length];
            uniform_integers(&mut values, 1000, Stream::Noise, &seed(), run).unwrap();
            assert!(values.iter().all(|value| (0..1000).contains(value)));
            values.into_iter().flat_map(i64::to_le_bytes).collect()
        });
        assert_eq!(alone, together, "{length} draws");
    }
}

#[test]
fn uniform_integers_are_those_drawn_one_by_one() {
    for bound in [1, 2, 3, 10, 1 << 32, (1 << 32) + 1, (1 << 63) - 1, 1 << 63] {
        let mut values = vec![-1; 1000];
        uniform_integers(&mut values, bound, Stream::Integers, &seed(), Run::alone(Isa::Portable)).unwrap();
        let mut rng = seed().stream(Stream::Integers, 0);
        // So few draws that none of them is rejected, except for the largest bounds.
        let count = if bound.is_power_of_two() || bound < 1 << 40 { 1000 } else { 1 };
        values[..count].iter().for_each(|&value| assert_eq!(value as u64, rng.below(bound), "{bound}"));
        assert!(values.iter().all(|&value| (value as u64) < bound));
    }
}

#[test]
fn coins_in_bytes_come_at_their_rate() {
    let rates =
        [(1u64, 256u64), (1, 1000), (1, 3), (255, 256), (65_535, 65_536), (u64::MAX - 1, u64::MAX), (1, 1 << 40)];
    for (index, (numerator, denominator)) in (70..).zip(rates) {
        let mut bits = vec![0; 1 << 20];
        ratio_coin(numerator, denominator).fill(&mut bits, Isa::Portable, &mut stream(index));
        let ones = bits.iter().map(|&bit| f64::from(bit)).sum::<f64>();
        let p = numerator as f64 / denominator as f64;
        let spread = (bits.len() as f64 * p * (1.0 - p)).sqrt();
        assert!((ones - bits.len() as f64 * p).abs() <= 5.5 * spread + 0.5, "{numerator}/{denominator}: {ones}");
        assert!(bits.iter().all(|&bit| bit <= 1));
    }
}

#[test]
fn a_lie_is_the_same_coin_for_both_bits() {
    let answers = [0, 1].map(|bit| {
        let mut answers = vec![7; 50_000];
        randomized_response(&[bit; 50_000], &mut answers, epsilon(0.5), &seed(), Run::alone(Isa::Portable)).unwrap();
        answers
    });
    assert!(answers[0].iter().zip(&answers[1]).all(|(no, yes)| no ^ yes == 1));
    let lies = answers[0].iter().filter(|&&bit| bit == 1).count() as f64;
    let p = 1.0 / (1.0 + 0.5f64.exp());
    assert!((lies - 50_000.0 * p).abs() < 6.0 * (50_000.0 * p * (1.0 - p)).sqrt(), "{lies} lies");
}

/// Bits kept or flipped by the coins that would be drawn alone, on every instruction set.
#[test]
fn kept_bits_are_those_of_coins_alone() {
    for (numerator, denominator) in [(1, 3), (255, 256), (u64::MAX - 1, u64::MAX), (0, 1), (1, 1)] {
        let coin = ratio_coin(numerator, denominator);
        for isa in Isa::ALL.into_iter().filter(|isa| isa.available()) {
            for length in [0, 1, 63, 64, 65, 4095, 4096, 4097, 20_000] {
                let bits: Vec<u8> = (0..length).map(|i| u8::from(i % 3 == 1)).collect();
                let (mut coins, mut answers) = (vec![7; length], vec![7; length]);
                coin.fill(&mut coins, Isa::Portable, &mut stream(3));
                assert!(coin.keep(&bits, &mut answers, isa, &mut stream(3)));
                let expected: Vec<u8> = bits.iter().zip(&coins).map(|(bit, coin)| bit ^ coin ^ 1).collect();
                assert_eq!(answers, expected, "{isa:?} {length} {numerator}/{denominator}");
            }
        }
    }
}

#[test]
fn what_is_no_bit_is_refused_wherever_it_stands() {
    for place in [0, 64, 4095, 4096, 19_999] {
        let (mut bits, mut answers) = (vec![1; 20_000], vec![0; 20_000]);
        bits[place] = 2;
        let run = Run::alone(Isa::detect().unwrap());
        let error = randomized_response(&bits, &mut answers, epsilon(1.0), &seed(), run).unwrap_err();
        assert_eq!(error.to_string(), "bits holds something else, but every entry must be 0 or 1");
        assert!(!ratio_coin(1, 1).keep(&bits, &mut answers, Isa::Portable, &mut stream(0)));
    }
}

#[test]
fn chunks_have_coins_of_their_own() {
    let mut answers = vec![7; 8 << 14];
    randomized_response(&[0; 8 << 14], &mut answers, epsilon(1e-9), &seed(), Run::alone(Isa::Portable)).unwrap();
    for (i, one) in answers.chunks(1 << 14).enumerate() {
        for other in answers.chunks(1 << 14).skip(i + 1) {
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
