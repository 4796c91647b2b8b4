"""Statistical queries answered by local agents, with fresh agents for every query."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..._support.numbers import losses
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
    """Counts the agents that each of several statistical queries needs, all of them fresh.

    Args:
        tau: Tolerance, above 0 and below `2 bound`.
        beta: Probability with which any of the answers may be further than tau from its mean, in
            (0, 1).
        queries: Number of queries t, from 1 to `2**40`.
        epsilon: Privacy parameter of each agent's answer, above 0.
        bound: Half the range of the queries' values: b for values in [-b, b], and 1/2 for values in
            [0, 1].

    Returns:
        The number of agents for one query.

    Raises:
        ParameterError: A parameter is out of range, or more than 1e18 agents would be needed.

    Source:
        Hoeffding's inequality for randomized bits:
        `2 b**2 ln(2 t / beta) / (tau tanh(epsilon / 2))**2`. It replaces the Laplace noise and the
        constant c of Kasiviswanathan et al. 2011, Lemma 5.6.

    Examples:
        >>> from hdp_fast import local
        >>> local.agents_per_query(tau=0.1, beta=0.05, queries=20, epsilon=1.0)
        1566
    """
    width, half = positive("tau", tau), positive("bound", bound)
    count, failure = positive_int("queries", queries, _MOST_QUERIES), probability("beta", beta)
    if width >= 2 * half:
        raise ParameterError(f"tau = {tau}, but it must be below the range of values, {2 * half}")
    wanted = f"tau = {tau}, queries = {queries}"
    return agents_for_width(width / (2 * half), failure, epsilon, times=count, wanted=wanted)


class LocalSQOracle(Uncopyable):
    """Statistical queries answered by agents, with fresh agents for every query.

    A query of tolerance tau asks agents_per_query agents for one bit each. The bit is 1 with the
    value of g for the agent as the probability, and is sent through randomized response. Where
    fewer agents are left, AgentsExhausted is raised, no one is asked, and what has been learned so
    far stays in `answers`; the same query with a larger tau may still be answered. A copy of the
    object is the very same object, pickling raises, and so does a query in a forked child.

    Args:
        agents: Simulated agents. They are asked in their order, which must tell nothing about them.
        queries: Number t of queries that may be asked, from 1 to `2**40`.
        beta: Probability with which any of the answers may be further than its tau from its mean,
            in (0, 1).
        random_state: None draws from the operating system. An int or a numpy Generator makes a
            reproducible stream for tests, which protects no one who knows it.

    Attributes:
        answers: All answers so far, in their order.
        asked: Number of agents that they took.
        agents: The agents.

    Raises:
        ParameterError: agents is not an Agents, or a parameter is out of range.

    Guarantee:
        Pure agents.epsilon-DP, locally, for each agent. For agents drawn independently from a
        distribution, every answer lies within its tau of the mean, except with probability beta for
        all of them together, whether or not queries depend on earlier answers (proved).

    Source:
        Kasiviswanathan et al. 2011, Lemma 5.6, with randomized response in place of their Laplace
        noise.

    Examples:
        >>> import numpy as np
        >>> from hdp_fast import local
        >>> X = np.random.default_rng(0).integers(0, 2, (30_000, 3))
        >>> agents = local.Agents(X, X[:, 1], epsilon=1.0)
        >>> oracle = local.LocalSQOracle(agents, queries=3, beta=1e-10)
        >>> errors = [oracle.query(lambda X, y, j=j: X[:, j] != y, tau=0.1) for j in range(3)]
        >>> int(np.argmin(errors)), oracle.asked
        (1, 17433)
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
        """Answers with the mean of g over the agents' distribution, to within tau.

        Args:
            g: The query, as SQOracle takes it. It is called with the features, of shape (m, d), and
                the labels, of shape (m,), of the m agents that are asked.
            tau: Tolerance, above 0. A tolerance above 1/2 is taken as 1/2.

        Returns:
            The answer, a number in [0, 1].

        Raises:
            AgentsExhausted: Fewer agents are left than tau needs. No one is asked.
            ParameterError: g is not callable, tau is not a finite number above 0, all queries have
                been asked, or the process is a forked child. No one is asked.
            ShapeError: g returned anything but one number for each agent. The query and those
                agents stay spent.
            Exception: What g itself raises. The query and those agents stay spent.

        Guarantee:
            Pure agents.epsilon-DP, locally, for each agent, if the value of g for an agent depends
            on no other agent.

        Cost:
            The cost of g, and O(m).
        """
        return self.batch([g], [tau])[0]

    def batch(self, gs: Sequence[Losses], taus: float | Sequence[float]) -> list[float]:
        """Answers several queries, all of which are fixed before any agent answers.

        Each query has agents of its own. Agents.ask_several states when it is better to ask one
        group of agents all queries.

        Args:
            gs: A sequence of queries, each as `query` takes it.
            taus: Their tolerances, one for each query, or one number for all.

        Returns:
            The answers, a list of numbers in [0, 1].

        Raises:
            AgentsExhausted: Fewer agents are left than all queries together need. No one is asked.
            ParameterError: gs is not a sequence of callables, a tolerance is not a finite number
                above 0, fewer queries are left, or the process is a forked child. No one is asked.
            ShapeError: taus has another length than gs: then no one is asked. It is also raised
                when a query returned anything but one number for each agent: then the queries and
                their agents stay spent.
            Exception: What a query itself raises. The queries and their agents stay spent.

        Guarantee:
            Pure agents.epsilon-DP, locally, for each agent, if the values for an agent depend on no
            other agent; noninteractive.

        Cost:
            The cost of gs, and O(m) for m agents in all.

        Source:
            Kasiviswanathan et al. 2011, Definition 5.3 and Theorem 5.7.
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
        """The number of agents that each of the next queries takes, with these tolerances."""
        goal = {"beta": self._beta, "epsilon": self.agents.epsilon}
        return [agents_per_query(tau=tau, queries=self._queries, **goal) for tau in taus]

    def _check_remaining(self, queries: int, wanted: int) -> None:
        """Refuse more queries, or more agents, than are left."""
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
    """One tolerance for each query. Above 1/2 it is lowered to 1/2, which keeps any larger one."""
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
    """The result of an SQ algorithm that ran on agents.

    Attributes:
        result: What the algorithm returned.
        answers: The answers to its queries, in their order.
        agents: Number of agents that were asked.
        agents_record: PrivacyRecord of each agent's answer.

    Examples:
        >>> import numpy as np
        >>> from hdp_fast import local
        >>> def share_of_ones(oracle):
        ...     return oracle.query(lambda X, y: y, tau=0.1)
        >>> agents = local.Agents(np.zeros((20_000, 1)), np.ones(20_000, int), epsilon=1.0)
        >>> result = local.simulate_sq(share_of_ones, agents, queries=1, tau=0.1, beta=0.05)
        >>> result.agents, len(result.answers), result.agents_record.epsilon
        (864, 1, 1.0)
    """

    result: _T
    answers: list[float]
    agents: int
    agents_record: PrivacyRecord


class _PromisedOracle(LocalSQOracle):
    """An oracle whose agents are counted in advance: no query may take more than was promised."""

    _promised: NDArray[np.float64]

    def promise(self, tau: float | None, taus: Sequence[float] | None) -> None:
        """Fix the least tolerance of every query: the same for all, or one for each.

        Raises:
            ParameterError: A tolerance is not a finite number above 0.
            ShapeError: The tolerances are not as many as the queries.
            AgentsExhausted: Too few agents are left.
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
    """Runs an algorithm of statistical queries on local agents.

    Args:
        algorithm: Called with an oracle, whose methods query(g, tau) and batch(gs, taus) it uses.
            Its queries g are as SQOracle takes them, with values in [0, 1].
        agents: Simulated agents. They are asked in their order, which must tell nothing about them.
        queries: The largest number t of queries that the algorithm asks.
        tau: The smallest tolerance that it asks for. Either tau or taus must be given.
        taus: The smallest tolerance of each query in turn, shape (t,).
        beta: Probability with which any answer may be further than its tolerance from its mean, in
            (0, 1).
        random_state: As for LocalSQOracle.

    Returns:
        An SQSimulationResult with the algorithm's own result.

    Raises:
        AgentsExhausted: Fewer agents are left than the promised queries need. No one is asked.
        ShapeError: taus has not t entries: then no one is asked. It is also raised when a query
            returned anything but one number for each agent.
        ParameterError: algorithm is not callable, agents is not an Agents, a parameter is out of
            range, or not exactly one of tau and taus is given: then no one is asked. It is also
            raised when the algorithm asks more queries, or for a smaller tolerance, than was
            promised.
        Exception: What the algorithm itself raises.

    Guarantee:
        Pure agents.epsilon-DP, locally, for each agent, if the value of a query for an agent
        depends on no other agent. For agents drawn independently, all answers lie within their
        tolerances, except with probability beta; then the result is one that the algorithm may have
        with an SQ oracle (proved). The run is noninteractive where the algorithm asks one batch.

    Cost:
        The cost of the algorithm; the sum of agents_per_query agents over the queries.

    Source:
        Kasiviswanathan et al. 2011, Theorem 5.7.

    Examples:
        >>> import numpy as np
        >>> from hdp_fast import local
        >>> def best_feature(oracle):  # noninteractive: all queries in one batch
        ...     gs = [lambda X, y, j=j: X[:, j] != y for j in range(3)]
        ...     return int(np.argmin(oracle.batch(gs, 0.1)))
        >>> X = np.random.default_rng(0).integers(0, 2, (20_000, 3))
        >>> agents = local.Agents(X, X[:, 1], epsilon=1.0)
        >>> local.simulate_sq(best_feature, agents, queries=3, tau=0.1, beta=1e-10).result
        1
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
