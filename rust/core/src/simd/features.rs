//! Features of records, row by row: scaled, waved, cut to integers, added up.
//!
//! A sum of private rows is protected by noise only as large as the longest row, so that no row may be longer than is
//! said, not even by a rounding: features are cut to integers towards zero, whose squares are added up exactly, and a
//! row that is still too long becomes zero. What becomes of a row depends on that row alone. The bodies are plain Rust;
//! an arm is the same body compiled for an instruction set whose vectors are longer. Sums are kept in lanes and
//! products are not fused with them, so that all arms round alike.
//!
//! ```text
//! scale:  out = (clamp(x, low, high) - origin) factor, NaN counting as low
//! wave:   cos(2 pi t), sin(2 pi t) by one series, after the nearest integer is taken from t
//! cut:    factor = unit min((1 - 2^-40) / norm, 1);  integers = row factor, cut towards zero
//!         if the sum of their squares exceeds unit^2, or is no number: the row becomes 0
//! add:    sums[class] += row, or sums += factor row
//! ```

use hdp_fast_device::SINE;

use super::real::Real;
use super::scores::folded;

/// Running sums of squares, so that the processor need not wait for one before it adds to the next.
const LANES: usize = 8;

/// A row whose norm is found to be larger is shrunk to it. The margin of 2^-40 is larger than the error of the norm.
const LONGEST: f64 = 1.0 - 1.0 / (1u64 << 40) as f64;

/// How each column becomes a number near 1: (clamp(x, low, high) - origin) * factor.
#[derive(Clone, Copy)]
pub struct Scaling<'a> {
    /// The lowest values of the columns.
    pub low: &'a [f64],
    /// The highest values of the columns.
    pub high: &'a [f64],
    /// The values that become 0.
    pub origin: &'a [f64],
    /// What differences from the origin are multiplied with.
    pub factor: &'a [f64],
}

/// How features are cut to integers.
#[derive(Clone, Copy)]
pub struct Cut {
    /// The integer that 1 becomes: at most 2^26, so that squares are exact.
    pub unit: f64,
    /// Whether the last entry of a row is a constant, which becomes the unit, too.
    pub constant: bool,
}

dispatched! {
    /// Sets `finite` to false if an entry is not finite.
    check_finite<T: Real>(entries: &[T], finite: &mut bool) = all_finite
}

