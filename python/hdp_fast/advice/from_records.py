"""Candidates that learn from the records alone: statistics, descent, one hypothesis, votes."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import lru_cache

from ..labels import choose_method
from ..stability.plans import members_needed
from . import signals
from .methods import (
    Method,
    Setting,
    lack_records,
    write_learner,
    write_number,
    write_privacy,
)
from .sizes import Sizes
from .worlds import World


def _lack_statistics(sizes: Sizes) -> str | None:
    if sizes.epsilon == math.inf:
        return "nothing is to be protected"
    return lack_records(sizes)


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
    text = f"signal n mu / (K sqrt(d)) = {write_number(choice.signal)}, enough from about 5 on"
    misfit = _misfit(sizes)
    if misfit is None:
        tested = "" if sizes.target == "same" else "; a tenth of the budget tests the pool"
        return text + tested
    moments = write_number(sizes.n * sizes.mu / (2 * sizes.d**1.5))
    return f"{text}; {misfit}, so second moments are released: n mu / (2 d^1.5) = {moments}"


def _call_statistics(sizes: Sizes) -> str:
    if _misfit(sizes) is None:
        population = "same" if sizes.target == "same" else "tested"
        return (
            f"labels.StatisticsLabeler({write_privacy(sizes)}, classes=range({sizes.classes}), "
            f'population="{population}").fit(X, y, pool)'
        )
    return (
        f"learners.SufficientStatistics(learners.FeatureMap.identity({sizes.d}, norm_bound=1.0), "
        f"classes=range({sizes.classes}), second_moments=True)"
        f".release(X, y, {write_privacy(sizes)}).solve()"
    )


def _lose_descent(sizes: Sizes, world: World) -> float:
    return signals.lose_linear(sizes, world, release=signals.DESCENT)


def explain_descent(sizes: Sizes) -> str:
    """Why a descent on the records loses what it is expected to."""
    if sizes.epsilon == math.inf:
        return f"no noise; n / d = {write_number(sizes.n / sizes.d)} records a column"
    signal = sizes.n * sizes.mu / (2 * sizes.classes * math.sqrt(sizes.d))
    return f"half the signal of one release, n mu / (2 K sqrt(d)) = {write_number(signal)}"


def write_descent(sizes: Sizes) -> str:
    """The call of a descent on the records."""
    return f"{write_learner(sizes, write_privacy(sizes))}.learn(X, y)"


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
    return f"{text} = {write_number(excess)} on the records{shift}"


def _call_finite(sizes: Sizes) -> str:
    return f"learners.ExponentialLearner(hypotheses, epsilon={sizes.epsilon!r}).learn(X, y)"


def _lack_votes(sizes: Sizes) -> str | None:
    if sizes.source == "public" or not sizes.n:
        return "there are no private records of the source"
    if sizes.learner == "finite":
        return "the class is finite"
    if sizes.epsilon == math.inf:
        return "nothing is to be protected"
    if sizes.n < 2 * signals.MEMBERS[0]:
        return f"{signals.MEMBERS[0]} members need two records each"
    return signals.lack_table(sizes) if sizes.pool else "there is no pool to label"


def _members(sizes: Sizes) -> Iterable[Setting]:
    return [(members,) for members in signals.MEMBERS if 2 * members <= sizes.n]


def _explain_votes(sizes: Sizes, members: int) -> str:
    flips = signals.flip_unanimous(sizes, members)
    safe = members_needed(signals.design_votes(sizes))
    needed = f"{sizes.d:,} columns" if sizes.learner == "linear" else "about 30 needed"
    queries = signals.count_queries(sizes)
    return (
        f"{members:,} members of {write_number(sizes.n / members)} records for {needed}; unanimous "
        f"votes on {queries:,} points flip with {write_number(flips)}; {safe:,} members would be "
        "safe"
    )


def _call_votes(sizes: Sizes, members: int) -> str:
    queries, table = signals.count_queries(sizes), "vote" if sizes.classes == 2 else "gaussian"
    return (
        f"labels.PrivateLabeler(learner, {write_privacy(sizes)}, classes=range({sizes.classes}), "
        f"queries={queries}, max_unstable={signals.unstable_votes(queries)}, "
        f'members={members}, table="{table}").fit(X, y).label(pool[:{queries}])'
    )


STATISTICS = Method(
    "statistics", _lack_statistics, _lose_statistics, _explain_statistics, _call_statistics
)
DESCENT = Method("DP-SGD", lack_records, _lose_descent, explain_descent, write_descent)
EXPONENTIAL = Method(
    "exponential mechanism", _lack_finite, signals.lose_finite, _explain_finite, _call_finite
)
VOTES = Method("votes", _lack_votes, signals.lose_votes, _explain_votes, _call_votes, _members)
