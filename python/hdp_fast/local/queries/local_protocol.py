"""Local randomizers simulated by statistical queries, with rejection sampling."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..._support.json_text import JsonObject
from ..._support.random_state import make_stream
from ..._support.types import Bits, Floats, Integers, RandomState
from ..._support.validate import (
    integers,
    nonnegative_int,
    number,
    positive,
    positive_int,
    probability,
    refuse,
)
from ...exceptions import ParameterError, ShapeError
from .oracles import SQOracle, ask_together, check_oracle

Values = Callable[[Any, Bits], ArrayLike]

# Candidates are held in memory: this number takes a gigabyte.
MOST_CANDIDATES = 1 << 25
# Tolerances shrink with exp(-2 epsilon); beyond this they would drown in rounding.
MOST_EPSILON = 16
# This part of the failure probability is for too few candidates, 0.93 for errors in answers.
_CANDIDATES_SHARE = 0.07


class TransparentRandomizer(Protocol):
    """A local randomizer that can be run, and whose probabilities can be computed.

    Every randomizer of this module is one, and so is any object with these methods and properties.

    Examples:
        >>> from hdp_fast import local
        >>> randomizer: local.TransparentRandomizer = local.BinaryResponse(1.0, (0, 1))
        >>> ratio = randomizer.log_probability(1, 1) - randomizer.log_probability(1, 0)
        >>> round(float(ratio), 6)  # never above epsilon
        1.0
    """

    @property
    def epsilon(self) -> float:
        """No report is more than exp(epsilon) times as likely on one input as on another."""

    @property
    def delta(self) -> float:
        """Privacy parameter of one report; only a randomizer with delta = 0 can be simulated."""

    def sample(self, u: ArrayLike, *, random_state: RandomState = None) -> NDArray[Any]:
        """Draws a report for each input.

        Args:
            u: Inputs of shape (n,).
            random_state: Source of the randomizer's random bits.

        Returns:
            Integers of shape (n,).

        Guarantee:
            (epsilon, delta)-DP for each report.

        Source:
            Kasiviswanathan et al. 2011, Definition 5.13.
        """

    def log_probability(self, w: ArrayLike, u: ArrayLike) -> ArrayLike:
        """Computes the logarithm of the probability of report w on input u, with broadcasting.

        Args:
            w: Reports, integers.
            u: Inputs.

        Returns:
            Floats of the broadcast shape; -inf where the probability is 0.

        Source:
            Kasiviswanathan et al. 2011, Definition 5.13.
        """


@dataclass(frozen=True)
class SimulationPlan:
    """The queries that a simulation of local randomizers asks, and how close to them it comes.

    Attributes:
        epsilon: Privacy parameter of the randomizer.
        applications: Number of reports that are simulated, each from an entry of its own.
        tau: Tolerance of every query.
        phi: The relative error of an estimated probability that tau allows.
        candidates: Number of reports drawn in advance for each application.
        queries: The largest number of queries; there is one for each different candidate.
        iterations: An upper bound on the expected number of candidates looked at for each
            application.
        distance: An upper bound on the distance in total variation between the joint law of the
            reports and that of the randomizers.

    Examples:
        >>> from hdp_fast import local
        >>> plan = local.plan_simulation(1.0, beta=0.1, applications=4)
        >>> plan.candidates, plan.queries, round(plan.tau, 5), plan.distance <= 0.1
        (16, 64, 0.00704, True)
    """

    epsilon: float
    applications: int
    tau: float
    phi: float
    candidates: int
    queries: int
    iterations: float
    distance: float


def plan_simulation(epsilon: float, *, beta: float, applications: int = 1) -> SimulationPlan:
    """Plans what simulate_local needs of an oracle.

    The tolerance is `tau = phi / (exp(2 epsilon) - 1)` with `phi = min(1/3, 1.8 beta / t)`; where
    that exceeds 1/2, tau is 1/2 and phi is smaller accordingly. Answers with errors of at most tau
    change the law of a report by at most `phi / (1 + sqrt(1 - phi**2))`. Each candidate is accepted
    with probability `a >= exp(-epsilon) (1 - phi) / (1 + phi)`. The number of candidates is large
    enough that all of them are rejected with probability at most `0.07 beta / t`.

    Args:
        epsilon: Privacy parameter of the randomizer, above 0 and at most 16.
        beta: Statistical distance allowed for all reports together, in (0, 1).
        applications: Number t of reports, at least 1. All of them together may take at most `2**25`
            candidates.

    Returns:
        A SimulationPlan.

    Raises:
        ParameterError: A parameter is out of range, or too many candidates would be needed.

    Guarantee:
        The plan's distance is at most beta (proved).

    Source:
        Kasiviswanathan et al. 2011, Claim 5.9. The tolerance is more than five times theirs where
        beta / t is at most 0.18. The number of candidates is fixed in advance; otherwise it would
        depend on answers which queries are asked.

    Examples:
        >>> from hdp_fast import local
        >>> local.plan_simulation(1.0, beta=0.1).tau > local.plan_simulation(2.0, beta=0.1).tau
        True
    """
    privacy, failure = positive("epsilon", epsilon), probability("beta", beta)
    times = positive_int("applications", applications, MOST_CANDIDATES)
    if privacy > MOST_EPSILON:
        raise ParameterError(f"epsilon = {epsilon}, but it must be at most {MOST_EPSILON}")
    tau, phi = tolerance_of(privacy, failure / times)
    accepted = math.exp(-privacy) * (1 - phi) / (1 + phi)
    missed = _CANDIDATES_SHARE * failure / times
    candidates = math.log(missed) / math.log1p(-accepted) if missed else math.inf
    if candidates * times > MOST_CANDIDATES:
        rule = "at most 2**25 candidates must do for all applications"
        raise ParameterError(f"epsilon = {epsilon} and applications = {times:,}, but {rule}")
    drawn = math.ceil(candidates)
    none = math.exp(drawn * math.log1p(-accepted))
    distance = times * (none + phi / (1 + math.sqrt(1 - phi**2)))
    return SimulationPlan(privacy, times, tau, phi, drawn, drawn * times, 1 / accepted, distance)


def tolerance_of(epsilon: float, share: float) -> tuple[float, float]:
    """The tolerance of a query, and the relative error of a probability that it allows."""
    phi = min(1 / 3, 1.8 * share)
    tau = phi * math.exp(-2 * epsilon) / -math.expm1(-2 * epsilon)
    # An oracle can answer within 1/2 without any record.
    return (tau, phi) if tau <= 0.5 else (0.5, math.expm1(2 * epsilon) / 2)


@dataclass(frozen=True, eq=False)
class SimulationResult(JsonObject):
    """The result of simulate_local: reports made from answers to statistical queries.

    Attributes:
        reports: The reports, int64 of shape (applications,).
        queries: Number of queries that were asked.
        iterations: Number of candidates looked at for each report, int64 of shape (applications,).
        plan: The SimulationPlan that was promised.

    Examples:
        >>> from hdp_fast import local
        >>> oracle = local.ExactOracle([[0], [1]], [0, 1])
        >>> randomizer = local.KaryResponse(3, 1.0)
        >>> result = local.simulate_local(randomizer, lambda X, y: X[:, 0], oracle, beta=0.1)
        >>> local.SimulationResult.from_json(result.to_json()).plan == result.plan
        True
    """

    reports: Integers
    queries: int
    iterations: Integers
    plan: SimulationPlan

    @classmethod
    def _from_fields(cls, fields: dict[str, Any]) -> Self:
        plan = SimulationPlan(**fields["plan"])
        reports, iterations = (
            integers(name, fields[name], np.int64) for name in ("reports", "iterations")
        )
        if not reports.shape == iterations.shape == (plan.applications,):
            raise ShapeError("reports and iterations must have an entry for each application")
        return cls(reports, nonnegative_int("queries", fields["queries"]), iterations, plan)


def simulate_local(
    randomizer: TransparentRandomizer,
    values: Values,
    oracle: SQOracle,
    *,
    beta: float,
    applications: int = 1,
    reference: float = 0,
    random_state: RandomState = None,
) -> SimulationResult:
    """Simulates a local randomizer on fresh entries, by nonadaptive statistical queries.

    Candidates are drawn from the randomizer on the reference input, all of them before the oracle
    is asked anything. For each different candidate w, the oracle is asked how likely w is on a
    random entry. The query is the mean of
    `g = (h - exp(-epsilon)) / (exp(epsilon) - exp(-epsilon))`, where h says how many times as
    likely w is on a record's input as on the reference, a number from exp(-epsilon) to
    exp(epsilon). All queries are asked in one batch if the oracle has a method for that, and none
    depends on an answer.

    An answer v, clipped to [0, 1], yields the estimate
    `h' = exp(-epsilon) + v (exp(epsilon) - exp(-epsilon))`. Each application looks at its
    candidates in their order and accepts each with probability `h' / ((1 + phi) exp(epsilon))`. Its
    report is the first candidate that is accepted, or the last one if none is.

    Args:
        randomizer: A TransparentRandomizer with delta = 0.
        values: Called by the oracle's queries with features of shape (m, d) and labels of shape
            (m,). It returns the input of each record to the randomizer, shape (m,).
        oracle: An oracle for the distribution of the entries.
        beta: Statistical distance allowed for all reports together, in (0, 1).
        applications: Number t of entries, at least 1; each yields one report.
        reference: Any one input of the randomizer, a finite number.
        random_state: None draws from the operating system. An int or a numpy Generator makes the
            simulation reproducible.

    Returns:
        A SimulationResult.

    Raises:
        ParameterError: An argument breaks its rule, or too many candidates would be needed. The
            oracle is not asked.
        Exception: What oracle, randomizer and values themselves raise.

    Guarantee:
        Suppose that every answer lies within the tau of plan_simulation, and that an adversary
        chooses it who knows all queries before it. Then the joint law of the reports differs by at
        most beta, in total variation, from that of the randomizer on entries drawn independently.
        It differs by at most 2 beta where the adversary also knows the later queries (proved,
        except for `2**-53` in each probability).

        The reports are as private as the oracle's answers.

    Cost:
        At most the queries of plan_simulation, of its tau, and at most one for each report that the
        randomizer can make. On average, at most `(1 + phi) / (1 - phi) exp(epsilon)` candidates are
        looked at for each report.

    Source:
        Kasiviswanathan et al. 2011, Claim 5.9.

    Examples:
        >>> from hdp_fast import local
        >>> oracle = local.ExactOracle([[0], [1], [1], [1]], [0, 1, 1, 1])
        >>> bit, many = local.BinaryResponse(1.0, (0, 1)), {"beta": 0.1, "applications": 4}
        >>> result = local.simulate_local(bit, lambda X, y: X[:, 0], oracle, **many)
        >>> result.reports.shape, result.queries <= 2  # binary response makes two different reports
        ((4,), True)
    """
    plan = plan_simulation(read_epsilon(randomizer), beta=beta, applications=applications)
    check_simulation(values, oracle, reference)
    rng, randomizer_state = make_streams(random_state)
    candidates = draw_candidates(randomizer, reference, plan.queries, randomizer_state)
    different, firsts, places = np.unique(candidates, return_index=True, return_inverse=True)
    # In the order of the candidates: an answer may depend on those before, and on no later one.
    order = np.argsort(firsts)
    ratios = [
        LikelihoodRatio().extend(randomizer, values, reference, w)
        for w in different[order].tolist()
    ]
    accepted = np.empty(len(different))
    accepted[order] = acceptance_probabilities(ratios, oracle, plan)
    shape = plan.applications, plan.candidates
    taken = rng.random(shape) < accepted[places.reshape(shape)]
    taken[:, -1] = True
    first = taken.argmax(axis=1)
    reports = candidates.reshape(shape)[np.arange(plan.applications), first]
    return SimulationResult(reports, len(different), first + 1, plan)


@dataclass(frozen=True)
class LikelihoodRatio:
    """How many times as likely some reports together are on a record as on the reference.

    Attributes:
        parts: The logarithm of the ratio for each report, as a function of features and labels.
        epsilon: The sum of the epsilons of all reports.
    """

    parts: tuple[Callable[[Any, Bits], Floats], ...] = ()
    epsilon: float = 0.0

    def extend(
        self, randomizer: TransparentRandomizer, values: Values, reference: float, w: int
    ) -> LikelihoodRatio:
        """The ratio for these reports and one more."""
        at_reference = _log_probability(randomizer, w, reference)

        def part(X: Any, y: Bits) -> Floats:
            logs: Floats = _log_probability(randomizer, w, values(X, y)) - at_reference
            return logs

        return LikelihoodRatio((*self.parts, part), self.epsilon + randomizer.epsilon)

    def query(self, X: Any, y: Bits) -> Floats:
        """The ratio, mapped linearly from [exp(-epsilon), exp(epsilon)] to [0, 1]."""
        logs = np.add.reduce([part(X, y) for part in self.parts])
        least = math.exp(-2 * self.epsilon)
        scaled: Floats = (np.exp(logs - self.epsilon) - least) / (1 - least)
        # Probabilities are rounded, and rounding can carry the ratio out of its range.
        return np.clip(scaled, 0.0, 1.0)

    def mean(self, answer: float) -> float:
        """The mean ratio that an answer to the query stands for."""
        high, low = math.exp(self.epsilon), math.exp(-self.epsilon)
        return low + min(max(0.0, answer), 1.0) * (high - low)


def acceptance_probabilities(
    ratios: list[LikelihoodRatio], oracle: SQOracle, plan: SimulationPlan
) -> Floats:
    """The probability of accepting each candidate, by the oracle's answer about its ratio."""
    answers = ask_together(oracle, [ratio.query for ratio in ratios], [plan.tau] * len(ratios))
    means = [ratio.mean(answer) for ratio, answer in zip(ratios, answers, strict=True)]
    return np.array(means) * math.exp(-plan.epsilon) / (1 + plan.phi)


