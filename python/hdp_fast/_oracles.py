"""Oracles of statistical queries."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._checks import array, bits, fractions, positive
from .exceptions import ShapeError
from .gf2 import BitMatrix

Bits = NDArray[np.uint8]
Losses = Callable[[Any, Bits], ArrayLike]


class SQOracle(Protocol):
    """Whoever answers statistical queries about a distribution.

    Attributes:
        query: the one thing it does.
    """

    def query(self, g: Losses, tau: float) -> float:
        """The mean of g over the distribution, to within tau.

        g: called with features (m, d) and labels (m,); returns a loss in [0, 1] for each, (m,).
        tau: tolerance, above 0.

        Raises: what the oracle likes.
        Cost: that of the oracle.
        Source: Kearns, Efficient Noise-Tolerant Learning from Statistical Queries.
        """


@dataclasses.dataclass(frozen=True, eq=False)
class EmpiricalOracle:
    """Statistical queries answered by a sample's own means. Not private.

    Attributes:
        X: features (m, d), whatever the queries take; m at least 1.
        y: labels 0/1 (m,).

    Raises: ShapeError, ParameterError.
    Cost: none until asked.
    Source: none.
    """

    X: Any
    y: Bits

    def __post_init__(self) -> None:
        """Refuse what is no sample."""
        X = self.X if isinstance(self.X, BitMatrix) else array("X", self.X)
        y = bits("y", self.y)
        if len(X.shape) != 2 or X.shape[:1] != y.shape or not y.size:
            rule = "they must be (m, d) and (m,), m at least 1"
            raise ShapeError(f"X has shape {X.shape} and y {y.shape}, but {rule}")
        object.__setattr__(self, "X", X)
        object.__setattr__(self, "y", y)

    def query(self, g: Losses, tau: float) -> float:
        """The mean of g over the sample: within tau of the distribution's where m is large enough.

        g: called with X and y; returns a loss in [0, 1] for each record, (m,). tau: tolerance,
        above 0; a sample has but one answer, so that tau changes nothing.

        Raises: ShapeError and ParameterError when g returns anything else.
        Cost: that of g.
        Source: Hoeffding's inequality: m = ln(2 / beta) / (2 tau**2) keep a query fixed in advance
            within tau, except with probability beta.
        """
        positive("tau", tau)
        losses = fractions("g(X, y)", g(self.X, self.y), len(self.y))
        return float(losses.mean())
