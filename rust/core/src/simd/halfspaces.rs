//! Disagreements of halfspaces with labels.
//!
//! The score of a record is the sum of its products with the weights in their order, from 0 on, and the bias last: IEEE
//! operations on that record alone, so that every arm, block and thread finds the same. A fused multiplication and
//! addition would round otherwise and is not used. One record's sum cannot be split into lanes, so that the lanes are
//! records: sixteen of them stand beside each other, feature by feature, and two halfspaces share their loads.
//!
//! ```text
//! for each two halfspaces, for each 16 records:
//!     scores[h][record] = 0
//!     for each feature: scores[h][record] += weight[h] value[record]
//!     errors[h] += (scores[h][record] + bias[h] >= 0) != label[record]
//! ```

/// The number of records whose scores are computed at a time.
pub const LANES: usize = 16;

/// Halfspaces that share a load of the records: their scores just fit the registers of AVX2.
const TOGETHER: usize = 2;

/// A block of records and their labels, 0 or 1.
#[derive(Clone, Copy)]
pub struct Group<'a> {
    /// The number of features of a record, at least 1.
    pub features: usize,
    /// Groups of [`LANES`] records, one group after the other, each stored by columns.
    pub lanes: &'a [f64],
    /// The records that are left over, fewer than [`LANES`], stored by rows.
    pub rest: &'a [f64],
    /// The labels of the records in `lanes`, then of those in `rest`.
    pub labels: &'a [u64],
}

dispatched! {
    /// Adds to `errors[i]` the number of records that halfspace i gets wrong: row i of the weights, with bias i.
    add_halfspaces(group: Group<'_>, weights: &[f64], biases: &[f64], errors: &mut [i64]) = halfspaces
}

#[inline(always)]
fn halfspaces(group: Group<'_>, weights: &[f64], biases: &[f64], errors: &mut [i64]) {
    let even = biases.len() / TOGETHER * TOGETHER;
    let split = even * group.features;
    together::<TOGETHER>(group, &weights[..split], &biases[..even], &mut errors[..even]);
    together::<1>(group, &weights[split..], &biases[even..], &mut errors[even..]);
}

#[inline(always)]
fn together<const K: usize>(group: Group<'_>, weights: &[f64], biases: &[f64], errors: &mut [i64]) {
    let Group { features, lanes, rest, labels } = group;
    let (labels, others) = labels.split_at(lanes.len() / features);
    let some = weights.chunks_exact(K * features).zip(biases.chunks_exact(K)).zip(errors.chunks_exact_mut(K));
    for ((weights, biases), errors) in some {
        wrong::<K, LANES>(features, lanes, labels, weights, biases, errors);
        wrong::<K, 1>(features, rest, others, weights, biases, errors);
    }
}

/// Loops of fixed length over `scores`, which the compiler keeps in registers.
#[inline(always)]
fn wrong<const K: usize, const LANE: usize>(
    features: usize,
    records: &[f64],
    labels: &[u64],
    weights: &[f64],
    biases: &[f64],
    errors: &mut [i64],
) {
    let mut counts = [[0; LANE]; K];
    for (records, labels) in records.chunks_exact(LANE * features).zip(labels.chunks_exact(LANE)) {
        let mut scores = [[0.0; LANE]; K];
        for (feature, values) in records.chunks_exact(LANE).enumerate() {
            for (scores, weights) in scores.iter_mut().zip(weights.chunks_exact(features)) {
                let weight = weights[feature];
                scores.iter_mut().zip(values).for_each(|(score, value)| *score += weight * value);
            }
        }
        for ((counts, scores), bias) in counts.iter_mut().zip(&scores).zip(biases) {
            for ((count, score), label) in counts.iter_mut().zip(scores).zip(labels) {
                *count += u64::from(score + bias >= 0.0) ^ label;
            }
        }
    }
    for (errors, counts) in errors.iter_mut().zip(&counts) {
        *errors += counts.iter().sum::<u64>() as i64;
    }
}
