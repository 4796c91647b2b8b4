//! Coins: rounding directions and exactness on streams that are known; keys and streams.

use super::*;

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

fn words(rng: &mut Rng, count: usize) -> Vec<u64> {
    (0..count).map(|_| rng.next_u64()).collect()
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
