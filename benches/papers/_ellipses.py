"""Gaussians and ellipses: what both experiments of Kohen and Sheffet's Appendix D are about.

The source is N(0, s**2 I); the target has a smaller standard deviation in the first k of d
coordinates. A record is inside (label 0) where the sum of squares of those k is below a threshold
that holds a given share of the target; a linear model of the squares, less a constant, can say it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2

from hdp_fast.learners import LinearModel, PrivateSGD

Bits = NDArray[np.uint8]
Floats = NDArray[Any]


@dataclass(frozen=True)
class Ellipses:
    """Both populations.

    Squares are shifted and stretched, by public numbers, to (x**2 / unit - shift) / stretch, and
    stand beside a column of -constant.
    """

    d: int
    k: int
    source: float
    target: float
    inside: float
    unit: float = 1.0
    shift: float = 0.0
    stretch: float = 1.0
    constant: float = 1.0

    @property
    def chi2_plus_1(self) -> float:
        """E_target[target / source], which the paper prints for both of its settings."""
        s, t = self.source**2, self.target**2
        return float((s * s / (t * (2 * s - t))) ** (self.k / 2))

    def sample(self, coins: np.random.Generator, n: int, *, target: bool) -> tuple[Floats, Bits]:
        """Features (n, d + 1), float32, and labels (n,)."""
        X = np.empty((n, self.d + 1), np.float32)
        y = np.empty(n, np.uint8)
        bias = self.target**2 * chi2.ppf(self.inside, self.k)
        for start in range(0, n, 100_000):
            rows = slice(start, min(n, start + 100_000))
            squares = coins.standard_normal((rows.stop - start, self.d), dtype=np.float32) ** 2
            squares *= self.source**2
            if target:
                squares[:, : self.k] *= (self.target / self.source) ** 2
            y[rows] = squares[:, : self.k].sum(axis=1) >= bias
            squares /= self.unit
            X[rows, : self.d] = (squares - self.shift) / self.stretch
        X[:, self.d] = -self.constant
        return X, y

    def ratios(self, X: Floats) -> Floats:
        """Probabilities (n,) in proportion to the ratio of the target's to the source's density."""
        squares = (X[:, : self.k].astype(float) * self.stretch + self.shift) * self.unit
        logarithms = -squares.sum(axis=1) * (1 / self.target**2 - 1 / self.source**2) / 2
        found = np.exp(logarithms - logarithms.max())
        return found / found.sum()


class Errors:
    """A model that loses 1 for an error, whatever its loss was in training."""

    def __init__(self, model: LinearModel):
        self.predict, self.hypothesis = model.predict, model.hypothesis


@dataclass(frozen=True, eq=False)
class Watched(PrivateSGD):
    """The learner, and all that it found."""

    errors: bool = True
    found: list[LinearModel] = field(default_factory=list, repr=False)

    def learn_weighted(self, *arguments: Any, **given: Any) -> Any:
        """As PrivateSGD."""
        model = super().learn_weighted(*arguments, **given)
        self.found.append(model)
        return Errors(model) if self.errors else model


def error(model: Any, X: Floats, y: Bits) -> float:
    """How often it is wrong."""
    return float((model.predict(X) != y).mean())


def coordinates(model: LinearModel, k: int) -> int:
    """How many of the k largest weights belong to the true coordinates; the constant is none."""
    largest = np.argsort(-np.abs(model.weights[:-1]))[:k]
    return int((largest < k).sum())


def diameter(d: int) -> float:
    """Of the paper's hypotheses: all weights and the threshold in [0, 1]."""
    return math.sqrt(d + 1)
