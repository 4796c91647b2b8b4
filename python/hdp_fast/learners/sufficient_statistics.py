"""One release instead of a thousand: the sufficient statistics of linear models, with noise."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import noise
from .._support.notes import keep_result, note_large_delta
from .._support.numbers import finite_vector
from .._support.parameters import Checked, Rules, optional
from .._support.random_state import check_random_state, make_stream
from .._support.types import Floats, Integers, RandomState
from .._support.validate import (
    array,
    bounded,
    bounded_positive,
    curator_relation,
    flag,
    instance,
    number,
    positive_int,
    probability,
    read_only,
    refuse,
)
from ..budget.account import Budget, spend
from ..data.chunks import Chunks, fold_labeled, settle_owners
from ..data.goal import Goal, check_goal
from ..data.states import State, describe_settings, part_names, require_shapes
from ..exceptions import ParameterError, ShapeError
from ..record import PrivacyRecord, gaussian_law, rng_of
from .feature_maps import FeatureMap
from .released_statistics import ReleasedStatistics
from .statistics_features import check_label_set, feature_sums, target_sums
from .statistics_noise import (
    MOST_RECORDS,
    Released,
    StatisticsNoise,
    calibrate_statistics,
    choose_digits,
    note_before,
    note_signal,
)

_SOURCE = (
    "Gaussian mechanism with the curve of Balle and Wang 2018; released moments as in Wang 2018"
)


_MOST_CAPACITY = 1 << 40
_JOB = "learners.SufficientStatistics"
# More than any number of bits has.
_DIGITS = 9


class PrivateSums(NamedTuple):
    """What is released, before noise."""

    sums: Integers
    moments: Integers | None


@dataclass(frozen=True, eq=False)
class SufficientStatistics(Checked):
    """What linear models need of private labels, released once with Gaussian noise.

    For classes the release is the sum over all records of phi(x) (e_y - 1/K)^T, a matrix of d
    rows and K columns. It is all that multinomial logistic regression needs of the labels. For
    targets it is the sum of phi(x) y, with y clipped to label_bound. The second moments, the sum
    of phi(x) phi(x)^T, are released with it where second_moments is true, in the same budget.

    phi is a public feature map whose rows have norm at most 1. Every setting must be chosen
    without looking at the private records.

    Attributes:
        features: The feature map phi into d columns, a FeatureMap.
        classes: The public label set, 2 to 4,096 different integers, real numbers or texts. Exactly
            one of classes and label_bound must be set.
        label_bound: Bound c for real targets, which are clipped to [-c, c]; from 1e-30 to 1e30.
        second_moments: Whether the second moments are released, too. Without them a model needs a
            public pool of the same population; with them it needs none, at the price of noise on d
            (d + 1) / 2 more numbers.
        ratio: Deviation of the noise on the diagonal of the second moments over that on the sums,
            from 0.01 to 100.
        neighbors: "replace_one", where the number of records is public, or "add_remove", where it
            is released with noise in the same budget.
        capacity: The most records that all parts of a fold hold together, public, up to `2**40`. It
            decides on the digits of a state: features are cut to multiples of `2**-20` where it is
            at most `2**20`, of `2**-14` for `2**31`, and of `2**-10` for `2**40`.

    Raises:
        ParameterError: A setting lies outside its range, or not exactly one of classes and
            label_bound is set.

    Guarantee:
        That of release.

    Source:
        McCullagh and Nelder 1989 for the sufficient statistic; Vu and Slavkovic 2009 and Wang 2018
        for releasing it.

    Examples:
        >>> import numpy as np
        >>> from hdp_fast.learners import FeatureMap, SufficientStatistics
        >>> X, y = np.tile([[0.9, 0.1], [0.1, 0.9]], (5_000, 1)), np.tile([0, 1], 5_000)
        >>> description = SufficientStatistics(FeatureMap.identity(2), classes=[0, 1])
        >>> statistics = description.release(X, y, epsilon=1.0, delta=1e-6)
        >>> print(f"{statistics.sums_deviation:.2f}")  # noise on each sum of 10,000 records
        5.97
        >>> statistics.solve(pool=X[:100]).predict([[0.9, 0.2], [0.3, 0.8]])
        array([0, 1])
    """

    features: FeatureMap
    classes: ArrayLike | None = None
    label_bound: float | None = None
    second_moments: bool = False
    ratio: float = 1.0
    neighbors: str = "replace_one"
    capacity: int = MOST_RECORDS

    RULES: ClassVar[Rules] = {
        "features": partial(instance, kind=FeatureMap, what="a FeatureMap"),
        "classes": optional(check_label_set),
        "label_bound": optional(bounded_positive),
        "second_moments": flag,
        "ratio": partial(bounded, low=0.01, high=100),
        "neighbors": curator_relation,
        "capacity": partial(positive_int, most=_MOST_CAPACITY),
    }

    def __post_init__(self) -> None:
        """Validate the settings."""
        super().__post_init__()
        if (self.classes is None) == (self.label_bound is None):
            rule = "exactly one of them must be set: the public labels, or a bound on targets"
            raise ParameterError(
                f"classes = {self.classes!r} and label_bound = {self.label_bound}, but {rule}"
            )

    def fold(self, X: Any, y: ArrayLike, *, part: str | None = None) -> State:
        """Adds up what some of the records contribute, exactly: a part of what release takes.

        Args:
            X: Private records, as release takes them.
            y: Their labels, as release takes them.
            part: A public name of this part of the records, by which a part that is added twice is
                refused; None gives it none.

        Returns:
            The private state of these records, for `+` and release. Its size does not depend on
            their number.

        Raises:
            ShapeError: As in release.
            ParameterError: As in release.

        Cost:
            That of release.
        """
        bits = choose_digits(describe_release(self), self.capacity)
        return self._fold(X, y, bits=bits, parts=part_names(part))

    @keep_result
    def release(
        self,
        X: Any,
        y: ArrayLike | None = None,
        *,
        epsilon: float,
        delta: float,
        ids: ArrayLike | None = None,
        rows_per_person: int = 1,
        budget: Budget | None = None,
        random_state: RandomState = None,
    ) -> ReleasedStatistics:
        """Releases the statistics of private records, once.

        release warns with a UtilityWarning before anything is spent where n, d, K and epsilon leave
        nothing to learn, and afterwards where the released numbers look like noise alone.

        Args:
            X: The private records, n rows as the feature map takes them, n at most `2**31`; or
                data.Chunks of them with their labels; or the State that fold made of them.
            y: Their labels, shape (n,): entries of classes, or finite real targets. None beside
                Chunks or a State.
            epsilon: Privacy parameter, above 0; math.inf adds no noise and protects no one.
            delta: Privacy parameter, strictly between 0 and 1.
            ids: Whose row it is, shape (n,), as data.bound_rows takes them: the guarantee is then
                for people, who may have several rows. None protects each row. Chunks name a column
                of ids themselves.
            rows_per_person: The most rows of a person that are used, the others being left out;
                public.
            budget: The budget that the release is charged to before anything is drawn; None charges
                nothing.
            random_state: None draws from the operating system. An int or a Generator makes a
                reproducible stream for tests, which protects no one.

        Returns:
            The frozen ReleasedStatistics, which may be published.

        Raises:
            ShapeError: X does not have the columns of the feature map, or y not n entries.
            ParameterError: An entry of X or y lies outside its domain, an argument outside its
                range, no noise that is drawn is enough, or a release without noise comes with a
                budget. All rows are checked, those that are left out as well.
            BudgetExceeded: The budget has less than epsilon or delta left.
            Exception: What the functions of Chunks raise; nothing is spent then.

        Guarantee:
            (epsilon, delta)-DP under neighbors, for each row, or with ids for each person: the mu
            of the Gaussian mechanism is rows_per_person times that of a row. It is exact: features
            are cut towards zero to integers whose norm is checked in integers, sums of them are
            exact, and to each an exact normal deviate is added, rounded to an integer. The curve of
            the continuous Gaussian therefore holds. A record whose features leave the unit ball
            counts as zero. Under "add_remove" the number of rows shows in the running time, which
            is not protected. All errors are raised before any coin is drawn or budget spent.

        Cost:
            A pass over X; n d (K + columns of X), and n d^2 more for second moments.
        """
        goal = self._read_goal(epsilon, delta, budget, random_state)
        if isinstance(X, Chunks | State):
            X, persons = settle_owners(X, ids, rows_per_person)
            goal = goal._replace(persons=persons)
            state = X if isinstance(X, State) else self._fold_chunks(X, y, goal)
            return release_state(self, state, goal)
        X = array("X", X)
        n = _count_rows(X)
        if y is None:
            raise ParameterError("y = None, but arrays of records must come with their labels")
        _check_number(n, self.neighbors)
        labels = self._encode(y, n)
        goal = goal.of_people(ids, rows_per_person, n)
        return release_settled(self, goal.persons.select(X), goal.persons.select(labels), goal)

    def _fold_chunks(self, chunks: Chunks, y: Any, goal: Goal) -> State:
        """The state of Chunks with the digits that an array of all their records would have."""
        if y is not None:
            raise ParameterError("y was passed beside Chunks, which hold the labels")
        if self.neighbors == "add_remove" and goal.protects:
            fold = partial(self._fold, bits=choose_bits(self, 1, goal))
            return chunks.fold(partial(fold_labeled, fold))
        n = chunks.count()
        _check_number(n, self.neighbors)
        fold = partial(self._fold, bits=choose_bits(self, n, goal))
        state = chunks.fold(partial(fold_labeled, fold))
        if state.rows != n:
            raise ShapeError(f"X has {state.rows:,} rows where it had {n:,}: parts changed")
        return state

    def _fold(
        self, X: Any, y: ArrayLike, *, bits: int, parts: frozenset[str] = frozenset()
    ) -> State:
        X = array("X", X)
        n = _count_rows(X)
        return fold_settled(self, X, self._encode(y, n), bits, parts)

    @property
    def _labels(self) -> NDArray[Any]:
        labels: NDArray[Any] = np.asarray(self.classes)
        return labels

    def _read_goal(
        self, epsilon: float, delta: float, budget: Budget | None, random_state: RandomState
    ) -> Goal:
        """The goal of the arguments, which may protect no one."""
        neighbors: Any = self.neighbors
        if number("epsilon", epsilon) != math.inf:
            return check_goal(epsilon, delta, neighbors, budget, random_state)
        check_random_state(random_state)
        if budget is not None:
            refuse("epsilon", epsilon, "only a private release can be charged to a budget")
        return Goal(math.inf, probability("delta", delta), neighbors)

    def _encode(self, y: ArrayLike, n: int) -> NDArray[Any]:
        """Return the index of each label among the classes, or targets in units of their bound."""
        values = array("y", y)
        if values.shape != (n,):
            raise ShapeError(
                f"y has shape {values.shape}, but it must be ({n},), as X has {n} rows"
            )
        if self.label_bound is not None:
            bound = self.label_bound
            targets: Floats = finite_vector("y", values).clip(-bound, bound) / bound
            return targets
        return _find_codes(values, self._labels)


def release_settled(
    description: SufficientStatistics, X: Any, labels: NDArray[Any], goal: Goal
) -> ReleasedStatistics:
    """The release of records that are checked and selected; see SufficientStatistics.release.

    labels: the index of each record's class, or targets in units of their bound.
    goal: one that is checked, of the description's relation.
    """
    bits = choose_bits(description, len(labels), goal)
    return release_state(description, fold_settled(description, X, labels, bits), goal)


def choose_bits(description: SufficientStatistics, n: int, goal: Goal) -> int:
    """The digits of the features of n records, whose sums are released at once."""
    if goal.epsilon == math.inf:
        return choose_digits(describe_release(description), n)
    return calibrate(description, n, *goal.persons.gaussian_share(*goal.price)).bits


def fold_settled(
    description: SufficientStatistics,
    X: Any,
    labels: NDArray[Any],
    bits: int,
    parts: frozenset[str] = frozenset(),
) -> State:
    """The state of records that are checked and selected, with features of so many bits."""
    sums = add_up(description, X, labels, bits)
    found = {"sums": sums.sums} | ({} if sums.moments is None else {"moments": sums.moments})
    return State(_JOB, _describe_state(description, bits), len(labels), found, parts)


def _describe_state(description: SufficientStatistics, bits: int) -> dict[str, str]:
    """The settings on which the integers of a state depend."""
    return describe_settings(
        features=description.features,
        classes=None if description.classes is None else description._labels,
        label_bound=description.label_bound,
        second_moments=description.second_moments,
        bits=bits,
    )


def release_state(
    description: SufficientStatistics, state: State, goal: Goal
) -> ReleasedStatistics:
    """The release of a state; see SufficientStatistics.release.

    goal: one that is checked, of the description's relation.
    """
    text = state.settings.get("bits", "")
    bits = int(text) if text.isdecimal() and len(text) <= _DIGITS else 0
    rule = "a state must be made by this job"
    state.require(_JOB, _describe_state(description, bits), rule)
    require_shapes(state, _shapes_of(description))
    _check_number(state.rows, description.neighbors)
    if description.neighbors == "replace_one" and state.rows > description.capacity:
        refuse("capacity", description.capacity, f"the state holds {state.rows:,} records")
    n, sums = state.rows, PrivateSums(state.sums["sums"], state.sums.get("moments"))
    if goal.epsilon == math.inf:
        return add_noise(description, sums, n, bits)
    epsilon, delta = goal.price
    share = goal.persons.gaussian_share(epsilon, delta)
    drawn = calibrate(description, n, *share, bits)
    deviations = deviations_of(description, drawn)
    record = goal.persons.state(_make_record(description, drawn, deviations, goal))
    width = 1 if description.classes is None else len(description._labels) - 1
    # Degrees of freedom of the noise on the centered sums.
    freedom = int(description.features.columns) * width
    if goal.neighbors != "add_remove":
        note_large_delta(delta, n)
        square = float(describe_release(description).label_square)
        note_before(n, square, deviations[0], freedom, epsilon)
    with spend(goal.budget, record):
        statistics = add_noise(description, sums, n, bits, drawn, record, goal.random_state)
    note_signal(statistics.cross_moments, statistics.sums_deviation, freedom)
    return statistics


def _shapes_of(description: SufficientStatistics) -> dict[str, tuple[int, int]]:
    """The shapes of the sums of a state."""
    d = int(description.features.columns)
    shapes = {"sums": (d, 1 if description.classes is None else len(description._labels))}
    if description.second_moments:
        shapes["moments"] = d, d
    return shapes


def _make_record(
    description: SufficientStatistics,
    drawn: StatisticsNoise,
    deviations: tuple[float, float, float],
    goal: Goal,
) -> PrivacyRecord:
    (epsilon, delta), parts = goal.price, [f"{deviations[0]:.6g} on the sums"]
    if drawn.diagonal is not None:
        parts.append(f"{deviations[1]:.6g} on the diagonal of the second moments")
    if drawn.records is not None:
        parts.append(f"{deviations[2]:.6g} on the number of records")
    kind = "targets" if description.classes is None else f"{len(description._labels)} classes"
    columns = f"{description.features.columns} columns"
    return PrivacyRecord(
        mechanism=f"learners.SufficientStatistics, {columns}, {kind}",
        source=_SOURCE,
        neighbors=goal.neighbors,
        epsilon=epsilon,
        delta=delta,
        noise=f"rounded normal on integers, deviations {', '.join(parts)}",
        rng=rng_of(goal.random_state),
        **gaussian_law(epsilon, delta),
    )


def describe_release(description: SufficientStatistics) -> Released:
    """Say what is released, on which the sensitivity depends."""
    return Released(
        None if description.classes is None else len(description._labels),
        description.second_moments,
        bool(description.features.nonnegative_products),
        description.neighbors == "add_remove",
    )


def calibrate(
    description: SufficientStatistics,
    n: int,
    epsilon: float,
    delta: float,
    bits: int | None = None,
) -> StatisticsNoise:
    """Return the least noise with which n records are protected.

    bits: those of the features, where a state has them already.

    Raises:
        ParameterError: No noise that is drawn is enough.
    """
    released = describe_release(description)
    known = None if released.adds else n
    ratio = description.ratio
    return calibrate_statistics(
        released, epsilon=epsilon, delta=delta, ratio=ratio, n=known, bits=bits
    )


def deviations_of(
    description: SufficientStatistics, drawn: StatisticsNoise
) -> tuple[float, float, float]:
    """Return the deviations of cross moments, second moments and count in real units."""
    unit = 2.0**drawn.bits
    scale = unit * (unit if description.classes is None else len(description._labels))
    moments = 0.0 if drawn.diagonal is None else float(drawn.diagonal) / unit**2
    count = 0.0 if drawn.records is None else float(drawn.records)
    return float(drawn.sums) / scale, moments, count


def add_up(
    description: SufficientStatistics, X: Any, labels: NDArray[Any], bits: int
) -> PrivateSums:
    """Add up what the records contribute, in integers.

    labels: the index of each record's class, or targets in units of their bound.
    """
    features, second = description.features, description.second_moments
    if not len(labels):
        zeros = {name: np.zeros(shape, np.int64) for name, shape in _shapes_of(description).items()}
        return PrivateSums(zeros["sums"], zeros.get("moments"))
    if description.classes is None:
        cross, moments = target_sums(features, X, labels, bits=bits, second=second)
        return PrivateSums(cross[:, None], moments)
    classes = len(description._labels)
    parts = feature_sums(features, X, labels, classes, bits=bits, second=second)
    # sum of q (K e_y - 1)^T
    sums = classes * parts.by_class.T - parts.by_class.sum(axis=0)[:, None]
    return PrivateSums(sums, parts.moments)


def add_noise(
    description: SufficientStatistics,
    sums: PrivateSums,
    n: int,
    bits: int,
    drawn: StatisticsNoise | None = None,
    record: PrivacyRecord | None = None,
    random_state: RandomState = None,
) -> ReleasedStatistics:
    """Add the noise, and return the statistics; no noise protects no one."""
    deviations, moments = (0.0, 0.0, 0.0), sums.moments
    noisy, count = sums.sums, n
    if drawn is not None:
        stream = make_stream(random_state)
        deviations = deviations_of(description, drawn)
        noisy = noisy + _draw_noise(drawn.sums, noisy.shape, stream)
        if drawn.records is not None:
            count = max(n + int(_draw_noise(drawn.records, (1,), stream)[0]), 1)
        if moments is not None:
            moments = moments + _draw_symmetric(drawn, len(moments), stream)
    return ReleasedStatistics(
        features=description.features,
        classes=None if description.classes is None else description._labels,
        label_bound=description.label_bound,
        neighbors=description.neighbors,
        n=count,
        bits=bits,
        sums=read_only(noisy),
        moments=None if moments is None else read_only(moments),
        sums_deviation=deviations[0],
        moments_deviation=deviations[1],
        count_deviation=deviations[2],
        record=record,
    )


def _draw_noise(sigma: Any, size: tuple[int, ...], stream: np.random.Generator | None) -> Integers:
    """Draw normal deviates of this deviation, each rounded to the nearest integer."""
    drawn: Integers = noise.rounded_gaussian(sigma, size, random_state=stream)
    return drawn


def _draw_symmetric(
    drawn: StatisticsNoise, columns: int, stream: np.random.Generator | None
) -> Integers:
    """Draw the noise of second moments: once for each pair of columns, and mirrored."""
    assert drawn.diagonal is not None
    assert drawn.above is not None
    rows, others = np.triu_indices(columns, 1)
    matrix = np.diag(_draw_noise(drawn.diagonal, (columns,), stream))
    above = _draw_noise(drawn.above, (len(rows),), stream)
    matrix[rows, others] = above
    matrix[others, rows] = above
    return matrix


def _count_rows(X: NDArray[Any]) -> int:
    if not X.ndim:
        raise ShapeError("X has shape (), but it must hold rows")
    n = len(X)
    if n > MOST_RECORDS:
        raise ShapeError(f"X has {n:,} rows, but there must be at most {MOST_RECORDS:,}")
    return n


def _check_number(n: int, neighbors: str) -> None:
    """Refuses no records, where their number is public."""
    if not n and neighbors == "replace_one":
        raise ShapeError("X has 0 rows, but their public number must be at least 1")


def _find_codes(values: NDArray[Any], labels: NDArray[Any]) -> Integers:
    """Return the index of each value among the labels; the error names neither row nor value."""
    if values.dtype.kind == "O":
        values = values.astype(str)
    texts = values.dtype.kind == "U"
    if values.dtype.kind not in "biufU" or texts != (labels.dtype.kind == "U"):
        raise ParameterError(f"y has dtype {values.dtype}, but classes are {labels.dtype}")
    codes: Integers = np.searchsorted(labels, values).clip(max=len(labels) - 1)
    if not (labels[codes] == values).all():
        rule = "every entry must be one of classes, and a missing one is none"
        raise ParameterError(f"y holds something else, but {rule}")
    return codes.astype(np.int64)
