"""Candidates that ask agents: calibration, reweighing, and agents alone."""

from __future__ import annotations

import math
from collections.abc import Iterable

from . import signals
from .from_records import write_descent
from .methods import (
    Method,
    Setting,
    first_reason,
    lack_agents,
    lack_records,
    write_agents,
    write_learner,
    write_number,
    write_privacy,
)
from .sizes import Sizes
from .worlds import World, list_worlds

# Half width of a test that tells next to nothing.
_WIDEST = 0.45


def write_errors(sizes: Sizes) -> str:
    """The standard errors of a calibrated intercept."""
    errors = [signals.intercept_error(sizes, world) for world in list_worlds(sizes)]
    low, high = write_number(min(errors)), write_number(max(errors))
    return low if low == high else f"{low} to {high}"


def _lack_calibration(sizes: Sizes) -> str | None:
    return first_reason(
        lack_agents(sizes), signals.lack_calibrating_agents(sizes), lack_records(sizes)
    )


def _explain_calibration(sizes: Sizes) -> str:
    return (
        f"the records' model; agents give slope and intercept, standard error of the intercept "
        f"{write_errors(sizes)}, where a shift may be 1 to 3"
    )


def _call_calibration(sizes: Sizes) -> str:
    return f"transfer.calibrate({write_descent(sizes)}, {write_agents(sizes)})"


def _lack_reweighing(sizes: Sizes) -> str | None:
    if sizes.learner == "other":
        return "there is no private learner of this kind"
    needed = "reweighing needs records" if not sizes.n else None
    return first_reason(lack_agents(sizes), needed) or _lack_tests(sizes)


def _lack_tests(sizes: Sizes) -> str | None:
    few = "agents are too few for tests of even four rounds"
    return few if signals.half_width(sizes, 4) > _WIDEST else None


def _runs(sizes: Sizes) -> Iterable[Setting]:
    return [run for run in signals.RUNS if signals.half_width(sizes, run[1]) <= _WIDEST]


def _explain_reweighing(sizes: Sizes, kappa: float, rounds: int) -> str:
    if sizes.learner == "finite":
        epsilon = signals.round_epsilon(sizes, rounds)
        excess = signals.finite_excess(sizes, kappa * sizes.n, epsilon)
        width = signals.half_width(sizes, rounds)
        records = write_number(kappa * sizes.n)
        return (
            f"with kappa = {kappa} an excess error of {write_number(excess)} on {records} records "
            f"in each of {rounds} rounds, tests within {write_number(width)}; finds a rule "
            "that only a part of the records follows; the call chooses kappa and rounds itself"
        )
    return "a linear model blends rules, and its base rate stays the source's; noise of all rounds"


def _call_reweighing(sizes: Sizes, kappa: float, rounds: int) -> str:
    if sizes.learner == "finite":
        epsilon = 1.0 if sizes.epsilon == math.inf else sizes.epsilon
        learner = f"learners.ExponentialLearner(hypotheses, epsilon={epsilon!r})"
    else:
        learner = write_learner(sizes, "epsilon=math.inf, steps=200, batch_size=500")
    return (
        f"transfer.SubsampleTestReweigh({learner}, {write_privacy(sizes)})"
        f".fit(X, y, {write_agents(sizes)}).result_"
    )


def _lack_agents_alone(sizes: Sizes) -> str | None:
    if sizes.learner == "finite" and sizes.agents < (sizes.size or 1):
        return lack_agents(sizes) or f"{sizes.size:,} hypotheses need an agent each"
    return lack_agents(sizes)


def _lose_agents_alone(sizes: Sizes, world: World) -> float:
    if sizes.learner == "finite":
        return signals.lose_votes_of_agents(sizes, world)
    return signals.lose_descent_of_agents(sizes, world)


def _explain_agents_alone(sizes: Sizes) -> str:
    if sizes.learner == "finite":
        deviation = math.sqrt((sizes.size or 1) / (4 * sizes.agents)) / sizes.advantage
        error = write_number(deviation)
        return f"standard error of a hypothesis's error sqrt(|H| / (4 N)) / tau = {error}"
    signal = sizes.advantage * math.sqrt(2 * sizes.agents / (math.pi * sizes.d)) / 2
    return f"signal tau sqrt(2 N / (pi d)) / 2 = {write_number(signal)}; they are of the target"


def _steps(sizes: Sizes) -> tuple[int, int]:
    """Steps and agents of a step."""
    batch_size = min(32, sizes.agents)
    return sizes.agents // batch_size, batch_size


def _call_agents_alone(sizes: Sizes) -> str:
    if sizes.learner == "finite":
        return f"local.learn_by_votes(hypotheses, {write_agents(sizes)})"
    steps, batch_size = _steps(sizes)
    learner = write_learner(sizes, f"epsilon=math.inf, steps={steps}, batch_size={batch_size}")
    return f"local.learn_by_descent({learner}, {write_agents(sizes)})"


CALIBRATION = Method(
    "calibrate",
    _lack_calibration,
    signals.lose_calibrated,
    _explain_calibration,
    _call_calibration,
)
REWEIGHING = Method(
    "reweigh",
    _lack_reweighing,
    signals.lose_reweighed,
    _explain_reweighing,
    _call_reweighing,
    _runs,
)
AGENTS_ALONE = Method(
    "agents alone",
    _lack_agents_alone,
    _lose_agents_alone,
    _explain_agents_alone,
    _call_agents_alone,
)
