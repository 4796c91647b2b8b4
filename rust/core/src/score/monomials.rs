//! All conjunctions and votes of few literals, scored by way of the products of features alone.
//!
//! Let s(h) be the records wrong under h less those wrong under the constant 0: 1 for a record of label 0 that h calls
//! 1, -1 for one of label 1. It adds up over disjoint sets, so s(p and not x) = s(p) - s(p and x): only products
//! without negations are counted on the data, and every pattern of signs follows by subtraction. "At least r of s
//! literals" is a disjoint union of the conjunctions that want at most s - r of them otherwise: it follows by addition.

use super::columns::Columns;
use crate::error::Result;
use crate::gf2::BitMatrix;
use crate::memory::{room, zeros};
use crate::run::Run;
use crate::simd::{Records, add_products};

/// Sets that one task gives their signs.
const SETS_PER_TASK: usize = 1 << 10;

/// The number of records that each conjunction of at most `size` literals gets wrong; `labels` is a matrix of one row.
///
/// Conjunctions are ordered by size, then by their set of features c_1 < ... < c_s, ranked by C(c_1, 1) + ... + C(c_s,
/// s), then by the pattern of signs, whose bit i is 1 where c_{i+1} is negated. Cost: for each set of features, one
/// word operation and one count for 64 records; then 2^s s steps.
pub fn conjunction_errors(columns: &Columns, labels: &BitMatrix, size: usize, run: Run<'_>) -> Result<Vec<i64>> {
    errors(columns, labels, size, Family { votes: false }, run)
}

/// The number of records that each hypothesis "at least r of these s literals" gets wrong, for s from 0 to `size`.
///
/// They are ordered like the conjunctions of [`conjunction_errors`], where each is replaced by the hypotheses with r =
/// 1, ..., s, or with r = 0 where s is 0. Cost: that of [`conjunction_errors`], and 2^s s^2 steps for each set.
pub fn at_least_errors(columns: &Columns, labels: &BitMatrix, size: usize, run: Run<'_>) -> Result<Vec<i64>> {
    errors(columns, labels, size, Family { votes: true }, run)
}

fn errors(columns: &Columns, labels: &BitMatrix, size: usize, family: Family, run: Run<'_>) -> Result<Vec<i64>> {
    columns.check(columns.features(), labels)?;
    let class = Class::new(columns.features(), size.min(columns.features()))?;
    let positives = labels.row(0).iter().map(|word| i64::from(word.count_ones())).sum();
    let counted = class.sets_before(class.size + 1) - 1;
    let wrong = columns.sum(counted, labels, run, |records, errors| class.add(records, errors, run))?;
    let mut scores = room(counted.checked_add(1))?;
    scores.push(columns.records() as i64 - positives - positives);
    scores.extend(wrong.into_iter().map(|errors| errors - positives));
    class.signed(&scores, positives, family, run)
}

/// Conjunctions of the literals of a set alone, or votes among them with every threshold.
#[derive(Clone, Copy)]
struct Family {
    votes: bool,
}

impl Family {
    /// The number of hypotheses for each pattern of signs of `size` literals.
    fn thresholds(self, size: usize) -> usize {
        if self.votes { size.max(1) } else { 1 }
    }

    /// The errors of a set's hypotheses from the scores of its patterns of signs.
    ///
    /// Entry r - 1 of a pattern first sums up the patterns that agree with it in exactly r literals, one feature after
    /// the other, and then those of more.
    fn spread(self, signed: &[i64], positives: i64, errors: &mut [i64]) {
        let thresholds = errors.len() / signed.len();
        errors.fill(0);
        errors.chunks_exact_mut(thresholds).zip(signed).for_each(|(errors, score)| errors[thresholds - 1] = *score);
        let features = if self.votes { signed.len().ilog2() } else { 0 };
        for stride in (0..features).map(|feature| thresholds << feature) {
            for pair in errors.chunks_exact_mut(2 * stride) {
                let (without, with) = pair.split_at_mut(stride);
                without.chunks_exact_mut(thresholds).zip(with.chunks_exact_mut(thresholds)).for_each(exchange);
            }
        }
        for errors in errors.chunks_exact_mut(thresholds) {
            errors.iter_mut().rev().fold(positives, |sum, errors| {
                *errors += sum;
                *errors
            });
        }
    }
}

/// The products of at most `size` of `features` features.
struct Class {
    features: usize,
    size: usize,
    /// `binomials[k][n]` is n choose k.
    binomials: Vec<Vec<usize>>,
}

impl Class {
    fn new(features: usize, size: usize) -> Result<Class> {
        let mut binomials: Vec<Vec<usize>> = room(size.checked_add(1))?;
        for k in 0..=size {
            let mut row: Vec<usize> = zeros(features.checked_add(1))?;
            row[0] = usize::from(k == 0);
            for n in 1..=features {
                let with = if k == 0 { 0 } else { binomials[k - 1][n - 1] };
                row[n] = row[n - 1].saturating_add(with);
            }
            binomials.push(row);
        }
        Ok(Class { features, size, binomials })
    }

    /// Sets of less than `size` features.
    fn sets_before(&self, size: usize) -> usize {
        self.binomials[..size].iter().map(|row| row[self.features]).fold(0, usize::saturating_add)
    }

