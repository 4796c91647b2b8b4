//! Scores of consecutive rows by linear models, and the sums in eight lanes that they and others are made of.
//!
//! An inner product in one running sum waits for each addition, and a compiler may not reorder it. So eight sums run
//! side by side, in plain Rust that becomes vectors of any length, and are folded in one order at the end. Products are
//! not fused with sums. All arms round alike.
//!
//! ```text
//! products(x, w):
//!     for each eight entries:  inner[lane] += x[lane] w[lane],  squared[lane] += x[lane] x[lane]
//!     the entries that are left, lane by lane
//!     fold: ((0 + 4) + (2 + 6)) + ((1 + 5) + (3 + 7))
//! score of a row and a model w: <x, w> min(bound / sqrt(<x, x>), 1), and 0 if it is not finite or x underflows
//! ```

use super::gradients::Rows;
use super::real::Real;

/// Running sums of an inner product, so that the processor need not wait for one before it adds to the next.
const LANES: usize = 8;

dispatched! {
    /// Writes the inner products of each shrunk row, from row `first` on, with every part of w of a row's length.
    clipped_scores<T: Real>(rows: Rows<'_, T>, first: usize, w: &[T], out: &mut [f64]) = scores
}

#[inline(always)]
fn scores<T: Real>(rows: Rows<'_, T>, first: usize, w: &[T], out: &mut [f64]) {
    for (i, out) in out.chunks_exact_mut(w.len() / rows.columns).enumerate() {
        let row = rows.row(first + i);
        for (out, w) in out.iter_mut().zip(w.chunks_exact(rows.columns)) {
            let (inner, squared) = products(row, w);
            let (shrunk, norm) = rows.measured(squared);
            let score = inner * shrunk;
            *out = if norm.is_nan() || !score.is_finite() { 0.0 } else { score };
        }
    }
}

/// The inner product of a row with w and with itself.
#[inline(always)]
pub(super) fn products<T: Real>(row: &[T], w: &[T]) -> (f64, f64) {
    let (mut inner, mut squared) = ([T::default(); LANES], [T::default(); LANES]);
    let (rows, ws) = (row.chunks_exact(LANES), w.chunks_exact(LANES));
    let ends = rows.remainder().iter().zip(ws.remainder());
    for (row, w) in rows.zip(ws) {
        for lane in 0..LANES {
            inner[lane] += row[lane] * w[lane];
            squared[lane] += row[lane] * row[lane];
        }
    }
    for (lane, (&x, &w)) in ends.enumerate() {
        inner[lane] += x * w;
        squared[lane] += x * x;
    }
    (folded(inner).get(), folded(squared).get())
}

/// The sum of squares of the values.
pub fn squared_norm(values: &[f64]) -> f64 {
    products(values, values).1
}

#[inline(always)]
pub(super) fn folded<T: Real>(sums: [T; LANES]) -> T {
    let [a, b, c, d, e, f, g, h] = sums;
    ((a + e) + (c + g)) + ((b + f) + (d + h))
}
