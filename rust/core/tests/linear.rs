//! The linear learner: every arm, precision and number of threads finds the same halfspace, bit for bit.

#![allow(clippy::unwrap_used)]

mod kernels;

use std::sync::atomic::AtomicBool;

use hdp_fast_core::linear::{Goal, Halfspace, Records, separate};
use hdp_fast_core::run::Run;
use hdp_fast_core::simd::{Isa, Matrix, Real, add_projections, add_rows, inner_products};
use kernels::{arms, entries};

const WIDTHS: [usize; 9] = [1, 2, 31, 32, 33, 63, 64, 65, 127];

fn kernels_are_exact<T: Real>() {
    for columns in WIDTHS {
        let (entries, w) = (entries::<T>(4 * columns), entries::<T>(columns + 1));
        let matrix = Matrix { entries: &entries, columns, constant: T::of(2.0) };
        let rows = [3, 0, 2];
        let row = |i: usize| entries[i * columns..][..columns].iter().map(|x| x.get()).chain([2.0]);
        let expected = rows.map(|i| row(i).zip(&w).map(|(x, w)| x * w.get()).sum::<f64>());
        let factors = [0.5, -1.0, 3.0];
        for isa in arms() {
            let mut products = [0.0; 3];
            inner_products(isa, matrix, &rows, &w, &mut products);
            assert_eq!(products, expected, "{columns} columns, {isa:?}");
            for (factors, projected) in [(factors, false), (expected, true)] {
                let mut sum = vec![T::default(); columns + 1];
                if projected {
                    add_projections(isa, matrix, &rows, &w, &mut sum);
                } else {
                    add_rows(isa, matrix, &rows, &factors, &mut sum);
                }
                let mut wanted = vec![0.0; columns + 1];
                for (&i, factor) in rows.iter().zip(factors) {
                    wanted.iter_mut().zip(row(i)).for_each(|(sum, x)| *sum += factor * x);
                }
                assert_eq!(sum.iter().map(|x| x.get()).collect::<Vec<_>>(), wanted, "{columns} columns, {isa:?}");
            }
        }
    }
}

#[test]
fn kernels_are_exact_where_sums_are() {
    kernels_are_exact::<f32>();
    kernels_are_exact::<f64>();
}

fn same_halfspace<T: Real>(parallel: &AtomicBool) {
    for columns in WIDTHS {
        let entries = entries::<T>(700 * columns);
        let labels: Vec<u8> = entries.chunks_exact(columns).map(|row| u8::from(row[0].get() >= 0.0)).collect();
        let records = Records::new(&entries, columns, &labels, true).unwrap();
        let rows: Vec<usize> = (0..700).filter(|row| row % 7 != 3).collect();
        let goal = Goal { cost: 1e3, margin: 0.5 };
        let found: Vec<Halfspace> = arms()
            .flat_map(|isa| [Run::new(isa, false, parallel), Run::new(isa, true, parallel)])
            .map(|run| separate(records, &rows, None, goal, run).unwrap())
            .collect();
        assert_eq!(found[0].errors, 0);
        for other in &found[1..] {
            assert_eq!((&other.weights, other.bias), (&found[0].weights, found[0].bias), "{columns} columns");
        }
    }
}

#[test]
fn every_arm_and_thread_finds_the_same_halfspace() {
    let go_on = AtomicBool::new(false);
    same_halfspace::<f32>(&go_on);
    same_halfspace::<f64>(&go_on);
}

#[test]
fn a_canceled_search_ends() {
    let canceled = AtomicBool::new(true);
    let records = Records::new(&[1.0, -1.0], 1, &[1, 0], true).unwrap();
    let run = Run::new(Isa::Portable, false, &canceled);
    assert!(separate(records, &[0, 1], None, Goal { cost: 1.0, margin: 0.5 }, run).is_err());
}

#[test]
fn nonsense_is_refused() {
    let run = Run::alone(Isa::Portable);
    let goal = Goal { cost: 1.0, margin: 0.5 };
    assert!(Records::new(&[1.0, -1.0, 2.0], 2, &[1], true).is_err());
    let records = Records::new(&[1.0, -1.0], 1, &[1, 0], true).unwrap();
    assert!(separate(records, &[2], None, goal, run).is_err());
    assert!(separate(records, &[0], Some(&[1.0]), goal, run).is_err());
}
