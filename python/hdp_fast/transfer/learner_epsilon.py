"""The search for the epsilon that the learner gets for its own draws."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from .. import accounting
from .._support.validate import nonnegative_int, refuse
from ..accounting.calibration import guess_rate, largest_draws
from ..accounting.mechanisms import BoundedRange, Mechanism, Subsampled
from ..accounting.sampling_rate import WINDOW
from ..exceptions import ParameterError
from .goal import Goal

# The candidates for the learner's own epsilon; smaller ones need ever more draws.
LEARNER_EPSILONS = tuple(2.0**-k for k in range(7))
_WORTHWHILE, _UNSURE = 0.97, 0.003
# Fewer draws than these are not guessed: a guess of one may be none.
_FEW = 100
_MOST = 1 << 62

# The learner's epsilon, and whether a guess at the cost is enough.
_Cost = Callable[[float, bool], tuple[float, int]]


def composes(learner: Any) -> bool:
    """Whether the learner draws from the weights in many private steps, like PrivateSGD."""
    return hasattr(learner, "learn_weighted")


def check_private(learner: Any) -> Mechanism:
    """The learner's own guarantee, on records already drawn.

    Raises:
        ParameterError: The learner has no guarantee, or claims bounded range for a selection that
            does not have it.
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


def validate_steps(learner: Any) -> tuple[int, int]:
    """The number of steps of a learner that composes, and the number of draws of each step.

    Raises:
        ParameterError: The learner cannot be private.
    """
    # The class is checked, since `step` of an instance without noise raises.
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


def account_round(learner: Any, draws: int, rate: float) -> tuple[Mechanism, int]:
    """The mechanism that a round composes, and how often.

    No draw holds a record with probability above `rate`.
    """
    if not composes(learner):
        return Subsampled(check_private(learner), draws=draws, rate=rate), 1
    steps, batch_size = validate_steps(learner)
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


def serve_promise(goal: Goal, *, agnostic: bool) -> tuple[int, int, float]:
    """The fewest records for which the learner errs by alpha more than the best, or than `opt`.

    Returns: The records, the draws of a round, and the learner's epsilon on them.

    Raises:
        ParameterError: There would be more than `2**62` records.
    """
    check_private(goal.learner)
    (epsilon, delta), beta = goal.loss, goal.beta / goal.rounds
    kappa = goal.density * WINDOW
    opt = 0.0 if agnostic else goal.opt

    def count(learner_epsilon: float, guessed: bool) -> tuple[float, int]:
        draws = compute_sample_size(goal.learner, goal.alpha, beta, learner_epsilon, agnostic, opt)
        find = guess_rate if guessed else accounting.largest_rate
        rate = find(
            goal.learner.with_epsilon(learner_epsilon).privacy,
            draws=draws,
            rounds=goal.rounds,
            epsilon=epsilon,
            delta=delta,
        )
        return 1.0001 / (kappa * rate), draws

    learner_epsilon, records, draws = _cheapest(count)
    if records > _MOST:
        raise ParameterError(f"alpha = {goal.alpha}, but it needs more than 2**62 records")
    return math.ceil(records), draws, learner_epsilon


def serve_records(goal: Goal, n: int) -> tuple[int, int, float]:
    """The draws for which the learner promises the least error, with n records.

    Returns: The records, the draws of a round, and the learner's epsilon on them.

    Raises:
        ParameterError: Not even one draw is private.
    """
    check_private(goal.learner)
    rate = min(1.0, (1 + 1e-15) / (goal.density * WINDOW * n) * (1 + 1e-15))

    def bound_error(learner_epsilon: float, guessed: bool) -> tuple[float, int]:
        draws = _most_draws(goal, learner_epsilon, rate, guessed)
        if guessed and draws < _FEW:
            draws = _most_draws(goal, learner_epsilon, rate, False)
        return (_error(goal, draws, learner_epsilon) if draws else math.inf), draws

    learner_epsilon, _, draws = _cheapest(bound_error)
    if not draws:
        rule = f"no draw of so few is ({goal.epsilon:g}, {goal.delta:g})-DP"
        raise ParameterError(f"n = {n} with rounds = {goal.rounds}, but {rule}")
    return n, draws, learner_epsilon


def _most_draws(goal: Goal, learner_epsilon: float, rate: float, guessed: bool) -> int:
    epsilon, delta = goal.loss
    return largest_draws(
        goal.learner.with_epsilon(learner_epsilon).privacy,
        rate=rate,
        rounds=goal.rounds,
        epsilon=epsilon,
        delta=delta,
        guessed=guessed,
    )


def _error(goal: Goal, draws: int, learner_epsilon: float) -> float:
    """The least alpha that the learner promises for this number of draws.

    Where it promises none, the number is above 1, and smaller for more draws.
    """

    def count(alpha: float) -> int:
        beta = goal.beta / goal.rounds
        return compute_sample_size(goal.learner, alpha, beta, learner_epsilon, agnostic=True)

    low, high = 1e-9, 1.0
    largest = count(1 - 1e-9)
    if largest > draws:
        return largest / draws
    for _ in range(30):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if count(middle) <= draws else (middle, high)
    return high + learner_epsilon * 1e-6  # prefers the smaller epsilon where errors are equal


def _cheapest(cost_of: _Cost) -> tuple[float, float, int]:
    """The learner's epsilon of about the least cost, that cost, and the draws.

    The search goes from large to small values and stops at the first that saves too little. Guesses
    are enough to compare two, unless they are close to that; the cost returned is no guess.
    """
    best, least = LEARNER_EPSILONS[0], cost_of(LEARNER_EPSILONS[0], True)[0]
    for learner_epsilon in LEARNER_EPSILONS[1:]:
        cost = cost_of(learner_epsilon, True)[0]
        part = cost / least if math.isfinite(least) else 0.0
        if abs(part - _WORTHWHILE) < _UNSURE:
            part = cost_of(learner_epsilon, False)[0] / cost_of(best, False)[0]
        if not part < _WORTHWHILE:
            break
        best, least = learner_epsilon, cost
    return best, *cost_of(best, False)


def _parameters(method: Callable[..., Any]) -> frozenset[str]:
    """The names of what a method takes; those of plain ones are remembered, which a search asks."""
    function = getattr(method, "__func__", method)
    # Other callables need not be hashable.
    find = _parameters_of_function if inspect.isfunction(function) else _find_parameters
    return find(function)


def _find_parameters(function: Callable[..., Any]) -> frozenset[str]:
    return frozenset(inspect.signature(function).parameters)


_parameters_of_function = lru_cache(maxsize=16)(_find_parameters)


def compute_sample_size(
    learner: Any,
    alpha: float,
    beta: float,
    epsilon: float = 1.0,
    agnostic: bool = False,
    opt: float = 0.0,
) -> int:
    """The number of records that the learner asks for an excess error of at most alpha.

    Raises:
        ParameterError: The learner has no sample_size, or one that does not know of opt > 0.
    """
    if not hasattr(learner, "sample_size"):
        rule = "draws must be given for a learner without sample_size"
        raise ParameterError(f"draws = None, but {rule}")
    names = _parameters(learner.sample_size)
    options: dict[str, Any] = {"agnostic": agnostic} if "agnostic" in names else {}
    if opt:
        if "opt" not in names:
            rule = "the learner's sample_size must take it"
            raise ParameterError(f"opt = {opt:g}, but {rule}")
        options["opt"] = opt
    return max(1, int(learner.sample_size(alpha, beta, epsilon, **options)))
