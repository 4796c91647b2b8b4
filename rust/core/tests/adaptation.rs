//! A pass over the rows, used as from Rust: every arm finds the same, and the caller can stop it.

#![allow(clippy::unwrap_used)]

mod kernels;

use std::sync::atomic::AtomicBool;

use hdp_fast_core::adaptation::{Grid, Loss, Weights, pass, to_integers};
use hdp_fast_core::error::Error;
use hdp_fast_core::run::Run;
use hdp_fast_core::sgd::Records;
use hdp_fast_core::simd::{Isa, Real, RowBlock, add_block, block_products};
use kernels::{arms, entries};

const WIDTHS: [usize; 9] = [1, 2, 7, 8, 9, 63, 64, 65, 200];
const ELIMINATED: Weights<'static> = Weights::Eliminated { cap: 1.0, kappa_1: 0.3, offset: 0.1 };

fn blocks_are_exact<T: Real>() {
    for columns in WIDTHS {
        for (rows, models) in [(1, 1), (4, 3), (6, 1), (9, 2)] {
            let all = entries::<T>((rows + models) * columns);
            let (x, w) = all.split_at(rows * columns);
            let block = RowBlock { entries: x, columns, ahead: &x[..columns / 2] };
            let dot = |x: &[T], w: &[T]| x.iter().zip(w).map(|(x, w)| x.get() * w.get()).sum::<f64>();
            let expected: Vec<f64> =
                x.chunks(columns).flat_map(|x| w.chunks(columns).map(move |w| dot(x, w))).collect();
            let mut sums = vec![0.0; models * columns];
            for (x, factors) in x.chunks(columns).zip(expected.chunks(models)) {
                for (sums, factor) in sums.chunks_mut(columns).zip(factors) {
                    sums.iter_mut().zip(x).for_each(|(sum, x)| *sum += factor * x.get());
                }
            }
            for isa in arms() {
                let mut found = vec![0.0; rows * models];
                block_products(isa, block, w, &mut found);
                assert_eq!(found, expected, "{rows} rows, {columns} columns, {isa:?}");
                let mut found = vec![0.0; models * columns];
                add_block(isa, block, &expected, &mut found);
                assert_eq!(found, sums, "{rows} rows, {columns} columns, {isa:?}");
            }
        }
    }
}

#[test]
fn blocks_are_exact_on_every_arm_and_at_every_awkward_width() {
    blocks_are_exact::<f64>();
    blocks_are_exact::<f32>();
}

#[test]
fn a_pass_finds_the_same_on_every_arm_and_in_parallel() {
    let (x, w) = (entries::<f32>(20_000 * 9), entries::<f64>(9));
    let labels = entries::<f64>(20_000);
    let records = Records::new(&x, 9, &labels[..]).unwrap();
    let never = AtomicBool::new(false);
    for grid in [None, Some(Grid { scale: 100.0, most: 1024.0, units: 1024.0 })] {
        let found = |run| pass(records, Loss::Squared, &w, ELIMINATED, grid, run).unwrap();
        let expected = found(Run::alone(Isa::Portable));
        for isa in arms() {
            assert_eq!(found(Run::alone(isa)), expected);
            assert_eq!(found(Run::new(isa, true, &never)), expected);
        }
    }
}

#[test]
fn the_caller_can_stop_a_pass() {
    let (x, w, labels) = (entries::<f64>(64), entries::<f64>(2), entries::<f64>(32));
    let stopped = AtomicBool::new(true);
    for parallel in [false, true] {
        let run = Run::new(Isa::Portable, parallel, &stopped);
        let records = Records::new(&x, 2, &labels[..]).unwrap();
        assert_eq!(pass(records, Loss::Logistic, &w, ELIMINATED, None, run), Err(Error::Canceled));
        assert_eq!(to_integers(&x, 2, 1.0, 1000.0, run), Err(Error::Canceled));
    }
}
