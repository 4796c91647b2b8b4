//! Additive models of bins, used as from Rust: every arm and every number of parts finds the same.

#![allow(clippy::unwrap_used)]

mod kernels;

use std::sync::atomic::AtomicBool;

use hdp_fast_core::additive::{Binned, Residuals, Rounds, fit_shapes};
use hdp_fast_core::error::Error;
use hdp_fast_core::run::Run;
use kernels::{arms, entries};

const WIDTHS: [usize; 3] = [5, 1, 256];

/// Bins of so many records, column by column, and labels.
fn records(count: usize) -> (Vec<u8>, Vec<i64>) {
    let bins = WIDTHS.iter().flat_map(|width| (0..count).map(move |i| (i * i * 31 % width) as u8)).collect();
    let labels = (0..count).map(|i| if i * 7 % 5 < 2 { 1 << 16 } else { 0 }).collect();
    (bins, labels)
}

fn fit(count: usize, logistic: bool, run: Run<'_>) -> Result<Vec<i32>, Error> {
    let (bins, labels) = records(count);
    let all: usize = WIDTHS.iter().sum();
    let squares: usize = WIDTHS.iter().map(|width| width * width).sum();
    let gains: Vec<f64> = entries::<f64>(squares).iter().map(|gain| gain / count as f64).collect();
    let curvatures: Vec<f64> = entries::<f64>(all).iter().map(|entry| entry.abs() * count as f64).collect();
    let noise: Vec<i64> = (0..3 * all as i64).map(|i| i * i * 977 % 40_000 - 20_000).collect();
    let residuals = Residuals { logistic, base: -30_000, limits: (-30_000, 50_000) };
    let rounds = Rounds { rates: &[0.5, 0.4, 0.3], noise: &noise, curvatures: &curvatures, gains: &gains };
    fit_shapes(Binned::new(&bins, &WIDTHS, &labels)?, residuals, rounds, run)
}

#[test]
fn every_arm_finds_the_same_alone_and_in_parallel() {
    let never = AtomicBool::new(false);
    for logistic in [true, false] {
        for count in [1, 63, 1_025, 20_000] {
            let mut runs = arms().flat_map(|isa| [Run::alone(isa), Run::new(isa, true, &never)]);
            let expected = fit(count, logistic, runs.next().unwrap()).unwrap();
            assert!(expected.iter().any(|value| *value != 0));
            for run in runs {
                assert_eq!(fit(count, logistic, run).unwrap(), expected);
            }
        }
    }
}

#[test]
fn it_stops_when_it_is_asked_to() {
    let canceled = AtomicBool::new(true);
    let isa = arms().next().unwrap();
    assert_eq!(fit(20_000, true, Run::new(isa, false, &canceled)), Err(Error::Canceled));
}

#[test]
fn what_does_not_fit_is_refused() {
    let isa = arms().next().unwrap();
    assert!(Binned::new(&[0, 3], &[2], &[0, 0]).is_err());
    assert!(Binned::new(&[0], &[2], &[0, 0]).is_err());
    assert!(Binned::new(&[], &[], &[]).is_err());
    let one = Binned::new(&[0], &[1], &[0]).unwrap();
    let residuals = Residuals { logistic: true, base: 0, limits: (-1, 1) };
    let rounds = Rounds { rates: &[1.0], noise: &[0], curvatures: &[0.0], gains: &[f64::NAN] };
    assert_eq!(fit_shapes(one, residuals, rounds, Run::alone(isa)), Ok(vec![0]));
    for limits in [(1, 0), (-(1 << 21), 0), (0, 1 << 21)] {
        assert!(fit_shapes(one, Residuals { limits, ..residuals }, rounds, Run::alone(isa)).is_err());
    }
    assert!(fit_shapes(one, residuals, Rounds { noise: &[], ..rounds }, Run::alone(isa)).is_err());
}
