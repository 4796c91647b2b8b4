"""Which way to label points, from public facts alone."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from .._support.json_text import JsonText
from .._support.validate import positive, positive_int, probability
from ..accounting import gaussian_mu

_MOST = 1 << 53
# A member needs about as many records as these to learn anything.
_RECORDS_OF_A_MEMBER = 30
# The second moments of a pool stand for those of a population from this many points a column on.
_POINTS_OF_A_COLUMN = 2


@dataclass(frozen=True, kw_only=True)
class MethodChoice(JsonText):
    """A way to label points, and why.

    Attributes:
        method: "statistics" for StatisticsLabeler, "votes" for PrivateLabeler.
        reason: The reason, in one sentence.
        signal: How far the sums of a class's records may rise above the noise: n mu / (K sqrt(d)),
            where the Gaussian mechanism of parameter mu has this epsilon and delta. Below 1 the
            noise hides whatever d features say; from about 5 on labels are nearly those of a model
            without privacy, where they are linear in the features.

    Examples:
        >>> from hdp_fast import labels
        >>> labels.MethodChoice(method="votes", reason="as asked", signal=0.5).method
        'votes'
    """

    method: Literal["statistics", "votes"]
    reason: str
    signal: float


def choose_method(
    *,
    n: int,
    columns: int,
    classes: int,
    points: int,
    members: int,
    epsilon: float,
    delta: float,
) -> MethodChoice:
    """Chooses between a release of statistics and votes, from public facts alone.

    One release of statistics wins wherever labels are about linear in public features, which no
    public fact tells: it is chosen unless a rule speaks against it. It needs a pool that stands for
    the population's second moments, 2 points a column. Where the noise hides whatever the features
    say, votes are chosen if there are records for the members that they need, 30 for each.

    Args:
        n: Number of private records, at least 1.
        columns: Number d of feature columns, at least 1.
        classes: Number K of labels, at least 2.
        points: Number of public points, at least 1.
        members: Number of members that votes would need, at least 1, as PrivateLabeler.plan states.
        epsilon: Privacy parameter, above 0.
        delta: Privacy parameter, in (0, 1).

    Returns:
        The method, and the reason.

    Raises:
        ParameterError: An argument is out of range.

    Guarantee:
        No record is read; the choice is a function of its arguments.

    Examples:
        >>> from hdp_fast import labels
        >>> facts = {"columns": 40, "classes": 10, "points": 1_000, "members": 2_000}
        >>> choice = labels.choose_method(n=3_500, epsilon=1.0, delta=1e-6, **facts)
        >>> choice.method, round(choice.signal)
        ('statistics', 13)
    """
    n, d = positive_int("n", n, _MOST), positive_int("columns", columns, _MOST)
    k = positive_int("classes", classes, _MOST)
    points, members = positive_int("points", points, _MOST), positive_int("members", members, _MOST)
    mu = gaussian_mu(positive("epsilon", epsilon), probability("delta", delta))
    signal = n * mu / (k * math.sqrt(d))
    if points < _POINTS_OF_A_COLUMN * d:
        reason = f"{points:,} public points are too few to stand for {d:,} columns"
        return MethodChoice(method="votes", reason=reason, signal=signal)
    if signal < 1 and n >= _RECORDS_OF_A_MEMBER * members:
        reason = f"noise hides {d:,} columns of {n:,} records, enough for {members:,} members"
        return MethodChoice(method="votes", reason=reason, signal=signal)
    rise = f"{signal:,.0f}" if signal >= 10 else f"{signal:.2g}"
    reason = f"sums rise {rise} times above noise if labels are about linear in {d:,} columns"
    return MethodChoice(method="statistics", reason=reason, signal=signal)
