//! Linear threshold functions, given one by one.

use super::sum::sum;
use crate::error::{Error, Result};
use crate::memory::{collected, zeros};
use crate::run::Run;
use crate::simd::{Group, LANES, add_halfspaces};

/// Numbers of a block of records: 16 kB, half of the nearest cache.
const BLOCK: usize = 1 << 11;

/// Halfspaces between two looks at the cancel flag.
const BETWEEN_CHECKS: usize = 1 << 10;

/// Rows that `predict` sums up side by side.
const ROWS: usize = 8;

/// Halfspaces: hypotheses that predict 1 where the inner product of weights and record, plus the bias, is at least 0.
pub struct Halfspaces<'a> {
    features: usize,
    weights: &'a [f64],
    biases: &'a [f64],
}

impl<'a> Halfspaces<'a> {
    /// Halfspaces given by the rows of `weights`, each of `features` numbers, at least one, and by one bias for each
    /// row.
    pub fn new(features: usize, weights: &'a [f64], biases: &'a [f64]) -> Result<Halfspaces<'a>> {
        if features == 0 || biases.len().checked_mul(features) != Some(weights.len()) {
            let text = format!("W holds {} numbers, but there are {} biases", weights.len(), biases.len());
            return Err(Error::Shape(text));
        }
        Ok(Halfspaces { features, weights, biases })
    }

    /// The number of records that each halfspace gets wrong. Records are given row by row, labels as 0 or 1.
    ///
    /// Cost: a multiplication and an addition for every halfspace, record and feature; only counts are stored.
    pub fn errors(&self, records: &[f64], labels: &[u8], run: Run<'_>) -> Result<Vec<i64>> {
        let count = self.count(records)?;
        if labels.len() != count {
            return Err(Error::Shape(format!("y has length {}, but X has {count} records", labels.len())));
        }
        let height = LANES * (BLOCK / LANES / self.features).max(1);
        let size = height.saturating_mul(self.features);
        sum(self.biases.len(), count.div_ceil(height), run, |block, errors| {
            let records = &records[block * size..][..size.min((count - block * height) * self.features)];
            let labels = collected(labels.iter().skip(block * height).take(height).map(|&bit| u64::from(bit)))?;
            let (lanes, rest) = turned(records, self.features)?;
            self.add(Group { features: self.features, lanes: &lanes, rest, labels: &labels }, errors, run)
        })
    }

    fn add(&self, group: Group<'_>, errors: &mut [i64], run: Run<'_>) -> Result<()> {
        let weights = self.weights.chunks(BETWEEN_CHECKS * self.features);
        let some = weights.zip(self.biases.chunks(BETWEEN_CHECKS)).zip(errors.chunks_mut(BETWEEN_CHECKS));
        for ((weights, biases), errors) in some {
            run.check()?;
            add_halfspaces(run.isa, group, weights, biases, errors);
        }
        Ok(())
    }

    /// The prediction of halfspace i for every record, from the same rounded sums as in `errors`.
    ///
    /// Cost: one pass over the records.
    pub fn predict(&self, i: usize, records: &[f64], run: Run<'_>) -> Result<Vec<u8>> {
        let mut values: Vec<u8> = zeros(Some(self.count(records)?))?;
        let Some(bias) = self.biases.get(i) else {
            return Err(Error::parameter("i", i, &format!("there are {} hypotheses", self.biases.len())));
        };
        let weights = &self.weights[i * self.features..][..self.features];
        run.try_for_each_chunk(&mut values, BLOCK, |chunk, values| {
            let records = records[chunk * BLOCK * self.features..].chunks(ROWS * self.features);
            for (records, values) in records.zip(values.chunks_mut(ROWS)) {
                let scores = scores(weights, records);
                values.iter_mut().zip(scores).for_each(|(value, score)| *value = u8::from(score + bias >= 0.0));
            }
            Ok(())
        })?;
        Ok(values)
    }

    fn count(&self, records: &[f64]) -> Result<usize> {
        if !records.len().is_multiple_of(self.features) {
            let text = format!("X holds {} numbers, but the hypotheses have {} features", records.len(), self.features);
            return Err(Error::Shape(text));
        }
        Ok(records.len() / self.features)
    }
}

/// Weights times records, at most [`ROWS`] of them, each sum in the order of the weights.
fn scores(weights: &[f64], records: &[f64]) -> [f64; ROWS] {
    let mut scores = [0.0; ROWS];
    for (feature, weight) in weights.iter().enumerate() {
        let column = records.iter().skip(feature).step_by(weights.len());
        scores.iter_mut().zip(column).for_each(|(score, value)| *score += weight * value);
    }
    scores
}

/// Records by rows as lanes by columns, and those that fill none.
fn turned(records: &[f64], features: usize) -> Result<(Vec<f64>, &[f64])> {
    let groups = records.chunks_exact(LANES * features);
    let rest = groups.remainder();
    let mut lanes: Vec<f64> = zeros(Some(records.len() - rest.len()))?;
    for (rows, lanes) in groups.zip(lanes.chunks_exact_mut(LANES * features)) {
        for (lane, row) in rows.chunks_exact(features).enumerate() {
            row.iter().zip(lanes[lane..].iter_mut().step_by(LANES)).for_each(|(value, place)| *place = *value);
        }
    }
    Ok((lanes, rest))
}
