//! A descent on all records, used as from Rust: sums are exact, and every arm finds the same.

#![allow(clippy::unwrap_used)]

mod kernels;

use std::sync::atomic::AtomicBool;

use hdp_fast_core::error::Error;
use hdp_fast_core::run::Run;
use hdp_fast_core::sgd::{IntegerRecords, Places, Steps, descend, limits};
use hdp_fast_core::simd::Isa;
use kernels::{arms, entries};

const PLACES: Places = Places { unit: 1.0 / 16384.0, bits: 12, length: (1u64 << 25) as f64 };

/// Integers of all sizes, the ends among them, for so many rows.
fn rows(count: usize, columns: usize) -> Vec<i16> {
    let scales = [0.0, 1.0, 300.0, 9_000.0, 32_768.0];
    let signs = entries::<f64>(count * columns);
    signs.iter().enumerate().map(|(i, sign)| (sign * scales[i / columns % 5]) as i16).collect()
}

fn labels(count: usize, classes: usize) -> Vec<i16> {
    let most = if classes == 1 { 16_384 } else { classes };
    (0..count).map(|i| (i * i * 77 % most) as i16 * if classes == 1 && i % 2 == 0 { -1 } else { 1 }).collect()
}

/// What a record adds, and its squared norm, from a sum over it alone.
fn part(row: &[i16], label: i16, classes: usize, weights: &[f64], isa: Isa) -> (Vec<i64>, i128) {
    let run = Run::alone(isa);
    let limits = limits(row, row.len(), PLACES.length, run).unwrap();
    let labels = [label];
    let record = IntegerRecords::new(row, row.len(), &labels, classes, &limits).unwrap();
    let part = record.add_gradients(weights, PLACES, run).unwrap();
    let squared = part.iter().map(|entry| i128::from(*entry).pow(2)).sum();
    (part, squared)
}

#[test]
fn a_sum_is_that_of_short_parts_on_every_arm_and_in_parallel() {
    let never = AtomicBool::new(false);
    for (count, columns, classes) in [
        (1, 1, 2),
        (7, 9, 2),
        (1, 1, 1),
        (7, 9, 1),
        (2_100, 5, 1),
        (170, 64, 2),
        (9, 3, 3),
        (2_100, 5, 2),
        (1_100, 17, 4),
    ] {
        let models = if classes <= 2 { 1 } else { classes };
        let weights: Vec<f64> = entries::<f64>(columns * models).iter().map(|w| w * 3.0).collect();
        let (rows, labels) = (rows(count, columns), labels(count, classes));
        let mut expected = vec![0i64; columns * models];
        for (row, label) in rows.chunks_exact(columns).zip(&labels) {
            let (part, squared) = part(row, *label, classes, &weights, Isa::Portable);
            assert!(squared <= (PLACES.length as i128).pow(2));
            expected.iter_mut().zip(part).for_each(|(sum, entry)| *sum += entry);
        }
        for run in arms().flat_map(|isa| [Run::alone(isa), Run::new(isa, true, &never)]) {
            let limits = limits(&rows, columns, PLACES.length, run).unwrap();
            let records = IntegerRecords::new(&rows, columns, &labels, classes, &limits).unwrap();
            assert_eq!(records.add_gradients(&weights, PLACES, run).unwrap(), expected, "{count} {:?}", run.isa);
            if classes == 1 {
                assert!(records.count_margins(&weights, &[0.0], &[0], PLACES.unit, run).is_err());
                continue;
            }
            let margins = |second: &[u8]| records.count_margins(&weights, &[-1.0, 0.0, 0.5], second, PLACES.unit, run);
            let (first, last) =
                (margins(&vec![0; classes * classes]).unwrap(), margins(&vec![1; classes * classes]).unwrap());
            assert_eq!(first.iter().sum::<i64>() as usize, count * (classes - 1));
            assert_eq!((&first[..4], &first[4..]), (&last[4..], &last[..4]));
            assert!(margins(&[0]).is_err());
        }
    }
}

#[test]
fn no_weights_make_a_part_longer() {
    let rows = rows(50, 6);
    let mut longest = 0;
    for size in [0.0, 1.0, 1e30, 1e300, f64::INFINITY, f64::NAN] {
        for classes in [1, 2, 3] {
            let weights = vec![size; 6 * if classes <= 2 { 1 } else { 3 }];
            for (i, row) in rows.chunks_exact(6).enumerate() {
                for isa in arms() {
                    longest = longest
                        .max(part(row, if classes == 1 { i16::MIN } else { (i % 2) as i16 }, classes, &weights, isa).1);
                }
            }
        }
    }
    let most = (PLACES.length as i128).pow(2);
    assert!(longest <= most && longest > most * 99 / 100);
}

#[test]
fn a_descent_adds_noise_to_sums_and_moves_by_their_mean() {
    let (rows, labels) = (rows(40, 3), labels(40, 2));
    let run = Run::alone(Isa::detect().unwrap());
    let limits = limits(&rows, 3, PLACES.length, run).unwrap();
    let records = IntegerRecords::new(&rows, 3, &labels, 2, &limits).unwrap();
    let (steps, noise) = (Steps { rate: 2.0, momentum: 0.5, averaged: 1 }, [5, -7, 1 << 20, -3, 0, 9]);
    let path = descend(records, PLACES, steps, &noise, run).unwrap();
    let unit = PLACES.unit / 4096.0 / 40.0;
    let gradient = |weights: &[f64], noise: &[i64]| -> Vec<f64> {
        let sums = records.add_gradients(weights, PLACES, run).unwrap();
        sums.iter().zip(noise).map(|(sum, noise)| (sum + noise) as f64 * unit).collect()
    };
    let first = gradient(&[0.0; 3], &noise[..3]);
    let model: Vec<f64> = first.iter().map(|entry| -2.0 * entry).collect();
    let second = gradient(&model, &noise[3..]);
    for i in 0..3 {
        let expected = model[i] - 2.0 * (0.5 * first[i] + second[i]);
        assert!((path.weights[i] - expected).abs() < 1e-12);
    }
    let along: f64 = second.iter().zip(&model).map(|(entry, weight)| entry * weight).sum();
    assert!((path.along - along).abs() < 1e-12);
}

#[test]
fn the_caller_can_stop_a_descent() {
    let (rows, labels) = (rows(40, 3), labels(40, 2));
    let limits = limits(&rows, 3, PLACES.length, Run::alone(Isa::Portable)).unwrap();
    let records = IntegerRecords::new(&rows, 3, &labels, 2, &limits).unwrap();
    let stopped = AtomicBool::new(true);
    for parallel in [false, true] {
        let run = Run::new(Isa::Portable, parallel, &stopped);
        let steps = Steps { rate: 1.0, momentum: 0.5, averaged: 1 };
        assert_eq!(descend(records, PLACES, steps, &[0; 3], run), Err(Error::Canceled));
    }
}
