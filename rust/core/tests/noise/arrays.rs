//! Arrays of draws: the same on any number of threads and on every instruction set.

use super::*;

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
