//! Plans against known tables, rates against the equations of privacy, and the mechanisms end to end.
#![allow(clippy::unwrap_used, missing_docs)]

use std::sync::atomic::AtomicBool;

use hdp_fast_core::Error;
use hdp_fast_core::gf2::{BitMatrix, parity_bits};
use hdp_fast_core::noise::{Fixed, Rng, Seed, Stream};
use hdp_fast_core::params::{Epsilon, Neighbors};
use hdp_fast_core::parity::{
    Examples, Mechanism, Method, Plan, Target, base_rate, learn, loop_rate, plan, plan_uniform_target, promise,
};
use hdp_fast_core::run::Run;
use hdp_fast_core::simd::Isa;

const METHODS: [Method; 3] = [Method::Loop, Method::Batches, Method::Paper];
const RELATIONS: [Neighbors; 2] = [Neighbors::ReplaceOne, Neighbors::AddRemove];
const TWO_64: f64 = 18_446_744_073_709_551_616.0;

fn epsilon(value: f64) -> Epsilon {
    Epsilon::new(value).unwrap()
}

fn target(unknowns: usize, alpha: f64, beta: f64, value: f64, neighbors: Neighbors) -> Target {
    Target { unknowns, alpha, beta, epsilon: epsilon(value), neighbors }
}

#[test]
fn plans_at_ten_thousand_bits_reproduce_the_table() {
    for (value, by_loop, by_batches, by_paper) in [
        (0.1, 3_066_962, 6_176_799, 832_045_011),
        (0.5, 630_921, 1_117_632, 166_409_003),
        (1.0, 330_555, 446_574, 83_204_509),
        (2.0, 186_325, 269_064, 41_603_963),
    ] {
        let target = target(10_000, 0.05, 0.05, value, Neighbors::ReplaceOne);
        let sizes = METHODS.map(|method| plan(&target, method).unwrap().n);
        assert_eq!(sizes, [by_loop, by_batches, by_paper], "epsilon = {value}");
    }
}

#[test]
fn plans_of_batches_and_of_the_paper_have_the_tables_parts() {
    let target = target(10_000, 0.05, 0.05, 0.1, Neighbors::ReplaceOne);
    let batches = plan(&target, Method::Batches).unwrap();
    assert_eq!((batches.k, batches.batch_size, batches.g), (Some(3), Some(2_058_933), None));
    let paper = plan(&target, Method::Paper).unwrap();
    assert_eq!((paper.k, paper.c, paper.p), (Some(15), Some(0.5), 0.025));
    assert_eq!(paper.n, 15 * paper.batch_size.unwrap() + paper.test_size.unwrap());
}

#[test]
fn plans_for_a_uniform_target_stay_below_the_table() {
    for (d, by_loop, by_batches) in [(1_000, 4_718, 6_366), (10_000, 44_846, 59_996)] {
        let target = target(d, 0.25, 0.05, 1.0, Neighbors::ReplaceOne);
        let size = |method| plan_uniform_target(&target, 0.35, method).unwrap().n;
        assert!((by_loop * 9 / 10..=by_loop).contains(&size(Method::Loop)), "{}", size(Method::Loop));
        assert!((by_batches * 9 / 10..=by_batches).contains(&size(Method::Batches)), "{}", size(Method::Batches));
    }
}

/// What A(c, p) spends, from 1 - p as well as p: a float near one has lost the digits of the former.
fn spent_by_base(p: f64, rest: f64, c: f64, neighbors: Neighbors) -> f64 {
    let bottom = (p * (1.0 - c) / c).ln_1p();
    let hypothesis = match neighbors {
        Neighbors::ReplaceOne => p.ln_1p() - logarithm(p, rest),
        Neighbors::AddRemove => p.ln_1p().max(-logarithm(p, rest)),
    };
    bottom.max(hypothesis)
}

/// What LOOP spends; (v + 1) / (v + 1 - p) = 1 / (1 - p (1 - g)).
fn spent_by_loop(p: f64, rest: f64, g: f64, neighbors: Neighbors) -> f64 {
    let growth = p.ln_1p() - logarithm(p * (1.0 - g), rest + p * g);
    match neighbors {
        Neighbors::ReplaceOne => growth - logarithm(p, rest),
        Neighbors::AddRemove => growth.max(-logarithm(p, rest)),
    }
}

