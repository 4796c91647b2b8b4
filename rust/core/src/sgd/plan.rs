//! The settings of a run, checked.

use super::losses::{Loss, Objective};
use super::noise::Noise;
use crate::error::{Error, Result};
use crate::simd::{MOST_CLASSES, squared_norm};

/// The largest noise of the exact kind; its draws must fit into words.
const MOST_NOISE: f64 = (1u64 << 29) as f64;

/// The range of settings. Beyond it, products and squares of settings could leave the range of floats. Inside it, a
/// gradient whose row has a squared norm that underflows is shorter than any clip norm, and needs no clipping.
const RANGE: std::ops::RangeInclusive<f64> = 1e-30..=1e30;
const RULE: &str = "it must lie in [1e-30, 1e+30]";

/// The models that a run may choose from. It projects to the nearest of them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Domain {
    /// The ball of this radius around 0.
    Ball(f64),
    /// All models whose weights lie from the first number to the second.
    Box(f64, f64),
}

impl Domain {
    /// The largest distance of two models of this number of weights.
    pub fn diameter(self, weights: usize) -> f64 {
        match self {
            Domain::Ball(radius) => 2.0 * radius,
            Domain::Box(low, high) => (high - low) * (weights as f64).sqrt(),
        }
    }

    /// Moves a model to the nearest one of the domain.
    pub fn project(self, model: &mut [f64]) {
        match self {
            Domain::Ball(radius) => {
                let squared = squared_norm(model);
                if squared > radius * radius {
                    let factor = radius / squared.sqrt();
                    model.iter_mut().for_each(|w| *w *= factor);
                }
            }
            Domain::Box(low, high) => model.iter_mut().for_each(|w| *w = w.max(low).min(high)),
        }
    }

    fn check(self) -> Result<()> {
        match self {
            Domain::Ball(radius) if !RANGE.contains(&radius) => Err(Error::parameter("radius", radius, RULE)),
            Domain::Box(low, high) if !(low.abs() <= 1e30 && high.abs() <= 1e30 && high - low >= 1e-30) => {
                Err(Error::parameter("high", high, "low must be below it, and both lie in [-1e30, 1e30]"))
            }
            _ => Ok(()),
        }
    }
}

/// Which model a run returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// The mean of the models before each step.
    Mean,
    /// The model after the last step.
    Last,
}

/// The settings of a run, all of them public.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What the mean of which is minimized.
    pub objective: Objective,
    /// The number of steps, at least 1.
    pub steps: usize,
    /// The number of draws in a step, from 1 to 2^32; its mean, where the number is drawn.
    pub batch_size: usize,
    /// The models to which each step is projected.
    pub domain: Domain,
    /// Which model is returned.
    pub output: Output,
    /// The first model, before it is projected; 0 if there is none.
    pub start: Option<Vec<f64>>,
    /// The norm to which longer rows are shrunk.
    pub norm_bound: f64,
    /// The norm to which longer gradients are shrunk.
    pub clip_norm: f64,
    /// The weight of the sum of magnitudes of the model, at least 0.
    pub l1: f64,
    /// The weight of half the sum of squares of the model, at least 0.
    pub l2: f64,
    /// The strong convexity of the whole objective. Where it is above 0, step r has the length 1 / (strong_convexity
    /// r). Where it is 0, step r has the length D / (G sqrt r), for the diameter D of the domain and the bound G of
    /// [`Self::noisy_gradient_norm`].
    pub strong_convexity: f64,
    /// The noise that protects the records.
    pub noise: Noise,
}

impl Plan {
    /// Refuses settings that cannot be run.
    pub fn check(&self) -> Result<()> {
        self.domain.check()?;
        for (name, value) in [("norm_bound", self.norm_bound), ("clip_norm", self.clip_norm)] {
            if !RANGE.contains(&value) {
                return Err(Error::parameter(name, value, RULE));
            }
        }
        for (name, value) in [("l1", self.l1), ("l2", self.l2), ("strong_convexity", self.strong_convexity)] {
            if !(RANGE.contains(&value) || value == 0.0) {
                return Err(Error::parameter(name, value, "it must be 0 or lie in [1e-30, 1e+30]"));
            }
        }
        for (name, count) in [("steps", self.steps), ("batch_size", self.batch_size)] {
            if count == 0 || (name == "batch_size" && count as u64 > 1 << 32) {
                return Err(Error::parameter(name, count, "it must be at least 1, and batch_size at most 2^32"));
            }
        }
        self.check_loss_and_noise()
    }

    fn check_loss_and_noise(&self) -> Result<()> {
        match self.objective {
            Objective::Linear(Loss::Huber(threshold)) if !RANGE.contains(&threshold) => {
                return Err(Error::parameter("threshold", threshold, RULE));
            }
            Objective::Linear(Loss::Hinge(margin) | Loss::SquaredHinge(margin)) if !(0.0..=1e30).contains(&margin) => {
                return Err(Error::parameter("margin", margin, "it must lie in [0, 1e+30]"));
            }
            Objective::Softmax(classes) if !(2..=MOST_CLASSES).contains(&classes) => {
                return Err(Error::parameter("classes", classes, "it must be from 2 to 1024"));
            }
            _ => {}
        }
        let fine = match &self.noise {
            Noise::None => true,
            Noise::Idealized(scale) => RANGE.contains(scale),
            Noise::Exact(_) => *RANGE.start() <= self.noise.scale() && self.noise.scale() < MOST_NOISE,
        };
        let rule = "it must lie in [1e-30, 1e+30], and below 2**29 if exact";
        if fine { Ok(()) } else { Err(Error::parameter("noise", self.noise.scale(), rule)) }
    }

    /// A bound G on the norm of a noisy mean gradient of `weights` entries, in quadratic mean: G^2 = L^2 + w (s L /
    /// b)^2, for the clip norm L, w weights, noise of scale s and b draws in a step.
    pub fn noisy_gradient_norm(&self, weights: usize) -> f64 {
        let deviation = self.noise.scale() / self.batch_size as f64;
        self.clip_norm * (1.0 + weights as f64 * deviation * deviation).sqrt()
    }
}
