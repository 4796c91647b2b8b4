"""Votes of many labels with discrete Gaussian noise: no answer where the noisy gap is small."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import noise
from .._support.random_state import check_random_state
from .._support.types import Integers, RandomState
from .._support.validate import number, positive_int, probability, refuse
from ..accounting.discrete_gaussian import LEAST_SIGMA, composed_delta, composed_sigma
from ..budget.account import Budget
from ..exceptions import ParameterError, ShapeError
from ..record import PrivacyRecord, rng_of
from .sessions import SingleUseSession, check_used
from .tables import restore
from .votes import counts_of

THRESHOLD = 1.0
_SOURCE = "Papernot et al. 2018, GNMax, with discrete noise, all of it looked at"
_MOST = 1 << 40
_EPSILONS = (0.001, 1_000.0)
_LARGEST_THRESHOLD = 1_000.0
# Beyond, draws would come near the ends of int64, and longer fractions take longer to draw with.
_LARGEST_SIGMA, _LARGEST_DENOMINATOR = 1 << 49, 1 << 10
# Noisy counts that are held at a time.
_BLOCK = 1 << 21


@dataclass(frozen=True, kw_only=True, repr=False)
class GaussianVote:
    """Noise on the votes for each of many labels, and the gap below which there is no answer.

    A session adds discrete Gaussian noise to all counts of a query and answers with the label of
    the largest noisy one, ties to the smallest label, or with bottom where the next one is less
    than the gap below it. Counts with noise could all be published at this cost: a bottom needs no
    check of its own, and there may be any number of them. Made by design.

    queries: how many may be asked, at least 1. labels: size of the public label set, at least 2.
    epsilon: 0.001 to 1,000. delta: 1e-200 to 1. beta: failure probability that members_needed aims
    at, in (0, 1). threshold: the gap that an answer needs, in units of sigma, 0 to 1,000. sigma: of
    the noise, a Fraction whose denominator is at most 1,024, 3 to 2**49.

    Guarantee: (epsilon, delta)-DP for all answers of a session together, whoever chooses the
        queries, when one vote a query is replaced, always that of the same member: two counts of a
        query change by 1, whose noise costs 1 / (2 sigma**2)-zCDP each, queries / sigma**2 in all.
        The delta is that of their exact joint curve, at epsilon = 1 with 7 % less noise than zCDP
        alone would want. Exact coins.
    Raises: ParameterError, also for a sigma that is not enough.
    Cost: constant.
    Source: Papernot et al. 2018, Section 4.1 (GNMax); Canonne, Kamath and Steinke 2020; that the
        noisy gap costs nothing besides is post-processing (hdp_fast's own use).
    """

    queries: int
    labels: int
    epsilon: float
    delta: float
    beta: float
    threshold: float
    sigma: Fraction

    def __post_init__(self) -> None:
        """Refuse what would not keep its promise."""
        checked = {
            **_check_promise(self.queries, self.epsilon, self.delta, self.beta),
            **_check_vote(self.labels, self.threshold),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)
        sigma = self.sigma
        if (
            not isinstance(sigma, Fraction)
            or sigma.denominator > _LARGEST_DENOMINATOR
            or not LEAST_SIGMA <= sigma <= _LARGEST_SIGMA
        ):
            refuse(
                "sigma",
                sigma,
                "it must be a Fraction, its denominator at most 1,024, from 3 to 2**49",
            )
        if composed_delta(sigma, 2 * self.queries, self.epsilon) > self.delta:
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
        """The least noise that keeps the promise, but for a millionth.

        queries, epsilon, delta, beta, labels, threshold: as the class. The smaller the threshold,
        the more answers and the fewer of them right; 0 leaves no bottom.

        Guarantee: as the class.
        Raises: ParameterError.
        Cost: hundredths of a second.
        Source: the continuous curve, raised until the exact one holds.
        """
        promise = _check_promise(queries, epsilon, delta, beta)
        vote = _check_vote(labels, threshold)
        sigma = composed_sigma(promise["epsilon"], promise["delta"], 2 * promise["queries"])
        return cls(**promise, **vote, sigma=sigma)

    @property
    def gap(self) -> int:
        """Votes by which the largest noisy count must exceed the next one."""
        return math.ceil(Fraction(self.threshold) * self.sigma)

    def session(
        self,
        *,
        used_queries: int = 0,
        random_state: RandomState = None,
        budget: Budget | None = None,
    ) -> GaussianSession:
        """Begin to answer queries.

        used_queries: what earlier sessions of the same release have already used. random_state:
        None draws all noise from the operating system, an int or a Generator makes a reproducible
        test stream. budget: charged epsilon and delta once, here, for the whole session.

        Guarantee: as the class, for this session and those it goes on from, of the same vote.
        Raises: ParameterError, BudgetExceeded.
        Cost: constant.
        Source: as the class.
        """
        return GaussianSession(self, used_queries, random_state, budget)

    def verify(self) -> float:
        """The epsilon at delta that this noise certainly has, at most the promised one.

        Raises: nothing.
        Cost: tenths of a second at most.
        Source: bisection of the exact curve, from which the noise was chosen; to a millionth.
        """
        low, high = 0.0, self.epsilon
        while high - low > 1e-6 * high:
            middle = (low + high) / 2
            holds = composed_delta(self.sigma, 2 * self.queries, middle) <= self.delta
            low, high = (low, middle) if holds else (middle, high)
        return high

    def to_json(self) -> str:
        """The vote as a JSON object: its parameters and sigma as two integers.

        Raises: nothing.
        Cost: constant.
        Source: none.
        """
        sigma = self.sigma.as_integer_ratio()
        return json.dumps({"kind": type(self).__name__, **vars(self), "sigma": sigma})

    @classmethod
    def from_json(cls, text: str) -> GaussianVote:
        """The vote that to_json wrote, verified.

        text: from whatever source: what does not keep its promise is refused.

        Raises: ParameterError when it is not such a vote.
        Cost: as design.
        Source: none.
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

    Made by GaussianVote.session. Bottom is -1; there may be any number of them. There is one
    session in one process: a copy is the very same object, pickling raises, and so does a call in a
    forked child.

    Guarantee: as GaussianVote, for all answers of all calls together. The running time is not
        protected.
    Raises: nothing.
    Cost: constant.
    Source: as GaussianVote.
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
            noise=f"discrete Gaussian, sigma {float(vote.sigma):g}, on the count of each label",
            rng=rng_of(random_state),
        )
        self._vote, self._queries = vote, left
        super().__init__(record, random_state, budget)

    @property
    def bottoms_left(self) -> None:
        """None: any number of answers may be bottom."""
        return None

    @property
    def queries_left(self) -> int:
        """Queries that may still be asked."""
        return self._queries

    @property
    def halted(self) -> bool:
        """Whether no query can be asked any more."""
        return self._queries == 0

    def answer(self, counts: ArrayLike) -> int | Integers:
        """Answer queries, given the votes for each label.

        counts: integers (K,) for one query, or (m, K) for m of them, K the size of the label set.
        Returns a label or -1 as an int; for m queries int64 (m,).

        Guarantee: as the class.
        Raises: ShapeError, ParameterError; BudgetExceeded for more queries than are left. Nothing
            is used up then.
        Cost: a draw of noise for each count, tens of nanoseconds.
        Source: as GaussianVote.
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
        drawn = noise.discrete_gaussian(self._vote.sigma, counts.shape, random_state=self._rng)
        noisy: Integers = np.add(counts, drawn, dtype=np.int64)
        winners: Integers = noisy.argmax(axis=1)
        second, first = np.partition(noisy, -2, axis=1)[:, -2:].T
        return np.where(first - second >= self._vote.gap, winners, -1)

    def __repr__(self) -> str:
        return f"GaussianSession({self._record.mechanism}: {self._queries:,} queries left)"


def _check_promise(queries: Any, epsilon: Any, delta: Any, beta: Any) -> dict[str, Any]:
    least, most = _EPSILONS
    total = number("epsilon", epsilon)
    if not least <= total <= most:
        refuse("epsilon", epsilon, f"it must lie in [{least}, {most:,g}]")
    shares = {name: probability(name, value) for name, value in (("delta", delta), ("beta", beta))}
    return {"queries": positive_int("queries", queries, _MOST), "epsilon": total, **shares}


def _check_vote(labels: Any, threshold: Any) -> dict[str, Any]:
    size, least = positive_int("labels", labels, _MOST), number("threshold", threshold)
    if size == 1:
        raise ParameterError("labels = 1, but a vote needs at least 2")
    if not 0 <= least <= _LARGEST_THRESHOLD:
        refuse("threshold", threshold, f"it must lie in [0, {_LARGEST_THRESHOLD:,g}]")
    return {"labels": size, "threshold": least}
