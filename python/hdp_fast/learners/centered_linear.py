"""Linear models of centered rows, by rules that need public numbers alone, and their release."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from .. import accounting
from .._support.random_state import make_stream
from .._support.types import Floats, RandomState
from ..accounting.noisy_sums import calibrate_means
from ..budget.account import Budget, check_charge, spend
from ..data.persons import Persons
from ..record import PrivacyRecord, rng_of
from .centered_rows import CenteredRows, center, center_evenly, squared_distance
from .feature_maps import FeatureMap
from .linear_model import LinearModel
from .sgd import PrivateSGD
from .softmax_model import SoftmaxModel
from .statistics_model import StatisticsModel
from .sufficient_statistics import SufficientStatistics, calibrate
from .unit_rows import UnitRows

Model = LinearModel | SoftmaxModel | StatisticsModel
Learner = Callable[[Floats, NDArray[Any], np.random.Generator | None], Model]

METHODS = ("auto", "statistics", "sgd")
# Rows that belong to nobody in particular.
_NOBODY = Persons()
# Share of epsilon and delta that the means take.
_SHARE = 0.1
# Means are not released where their noise is above this: half of a column's range says little.
_BLUR = 0.12
# Effective records for each root of a column from which squares of numbers were measured to help.
_SQUARES = 300
# Below, least squares were measured to be better than gradients: for centered rows, and for those
# that are centered evenly.
_CLEAR_CLASSES, _CLEAR_TARGETS = (100, 30), 70
# How far second moments must stand out of their noise.
_CLEAR_MOMENTS = 18
# From here on steps are longer than PrivateSGD's.
_CLEAR_STEPS = 150
_RADIUS = 20.0
# Rows longer than this share of their root mean square are shrunk: less noise for most of them.
_CLASS_REACH = 0.7
# Shrinking bends a regression, and costs nothing where no noise is added.
_TARGET_REACH, _REACH_WITHOUT_NOISE = 1.5, 100.0
# From here on least squares were measured to be better than softmax regression.
_MANY_CLASSES = 8


class LinearTask(Protocol):
    """What is learned: classes or targets."""

    def choose_method(self, clear: float, columns: int, even: bool) -> str:
        """The method of "auto", by public numbers.

        clear: how far the signal of all records stands out of the noise, n mu / sqrt(columns).
        even: whether the rows are centered without a look at them.
        """

    def reach(self, epsilon: float) -> float:
        """The norm to which rows are shrunk, for each unit of their root mean square."""

    def labels(self) -> dict[str, Any]:
        """What SufficientStatistics is told of the labels."""

    def descent(self, bound: float, clear: float) -> dict[str, Any]:
        """What PrivateSGD is told of the loss, for rows of this norm."""


@dataclass(frozen=True)
class ClassTask:
    """Learns classes, whose labels are their numbers from 0 on."""

    classes: int

    def choose_method(self, clear: float, columns: int, even: bool) -> str:
        """As LinearTask has it."""
        many = self.classes >= _MANY_CLASSES and clear < math.inf
        return "statistics" if many or clear < _CLEAR_CLASSES[even] else "sgd"

    def reach(self, epsilon: float) -> float:
        """As LinearTask has it."""
        return _CLASS_REACH

    def labels(self) -> dict[str, Any]:
        """As LinearTask has it."""
        return {"classes": np.arange(self.classes)}

    def descent(self, bound: float, clear: float) -> dict[str, Any]:
        """As LinearTask has it."""
        if self.classes > 2:
            return {"loss": "softmax", "classes": self.classes, "output": "last"}
        return {"loss": "logistic", "radius": _choose_radius(clear) / bound, "output": "last"}


@dataclass(frozen=True)
class TargetTask:
    """Learns targets, which are scaled to [-1, 1]."""

    def choose_method(self, clear: float, columns: int, even: bool) -> str:
        """As LinearTask has it.

        Rows of norm 1 have moments with a trace of at most n. Their noise has a norm of about
        2 sqrt(2 columns) / mu for the mu of the Gaussian mechanism. Where the mean eigenvalue is
        some twenty times that, it was measured to be better to solve for the model than to descend.
        """
        stand_out = clear >= _CLEAR_MOMENTS * 2 * math.sqrt(2) * columns
        return "statistics" if stand_out or (even and clear < _CLEAR_TARGETS) else "sgd"

    def reach(self, epsilon: float) -> float:
        """As LinearTask has it."""
        return _REACH_WITHOUT_NOISE if epsilon == math.inf else _TARGET_REACH

    def labels(self) -> dict[str, Any]:
        """As LinearTask has it."""
        return {"label_bound": 1.0}

    def descent(self, bound: float, clear: float) -> dict[str, Any]:
        """As LinearTask has it."""
        return {"loss": "squared", "label_bound": 1.0}


@dataclass(frozen=True)
class CenteredModel:
    """A released model of centered rows.

    Attributes:
        rows: The map from records to centered rows.
        model: The model of them.
        method: The method that learned it.
        record: What protects the records; None where nothing does.
    """

    rows: CenteredRows
    model: Model
    method: str
    record: PrivacyRecord | None


def release_linear(
    unit: UnitRows,
    rows: Floats,
    labels: NDArray[Any],
    task: LinearTask,
    *,
    name: str,
    method: str,
    epsilon: float,
    delta: float,
    budget: Budget | None,
    random_state: RandomState,
    persons: Persons = _NOBODY,
) -> CenteredModel:
    """Charge the budget, release means with a tenth of epsilon and delta, learn with the rest.

    (epsilon, delta)-DP under replace_one, exact, or for the persons who own the rows. Where the
    noise on means would hide them, none are released, and the learner has all. Settings for which
    no noise is enough are refused before anything is spent.

    rows: what `unit` makes of the private records.
    labels: numbers of classes, or targets in [-1, 1].
    name: of who releases, for the record.
    """
    rows, labels = persons.select(rows), persons.select(labels)
    (n, d), numbers = rows.shape, int(unit.is_number.sum())
    private, whole = epsilon < math.inf, (epsilon, delta)
    check_charge(budget, epsilon)
    groups = persons.count_groups(n)
    squares = groups * min(_mu(*whole), 1.0) >= _SQUARES * math.sqrt(d + numbers)
    columns = d + 1 + (numbers if squares else 0)
    price, share = squared_distance(unit, squares), (epsilon * _SHARE, delta * _SHARE)
    # Rounded down, so that both parts add up to no more than the whole.
    rest = math.nextafter(epsilon - share[0], 0.0), math.nextafter(delta - share[1], 0.0)
    share = persons.gaussian_share(*share) if private else share
    even = math.sqrt(price) > _BLUR * n * _mu(*share)
    rest = rest if private and not even else whole
    if method == "auto":
        method = task.choose_method(_clear(groups, columns, whole), columns, even)
    _make_learner(task, method, (n, columns), 1.0, rest, persons)
    record = None
    if private:
        if not even:
            calibrate_means(price, n=n, epsilon=share[0], delta=share[1])
        record = _make_record(name, method, columns - 1, even, whole, random_state)
        record = persons.state(record)
    stream = make_stream(random_state)
    with spend(budget, record) if record else nullcontext():
        if even:
            centered = center_evenly(unit, squares=squares)
        else:
            centered = center(
                unit, rows, squares=squares, epsilon=share[0], delta=share[1], random_state=stream
            )
        learn = _make_learner(task, method, (n, columns), centered.norm, rest, persons)
        model = learn(centered.scale(rows), labels, stream)
    return CenteredModel(centered, model, method, record)


def _make_learner(
    task: LinearTask,
    method: str,
    shape: tuple[int, int],
    norm: float,
    price: tuple[float, float],
    persons: Persons,
) -> Learner:
    """The function that learns from centered rows of this shape and norm, at epsilon and delta.

    Raises all errors that the public settings alone can cause.
    """
    (n, columns), (epsilon, delta) = shape, price
    bound = norm * task.reach(epsilon)
    if method == "statistics":
        features = clip_to(columns, bound)
        statistics = SufficientStatistics(features, second_moments=True, **task.labels())
        return learn_by_statistics(statistics, n, price, persons)
    loss = task.descent(bound, _clear(persons.count_groups(n), columns, price))
    sgd = PrivateSGD(epsilon=epsilon, delta=delta, norm_bound=bound, **loss)
    return learn_by_gradients(sgd, n, columns, persons)


def _make_record(
    name: str,
    method: str,
    columns: int,
    even: bool,
    price: tuple[float, float],
    random_state: RandomState,
) -> PrivacyRecord:
    learner = {"sgd": "PrivateSGD", "statistics": "SufficientStatistics"}[method]
    of_means = "" if even else f", with {_SHARE:g} of epsilon and delta on the means"
    composed = "basic composition of a Gaussian mechanism and the learner (Dwork et al. 2006)"
    return PrivacyRecord(
        mechanism=f"{name}, {columns} columns, {'' if even else 'means and '}learners.{learner}",
        source="as the learner" if even else composed,
        neighbors="replace_one",
        epsilon=float(price[0]),
        delta=float(price[1]),
        noise=f"rounded normal on integers{of_means}",
        rng=rng_of(random_state),
    )


def clip_to(columns: int, norm: float) -> FeatureMap:
    """The map of centered rows to the unit ball: longer rows are shrunk to this norm."""
    return FeatureMap.identity(columns, norm_bound=norm)


def learn_by_statistics(
    statistics: SufficientStatistics, n: int, price: tuple[float, float], persons: Persons
) -> Learner:
    """Least squares on released statistics; raises what their calibration for n rows raises."""
    epsilon, delta = price
    if epsilon < math.inf:
        calibrate(statistics, n, *persons.gaussian_share(epsilon, delta))
    return lambda rows, y, stream: statistics.release(
        rows, y, epsilon=epsilon, delta=delta, random_state=stream, **persons.options
    ).solve()


def learn_by_gradients(sgd: PrivateSGD, n: int, columns: int, persons: Persons) -> Learner:
    """Noisy gradients; raises what their plan for n rows of so many columns raises."""
    sgd.plan(n=n, d=columns, rows_per_person=persons.rows)
    return lambda rows, y, stream: sgd.learn(rows, y, random_state=stream, **persons.options)


def _clear(n: int, columns: int, price: tuple[float, float]) -> float:
    """How far what n records say stands out of the noise in a vector of so many entries."""
    return n * _mu(*price) / math.sqrt(columns)


def _choose_radius(clear: float) -> float:
    """The radius times the norm of rows: PrivateSGD's least, and more where noise is small."""
    return _RADIUS * min(max(clear / _CLEAR_STEPS, 1.0), 3.0)


def _mu(epsilon: float, delta: float) -> float:
    return math.inf if epsilon == math.inf else float(accounting.gaussian_mu(epsilon, delta))
