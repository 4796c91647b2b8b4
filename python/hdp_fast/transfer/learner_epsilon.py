"""The learner's own epsilon inside a run, found by search."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any

from .._support.validate import nonnegative_int, refuse
from ..accounting.mechanisms import BoundedRange, Mechanism, Subsampled, largest_rate
from ..accounting.mechanisms import delta as composed_delta
from ..accounting.sampling_rate import WINDOW
from ..exceptions import ParameterError

# The learner's own epsilon is looked for among these; smaller ones cost ever more draws.
_LEARNER_EPSILONS = tuple(2.0**-k for k in range(7))
_WORTHWHILE = 0.97
# A number of draws is found to within this factor.
_FINE = 1.01
_MOST = 1 << 62


def composes(learner: Any) -> bool:
    """Whether it draws from the weights in each of many private steps, as stochastic gradients."""
    return hasattr(learner, "learn_weighted")


def check_private(learner: Any) -> Mechanism:
    """The learner's own guarantee, on records already drawn.

    Raises: ParameterError when it has none, or one that its selection does not have.
    """
    _check_names(learner, ("learn", "sample_size", "with_epsilon", "privacy"))
    mechanism = _mechanism("learner.privacy", learner.privacy)
    selection = getattr(learner, "mechanism", "exponential")
    if isinstance(mechanism, BoundedRange) and selection != "exponential":
        refuse(
            "learner.mechanism",
            selection,
            "only the exact exponential mechanism has bounded range: account for Pure",
        )
    return mechanism


def steps_of(learner: Any) -> tuple[int, int]:
    """Steps of a round of a learner that composes, and the draws of each.

    Raises: ParameterError for one that cannot be private.
    """
    # Asked of its class: without noise there may be no step to show.
    _check_names(type(learner), ("learn_weighted", "step", "calibrate"))
    _check_names(learner, ("steps", "batch_size"))
    counts = (
        nonnegative_int("learner.steps", learner.steps),
        nonnegative_int("learner.batch_size", learner.batch_size),
    )
    if not all(counts):
        shape = f"learner.steps = {counts[0]} and learner.batch_size = {counts[1]}"
        raise ParameterError(f"{shape}, but both must be at least 1")
    return counts


def round_cost(learner: Any, draws: int, rate: float) -> tuple[Mechanism, int]:
    """What is composed in a round, and how often, where no record is drawn more often than rate."""
    if not composes(learner):
        return Subsampled(check_private(learner), draws=draws, rate=rate), 1
    steps, batch_size = steps_of(learner)
    return Subsampled(_mechanism("learner.step", learner.step), draws=batch_size, rate=rate), steps


def _check_names(learner: Any, names: tuple[str, ...]) -> None:
    missing = [name for name in names if not hasattr(learner, name)]
    if missing:
        refuse(
            "learner",
            learner,
            f"a private run needs one with {', '.join(missing)}, as in hdp_fast.learners",
        )


def _mechanism(name: str, value: Any) -> Mechanism:
    if not isinstance(value, Mechanism):
        refuse(name, value, "it must be a mechanism of hdp_fast.accounting")
    return value


class Search:
    """The learner's own epsilon that serves a run best."""

    def __init__(
        self,
        learner: Any,
        alpha: float,
        beta: float,
        rounds: int,
        kappa: float,
        epsilon: float,
        delta: float,
    ):
        check_private(learner)
        self.learner, self.rounds, self.kappa = learner, rounds, kappa * WINDOW
        self.alpha, self.beta = alpha, beta / rounds
        self.epsilon, self.delta = epsilon, delta

    def for_promise(self, agnostic: bool) -> tuple[float, int, int]:
        """Learner's epsilon, draws and records for which its error is promised."""

        def found(own: float) -> tuple[float, int]:
            draws = sample_of(self.learner, self.alpha, self.beta, own, agnostic)
            rate = largest_rate(
                self.learner.with_epsilon(own).privacy,
                draws=draws,
                rounds=self.rounds,
                epsilon=self.epsilon,
                delta=self.delta,
            )
            return 1.0001 / (self.kappa * rate), draws

        own, (records, draws) = _cheapest(found)
        if records > _MOST:
            raise ParameterError(f"alpha = {self.alpha}, but it needs more than 2**62 records")
        return own, draws, math.ceil(records)

    def for_records(self, n: int) -> tuple[float, int, int]:
        """Learner's epsilon and draws of the least promised error for n records."""
        rate = min(1.0, (1 + 1e-15) / (self.kappa * n) * (1 + 1e-15))

        def found(own: float) -> tuple[float, int]:
            base = self.learner.with_epsilon(own).privacy

            def private(draws: int) -> bool:
                terms = [(Subsampled(base, draws=draws, rate=rate), self.rounds)]
                return composed_delta(terms, self.epsilon) <= self.delta

            guess = self.epsilon / (6 * own * rate * math.sqrt(self.rounds))
            draws = _most(max(1, int(guess)), private)
            return (self._error(draws, own) if draws else math.inf), draws

        own, (_, draws) = _cheapest(found)
        if not draws:
            rule = f"no draw of so few is ({self.epsilon:g}, {self.delta:g})-DP"
            raise ParameterError(f"n = {n} with rounds = {self.rounds}, but {rule}")
        return own, draws, n

    def _error(self, draws: int, own: float) -> float:
        """The least alpha that the learner promises for so many draws."""
        low, high = 1e-9, 1.0
        for _ in range(30):
            middle = math.sqrt(low * high)
            enough = sample_of(self.learner, middle, self.beta, own, agnostic=True) <= draws
            low, high = (low, middle) if enough else (middle, high)
        return high + own * 1e-6  # the larger epsilon where nothing else tells them apart


def _cheapest(found: Callable[[float], tuple[float, int]]) -> tuple[float, tuple[float, int]]:
    """The learner's epsilon of least cost, the largest that comes close."""
    best = (_LEARNER_EPSILONS[0], found(_LEARNER_EPSILONS[0]))
    for own in _LEARNER_EPSILONS[1:]:
        result = found(own)
        if not result[0] < _WORTHWHILE * best[1][0] and math.isfinite(best[1][0]):
            break
        best = (own, result)
    return best


def _most(guess: int, holds: Callable[[int], bool]) -> int:
    """About the largest number of draws that holds; 0 if none."""
    good, bad = guess, guess
    while good and not holds(good):
        good, bad = good // 2, good
    while good and bad == good:
        bad = 2 * bad
        good = bad if holds(bad) else good
    while good and bad > max(good + 1, _FINE * good):
        middle = max(good + 1, int(math.sqrt(good * bad)))
        good, bad = (middle, bad) if holds(middle) else (good, middle)
    return good


def sample_of(
    learner: Any, alpha: float, beta: float, epsilon: float = 1.0, agnostic: bool = False
) -> int:
    """Records that the learner asks for.

    Raises: ParameterError for a learner that does not say.
    """
    if not hasattr(learner, "sample_size"):
        rule = "draws must be given for a learner without sample_size"
        raise ParameterError(f"draws = None, but {rule}")
    knows = "agnostic" in inspect.signature(learner.sample_size).parameters
    options = {"agnostic": agnostic} if knows else {}
    return max(1, int(learner.sample_size(alpha, beta, epsilon, **options)))
