"""The candidates: when each can run, what it is expected to lose, why, and its call."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from ..labels import choose_method
from ..stability.plans import members_needed
from . import signals
from .sizes import Sizes
from .worlds import World, list_worlds

CONSTANT = "constant"
# Half width of a test that tells next to nothing.
_WIDEST = 0.45


Setting = tuple[Any, ...]


@dataclass(frozen=True)
class Outlook:
    """What a method is expected to lose of what can be learned: least, mean and most."""

    low: float
    mean: float
    high: float


def _no_settings(sizes: Sizes) -> Iterable[Setting]:
    return [()]


@dataclass(frozen=True)
class Method:
    """A candidate.

    Attributes:
        name: Its name.
        lack: Says why it cannot run at these sizes; None where it can.
        lose: The share that it loses at these sizes in a world.
        explain: The formula in words, with its numbers.
        write_call: A line of Python that runs it.
        settings: Numbers from which it chooses by the mean: the last arguments of `lose`,
            `explain` and `write_call`.
    """

    name: str
    lack: Callable[[Sizes], str | None]
    lose: Callable[..., float]
    explain: Callable[..., str]
    write_call: Callable[..., str]
    settings: Callable[[Sizes], Iterable[Setting]] = _no_settings

    def forecast(self, sizes: Sizes) -> tuple[Outlook, Setting]:
        """What it loses over all worlds with its best setting, and this setting."""
        worlds = list_worlds(sizes)
        outlooks = [(self._average(sizes, worlds, one), one) for one in self.settings(sizes)]
        return min(outlooks, key=lambda pair: pair[0].mean)

    def _average(self, sizes: Sizes, worlds: tuple[World, ...], setting: Setting) -> Outlook:
        losses = (self.lose(sizes, world, *setting) for world in worlds)
        shares = [min(1.0, max(0.0, loss)) for loss in losses]
        return Outlook(min(shares), math.fsum(shares) / len(shares), max(shares))


def _number(value: float) -> str:
    """A number with two or three digits, as people write it."""
    if value == math.inf:
        return "no limit"
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


def _python(value: float) -> str:
    return "math.inf" if value == math.inf else repr(value)


def _privacy(sizes: Sizes) -> str:
    if sizes.epsilon == math.inf:
        return "epsilon=math.inf"
    return f"epsilon={sizes.epsilon!r}, delta={sizes.delta!r}"


def _any(sizes: Sizes) -> str | None:
    return None


def _needs_linear(sizes: Sizes) -> str | None:
    if sizes.learner == "finite":
        return "the class is finite"
    return None if sizes.n else "there are no private records"


def _needs_agents(sizes: Sizes) -> str | None:
    if not sizes.agents:
        return "there are no agents"
    return None if sizes.classes == 2 else "agents answer about two classes"


def _first(*reasons: str | None) -> str | None:
    return next((reason for reason in reasons if reason), None)


# Statistics ---------------------------------------------------------------------------------------


def _lack_statistics(sizes: Sizes) -> str | None:
    if sizes.epsilon == math.inf:
        return "nothing is to be protected"
    return _needs_linear(sizes)


@lru_cache(maxsize=1024)
def _misfit(sizes: Sizes) -> str | None:
    """Why the pool cannot stand for the records' second moments; None if it can."""
    if not sizes.pool:
        return "there is no pool"
    if sizes.target == "shifted":
        return "the pool is of another population"
    choice = choose_method(
        n=sizes.n,
        columns=sizes.d,
        classes=sizes.classes,
        points=sizes.pool,
        members=1 << 50,
        epsilon=sizes.epsilon,
        delta=sizes.delta,
    )
    return None if choice.method == "statistics" else choice.reason


def _lose_statistics(sizes: Sizes, world: World) -> float:
    if _misfit(sizes) is not None:
        return signals.lose_linear(sizes, world, moments=True)
    if sizes.target == "same":
        return signals.lose_linear(sizes, world)
    # A tenth of the budget tests the pool; where it does not fit, gradients learn from the rest.
    rest = 0.9 if world.overlap == 1 else 0.9 * signals.DESCENT
    return signals.lose_linear(sizes, world, release=rest)


