"""Statistical queries answered by local agents, fresh ones for every query."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..._support.callers import losses
from ..._support.random_state import make_stream
from ..._support.types import Bits, RandomState
from ..._support.uncopyable import Uncopyable
from ..._support.validate import array, positive, positive_int, probability, refuse, shorten
from ...exceptions import AgentsExhausted, ParameterError, ShapeError
from ...record import PrivacyRecord
from ..agents import Agents
from ..estimation import agents_for_width, estimate_mean
from .oracles import Losses, check_query

_T = TypeVar("_T")

_MOST_QUERIES = 1 << 40


def agents_per_query(
    *, tau: float, beta: float, queries: int, epsilon: float, bound: float = 0.5
) -> int:
    """How many agents each of several statistical queries needs, all of them fresh.

    tau: tolerance, above 0 and below 2 bound; beta: probability with which any of the answers may
    be further from its mean, in (0, 1); queries: how many, t, at least 1; epsilon: of each agent's
    answer, above 0; bound: half the range of the queries' values, b for values in [-b, b] and 1/2
    for values in [0, 1].

    Raises: ParameterError.
    Cost: constant.
    Source: Hoeffding's inequality for randomized bits, n' = 2 b**2 ln(2t / beta) / (tau
        tanh(epsilon / 2))**2, for the Laplace noise and the constant c of Kasiviswanathan et al.,
        Lemma 5.6.
    """
    width, half = positive("tau", tau), positive("bound", bound)
    count, failure = positive_int("queries", queries, _MOST_QUERIES), probability("beta", beta)
    if width >= 2 * half:
        raise ParameterError(f"tau = {tau}, but it must be below the range of values, {2 * half}")
    wanted = f"tau = {tau}, queries = {queries}"
    return agents_for_width(width / (2 * half), failure, epsilon, times=count, wanted=wanted)


class LocalSQOracle(Uncopyable):
    """Statistical queries answered by agents, fresh ones for every query.

    agents: simulated ones; they are asked in their order, which must tell nothing about them.
    queries: how many may be asked, t, at least 1. beta: probability with which any of the answers
    may be further from its mean than its tau. random_state: None draws from the operating system,
    an int or a Generator makes a reproducible test stream that protects nobody who knows it.

    A query of tolerance tau asks agents_per_query agents for a bit each, its probability the value
    of g for the agent, told by randomized response. Where fewer are left, AgentsExhausted is
    raised, nobody is asked, and what has been learned so far stays in `answers`; the same query
    with a larger tau may still be answered. A copy is the very same object, pickling raises, and so
    does a query in a forked child.

    Attributes:
        answers: all answers so far, in their order.
        asked: how many agents they took.
        agents: as given.

    Guarantee: pure agents.epsilon-DP, locally, for each agent. For agents drawn independently from
        a distribution, every answer lies within its tau of the mean, but for probability beta in
        all, whether or not queries depend on earlier answers (proved).
    Raises: ParameterError.
    Cost: none until asked.
    Source: Kasiviswanathan et al. 2011, Lemma 5.6, with randomized response for their Laplace
        noise.
    """

    _copied = "ask more queries than were promised"
    _instead = "ask in that process and hand the answers on"

    def __init__(
        self, agents: Agents, *, queries: int, beta: float, random_state: RandomState = None
    ):
        super().__init__()
        if not isinstance(agents, Agents):
            refuse(
                "agents",
                agents,
                "it must be local.Agents, who can be asked for more than their errors",
            )
        self._queries = positive_int("queries", queries, _MOST_QUERIES)
        self._beta = probability("beta", beta)
        self._rng = make_stream(random_state)
        self.agents, self.answers, self.asked = agents, list[float](), 0
        self._started = 0

    def query(self, g: Losses, tau: float) -> float:
        """The mean of g over the agents' distribution, to within tau.

        g: called with the features and labels of those agents, (m, d) and (m,), as SQOracle has it;
        returns a loss in [0, 1] for each, (m,). tau: tolerance, above 0; 1/2 is enough for any
        larger one.

        Guarantee: as the class, if the value of g for an agent depends on no other agent.
        Raises: AgentsExhausted when fewer agents are left than tau needs; ParameterError for tau
            and when all queries have been asked: nobody is asked then. ShapeError and
            ParameterError when g returns anything but one number each: the query and those agents
            stay spent.
        Cost: that of g, and O(m).
        Source: as the class.
        """
        return self.batch([g], [tau])[0]

    def batch(self, gs: Sequence[Losses], taus: float | Sequence[float]) -> list[float]:
        """The means of several queries, all of which agents hear before anybody answers.

        gs: queries, each as query takes it. taus: their tolerances, or one for all. Each query has
        agents of its own; Agents.ask_several says when it is better to ask them together.

        Guarantee: as the class; noninteractive.
        Raises: as query; either all queries are asked or none.
        Cost: that of gs, and O(m) for m agents in all.
        Source: Kasiviswanathan et al. 2011, Definition 5.3 and Theorem 5.7.
        """
        if not isinstance(gs, Sequence) or isinstance(gs, str):
            refuse("gs", gs, "it must be a sequence of queries")
        for g in gs:
            check_query(g)
        tolerances = _validate_tolerances(taus, len(gs))
        with self._hold():
            counts = self._count_agents(tolerances)
            self._check_remaining(len(gs), sum(counts))
            self._started += len(gs)
        ends = np.cumsum([0, *counts]).tolist()
        reports = self.agents.ask(_join_queries(gs, ends), ends[-1], random_state=self._rng)
        parts = [reports[part] for part in _slices(ends)]
        beta, epsilon = self._beta, self.agents.epsilon
        means = [estimate_mean(part, beta=beta, epsilon=epsilon).value for part in parts]
        with self._hold():
            self.answers += means
            self.asked += ends[-1]
        return means

    def _count_agents(self, taus: list[float]) -> list[int]:
        """How many agents the next queries take, with these tolerances."""
        goal = {"beta": self._beta, "epsilon": self.agents.epsilon}
        return [agents_per_query(tau=tau, queries=self._queries, **goal) for tau in taus]

    def _check_remaining(self, queries: int, wanted: int) -> None:
        """Refuse more queries, or agents, than are left."""
        left = self._queries - self._started
        if queries > left:
            rule = f"{queries:,} are asked and {left:,} are left"
            raise ParameterError(f"queries = {self._queries:,}, but {rule}")
        if wanted > self.agents.remaining:
            kept = f"{len(self.answers):,} earlier answers are kept"
            rule = f"{queries:,} queries need {wanted:,}; {kept}"
            raise AgentsExhausted(f"agents = {self.agents.remaining:,} left, but {rule}")

    def __repr__(self) -> str:
        answered = f"{len(self.answers):,} of {self._queries:,} queries answered"
        return f"LocalSQOracle({self.agents!r}, {answered})"


def _validate_tolerances(taus: Any, count: int, *, one_for_all: bool = True) -> list[float]:
    """A tolerance for each query, at most 1/2: every answer keeps a larger one."""
    shape = array("taus", taus).shape
    if shape != (count,) and not (one_for_all and shape == ()):
        raise ShapeError(f"taus has shape {shape}, but it must be ({count},)")
    return [min(positive("tau", tau), 0.5) for tau in ([taus] * count if shape == () else taus)]


def _slices(ends: list[int]) -> list[slice]:
    return [slice(start, end) for start, end in itertools.pairwise(ends)]


def _join_queries(gs: Sequence[Losses], ends: list[int]) -> Callable[[Any, Bits], Any]:
    """One question that asks the agents between two ends the query that belongs to them."""

    def question(X: Any, y: Bits) -> Any:
        values = [
            losses("g(X, y)", g(X[part], y[part]), part.stop - part.start)
            for g, part in zip(gs, _slices(ends), strict=True)
        ]
        return np.concatenate([np.empty(0), *values])

    return question


@dataclasses.dataclass(frozen=True, eq=False)
class SQSimulationResult(Generic[_T]):
    """What a run of an SQ algorithm on agents releases.

    Attributes:
        result: what the algorithm returned.
        answers: to its queries, in their order.
        agents: how many were asked.
        agents_record: what protects each agent's answer.
    """

    result: _T
    answers: list[float]
    agents: int
    agents_record: PrivacyRecord


class _PromisedOracle(LocalSQOracle):
    """An oracle whose agents are counted in advance: no query may take more than was promised."""

    _promised: NDArray[np.float64]

    def promise(self, tau: float | None, taus: Sequence[float] | None) -> None:
        """Fix the least tolerance of every query, the same for all or one for each.

        Raises: ShapeError, ParameterError, and AgentsExhausted when too few agents are left.
        """
        if taus is None:
            least = _validate_tolerances(tau, 1)
            self._promised = np.broadcast_to(least, self._queries)
            needed = self._queries * self._count(least)
        else:
            tolerances = _validate_tolerances(taus, self._queries, one_for_all=False)
            self._promised, needed = np.array(tolerances), self._count(tolerances)
        self._check_remaining(self._queries, needed)

    def _count(self, taus: list[float]) -> int:
        return sum(super()._count_agents(taus))

    def _count_agents(self, taus: list[float]) -> list[int]:
        promised = self._promised[self._started :][: len(taus)].tolist()
        for tau, least in zip(taus, promised, strict=False):
            if tau < least:
                refuse("tau", tau, f"at least {least} was promised")
        return super()._count_agents(taus)


def simulate_sq(
    algorithm: Callable[[LocalSQOracle], _T],
    agents: Agents,
    *,
    queries: int,
    tau: float | None = None,
    taus: Sequence[float] | None = None,
    beta: float,
    random_state: RandomState = None,
) -> SQSimulationResult[_T]:
    """Run an algorithm of statistical queries on local agents.

    algorithm: called with an oracle, whose query(g, tau) and batch(gs, taus) it uses; g as in
    SQOracle, in [0, 1]. agents: simulated ones, in an order that tells nothing about them. queries:
    the most that it asks, t. tau: the least tolerance that it asks for, or taus: one for each query
    in turn, (t,). beta: probability with which any answer may be further from its mean.
    random_state: as LocalSQOracle.

    Guarantee: pure agents.epsilon-DP, locally, for each agent. For agents drawn independently, all
        answers lie within their tolerances but for probability beta: then the result is one that
        the algorithm may have with an SQ oracle (proved). Noninteractive where the algorithm asks
        one batch.
    Raises: AgentsExhausted when there are too few agents for the promised queries, and
        ParameterError: nobody is asked then. ParameterError when the algorithm asks more queries or
        for less tolerance than promised; whatever it raises.
    Cost: that of the algorithm; sum of agents_per_query agents.
    Source: Kasiviswanathan et al. 2011, Theorem 5.7.
    """
    if not callable(algorithm):
        refuse("algorithm", algorithm, "it must be callable")
    if (tau is None) == (taus is None):
        raise ParameterError(
            f"tau = {shorten(tau)} and taus = {shorten(taus)}, but one must be given"
        )
    oracle = _PromisedOracle(agents, queries=queries, beta=beta, random_state=random_state)
    oracle.promise(tau, taus)
    result = algorithm(oracle)
    return SQSimulationResult(result, oracle.answers, oracle.asked, agents.record(random_state))
