"""The noise of a release of integers: discrete Laplace or rounded Gaussian, whichever is less."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist
from typing import Literal, NamedTuple

import numpy as np

from .. import accounting, noise
from .._support.notes import note, note_large_delta
from .._support.random_state import make_stream
from .._support.types import Floats, Integers
from .._support.validate import refuse
from ..accounting.discrete_gaussian import gaussian_sigma
from ..budget.account import spend
from ..data.goal import Goal
from ..noise import exact_epsilon
from ..record import PrivacyRecord, gaussian_law, rng_of

_LARGEST_SCALE = 1 << 50
_SLACK = 1 + 1e-9
# Exponents of Chernoff's bound, as parts of the largest.
_EXPONENTS = [place / 20 for place in range(1, 20)]


class KnownRange(NamedTuple):
    """How many records a mean is of, and between which bounds: public facts."""

    n: int
    low: float
    high: float


@dataclass(frozen=True)
class ReleasedNoise:
    """The noise of a released mean, or of each share, in its own units: public facts.

    Attributes:
        law: "laplace" or "gaussian".
        scale: The scale of Laplace noise, or the deviation of normal noise.
        deviation: The standard deviation.
        rounding: By how much rounding to grids moves the mean at most, beside that noise.
        n: The number of records.
        low: The lower bound that values were clipped to; 0 for shares.
        high: The upper bound; 1 for shares.

    Examples:
        >>> import numpy as np
        >>> from hdp_fast import statistics
        >>> released = statistics.mean(np.zeros(10_000), low=0, high=1, epsilon=1.0)
        >>> released.noise.law, released.noise.n, round(released.noise.deviation, 6)
        ('laplace', 10000, 0.000141)
    """

    law: Literal["laplace", "gaussian"]
    scale: float
    deviation: float
    rounding: float
    n: int
    low: float
    high: float


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

    def describe(self, unit: float, rounding: float, known: KnownRange) -> ReleasedNoise:
        """What it does to a mean of which an integer is a part of `unit`."""
        scale, deviation = unit * float(self.scale), unit * self.deviation
        rounded = rounding + (unit / 2 if self.law == "gaussian" else 0.0)
        return ReleasedNoise(self.law, scale, deviation, rounded, *known)

    def __str__(self) -> str:
        names = {"laplace": "discrete Laplace, scale", "gaussian": "rounded normal, deviation"}
        return f"{names[self.law]} {float(self.scale):.6g} on integers"


def bound_sums(
    scale: Fraction | float, weights: Floats, many: Floats, betas: Sequence[float]
) -> Floats:
    """What weighted sums of discrete Laplace draws exceed with small probabilities at most.

    It is Chernoff's bound, at the best of some exponents.

    Args:
        scale: The scale of the draws, which are independent.
        weights: The weights of sums, shape (k, m): each stands for as many draws as `many` says.
        many: How many draws have each weight, of the same shape.
        betas: The probabilities, each of one sum on one side.

    Returns:
        For each probability the bounds of the m sums.
    """
    rate = 1 / float(scale)
    sizes = np.where(many > 0, np.abs(weights), 0.0)
    largest = sizes.max(axis=0, initial=0.0)
    unit = np.where(largest > 0, largest, 1.0)
    odds = -np.log(betas)[:, None]
    best = np.full((len(betas), *largest.shape), math.inf)
    for share in _EXPONENTS:
        slopes = share * rate * sizes / unit
        tails = np.log(-np.expm1(slopes - rate)) + np.log(-np.expm1(-slopes - rate))
        moments = (many * (2 * math.log(-math.expm1(-rate)) - tails)).sum(axis=0)
        best = np.minimum(best, (moments + odds) * unit / (share * rate))
    return np.where(largest > 0, best * _SLACK, 0.0)


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

    def of_rows(self, rows: int) -> Sensitivity:
        """For neighbors that differ in as many rows, one after the other."""
        return Sensitivity(self.absolute * rows, self.squared * rows**2)


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
    # Larger scales may be more than a float holds.
    drawn = [kind for kind in kinds if kind.scale < _LARGEST_SCALE]
    if not drawn:
        refuse("epsilon", epsilon, "it needs more noise than is drawn: take a larger one")
    return min(drawn, key=lambda kind: kind.deviation)


def release(
    sums: Integers,
    sensitivity: Sensitivity,
    goal: Goal,
    *,
    name: str,
    n: int | None,
    span: float,
) -> tuple[Integers, Noise, PrivacyRecord]:
    """Adds noise to integers, after it charged the budget.

    Where the noise hides all that n records can show, a warning says so before the budget is
    charged.

    Args:
        sums: Integers of any shape.
        sensitivity: The largest distance of those of neighbors that differ in one row.
        goal: What the caller asks.
        name: The function that releases, for the record.
        n: The number of records, or the most that there may be, where it is public.
        span: The range of an integer, over single records, of the one that varies least.
    """
    drawn = calibrate(sensitivity.of_rows(goal.persons.rows), goal.epsilon, goal.delta)
    gaussian = drawn.law == "gaussian"
    sources = ("Balle and Wang 2018", "Ghosh, Roughgarden and Sundararajan 2009")
    delta = goal.delta if gaussian and goal.delta is not None else 0.0
    law = gaussian_law(goal.epsilon, delta) if gaussian else {}
    row_record = PrivacyRecord(
        mechanism=f"statistics.{name}, {sums.size} integers",
        source=sources[0] if gaussian else sources[1],
        neighbors=goal.neighbors,
        epsilon=goal.epsilon,
        delta=delta,
        noise=str(drawn),
        rng=rng_of(goal.random_state),
        **law,
    )
    record = goal.persons.state(row_record)
    if n and record.delta:
        note_large_delta(record.delta, n)
    if hides_all(drawn, goal.beta, n, span):
        note_noise(name, n or 0, goal.epsilon)
    draw = noise.rounded_gaussian if gaussian else noise.discrete_laplace
    with spend(goal.budget, record):
        noisy = sums + draw(drawn.scale, sums.shape, random_state=make_stream(goal.random_state))
    return noisy, drawn, record


def hides_all(drawn: Noise, beta: float, n: int | None, span: float) -> bool:
    """Whether an interval covers the range of sums over n records, for any sum in its middle."""
    return n is not None and 2 * drawn.half_width(beta) >= n * span


def note_noise(name: str, n: int, epsilon: float) -> None:
    """Warns that noise hides all that n records can show, which are public facts."""
    rule = "so that a constant is no worse: more records or a larger epsilon help"
    note(f"the noise of {name} at epsilon = {epsilon:g} hides all that n = {n:,} show, {rule}")
