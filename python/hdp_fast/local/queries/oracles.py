"""Oracles of statistical queries: for a distribution, a sample, and real-valued queries."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike

from ..._support.callers import clip, freeze, losses, returned_numbers
from ..._support.random_state import make_public_generator
from ..._support.types import Bits, Floats, RandomState
from ..._support.validate import array, bits, number, positive, refuse, shorten
from ...exceptions import ParameterError, ShapeError
from ...gf2 import BitMatrix

Losses = Callable[[Any, Bits], ArrayLike]

# Digits of a float that a query may ask for: products with powers of two below are exact.
_MOST_DIGITS = 40


class SQOracle(Protocol):
    """An oracle that answers statistical queries about a distribution.

    Attributes:
        query: answers one query.
    """

    def query(self, g: Losses, tau: float) -> float:
        """The mean of g over the distribution, to within tau.

        g: called with features (m, d) and labels (m,), which it cannot change; returns a loss in
        [0, 1] for each, (m,); others are clipped, and what is not finite counts as 1, the worst.
        tau: tolerance, above 0.

        Raises: what the oracle likes.
        Cost: that of the oracle.
        Source: Kearns, Efficient Noise-Tolerant Learning from Statistical Queries.
        """


def ask_together(oracle: SQOracle, gs: Sequence[Losses], taus: Sequence[float]) -> list[float]:
    """Ask an oracle queries that are all prepared before its first answer.

    Raises: as the oracle.
    """
    batch = getattr(oracle, "batch", None)
    if batch is not None:
        return [float(answer) for answer in batch(gs, taus)]
    return [float(oracle.query(g, tau)) for g, tau in zip(gs, taus, strict=True)]


def check_oracle(oracle: Any) -> None:
    """Refuse what answers no statistical queries."""
    if not callable(getattr(oracle, "query", None)):
        refuse("oracle", oracle, "it must have a method query(g, tau)")


def check_query(g: Any) -> None:
    """Refuse what is no query, before anything is spent on it."""
    if not callable(g):
        refuse("g", g, "it must be callable")


def validate_sample(X: Any, y: Any) -> tuple[Any, Bits]:
    """Validate a sample of at least one record, and lock it: queries can read it alone."""
    records, labels = X if isinstance(X, BitMatrix) else freeze(array("X", X)), freeze(bits("y", y))
    if len(records.shape) != 2 or records.shape[:1] != labels.shape or not labels.size:
        rule = "they must be (m, d) and (m,), m at least 1"
        raise ShapeError(f"X has shape {records.shape} and y {labels.shape}, but {rule}")
    return records, labels


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
        """Validate the sample."""
        X, y = validate_sample(self.X, self.y)
        object.__setattr__(self, "X", X)
        object.__setattr__(self, "y", y)

    def query(self, g: Losses, tau: float) -> float:
        """The mean of g over the sample: within tau of the distribution's where m is large enough.

        g: called with X and y, as SQOracle has it; returns a loss in [0, 1] for each record, (m,).
        tau: tolerance, above 0; a sample has but one answer, so that tau changes nothing.

        Raises: ShapeError and ParameterError when g returns anything but one number each.
        Cost: that of g.
        Source: Hoeffding's inequality: m = ln(2 / beta) / (2 tau**2) keep a query fixed in advance
            within tau, except with probability beta.
        """
        positive("tau", tau)
        return float(losses("g(X, y)", g(self.X, self.y), len(self.y)).mean())


Shift = Callable[[float, float, Losses], float]


class ExactOracle:
    """Statistical queries about a finite distribution, with the errors that an SQ oracle may make.

    X: the support's features (m, d), whatever the queries take, m at least 1; y: its labels 0/1
    (m,). weights: of the m records, finite, at least 0, in proportion to their probabilities; None
    for equal ones. error: None for exact means; "random" for an error uniform in [-tau, tau]; or an
    adversary, called with mean, tau and g, which returns an error in [-tau, tau]. random_state: of
    "random" alone; an int or a Generator makes errors reproducible.

    Answers are clipped to [0, 1], where all means lie. Not private: meant for proofs and tests.

    Attributes:
        queries: how many have been answered.

    Raises: ShapeError, ParameterError.
    Cost: none until asked.
    Source: Kasiviswanathan et al. 2011, Definition 5.4, for queries with values in [0, 1].
    """

    def __init__(
        self,
        X: Any,
        y: ArrayLike,
        weights: ArrayLike | None = None,
        *,
        error: Literal["random"] | Shift | None = None,
        random_state: RandomState = None,
    ):
        self._X, self._y = validate_sample(X, y)
        self._probabilities = _normalize(weights, len(self._y))
        if not (error is None or (isinstance(error, str) and error == "random") or callable(error)):
            refuse("error", error, "it must be None, 'random' or a callable")
        self._error = error
        self._rng = make_public_generator(random_state)
        self.queries = 0

    def query(self, g: Losses, tau: float) -> float:
        """The mean of g over the distribution, with an error of at most tau.

        g: called with X and y, as SQOracle has it; returns a loss in [0, 1] for each record, (m,).
        tau: above 0.

        Raises: ShapeError and ParameterError when g returns anything but one number each,
            ParameterError when the adversary's error is larger than tau.
        Cost: that of g, and O(m).
        Source: as the class.
        """
        check_query(g)
        tolerance = positive("tau", tau)
        mean = float(self._probabilities @ losses("g(X, y)", g(self._X, self._y), len(self._y)))
        shift = self._shift(mean, tolerance, g)
        self.queries += 1
        return min(max(mean + shift, 0.0), 1.0)

    def _shift(self, mean: float, tau: float, g: Losses) -> float:
        if self._error is None:
            return 0.0
        if not callable(self._error):
            return float(self._rng.uniform(-tau, tau))
        shift = number("error", self._error(mean, tau, g))
        if not -tau <= shift <= tau:
            raise ParameterError(f"error = {shift}, but it must lie in [-tau, tau], tau = {tau}")
        return shift


def _normalize(weights: ArrayLike | None, count: int) -> Floats:
    if weights is None:
        return np.full(count, 1 / count)
    values = array("weights", weights)
    if values.shape != (count,):
        raise ShapeError(f"weights has shape {values.shape}, but it must be ({count},)")
    rule = "they must be finite numbers of at least 0, one of them above 0"
    if values.dtype.kind not in "buif" or not ((values >= 0) & (values < math.inf)).all():
        raise ParameterError(f"weights holds something else, but {rule}")
    values = values.astype(np.float64)
    if not values.any():
        raise ParameterError(f"weights are all 0, but {rule}")
    values = values / values.max()
    return np.asarray(values / values.sum())


class RealValued:
    """Queries with real values, from an oracle that takes queries with values 0 and 1 alone.

    oracle: anything with query(g, tau). low, high: ends of the range of the queries' values, finite
    and low < high; -b and b for the queries of Kasiviswanathan et al.

    The mean of g is that of its first k = ceil(log2(1 / tau)) binary digits (of (g - low) / (high -
    low), tau a part of the range, too), the j-th by a query with tolerance tau / 2 and weight
    2**-j, and half a last digit for all that follow: an error below tau / 2 from the answers, and
    of at most tau / 2 from the digits left out. It is clipped to the range. The k queries are
    prepared before any answer, in one batch where the oracle has one.

    Attributes:
        oracle: the one that is asked.

    Raises: ParameterError.
    Cost: none until asked.
    Source: Bshouty and Feldman 2002 (by Kasiviswanathan et al., after Definition 5.4).
    """

    def __init__(self, oracle: SQOracle, *, low: float = 0.0, high: float = 1.0):
        check_oracle(oracle)
        self._low, self._high = number("low", low), number("high", high)
        if not 0 < self._high - self._low < math.inf:
            rule = "both must be finite and low be less than high"
            raise ParameterError(f"low = {shorten(low)} and high = {shorten(high)}, but {rule}")
        self.oracle = oracle

    def query(self, g: Losses, tau: float) -> float:
        """The mean of g over the oracle's distribution, to within tau.

        g: called with features (m, d) and labels (m,); returns a number in [low, high] for each,
        (m,); others are clipped, and what is not finite counts as high. tau: at least 2**-40 of the
        range.

        Raises: ShapeError and ParameterError when g returns anything but one number each;
            ParameterError for tau, before the oracle is asked; what the oracle raises.
        Cost: max(1, ceil(log2((high - low) / tau))) queries of tolerance tau / (2 (high - low)),
            at most 1/4; g is evaluated for each.
        Source: as the class.
        """
        check_query(g)
        range_ = self._high - self._low
        part = min(positive("tau", tau) / range_, 0.5)
        if part < 2.0**-_MOST_DIGITS:
            rule = f"it must be at least 2**-{_MOST_DIGITS} of the range of g, {range_}"
            raise ParameterError(f"tau = {tau}, but {rule}")
        digits = math.ceil(-math.log2(part))
        gs = [self._digit(g, j, digits) for j in range(1, digits + 1)]
        answers = ask_together(self.oracle, gs, [part / 2] * digits)
        mean = math.fsum(math.ldexp(answer, -j) for j, answer in enumerate(answers, 1))
        place = min(max(mean + math.ldexp(1, -digits - 1), 0.0), 1.0)
        return self._low + range_ * place

    def _digit(self, g: Losses, j: int, digits: int) -> Losses:
        """Digit j of g's place in the range, as a query of its own."""
        low, high = self._low, self._high

        def digit(X: Any, y: Bits) -> Bits:
            values = clip(returned_numbers("g(X, y)", g(X, y), len(y)), high, low, high)
            part = (values - low) / (high - low)
            whole = np.minimum(np.floor(np.ldexp(part, digits)), 2**digits - 1).astype(np.int64)
            bit: Bits = (whole >> (digits - j) & 1).astype(np.uint8)
            return bit

        return digit
