"""Tables of probabilities, level by level, with which an answer gives way to one that protects."""

from __future__ import annotations

import functools
import hashlib
import json
import os
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar

from .. import _core
from .._support import atomic
from .._support.notes import keep_result
from .._support.types import RandomState
from .._support.validate import from_json, number, positive_int
from ..budget.account import Budget
from ..exceptions import ParameterError
from ..record import PrivacyRecord, rng_of
from .sessions import QuerySessions, TableSession

_SOURCE = "Bassily, Thakkar and Thakurta 2018, Algorithms 3 and 4, with a verified table for noise"
# The most bottoms or queries that the compiled module counts.
_MOST = 1 << 40

Restored = TypeVar("Restored")


def restore(kind: type[Restored], text: str, make: Callable[..., Restored]) -> Restored:
    """Makes an object anew from the text that `to_json` of its class wrote.

    Raises:
        ParameterError: The text is anything else; or what `make` raises.
    """
    writer = f"{kind.__name__}.to_json"

    def build(fields: dict[str, Any]) -> Restored:
        if fields.pop("kind") != kind.__name__:
            raise ParameterError(f"text is of another kind, but it must be what {writer} wrote")
        return make(**fields)

    return from_json("text", text, writer, build)


class CoinTable:
    """What both kinds of tables share: probabilities that are integers over `2**64`."""

    _first: ClassVar[Fraction]
    _yielding: ClassVar[str]

    _max_unstable: int | None
    _queries: int
    _promise: tuple[float, float, float]
    _table: _core.AnswerTable

    @property
    def queries(self) -> int:
        """Number of queries that may be asked."""
        return self._queries

    @property
    def epsilon(self) -> float:
        """Privacy parameter of all answers together."""
        return self._promise[0]

    @property
    def delta(self) -> float:
        """Privacy parameter of all answers together."""
        return self._promise[1]

    @property
    def beta(self) -> float:
        """Failure probability that the design aims at: half for the coins, half for the votes."""
        return self._promise[2]

    @property
    def J(self) -> int:
        """The last level. From there on the probability is at most beta / (2 queries)."""
        return len(self._table.words)

    @property
    def probabilities(self) -> list[Fraction]:
        """The exact probabilities of the levels 0 to J; their denominators divide `2**64`."""
        return [self._first, *(Fraction(word, 1 << 64) for word in self._table.words)]

    def verify(self) -> float:
        """Proves the guarantee anew, from the integers of the table alone.

        No table can be made without this proof, which shares nothing with the search for the table.
        For each Renyi order and each charge of a query, it computes the charge of a bottom that
        suffices for all pairs of neighboring levels, 0 and 1 included. Every rounding error is
        counted against the table.

        Returns:
            The epsilon at delta that the table certainly has, at most the promised one.

        Raises:
            ParameterError: There is no proof. This cannot happen to a table that exists.

        Cost:
            O(J), some thousand times: a second for tables of ten thousand levels.

        Source:
            A supermartingale for adaptive queries (hdp_fast's own); Canonne, Kamath and Steinke
            2020, Proposition 12, from its Renyi divergence to epsilon.
        """
        return self._table.verify()

    def to_json(self) -> str:
        """Writes the table as JSON.

        Returns:
            A JSON object of the parameters and the integers, which from_json reads.

        Cost:
            O(J).
        """
        fields = dict(zip(("epsilon", "delta", "beta"), self._promise, strict=True))
        limits = {"max_unstable": self._max_unstable, "queries": self._queries}
        words = self._table.words
        return json.dumps({"kind": type(self).__name__, **limits, **fields, "words": words})

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Reads the table that to_json wrote, and verifies it.

        Args:
            text: The JSON object, from any source: a table that does not keep its promise is
                refused.

        Returns:
            The table.

        Raises:
            ParameterError: text is not such a table, or its proof fails.

        Cost:
            That of verify.
        """
        return restore(cls, text, cls._make)

    @classmethod
    @functools.lru_cache(maxsize=32)
    def _verify_once(cls, text: str) -> Self:
        """A kept table; the proof for the same integers is the same."""
        return cls.from_json(text)

    @classmethod
    def _design(cls, *parameters: Any) -> Self:
        name = f"{cls.__name__} {[str(value) for value in parameters]}"
        text = read_text(name)
        try:
            cached = None if text is None else cls._verify_once(text)
        except ParameterError:
            cached = None
        if cached is not None and cached._is_for(*parameters):
            return cached
        table = cls._make(*parameters)
        write_text(name, table.to_json())
        return table

    @classmethod
    def _make(
        cls,
        max_unstable: Any,
        queries: Any,
        epsilon: Any,
        delta: Any,
        beta: Any,
        words: list[int] | None = None,
    ) -> Self:
        table = cls.__new__(cls)
        if max_unstable is not None:
            max_unstable = positive_int("max_unstable", max_unstable, _MOST)
        table._max_unstable, table._queries = max_unstable, positive_int("queries", queries, _MOST)
        table._table = _core.AnswerTable(
            table._max_unstable, table._queries, epsilon, delta, beta, words
        )
        table._promise = (float(epsilon), float(delta), float(beta))
        return table

    def _is_for(self, max_unstable: Any, queries: Any, epsilon: Any, delta: Any, beta: Any) -> bool:
        numbers = (number("epsilon", epsilon), number("delta", delta), number("beta", beta))
        promised = (self._max_unstable, self._queries, self._promise)
        return promised == (max_unstable, queries, numbers)

    def _limits(self, separator: str = "") -> str:
        """The numbers of bottoms and of queries, as a record and a repr show them."""
        bottoms = (
            "" if self._max_unstable is None else f"max_unstable={self._max_unstable:{separator}}, "
        )
        return f"{bottoms}queries={self._queries:{separator}}"

    def _open_session(
        self, used: tuple[int, int], random_state: RandomState, budget: Budget | None
    ) -> TableSession:
        record = PrivacyRecord(
            mechanism=f"stability.{type(self).__name__}, {self._limits()}",
            source=_SOURCE,
            neighbors="replace_one",
            epsilon=self.epsilon,
            delta=self.delta,
            noise=f"{self._yielding} with a probability that falls with the distance",
            rng=rng_of(random_state),
        )
        limits = (self._max_unstable, self._queries)
        return TableSession(self._table, limits, used, record, random_state, budget)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self).from_json, (self.to_json(),)

    def __repr__(self) -> str:
        promise = f"epsilon={self.epsilon:g}, delta={self.delta:g}, beta={self.beta:g}"
        first, last = float(self._first), float(self.probabilities[-1])
        falls = f"{self._yielding} with probability {first:g} at level 0, {last:.3g} from level"
        return f"{type(self).__name__}({self._limits(',')}, {promise}): {falls} {self.J:,} on"


class HazardTable(CoinTable):
    """The probability that a query is answered with bottom, by its distance to instability.

    A session answers each query with the winner of the vote or with bottom (-1). One exact coin
    decides; its probability of bottom is that of the level min(distance, J). At distance 0 the
    answer is always bottom. The session ends at exactly `max_unstable` bottoms, or after all its
    queries. No noise is added to a distance or to a threshold.

    A table is made by design or from_json.

    Guarantee:
        All answers of a session together are (epsilon, delta)-DP, whoever chooses the queries, when
        one vote is replaced on every query, always that of the same member. The random draws are
        exact: their probabilities are integers over `2**64`, and the proof is about these integers.

    Cost:
        8 bytes a level.

    Source:
        Bassily, Thakkar and Thakurta 2018, Algorithm 3, whose noisy thresholds the table replaces.

    Examples:
        >>> from hdp_fast import stability
        >>> table = stability.HazardTable.design(5, 100, epsilon=4.0, delta=1e-6, beta=1e-9)
        >>> session = table.session()
        >>> session.answer([[500, 500, 0], [10, 980, 10]])  # a tie, then near agreement
        array([-1,  1])
        >>> session.bottoms_left, session.queries_left
        (4, 98)
    """

    _first = Fraction(1)
    _yielding = "bottom"

    @property
    def max_unstable(self) -> int:
        """Number of bottoms that end a session."""
        return self._max_unstable or 0

    @classmethod
    def design(
        cls, max_unstable: int, queries: int, *, epsilon: float, delta: float, beta: float
    ) -> HazardTable:
        """Finds a table with few levels, or reads it from the cache.

        The cache is a folder in XDG_CACHE_HOME, or in ~/.cache. A table from it is verified when it
        is read.

        Args:
            max_unstable: Number of bottoms, at the last of which a session ends; 1 to `2**40`. If a
                session is to survive T unstable queries, it must be T + 1.
            queries: Number of queries, 1 to `2**40`. A soft label uses up to two.
            epsilon: Privacy parameter of all answers together, 0.001 to 1,000.
            delta: Privacy parameter of all answers together, in (0, 1).
            beta: Failure probability, in (0, 1). Half of it bounds the probability of a bottom on
                any query at level J or beyond. The other half is left for the votes, see
                members_needed.

        Returns:
            The table.

        Raises:
            ParameterError: A parameter is out of range, or no table of up to `2**17` levels keeps
                the promise.

        Guarantee:
            That of the class, proved by verify before the table is returned.

        Cost:
            A tenth of a second for hundreds of levels, two seconds for ten thousand.

        Source:
            For each Renyi order, share of the bottoms in the divergence and share of delta for
            level 0, the probabilities fall as fast as the charges allow. The search chooses these
            three numbers.
        """
        return cls._design(max_unstable, queries, epsilon, delta, beta)

    @keep_result
    def session(
        self,
        *,
        used_bottoms: int = 0,
        used_queries: int = 0,
        random_state: RandomState = None,
        budget: Budget | None = None,
    ) -> TableSession:
        """Begins to answer queries.

        Args:
            used_bottoms: Number of bottoms that earlier sessions of the same release have used up.
            used_queries: Number of queries that earlier sessions of the same release have used up.
            random_state: None draws from the operating system; an int or a Generator makes a
                reproducible stream for tests, which protects no one.
            budget: Budget that epsilon and delta are charged to once, here, for the whole session;
                None charges nothing. A session that goes on from an earlier one charges them again
                if it gets a budget.

        Returns:
            A TableSession.

        Raises:
            ParameterError: An argument is of the wrong kind, or more is used up than the table
                allows.
            BudgetExceeded: The budget has less than epsilon and delta left.

        Guarantee:
            All answers of this session, and of those that it goes on from, are (epsilon, delta)-DP
            together, if one vote of the same member is replaced on every query of all of them.
        """
        return self._open_session((used_bottoms, used_queries), random_state, budget)


class VoteTable(CoinTable, QuerySessions[TableSession]):
    """The probability that a query with two labels is answered with the label of fewer votes.

    A session answers every query with 0 or 1. The label of the minority is the answer with the
    probability of the level min(|ones - k / 2|, J), rounded down where the number k of members is
    odd; ones are the votes for label 1. There are no bottoms.

    A table is made by design or from_json.

    Guarantee:
        All answers of a session together are (epsilon, delta)-DP, whoever chooses the queries, when
        one vote is replaced on every query, always that of the same member. The random draws are
        exact: their probabilities are integers over `2**64`, and the proof is about these integers.

    Cost:
        8 bytes a level.

    Source:
        Randomized response whose bias follows the votes (hdp_fast's own), instead of Bassily,
        Thakkar and Thakurta 2018, Algorithm 4, for binary labels.

    Examples:
        >>> from hdp_fast import stability
        >>> table = stability.VoteTable.design(100, epsilon=2.0, delta=1e-6, beta=1e-9)
        >>> session = table.session()
        >>> session.answer_ones([995, 3], members=1000)
        array([1, 0], dtype=int8)
        >>> session.queries_left, session.bottoms_left
        (98, None)
    """

    _first = Fraction(1, 2)
    _yielding = "the minority"

    @classmethod
    def design(cls, queries: int, *, epsilon: float, delta: float, beta: float) -> VoteTable:
        """Finds a table with few levels, or reads it from the cache.

        The cache is that of HazardTable.design.

        Args:
            queries: Number of queries, 1 to `2**40`.
            epsilon: Privacy parameter of all answers together, 0.001 to 1,000.
            delta: Privacy parameter of all answers together, in (0, 1).
            beta: Failure probability, in (0, 1). Half of it bounds the probability that any query
                at level J or beyond is answered with the minority's label. The other half is left
                for the votes, see members_needed.

        Returns:
            The table.

        Raises:
            ParameterError: A parameter is out of range, or no table of up to `2**17` levels keeps
                the promise.

        Guarantee:
            That of the class, proved by verify before the table is returned.

        Cost:
            Hundredths of a second for hundreds of levels.

        Source:
            For each Renyi order the probabilities fall as fast as the charge of a query allows. The
            search chooses the order.
        """
        return cls._design(None, queries, epsilon, delta, beta)


# A folder of texts that take long to compute: whoever reads one verifies it.
# Raised by one whenever the texts change their meaning, so that old ones are not read.
_FORMAT = 2
# Longer than the text of any table.
_MOST_BYTES = 1 << 23


def read_text(name: str) -> str | None:
    """The text that was kept under a name; None if there is none or it cannot be read."""
    try:
        with _path_of(name).open(encoding="utf-8") as file:
            return file.read(_MOST_BYTES)
    except (OSError, RuntimeError, UnicodeDecodeError):
        return None


def write_text(name: str, text: str) -> None:
    """Keep a text under a name, whole or not at all. A failure to write is ignored."""
    try:
        path = _path_of(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        atomic.replace(path, lambda out: out.write(text.encode()))
    except (OSError, RuntimeError):
        return


def _path_of(name: str) -> Path:
    named = Path(os.environ.get("XDG_CACHE_HOME", ""))
    # The specification of that variable says that a relative path is ignored.
    folder = named if named.is_absolute() else Path.home() / ".cache"
    digest = hashlib.sha256(f"{_FORMAT} {name}".encode()).hexdigest()
    return folder / "hdp_fast" / f"{digest}.json"