/// ln(1 - p) = ln(rest), from whichever is more precise.
fn logarithm(p: f64, rest: f64) -> f64 {
    if p < 0.5 { (-p).ln_1p() } else { rest.ln() }
}

type Spent = fn(f64, f64, f64, Neighbors) -> f64;
type Rate = fn(Epsilon, f64, Neighbors) -> f64;
const RATES: [(&str, Rate, Spent); 2] = [("base", base_rate, spent_by_base), ("loop", loop_rate, spent_by_loop)];

/// Before rounding a rate spends epsilon to 1e-12; after it, no more, and hardly less.
fn check_rate(value: f64, silent: f64, neighbors: Neighbors) {
    for (name, rate, spent) in RATES {
        let label = format!("{name} at epsilon = {value}, {silent}, {neighbors:?}");
        let p = rate(epsilon(value), silent, neighbors);
        let rounded = Fixed::certainly_below(p).0;
        let kept = rounded as f64 / TWO_64;
        let after = spent(kept, rounded.wrapping_neg() as f64 / TWO_64, silent, neighbors);
        assert!(after <= value, "{label}: spends {after}");
        if value <= 5.0 {
            let before = spent(p, 1.0 - p, silent, neighbors);
            assert!((before - value).abs() < 1e-12 * value.max(1.0), "{label}: {before}");
            let grid = 2.0 / (TWO_64 * p);
            assert!(after > value * (1.0 - 1e-11 - grid), "{label}: spends only {after}");
        }
    }
}

#[test]
fn rates_spend_epsilon_and_never_more_once_rounded() {
    for value in [1e-6, 1e-3, 0.1, 0.5, 1.0, 2.0, 5.0, 8.0] {
        for silent in [1e-9, 1e-4, 0.01, 0.04, 0.2, 0.3, 0.5, 0.9] {
            for neighbors in RELATIONS {
                check_rate(value, silent, neighbors);
            }
        }
    }
}

#[test]
fn rates_at_a_large_epsilon_are_probabilities_that_spend_no_more() {
    for value in [15.0, 20.0, 25.0, 30.0, 40.0, 60.0, 1e6] {
        for silent in [1e-9, 1e-7, 1e-4, 0.01, 0.3] {
            for neighbors in RELATIONS {
                check_rate(value, silent, neighbors);
            }
        }
    }
}

#[test]
fn more_silence_never_asks_for_a_smaller_rate() {
    for value in [0.1, 1.0, 4.0] {
        for (name, rate, _) in RATES {
            for neighbors in RELATIONS {
                let rates: Vec<f64> = (1..99).map(|i| rate(epsilon(value), f64::from(i) / 100.0, neighbors)).collect();
                assert!(rates.is_sorted() && rates.iter().all(|p| *p > 0.0 && *p < 1.0), "{name} at {value}");
            }
        }
    }
}

#[test]
fn a_promise_is_what_the_plan_for_it_needs() {
    for method in METHODS {
        // The plan of batches is a long search.
        for &alpha in if method == Method::Batches { &[0.2][..] } else { &[0.3, 0.2, 0.05] } {
            let target = target(50, alpha, 0.1, 1.0, Neighbors::ReplaceOne);
            let planned = plan(&target, method).unwrap();
            let (promised, used) = promise(&target, method, planned.n).unwrap();
            assert!(promised.unwrap() <= alpha * (1.0 + 1e-9), "{method:?}: {promised:?} for {alpha}");
            assert!(used.n <= planned.n);
            let again = plan(&Target { alpha: promised.unwrap(), ..target }, method).unwrap();
            assert_eq!(again, used, "{method:?}");
            // One record less promises less: the plan asked for no more than it needs.
            let (short, _) = promise(&target, method, planned.n - 1).unwrap();
            assert!(short.is_none_or(|short| short > alpha * (1.0 - 1e-9)), "{method:?}: {short:?}");
        }
    }
}

#[test]
fn a_promise_improves_with_every_record() {
    for (method, most, steps) in [(Method::Loop, 4000, 40), (Method::Batches, 600, 4), (Method::Paper, 200_000, 40)] {
        let target = target(20, 0.25, 0.1, 0.5, Neighbors::ReplaceOne);
        let mut last = f64::INFINITY;
        for n in (0..=most).step_by(most as usize / steps) {
            let (promised, used) = promise(&target, method, n).unwrap();
            let alpha = promised.unwrap_or(0.5);
            assert!(alpha <= last, "{method:?}, n = {n}: {alpha} after {last}");
            assert_eq!(promised.is_some(), used.n <= n, "{method:?}, n = {n}");
            assert!(promised.is_none_or(|alpha| alpha > 0.0 && alpha < 0.5));
            last = alpha;
        }
        assert!(last < 0.5, "{method:?}: {most} records promise nothing");
    }
}

