"""Statistical queries answered by a curator, who adds noise to each sum."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..._support.numbers import losses, silence
from ..._support.random_state import check_random_state
from ..._support.types import RandomState
from ..._support.validate import positive, positive_int, probability
from ...budget.account import Budget
from ...exceptions import InsufficientSamples, ParameterError
from ...noise import discrete_laplace, exact_epsilon
from ...record import PrivacyRecord, rng_of
from ...stability.sessions import SingleUseSession
from .oracles import Losses, check_query, validate_sample

# Losses are rounded to multiples of 1 / STEPS, so that sums are integers.
STEPS = 1 << 30
_MOST_RECORDS = 1 << 32
# The scale of the noise must stay where integer draws are exact.
_LARGEST_RATIO = 1 << 19


def records_needed(*, tau: float, beta: float, queries: int, epsilon: float) -> int:
    """Counts the records that a curator needs to answer statistical queries to within tau.

    Args:
        tau: Tolerance, above `2**-30` and below 1.
        beta: Failure probability of all queries together, in (0, 1).
        queries: Number of queries t, at least 1, below `2**19 epsilon` and at most `2**40`.
        epsilon: Privacy parameter of all answers together, above 0.

    Returns:
        The number of records.

    Raises:
        ParameterError: A parameter is out of range.

    Guarantee:
        With this many records, drawn independently, CuratorOracle answers each of the queries to
        within tau of its mean over the distribution, except with probability beta for all of them
        together, if no query depends on the answers to others.

    Source:
        Hoeffding's inequality with one half of beta, the tail of the noise with the other half: the
        result is the least n at which
        `sqrt(ln(4 t / beta) / (2 n)) + t ln(2 t / beta) / (epsilon n)` is at most `tau - 2**-30`.

    Examples:
        >>> from hdp_fast import local
        >>> local.records_needed(tau=0.05, beta=0.05, queries=20, epsilon=1.0)
        5531
    """
    width, failure = probability("tau", tau), probability("beta", beta)
    count, total = _validate_queries(queries, epsilon)
    if width <= 1 / STEPS:
        raise ParameterError(f"tau = {tau}, but it must be above 2**-30, the grid of the answers")
    sampling = math.sqrt((math.log(4 * count) - math.log(failure)) / 2)
    noise = count * (math.log(2 * count) - math.log(failure)) / total
    # The positive root of noise x**2 + sampling x = left, in the form without cancellation.
    left = width - 1 / STEPS
    root = 2 * left / (sampling + math.sqrt(sampling**2 + 4 * noise * left))
    return math.ceil(1 / root**2)


class CuratorOracle(SingleUseSession):
    """Statistical queries answered by a curator from all records, with noise in each answer.

    The loss of each record is rounded to a multiple of `2**-30`. Discrete Laplace noise of scale
    `queries 2**30 / epsilon` is added to the sum of these integers, and the answer is the mean that
    follows, clipped to [0, 1]. A copy of the object is the very same object, pickling raises, and
    so does a query in a forked child.

    Args:
        X: Features of shape (n, d), an array or a BitMatrix, n from 1 to `2**32` - 1. The queries
            may put further conditions on the entries.
        y: Labels 0 and 1 of shape (n,), bool or of an integer dtype.
        epsilon: Privacy parameter of all answers together, above 0.
        queries: Number t of queries that may be asked, at least 1, below `2**19 epsilon` and at
            most `2**40`.
        beta: Probability with which any answer may be further than its tau from its mean, in (0,
            1).
        budget: Charged epsilon once, when the object is made.
        random_state: None draws from the operating system. An int or a numpy Generator makes a
            reproducible stream for tests, which protects no one who knows it.

    Raises:
        ShapeError: X has not two dimensions, the lengths of X and y differ, or there is no record.
        ParameterError: y is not of an integer dtype or has entries other than 0 and 1, or a
            parameter is out of range.
        BudgetExceeded: The budget has less than epsilon left.

    Guarantee:
        Pure epsilon-DP for all answers together, by basic composition, with exact numerics and
        replace_one neighbors, if the value of g for a record depends on no other record.

        Where no query depends on earlier answers, every answer lies within its tau of the mean over
        the distribution, except with probability beta for all of them together (proved). Where
        queries depend on earlier answers, only the part of the error that is noise is bounded:
        every answer lies within its tau of the mean over the records, except with probability beta.

    Source:
        Blum, Dwork, McSherry and Nissim 2005; Kasiviswanathan et al. 2011, Section 5.1.1; Canonne,
        Kamath and Steinke 2020 for the noise on integers.

    Examples:
        >>> import numpy as np
        >>> from hdp_fast import local
        >>> X = np.random.default_rng(0).integers(0, 2, (10_000, 3))
        >>> oracle = local.CuratorOracle(X, X[:, 1], epsilon=1.0, queries=3, beta=1e-10)
        >>> errors = [oracle.query(lambda X, y, j=j: X[:, j] != y, tau=0.1) for j in range(3)]
        >>> int(np.argmin(errors)), oracle.remaining
        (1, 0)
    """

    def __init__(
        self,
        X: Any,
        y: ArrayLike,
        *,
        epsilon: float,
        queries: int,
        beta: float,
        budget: Budget | None = None,
        random_state: RandomState = None,
    ):
        records, labels = validate_sample(X, y)
        positive_int("len(y)", len(labels), _MOST_RECORDS - 1)
        self._beta = probability("beta", beta)
        self._queries, self._epsilon = _validate_queries(queries, epsilon)
        self._scale = STEPS * self._queries / exact_epsilon(self._epsilon)
        self._n, self._answered = len(labels), 0
        check_random_state(random_state)
        super().__init__(_record(self._epsilon, random_state), random_state, budget)

        # The records live in this function alone: whoever holds the object gets answers.
        def add_up(g: Losses) -> int:
            with silence():
                values = losses("g(X, y)", g(records, labels), len(labels))
            return int(np.rint(values * STEPS).astype(np.int64).sum())

        self._add_up = add_up

    @property
    def remaining(self) -> int:
        """The number of queries that may still be asked."""
        return self._queries - self._answered

    def query(self, g: Losses, tau: float) -> float:
        """Answers with the mean of g over the records, with noise.

        Args:
            g: The query. It is called with the features and labels of all records, which it cannot
                change, and runs in silence. It returns a loss in [0, 1] for each record, shape
                (n,). A loss out of range is clipped; what is not finite counts as 1.
            tau: Tolerance, above `2**-30`.

        Returns:
            The answer, a number in [0, 1].

        Raises:
            InsufficientSamples: n records do not keep tau. Nothing is asked.
            BudgetExceeded: All queries have been answered. Nothing is asked.
            ParameterError: g is not callable, tau is too small, or the process is a forked child.
                Nothing is asked.
            ShapeError: g returned anything but one number for each record. The query stays spent.
            Exception: What g itself raises. The query stays spent.

        Guarantee:
            Pure epsilon-DP for all answers of the oracle together, as the class states.

        Cost:
            The cost of g, and O(n).
        """
        check_query(g)
        self._check_tolerance(positive("tau", tau))
        with self._hold():
            self._check_left(1, None, self.remaining)
            self._answered += 1
        noise = discrete_laplace(self._scale, random_state=self._rng)
        mean = (self._add_up(g) + int(noise)) / (STEPS * self._n)
        return min(max(mean, 0.0), 1.0)

    def _check_tolerance(self, tau: float) -> None:
        # All answers lie in [0, 1], and so do all means.
        if tau >= 1:
            return
        needed = records_needed(
            tau=tau, beta=self._beta, queries=self._queries, epsilon=self._epsilon
        )
        if needed > self._n:
            rule = f"tau = {tau} needs {needed:,} for {self._queries:,} queries"
            raise InsufficientSamples(f"records = {self._n:,}, but {rule}")

    def __repr__(self) -> str:
        asked = f"{self._answered:,} of {self._queries:,} queries asked"
        return f"CuratorOracle({self._n:,} records, epsilon={self._epsilon:g}, {asked})"


def _validate_queries(queries: int, epsilon: float) -> tuple[int, float]:
    count, total = positive_int("queries", queries, 1 << 40), positive("epsilon", epsilon)
    if count >= _LARGEST_RATIO * total:
        rule = "there must be fewer than 2**19 epsilon of them"
        raise ParameterError(f"queries = {count:,} for epsilon = {total}, but {rule}")
    return count, total


def _record(epsilon: float, random_state: RandomState) -> PrivacyRecord:
    return PrivacyRecord(
        mechanism="local.CuratorOracle",
        source="Blum, Dwork, McSherry and Nissim 2005, by basic composition",
        neighbors="replace_one",
        epsilon=epsilon,
        noise="discrete Laplace on a grid of 2**-30, in each sum",
        rng=rng_of(random_state),
    )
