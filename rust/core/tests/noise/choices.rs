//! Choices among candidates and by weights, by their laws.

use super::*;

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
