"""Tables of coins: how likely an answer gives way to privacy, level by level."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from fractions import Fraction
from typing import Any, ClassVar, Self, TypeVar

from .. import _core
from .._support.types import RandomState
from .._support.validate import from_json, number, positive_int
from ..budget.account import Budget
from ..exceptions import ParameterError
from ..record import PrivacyRecord, rng_of
from . import table_cache
from .sessions import TableSession

_SOURCE = "Bassily, Thakkar and Thakurta 2018, Algorithms 3 and 4, with a verified table for noise"
# More bottoms or queries could not be counted.
_MOST = 1 << 40

Restored = TypeVar("Restored")


def restore(kind: type[Restored], text: str, make: Callable[..., Restored]) -> Restored:
    """Makes anew what to_json of this kind wrote.

    Raises: ParameterError for anything else, and what make raises of it.
    """
    writer = f"{kind.__name__}.to_json"

    def build(fields: dict[str, Any]) -> Restored:
        if fields.pop("kind") != kind.__name__:
            raise ParameterError(f"text is of another kind, but it must be what {writer} wrote")
        return make(**fields)

    return from_json("text", text, writer, build)


class CoinTable:
    """What the two kinds of tables share: probabilities that are integers over 2**64."""

    _first: ClassVar[Fraction]
    _yielding: ClassVar[str]

    _max_unstable: int | None
    _queries: int
    _promise: tuple[float, float, float]
    _table: _core.AnswerTable

    @property
    def queries(self) -> int:
        """Queries that may be asked."""
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
        """Failure probability to aim at: half for the coins, half for the votes."""
        return self._promise[2]

    @property
    def J(self) -> int:
        """The last level: from there on the probability is at most beta / (2 queries)."""
        return len(self._table.words)

    @property
    def probabilities(self) -> list[Fraction]:
        """At levels 0 to J, exact; their denominators divide 2**64."""
        return [self._first, *(Fraction(word, 1 << 64) for word in self._table.words)]

    def verify(self) -> float:
        """Prove the guarantee anew, from the integers alone.

        Returns the epsilon at delta that the table certainly has, at most the promised one. No
        table can be made without this proof. It shares nothing with the search: for every order and
        charge of a query it finds the charge of a bottom that all neighboring levels, 0 and 1
        included, allow; every error of rounding is counted against the table.

        Raises: ParameterError if there were no proof.
        Cost: O(J), some thousand times: a second for tables of ten thousand levels.
        Source: a supermartingale for adaptive queries (hdp_fast's own); Canonne, Kamath and Steinke
            2020, Proposition 12, from its order to epsilon.
        """
        return self._table.verify()

    def to_json(self) -> str:
        """The table as a JSON object: its parameters and its integers.

        Raises: nothing.
        Cost: O(J).
        Source: none.
        """
        fields = dict(zip(("epsilon", "delta", "beta"), self._promise, strict=True))
        limits = {"max_unstable": self._max_unstable, "queries": self._queries}
        words = self._table.words
        return json.dumps({"kind": type(self).__name__, **limits, **fields, "words": words})

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The table that to_json wrote, verified.

        text: from whatever source: what does not keep its promise is refused.

        Raises: ParameterError when it is not such a table.
        Cost: as verify.
        Source: none.
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
        text = table_cache.read(name)
        try:
            cached = None if text is None else cls._verify_once(text)
        except ParameterError:
            cached = None
        if cached is not None and cached._is_for(*parameters):
            return cached
        table = cls._make(*parameters)
        table_cache.write(name, table.to_json())
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
    """How likely the answer to a query is "bottom", by its distance to instability.

    A session answers each query with the winner of the vote, or with bottom with the probability of
    the level min(distance, J), one exact coin; it ends at exactly max_unstable bottoms or after all
    its queries. No other noise is added, neither to a distance nor to a threshold. Made by design.

    Guarantee: (epsilon, delta)-DP for all answers of a session together, whoever chooses the
        queries, when one vote a query is replaced, always that of the same member; exact coins,
        integers over 2**64, verified after rounding.
    Raises: nothing.
    Cost: 8 bytes a level.
    Source: Bassily, Thakkar and Thakurta 2018, Algorithm 3, whose noisy thresholds it replaces.
    """

    _first = Fraction(1)
    _yielding = "bottom"

    @property
    def max_unstable(self) -> int:
        """Bottoms that end a session."""
        return self._max_unstable or 0

    @classmethod
    def design(
        cls, max_unstable: int, queries: int, *, epsilon: float, delta: float, beta: float
    ) -> HazardTable:
        """Find a table of few levels, or read it from the cache.

        max_unstable: bottoms, at least 1, at the last of which a session ends: T + 1 if T unstable
        queries must all be survived. queries: at least 1; two for each soft label. epsilon: 0.001
        to 1,000. delta: in (0, 1). beta: in (0, 1), half of it for a bottom at level J or beyond in
        any query. The cache is a file in XDG_CACHE_HOME (~/.cache), verified when read.

        Guarantee: as the class.
        Raises: ParameterError, also where no table of up to 2**17 levels keeps the promise.
        Cost: a tenth of a second for hundreds of levels, two for ten thousand.
        Source: greedy descent for every order, share of the bottoms and share of delta.
        """
        return cls._design(max_unstable, queries, epsilon, delta, beta)

    def session(
        self,
        *,
        used_bottoms: int = 0,
        used_queries: int = 0,
        random_state: RandomState = None,
        budget: Budget | None = None,
    ) -> TableSession:
        """Begin to answer queries.

        used_bottoms, used_queries: what earlier sessions of the same release have already used.
        random_state: None draws every coin from the operating system, an int or a Generator makes a
        reproducible test stream. budget: charged epsilon and delta once, here, for the whole
        session.

        Guarantee: as the class, for this session and those it goes on from, of the same table.
        Raises: ParameterError, BudgetExceeded.
        Cost: constant.
        Source: as the class.
        """
        return self._open_session((used_bottoms, used_queries), random_state, budget)


class VoteTable(CoinTable):
    """How likely the answer to a query with two labels is the one with fewer votes.

    A session answers every query with a label: that of the minority with the probability of the
    level min(|ones - k / 2|, J), rounded down where the number k of members is odd; no bottoms.
    Made by design.

    Guarantee: as HazardTable.
    Raises: nothing.
    Cost: 8 bytes a level.
    Source: randomized response whose bias follows the votes (hdp_fast's own), in the place of
        Bassily, Thakkar and Thakurta 2018, Algorithm 4, for binary labels.
    """

    _first = Fraction(1, 2)
    _yielding = "the minority"

    @classmethod
    def design(cls, queries: int, *, epsilon: float, delta: float, beta: float) -> VoteTable:
        """Find a table of few levels, or read it from the cache.

        queries: at least 1. epsilon, delta, beta: as HazardTable.design; beta / 2 bounds the
        probability of the minority's label at level J or beyond in any query.

        Guarantee: as the class.
        Raises: ParameterError, also where no table of up to 2**17 levels keeps the promise.
        Cost: hundredths of a second for hundreds of levels.
        Source: greedy descent for every order.
        """
        return cls._design(None, queries, epsilon, delta, beta)

    def session(
        self,
        *,
        used_queries: int = 0,
        random_state: RandomState = None,
        budget: Budget | None = None,
    ) -> TableSession:
        """Begin to answer queries.

        used_queries: what earlier sessions of the same release have already used. random_state,
        budget: as HazardTable.session.

        Guarantee: as the class, for this session and those it goes on from, of the same table.
        Raises: ParameterError, BudgetExceeded.
        Cost: constant.
        Source: as the class.
        """
        return self._open_session((0, used_queries), random_state, budget)
