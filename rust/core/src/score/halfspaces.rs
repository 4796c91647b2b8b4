//! Linear threshold functions, given one by one.

use super::rough::{MOST_FEATURES, RoughHalfspaces, RoughRecords, turn};
use super::sum::sum;
use crate::error::{Error, Result};
use crate::memory::{collected, zeros};
use crate::run::Run;
use crate::simd::{ABREAST, Group, LANES, TILE, UNSURE, add_halfspaces, screen};

/// Records, and halfspaces, from which on a copy in single precision is worth its making.
const MANY_RECORDS: usize = 2 * TILE;
const MANY_HALFSPACES: usize = 2 * ABREAST;

/// Halfspaces between two looks at the cancel flag, and at how many single precision leaves undecided.
const BETWEEN_CHECKS: usize = 8 * ABREAST;

/// Records of which a thread predicts the labels at a time.
const BLOCK: usize = 1 << 11;

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
    /// A prediction is that of the score in double precision. Where single precision tells it for certain, only that is
    /// computed; records with scores too close to 0 are scored again.
    ///
    /// Cost: a multiplication and an addition for every halfspace, record and feature, nearly all in single precision
    /// unless many scores are next to 0; only counts and a copy of the weights, half as large, are stored.
    pub fn errors(&self, records: &[f64], labels: &[u8], run: Run<'_>) -> Result<Vec<i64>> {
        let count = self.count(records)?;
        if labels.len() != count {
            return Err(Error::Shape(format!("y has length {}, but X has {count} records", labels.len())));
        }
        let many = count >= MANY_RECORDS && self.biases.len() >= MANY_HALFSPACES && self.features <= MOST_FEATURES;
        let rough = many.then(|| RoughHalfspaces::new(self.features, self.weights, self.biases)).transpose()?;
        let size = TILE.saturating_mul(self.features);
        sum(self.biases.len(), count.div_ceil(TILE), run, |block, errors| {
            let labels = &labels[block * TILE..][..TILE.min(count - block * TILE)];
            let records = &records[block * size..][..labels.len() * self.features];
            let tile = match &rough {
                Some(rough) => RoughRecords::new(self.features, records, labels)?.map(|records| (rough, records)),
                None => None,
            };
            self.add(tile, Exact { records, labels, turned: None }, errors, run)
        })
    }

    /// Adds the errors on some records, which are there in single precision, too, unless that is of no use.
    fn add(
        &self,
        mut tile: Option<(&RoughHalfspaces, RoughRecords)>,
        mut exact: Exact<'_>,
        errors: &mut [i64],
        run: Run<'_>,
    ) -> Result<()> {
        for (number, errors) in errors.chunks_mut(BETWEEN_CHECKS).enumerate() {
            run.check()?;
            let first = number * BETWEEN_CHECKS;
            let Some((rough, records)) = &tile else {
                self.add_exact(first, exact.group(self.features)?, errors, run);
                continue;
            };
            let mut counts = [0; BETWEEN_CHECKS];
            let rough = rough.some(first, errors.len());
            screen(run.isa, records.tile(), rough, &mut counts[..rough.biases.len()]);
            let unsure = counts.iter().filter(|&&count| count == UNSURE).count();
            // No sum passes the number of records, and checked ones would not be vectorized.
            let add = |(errors, count): (&mut i64, u8)| *errors = errors.wrapping_add(i64::from(count));
            if unsure == 0 {
                errors.iter_mut().zip(counts).for_each(add);
                continue;
            }
            for (i, (errors, count)) in errors.iter_mut().zip(counts).enumerate() {
                if count == UNSURE {
                    let group = exact.group(self.features)?;
                    self.add_exact(first + i, group, std::slice::from_mut(errors), run);
                } else {
                    add((errors, count));
                }
            }
            // Records that are next to many halfspaces, as where all numbers are small integers.
            if 2 * unsure > errors.len() {
                tile = None;
            }
        }
        Ok(())
    }

    /// Adds the errors of halfspaces from the first one on, in double precision.
    fn add_exact(&self, first: usize, group: Group<'_>, errors: &mut [i64], run: Run<'_>) {
        let weights = &self.weights[first * self.features..][..errors.len() * self.features];
        add_halfspaces(run.isa, group, weights, &self.biases[first..][..errors.len()], errors);
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

/// Records in double precision, which are turned only where they are needed.
struct Exact<'a> {
    records: &'a [f64],
    labels: &'a [u8],
    /// Lanes by columns, and labels as words.
    turned: Option<(Vec<f64>, Vec<u64>)>,
}

