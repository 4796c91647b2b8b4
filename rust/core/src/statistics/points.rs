//! Columns of numbers as the nearest points of even grids between their bounds.

use crate::error::{Error, Result};
use crate::run::Run;
use crate::simd::nearest_points;

/// The numbers that a thread takes at a time.
const CHUNK: usize = 1 << 14;

/// The most steps of a grid.
const MOST_STEPS: i64 = 1 << 51;

/// Writes the nearest of the points 0, 1, ..., `steps` of an even grid between the bounds of its column for each number.
/// The columns stand one after the other, all of one length.
///
/// A number beyond the bounds counts as the nearer one, and NaN as the lower one. Of two points that are as near, it is
/// the even one.
///
/// Cost: a pass over the numbers.
pub fn write_points(
    numbers: &[f64],
    low: &[f64],
    high: &[f64],
    steps: i64,
    out: &mut [i64],
    run: Run<'_>,
) -> Result<()> {
    if low.is_empty() || low.len() != high.len() || !numbers.len().is_multiple_of(low.len()) {
        let (lengths, entries) = ([low.len(), high.len()], numbers.len());
        return Err(Error::Shape(format!("{entries} numbers do not fit {lengths:?} bounds of columns")));
    }
    if out.len() != numbers.len() {
        let (room, entries) = (out.len(), numbers.len());
        return Err(Error::Shape(format!("{room} entries have no room for {entries} points")));
    }
    // Written so that NaN, which is above nothing, is refused.
    if !low.iter().zip(high).all(|(low, high)| low < high && low.is_finite() && high.is_finite()) {
        return Err(Error::Parameter("low must be below high in every column, and both finite".into()));
    }
    if !(1..=MOST_STEPS).contains(&steps) {
        return Err(Error::parameter("steps", steps, &format!("it must lie in [1, {MOST_STEPS}]")));
    }
    let rows = (numbers.len() / low.len()).max(1);
    let columns = numbers.chunks(rows).zip(out.chunks_mut(rows));
    for ((numbers, out), ends) in columns.zip(low.iter().copied().zip(high.iter().copied())) {
        run.try_for_each_chunk(out, CHUNK, |i, out| {
            nearest_points(run.isa, &numbers[i * CHUNK..][..out.len()], ends, steps as f64, out);
            Ok(())
        })?;
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::simd::Isa;

    #[test]
    fn each_column_has_bounds_of_its_own() {
        let rows = 2 * CHUNK + 1;
        let numbers: Vec<f64> = (0..2 * rows).map(|i| (i % rows) as f64).collect();
        let mut out = vec![-1; 2 * rows];
        write_points(&numbers, &[0.0, 10.0], &[1e6, 20.0], 1_000_000, &mut out, Run::alone(Isa::Portable)).unwrap();
        for i in 0..rows {
            assert_eq!(out[i], i as i64);
            assert_eq!(out[rows + i], (i as i64 - 10).clamp(0, 10) * 100_000);
        }
    }

    #[test]
    fn shapes_and_bounds_that_do_not_fit_are_refused() {
        let write = |numbers: usize, low: &[f64], high: &[f64], steps, room: usize| {
            write_points(&vec![0.5; numbers], low, high, steps, &mut vec![0; room], Run::alone(Isa::Portable)).is_ok()
        };
        assert!(write(4, &[0.0, 0.0], &[1.0, 1.0], 1, 4) && write(0, &[0.0], &[1.0], MOST_STEPS, 0));
        assert!(!write(0, &[], &[], 1, 0) && !write(3, &[0.0, 0.0], &[1.0, 1.0], 1, 3));
        assert!(!write(2, &[0.0, 0.0], &[1.0], 1, 2) && !write(2, &[0.0], &[1.0], 1, 1));
        assert!(!write(1, &[0.0], &[1.0], 0, 1) && !write(1, &[0.0], &[1.0], MOST_STEPS + 1, 1));
        for (low, high) in [(1.0, 1.0), (f64::NAN, 1.0), (0.0, f64::NAN), (0.0, f64::INFINITY)] {
            assert!(!write(1, &[low], &[high], 1, 1), "{low} {high}");
        }
    }
}