dispatched! {
    /// Scales rows of entries into the first entries of rows of `stride`.
    scale_rows<T: Real>(entries: &[T], scaling: Scaling<'_>, stride: usize, out: &mut [f64]) = scaled
}

dispatched! {
    /// Writes the cosine and then the sine of every angle of a row, in turns; each row of `out` begins with them.
    wave_rows(turns: &[f64], columns: usize, stride: usize, out: &mut [f64]) = waved
}

dispatched! {
    /// Cuts rows of features to integers, in place: each is shrunk to norm 1 if it is longer, multiplied by the unit, and
    /// its entries are cut towards zero. A row whose integers have a norm above the unit, or are none, becomes zero,
    /// its constant included.
    cut_rows(rows: &mut [f64], columns: usize, cut: Cut) = cut_all
}

dispatched! {
    /// Adds each row to the sums of its class.
    add_to_classes(rows: &[f64], columns: usize, codes: &[i64], sums: &mut [f64]) = by_class
}

dispatched! {
    /// Adds each row to the sums, times its factor.
    add_multiples(rows: &[f64], columns: usize, factors: &[f64], sums: &mut [f64]) = multiples
}

/// A product with 0 is 0 where an entry is finite, and NaN where it is not.
#[inline(always)]
fn all_finite<T: Real>(entries: &[T], finite: &mut bool) {
    let mut sums = [T::default(); 4 * LANES];
    let parts = entries.chunks_exact(4 * LANES);
    sums.iter_mut().zip(parts.remainder()).for_each(|(sum, &x)| *sum += x * T::default());
    for part in parts {
        for lane in 0..4 * LANES {
            sums[lane] += part[lane] * T::default();
        }
    }
    *finite &= sums.iter().all(|sum| sum.get() == 0.0);
}

#[inline(always)]
fn scaled<T: Real>(entries: &[T], scaling: Scaling<'_>, stride: usize, out: &mut [f64]) {
    let columns = scaling.low.len();
    let (low, high) = (&scaling.low[..columns], &scaling.high[..columns]);
    let (origin, factor) = (&scaling.origin[..columns], &scaling.factor[..columns]);
    for (row, out) in entries.chunks_exact(columns).zip(out.chunks_exact_mut(stride)) {
        let out = &mut out[..columns];
        for i in 0..columns {
            let x = row[i].get();
            // NaN is not at least the lower bound, and counts as it.
            let x = if x >= low[i] { x } else { low[i] };
            let x = if x > high[i] { high[i] } else { x };
            out[i] = (x - origin[i]) * factor[i];
        }
    }
}

#[inline(always)]
fn waved(turns: &[f64], columns: usize, stride: usize, out: &mut [f64]) {
    for (turns, out) in turns.chunks_exact(columns).zip(out.chunks_exact_mut(stride)) {
        let (cosines, sines) = out[..2 * columns].split_at_mut(columns);
        for i in 0..columns {
            cosines[i] = cosine(turns[i]);
            sines[i] = cosine(turns[i] - 0.25);
        }
    }
}

/// The cosine of an angle in turns; NaN where the angle is not finite.
#[inline(always)]
fn cosine(turns: f64) -> f64 {
    let t = 0.25 - (turns - turns.round_ties_even()).abs();
    let square = t * t;
    let mut value = SINE[10];
    for coefficient in SINE[..10].iter().rev() {
        value = value * square + coefficient;
    }
    value * t
}

#[inline(always)]
fn cut_all(rows: &mut [f64], columns: usize, cut: Cut) {
    let own = columns - usize::from(cut.constant);
    for row in rows.chunks_exact_mut(columns) {
        let (features, constant) = row.split_at_mut(own);
        let squared = squared_norm(features);
        let norm = squared.sqrt();
        let factor = if norm <= LONGEST { cut.unit } else { cut.unit * (LONGEST / norm) };
        // As long as the sum of squares has not exceeded the bound, all of it is an integer below 2^53, and exact.
        let fits = cut_row(features, factor) <= cut.unit * cut.unit && squared < f64::INFINITY;
        if !fits {
            features.fill(0.0);
        }
        constant.fill(if fits { cut.unit } else { 0.0 });
    }
}

#[inline(always)]
fn squared_norm(row: &[f64]) -> f64 {
    let mut sums = [0.0; LANES];
    let parts = row.chunks_exact(LANES);
    sums.iter_mut().zip(parts.remainder()).for_each(|(sum, x)| *sum += x * x);
    for part in parts {
        for lane in 0..LANES {
            sums[lane] += part[lane] * part[lane];
        }
    }
    folded(sums)
}

/// Multiplies by the factor and cuts to integers; their squared norm.
#[inline(always)]
fn cut_row(row: &mut [f64], factor: f64) -> f64 {
    let mut sums = [0.0; LANES];
    let mut parts = row.chunks_exact_mut(LANES);
    for part in &mut parts {
        for lane in 0..LANES {
            let integer = (part[lane] * factor).trunc();
            sums[lane] += integer * integer;
            part[lane] = integer;
        }
    }
    for (sum, x) in sums.iter_mut().zip(parts.into_remainder()) {
        let integer = (*x * factor).trunc();
        *sum += integer * integer;
        *x = integer;
    }
    folded(sums)
}

#[inline(always)]
fn by_class(rows: &[f64], columns: usize, codes: &[i64], sums: &mut [f64]) {
    for (row, &code) in rows.chunks_exact(columns).zip(codes) {
        let sums = &mut sums[code as usize * columns..][..columns];
        sums.iter_mut().zip(row).for_each(|(sum, x)| *sum += x);
    }
}

#[inline(always)]
fn multiples(rows: &[f64], columns: usize, factors: &[f64], sums: &mut [f64]) {
    for (row, &factor) in rows.chunks_exact(columns).zip(factors) {
        sums.iter_mut().zip(row).for_each(|(sum, x)| *sum += factor * x);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::{Seed, Stream};
    use crate::simd::Isa;

    #[test]
    fn cosines_are_those_of_the_library() {
        for i in -4000..4000 {
            let turns = f64::from(i) / 777.0;
            assert!((cosine(turns) - (std::f64::consts::TAU * turns).cos()).abs() < 2e-14, "{turns}");
        }
        for (turns, value) in [(0.0, 1.0), (0.25, 0.0), (0.5, -1.0), (7.0, 1.0), (1e300, 1.0)] {
            assert!((cosine(turns) - value).abs() < 1e-15, "{turns}");
        }
        assert!(cosine(f64::INFINITY).is_nan() && cosine(f64::NAN).is_nan());
        assert!(SINE.iter().enumerate().all(|(i, c)| {
            let power = 2 * i as i32 + 1;
            let factorial: f64 = (1..=power).map(f64::from).product();
            let exact = std::f64::consts::TAU.powi(power) / factorial * if i % 2 == 0 { 1.0 } else { -1.0 };
            (c / exact - 1.0).abs() < 1e-14
        }));
    }

    #[test]
    fn no_row_of_integers_is_longer_than_the_unit() {
        let mut rng = Seed::reproducible([8; 32]).stream(Stream::Speed, 0);
        let scales = [0.0, 5e-324, 1e-200, 1e-9, 0.1, 1.0, 1.0, 1e6, 1e150, 1e155, 1e308, f64::INFINITY, f64::NAN];
        for columns in [1, 2, 7, 8, 9, 63, 64, 65, 200] {
            for unit in [1.0, 724.0, (1 << 20) as f64, (1 << 26) as f64] {
                let entries: Vec<f64> = (0..60)
                    .flat_map(|_| {
                        let scale = scales[rng.below(13) as usize];
                        (0..columns).map(|_| scale * (rng.below(2001) as f64 - 1000.0) / 1000.0).collect::<Vec<_>>()
                    })
                    .collect();
                let cut = Isa::ALL.map(|isa| {
                    let mut rows = entries.clone();
                    cut_rows(isa, &mut rows, columns, Cut { unit, constant: false });
                    rows
                });
                assert!(cut.iter().all(|rows| *rows == cut[0]));
                for row in cut[0].chunks_exact(columns) {
                    assert!(row.iter().all(|q| q.fract() == 0.0));
                    let squared: i128 = row.iter().map(|&q| i128::from(q as i64).pow(2)).sum();
                    assert!(squared <= (unit as i128).pow(2), "{columns} {unit}");
                }
            }
        }
    }

    #[test]
    fn entries_are_clipped_to_their_bounds_and_nan_counts_as_the_lower_one() {
        let entries = [f64::NAN, -f64::INFINITY, f64::INFINITY, -7.0, 2.5, 9.0, -0.0];
        for isa in Isa::ALL {
            for columns in [1, 2, 7, 8, 9, 63, 64, 65] {
                let (low, high) = (vec![-1.0; columns], vec![4.0; columns]);
                let scaling = Scaling { low: &low, high: &high, origin: &low, factor: &vec![0.2; columns] };
                let rows: Vec<f64> = (0..7 * columns).map(|i| entries[i % 7]).collect();
                let mut out = vec![0.0; 7 * columns];
                scale_rows(isa, &rows, scaling, columns, &mut out);
                let expected = [0.0, 0.0, 1.0, 0.0, 0.7, 1.0, 0.2];
                assert!(out.iter().enumerate().all(|(i, x)| (x - expected[i % 7]).abs() < 1e-15));
            }
        }
    }

    #[test]
    fn what_is_not_finite_is_seen_anywhere() {
        for isa in Isa::ALL {
            for at in 0..70 {
                for (value, expected) in
                    [(f64::MAX, true), (-0.0, true), (f64::NAN, false), (f64::INFINITY, false), (-f64::INFINITY, false)]
                {
                    let (mut entries, mut finite) = (vec![-1e308; 70], true);
                    entries[at] = value;
                    check_finite(isa, &entries, &mut finite);
                    assert_eq!(finite, expected, "{at} {value}");
                }
            }
        }
    }

    #[test]
    fn entries_are_cut_towards_zero_and_rows_that_fail_lose_their_constant() {
        let mut rows = [0.5, -0.2999, 10.0, 3.0, 4.0, 10.0, f64::NAN, 0.0, 10.0, 1e200, 0.0, 10.0, 0.0, 0.0, 0.0];
        cut_rows(Isa::Portable, &mut rows, 3, Cut { unit: 10.0, constant: true });
        assert_eq!(rows, [5.0, -2.0, 10.0, 5.0, 7.0, 10.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 10.0]);
    }
}
