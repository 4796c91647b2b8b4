//! Halfspaces and records in single precision, with what that may change in a score.
//!
//! Both are multiplied by powers of two, which changes no sign: the largest norm is then between 1 and 2. With n
//! features, a score has n + 1 terms, whose magnitudes add up to at most S = |w| |x| + |b|. Each is rounded three times
//! before it is added, and at most n + 1 times after that, by 2^-24 at most; the definition in double precision rounds by
//! 2^-53. All of it is less than (n + 8) 2^-24 S, up to terms of the second order and to numbers below the least normal
//! one, for which a quarter more leaves plenty of room.

use crate::error::Result;
use crate::memory::{room, zeros};
use crate::simd::{ABREAST, Rough, TILE, Tile};

/// With more features the margins are too wide.
pub const MOST_FEATURES: usize = 1 << 12;

/// Squared norms of halfspaces, and of the records of a tile, for which nothing overflows and underflow does not count.
const WEIGHTS: (f64, f64) = (power(-600), power(600));
const RECORDS: (f64, f64) = (power(-200), power(200));

/// The margin of a score for every unit of the magnitudes of its terms.
fn margin(features: usize) -> f64 {
    1.25 * (features as f64 + 8.0) * power(-24)
}

/// 2 to this exponent, of at most 1022 in magnitude.
const fn power(exponent: i64) -> f64 {
    f64::from_bits(((1023 + exponent) as u64) << 52)
}

/// A norm whose square is between the bounds, and the power of two that brings it to between 1 and 2.
fn normal(squared: f64, (least, most): (f64, f64)) -> Option<(f64, f64)> {
    let norm = squared.sqrt();
    let exponent = (norm.to_bits() >> 52) as i64 - 1023;
    (least..=most).contains(&squared).then(|| (norm, power(-exponent)))
}

/// Halfspaces in single precision.
pub struct RoughHalfspaces {
    features: usize,
    weights: Vec<f32>,
    biases: Vec<f32>,
    margins: Vec<[f32; 2]>,
}

impl RoughHalfspaces {
    /// Cost: one pass over the weights, and half as much memory.
    pub fn new(features: usize, weights: &[f64], biases: &[f64]) -> Result<RoughHalfspaces> {
        let count = biases.len().next_multiple_of(ABREAST);
        let mut rough = RoughHalfspaces {
            features,
            weights: zeros(count.checked_mul(features))?,
            biases: zeros(Some(count))?,
            margins: room(Some(count))?,
        };
        // Those that are added, and those out of bounds, are never sure of a score.
        rough.margins.resize(count, [f32::INFINITY; 2]);
        for (i, (weights, bias)) in weights.chunks_exact(features).zip(biases).enumerate() {
            let squared = weights.iter().fold(0.0, |sum, weight| sum + weight * weight);
            let Some((norm, scale)) = normal(squared, WEIGHTS) else { continue };
            let bias = bias * scale;
            rough.biases[i] = bias as f32;
            rough.margins[i] = [norm * scale, bias.abs()].map(|size| (margin(features) * size) as f32);
            let places = rough.weights[i / ABREAST * ABREAST * features..][i % ABREAST..].iter_mut().step_by(ABREAST);
            places.zip(weights).for_each(|(place, weight)| *place = (weight * scale) as f32);
        }
        Ok(rough)
    }

    /// Halfspaces from number `first` on, a multiple of [`ABREAST`]: this many, and those that fill up their group.
    pub fn some(&self, first: usize, count: usize) -> Rough<'_> {
        let (features, range) = (self.features, first..first + count.next_multiple_of(ABREAST));
        Rough {
            features,
            weights: &self.weights[range.start * features..range.end * features],
            biases: &self.biases[range.clone()],
            margins: &self.margins[range],
        }
    }
}

/// Columns that are filled at a time: as many numbers as a line of the cache brings, in columns that fit it.
const COLUMNS: usize = 8;

/// Writes rows as columns of `height` entries, each of them `of` its lane and value.
pub fn turn<'a, T>(
    rows: impl Iterator<Item = &'a [f64]> + Clone,
    columns: &mut [T],
    height: usize,
    of: impl Fn(usize, f64) -> T,
) {
    for (part, columns) in columns.chunks_mut(COLUMNS * height).enumerate() {
        for (lane, row) in rows.clone().enumerate() {
            let places = columns[lane..].iter_mut().step_by(height);
            places.zip(&row[part * COLUMNS..]).for_each(|(place, value)| *place = of(lane, *value));
        }
    }
}

/// At most [`TILE`] records in single precision.
pub struct RoughRecords {
    columns: Vec<f32>,
    signs: [f32; TILE],
    scale: f32,
    norm: f32,
    valid: u64,
}

impl RoughRecords {
    /// Records by rows, with their labels; nothing where a norm is out of bounds.
    pub fn new(features: usize, records: &[f64], labels: &[u8]) -> Result<Option<RoughRecords>> {
        let squares = records.chunks_exact(features).map(|row| row.iter().fold(0.0, |sum, value| sum + value * value));
        // What is no number is not to be lost in the maximum.
        let most = squares.fold(0.0, |most: f64, square| if square <= most { most } else { square });
        let Some((norm, scale)) = normal(most, RECORDS) else { return Ok(None) };
        let mut columns: Vec<f32> = zeros(features.checked_mul(TILE))?;
        let mut signs = [0.0; TILE];
        // The last record stands in the places that are left, too, so that these make no score unsure.
        let rows = records.chunks_exact(features).zip(labels);
        let last = rows.clone().next_back();
        let rows = rows.chain(last.into_iter().cycle()).take(TILE);
        for (sign, (_, label)) in signs.iter_mut().zip(rows.clone()) {
            *sign = if *label == 0 { -scale } else { scale };
        }
        turn(rows.map(|(row, _)| row), &mut columns, TILE, |lane, value| (signs[lane] * value) as f32);
        let signs = signs.map(|sign| sign as f32);
        let valid = u64::MAX >> (TILE - labels.len());
        Ok(Some(RoughRecords { columns, signs, scale: scale as f32, norm: (norm * scale) as f32, valid }))
    }

    /// The records as the kernel takes them.
    pub fn tile(&self) -> Tile<'_> {
        let RoughRecords { columns, signs, scale, norm, valid } = self;
        Tile { columns, signs, scale: *scale, norm: *norm, valid: *valid }
    }
}
