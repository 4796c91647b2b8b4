//! What the Python tests of the accountant cannot see: threads, cancellation, and a composition by hand.
#![allow(clippy::unwrap_used, missing_docs)]

use std::sync::atomic::AtomicBool;

use hdp_fast_core::Error;
use hdp_fast_core::accounting::{
    Accountant, Base, Care, Mechanism, Target, Term, delta, epsilon, largest_draws, largest_rate, largest_rounds,
    smallest_noise,
};
use hdp_fast_core::run::Run;
use hdp_fast_core::simd::{Isa, multiply_powers};
use realfft::num_complex::Complex;

fn alone() -> Run<'static> {
    Run::alone(Isa::detect().unwrap())
}

fn sampled(base: Base, draws: u64, rate: f64, rounds: u64) -> Term {
    Term { mechanism: Mechanism { base, draws, rate }, rounds }
}

#[test]
fn threads_change_nothing() {
    let terms = [sampled(Base::Gaussian(0.1), 1000, 1e-4, 1000), sampled(Base::Laplace(0.1), 1, 1.0, 2)];
    let never = AtomicBool::new(false);
    let parallel = Run::new(Isa::detect().unwrap(), true, &never);
    let one = epsilon(&terms, 1e-6, Accountant::Pld, alone()).unwrap();
    let many = epsilon(&terms, 1e-6, Accountant::Pld, parallel).unwrap();
    assert_eq!(one, many);
}

#[test]
fn a_canceled_run_stops() {
    let stop = AtomicBool::new(true);
    let run = Run::new(Isa::detect().unwrap(), false, &stop);
    let terms = [sampled(Base::Gaussian(0.1), 1, 1.0, 10)];
    assert_eq!(delta(&terms, 1.0, Accountant::Pld, run), Err(Error::Canceled));
}

#[test]
fn two_rounds_of_two_mechanisms_by_hand() {
    // Randomized response with e^epsilon = 2 and 4: the losses of the four outcomes and their masses, as they are.
    let (two, four) = (2f64.ln(), 4f64.ln());
    let terms = [sampled(Base::Pure(two), 1, 1.0, 1), sampled(Base::Pure(four), 1, 1.0, 1)];
    let outcomes: [(f64, f64); 4] = [(8.0, 8.0 / 15.0), (0.5, 2.0 / 15.0), (2.0, 4.0 / 15.0), (0.125, 1.0 / 15.0)];
    for ratio in [1.0_f64, 1.5, 2.0, 5.0, 7.5] {
        let exact: f64 = outcomes.iter().map(|(loss, mass)| mass * (1.0 - ratio / loss).max(0.0)).sum();
        let found = delta(&terms, ratio.ln(), Accountant::Pld, alone()).unwrap();
        assert!(found >= exact && found <= exact * 1.002 + 1e-9, "{ratio}: {found} for {exact}");
    }
    assert!(delta(&terms, 8.1_f64.ln(), Accountant::Pld, alone()).unwrap() < 1e-20);
}

#[test]
fn several_shuffled_reports_that_change_hide_behind_none() {
    let at = |base, draws| delta(&[sampled(base, draws, 1.0, 1)], 1.5, Accountant::Pld, alone()).unwrap();
    let (two, pure) = (at(Base::Shuffled(1.0, 1000, 0), 2), at(Base::Pure(2.0), 1));
    assert!((two / pure - 1.0).abs() < 1e-6 && at(Base::Shuffled(1.0, 1000, 0), 1) < 1e-20, "{two} {pure}");
}

#[test]
fn bad_terms_are_refused() {
    for term in [
        sampled(Base::Pure(f64::NAN), 1, 1.0, 1),
        sampled(Base::Gaussian(-1.0), 1, 1.0, 1),
        sampled(Base::Pure(1.0), 0, 1.0, 1),
        sampled(Base::Shuffled(0.0, 9, 0), 1, 1.0, 1),
        sampled(Base::Shuffled(1.0, 0, 0), 1, 1.0, 1),
        sampled(Base::Shuffled(1.0, 9, 1), 1, 1.0, 1),
        sampled(Base::Pure(1.0), 1, 1.5, 1),
        sampled(Base::Pure(1.0), 1, 1.0, 0),
        sampled(Base::Approximate(1.0, 1.0), 1, 1.0, 1),
        sampled(Base::DiscreteLaplace(1.0, 0), 1, 1.0, 1),
        sampled(Base::Concentrated(0.0), 1, 1.0, 1),
    ] {
        let refused = delta(&[term], 1.0, Accountant::Rdp, alone());
        assert!(matches!(refused, Err(Error::Parameter(_))), "{term:?}");
    }
    assert!(matches!(delta(&[], 1.0, Accountant::Pld, alone()), Err(Error::Parameter(_))));
}

