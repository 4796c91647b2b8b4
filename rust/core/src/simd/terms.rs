//! What is added up of rows: multiples of them as they are, or rounded to integers of bounded norm.
//!
//! Rounded multiples are exact in any order, and their norm must never exceed what the noise is made for. The norm of
//! the exact multiple is known from inner products, with all roundings; rounding to integers adds at most half the root
//! of the number of entries. Only where that bound is not enough are the integers themselves squared and added up.
//!
//! ```text
//! term       = round(factor x), as (factor x + rounder) - rounder
//! sums       add the bits of factor x + rounder as integers: exact, and no conversion
//! are_short  = (norm of the row with its roundings) |factors| + sqrt(k d) / 2 <= most
//! is_short   = the sum of the squared terms <= most^2, exactly
//! ```

use super::gradients::Grid;
use super::real::{Line, Real};

/// How multiples of rows are added up.
pub(super) trait Terms<T: Real>: Copy {
    /// What factors are multiplied with.
    fn scale(self) -> f64;
    /// Whether the multiples of some rows, by one factor for each class, are surely short enough, from the rows' inner
    /// products with themselves.
    fn are_short<const N: usize>(self, factors: &[[f64; N]], squared: &[f64; N], columns: usize) -> [bool; N];
    /// Whether the norm of one row's multiples is within the bound, computed without error.
    fn is_short(self, factors: impl Iterator<Item = T>, row: impl Iterator<Item = T> + Clone) -> bool;
    /// One term of a sum.
    fn term(factor: T, x: T) -> f64;
    /// Sums under way with one more term each.
    fn add<L: Line<T, LANES>, const LANES: usize>(sum: L, factor: L, x: L) -> L;
    /// The value of a sum under way, of so many terms.
    fn total(sum: T, terms: usize) -> f64;
}

/// Multiples as they are.
#[derive(Clone, Copy)]
pub(super) struct Plain;

impl<T: Real> Terms<T> for Plain {
    #[inline(always)]
    fn scale(self) -> f64 {
        1.0
    }

    #[inline(always)]
    fn are_short<const N: usize>(self, _: &[[f64; N]], _: &[f64; N], _: usize) -> [bool; N] {
        [true; N]
    }

    fn is_short(self, _: impl Iterator<Item = T>, _: impl Iterator<Item = T> + Clone) -> bool {
        true
    }

    #[inline(always)]
    fn term(factor: T, x: T) -> f64 {
        (factor * x).get()
    }

    #[inline(always)]
    fn add<L: Line<T, LANES>, const LANES: usize>(sum: L, factor: L, x: L) -> L {
        sum.add(factor.multiply(x))
    }

    #[inline(always)]
    fn total(sum: T, _: usize) -> f64 {
        sum.get()
    }
}

/// Multiples rounded to integers, whose norm for each row never exceeds that of the grid.
impl<T: Real> Terms<T> for Grid {
    #[inline(always)]
    fn scale(self) -> f64 {
        self.scale
    }

    /// With computed squared norm s of a row of d entries, unit roundoff u and factors f of k classes: the sum of squares
    /// has at most d / 8 + 5 roundings one after the other, and each square may have lost less than the least number, so
    /// that the row's norm is at most n with n^2 = s (1 + (d / 8 + 6) u) + d least. Its multiples are then of norm at
    /// most (1 + u) n |f|, and rounding them to integers adds at most sqrt(k d) / 2.
    #[inline(always)]
    fn are_short<const N: usize>(self, factors: &[[f64; N]], squared: &[f64; N], columns: usize) -> [bool; N] {
        let (d, unit) = (columns as f64, T::EPSILON / 2.0);
        let (loss, least) = (1.0 + (d / 8.0 + 6.0) * unit, d * (T::LEAST * T::EPSILON));
        // Squares of factors that are lost are those of less than 1e-161, and a norm is below 1e155.
        let half = (d * factors.len() as f64).sqrt() / 2.0 + 1e-5;
        let (mut lengths, mut short) = ([0.0; N], [false; N]);
        for factors in factors {
            for i in 0..N {
                lengths[i] += factors[i] * factors[i];
            }
        }
        for i in 0..N {
            let norm = (squared[i] * loss + least).sqrt() * lengths[i].sqrt();
            // The last factor is for the roundings of this bound itself.
            short[i] = (norm * (1.0 + unit) + half) * (1.0 + 1e-12) <= self.most;
        }
        short
    }

    /// As long as the sum of squares has not exceeded that of the bound, all of it is an integer below 2^53.
    #[cold]
    #[inline(never)]
    fn is_short(self, factors: impl Iterator<Item = T>, row: impl Iterator<Item = T> + Clone) -> bool {
        let values = factors.flat_map(|factor| row.clone().map(move |x| <Grid as Terms<T>>::term(factor, x)));
        values.map(|value| value * value).sum::<f64>() <= self.most * self.most
    }

    #[inline(always)]
    fn term(factor: T, x: T) -> f64 {
        (factor * x + T::ROUNDER - T::ROUNDER).get()
    }

    #[inline(always)]
    fn add<L: Line<T, LANES>, const LANES: usize>(sum: L, factor: L, x: L) -> L {
        sum.add_bits(factor.multiply(x).add(L::splat(T::ROUNDER)))
    }

    #[inline(always)]
    fn total(sum: T, terms: usize) -> f64 {
        sum.total_of_bits(terms)
    }
}