def _explain_statistics(sizes: Sizes) -> str:
    choice = choose_method(
        n=sizes.n,
        columns=sizes.d,
        classes=sizes.classes,
        points=max(sizes.pool, 1),
        members=1 << 50,
        epsilon=sizes.epsilon,
        delta=sizes.delta,
    )
    text = f"signal n mu / (K sqrt(d)) = {_number(choice.signal)}, enough from about 5 on"
    misfit = _misfit(sizes)
    if misfit is None:
        tested = "" if sizes.target == "same" else "; a tenth of the budget tests the pool"
        return text + tested
    moments = _number(sizes.n * sizes.mu / (2 * sizes.d**1.5))
    return f"{text}; {misfit}, so second moments are released: n mu / (2 d^1.5) = {moments}"


def _call_statistics(sizes: Sizes) -> str:
    if _misfit(sizes) is None:
        population = "same" if sizes.target == "same" else "tested"
        return (
            f"labels.StatisticsLabeler({_privacy(sizes)}, classes=range({sizes.classes}), "
            f'population="{population}").fit(X, y, pool)'
        )
    return (
        f"learners.SufficientStatistics(learners.FeatureMap.identity({sizes.d}, norm_bound=1.0), "
        f"classes=range({sizes.classes}), second_moments=True)"
        f".release(X, y, {_privacy(sizes)}).solve()"
    )


# Gradients ----------------------------------------------------------------------------------------


def _lose_descent(sizes: Sizes, world: World) -> float:
    return signals.lose_linear(sizes, world, release=signals.DESCENT)


def _explain_descent(sizes: Sizes) -> str:
    if sizes.epsilon == math.inf:
        return f"no noise; n / d = {_number(sizes.n / sizes.d)} records a column"
    signal = sizes.n * sizes.mu / (2 * sizes.classes * math.sqrt(sizes.d))
    return f"half the signal of one release, n mu / (2 K sqrt(d)) = {_number(signal)}"


def _learner(sizes: Sizes, privacy: str) -> str:
    loss = 'loss="logistic"' if sizes.classes == 2 else f'loss="softmax", classes={sizes.classes}'
    return f"learners.PrivateSGD({loss}, {privacy})"


def _call_descent(sizes: Sizes) -> str:
    return f"{_learner(sizes, _privacy(sizes))}.learn(X, y)"


def _agents(sizes: Sizes) -> str:
    return f"local.Agents(agents_X, agents_y, epsilon={sizes.agents_epsilon!r})"


# A finite class -----------------------------------------------------------------------------------


def _lack_finite(sizes: Sizes) -> str | None:
    if sizes.learner != "finite":
        return "the class is not finite"
    if sizes.epsilon == math.inf:
        return "nothing is to be protected"
    return None if sizes.n else "there are no private records"


def _explain_finite(sizes: Sizes) -> str:
    excess = signals.finite_excess(sizes, sizes.n, sizes.epsilon)
    text = "excess error 2 ln|H| / (epsilon n) + sqrt(ln|H| / (2 n))"
    shift = "" if sizes.target == "same" else "; useless if the target follows a minority's rule"
    return f"{text} = {_number(excess)} on the records{shift}"


def _call_finite(sizes: Sizes) -> str:
    return f"learners.ExponentialLearner(hypotheses, epsilon={sizes.epsilon!r}).learn(X, y)"


# Votes --------------------------------------------------------------------------------------------


def _lack_votes(sizes: Sizes) -> str | None:
    if sizes.source == "public" or not sizes.n:
        return "there are no private records of the source"
    if sizes.learner == "finite":
        return "the class is finite"
    if sizes.epsilon == math.inf:
        return "nothing is to be protected"
    if sizes.n < 2 * signals.MEMBERS[0]:
        return f"{signals.MEMBERS[0]} members need two records each"
    return None if sizes.pool else "there is no pool to label"


def _members(sizes: Sizes) -> Iterable[Setting]:
    return [(members,) for members in signals.MEMBERS if 2 * members <= sizes.n]


def _queries(sizes: Sizes) -> int:
    return min(sizes.pool, signals.MOST_QUERIES)


def _explain_votes(sizes: Sizes, members: int) -> str:
    flips = signals.flip_unanimous(sizes, members)
    safe = members_needed(signals.design_votes(sizes))
    needed = f"{sizes.d:,} columns" if sizes.learner == "linear" else "about 30 needed"
    return (
        f"{members:,} members of {_number(sizes.n / members)} records for {needed}; unanimous "
        f"votes on {_queries(sizes):,} points flip with {_number(flips)}; {safe:,} members "
        "would be safe"
    )