#[test]
fn searches_end_next_to_the_boundary() {
    let target = Target { epsilon: 1.0, delta: 1e-6, accountant: Accountant::Pld };
    let shown = |mechanism: Mechanism, rounds: u64| {
        delta(&[Term { mechanism, rounds }], target.epsilon, target.accountant, alone()).unwrap()
    };
    let step = |noise: f64, rate: f64| Mechanism { base: Base::Gaussian(1.0 / noise), draws: 256, rate };
    let noise = smallest_noise([0.05, 1e6], 256, 1e-4, 100, target, alone()).unwrap().unwrap();
    assert!(shown(step(noise, 1e-4), 100) <= target.delta && shown(step(noise / 1.00002, 1e-4), 100) > target.delta);
    let rate = largest_rate(Base::Gaussian(1.0 / noise), 256, 100, target, Care::Shown, alone()).unwrap().unwrap();
    assert!((rate / 1e-4 - 1.0).abs() < 1e-4);
    assert!(shown(step(noise, rate), 100) <= target.delta && shown(step(noise, rate * 1.00002), 100) > target.delta);
    let most = largest_rounds(step(noise, 1e-4), target, alone()).unwrap();
    assert!(shown(step(noise, 1e-4), most) <= target.delta && shown(step(noise, 1e-4), most + 1) > target.delta);
    assert_eq!(most, 100);
}

#[test]
fn draws_are_counted_up_to_the_boundary() {
    let target = Target { epsilon: 1.0, delta: 1e-6, accountant: Accountant::Pld };
    for (base, rate) in [(Base::BoundedRange(0.125), 1e-4), (Base::Pure(1.0), 1e-6), (Base::Gaussian(0.4), 1e-4)] {
        let shown = |draws: u64| delta(&[sampled(base, draws, rate, 20)], 1.0, Accountant::Pld, alone()).unwrap();
        let most = largest_draws(base, rate, 20, target, Care::Shown, alone()).unwrap();
        let more = most + 1 + most / 5000;
        assert!(shown(most) <= target.delta && shown(more) > target.delta, "{base:?}: {most}");
        let guess = largest_draws(base, rate, 20, target, Care::Guessed, alone()).unwrap();
        assert!(
            (guess as f64 / most as f64 - 1.0).abs() < 3e-3 || guess.abs_diff(most) <= 1,
            "{base:?}: {guess}, {most}"
        );
    }
    assert_eq!(largest_draws(Base::Pure(2.0), 1.0, 1, target, Care::Shown, alone()), Ok(0));
    assert_eq!(largest_draws(Base::DiscreteLaplace(1e-9, 2), 0.5, 1, target, Care::Shown, alone()), Ok(4095));
}

#[test]
fn searches_end_where_their_ranges_do() {
    let target = Target { epsilon: 1.0, delta: 1e-6, accountant: Accountant::Pld };
    assert_eq!(smallest_noise([50.0, 60.0], 1, 1.0, 1, target, alone()), Ok(Some(50.0)));
    assert_eq!(smallest_noise([0.5, 0.6], 1, 1.0, 1, target, alone()), Ok(None));
    assert_eq!(largest_rate(Base::Pure(0.5), 1, 1, target, Care::Shown, alone()), Ok(Some(1.0)));
    assert_eq!(largest_rate(Base::Approximate(0.5, 0.1), 1, 1 << 53, target, Care::Shown, alone()), Ok(None));
    let never = Mechanism { base: Base::Pure(2.0), draws: 1, rate: 1.0 };
    assert_eq!(largest_rounds(never, target, alone()), Ok(0));
    let seldom = Mechanism { base: Base::Gaussian(1e-9), draws: 1, rate: 1.0 };
    assert_eq!(largest_rounds(seldom, target, alone()), Ok(1 << 40));
}

#[test]
fn powers_agree_on_every_arm_and_with_one_number_at_a_time() {
    let values = |count: usize| (0..count).map(|i| Complex::from_polar(1.0 - 1e-4 * i as f64, 0.7 * i as f64));
    for (count, exponent) in [(0, 3), (1, 1), (15, 2), (16, 7), (17, 1000), (63, 0), (65, u64::MAX), (129, 12_345)] {
        let (base, start): (Vec<_>, Vec<_>) = (values(count).collect(), values(count + 5).skip(5).collect());
        let portable = powers(Isa::Portable, &start, &base, exponent);
        for isa in Isa::ALL.into_iter().filter(|isa| isa.available()) {
            assert_eq!(powers(isa, &start, &base, exponent), portable);
        }
        for i in 0..count {
            let wanted = start[i] * Complex::powf(base[i], exponent as f64);
            assert!(
                (portable[i] - wanted).norm() < 1e-11
                    && portable[i] == powers(Isa::Portable, &start[i..=i], &base[i..=i], exponent)[0]
            );
        }
    }
}

fn powers(isa: Isa, start: &[Complex<f64>], values: &[Complex<f64>], exponent: u64) -> Vec<Complex<f64>> {
    let mut product = start.to_vec();
    multiply_powers(isa, &mut product, values, exponent);
    product
}
