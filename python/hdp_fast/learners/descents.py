"""What a run of PrivateSGD is made of, and the public rules for what no one chose."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from .._support.json_text import JsonText
from .._support.types import Floats
from .._support.validate import positive_int

# Chosen for models of 20 to 600 weights on four public tables; accuracy changes by a hundredth
# where a number is doubled or halved.
_RADIUS, _WIDEST = 20.0, 60.0
_FEWEST_STEPS, _MOST_STEPS = 50, 200
_STEPS_WITHOUT_NOISE, _BATCH_WITHOUT_NOISE = 2_000, 100
_NOISE = 10.0
MOST_DRAWS = 1 << 32


class Descent(NamedTuple):
    """One run of PrivateSGD, all of whose settings are chosen; no one validates them again.

    Attributes:
        weights: Number of weights of the model.
        steps: Number of steps.
        batch_size: Number of records drawn in a step, or its mean.
        radius: Radius of the ball; None for a box.
        clip_norm: Norm that gradients are shrunk to.
        noise_multiplier: Standard deviation of the noise, in units of clip_norm; None for none.
        chosen: Names of the settings that rules chose.
    """

    weights: int
    steps: int
    batch_size: int
    radius: float | None
    clip_norm: float
    noise_multiplier: float | None
    chosen: tuple[str, ...]

    @property
    def noise(self) -> float:
        """Norm of the noise in the mean of all steps' gradients, in units of clip_norm."""
        multiplier = self.noise_multiplier or 0.0
        return multiplier * math.sqrt(self.weights / self.steps) / self.batch_size

    @property
    def private_run(self) -> tuple[int, int, float]:
        """What its privacy depends on: steps, records in each, and their noise."""
        return self.steps, self.batch_size, self.noise_multiplier or 0.0


@dataclass(frozen=True, kw_only=True)
class SGDPlan(JsonText):
    """What a run of PrivateSGD is made of, and which of it the learner's rules chose.

    Attributes:
        n: Number of records that the noise is enough for.
        weights: Number of weights of the model.
        steps: Number of steps.
        batch_size: Number of records drawn in a step; its mean, where there is noise and learn
            draws the number.
        radius: Radius of the ball that holds all weights; None for a box.
        clip_norm: Norm that gradients are shrunk to.
        noise_multiplier: Standard deviation of the noise on the sum over a batch, in units of
            clip_norm; None without noise.
        chosen: Names of the settings that rules chose.
        excess_risk: Bound on what the mean loss exceeds that of the best model of the domain by, in
            expectation over the records drawn and the noise: `3 / 2 diameter G / sqrt(steps)`,
            where G is as in PrivateSGD (for real numbers); with noise `diameter (3 G / 2 + L**2 /
            (batch_size G)) / sqrt(steps)`, since the number of draws varies, too. It holds for the
            mean of the models, so that it is None where output is "last"; also where there are
            penalties or strong_convexity, and where clip_norm is below the largest norm of a
            gradient.

    Examples:
        >>> from hdp_fast.learners import PrivateSGD
        >>> learner = PrivateSGD(loss="logistic", steps=200, batch_size=400, noise_multiplier=10.0)
        >>> plan = learner.plan(n=5_000, d=10)
        >>> print(plan.radius, plan.clip_norm, plan.chosen)
        20.0 1.0 ('clip_norm', 'radius')
    """

    n: int
    weights: int
    steps: int
    batch_size: int
    radius: float | None
    clip_norm: float
    noise_multiplier: float | None
    chosen: tuple[str, ...]
    excess_risk: float | None

    @property
    def noise(self) -> float:
        """Norm of the noise in the mean of all steps' gradients, in units of clip_norm."""
        return Descent(*(getattr(self, name) for name in Descent._fields)).noise

    def weight_variances(self, curvatures: Floats) -> Floats | None:
        """The variance that noise makes along directions of the loss's second derivatives.

        To first order: step r has the length D / (G sqrt(r)), with D and G as in PrivateSGD where
        nothing is strongly convex, and takes the curvature's share off what noise was added before.
        It is the variance of the last model, or of the mean of all where that is larger. The draw
        of the records, which moves the model as well, is not in it.

        Args:
            curvatures: Second derivatives of the mean loss, at least 0, shape (k,).

        Returns:
            A float64 array of shape (k,); None for a box, and without noise.

        Cost:
            Steps times k.
        """
        if self.radius is None or self.noise_multiplier is None:
            return None
        entry = self.noise_multiplier / self.batch_size
        norm = math.sqrt(1 + self.weights * entry**2)
        lengths = 2 * self.radius / norm / np.sqrt(np.arange(1, self.steps + 1))
        # What later steps leave of the noise of each step. A step is too long where it turns noise
        # around: it stays in the ball then, and what is left is no more than what there was.
        left = np.abs(1 - np.outer(lengths, curvatures)).clip(max=1.0)
        last, total = np.ones(len(curvatures)), np.ones(len(curvatures))
        of_last, of_mean = np.zeros(len(curvatures)), np.zeros(len(curvatures))
        for length, factor in zip(lengths[::-1], left[::-1], strict=True):
            of_last += (length * last) ** 2
            of_mean += (length * total / self.steps) ** 2
            last, total = last * factor, 1 + total * factor
        variances: Floats = entry**2 * np.maximum(of_last, of_mean)
        return variances

    def _to_fields(self) -> Mapping[str, Any]:
        return dataclasses.asdict(self)


def choose_radius(classes: int, scale: float, norm_bound: float) -> float:
    """Let scores reach twenty times the scale, and more where a matrix holds more classes."""
    return _RADIUS * math.sqrt(max(classes, 2) / 2) * scale / norm_bound


def grow_radius(noise: float) -> float:
    """Return what a radius is multiplied with, by the norm of the noise in the mean gradient."""
    wide = math.sqrt(2 / noise) if noise > 0 else math.inf
    return min(max(wide, _RADIUS), _WIDEST) / _RADIUS


def choose_counts(
    n: int, weights: int, mu: float, steps: int | None, batch_size: int | None
) -> tuple[int, int]:
    """The number of steps and of records in each, of which None lets the rules choose.

    n: number of records; mu: of the Gaussian mechanism of the same privacy, infinite without noise.

    Raises: ParameterError where a batch would have more than 2**32 records.
    """
    if steps is None:
        steps = choose_steps(n, weights, mu)
    if batch_size is None:
        batch_size = positive_int("batch_size", choose_batch_size(n, steps, mu), MOST_DRAWS)
    return steps, batch_size


def choose_steps(n: int, weights: int, mu: float) -> int:
    """Take as many steps as privacy deserves: their error is then about that of the noise.

    The excess risk has two parts: `3 / (2 sqrt(steps))` of the steps, and `3 sqrt(weights) / (n
    mu)` of the noise, whatever the steps are, in units of diameter times clip norm. mu is infinite
    without noise.
    """
    if mu == math.inf:
        return _STEPS_WITHOUT_NOISE
    return int(min(max((n * mu) ** 2 / (4 * weights), _FEWEST_STEPS), _MOST_STEPS))


def choose_batch_size(n: int, steps: int, mu: float) -> int:
    """Draw as few records as keep the noise on their sum above ten clip norms.

    Subsampling costs next to nothing then: the noise multiplier is about
    `2 batch_size sqrt(steps) / (n mu)`.
    """
    if mu == math.inf:
        return min(n, _BATCH_WITHOUT_NOISE)
    return int(min(max(math.ceil(_NOISE / 2 * n * mu / math.sqrt(steps)), 1), n))
