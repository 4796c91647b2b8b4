"""Statistical queries answered by a curator, with noise in each sum."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..._support.callers import losses, silence
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
# Noise has to stay where integer draws are exact.
_LARGEST_RATIO = 1 << 19


def records_needed(*, tau: float, beta: float, queries: int, epsilon: float) -> int:
    """How many records a curator needs to answer statistical queries to within tau.

    tau: tolerance, above 2**-30 and below 1; beta: failure probability, in (0, 1); queries: how
    many, at least 1 and at most 2**19 epsilon; epsilon: of all answers together, above 0.

    Guarantee: with so many records, drawn independently, CuratorOracle answers each of the queries
        to within tau of its mean over the distribution, but for probability beta in all, if no
        query depends on the answers to others.
    Raises: ParameterError.
    Cost: constant.
    Source: Hoeffding's inequality with half of beta, the tail of the noise with the other: the n at
        which sqrt(ln(4t / beta) / 2n) + t ln(2t / beta) / (epsilon n) is tau, for t queries.
    """
    width, failure = probability("tau", tau), probability("beta", beta)
    count, total = _validate_queries(queries, epsilon)
    if width <= 1 / STEPS:
        raise ParameterError(f"tau = {tau}, but it must be above 2**-30, the grid of the answers")
    sampling = math.sqrt((math.log(4 * count) - math.log(failure)) / 2)
    noise = count * (math.log(2 * count) - math.log(failure)) / total
    # The positive root of noise x**2 + sampling x = tau, in the form that cancels nothing.
    left = width - 1 / STEPS
    root = 2 * left / (sampling + math.sqrt(sampling**2 + 4 * noise * left))
    return math.ceil(1 / root**2)


class CuratorOracle(SingleUseSession):
    """Statistical queries answered by a curator, from all records and with noise in each answer.

    X: features (n, d), whatever the queries take, n in [1, 2**32); y: 0/1 (n,). epsilon: of all
    answers together, above 0. queries: how many may be asked, t, at least 1 and at most 2**19
    epsilon. beta: probability with which any answer may be further from its mean than tau. budget:
    charged epsilon once, here. random_state: None draws from the operating system, an int or a
    Generator makes a reproducible test stream that protects nobody who knows it.

    Each record's loss is rounded to a multiple of 2**-30; discrete Laplace noise of scale t 2**30 /
    epsilon is added to the sum of these integers, and the answer is their mean, clipped to [0, 1].
    There is one in one process: a copy is the very same object, pickling raises, and so does a
    query in a forked child.

    Guarantee: pure epsilon-DP for all answers together, exact numerics, replace_one neighbors, if
        the value of g for a record depends on no other record; by basic composition. Each answer
        within tau of the distribution's mean, but for probability beta in all, where no query
        depends on earlier answers (proved). Where they do, only the part of the error that is
        noise is bounded: within tau of the records' own mean, but for probability beta.
    Raises: ShapeError, ParameterError, BudgetExceeded.
    Cost: none until asked.
    Source: Blum, Dwork, McSherry and Nissim 2005; Kasiviswanathan et al. 2011, Section 5.1.1; for
        integers Canonne, Kamath and Steinke 2020.
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

        # Records live in this function alone: whoever holds the object has answers, no more.
        def add_up(g: Losses) -> int:
            with silence():
                values = losses("g(X, y)", g(records, labels), len(labels))
            return int(np.rint(values * STEPS).astype(np.int64).sum())

        self._add_up = add_up

    @property
    def remaining(self) -> int:
        """How many queries may still be asked."""
        return self._queries - self._answered

    def query(self, g: Losses, tau: float) -> float:
        """The mean of g over the records, with noise.

        g: called with the features and labels of all records, which it cannot change, in
        silence; returns a loss in [0, 1] for each, (n,); others are clipped, and what is not finite
        counts as 1. tau: tolerance, above 2**-30.

        Guarantee: as the class.
        Raises: InsufficientSamples when n records do not keep tau, BudgetExceeded when all queries
            have been answered: nothing is asked then. ShapeError when g returns anything but one
            number each: that query stays spent.
        Cost: that of g, and O(n).
        Source: as the class.
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
