//! Gradients that are sums of integers: exact in floats, in any order.
//!
//! A record's gradient is its coefficients, a vector of integers c with |c| <= most, times its row, a vector of integers
//! x with |x| <= units. Both norms are checked in integers where those are made, rows once and coefficients in each pass,
//! by sums of squares that are exact as long as they have not passed the bound of at most 2^52. The gradient's entries are
//! c_k x_j, so that its norm is |c| |x| <= most units whatever the record holds: replacing one moves the sum by at most
//! 2 most units. Magnitudes of n of them add up to less than 2^53 if n most units does, which each pass checks.

use crate::error::{Error, Result};
use crate::memory::zeros;
use crate::params::{count_rule, positive};
use crate::run::Run;
use crate::simd::{Real, Work, vectorized};

/// The largest norm whose square, and the first sum of squares above it, floats hold exactly.
const MOST_NORM: f64 = (1u64 << 26) as f64;

/// Integers from here on are not all floats.
const EXACT: f64 = (1u64 << 53) as f64;

/// Adding it to a number below a third of it and subtracting it again leaves the nearest integer.
const ROUNDER: f64 = <f64 as Real>::ROUNDER;

/// Entries that a thread takes at a time.
const CHUNK: usize = 1 << 14;

/// The grid of integers to which the coefficients of records are rounded.
#[derive(Clone, Copy, Debug)]
pub struct Grid {
    /// The number of grid steps in a unit of a coefficient.
    pub scale: f64,
    /// The largest norm of a record's coefficients, in grid steps; coefficients that exceed it count as 0.
    pub most: f64,
    /// The largest norm of a row of integers, as [`to_integers`] made them.
    pub units: f64,
}

impl Grid {
    /// Refuses norms for which the sum over `records` records might not be exact.
    pub fn check(&self, records: usize) -> Result<()> {
        positive("scale", self.scale)?;
        for (name, value) in [("most", self.most), ("units", self.units)] {
            check_norm(name, value)?;
        }
        // Of three integers, the first two below 2^26, the product is rounded once: a true one of 2^53 is not missed.
        let product = self.most * self.units * records as f64;
        let rule = format!("times {} units and {records} records it must stay below 2^53", self.units);
        if product < EXACT { Ok(()) } else { Err(Error::parameter("most", self.most, &rule)) }
    }

    /// The integers next to the derivatives times weight and scale.
    #[inline(always)]
    pub(super) fn round(self, derivatives: &mut [f64], weight: f64) {
        let factor = weight * self.scale;
        let mut squared = 0.0;
        for value in &mut *derivatives {
            *value = *value * factor + ROUNDER - ROUNDER;
            squared += *value * *value;
        }
        // Infinities and what is no number are not within the bound either.
        let within = squared <= self.most * self.most;
        for value in derivatives {
            *value = if within { *value } else { 0.0 };
        }
    }
}

fn check_norm(name: &str, value: f64) -> Result<()> {
    let fine = (1.0..=MOST_NORM).contains(&value) && value.fract() == 0.0;
    if fine { Ok(()) } else { Err(Error::parameter(name, value, &count_rule(MOST_NORM as u64))) }
}

/// Rounds rows to integers of norm at most `units`, as if longer rows were shrunk to a norm of `bound` before. Returns
/// the integers and how many of them make a unit of the entries.
///
/// Rounding may add half of the root of the number of columns to a norm: the scale leaves room for it. A row that is
/// beyond the bound all the same, or that has an infinite norm, becomes zeros.
///
/// Cost: one pass over the entries.
pub fn to_integers<T: Real>(
    entries: &[T],
    columns: usize,
    bound: f64,
    units: f64,
    run: Run<'_>,
) -> Result<(Vec<T>, f64)> {
    check_norm("units", units)?;
    if columns == 0 || !entries.len().is_multiple_of(columns) {
        return Err(Error::Shape(format!("{} entries do not fill rows of {columns}", entries.len())));
    }
    let scale = (units - (columns as f64).sqrt() / 2.0 - 1.0) / bound;
    if units * T::EPSILON > 2.0 {
        return Err(Error::parameter("units", units, "entries of this precision hold integers of up to 24 bits"));
    }
    if !(bound > 0.0 && scale > 0.0 && scale.is_finite()) {
        let rule = format!("it must be above 0, and {units} units above half the root of {columns} columns");
        return Err(Error::parameter("bound", bound, &rule));
    }
    let mut integers: Vec<T> = zeros(Some(entries.len()))?;
    let size = columns * (CHUNK / columns).max(1);
    run.try_for_each_chunk(&mut integers, size, |chunk, out| {
        let rows = &entries[chunk * size..][..out.len()];
        vectorized(run.isa, Rounding { rows, columns, bound, scale, units, out });
        Ok(())
    })?;
    Ok((integers, scale))
}

struct Rounding<'a, T> {
    rows: &'a [T],
    columns: usize,
    bound: f64,
    scale: f64,
    units: f64,
    out: &'a mut [T],
}

impl<T: Real> Work for Rounding<'_, T> {
    #[inline(always)]
    fn work(self) {
        let Rounding { rows, columns, bound, scale, units, out } = self;
        for (row, out) in rows.chunks_exact(columns).zip(out.chunks_exact_mut(columns)) {
            let norm = row.iter().fold(0.0, |sum, x| sum + x.get() * x.get()).sqrt();
            let factor = scale * (bound / norm).min(1.0);
            let mut squared = 0.0;
            for (x, out) in row.iter().zip(out.iter_mut()) {
                let value = x.get() * factor + ROUNDER - ROUNDER;
                squared += value * value;
                *out = T::of(value);
            }
            if squared > units * units || squared.is_nan() {
                out.fill(T::default());
            }
        }
    }
}
