"""Tables of coins: how likely an answer gives way to privacy, level by level."""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction
from typing import Any, ClassVar, Self, TypeVar

from .. import _core
from .._support.types import RandomState
from .._support.validate import from_json, number
from ..budget.account import Budget
from ..exceptions import ParameterError
from ..record import PrivacyRecord, rng_of
from . import table_cache
from .sessions import Session

_SOURCE = "Bassily, Thakkar and Thakurta 2018, Algorithms 3 and 4, with a verified table for noise"


Restored = TypeVar("Restored")


def restored(kind: type[Restored], text: str, make: Callable[..., Restored]) -> Restored:
    """What to_json of this kind wrote, made anew from its fields.

    Raises: ParameterError for anything else, and what make raises of it.
    """
    writer = f"{kind.__name__}.to_json"

    def made(fields: dict[str, Any]) -> Restored:
        if fields.pop("kind") != kind.__name__:
            raise ParameterError(f"text is of another kind, but it must be what {writer} wrote")
        return make(**fields)

    return from_json("text", text, writer, made)


class Table:
    """What the two kinds of tables share: probabilities that are integers over 2**64."""

    _first: ClassVar[Fraction]
    _yielding: ClassVar[str]

    _T: int | None
    _m: int
    _promise: tuple[float, float, float]
    _table: _core.AnswerTable

    @property
    def m(self) -> int:
        """Queries that may be asked."""
        return self._m

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
        """The last level: from there on the probability is at most beta / (2 m)."""
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
        table = {"kind": type(self).__name__, "T": self._T, "m": self._m, **fields}
        return json.dumps(table | {"words": self._table.words})

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The table that to_json wrote, verified.

        text: from whatever source: what does not keep its promise is refused.

        Raises: ParameterError when it is not such a table.
        Cost: as verify.
        Source: none.
        """
        return restored(cls, text, cls._made)

    @classmethod
    def _designed(cls, T: Any, m: Any, epsilon: Any, delta: Any, beta: Any) -> Self:
        parameters = {"T": T, "m": m, "epsilon": epsilon, "delta": delta, "beta": beta}
        name = f"{cls.__name__} {[str(value) for value in parameters.values()]}"
        kept = table_cache.read(name)
        try:
            found = None if kept is None else cls.from_json(kept)
        except ParameterError:
            found = None
        if found is not None and found._is_for(**parameters):
            return found
        made = cls._made(**parameters)
        table_cache.write(name, made.to_json())
        return made

    @classmethod
    def _made(
        cls, T: Any, m: Any, epsilon: Any, delta: Any, beta: Any, words: list[int] | None = None
    ) -> Self:
        made = cls.__new__(cls)
        made._table = _core.AnswerTable(T, m, epsilon, delta, beta, words)
        made._T, made._m = None if T is None else int(T), int(m)
        made._promise = (float(epsilon), float(delta), float(beta))
        return made

    def _is_for(self, T: Any, m: Any, epsilon: Any, delta: Any, beta: Any) -> bool:
        numbers = (number("epsilon", epsilon), number("delta", delta), number("beta", beta))
        return (self._T, self._m, self._promise) == (T, m, numbers)

    def _opened(
        self, spent: tuple[int, int], random_state: RandomState, budget: Budget | None
    ) -> Session:
        bottoms = "" if self._T is None else f"T={self._T}, "
        record = PrivacyRecord(
            mechanism=f"stability.{type(self).__name__}, {bottoms}m={self._m}",
            source=_SOURCE,
            neighbors="replace_one",
            epsilon=self.epsilon,
            delta=self.delta,
            noise=f"{self._yielding} with a probability that falls with the distance",
            rng=rng_of(random_state),
        )
        limits = (self._T, self._m)
        return Session(self._table, limits, spent, record, random_state, budget)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self).from_json, (self.to_json(),)

    def __repr__(self) -> str:
        bottoms = "" if self._T is None else f"T={self._T:,}, "
        promise = f"epsilon={self.epsilon:g}, delta={self.delta:g}, beta={self.beta:g}"
        first, last = float(self._first), float(self.probabilities[-1])
        falls = f"{self._yielding} with probability {first:g} at level 0, {last:.3g} from level"
        return f"{type(self).__name__}({bottoms}m={self._m:,}, {promise}): {falls} {self.J:,} on"


class HazardTable(Table):
    """How likely the answer to a query is "bottom", by its distance to instability.

    A session answers each query with the winner of the vote, or with bottom with the probability of
    the level min(distance, J), one exact coin; it ends at exactly T bottoms or m queries. No other
    noise is added, neither to a distance nor to a threshold. Made by design.

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
    def T(self) -> int:
        """Bottoms that end a session."""
        return self._T or 0

    @classmethod
    def design(cls, T: int, m: int, *, epsilon: float, delta: float, beta: float) -> HazardTable:
        """Find a table of few levels, or read it from the cache.

        T: bottoms, at least 1, at the last of which a session ends: T + 1 if T unstable queries
        must all be survived. m: queries, at least 1; two for each soft label. epsilon: 0.001 to
        1,000. delta: in (0, 1). beta: in (0, 1), half of it for a bottom at level J or beyond in
        any of m queries. The cache is a file in XDG_CACHE_HOME (~/.cache), verified when read.

        Guarantee: as the class.
        Raises: ParameterError, also where no table of up to 2**17 levels keeps the promise.
        Cost: a tenth of a second for hundreds of levels, two for ten thousand.
        Source: greedy descent for every order, share of the bottoms and share of delta.
        """
        return cls._designed(T, m, epsilon, delta, beta)

    def session(
        self,
        *,
        bottoms: int = 0,
        queries: int = 0,
        random_state: RandomState = None,
        budget: Budget | None = None,
    ) -> Session:
        """Begin to answer queries.

        bottoms, queries: what an earlier session of the same release has already used of T and m.
        random_state: None draws every coin from the operating system, an int or a Generator makes a
        reproducible test stream. budget: charged epsilon and delta once, here, for the whole
        session.

        Guarantee: as the class, for this session and those it goes on from, of the same table.
        Raises: ParameterError, BudgetExceeded.
        Cost: constant.
        Source: as the class.
        """
        return self._opened((bottoms, queries), random_state, budget)


class VoteTable(Table):
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
    def design(cls, m: int, *, epsilon: float, delta: float, beta: float) -> VoteTable:
        """Find a table of few levels, or read it from the cache.

        m: queries, at least 1. epsilon, delta, beta: as HazardTable.design; beta / 2 bounds the
        probability of the minority's label at level J or beyond in any of m queries.

        Guarantee: as the class.
        Raises: ParameterError, also where no table of up to 2**17 levels keeps the promise.
        Cost: hundredths of a second for hundreds of levels.
        Source: greedy descent for every order.
        """
        return cls._designed(None, m, epsilon, delta, beta)

    def session(
        self, *, queries: int = 0, random_state: RandomState = None, budget: Budget | None = None
    ) -> Session:
        """Begin to answer queries.

        queries: what an earlier session of the same release has already used of m. random_state,
        budget: as HazardTable.session.

        Guarantee: as the class, for this session and those it goes on from, of the same table.
        Raises: ParameterError, BudgetExceeded.
        Cost: constant.
        Source: as the class.
        """
        return self._opened((0, queries), random_state, budget)