def _call_votes(sizes: Sizes, members: int) -> str:
    queries, table = _queries(sizes), "vote" if sizes.classes == 2 else "gaussian"
    return (
        f"labels.PrivateLabeler(learner, {_privacy(sizes)}, classes=range({sizes.classes}), "
        f"queries={queries}, max_unstable={signals.unstable_votes(queries)}, "
        f'members={members}, table="{table}").fit(X, y).label(pool[:{queries}])'
    )


# Source and agents --------------------------------------------------------------------------------


def _error_range(sizes: Sizes) -> str:
    errors = [signals.intercept_error(sizes, world) for world in list_worlds(sizes)]
    low, high = _number(min(errors)), _number(max(errors))
    return low if low == high else f"{low} to {high}"


def _lack_calibration(sizes: Sizes) -> str | None:
    return _first(
        _needs_agents(sizes), signals.lack_calibrating_agents(sizes), _needs_linear(sizes)
    )


def _explain_calibration(sizes: Sizes) -> str:
    return (
        f"the records' model; agents give slope and intercept, standard error of the intercept "
        f"{_error_range(sizes)}, where a shift may be 1 to 3"
    )


def _call_calibration(sizes: Sizes) -> str:
    return f"transfer.calibrate({_call_descent(sizes)}, {_agents(sizes)})"


def _lack_reweighing(sizes: Sizes) -> str | None:
    if sizes.learner == "other":
        return "there is no private learner of this kind"
    needed = "reweighing needs records" if not sizes.n else None
    return _first(_needs_agents(sizes), needed) or _lack_tests(sizes)


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
        return (
            f"excess error {_number(excess)} on kappa n = {_number(kappa * sizes.n)} records in "
            f"each of {rounds} rounds, tests within {_number(width)}; finds a rule that only a "
            "part of the records follows"
        )
    return "a linear model blends rules, and its base rate stays the source's; noise of all rounds"


def _call_reweighing(sizes: Sizes, kappa: float, rounds: int) -> str:
    if sizes.learner == "finite":
        epsilon = 1.0 if sizes.epsilon == math.inf else sizes.epsilon
        learner = f"learners.ExponentialLearner(hypotheses, epsilon={epsilon!r})"
    else:
        learner = _learner(sizes, "epsilon=math.inf, steps=200, batch_size=500")
    return (
        f"transfer.SubsampleTestReweigh({learner}, {_privacy(sizes)})"
        f".fit(X, y, {_agents(sizes)}).result_"
    )


def _lack_agents_alone(sizes: Sizes) -> str | None:
    if sizes.learner == "finite" and sizes.agents < (sizes.size or 1):
        return _needs_agents(sizes) or f"{sizes.size:,} hypotheses need an agent each"
    return _needs_agents(sizes)


def _lose_agents_alone(sizes: Sizes, world: World) -> float:
    if sizes.learner == "finite":
        return signals.lose_votes_of_agents(sizes, world)
    return signals.lose_descent_of_agents(sizes, world)


def _explain_agents_alone(sizes: Sizes) -> str:
    if sizes.learner == "finite":
        deviation = math.sqrt((sizes.size or 1) / (4 * sizes.agents)) / sizes.advantage
        return (
            f"standard error of a hypothesis's error sqrt(|H| / (4 N)) / tau = {_number(deviation)}"
        )
    signal = sizes.advantage * math.sqrt(2 * sizes.agents / (math.pi * sizes.d)) / 2
    return f"signal tau sqrt(2 N / (pi d)) / 2 = {_number(signal)}; no shift, since nobody else"


def _steps(sizes: Sizes) -> tuple[int, int]:
    """Steps and agents of a step."""
    batch_size = min(32, sizes.agents)
    return sizes.agents // batch_size, batch_size


def _call_agents_alone(sizes: Sizes) -> str:
    if sizes.learner == "finite":
        return f"local.learn_by_votes(hypotheses, {_agents(sizes)})"
    steps, batch_size = _steps(sizes)
    learner = _learner(sizes, f"epsilon=math.inf, steps={steps}, batch_size={batch_size}")
    return f"local.learn_by_descent({learner}, {_agents(sizes)})"


