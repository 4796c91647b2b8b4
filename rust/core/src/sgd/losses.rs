//! Convex losses of a prediction: values, slopes and their ranges.

use crate::simd::{Derivatives, Softmax, exp};

/// A convex loss of a label and a prediction, the inner product w.x.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Loss {
    /// The hinge loss max(0, margin - label * prediction) of the margin given, for labels -1 and 1.
    Hinge(f64),
    /// Half the square of that, for labels -1 and 1.
    SquaredHinge(f64),
    /// The logistic loss ln(1 + exp(-label * prediction)), for labels -1 and 1.
    Logistic,
    /// The squared loss (prediction - label)^2 / 2.
    Squared,
    /// The Huber loss: the squared loss while prediction and label differ by at most the threshold given, linear
    /// beyond.
    Huber(f64),
}

impl Loss {
    /// The loss of a prediction.
    #[inline]
    pub fn value(self, prediction: f64, label: f64) -> f64 {
        let margin = label * prediction;
        let difference = (prediction - label).abs();
        match self {
            Loss::Hinge(wanted) => (wanted - margin).max(0.0),
            Loss::SquaredHinge(wanted) => (wanted - margin).max(0.0).powi(2) / 2.0,
            Loss::Logistic => (-margin).max(0.0) + (-margin.abs()).exp().ln_1p(),
            Loss::Huber(threshold) if difference > threshold => threshold * (difference - threshold / 2.0),
            Loss::Squared | Loss::Huber(_) => difference * difference / 2.0,
        }
    }

    /// The derivative of the loss in the prediction.
    #[inline(always)]
    pub fn slope(self, prediction: f64, label: f64) -> f64 {
        match self {
            Loss::Hinge(margin) if label * prediction < margin => -label,
            Loss::Hinge(_) => 0.0,
            Loss::SquaredHinge(margin) => -label * (margin - label * prediction).max(0.0),
            Loss::Logistic => -label / (1.0 + exp(label * prediction)),
            Loss::Squared => prediction - label,
            Loss::Huber(threshold) => (prediction - label).clamp(-threshold, threshold),
        }
    }

    /// The largest loss over predictions and labels of at most these magnitudes.
    pub fn largest(self, prediction: f64, label: f64) -> f64 {
        self.value(-prediction, label)
    }

    /// The largest magnitude of the derivative over predictions and labels of at most these magnitudes.
    pub fn steepest(self, prediction: f64, label: f64) -> f64 {
        match self {
            Loss::Hinge(_) | Loss::Logistic => label,
            Loss::SquaredHinge(margin) => (margin + label * prediction) * label,
            Loss::Squared => prediction + label,
            Loss::Huber(threshold) => threshold.min(prediction + label),
        }
    }
}

/// What a run minimizes the mean of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Objective {
    /// A loss of one prediction, for models of one weight for each column.
    Linear(Loss),
    /// The softmax loss ln(sum of exp(s_k)) - s_label of this number of predictions s_k, for models of as many weights
    /// for each class, one class after the other. Labels are numbers of classes, from 0.
    Softmax(usize),
}

impl Objective {
    /// The number of weights for each column.
    pub fn classes(self) -> usize {
        match self {
            Objective::Linear(_) => 1,
            Objective::Softmax(classes) => classes,
        }
    }
}

impl Derivatives for Loss {
    #[inline(always)]
    fn differentiate<const N: usize>(self, predictions: &mut [[f64; N]], labels: &[f64; N]) {
        // One loop for each loss, which is known inside it.
        for predictions in predictions {
            match self {
                Loss::Hinge(margin) => replace(Loss::Hinge(margin), predictions, labels),
                Loss::SquaredHinge(margin) => replace(Loss::SquaredHinge(margin), predictions, labels),
                Loss::Logistic => replace(Loss::Logistic, predictions, labels),
                Loss::Squared => replace(Loss::Squared, predictions, labels),
                Loss::Huber(threshold) => replace(Loss::Huber(threshold), predictions, labels),
            }
        }
    }
}

#[inline(always)]
fn replace<const N: usize>(loss: Loss, predictions: &mut [f64; N], labels: &[f64; N]) {
    for i in 0..N {
        predictions[i] = loss.slope(predictions[i], labels[i]);
    }
}

impl Derivatives for Objective {
    #[inline(always)]
    fn differentiate<const N: usize>(self, predictions: &mut [[f64; N]], labels: &[f64; N]) {
        match self {
            Objective::Linear(loss) => loss.differentiate(predictions, labels),
            Objective::Softmax(_) => Softmax.differentiate(predictions, labels),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slopes_are_derivatives_and_bounds_are_met() {
        let hinges = [Loss::Hinge(1.0), Loss::Hinge(0.0), Loss::SquaredHinge(0.5)];
        for loss in hinges.into_iter().chain([Loss::Logistic, Loss::Squared, Loss::Huber(0.7)]) {
            let (mut largest, mut steepest) = (0.0f64, 0.0f64);
            for label in [-1.0, 1.0] {
                for step in -300..=300 {
                    let prediction = f64::from(step) / 100.0;
                    // Away from the corner of the hinge.
                    let (middle, width) = (prediction + 0.003, 1e-6);
                    let difference = loss.value(middle + width, label) - loss.value(middle - width, label);
                    assert!((difference / (2.0 * width) - loss.slope(middle, label)).abs() < 1e-6, "{loss:?}");
                    largest = largest.max(loss.value(prediction, label));
                    steepest = steepest.max(loss.slope(prediction, label).abs());
                }
            }
            assert!((largest - loss.largest(3.0, 1.0)).abs() < 1e-12, "{loss:?}");
            assert!(steepest <= loss.steepest(3.0, 1.0) && steepest > 0.95 * loss.steepest(3.0, 1.0), "{loss:?}");
        }
        assert_eq!(Loss::Logistic.value(-1e4, 1.0), 1e4);
        assert_eq!(Loss::Logistic.slope(1e4, 1.0), 0.0);
    }
}
