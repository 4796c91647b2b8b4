"""Linear models of centered rows, by rules that need public numbers alone, and their release."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from .. import accounting
from .._support.random_state import make_stream
from .._support.types import Floats
from .._support.validate import one_of, refuse
from ..budget.account import check_charge, spend
from ..data.goal import Goal
from ..data.rows import PlainRows, Rows
from ..data.states import State
from ..exceptions import ShapeError
from ..record import PrivacyRecord, rng_of
from .additive import AdditiveNoise, ReleasedAdditive, release_additive
from .additive_choice import may_be_additive, release_chosen
from .centered_classes import release_classes
from .centered_rows import (
    PartedRows,
    WholeRows,
    center,
    center_evenly,
    count_powers,
    pair_rows,
    settle_means,
)
from .centered_targets import release_targets
from .feature_maps import FeatureMap
from .linear_model import LinearModel, SoftmaxModel, ValidRows
from .noisy_descent import DescentNoise
from .noisy_steps import check_noise
from .sgd import PrivateSGD
from .statistics_features import check_label_set
from .statistics_model import StatisticsModel
from .statistics_noise import Released, calibrate_statistics
from .sufficient_statistics import (
    SufficientStatistics,
    choose_bits,
    fold_settled,
    release_state,
)
from .target_model import TargetModel

Model = LinearModel | SoftmaxModel | StatisticsModel | TargetModel
# Of centered rows, by their map.
Learner = Callable[[Rows, WholeRows | PartedRows, np.random.Generator | None], Model]
# Of the norm of rows.
Making = Callable[[float], Learner]

TARGET_METHODS = ("auto", "descent", "evidence", "statistics", "sgd", "additive")
CLASS_METHODS = ("auto", "descent", "statistics", "sgd", "additive")
# Those that a model may state.
METHODS = (*CLASS_METHODS, "evidence")
# Share of epsilon and delta that the means take.
_SHARE = 0.1
# Means are not released where their noise is above this: half of a column's range says little.
_BLUR = 0.12
# Effective records for each root of a column from which squares of numbers were measured to help.
_SQUARES = 300
# From here on steps are longer than PrivateSGD's.
_CLEAR_STEPS = 150
_RADIUS = 20.0
# Rows longer than this share of their root mean square are shrunk: less noise for most of them.
_CLASS_REACH = 0.7
# Shrinking bends a regression, and costs nothing where no noise is added.
_TARGET_REACH, _REACH_WITHOUT_NOISE = 1.5, 100.0
# Of noisy gradients: much longer rows make steps short.
_GRADIENT_REACH = 5.0


class LinearTask(Protocol):
    """What is learned: classes or targets.

    Attributes:
        methods: Names of the methods that learn it.
    """

    methods: ClassVar[tuple[str, ...]]

    @property
    def classes(self) -> int | None:
        """The number of classes; None for targets."""

    def reach(self, epsilon: float) -> float:
        """The norm to which rows are shrunk, for each unit of their root mean square."""

    def descent(self, bound: float, clear: float) -> dict[str, Any]:
        """What PrivateSGD is told of the loss, for rows of this norm."""


@dataclass(frozen=True)
class ClassTask:
    """Learns classes, whose labels are their numbers from 0 on."""

    methods: ClassVar[tuple[str, ...]] = CLASS_METHODS
    classes: int

    def reach(self, epsilon: float) -> float:
        """As LinearTask has it."""
        return _CLASS_REACH

    def descent(self, bound: float, clear: float) -> dict[str, Any]:
        """As LinearTask has it."""
        if self.classes > 2:
            return {"loss": "softmax", "classes": self.classes, "output": "last"}
        return {"loss": "logistic", "radius": _choose_radius(clear) / bound, "output": "last"}


@dataclass(frozen=True)
class TargetTask:
    """Learns targets, which are scaled to [-1, 1]."""

    methods: ClassVar[tuple[str, ...]] = TARGET_METHODS
    classes: ClassVar[None] = None

    def reach(self, epsilon: float) -> float:
        """As LinearTask has it."""
        return _REACH_WITHOUT_NOISE if epsilon == math.inf else _TARGET_REACH

    def descent(self, bound: float, clear: float) -> dict[str, Any]:
        """As LinearTask has it.

        Without noise PrivateSGD clips no gradient and steps by the longest there may be, within a
        ball that long rows make small: it would not get away from the start.
        """
        settings: dict[str, Any] = {"loss": "squared", "label_bound": 1.0}
        if clear == math.inf:
            settings |= {"radius": 30 / bound, "clip_norm": 5 * bound, "output": "last"}
            settings |= {"steps": 10_000, "batch_size": 100}
        return settings


@dataclass(frozen=True)
class CenteredModel:
    """A released model of centered rows.

    Attributes:
        rows: The map from records to centered rows.
        model: The model of them.
        method: The method that learned it.
        record: What protects the records; None where nothing does.
        noise: What is known of the noise in the weights of a descent, or of an additive model; None
            with other methods.
        n: The noisy number of records of an additive model, which is private under add_remove; None
            with other methods.
    """

    rows: Rows
    model: Model
    method: str
    record: PrivacyRecord | None
    noise: DescentNoise | AdditiveNoise | None = None
    n: int | None = None


def release_linear(
    unit: Rows,
    rows: Floats | PlainRows | PartedRows,
    labels: NDArray[Any] | None,
    task: LinearTask,
    goal: Goal,
    *,
    name: str,
    method: str,
) -> CenteredModel:
    """Charge the budget, release means with a tenth of epsilon and delta, learn with the rest.

    Neither a descent nor the evidence for targets does: they share out their budgets
    in their own ways, as release_classes and release_targets say.

    (epsilon, delta)-DP under the goal's relation, exact, or for the persons who own the rows. Where
    the noise on means would hide them, none are released, and the learner has all. Settings for
    which no noise is enough are refused before anything is spent.

    unit: the map to plain rows.
    rows: what `unit` makes of the private records, in parts of those that the goal's persons keep;
        not in parts for noisy gradients.
    labels: numbers of classes, or targets in [-1, 1]; None beside rows in parts, which have them.
    goal: one that is checked; its delta is used even where its epsilon is infinite. Its relation is
        replace_one, or with "additive" also add_remove.
    name: of who releases, for the record.
    """
    one_of("method", method, task.methods)
    check_charge(goal.budget, goal.epsilon)
    if not len(rows) and goal.neighbors != "add_remove":
        raise ShapeError("there are no rows, but a model must be learned from one at least")
    persons = goal.persons
    # Of parts the rows that are used have been chosen, of all ids together.
    if persons.keep is not None and not isinstance(rows, PartedRows):
        if isinstance(rows, PlainRows):
            rows = replace(rows, records=persons.select(rows.records))
        else:
            rows = persons.select(rows)
        labels = persons.select(labels)
    if method == "additive":
        target = task.classes is None
        if not target and task.classes != 2:
            refuse("method", method, "an additive model is of two classes or of a target")
        added = release_additive(unit, pair_rows(rows, labels), goal, name=name, target=target)
        return CenteredModel(added.rows, added.model, method, *added[2:])
    if method == "auto" and task.classes == 2 and may_be_additive(unit, len(rows), goal):
        chosen = release_chosen(unit, rows, labels, goal, name=name)
        taken = "additive" if isinstance(chosen, ReleasedAdditive) else "descent"
        return CenteredModel(chosen.rows, chosen.model, taken, chosen.record, chosen.noise)
    # A descent was measured to be the best of the linear ones, or nearly so, at any size.
    if isinstance(task, ClassTask) and method in {"auto", "descent"}:
        parts = release_classes(unit, rows, labels, task.classes, goal, name=name)
        return CenteredModel(parts.rows, parts.model, "descent", parts.record, parts.noise)
    records = pair_rows(rows, labels)
    if task.classes is None and method in {"auto", "descent", "evidence"}:
        method = "descent" if method == "auto" else method
        made = release_targets(unit, records, goal, name=name, method=method)
        return CenteredModel(made.rows, made.model, method, made.record)
    n, d, numbers = len(rows), len(unit.is_number), int(unit.is_number.sum())
    private = goal.epsilon < math.inf
    groups = persons.count_groups(n)
    squares = groups * min(_mu(*goal.price), 1.0) >= _SQUARES * math.sqrt(d + numbers)
    columns = d + 1 + (numbers if squares else 0)
    means, rest = _divide(goal)
    even = math.sqrt(unit.squared_distance(count_powers(squares))) > _BLUR * n * _mu(*means.price)
    rest = rest if private and not even else goal
    settle = _settle_statistics if method == "statistics" else _settle_gradients
    make = settle(task, (n, columns), rest)
    record = None
    if private:
        if not even:
            settle_means(unit, squares, n, *means.price)
        record = persons.state(_make_record(name, method, columns - 1, even, goal))
    stream = make_stream(goal.random_state)
    with spend(goal.budget, record) if record else nullcontext():
        if even:
            centered = center_evenly(unit, squares=squares)
        else:
            epsilon, delta = means.price
            centered = center(
                unit, records, squares=squares, epsilon=epsilon, delta=delta, random_state=stream
            )
        model = make(centered.norm)(centered, records, stream)
    return CenteredModel(centered, model, method, record)


def refuse_steps(method: str) -> None:
    """Refuse the method that cannot learn from records in parts, before any is read."""
    if method == "sgd":
        refuse("method", method, "its steps look at records anywhere, and these lie in parts")


def _settle_statistics(task: LinearTask, shape: tuple[int, int], goal: Goal) -> Making:
    """Least squares on released statistics; raises what they and their calibration raise."""
    n, columns = shape
    labels: dict[str, Any] = {"label_bound": 1.0}
    if task.classes is not None:
        labels = {"classes": check_label_set("classes", np.arange(task.classes))}
    if goal.epsilon < math.inf:
        share = goal.persons.gaussian_share(*goal.price)
        released = Released(task.classes, True, False, False)
        calibrate_statistics(released, epsilon=share.epsilon, delta=share.delta, ratio=1.0, n=n)

    def make(norm: float) -> Learner:
        # Longer rows are shrunk to that.
        features = FeatureMap.identity(columns, norm_bound=norm * task.reach(goal.epsilon))
        statistics = SufficientStatistics(features, second_moments=True, **labels)

        def learn(centered: Rows, records: WholeRows | PartedRows, stream: Any) -> Model:
            bits = choose_bits(statistics, len(records), goal)
            states: Any = records.gather(partial(_fold_rows, statistics, centered, bits))
            settled = goal._replace(budget=None, random_state=stream)
            return release_state(statistics, sum(states), settled).solve()

        return learn

    return make


def _fold_rows(
    statistics: SufficientStatistics, centered: Rows, bits: int, rows: Floats, labels: NDArray[Any]
) -> State:
    return fold_settled(statistics, centered.scale(rows), labels, bits)


def _settle_gradients(task: LinearTask, shape: tuple[int, int], goal: Goal) -> Making:
    """Noisy gradients; raises what their plan for n rows of so many columns raises."""
    (n, columns), (epsilon, delta), persons = shape, goal.price, goal.persons
    groups = persons.count_groups(n)
    if epsilon < math.inf:
        weights = columns * task.descent(1.0, math.inf).get("classes", 1)
        check_noise(groups, weights, epsilon, delta)
    clear = _clear(groups, columns, goal)

    def make(norm: float) -> Learner:
        bound = norm * min(task.reach(epsilon), _GRADIENT_REACH)
        sgd = PrivateSGD(
            epsilon=epsilon, delta=delta, norm_bound=bound, **task.descent(bound, clear)
        )

        def learn(centered: Rows, records: WholeRows | PartedRows, stream: Any) -> Model:
            assert isinstance(records, WholeRows)
            made = ValidRows(records.scale(centered))
            return sgd.learn(made, records.labels, random_state=stream, **persons.options)

        return learn

    return make


def _make_record(name: str, method: str, columns: int, even: bool, goal: Goal) -> PrivacyRecord:
    epsilon, delta = goal.price
    learner = {"sgd": "PrivateSGD", "statistics": "SufficientStatistics"}[method]
    of_means = "" if even else f", with {_SHARE:g} of epsilon and delta on the means"
    composed = "basic composition of a Gaussian mechanism and the learner (Dwork et al. 2006)"
    return PrivacyRecord(
        mechanism=f"{name}, {columns} columns, {'' if even else 'means and '}learners.{learner}",
        source="as the learner" if even else composed,
        neighbors=goal.neighbors,
        epsilon=epsilon,
        delta=delta,
        noise=f"rounded normal on integers{of_means}",
        rng=rng_of(goal.random_state),
    )


def _divide(goal: Goal) -> tuple[Goal, Goal]:
    """The goals of the means, which are those of rows, and of the learner."""
    epsilon, delta = goal.price
    share = epsilon * _SHARE, delta * _SHARE
    # Rounded down, so that both parts add up to no more than the whole.
    rest = math.nextafter(epsilon - share[0], 0.0), math.nextafter(delta - share[1], 0.0)
    share = goal.persons.gaussian_share(*share) if epsilon < math.inf else share
    means = goal._replace(epsilon=share[0], delta=share[1])
    return means, goal._replace(epsilon=rest[0], delta=rest[1])


def _clear(n: int, columns: int, goal: Goal) -> float:
    """How far what n records say stands out of the noise in a vector of so many entries."""
    return n * _mu(*goal.price) / math.sqrt(columns)


def _choose_radius(clear: float) -> float:
    """The radius times the norm of rows: PrivateSGD's least, and more where noise is small."""
    return _RADIUS * min(max(clear / _CLEAR_STEPS, 1.0), 3.0)


@lru_cache(maxsize=64)
def _mu(epsilon: float, delta: float) -> float:
    return math.inf if epsilon == math.inf else float(accounting.gaussian_mu(epsilon, delta))
