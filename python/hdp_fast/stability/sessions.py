"""Sessions that answer queries with a table's coins until its bottoms or queries are used up."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import _core
from .._support.notes import keep_result
from .._support.random_state import check_random_state, make_key, make_stream
from .._support.types import Integers, RandomState
from .._support.uncopyable import Uncopyable
from .._support.validate import array, nonnegative_int, positive_int, refuse, whole_array
from ..budget.account import Budget, spend
from ..exceptions import BudgetExceeded, ParameterError, ShapeError
from ..record import PrivacyRecord
from .distances import check_bins, counts_of, to_unsigned, winners_of


class SingleUseSession(Uncopyable):
    """A session that answering uses up, in the process that made it; a copy is the same object.

    It charges the budget when it is made.
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
        """The PrivacyRecord of all answers together."""
        return self._record

    def _check_left(self, queries: int, bottoms: int | None, left: int) -> None:
        kind = type(self).__name__
        if bottoms == 0:
            raise BudgetExceeded(f"{kind} has ended at its last bottom, but queries were asked")
        if queries > left:
            raise BudgetExceeded(f"{queries:,} queries, but {left:,} are left")


Session = TypeVar("Session", bound=SingleUseSession)


class QuerySessions(ABC, Generic[Session]):
    """What answers as many queries as it was designed for, and has no bottoms to count."""

    @abstractmethod
    def _open_session(
        self, used: tuple[int, int], random_state: RandomState, budget: Budget | None
    ) -> Session:
        """Begin to answer, after these numbers of bottoms and of queries."""

    @keep_result
    def session(
        self,
        *,
        used_queries: int = 0,
        random_state: RandomState = None,
        budget: Budget | None = None,
    ) -> Session:
        """Begins to answer queries.

        Args:
            used_queries: Number of queries that earlier sessions of the same release have used up.
            random_state: None draws from the operating system; an int or a Generator makes a
                reproducible stream for tests, which protects no one.
            budget: Budget that epsilon and delta are charged to once, here, for the whole session;
                None charges nothing. A session that goes on from an earlier one charges them again
                if it gets a budget.

        Returns:
            A session that answers by the table, or by the noisy votes, as its class says.

        Raises:
            ParameterError: An argument is of the wrong kind, or more is used up than the
                table or the vote allows.
            BudgetExceeded: The budget has less than epsilon and delta left.

        Guarantee:
            All answers of this session, and of those that it goes on from, are (epsilon, delta)-DP
            together, if one vote of the same member is replaced on every query of all of them.
        """
        return self._open_session((0, used_queries), random_state, budget)


