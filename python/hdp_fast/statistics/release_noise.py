"""The noise of a release of integers: discrete Laplace or rounded Gaussian, whichever is less."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist
from typing import Literal, NamedTuple

from .. import accounting, noise
from .._support.notes import note_large_delta
from .._support.random_state import check_random_state, make_stream
from .._support.types import Integers, RandomState
from .._support.validate import one_of, positive, probability, refuse
from ..accounting.noisy_sums import gaussian_sigma
from ..budget.account import Budget, Neighbors, spend
from ..noise import exact_epsilon
from ..record import PrivacyRecord, rng_of

_LARGEST_SCALE = 1 << 50
_SLACK = 1 + 1e-9


@dataclass(frozen=True)
class Noise:
    """Noise on integers.

    Attributes:
        law: "laplace" or "gaussian".
        scale: The scale of discrete Laplace, or the deviation of rounded normal noise.
    """

    law: Literal["laplace", "gaussian"]
    scale: Fraction

    @property
    def deviation(self) -> float:
        """The standard deviation, but for rounding."""
        if self.law == "gaussian":
            return float(self.scale)
        half = 0.5 / float(self.scale)
        return 1 / (math.sqrt(2) * math.sinh(half)) if half < 300 else 0.0

    def half_width(self, beta: float) -> int:
        """An integer above which the noise's absolute value lies with probability at most beta."""
        scale = float(self.scale)
        if self.law == "gaussian":
            quantile = -NormalDist().inv_cdf(beta / 2)
            return max(math.ceil(quantile * scale * _SLACK - 0.5), 0)
        odds = math.log(2 / (beta * (1 + math.exp(-1 / scale))))
        return max(math.ceil(scale * odds * _SLACK) - 1, 0)

    def average_half_width(self, beta: float) -> float:
        """The same of any weighted average of independent draws and of their negatives.

        Discrete Laplace noise is within 1 of a Laplace variable and rounded noise within 1/2 of a
        normal one. An average of such symmetric variables, whose densities are log-concave, is more
        peaked than one of them (Proschan 1965).
        """
        scale = float(self.scale)
        if self.law == "gaussian":
            return -NormalDist().inv_cdf(beta / 2) * scale * _SLACK + 0.5
        return -math.log(beta) * scale * _SLACK + 1

    def __str__(self) -> str:
        names = {"laplace": "discrete Laplace, scale", "gaussian": "rounded normal, deviation"}
        return f"{names[self.law]} {float(self.scale):.6g} on integers"


class Sensitivity(NamedTuple):
    """How far the integers of neighbors may be apart.

    Attributes:
        absolute: In the sum of absolute differences.
        squared: In the sum of squared differences.
    """

    absolute: int
    squared: int

    def times(self, parts: int) -> Sensitivity:
        """Of several such lists of integers, all about the same record."""
        return Sensitivity(self.absolute * parts, self.squared * parts)


class Asked(NamedTuple):
    """What a caller asks of a release."""

    epsilon: float
    delta: float | None
    neighbors: Neighbors
    confidence: float
    budget: Budget | None
    random_state: RandomState

    @property
    def beta(self) -> float:
        """The probability of an interval that misses."""
        return 1 - self.confidence

    def check(self) -> Asked:
        """The same with plain numbers. Raises ParameterError for a value out of range."""
        one_of("neighbors", self.neighbors, ("replace_one", "add_remove"))
        delta = None if self.delta is None else probability("delta", self.delta)
        check_random_state(self.random_state)
        return self._replace(
            epsilon=positive("epsilon", self.epsilon),
            delta=delta,
            confidence=probability("confidence", self.confidence),
        )


@lru_cache(maxsize=256)
def calibrate(sensitivity: Sensitivity, epsilon: float, delta: float | None) -> Noise:
    """The noise with the smaller deviation of those that are private enough.

    Raises:
        ParameterError: It would need more noise than is drawn.
    """
    laplace = Noise("laplace", sensitivity.absolute / exact_epsilon(epsilon))
    kinds = [laplace]
    if delta is not None and accounting.gaussian_mu(epsilon, delta) > 1e-9:
        kinds.append(Noise("gaussian", gaussian_sigma(sensitivity.squared, epsilon, delta)))
    least = min(kinds, key=lambda kind: kind.deviation)
    if least.scale >= _LARGEST_SCALE:
        refuse("epsilon", epsilon, "it needs more noise than is drawn: take a larger one")
    return least


def release(
    sums: Integers, sensitivity: Sensitivity, asked: Asked, *, name: str, n: int | None
) -> tuple[Integers, Noise, PrivacyRecord]:
    """Adds noise to integers, after it charged the budget.

    Args:
        sums: Integers of any shape.
        sensitivity: The largest distance of those of neighbors.
        asked: What the caller asks, already checked.
        name: The function that releases, for the record.
        n: The number of records where it is public.
    """
    drawn = calibrate(sensitivity, asked.epsilon, asked.delta)
    gaussian = drawn.law == "gaussian"
    sources = ("Balle and Wang 2018", "Ghosh, Roughgarden and Sundararajan 2009")
    record = PrivacyRecord(
        mechanism=f"statistics.{name}, {sums.size} integers",
        source=sources[0] if gaussian else sources[1],
        neighbors=asked.neighbors,
        epsilon=asked.epsilon,
        delta=asked.delta if gaussian and asked.delta is not None else 0.0,
        noise=str(drawn),
        rng=rng_of(asked.random_state),
    )
    if n and record.delta:
        note_large_delta(record.delta, n)
    draw = noise.rounded_gaussian if gaussian else noise.discrete_laplace
    with spend(asked.budget, record):
        noisy = sums + draw(drawn.scale, sums.shape, random_state=make_stream(asked.random_state))
    return noisy, drawn, record
