"""Learning MASKED-PARITY: from statistical queries, and from one bit of every agent."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..._support.json_text import JsonObject
from ..._support.random_state import check_random_state, make_stream
from ..._support.types import Bits, Integers, RandomState
from ..._support.validate import nonnegative_int, probability, refuse
from ...exceptions import AgentsExhausted, ParameterError, ShapeError
from ...record import PrivacyRecord
from ..agents import Agents
from ..estimation import advantage
from ..pool import QuestionFunction
from ..queries.oracles import Losses, SQOracle, ask_together
from ..randomizers.base import MOST_AGENTS, TOO_MANY
from .concepts import (
    MaskedParity,
    WeakMaskedParity,
    index_and_half,
    parity_of,
    validate_size,
    width,
)
from .oracles import MaskedParityAgents

Source = SQOracle | Agents | MaskedParityAgents

# The number of agents asked at once: their examples stay in the processor's cache.
_BLOCK = 1 << 18


class MaskedParityNeeds(NamedTuple):
    """The agents needed to learn a MASKED-PARITY.

    Attributes:
        first: Agents of the first round, which finds r.
        second: Agents of the second round, which finds a.
        groups: Agents of both rounds, if d groups of agents answered one each of the first d
            queries.

    Examples:
        >>> from hdp_fast import local
        >>> needs = local.masked_parity_agents(64, beta=0.05, epsilon=1.0)
        >>> needs.first + needs.second, needs.groups  # 64 times fewer than one group for each query
        (1100550, 70412742)
    """

    first: int
    second: int
    groups: int


@dataclass(frozen=True, eq=False)
class MaskedParityResult(JsonObject):
    """The result of learn_masked_parity and learn_masked_parity_weakly.

    Attributes:
        concept: What was learned: a MaskedParity, or a WeakMaskedParity from the weak learner.
        queries: Number of statistical queries that were asked or estimated.
        agents: Number of agents that were asked; 0 for an oracle.
        agents_record: PrivacyRecord of each agent's answer; None for an oracle.

    Examples:
        >>> from hdp_fast import local
        >>> X, concept = local.masked_parity_domain(4), local.MaskedParity([1, 0, 1, 1], 1)
        >>> result = local.learn_masked_parity(local.ExactOracle(X, concept.predict(X)), 4)
        >>> local.MaskedParityResult.from_json(result.to_json()).concept
        MaskedParity(r=array([1, 0, 1, 1], dtype=uint8), a=1)
    """

    concept: MaskedParity | WeakMaskedParity
    queries: int
    agents: int
    agents_record: PrivacyRecord | None

    def predict(self, X: Any) -> Bits:
        """Predicts the labels of examples by the concept that was learned.

        Args:
            X: Examples, as for MaskedParity.predict.

        Returns:
            The labels, uint8 of shape (m,).

        Raises:
            ShapeError: X has another shape.
            ParameterError: X has entries other than 0 and 1.
        """
        return self.concept.predict(X)

    def _to_fields(self) -> dict[str, Any]:
        """The attributes, r of the concept as a text, bit by bit."""
        concept = self.concept
        return {
            "r": "".join(map(str, concept.r.tolist())),
            "a": concept.a if isinstance(concept, MaskedParity) else None,
            "queries": self.queries,
            "agents": self.agents,
            "agents_record": self.agents_record,
        }

    @classmethod
    def _from_fields(cls, fields: dict[str, Any]) -> Self:
        r, a, record = np.array([*map(int, fields["r"])]), fields["a"], fields["agents_record"]
        return cls(
            WeakMaskedParity(r) if a is None else MaskedParity(r, a),
            nonnegative_int("queries", fields["queries"]),
            nonnegative_int("agents", fields["agents"]),
            None if record is None else PrivacyRecord(**record),
        )


def masked_parity_agents(d: int, *, beta: float, epsilon: float) -> MaskedParityNeeds:
    """Counts the agents that learn_masked_parity needs.

    Args:
        d: Number of bits of x, a power of two from 2 to 32,768.
        beta: Probability with which any bit of r, or a, may be wrong, in (0, 1).
        epsilon: Privacy parameter of each agent's answer, above 0.

    Returns:
        A MaskedParityNeeds.

    Raises:
        ParameterError: A parameter is out of range, or more than 1e18 agents would be needed.

    Guarantee:
        With this many agents, drawn independently from the uniform distribution, every bit is
        right, except with probability beta.

    Source:
        Each of the d + 1 bits is the sign of a sum of N independent signs of mean m, which is wrong
        with probability at most `(1 - m**2)**(N / 2)` (Hoeffding 1963, Theorem 1). Here m is
        tanh(epsilon / 2) times `1 / (2 d)` for a bit of r, and times 1/2 for a. A union bound
        covers all bits.

    Examples:
        >>> from hdp_fast import local
        >>> local.masked_parity_agents(8, beta=0.05, epsilon=1.0)
        MaskedParityNeeds(first=12448, second=190, groups=99758)
    """
    size, edge = validate_size("d", d), advantage(epsilon)
    failure = probability("beta", beta) / (size + 1)
    one, second = (
        2 * math.log(1 / failure) / -math.log1p(-((edge * mean) ** 2)) for mean in (0.5 / size, 0.5)
    )
    if not one * size < MOST_AGENTS:
        raise ParameterError(f"beta = {beta} and epsilon = {epsilon} {TOO_MANY}")
    # Every row must be used equally often, and so must 0 and 1 as answers of agents with b = 1.
    first, last = 2 * size * math.ceil(one / (2 * size)), 2 * math.ceil(second / 2)
    return MaskedParityNeeds(first, last, size * math.ceil(one) + last)


def learn_masked_parity(
    source: Source, d: int, *, beta: float = 0.05, random_state: RandomState = None
) -> MaskedParityResult:
    """Learns a MASKED-PARITY under the uniform distribution, in two rounds.

    An oracle gets d queries of tolerance `1 / (4 d + 1)`, whose answers reveal the bits of r, and
    then one query of tolerance 1/5, which depends on r and whose answer reveals a.

    Each agent sends one bit through randomized response. In the first round this bit is a Hadamard
    response: the agent's symbol is its index i, or "b = 0"; public rows of a Walsh-Hadamard matrix
    are given to the agents in turn; and the label enters as a sign. One Walsh transform of the
    counts estimates all d queries at once, from d times fewer agents than one group for each query.
    (A frequency oracle over pairs (i, label) would have twice the noise.)

    Args:
        source: An SQOracle about such examples, or Agents or MaskedParityAgents of whom at least
            masked_parity_agents are left. No more than these are asked, in their order, which must
            tell nothing about them.
        d: Number of bits of x, a power of two from 2 to 32,768.
        beta: Failure probability with agents, in (0, 1). With an oracle that keeps its tolerances
            the result is never wrong.
        random_state: Source of the agents' random bits. None draws from the operating system. An
            int or a numpy Generator makes a reproducible stream for tests, which protects no one
            who knows it.

    Returns:
        A MaskedParityResult with a MaskedParity.

    Raises:
        ParameterError: source is no oracle and no agents, its features are not bits, or a parameter
            is out of range. No one is asked.
        ShapeError: The agents have another number of features than examples of d bits. No one is
            asked.
        AgentsExhausted: Fewer agents are left than needed. No one is asked.
        Exception: What the oracle itself raises.

    Guarantee:
        Pure epsilon-DP, locally, for each agent, with the agents' own epsilon. An oracle's answers
        are as private as the oracle makes them.

    Cost:
        d + 1 queries of an oracle; or O(N) for N agents, and O(d log d).

    Source:
        Kasiviswanathan et al. 2011, Section 5.3.1.

    Examples:
        >>> from hdp_fast import local
        >>> concept = local.MaskedParity([1, 0, 1, 1, 0, 1, 0, 0], 1)
        >>> agents = local.MaskedParityAgents(concept, 100_000, epsilon=1.0)
        >>> result = local.learn_masked_parity(agents, 8, beta=1e-10)
        >>> result.concept == concept, result.agents < 100_000
        (True, True)
    """
    rounds = _make_rounds(source, d, beta, random_state)
    r = rounds.find_r()
    return rounds.make_result(MaskedParity(r, rounds.find_a(r)))


def learn_masked_parity_weakly(
    source: Source, d: int, *, beta: float = 0.05, random_state: RandomState = None
) -> MaskedParityResult:
    """Learns a MASKED-PARITY under the uniform distribution with error exactly 1/4, in one round.

    This is the first round of learn_masked_parity alone: its queries depend on no answer. No
    learner in one round can do much better with fewer than about `2**(d / 3)` queries.

    Args:
        source: As for learn_masked_parity. Only the agents of the first round are needed.
        d: As for learn_masked_parity.
        beta: As for learn_masked_parity.
        random_state: As for learn_masked_parity.

    Returns:
        A MaskedParityResult with a WeakMaskedParity.

    Raises:
        ParameterError: source is no oracle and no agents, its features are not bits, or a parameter
            is out of range. No one is asked.
        ShapeError: The agents have another number of features than examples of d bits. No one is
            asked.
        AgentsExhausted: Fewer agents are left than needed. No one is asked.
        Exception: What the oracle itself raises.

    Guarantee:
        Pure epsilon-DP, locally, for each agent, with the agents' own epsilon. An oracle's answers
        are as private as the oracle makes them.

    Cost:
        d queries of an oracle; or O(N) for N agents, and O(d log d).

    Source:
        Kasiviswanathan et al. 2011, Section 5.3 (weak and strong learning).

    Examples:
        >>> from hdp_fast import local
        >>> X, concept = local.masked_parity_domain(4), local.MaskedParity([1, 0, 1, 1], 1)
        >>> oracle = local.ExactOracle(X, concept.predict(X))
        >>> result = local.learn_masked_parity_weakly(oracle, 4)
        >>> float((result.predict(X) != concept.predict(X)).mean()), result.queries
        (0.25, 4)
    """
    rounds = _make_rounds(source, d, beta, random_state, weak=True)
    return rounds.make_result(WeakMaskedParity(rounds.find_r()))


class _Rounds(Protocol):
    """The two rounds of questions, to an oracle or to agents."""

    def find_r(self) -> Bits:
        """Learn the bits of r in the first round."""

    def find_a(self, r: Bits) -> int:
        """Learn the mask a of a concept with this r in the second round."""

    def make_result(self, concept: MaskedParity | WeakMaskedParity) -> MaskedParityResult:
        """The result for a concept that was learned."""


class _QueryRounds:
    """Both rounds as statistical queries."""

    def __init__(self, oracle: SQOracle, d: int):
        self._oracle, self._d, self._asked = oracle, d, 0

    def find_r(self) -> Bits:
        d = self._d
        answers = self._ask([_bit_query(d, j) for j in range(d)], 1 / (4 * d + 1))
        return np.array([answer > 1 / (4 * d) for answer in answers], np.uint8)

    def find_a(self, r: Bits) -> int:
        return int(self._ask([_mask_query(r)], 1 / 5)[0] > 1 / 4)

    def make_result(self, concept: MaskedParity | WeakMaskedParity) -> MaskedParityResult:
        return MaskedParityResult(concept, self._asked, 0, None)

    def _ask(self, gs: list[Losses], tau: float) -> list[float]:
        self._asked += len(gs)
        return ask_together(self._oracle, gs, [tau] * len(gs))


class _AgentRounds:
    """Both rounds as questions to agents, of whom each answers one."""

    def __init__(
        self,
        agents: Agents | MaskedParityAgents,
        d: int,
        needs: MaskedParityNeeds,
        random_state: RandomState,
    ):
        self._agents, self._d, self._needs, self._asked = agents, d, needs, 0
        self._random_state = random_state
        self._rng = make_stream(random_state)

    def find_r(self) -> Bits:
        d = self._d
        ones = np.zeros(2 * d, np.int64)
        for size in _block_sizes(self._needs.first, 2 * d):
            answers = self._ask(_walsh_question(d), size).reshape(-1, 2 * d)
            ones += answers.sum(axis=0, dtype=np.int64)
        signs = self._needs.first // (2 * d) - 2 * ones
        sums: Integers = hadamard_transform(signs)
        return (sums[:d] < 0).astype(np.uint8)

    def find_a(self, r: Bits) -> int:
        answers = self._ask(_mask_question(r), self._needs.second)
        return int(2 * int(answers.sum()) > len(answers))

    def make_result(self, concept: MaskedParity | WeakMaskedParity) -> MaskedParityResult:
        queries = self._d + isinstance(concept, MaskedParity)
        record = self._agents.record(self._random_state)
        return MaskedParityResult(concept, queries, self._asked, record)

    def _ask(self, question: QuestionFunction, count: int) -> Bits:
        self._asked += count
        return self._agents.ask(question, count, random_state=self._rng)


def _make_rounds(
    source: Any, d: int, beta: float, random_state: RandomState, *, weak: bool = False
) -> _Rounds:
    size = validate_size("d", d)
    probability("beta", beta)
    check_random_state(random_state)
    if callable(getattr(source, "query", None)):
        return _QueryRounds(source, size)
    if not isinstance(source, Agents | MaskedParityAgents):
        refuse("source", source, "it must have query, or be Agents or MaskedParityAgents")
    if source.d != width(size):
        rule = f"examples of {size} bits have {width(size)}"
        raise ShapeError(f"source has agents with {source.d} features, but {rule}")
    if isinstance(source, Agents):
        source.require_bits()
    needs = masked_parity_agents(size, beta=beta, epsilon=source.epsilon)
    needed = needs.first + (0 if weak else needs.second)
    if source.remaining < needed:
        promise = f"d = {size} and beta = {beta:g} need {needed:,}"
        raise AgentsExhausted(f"source = {source.remaining:,} agents left, but {promise}")
    return _AgentRounds(source, size, needs, random_state)


def _bit_query(d: int, j: int) -> Losses:
    def g(X: Any, y: Bits) -> NDArray[np.bool_]:
        index, half = index_and_half(X, d)
        values: NDArray[np.bool_] = (index == j) & (half == 1) & (y == 1)
        return values

    return g


def _mask_query(r: Bits) -> Losses:
    def g(X: Any, y: Bits) -> NDArray[np.bool_]:
        _, half = index_and_half(X, len(r))
        values: NDArray[np.bool_] = (half == 0) & (y != parity_of(X, r))
        return values

    return g


def _walsh_question(d: int) -> QuestionFunction:
    """The entry of agent n's symbol in row n mod 2 d of a Walsh-Hadamard matrix, as a bit.

    Where b = 1, the label is added to it over GF(2).
    """

    def question(X: Any, y: Bits) -> ArrayLike:
        index, half = index_and_half(X, d)
        symbols = np.where(half, index, d).astype(np.uint16)
        shared = symbols.reshape(-1, 2 * d) & np.arange(2 * d, dtype=np.uint16)
        return _parity(shared).reshape(-1) ^ (y & half)

    return question


def _mask_question(r: Bits) -> QuestionFunction:
    """Whether the label differs from the parity of x.

    Agents with b = 1, whose labels do not depend on a, answer 0 and 1 in turn.
    """

    def question(X: Any, y: Bits) -> ArrayLike:
        _, half = index_and_half(X, len(r))
        turn = np.arange(len(y), dtype=np.uint8) & 1
        return np.where(half, turn, parity_of(X, r) ^ y)

    return question


def _parity(words: NDArray[np.uint16]) -> Bits:
    """The parity of the ones of each word."""
    for shift in (8, 4, 2, 1):
        words ^= words >> np.uint16(shift)
    return (words & np.uint16(1)).astype(np.uint8)


def _block_sizes(count: int, rows: int) -> Iterator[int]:
    """Divide a count into blocks that are multiples of the number of rows."""
    most = max(_BLOCK // rows, 1) * rows
    for start in range(0, count, most):
        yield min(most, count - start)


def hadamard_transform(signs: Integers) -> Integers:
    """Multiplies a vector (b,) by the Hadamard matrix; b is a power of 2."""
    sums = signs
    for half in (1 << level for level in range(signs.size.bit_length() - 1)):
        first, second = sums.reshape(-1, 2, half).swapaxes(0, 1)
        sums = np.stack([first + second, first - second], axis=1).ravel()
    return sums