#[test]
fn a_private_number_of_records_chooses_nothing() {
    for method in METHODS {
        let target = target(3, 0.25, 0.5, 1.0, Neighbors::AddRemove);
        let made: Vec<_> = [0, 1, 7, 8, 30, 1000, 1 << 40].map(|n| promise(&target, method, n).unwrap()).into();
        assert!(made.iter().all(|(promised, used)| promised.is_none() && *used == made[0].1), "{method:?}");
    }
}

#[test]
fn targets_out_of_range_are_refused() {
    let good = target(10, 0.1, 0.1, 1.0, Neighbors::ReplaceOne);
    let bad = [
        Target { unknowns: 0, ..good },
        Target { alpha: 0.0, ..good },
        Target { alpha: 0.5, ..good },
        Target { alpha: f64::NAN, ..good },
        Target { beta: 0.0, ..good },
        Target { beta: 1.0, ..good },
        Target { beta: f64::NAN, ..good },
        Target { alpha: 1e-300, ..good },
    ];
    for (method, target) in METHODS.iter().flat_map(|method| bad.map(|target| (*method, target))) {
        assert!(plan(&target, method).is_err(), "{method:?} takes {target:?}");
    }
    for value in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(Epsilon::new(value).is_err());
    }
    for chi2 in [-0.1, f64::NAN, f64::INFINITY] {
        assert!(plan_uniform_target(&good, chi2, Method::Loop).is_err());
    }
    assert!(plan_uniform_target(&good, 0.35, Method::Paper).is_err());
}

fn bare(silent: Option<f64>) -> Plan {
    Plan { n: 0, p: 0.5, g: silent, c: silent, k: Some(1), batch_size: None, test_size: Some(1) }
}

fn made(value: f64, neighbors: Neighbors, method: Method, plan: &Plan) -> Result<Mechanism, Error> {
    Mechanism::new(epsilon(value), neighbors, method, plan)
}

#[test]
fn a_mechanism_without_a_probability_of_silence_is_refused() {
    for silent in [None, Some(0.0), Some(-0.1), Some(1.0), Some(2.0), Some(f64::NAN)] {
        for method in METHODS {
            assert!(made(0.5, Neighbors::ReplaceOne, method, &bare(silent)).is_err(), "{method:?} takes {silent:?}");
        }
    }
}

#[test]
fn the_papers_mechanism_is_refused_where_its_proof_ends() {
    let plan = bare(Some(0.5));
    assert!(made(0.5, Neighbors::ReplaceOne, Method::Paper, &plan).is_ok());
    assert!(made(0.500_001, Neighbors::ReplaceOne, Method::Paper, &plan).is_err());
    assert!(made(0.1, Neighbors::AddRemove, Method::Paper, &plan).is_err());
}

#[test]
fn the_papers_mechanism_is_refused_with_less_silence_than_its_rate_needs() {
    // 1 - p + p/c is 13.4 here, e^epsilon 1.65.
    assert!(made(0.5, Neighbors::ReplaceOne, Method::Paper, &bare(Some(0.01))).is_err());
}

#[test]
fn a_mechanism_without_batches_is_refused() {
    for k in [None, Some(0)] {
        let plan = Plan { k, ..bare(Some(0.5)) };
        for method in [Method::Batches, Method::Paper] {
            assert!(made(0.5, Neighbors::ReplaceOne, method, &plan).is_err(), "{method:?} takes {k:?}");
        }
    }
}

#[test]
fn a_mechanism_does_not_take_the_probability_of_another() {
    let (only_g, only_c) = (Plan { c: None, ..bare(Some(0.5)) }, Plan { g: None, ..bare(Some(0.5)) });
    assert!(made(0.5, Neighbors::ReplaceOne, Method::Loop, &only_c).is_err());
    assert!(made(0.5, Neighbors::ReplaceOne, Method::Batches, &only_g).is_err());
    assert!(made(0.5, Neighbors::ReplaceOne, Method::Paper, &only_g).is_err());
}

