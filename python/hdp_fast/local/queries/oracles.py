"""Oracles that answer statistical queries about a distribution or a sample."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike

from ..._support.numbers import clip, freeze, losses, returned_numbers
from ..._support.random_state import make_public_generator
from ..._support.types import Bits, Floats, RandomState
from ..._support.validate import array, bits, function, number, positive, refuse, shorten
from ...exceptions import ParameterError, ShapeError
from ...gf2 import BitMatrix

Losses = Callable[[Any, Bits], ArrayLike]

# The most digits that a query may ask for: up to here products with powers of two are exact.
_MOST_DIGITS = 40


class SQOracle(Protocol):
    """An oracle that answers statistical queries about a distribution: any object with this method.

    An oracle may also have batch(gs, taus), which answers several queries that are all fixed before
    its first answer.

    Examples:
        >>> from hdp_fast import local
        >>> oracle: local.SQOracle = local.ExactOracle([[0], [0], [1], [1]], [0, 1, 1, 1])
        >>> oracle.query(lambda X, y: X[:, 0] != y, tau=0.1)  # error of the feature
        0.25
    """

    def query(self, g: Losses, tau: float) -> float:
        """Answers with the mean of g over the distribution, to within tau.

        Args:
            g: The query. It is called with features of shape (m, d) and labels of shape (m,), which
                it cannot change, and returns a loss in [0, 1] for each record, shape (m,). A loss
                out of range is clipped; what is not finite counts as 1, the worst.
            tau: Tolerance, above 0.

        Returns:
            A number within tau of the mean.

        Source:
            Kearns, Efficient Noise-Tolerant Learning from Statistical Queries.
        """


def ask_together(oracle: SQOracle, gs: Sequence[Losses], taus: Sequence[float]) -> list[float]:
    """Ask an oracle several queries, all of which are prepared before its first answer."""
    batch = getattr(oracle, "batch", None)
    if batch is not None:
        return [float(answer) for answer in batch(gs, taus)]
    return [float(oracle.query(g, tau)) for g, tau in zip(gs, taus, strict=True)]


def check_oracle(oracle: Any) -> None:
    """Refuse an object that does not answer statistical queries."""
    if not callable(getattr(oracle, "query", None)):
        refuse("oracle", oracle, "it must have a method query(g, tau)")


def check_query(g: Any) -> None:
    """Refuse an object that is not a query, before anything is spent on it."""
    if not callable(g):
        refuse("g", g, "it must be callable")


def validate_sample(X: Any, y: Any) -> tuple[Any, Bits]:
    """Validate a sample of at least one record; the arrays that it returns cannot be written to."""
    records, labels = X if isinstance(X, BitMatrix) else freeze(array("X", X)), freeze(bits("y", y))
    if len(records.shape) != 2 or records.shape[:1] != labels.shape or not labels.size:
        rule = "they must be (m, d) and (m,), m at least 1"
        raise ShapeError(f"X has shape {records.shape} and y {labels.shape}, but {rule}")
    return records, labels


@dataclasses.dataclass(frozen=True, eq=False)
class EmpiricalOracle:
    """Answers statistical queries by the means over a sample. Not private.

    Attributes:
        X: Features of shape (m, d), an array or a BitMatrix, m at least 1. The queries may put
            further conditions on the entries.
        y: Labels 0 and 1 of shape (m,), bool or of an integer dtype.

    Raises:
        ShapeError: X has not two dimensions, the lengths of X and y differ, or there is no record.
        ParameterError: y is not of an integer dtype or has entries other than 0 and 1.

    Examples:
        >>> from hdp_fast import local
        >>> oracle = local.EmpiricalOracle([[1, 0], [0, 0], [1, 1], [1, 0]], [1, 0, 0, 1])
        >>> oracle.query(lambda X, y: X[:, 0] != y, tau=0.1)  # training error of the first feature
        0.25
    """

    X: Any
    y: Bits

    def __post_init__(self) -> None:
        """Validate the sample."""
        X, y = validate_sample(self.X, self.y)
        object.__setattr__(self, "X", X)
        object.__setattr__(self, "y", y)

    def query(self, g: Losses, tau: float) -> float:
        """Answers with the mean of g over the sample.

        A sample has only one answer, so that tau changes nothing. The answer lies within tau of the
        mean over the distribution if the sample is large enough.

        Args:
            g: The query, as SQOracle takes it.
            tau: Tolerance, above 0.

        Returns:
            The mean, a number in [0, 1].

        Raises:
            ParameterError: tau is not a finite number above 0.
            ShapeError: g returned anything but one number for each record.

        Cost:
            The cost of g.

        Source:
            Hoeffding's inequality: `m = ln(2 / beta) / (2 tau**2)` independent records keep the
            answer to a query that is fixed in advance within tau, except with probability beta.
        """
        positive("tau", tau)
        function("g", g)
        return float(losses("g(X, y)", g(self.X, self.y), len(self.y)).mean())


Shift = Callable[[float, float, Losses], float]


class ExactOracle:
    """Answers statistical queries about a finite distribution, exactly or with errors within tau.

    It is meant for proofs and tests: an oracle of statistical queries may make any error within the
    tolerance, and this one makes the chosen ones. Answers are clipped to [0, 1], where all means
    lie. Not private.

    Args:
        X: Features of the records in the support, shape (m, d), an array or a BitMatrix, m at least
            1. The queries may put further conditions on the entries.
        y: Labels 0 and 1 of these records, shape (m,), bool or of an integer dtype.
        weights: Numbers in proportion to the probabilities of the records, shape (m,), finite and
            at least 0, one of them above 0. None means equal probabilities.
        error: None for exact means; "random" for an error uniform in [-tau, tau]; or an adversary,
            which is called with mean, tau and g and returns an error in [-tau, tau].
        random_state: Source of the errors for "random"; not used otherwise. An int or a numpy
            Generator makes them reproducible.

    Attributes:
        queries: Number of queries answered so far.

    Raises:
        ShapeError: X, y or weights do not fit together, or there is no record.
        ParameterError: y is not of an integer dtype or has entries other than 0 and 1, or weights,
            error or random_state break their rule.

    Guarantee:
        This oracle protects no one; random_state only chooses its errors.

    Source:
        Kasiviswanathan et al. 2011, Definition 5.4, for queries with values in [0, 1].

    Examples:
        >>> from hdp_fast import local
        >>> X, y = [[0, 0], [0, 1], [1, 0], [1, 1]], [0, 1, 1, 0]
        >>> oracle = local.ExactOracle(X, y, error=lambda mean, tau, g: -tau)  # always too low
        >>> oracle.query(lambda X, y: X[:, 0] != y, tau=0.125), oracle.queries
        (0.375, 1)
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
        """Answers with the mean of g over the distribution, with an error of at most tau.

        Args:
            g: The query, as SQOracle takes it.
            tau: Tolerance, above 0.

        Returns:
            The answer, a number in [0, 1].

        Raises:
            ParameterError: g is not callable, tau is not a finite number above 0, or the
                adversary's error is not in [-tau, tau].
            ShapeError: g returned anything but one number for each record.

        Cost:
            The cost of g, and O(m).
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
    """Answers queries with real values, by an oracle that takes queries with values 0 and 1 alone.

    Let tau also stand for the tolerance as a part of the range. The mean of g is estimated by the
    means of the first `k = ceil(log2(1 / tau))` binary digits of `(g - low) / (high - low)`. Digit
    j is a query of tolerance tau / 2 whose answer has the weight `2**-j`, and half a last digit
    stands for all digits that follow. The answers contribute an error below tau / 2, and the digits
    that are left out contribute at most tau / 2. The result is clipped to the range. The k queries
    are prepared before any answer, and are asked in one batch if the oracle has a method for that.

    Args:
        oracle: An oracle for queries with values 0 and 1, with the method query(g, tau).
        low: Lower end of the range of the queries' values. It is -b for the queries of
            Kasiviswanathan et al.
        high: Upper end of the range, above low. Both ends are finite.

    Attributes:
        oracle: The oracle that is asked.

    Raises:
        ParameterError: oracle has no method query, or low and high break their rule.

    Source:
        Bshouty and Feldman 2002 (cited by Kasiviswanathan et al. 2011 after Definition 5.4).

    Examples:
        >>> from hdp_fast import local
        >>> ages = [[21], [35], [50], [62]]
        >>> oracle = local.RealValued(local.ExactOracle(ages, [0, 0, 1, 1]), low=0, high=128)
        >>> mean = oracle.query(lambda X, y: X[:, 0], tau=1.0)
        >>> abs(mean - 42) <= 1.0, oracle.oracle.queries  # one query for each of 7 digits
        (True, 7)
    """

    def __init__(self, oracle: SQOracle, *, low: float = 0.0, high: float = 1.0):
        check_oracle(oracle)
        self._low, self._high = number("low", low), number("high", high)
        if not 0 < self._high - self._low < math.inf:
            rule = "both must be finite and low be less than high"
            raise ParameterError(f"low = {shorten(low)} and high = {shorten(high)}, but {rule}")
        self.oracle = oracle

    def query(self, g: Losses, tau: float) -> float:
        """Answers with the mean of g over the oracle's distribution, to within tau.

        Args:
            g: The query. It is called with features of shape (m, d) and labels of shape (m,), and
                returns a number in [low, high] for each record, shape (m,). A number out of range
                is clipped; what is not finite counts as high.
            tau: Tolerance, at least `2**-40 (high - low)`.

        Returns:
            A number in [low, high].

        Raises:
            ParameterError: g is not callable, or tau is too small. The oracle is not asked.
            ShapeError: g returned anything but one number for each record.
            Exception: What the oracle itself raises.

        Cost:
            `max(1, ceil(log2((high - low) / tau)))` queries of tolerance `tau / (2 (high - low))`,
            which is taken as 1/4 where it is larger. Each query evaluates g.
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
        """Digit j of the place of g in the range, as a query with values 0 and 1."""
        low, high = self._low, self._high

        def digit(X: Any, y: Bits) -> Bits:
            values = clip(returned_numbers("g(X, y)", g(X, y), len(y)), high, low, high)
            part = (values - low) / (high - low)
            whole = np.minimum(np.floor(np.ldexp(part, digits)), 2**digits - 1).astype(np.int64)
            bit: Bits = (whole >> (digits - j) & 1).astype(np.uint8)
            return bit

        return digit