# A public source ----------------------------------------------------------------------------------


def _lack_public_source(sizes: Sizes) -> str | None:
    return "the class is finite" if sizes.learner == "finite" else None


def _explain_public_source(sizes: Sizes) -> str:
    return f"{sizes.pool:,} public records for {sizes.d:,} columns; costs no privacy, keeps a shift"


def _call_public_source(sizes: Sizes) -> str:
    return f"{_learner(sizes, 'epsilon=math.inf')}.learn(source_X, source_y)"


def _lack_adaptation(sizes: Sizes) -> str | None:
    two = None if sizes.classes == 2 else "adaptation learns numbers or two classes"
    return _first(_needs_linear(sizes), two)


def _explain_adaptation(sizes: Sizes) -> str:
    k = min(sizes.d, signals.DIRECTIONS)
    if sizes.epsilon == math.inf:
        return f"residuals of the public model in {k} directions, without noise"
    signal = _number(sizes.n * sizes.mu / (2 * math.sqrt(k)))
    text = f"residuals of the public model in {k} directions, n mu / (2 sqrt({k})) = {signal}"
    return f"{text} times the gap; nothing to mend if there is none"


def _call_adaptation(sizes: Sizes) -> str:
    return (
        f'adaptation.MomentAdaptation({_privacy(sizes)}, task="classification")'
        ".fit(source_X, source_y, X, y)"
    )


def _explain_calibrated_source(sizes: Sizes) -> str:
    return f"agents mend slope and intercept, standard error {_error_range(sizes)}"


def _call_calibrated_source(sizes: Sizes) -> str:
    return f"transfer.calibrate({_call_public_source(sizes)}, {_agents(sizes)})"


def _lack_calibrated_source(sizes: Sizes) -> str | None:
    few = signals.lack_calibrating_agents(sizes)
    return _first(_needs_agents(sizes), few, _lack_public_source(sizes))


# The constant -------------------------------------------------------------------------------------


def _lose_all(sizes: Sizes, world: World) -> float:
    return 1.0


def _explain_constant(sizes: Sizes) -> str:
    return f"one label for everybody errs on {_number(sizes.constant_error)}, or less"


def _call_constant(sizes: Sizes) -> str:
    return "numpy.full(len(X), label)"


# What is cheaper stands first, and wins ties.
_CONSTANT = Method(CONSTANT, _any, _lose_all, _explain_constant, _call_constant)
_AGENTS_ALONE = Method(
    "agents alone",
    _lack_agents_alone,
    _lose_agents_alone,
    _explain_agents_alone,
    _call_agents_alone,
)
PRIVATE_SOURCE = (
    Method("statistics", _lack_statistics, _lose_statistics, _explain_statistics, _call_statistics),
    Method("DP-SGD", _needs_linear, _lose_descent, _explain_descent, _call_descent),
    Method(
        "exponential mechanism", _lack_finite, signals.lose_finite, _explain_finite, _call_finite
    ),
    Method("votes", _lack_votes, signals.lose_votes, _explain_votes, _call_votes, _members),
    Method(
        "calibrate",
        _lack_calibration,
        signals.lose_calibrated,
        _explain_calibration,
        _call_calibration,
    ),
    Method(
        "reweigh",
        _lack_reweighing,
        signals.lose_reweighed,
        _explain_reweighing,
        _call_reweighing,
        _runs,
    ),
    _AGENTS_ALONE,
    _CONSTANT,
)
PUBLIC_SOURCE = (
    Method(
        "public source",
        _lack_public_source,
        signals.lose_source,
        _explain_public_source,
        _call_public_source,
    ),
    Method("adapt", _lack_adaptation, signals.lose_adapted, _explain_adaptation, _call_adaptation),
    Method(
        "DP-SGD",
        _needs_linear,
        signals.lose_target_alone,
        _explain_descent,
        _call_descent,
    ),
    Method(
        "calibrate",
        _lack_calibrated_source,
        signals.lose_calibrated_source,
        _explain_calibrated_source,
        _call_calibrated_source,
    ),
    _AGENTS_ALONE,
    _CONSTANT,
)


def list_methods(sizes: Sizes) -> tuple[Method, ...]:
    """All methods for this source, whether they can run or not."""
    return PUBLIC_SOURCE if sizes.source == "public" else PRIVATE_SOURCE
