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

# Candidates are held in memory: this many take a gigabyte.
MOST_CANDIDATES = 1 << 25
# Tolerances shrink with exp(-2 epsilon); beyond this they would drown in rounding.
MOST_EPSILON = 16
# Of the failure probability, 0.93 is for the answers' errors, this for too few candidates.
_CANDIDATES_SHARE = 0.07


class TransparentRandomizer(Protocol):
    """A local randomizer that can be run, and whose probabilities can be computed.

    Attributes:
        epsilon: no report is more than exp(epsilon) times as likely on one input as on another.
        delta: 0.
        sample: draws reports.
        log_probability: the logarithm of the probability of a report.
    """

    @property
    def epsilon(self) -> float:
        """Privacy parameter of one report."""

    @property
    def delta(self) -> float:
        """Privacy parameter of one report."""

    def sample(self, u: ArrayLike, *, random_state: RandomState = None) -> NDArray[Any]:
        """Draw a report for each input.

        u: inputs (n,). Returns integers (n,).

        Guarantee: that of the randomizer: (epsilon, delta)-DP for each report.
        Raises: what the randomizer likes.
        Cost: that of the randomizer.
        Source: Kasiviswanathan et al. 2011, Definition 5.13.
        """

    def log_probability(self, w: ArrayLike, u: ArrayLike) -> ArrayLike:
        """The logarithm of the probability of report w on input u, broadcast over arrays.

        w: reports; u: inputs.

        Raises: what the randomizer likes.
        Cost: that of the randomizer.
        Source: Kasiviswanathan et al. 2011, Definition 5.13.
        """


@dataclass(frozen=True)
class SimulationPlan:
    """The queries that a simulation of local randomizers asks, and how close it comes.

    Attributes:
        epsilon: of the randomizer.
        applications: how many are simulated, each on an entry of its own.
        tau: tolerance of every query.
        phi: relative error of an estimated probability that tau allows.
        candidates: reports drawn in advance for each application.
        queries: the most that are asked, one for each different candidate.
        iterations: the expected number of candidates looked at for each application, at most.
        distance: of the reports' law from that of the randomizers, in total variation, at most.
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
    """What simulate_local needs of an oracle.

    epsilon: of the randomizer, above 0; beta: statistical distance in all, in (0, 1); applications:
    how many, t, at least 1.

    tau = phi / (exp(2 epsilon) - 1), at most 1/2, with phi = min(1/3, 1.8 beta / t). Answers with
    such errors change the law of a report by phi / (1 + sqrt(1 - phi**2)) at most; each candidate
    is accepted with probability a >= exp(-epsilon) (1 - phi) / (1 + phi), and so many are drawn
    that none is with probability at most 0.07 beta / t.

    Guarantee: distance <= beta (proved).
    Raises: ParameterError.
    Cost: constant.
    Source: Kasiviswanathan et al. 2011, Claim 5.9, with more than five times their tolerance (where
        beta / t is at most 0.18), and a fixed number of candidates, without which it would depend
        on answers which queries are asked.
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
    # An oracle needs no records for an error of 1/2.
    return (tau, phi) if tau <= 0.5 else (0.5, math.expm1(2 * epsilon) / 2)


@dataclass(frozen=True, eq=False)
class SimulationResult(JsonObject):
    """Reports of local randomizers, made from answers to statistical queries.

    Attributes:
        reports: int64 (applications,).
        queries: how many were asked.
        iterations: how many candidates were looked at for each report, int64 (applications,).
        plan: what was promised.
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
    """Simulate a local randomizer on fresh entries, by nonadaptive statistical queries.

    randomizer: with delta 0. values: called with features (m, d) and labels (m,) by the oracle;
    returns each record's input to the randomizer, (m,). oracle: of the entries' distribution. beta:
    statistical distance allowed in all, in (0, 1). applications: entries, t, at least 1, one report
    from each. reference: any one input. random_state: None draws from the operating system, an int
    or a Generator makes it reproducible.

    Candidates are drawn from the randomizer on the reference input, all of them before the oracle
    is asked anything; then it is asked, in one batch where it has one, for the probability of each
    different candidate w on a random entry: for the mean of g = (h - exp(-epsilon)) / (exp(epsilon)
    - exp(-epsilon)), where h, within exp(+-epsilon), is how much likelier w is on a record's input
    than on the reference. So no query depends on an answer. From an answer v follows h~ = exp(
    -epsilon) + v (exp(epsilon) - exp(-epsilon)), and each application takes its first candidate
    that is accepted, with probability h~ / ((1 + phi) exp(epsilon)); its last where none is.

    Guarantee: where every answer lies within plan_simulation's tau, chosen by an adversary who
        knows all queries before it, the law of the reports differs by at most beta from that of the
        randomizer on entries drawn independently; by at most 2 beta where the adversary knows the
        later queries, too (proved; but for 2**-53 in each probability). An answer that breaks its
        tolerance is clipped to [0, 1]. The reports are as private as the oracle's answers.
    Raises: ParameterError, before the oracle is asked; what oracle, randomizer and values raise.
    Cost: at most plan_simulation's queries of its tau, and no more than the randomizer has reports;
        on average at most (1 + phi) / (1 - phi) exp(epsilon) candidates a report are looked at.
    Source: Kasiviswanathan et al. 2011, Claim 5.9.
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
    """How much likelier some reports are together on a record than on the reference, as a query.

    Attributes:
        parts: logarithms of the ratio for each report, given features and labels.
        epsilon: of all reports together.
    """

    parts: tuple[Callable[[Any, Bits], Floats], ...] = ()
    epsilon: float = 0.0

    def extend(
        self, randomizer: TransparentRandomizer, values: Values, reference: float, w: int
    ) -> LikelihoodRatio:
        """The same with one more report."""
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
        # Probabilities are rounded, and so may the ratio be, out of its range.
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
    """The epsilon of a randomizer, which must be one that can be simulated."""
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
    """Reports about the reference, from which the simulated ones are chosen."""
    reports = randomizer.sample(np.full(count, reference), random_state=random_state)
    return np.asarray(reports).astype(np.int64)


def _log_probability(randomizer: TransparentRandomizer, w: int, u: ArrayLike) -> Any:
    return np.asarray(randomizer.log_probability(w, u), dtype=np.float64)