def read_epsilon(randomizer: Any) -> float:
    """The epsilon of a randomizer; what cannot be simulated is refused."""
    runs = all(callable(getattr(randomizer, name, None)) for name in ("sample", "log_probability"))
    if not runs or not hasattr(randomizer, "epsilon"):
        refuse(
            "randomizer", randomizer, "it must have epsilon, sample(u) and log_probability(w, u)"
        )
    delta = number("randomizer.delta", getattr(randomizer, "delta", 0.0))
    if delta != 0:
        rule = "it must be 0: else no ratio of probabilities has a bound"
        raise ParameterError(f"randomizer.delta = {delta}, but {rule}")
    return positive("randomizer.epsilon", randomizer.epsilon)


def check_simulation(values: Any, oracle: Any, reference: Any) -> None:
    """Refuse what cannot be simulated, before any query is made."""
    if not math.isfinite(number("reference", reference)):
        raise ParameterError(f"reference = {reference}, but it must be finite")
    if not callable(values):
        refuse("values", values, "it must be callable")
    check_oracle(oracle)


def make_streams(random_state: RandomState) -> tuple[np.random.Generator, RandomState]:
    """The generator of the simulation, and the random_state that the randomizer draws with."""
    stream = make_stream(random_state)
    return stream or np.random.default_rng(), stream


def draw_candidates(
    randomizer: TransparentRandomizer, reference: float, count: int, random_state: RandomState
) -> Integers:
    """Draw reports on the reference input, from which the simulated ones are chosen."""
    reports = randomizer.sample(np.full(count, reference), random_state=random_state)
    return np.asarray(reports).astype(np.int64)


def _log_probability(randomizer: TransparentRandomizer, w: int, u: ArrayLike) -> Any:
    return np.asarray(randomizer.log_probability(w, u), dtype=np.float64)