impl Exact<'_> {
    fn group(&mut self, features: usize) -> Result<Group<'_>> {
        let groups = self.records.chunks_exact(LANES * features);
        let rest = groups.remainder();
        if self.turned.is_none() {
            let mut lanes: Vec<f64> = zeros(Some(self.records.len() - rest.len()))?;
            for (rows, lanes) in groups.zip(lanes.chunks_exact_mut(LANES * features)) {
                turn(rows.chunks_exact(features), lanes, LANES, |_, value| value);
            }
            self.turned = Some((lanes, collected(self.labels.iter().map(|&bit| u64::from(bit)))?));
        }
        let (lanes, labels) = self.turned.as_ref().map_or((&[][..], &[][..]), |(lanes, labels)| (lanes, labels));
        Ok(Group { features, lanes, rest, labels })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::noise::{Rng, Seed, Stream};
    use crate::simd::Isa;

    fn labels(count: usize, rng: &mut Rng) -> Vec<u8> {
        (0..count).map(|_| rng.below(2) as u8).collect()
    }

    /// By the definition, one score after the other.
    fn counted(features: usize, weights: &[f64], biases: &[f64], records: &[f64], labels: &[u8]) -> Vec<i64> {
        let wrong = |weights: &[f64], bias: f64| {
            let rows = records.chunks_exact(features).zip(labels);
            let score = |row: &[f64]| row.iter().zip(weights).fold(0.0, |sum, (value, weight)| sum + weight * value);
            rows.filter(|(row, label)| u8::from(score(row) + bias >= 0.0) != **label).count() as i64
        };
        weights.chunks_exact(features).zip(biases).map(|(weights, bias)| wrong(weights, *bias)).collect()
    }

    fn check(features: usize, weights: &[f64], biases: &[f64], records: &[f64], labels: &[u8]) {
        let halfspaces = Halfspaces::new(features, weights, biases).unwrap();
        for isa in Isa::ALL {
            let errors = halfspaces.errors(records, labels, Run::alone(isa)).unwrap();
            let shape = (features, biases.len(), labels.len());
            assert_eq!(errors, counted(features, weights, biases, records, labels), "{} {shape:?}", isa.name());
        }
    }

    #[test]
    fn errors_are_those_of_the_definition_at_every_awkward_shape() {
        let mut rng = Seed::reproducible([3; 32]).stream(Stream::Speed, 0);
        for (features, count, size) in [(1, 1, 1), (1, 128, 12), (2, 129, 13), (7, 191, 47), (8, 192, 48), (9, 193, 49)]
            .into_iter()
            .chain([(64, 256, 97), (65, 130, 12), (3, 127, 100), (200, 128, 24), (MOST_FEATURES + 1, 128, 12)])
        {
            for digits in [2, 40] {
                // Integers from -2 to 1 have many scores that are 0 exactly.
                let half = (1u64 << digits) as f64 / 2.0;
                let mut reals = |count| (0..count).map(|_| rng.below(1 << digits) as f64 - half).collect::<Vec<f64>>();
                let (weights, biases, records) = (reals(size * features), reals(size), reals(count * features));
                check(features, &weights, &biases, &records, &labels(count, &mut rng));
            }
        }
    }

    #[test]
    fn scores_next_to_0_are_those_of_the_definition() {
        let mut rng = Seed::reproducible([4; 32]).stream(Stream::Speed, 0);
        let (features, count, size) = (5, 256, 30);
        let real = |rng: &mut Rng| rng.below(1 << 50) as f64 / (1u64 << 49) as f64 - 1.0;
        let records: Vec<f64> = (0..features * count).map(|_| real(&mut rng)).collect();
        let weights: Vec<f64> = (0..features * size).map(|_| real(&mut rng)).collect();
        for apart in [0.0, 1e-16, 1e-9, 1e-7, 1e-6] {
            // Each halfspace passes this far from one of the records.
            let score = |i: usize| -> f64 {
                (0..features).map(|j| weights[i * features + j] * records[i * features + j]).sum()
            };
            let biases: Vec<f64> = (0..size).map(|i| apart - score(i)).collect();
            check(features, &weights, &biases, &records, &labels(count, &mut rng));
        }
    }

    #[test]
    fn numbers_without_bounds_are_scored_as_defined() {
        let mut rng = Seed::reproducible([5; 32]).stream(Stream::Speed, 0);
        let (features, count, size) = (3, 256, 36);
        let sizes = [0.0, 1e-320, 1e-200, 1e-90, 1e-20, 1.0, 1e20, 1e90, 1e200, 1e308, f64::INFINITY, f64::NAN];
        let mut reals = |count: usize, at: usize| -> Vec<f64> {
            let size = |i: usize| sizes[if at == 0 { i / features % sizes.len() } else { at }];
            (0..count).map(|i| (rng.below(1 << 30) as f64 / (1 << 29) as f64 - 1.0) * size(i)).collect()
        };
        for at in 0..sizes.len() {
            let (records, ordinary) = (reals(features * count, at), reals(features * count, 5));
            let (weights, biases) = (reals(features * size, 0), reals(size, 0));
            let (plain, bias) = (reals(features * size, 5), reals(size, at));
            let labels: Vec<u8> = (0..count).map(|i| u8::from(i % 3 == 0)).collect();
            check(features, &weights, &biases, &records, &labels);
            check(features, &weights, &bias, &ordinary, &labels);
            check(features, &plain, &bias, &records, &labels);
        }
    }
}
