"""Which way to label a public pool, and by how many members, from public facts alone."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from numpy.typing import ArrayLike

from .._support.json_text import JsonText
from .._support.notes import note
from .._support.validate import positive, positive_int, probability
from ..accounting import gaussian_mu
from ..data.records import count_rows
from ..exceptions import ParameterError
from ..stability.plans import VotePlan
from .ensemble import MOST_FLIPS
from .labeler import PrivateLabeler
from .public_facts import facts_of
from .public_features import varies
from .statistics_labeler import Population

_MOST = 1 << 53
# A member learns something from about so many records, and next to nothing from fewer than a third.
_RECORDS_OF_A_MEMBER, _FEWEST_RECORDS = 30, 10
# One vote of so many may be a close one.
_STABLE_FOR_ONE_UNSTABLE = 20
# Tables keep these for as many answers as may be asked.
_KEPT = {"epsilon": 1_000.0, "delta": 0.5}
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


@dataclass(frozen=True, kw_only=True, eq=False)
class PoolTask:
    """What is public of a pool that is to be labeled, and by whatever method.

    hdp-fast label and PrivateStudentClassifier both choose by it.

    Attributes:
        points: Number M of rows of the pool.
        columns: Number d of its columns.
        fits: Whether statistics can be released for it: its columns are numbers, and one varies.
        classes: The label set.
        epsilon: Privacy parameter of all answers.
        delta: Privacy parameter of all answers.
        queries: Number of rows that votes would be held on.
        members: The number of members that was asked for, or None.
        options: More parameters of PrivateLabeler.
    """

    points: int
    columns: int
    fits: bool
    classes: ArrayLike
    epsilon: float
    delta: float
    queries: int
    members: int | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, pool: Any, **settings: Any) -> PoolTask:
        """The task for a pool, an array or a data frame; the settings are the other attributes."""
        fits = set(facts_of(pool).kinds) == {"number"} and varies(pool)
        return cls(points=count_rows(pool), columns=pool.shape[1], fits=fits, **settings)

    def choose(self, n: int) -> MethodChoice:
        """Choose the method for n private records.

        Votes are compared as they would be held: on `queries` rows, and by the members that their
        plan needs, however many records there are. Where no table keeps so small an epsilon, no
        number of members is enough.

        Raises:
            ParameterError: A parameter is out of range. An epsilon too small for votes is not.
        """
        choice = choose_method(
            n=n,
            columns=self.columns,
            classes=len(self.classes),  # type: ignore[arg-type]
            points=self.points,
            members=self.members or self._plan_members(),
            epsilon=self.epsilon,
            delta=self.delta,
        )
        if self.fits:
            return choice
        reason = "columns hold something else than numbers, or are constant"
        return replace(choice, method="votes", reason=reason)

    def make_labeler(self, learner: Any = None) -> PrivateLabeler:
        """A labeler by votes, with the number of members that was asked for."""
        unstable = self.queries // _STABLE_FOR_ONE_UNSTABLE + 1
        settings = {
            "epsilon": self.epsilon,
            "delta": self.delta,
            "classes": self.classes,
            "queries": self.queries,
            "max_unstable": unstable,
            "members": self.members,
        }
        return PrivateLabeler(learner, **settings | dict(self.options))

    def _plan_members(self) -> int:
        labeler = self.make_labeler()
        try:
            return labeler.plan().k
        except ParameterError:
            # What else is out of range is refused here.
            labeler.set_params(**_KEPT).plan()
            return _MOST


def population_of(method: str) -> Population:
    """What the statistics labeler takes the pool for: who names statistics knows that it fits."""
    return "tested" if method == "auto" else "same"


def choose_members(plan: VotePlan, n: int, name: str) -> int:
    """Choose how many members vote where no number was asked for.

    It is the plan's, or fewer with 30 records each, as long as a clear vote is hardly ever lost.
    It warns where members learn next to nothing.

    Args:
        plan: The plan of the labeler.
        n: Number of records, which must be public.
        name: Name of the records in the warning.
    """
    wanted = max(n // _RECORDS_OF_A_MEMBER, _fewest_members(plan))
    members = max(1, min(plan.k, wanted, n))
    if n < _FEWEST_RECORDS * members:
        rule = f"{members:,} members that keep the noise of votes small have {n / members:.2g}"
        help_ = "more records, a larger epsilon or fewer queries would help"
        note(f"{name} has {n:,} records, of which {rule} each and learn next to nothing: {help_}")
    return members


def _fewest_members(plan: VotePlan) -> int:
    """The least number of members up to the plan's whose unanimous votes are hardly ever lost."""
    low, high = 1, plan.k
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if plan.flip(middle) <= MOST_FLIPS else (middle + 1, high)
    return low
