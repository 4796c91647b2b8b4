"""Sessions: queries answered by a table's coins until its bottoms or queries are used up."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import _core
from .._support.random_state import check_random_state, make_key, make_stream
from .._support.types import Integers, RandomState
from .._support.uncopyable import Uncopyable
from .._support.validate import array, nonnegative_int, positive_int, refuse
from ..budget.account import Budget, spend
from ..exceptions import BudgetExceeded, ParameterError, ShapeError
from ..record import PrivacyRecord
from .votes import counts_of, to_unsigned


class SingleUseSession(Uncopyable):
    """Answers until it is used up, in one process alone: a copy is the very same object.

    Charges the budget when it is made.
    """

    _copied = "ask the same queries again"
    _instead = "ask in that process and hand the answers on"

    def __init__(self, record: PrivacyRecord, random_state: RandomState, budget: Budget | None):
        super().__init__()
        self._record = record
        self._rng = make_stream(random_state)
        with spend(budget, record):
            pass

    @property
    def record(self) -> PrivacyRecord:
        """What protects all answers together."""
        return self._record

    def _check_left(self, queries: int, bottoms: int | None, left: int) -> None:
        kind = type(self).__name__
        if bottoms == 0:
            raise BudgetExceeded(f"{kind} has ended at its last bottom, but queries were asked")
        if queries > left:
            raise BudgetExceeded(f"{queries:,} queries, but {left:,} are left")


class TableSession(SingleUseSession):
    """Answers to queries by the coins of a table, until max_unstable bottoms or all queries.

    Made by HazardTable.session or VoteTable.session. Bottom is -1. Where a call reaches the last
    bottom, it returns the answers up to that one; later calls raise. There is one session in one
    process: a copy is the very same object, pickling raises, and so does a call in a forked child.

    Guarantee: as the table, for all answers of all calls together; how many there are is part of
        the answers. The running time is not protected.
    Raises: nothing.
    Cost: constant.
    Source: as the table.
    """

    def __init__(
        self,
        table: _core.AnswerTable,
        limits: tuple[int | None, int],
        used: tuple[int, int],
        record: PrivacyRecord,
        random_state: RandomState,
        budget: Budget | None,
    ):
        max_unstable, queries = limits
        used_bottoms = check_used("used_bottoms", used[0], max_unstable or 0)
        used_queries = check_used("used_queries", used[1], queries)
        check_random_state(random_state)
        self._table = table
        self._bottoms = None if max_unstable is None else max_unstable - used_bottoms
        self._queries = queries - used_queries
        super().__init__(record, random_state, budget)

    @property
    def bottoms_left(self) -> int | None:
        """Bottoms until the session ends; None where there are none."""
        return self._bottoms

    @property
    def queries_left(self) -> int:
        """Queries that may still be asked."""
        return self._queries

    @property
    def halted(self) -> bool:
        """Whether no query can be asked any more."""
        return self._bottoms == 0 or self._queries == 0

    def answer(self, counts: ArrayLike) -> int | Integers:
        """Answer queries, given the votes for each label.

        counts: integers (K,) for one query, or (m, K) for m of them, K the size of the public label
        set, fixed before the query; for a VoteTable K = 2. Returns a label or -1 as an int; for m
        queries int64 (answered,), as many as came until the session ended.

        Guarantee: as the class.
        Raises: ShapeError, ParameterError; BudgetExceeded for more queries than are left and once
            the session has ended. Nothing is used up then.
        Cost: one pass over the counts.
        Source: as the table.
        """
        votes = counts_of(counts)
        labels = votes.shape[-1]
        if self._bottoms is None:
            return self._answer_pairs(votes)

        def ask(rng: RandomState) -> Integers:
            flat = votes.reshape(-1)
            return self._table.answer_counts(flat, labels, self._bottoms or 0, make_key(rng))

        answers = self._ask(votes.size // labels, ask)
        return int(answers[0]) if votes.ndim == 1 else answers

    def answer_ones(self, ones: ArrayLike, members: int) -> int | NDArray[np.int8]:
        """Answer queries with two labels, given how many members vote for label 1.

        ones: an integer for one query, or (m,), from 0 to members; fastest as uint32. members: k,
        all of whom vote on every query, 1 to 2**31. Returns 0, 1 or -1 as an int; for m queries
        int8 (answered,), as many as came until the session ended.

        Guarantee: as the class.
        Raises: as answer.
        Cost: a few nanoseconds a query.
        Source: as the table.
        """
        k = positive_int("members", members, 1 << 31)
        votes = array("ones", ones)
        if votes.ndim > 1:
            raise ShapeError(f"ones has shape {votes.shape}, but it must be one integer or (m,)")
        flat = to_unsigned("ones", votes.reshape(-1))

        def ask(rng: RandomState) -> NDArray[np.int8]:
            return self._table.answer_ones(flat, k, self._bottoms, make_key(rng))

        answers = self._ask(flat.size, ask)
        return int(answers[0]) if votes.ndim == 0 else answers

    def answer_scores(self, scores: ArrayLike, bins: int) -> float | NDArray[np.float64]:
        """Answer queries for soft labels, given the score of each member.

        scores: (k,) for one query, or (k, m), in [0, 1]. bins: 2 to 65,536, of width gamma = 1 /
        bins. The histogram of the scores is the first query; after a bottom the histogram over the
        bins shifted by gamma / 2 is a second one, where votes on the margins are for no bin that
        can win. Returns the center of the winning bin as a float, NaN for bottom; for m queries
        float64 (answered,). A score outside [0, 1] falls into the nearest bin, NaN into the first.

        Guarantee: as the class; a soft label uses up to two of the queries and of the bottoms.
        Raises: as answer; BudgetExceeded for more soft labels than queries are left.
        Cost: some nanoseconds a score.
        Source: Bassily, Thakkar and Thakurta 2018, Algorithms 6 and 8, as queries of one table.
        """
        if self._bottoms is None:
            raise ParameterError("session = one of a VoteTable, but scores need a HazardTable")
        size = positive_int("bins", bins, 1 << 16)
        if size == 1:
            raise ParameterError("bins = 1, but it must be at least 2")
        entries = _check_scores(scores)
        flat = np.require(entries, np.float64, ["C", "A"]).reshape(-1)
        queries = entries.shape[1] if entries.ndim == 2 else 1
        with self._hold():
            self._check_left(queries, self._bottoms, self._queries)
            left = (self._bottoms, self._queries)
            key = make_key(self._rng)
            codes, bottoms, rest = self._table.answer_scores(flat, queries, size, left, key)
            self._bottoms, self._queries = bottoms, rest
        # Even codes are bins, centered half a width above their edge; odd ones lie half a width on.
        centers = (codes // 2 + 0.5 + 0.5 * (codes % 2)) / size
        answers = np.where(codes < 0, np.nan, centers)
        return float(answers[0]) if entries.ndim == 1 else answers

    def _answer_pairs(self, counts: NDArray[np.uint32]) -> int | Integers:
        if counts.shape[-1] != 2:
            raise ShapeError(f"counts has shape {counts.shape}, but a VoteTable is for two labels")
        members = counts.sum(axis=-1, dtype=np.int64)
        if counts.size and members.min() != members.max():
            # How many members vote is public: their votes are not.
            raise ParameterError(
                "counts has rows of different sums, but each is the members' number"
            )
        k = int(members.max()) if counts.size else 1
        answers = self.answer_ones(counts[..., 1], k)
        return answers if isinstance(answers, int) else answers.astype(np.int64)

    def _ask(self, queries: int, ask: Any) -> Any:
        with self._hold():
            self._check_left(queries, self._bottoms, self._queries)
            answers = ask(self._rng)
            self._queries -= len(answers)
            if self._bottoms is not None:
                self._bottoms -= int(np.count_nonzero(answers == -1))
        return answers

    def __repr__(self) -> str:
        bottoms = "" if self._bottoms is None else f"{self._bottoms:,} bottoms and "
        return f"TableSession({self._record.mechanism}: {bottoms}{self._queries:,} queries left)"


def check_used(name: str, value: int, most: int) -> int:
    """What an earlier session has used up, an int from 0 to `most`.

    Raises: ParameterError otherwise.
    """
    used = nonnegative_int(name, value)
    if used > most:
        refuse(name, used, f"the table allows {most}")
    return used


def _check_scores(value: ArrayLike) -> NDArray[Any]:
    scores = array("scores", value)
    if scores.ndim not in (1, 2) or not scores.shape[0]:
        raise ShapeError(f"scores has shape {scores.shape}, but it must be (k,) or (k, m)")
    if scores.dtype.kind not in "buif":
        raise ParameterError(f"scores has dtype {scores.dtype}, but it must hold real numbers")
    return scores