class TableSession(SingleUseSession):
    """Answers to queries by the coins of a table, until `max_unstable` bottoms or all queries.

    It is made by HazardTable.session or VoteTable.session. Bottom is -1. A call that reaches the
    last bottom returns the answers up to that one; later calls raise. A session exists once, in one
    process: a copy is the very same object, pickling raises, and so does a call in a forked child.

    Args:
        table: The compiled table.
        limits: The numbers of bottoms and of queries that the table allows; None bottoms for a
            VoteTable.
        used: The numbers of bottoms and of queries that earlier sessions have used up.
        record: The PrivacyRecord that is charged to the budget.
        random_state: None draws from the operating system; an int or a Generator makes a
            reproducible stream for tests, which protects no one.
        budget: Budget that the record is charged to; None charges nothing.

    Guarantee:
        That of the table, for all answers of all calls together; how many answers there are is part
        of them. The running time is not protected.

    Examples:
        >>> from hdp_fast import stability
        >>> table = stability.HazardTable.design(2, 100, epsilon=4.0, delta=1e-6, beta=1e-9)
        >>> session = table.session()
        >>> session.answer([[0, 900]] + [[450, 450]] * 9)  # ends at the second bottom
        array([ 1, -1, -1])
        >>> session.halted, session.record.epsilon
        (True, 4.0)
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
        """Number of bottoms until the session ends; None for a VoteTable."""
        return self._bottoms

    @property
    def queries_left(self) -> int:
        """Number of queries that may still be asked."""
        return self._queries

    @property
    def halted(self) -> bool:
        """Whether no query can be asked any more."""
        return self._bottoms == 0 or self._queries == 0

    def answer(self, counts: ArrayLike) -> int | Integers:
        """Answers queries, given the votes for each label.

        Args:
            counts: Number of votes for each of K labels, integers of shape (K,) for one query or
                (m, K) for m queries. The label set must be public and fixed before the query. For a
                VoteTable K is 2, and all rows of a call have the same sum: the number of members.

        Returns:
            For one query an int, a label or -1 for bottom. For m queries int64 of shape
            (answered,), where fewer than m are answered if the session ends before.

        Raises:
            ShapeError: counts has another shape.
            ParameterError: counts holds no integers, or some out of range; rows for a VoteTable
                have different sums; or the process is a forked child.
            BudgetExceeded: The session has ended, or there are more queries than are left. Nothing
                is used up then.

        Guarantee:
            That of the session, when the votes of one member are replaced on every query.

        Cost:
            One pass over the counts.
        """
        votes = counts_of(counts)
        labels = votes.shape[-1]
        if self._bottoms is None:
            return self._answer_pairs(votes)

        def ask(rng: RandomState) -> tuple[Integers, int]:
            flat = votes.reshape(-1)
            return self._table.answer_counts(flat, labels, self._bottoms or 0, make_key(rng))

        answers = self._ask(votes.size // labels, ask)
        return int(answers[0]) if votes.ndim == 1 else answers

    def answer_ones(self, ones: ArrayLike, members: int) -> int | NDArray[np.int8]:
        """Answers queries with two labels, given how many members vote for label 1.

        Args:
            ones: Number of members that vote for label 1, an integer for one query or an array of
                shape (m,), each from 0 to members. uint32 is fastest.
            members: Number of members, all of whom vote on every query; 1 to `2**31`.

        Returns:
            For one query an int: 0, 1, or -1 for bottom. For m queries int8 of shape (answered,),
            where fewer than m are answered if the session ends before.

        Raises:
            ShapeError: ones has more than one dimension.
            ParameterError: ones holds no integers, or some outside [0, members]; or the process is
                a forked child.
            BudgetExceeded: The session has ended, or there are more queries than are left. Nothing
                is used up then.

        Guarantee:
            That of the session, when the votes of one member are replaced on every query.

        Cost:
            O(members) for a call and a few nanoseconds a query.

        Examples:
            >>> from hdp_fast import stability
            >>> table = stability.VoteTable.design(100, epsilon=2.0, delta=1e-6, beta=1e-9)
            >>> table.session().answer_ones(990, members=1000)
            1
        """
        k = positive_int("members", members, 1 << 31)
        votes = whole_array("ones", ones)
        if votes.ndim > 1:
            raise ShapeError(f"ones has shape {votes.shape}, but it must be one integer or (m,)")
        flat = to_unsigned("ones", votes.reshape(-1))

        def ask(rng: RandomState) -> tuple[NDArray[np.int8], int]:
            return self._table.answer_ones(flat, k, self._bottoms, make_key(rng))

        answers = self._ask(flat.size, ask)
        return int(answers[0]) if votes.ndim == 0 else answers

    def answer_scores(self, scores: ArrayLike, bins: int) -> float | NDArray[np.float64]:
        """Answers queries for soft labels in [0, 1], given the score of each member.

        The histogram of the scores over the bins is the first query. If its answer is bottom, the
        histogram over the bins shifted by half their width is a second query; votes on the two
        margins, which no shifted bin covers, are counted for none. With two bins there is a single
        shifted bin, whose center 1/2 then nearly always is the answer.

        Args:
            scores: Real numbers in [0, 1] of shape (k,) for one query, or (k, m) for m queries: row
                i holds the scores of member i. A score below 0 falls into the first bin, one above
                1 into the last, and NaN into the first.
            bins: Number of bins, 2 to 65,536, each of width gamma = 1 / bins.

        Returns:
            For one query a float: the center of the winning bin, NaN for bottom. For m queries
            float64 of shape (answered,), where fewer than m are answered if the session ends
            before.

        Raises:
            ShapeError: scores has another number of dimensions, or there are no members.
            ParameterError: scores holds no real numbers, bins is out of range, the session is one
                of a VoteTable, or the process is a forked child.
            BudgetExceeded: The session has ended, or there are more soft labels than queries left.
                Nothing is used up then.

        Guarantee:
            That of the session, when the scores of one member are replaced on every query. A soft
            label uses up to two of the queries and of the bottoms.

        Cost:
            Some nanoseconds a score.

        Source:
            Bassily, Thakkar and Thakurta 2018, Algorithms 6 and 8, as queries of one table.

        Examples:
            >>> import numpy as np
            >>> from hdp_fast import stability
            >>> table = stability.HazardTable.design(5, 100, epsilon=4.0, delta=1e-6, beta=1e-9)
            >>> scores = np.linspace(0.61, 0.69, 900)  # all members are in the bin from .6 to .7
            >>> round(table.session().answer_scores(scores, bins=10), 2)
            0.65
        """
        size = self._check_bins(bins)
        entries = _check_scores(scores)
        flat = np.require(entries, np.float64, ["C", "A"]).reshape(-1)
        queries = entries.shape[1] if entries.ndim == 2 else 1

        def ask(left: tuple[int, int], key: bytes | None) -> tuple[Integers, int, int]:
            return self._table.answer_scores(flat, queries, size, left, key)

        answers = self._ask_twice(queries, size, ask)
        return float(answers[0]) if entries.ndim == 1 else answers

    def answer_bins(self, counts: ArrayLike) -> NDArray[np.float64]:
        """Answers queries for soft labels in [0, 1], given how many scores lie in each half bin.

        It is answer_scores for those who hold counts and no scores. Counts of disjoint groups of
        members add up, wherever the groups are.

        Args:
            counts: Number of members whose score lies in each of 2 bins cells of width gamma / 2,
                integers of shape (m, 2 bins) for m queries and bins of width gamma, at least 2.

        Returns:
            As answer_scores, float64 of shape (answered,).

        Raises:
            ShapeError: counts has another shape.
            ParameterError: counts holds no integers, or some outside `[0, 2**32)`; the session is
                one of a VoteTable, or the process is a forked child.
            BudgetExceeded: As in answer_scores.

        Guarantee:
            That of answer_scores.

        Cost:
            A pass over the counts.

        Examples:
            >>> from hdp_fast import stability
            >>> table = stability.HazardTable.design(5, 100, epsilon=4.0, delta=1e-6, beta=1e-9)
            >>> table.session().answer_bins([[0, 0, 0, 900]])  # two bins: all in the upper quarter
            array([0.75])
        """
        return self.answer_winners(winners_of(counts), np.shape(counts)[-1] // 2)

    def answer_winners(self, winners: NDArray[np.uint32], bins: int) -> NDArray[np.float64]:
        """Answers queries for soft labels, given what stability finds in counts of half bins.

        Args:
            winners: What answer_bins makes of counts: uint32 (m, 4), the winner and the distance of
                the histogram over the bins, and the same of the shifted one.
            bins: Number of bins.

        Returns:
            As answer_bins.

        Raises:
            ShapeError: winners has another shape.
            ParameterError: bins is out of range, or as in answer_bins.
            BudgetExceeded: As in answer_scores.

        Guarantee:
            That of answer_scores.
        """
        size = self._check_bins(bins)
        found = to_unsigned("winners", whole_array("winners", winners))
        if found.ndim != 2 or found.shape[1] != 4:
            raise ShapeError(f"winners has shape {found.shape}, but it must be (m, 4)")

        def ask(left: tuple[int, int], key: bytes | None) -> tuple[Integers, int, int]:
            return self._table.answer_winners(found.reshape(-1), left, key)

        return self._ask_twice(len(found), size, ask)

    def _check_bins(self, bins: int) -> int:
        if self._bottoms is None:
            raise ParameterError("session = one of a VoteTable, but scores need a HazardTable")
        return check_bins(bins)

    def _ask_twice(
        self,
        queries: int,
        bins: int,
        ask: Callable[[tuple[int, int], bytes | None], tuple[Integers, int, int]],
    ) -> NDArray[np.float64]:
        """Answers soft labels, each of which asks for a second histogram where the first fails."""
        with self._hold():
            bottoms = self._bottoms or 0
            self._check_left(queries, bottoms, self._queries)
            codes, self._bottoms, self._queries = ask((bottoms, self._queries), make_key(self._rng))
        # An even code is a bin, whose center lies half a width above its edge; an odd code is the
        # bin shifted by half a width.
        centers = (codes // 2 + 0.5 + 0.5 * (codes % 2)) / bins
        answers: NDArray[np.float64] = np.where(codes < 0, np.nan, centers)
        return answers

    def _answer_pairs(self, counts: NDArray[np.uint32]) -> int | Integers:
        if counts.shape[-1] != 2:
            raise ShapeError(f"counts has shape {counts.shape}, but a VoteTable is for two labels")
        members = counts.sum(axis=-1, dtype=np.int64)
        if counts.size and members.min() != members.max():
            # An error may depend on the number of members, which is public, but not on their votes.
            raise ParameterError(
                "counts has rows of different sums, but each is the members' number"
            )
        k = int(members.max()) if counts.size else 1
        answers = self.answer_ones(counts[..., 1], k)
        return answers if isinstance(answers, int) else answers.astype(np.int64)

    def _ask(self, queries: int, ask: Any) -> Any:
        with self._hold():
            self._check_left(queries, self._bottoms, self._queries)
            answers, bottoms = ask(self._rng)
            self._queries -= len(answers)
            if self._bottoms is not None:
                self._bottoms -= bottoms
        return answers

    def __repr__(self) -> str:
        bottoms = "" if self._bottoms is None else f"{self._bottoms:,} bottoms and "
        return f"TableSession({self._record.mechanism}: {bottoms}{self._queries:,} queries left)"


def check_used(name: str, value: int, most: int) -> int:
    """Validate what an earlier session has used up, an int from 0 to `most`.

    Raises:
        ParameterError: It is anything else.
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