#[test]
fn the_rate_of_a_plan_changes_no_mechanism() {
    for method in METHODS {
        let rates = [0.0, 0.9, f64::NAN].map(|p| Plan { p, n: 99, batch_size: Some(7), ..bare(Some(0.5)) });
        let [one, other, third] = rates.map(|plan| made(0.5, Neighbors::ReplaceOne, method, &plan).unwrap());
        assert!(one == other && one == third, "{method:?}");
    }
}

struct Data {
    matrix: BitMatrix,
    labels: Vec<u64>,
    truth: Vec<u8>,
}

/// Uniform records with the labels of a random hypothesis, its intercept last.
fn data(records: u64, columns: usize, rng: &mut Rng) -> Data {
    let mut bits = |count: usize| -> Vec<u8> { (0..count).map(|_| (rng.next_u64() & 1) as u8).collect() };
    let truth = bits(columns + 1);
    let rows: Vec<Vec<u8>> = (0..records).map(|_| bits(columns)).collect();
    let label = |row: &Vec<u8>| row.iter().zip(&truth).fold(truth[columns], |sum, (x, r)| sum ^ (x & r));
    let labels = parity_bits(&rows.iter().map(label).collect::<Vec<u8>>()).unwrap();
    let words = rows.iter().flat_map(|row| parity_bits(row).unwrap()).collect();
    Data { matrix: BitMatrix::from_words(rows.len(), columns, words).unwrap(), labels, truth }
}

#[test]
fn the_truth_is_learned_or_nothing_is() {
    for (method, value) in [(Method::Loop, 1.0), (Method::Batches, 1.0), (Method::Paper, 0.5)] {
        let target = target(13, 0.1, 0.05, value, Neighbors::ReplaceOne);
        let planned = plan(&target, method).unwrap();
        let mechanism = made(value, Neighbors::ReplaceOne, method, &planned).unwrap();
        let data = data(planned.n, 12, &mut Seed::reproducible([3; 32]).stream(Stream::Speed, 0));
        let examples = Examples { matrix: &data.matrix, labels: &data.labels, affine: true };
        let run = Run::alone(Isa::detect().unwrap());
        let outcomes = (0..40).map(|i| learn(&examples, &mechanism, &Seed::reproducible([i; 32]), run).unwrap());
        let right = outcomes.filter(|outcome| outcome.as_ref() == Some(&data.truth)).count();
        assert!(right >= 34, "{method:?}: right in {right} of 40");
    }
}

#[test]
fn a_key_determines_the_outcome_whatever_the_threads() {
    let data = data(300, 40, &mut Seed::reproducible([4; 32]).stream(Stream::Speed, 0));
    let examples = Examples { matrix: &data.matrix, labels: &data.labels, affine: true };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap();
    let flag = AtomicBool::new(false);
    for (method, neighbors) in
        [(Method::Loop, RELATIONS[0]), (Method::Batches, RELATIONS[0]), (Method::Batches, RELATIONS[1])]
    {
        let mechanism = made(0.5, neighbors, method, &Plan { k: Some(3), ..bare(Some(0.3)) }).unwrap();
        let outcomes: Vec<_> = (0..20)
            .map(|i| {
                let seed = Seed::reproducible([i; 32]);
                let alone = learn(&examples, &mechanism, &seed, Run::alone(Isa::Portable)).unwrap();
                let run = Run::new(Isa::detect().unwrap(), true, &flag);
                assert_eq!(pool.install(|| learn(&examples, &mechanism, &seed, run)).unwrap(), alone);
                alone
            })
            .collect();
        assert!(outcomes.iter().any(|outcome| *outcome != outcomes[0]), "{method:?}: keys change nothing");
    }
}

#[test]
fn a_canceled_call_releases_nothing() {
    let data = data(50, 5, &mut Seed::reproducible([5; 32]).stream(Stream::Speed, 0));
    let examples = Examples { matrix: &data.matrix, labels: &data.labels, affine: false };
    let mechanism = made(1.0, Neighbors::ReplaceOne, Method::Loop, &bare(Some(1e-6))).unwrap();
    let flag = AtomicBool::new(true);
    let outcome =
        learn(&examples, &mechanism, &Seed::reproducible([6; 32]), Run::new(Isa::detect().unwrap(), false, &flag));
    assert_eq!(outcome, Err(Error::Canceled));
}
