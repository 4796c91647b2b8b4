//! Losses of scores, with their derivatives in them.

use crate::simd::{Work, exp, ln_1p};

/// A loss of a record's scores and its label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// The squared loss (score - label)^2.
    Squared,
    /// The logistic loss ln(1 + exp(-label * score)), for labels -1 and 1.
    Logistic,
    /// The softmax loss: ln sum exp(scores) less the score of the class that is the label, where classes are counted
    /// from 0.
    Softmax,
}

/// Turns the scores of some records into derivatives, and writes their losses.
pub(super) struct Evaluate<'a> {
    pub loss: Loss,
    pub labels: &'a [f64],
    /// As many for each label as there are classes.
    pub scores: &'a mut [f64],
    pub losses: &'a mut [f64],
}

impl Work for Evaluate<'_> {
    #[inline(always)]
    fn work(self) {
        let Evaluate { loss, labels, scores, losses } = self;
        match loss {
            Loss::Squared => evaluate_rows(labels, scores, losses, squared),
            Loss::Logistic => evaluate_rows(labels, scores, losses, logistic),
            Loss::Softmax => {
                let classes = scores.len() / labels.len().max(1);
                for ((scores, label), loss) in scores.chunks_exact_mut(classes.max(1)).zip(labels).zip(losses) {
                    *loss = softmax(scores, *label);
                }
            }
        }
    }
}

#[inline(always)]
fn evaluate_rows(labels: &[f64], scores: &mut [f64], losses: &mut [f64], of: impl Fn(f64, f64) -> (f64, f64)) {
    for ((score, label), loss) in scores.iter_mut().zip(labels).zip(losses) {
        (*loss, *score) = of(*score, *label);
    }
}

#[inline(always)]
fn squared(score: f64, label: f64) -> (f64, f64) {
    let difference = score - label;
    (difference * difference, 2.0 * difference)
}

#[inline(always)]
fn logistic(score: f64, label: f64) -> (f64, f64) {
    let margin = label * score;
    // The exponential of what is below 0 never overflows.
    let small = exp(-margin.abs());
    let wrong = if margin < 0.0 { 1.0 } else { small };
    ((-margin).max(0.0) + ln_1p(small), -label * wrong / (1.0 + small))
}

#[inline(always)]
fn softmax(scores: &mut [f64], label: f64) -> f64 {
    let largest = scores.iter().fold(f64::NEG_INFINITY, |largest, score| largest.max(*score));
    let (mut total, mut labeled) = (0.0, 0.0);
    for (class, score) in scores.iter_mut().enumerate() {
        let above = *score - largest;
        labeled += if class as f64 == label { above } else { 0.0 };
        *score = above.exp();
        total += *score;
    }
    let share = 1.0 / total;
    for (class, score) in scores.iter_mut().enumerate() {
        *score = *score * share - f64::from(u8::from(class as f64 == label));
    }
    total.ln() - labeled
}
