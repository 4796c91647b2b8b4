//! The settings of a run, checked.

use super::losses::Loss;
use super::noise::Noise;
use crate::error::{Error, Result};

/// The largest noise of the exact kind; its draws must fit into words.
const MOST_NOISE: f64 = (1u64 << 29) as f64;

/// The range of settings. Beyond it, products and squares of settings could leave the range of floats. Inside it, a
/// gradient whose row has a squared norm that underflows is shorter than any clip norm, and needs no clipping.
const RANGE: std::ops::RangeInclusive<f64> = 1e-30..=1e30;
const RULE: &str = "it must lie in [1e-30, 1e30]";

/// The settings of a run, all of them public.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The loss whose mean is minimized.
    pub loss: Loss,
    /// The number of steps, at least 1.
    pub steps: usize,
    /// The number of draws in a step, from 1 to 2^32.
    pub batch_size: usize,
    /// The radius of the ball around 0 to which models are projected.
    pub radius: f64,
    /// The norm to which longer rows are shrunk.
    pub norm_bound: f64,
    /// The norm to which longer gradients are shrunk.
    pub clip_norm: f64,
    /// The weight of the sum of magnitudes of the model, at least 0.
    pub l1: f64,
    /// The weight of half the sum of squares of the model, at least 0.
    pub l2: f64,
    /// The strong convexity of the whole objective. Where it is above 0, step r has the length 1 / (strong_convexity
    /// r). Where it is 0, step r has the length D / (G sqrt r), for the diameter D of the ball and the bound G of
    /// [`Self::noisy_gradient_norm`].
    pub strong_convexity: f64,
    /// The noise that protects the records.
    pub noise: Noise,
}

impl Plan {
    /// Refuses settings that cannot be run.
    pub fn check(&self) -> Result<()> {
        for (name, value) in [("radius", self.radius), ("norm_bound", self.norm_bound), ("clip_norm", self.clip_norm)] {
            if !RANGE.contains(&value) {
                return Err(Error::parameter(name, value, RULE));
            }
        }
        for (name, value) in [("l1", self.l1), ("l2", self.l2), ("strong_convexity", self.strong_convexity)] {
            if !(RANGE.contains(&value) || value == 0.0) {
                return Err(Error::parameter(name, value, "it must be 0 or lie in [1e-30, 1e30]"));
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
        let threshold = if let Loss::Huber(threshold) = self.loss { threshold } else { 1.0 };
        if !RANGE.contains(&threshold) {
            return Err(Error::parameter("threshold", threshold, RULE));
        }
        let fine = match &self.noise {
            Noise::None => true,
            Noise::Idealized(scale) => RANGE.contains(scale),
            Noise::Exact(_) => *RANGE.start() <= self.noise.scale() && self.noise.scale() < MOST_NOISE,
        };
        let rule = "it must lie in [1e-30, 1e30], and below 2^29 if exact";
        if fine { Ok(()) } else { Err(Error::parameter("noise", self.noise.scale(), rule)) }
    }

    /// A bound G on the norm of a noisy mean gradient of `columns` entries, in quadratic mean: G^2 = L^2 + d (s L /
    /// b)^2, for the clip norm L, d columns, noise of scale s and b draws in a step.
    pub fn noisy_gradient_norm(&self, columns: usize) -> f64 {
        let deviation = self.noise.scale() / self.batch_size as f64;
        self.clip_norm * (1.0 + columns as f64 * deviation * deviation).sqrt()
    }
}