    /// Adds the errors of every product but the empty one.
    fn add(&self, records: Records<'_>, errors: &mut [i64], run: Run<'_>) -> Result<()> {
        let all_records = &records.columns[records.columns.len() - records.width..];
        let mut room: Vec<u64> = zeros(self.size.checked_mul(records.width))?;
        (1..=self.size).try_for_each(|size| {
            let start = self.sets_before(size) - 1;
            let errors = &mut errors[start..start + self.binomials[size][self.features]];
            self.descend(
                Node { records, prefix: all_records, left: size, below: self.features },
                errors,
                &mut room,
                run,
            )
        })
    }

    /// Adds the errors of the node's prefix times all sets of `left` features below `below`, by rank.
    fn descend(&self, node: Node<'_>, errors: &mut [i64], room: &mut [u64], run: Run<'_>) -> Result<()> {
        let Node { records, prefix, left, below } = node;
        if left == 1 {
            add_products(run.isa, records, prefix, &mut errors[..below]);
            return Ok(());
        }
        run.check()?;
        let (product, room) = room.split_at_mut(records.width);
        for feature in left - 1..below {
            let column = &records.columns[feature * records.width..][..records.width];
            product.iter_mut().zip(prefix.iter().zip(column)).for_each(|(product, (a, b))| *product = a & b);
            let node = Node { records, prefix: product, left: left - 1, below: feature };
            self.descend(node, &mut errors[self.binomials[left][feature]..], room, run)?;
        }
        Ok(())
    }

    /// The errors of every hypothesis of a family from the scores of all products.
    fn signed(&self, scores: &[i64], positives: i64, family: Family, run: Run<'_>) -> Result<Vec<i64>> {
        let per_set = |size: usize| 1usize.checked_shl(size as u32)?.checked_mul(family.thresholds(size));
        let of_size = |size: usize| self.binomials[size][self.features].checked_mul(per_set(size)?);
        let total = (0..=self.size).try_fold(0, |sum: usize, size| sum.checked_add(of_size(size)?));
        let mut errors: Vec<i64> = zeros(total)?;
        let mut rest = &mut errors[..];
        for size in 0..=self.size {
            let per_set = family.thresholds(size) << size;
            let (part, others) = rest.split_at_mut(self.binomials[size][self.features] * per_set);
            run.try_for_each_chunk(part, SETS_PER_TASK * per_set, |task, part| {
                let mut set = self.set(size, task * SETS_PER_TASK)?;
                let mut signed: Vec<i64> = zeros(Some(1 << size))?;
                for errors in part.chunks_exact_mut(per_set) {
                    self.sign(scores, &set, &mut signed);
                    family.spread(&signed, positives, errors);
                    advance(&mut set);
                }
                Ok(())
            })?;
            rest = others;
        }
        Ok(errors)
    }

    /// The scores of all sign patterns of a set: bit i of an index stands for feature i, first for its presence, then,
    /// one feature after the other, for its negation.
    fn sign(&self, scores: &[i64], set: &[usize], signed: &mut [i64]) {
        for (present, score) in signed.iter_mut().enumerate() {
            let subset = set.iter().enumerate().filter(|(i, _)| present >> i & 1 == 1).map(|(_, &feature)| feature);
            let (size, rank) = subset.fold((0, 0), |(k, rank), c| (k + 1, rank + self.binomials[k + 1][c]));
            *score = scores[self.sets_before(size) + rank];
        }
        for i in 0..set.len() {
            for without in (0..signed.len()).filter(|index| index >> i & 1 == 0) {
                let with = without | 1 << i;
                (signed[without], signed[with]) = (signed[with], signed[without] - signed[with]);
            }
        }
    }

    /// The set of a size and rank, in increasing order.
    fn set(&self, size: usize, mut rank: usize) -> Result<Vec<usize>> {
        let mut set: Vec<usize> = zeros(Some(size))?;
        for k in (1..=size).rev() {
            let feature = self.binomials[k].partition_point(|&count| count <= rank) - 1;
            rank -= self.binomials[k][feature];
            set[k - 1] = feature;
        }
        Ok(set)
    }
}

/// Adds to each pattern the sums of the one that differs in one literal, which agrees in one less.
fn exchange((one, other): (&mut [i64], &mut [i64])) {
    for agreeing in 1..one.len() {
        let (a, b) = (one[agreeing], other[agreeing]);
        one[agreeing - 1] += b;
        other[agreeing - 1] += a;
    }
}

/// A product of features, to be multiplied with `left` more below `below`.
#[derive(Clone, Copy)]
struct Node<'a> {
    records: Records<'a>,
    prefix: &'a [u64],
    left: usize,
    below: usize,
}

/// The set of the next rank: the first feature that has room moves up, those before it go back to the start.
fn advance(set: &mut [usize]) {
    let moved = (0..set.len()).find(|&i| set.get(i + 1).is_none_or(|&next| set[i] + 1 < next));
    if let Some(moved) = moved {
        set[moved] += 1;
        set[..moved].iter_mut().enumerate().for_each(|(i, feature)| *feature = i);
    }
}
