//! What the Python tests of the accountant cannot see: threads, cancellation, and a composition by hand.
#![allow(clippy::unwrap_used, missing_docs)]

use std::sync::atomic::AtomicBool;

use hdp_fast_core::Error;
use hdp_fast_core::accounting::{Accountant, Base, Mechanism, Term, delta, epsilon};
use hdp_fast_core::run::Run;
use hdp_fast_core::simd::Isa;

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
fn bad_terms_are_refused() {
    for term in [
        sampled(Base::Pure(f64::NAN), 1, 1.0, 1),
        sampled(Base::Gaussian(-1.0), 1, 1.0, 1),
        sampled(Base::Pure(1.0), 0, 1.0, 1),
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
