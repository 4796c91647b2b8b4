"""Votes for many labels with rounded Gaussian noise: no answer where the noisy gap is small."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import noise
from .._support.parameters import Checked, Rules
from .._support.random_state import check_random_state
from .._support.types import Integers, RandomState
from .._support.validate import bounded, positive_int, probability, refuse
from ..accounting.conversion import gaussian_delta, gaussian_epsilon
from ..accounting.discrete_gaussian import continuous_mu, round_sigma_up
from ..budget.account import Budget
from ..exceptions import ParameterError, ShapeError
from ..record import PrivacyRecord, rng_of
from .distances import counts_of
from .sessions import QuerySessions, SingleUseSession, check_used
from .tables import restore

THRESHOLD = 1.0
_SOURCE = "Papernot et al. 2018, GNMax, with rounded noise, all of it looked at"
_MOST = 1 << 40
# With a larger sigma draws would come near the ends of int64; with a longer denominator they
# would take longer.
_LARGEST_SIGMA, _LARGEST_DENOMINATOR = 1 << 49, 1 << 10
# Number of noisy counts that are held in memory at a time.
_BLOCK = 1 << 21


def _two_or_more(name: str, value: Any) -> int:
    """The value as an int from 2 to the most. Raises: ParameterError otherwise."""
    size = positive_int(name, value, _MOST)
    if size == 1:
        raise ParameterError(f"{name} = 1, but a vote needs at least 2")
    return size


@dataclass(frozen=True, kw_only=True, repr=False)
class GaussianVote(Checked, QuerySessions["GaussianSession"]):
    """Noise on the votes for each of many labels, and the gap below which there is no answer.

    A session adds rounded Gaussian noise to all counts of a query. The answer is the label with the
    largest noisy count, ties to the smallest label. It is bottom (-1) where that count leads
    the next one by less than `gap`. All noisy counts could be published at the same cost, so that a
    bottom costs nothing and there may be any number of them.

    A vote is made by design or from_json.

    Attributes:
        queries: Number of queries that may be asked, 1 to `2**40`.
        labels: Size of the public label set, 2 to `2**40`.
        epsilon: Privacy parameter of all answers together, 0.001 to 1,000.
        delta: Privacy parameter of all answers together, in (0, 1); design wants at least 1e-200.
        beta: Failure probability that members_needed aims at, in (0, 1).
        threshold: Lead that an answer needs, in units of sigma, 0 to 1,000.
        sigma: Scale of the noise, a Fraction above 0 and up to `2**49` whose denominator is at most
            1,024.

    Raises:
        ParameterError: A parameter is out of range, or sigma is too small for epsilon and delta.

    Guarantee:
        All answers of a session together are (epsilon, delta)-DP, whoever chooses the queries, when
        one vote is replaced on every query, always that of the same member. Two counts of a query
        then change by 1. Counts are integers, so that rounding the noise is the same as rounding
        the noisy counts: all of them together are a Gaussian mechanism with mu = sqrt(2 queries) /
        sigma, and the delta is that of its exact curve. The random draws are exact.

    Source:
        Papernot et al. 2018, Section 4.1 (GNMax); Balle and Wang 2018, Theorem 8. That rounding and
        the noisy gap cost nothing more is post-processing (hdp_fast's own use).

    Examples:
        >>> from hdp_fast import stability
        >>> goal = {"epsilon": 1.0, "delta": 1e-6, "beta": 0.05}
        >>> vote = stability.GaussianVote.design(100, labels=10, **goal)
        >>> float(vote.sigma), vote.gap  # noise on each count, and the lead that an answer needs
        (59.74609375, 60)
        >>> stability.members_needed(vote)  # each right with probability 3/4
        801
    """

    queries: int
    labels: int
    epsilon: float
    delta: float
    beta: float
    threshold: float
    sigma: Fraction

    RULES: ClassVar[Rules] = {
        "queries": partial(positive_int, most=_MOST),
        "labels": _two_or_more,
        "epsilon": partial(bounded, low=0.001, high=1_000.0),
        "delta": probability,
        "beta": probability,
        "threshold": partial(bounded, low=0.0, high=1_000.0),
    }

    def __post_init__(self) -> None:
        """Refuse parameters with which the promise would not hold."""
        super().__post_init__()
        sigma = self.sigma
        if (
            not isinstance(sigma, Fraction)
            or sigma.denominator > _LARGEST_DENOMINATOR
            or not 0 < sigma <= _LARGEST_SIGMA
        ):
            rule = "it must be a Fraction above 0, its denominator at most 1,024, up to 2**49"
            refuse("sigma", sigma, rule)
        if gaussian_delta(_mu(sigma, self.queries), self.epsilon) > self.delta:
            rule = f"that is too little noise for epsilon = {self.epsilon:g}"
            raise ParameterError(f"sigma = {float(sigma):g}, but {rule}, delta = {self.delta:g}")

    @classmethod
    def design(
        cls,
        queries: int,
        *,
        epsilon: float,
        delta: float,
        beta: float,
        labels: int,
        threshold: float = THRESHOLD,
    ) -> GaussianVote:
        """Chooses the least noise that keeps the promise, to within a millionth.

        Args:
            queries: Number of queries, 1 to `2**40`.
            epsilon: Privacy parameter of all answers together, 0.001 to 1,000.
            delta: Privacy parameter of all answers together, in [1e-200, 1).
            beta: Failure probability that members_needed aims at, in (0, 1).
            labels: Size of the public label set, 2 to `2**40`.
            threshold: Lead that an answer needs, in units of sigma, 0 to 1,000. A smaller one gives
                more answers, fewer of them right; 0 leaves no bottom.

        Returns:
            The GaussianVote.

        Raises:
            ParameterError: A parameter is out of range, or epsilon and delta are so small that no
                noise can be certified.

        Guarantee:
            That of the class, computed anew for the noise that is returned.

        Cost:
            Hundredths of a second.

        Source:
            Balle and Wang 2018, Algorithm 1, rounded up to a multiple of 1 / 1,024.
        """
        goal = {"queries": queries, "epsilon": epsilon, "delta": delta, "beta": beta}
        goal |= {"labels": labels, "threshold": threshold}
        checked: dict[str, Any] = {name: cls.RULES[name](name, goal[name]) for name in goal}
        sigma = _least_sigma(checked["epsilon"], checked["delta"], checked["queries"])
        return cls(**checked, sigma=sigma)

    @property
    def gap(self) -> int:
        """Least number of votes by which the largest noisy count must lead the next one."""
        return math.ceil(Fraction(self.threshold) * self.sigma)

    def _open_session(
        self, used: tuple[int, int], random_state: RandomState, budget: Budget | None
    ) -> GaussianSession:
        return GaussianSession(self, used[1], random_state, budget)

    def verify(self) -> float:
        """Computes the epsilon that the noise certainly has at delta.

        Returns:
            The epsilon, rounded up; at most the promised one.

        Source:
            The exact curve, by which the noise was chosen, too.
        """
        return min(gaussian_epsilon(_mu(self.sigma, self.queries), self.delta), self.epsilon)

    def to_json(self) -> str:
        """Writes the vote as JSON.

        Returns:
            A JSON object of the parameters and of sigma as two integers, which from_json reads.
        """
        sigma = self.sigma.as_integer_ratio()
        return json.dumps({"kind": type(self).__name__, **vars(self), "sigma": sigma})

    @classmethod
    def from_json(cls, text: str) -> GaussianVote:
        """Reads the vote that to_json wrote, and verifies it.

        Args:
            text: The JSON object, from any source: a vote that does not keep its promise is
                refused.

        Returns:
            The GaussianVote.

        Raises:
            ParameterError: text is not such a vote, or its noise is too small.
        """
        return restore(cls, text, lambda sigma, **fields: cls(**fields, sigma=Fraction(*sigma)))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self).from_json, (self.to_json(),)

    def __repr__(self) -> str:
        promise = f"epsilon={self.epsilon:g}, delta={self.delta:g}, beta={self.beta:g}"
        noise = f"noise of sigma = {float(self.sigma):.4g} on each count"
        answers = f"{noise}, bottom below a gap of {self.gap:,}"
        sizes = f"queries={self.queries:,}, labels={self.labels:,}"
        return f"GaussianVote({sizes}, {promise}): {answers}"


class GaussianSession(SingleUseSession):
    """Answers to queries by noisy counts, until all queries have been asked.

    It is made by GaussianVote.session. Bottom is -1, and there may be any number of bottoms. A
    session exists once, in one process: a copy is the very same object, pickling raises, and so
    does a call in a forked child.

    Args:
        vote: The GaussianVote whose noise is drawn.
        used_queries: Number of queries that earlier sessions of the same release have used up.
        random_state: None draws from the operating system; an int or a Generator makes a
            reproducible stream for tests, which protects no one.
        budget: Budget that epsilon and delta are charged to when the session is made; None charges
            nothing.

    Guarantee:
        That of the GaussianVote, for all answers of all calls together. The running time is not
        protected.

    Examples:
        >>> from hdp_fast import stability
        >>> goal = {"epsilon": 1.0, "delta": 1e-6, "beta": 0.05}
        >>> vote = stability.GaussianVote.design(100, labels=3, **goal)
        >>> session = vote.session()
        >>> session.answer([[2000, 10, 10], [10, 10, 2000]])
        array([0, 2])
        >>> session.queries_left
        98
    """

    def __init__(
        self,
        vote: GaussianVote,
        used_queries: int,
        random_state: RandomState,
        budget: Budget | None,
    ):
        left = vote.queries - check_used("used_queries", used_queries, vote.queries)
        check_random_state(random_state)
        record = PrivacyRecord(
            mechanism=f"stability.GaussianVote, queries={vote.queries}",
            source=_SOURCE,
            neighbors="replace_one",
            epsilon=vote.epsilon,
            delta=vote.delta,
            noise=f"rounded Gaussian, sigma {float(vote.sigma):g}, on the count of each label",
            rng=rng_of(random_state),
        )
        self._vote, self._queries = vote, left
        super().__init__(record, random_state, budget)

    @property
    def bottoms_left(self) -> None:
        """None, since any number of answers may be bottom."""
        return None

    @property
    def queries_left(self) -> int:
        """Number of queries that may still be asked."""
        return self._queries

    @property
    def halted(self) -> bool:
        """Whether no query can be asked any more."""
        return self._queries == 0

    def answer(self, counts: ArrayLike) -> int | Integers:
        """Answers queries, given the votes for each label.

        Args:
            counts: Number of votes for each of the K labels of the vote, integers of shape (K,) for
                one query or (m, K) for m queries.

        Returns:
            For one query an int, a label or -1 for bottom. For m queries int64 of shape (m,).

        Raises:
            ShapeError: counts has another shape.
            ParameterError: counts holds no integers, or some outside `[0, 2**32)`; or the process
                is a forked child.
            BudgetExceeded: There are more queries than are left. Nothing is used up then.

        Guarantee:
            That of the session, when the votes of one member are replaced on every query.

        Cost:
            One draw of noise for each count, tens of nanoseconds.
        """
        votes, labels = counts_of(counts), self._vote.labels
        if votes.shape[-1] != labels:
            rule = f"this vote is between {labels:,} labels"
            raise ShapeError(f"counts has shape {votes.shape}, but {rule}")
        rows, step = votes.reshape(-1, labels), max(1, _BLOCK // labels)
        answers = np.empty(len(rows), np.int64)
        with self._hold():
            self._check_left(len(rows), None, self._queries)
            for start in range(0, len(rows), step):
                answers[start : start + step] = self._answer_block(rows[start : start + step])
            self._queries -= len(rows)
        return int(answers[0]) if votes.ndim == 1 else answers

    def _answer_block(self, counts: NDArray[np.uint32]) -> Integers:
        drawn = noise.rounded_gaussian(self._vote.sigma, counts.shape, random_state=self._rng)
        noisy: Integers = np.add(counts, drawn, dtype=np.int64)
        winners: Integers = noisy.argmax(axis=1)
        second, first = np.partition(noisy, -2, axis=1)[:, -2:].T
        return np.where(first - second >= self._vote.gap, winners, -1)

    def __repr__(self) -> str:
        return f"GaussianSession({self._record.mechanism}: {self._queries:,} queries left)"


def _mu(sigma: Fraction, queries: int) -> float:
    """The sensitivity, of two counts of each query by 1, over sigma; never too small."""
    return math.sqrt(2 * queries) / float(sigma) * (1 + 2.0**-50)


def _least_sigma(epsilon: float, delta: float, queries: int) -> Fraction:
    """The least multiple of 1 / 1,024 that is enough, but for rounding.

    Raises:
        ParameterError: epsilon and delta ask for more noise than can be certified.
    """
    sigma = round_sigma_up(math.sqrt(2 * queries) / continuous_mu(epsilon, delta))
    while gaussian_delta(_mu(sigma, queries), epsilon) > delta:
        sigma = round_sigma_up(sigma * (1 + Fraction(1, 1 << 40)))
    return sigma
