"""Linear models of centered rows, by rules that need public numbers alone, and their release."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from .. import accounting
from .._support.random_state import make_stream
from .._support.types import Floats, RandomState
from .._support.validate import refuse
from ..accounting.noisy_sums import calibrate_means
from ..budget.account import Budget, spend
from ..record import PrivacyRecord, rng_of
from .centered_rows import CenteredRows, center
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
# Share of epsilon and delta that the means take.
_SHARE = 0.1
# How far second moments must stand out of their noise.
_CLEAR = 18
# Rows longer than this share of their root mean square are shrunk: less noise for most of them.
_CLASS_REACH = 0.7
# Shrinking bends a regression, and costs nothing where no noise is added.
_TARGET_REACH, _REACH_WITHOUT_NOISE = 1.5, 100.0
# From here on least squares were measured to be better than softmax regression.
_MANY_CLASSES = 8


class LinearTask(Protocol):
    """What is learned: classes or targets."""

    def choose_method(self, n: int, d: int, epsilon: float, delta: float) -> str:
        """The method of "auto" for n records of d columns, by public numbers."""

    def learner(
        self, method: str, shape: tuple[int, int], norm: float, epsilon: float, delta: float
    ) -> Learner:
        """The function that learns from centered rows of this shape and norm.

        Raises all errors that the public settings alone can cause.
        """


@dataclass(frozen=True)
class ClassTask:
    """Learns classes, whose labels are their numbers from 0 on."""

    classes: int

    def choose_method(self, n: int, d: int, epsilon: float, delta: float) -> str:
        """As LinearTask has it."""
        many = self.classes >= _MANY_CLASSES
        return "statistics" if many and epsilon < math.inf else "sgd"

    def learner(
        self, method: str, shape: tuple[int, int], norm: float, epsilon: float, delta: float
    ) -> Learner:
        """As LinearTask has it."""
        n, columns = shape
        bound = norm * _CLASS_REACH
        if method == "statistics":
            statistics = SufficientStatistics(
                clip_to(columns, bound), classes=np.arange(self.classes), second_moments=True
            )
            return learn_by_statistics(statistics, n, epsilon, delta)
        loss: Any = {"loss": "logistic"}
        if self.classes > 2:
            loss = {"loss": "softmax", "classes": self.classes}
        sgd = PrivateSGD(epsilon=epsilon, delta=delta, norm_bound=bound, output="last", **loss)
        return learn_by_gradients(sgd, n, columns)


@dataclass(frozen=True)
class TargetTask:
    """Learns targets, which are scaled to [-1, 1]."""

    def choose_method(self, n: int, d: int, epsilon: float, delta: float) -> str:
        """As LinearTask has it."""
        return "statistics" if moments_stand_out(n, d + 1, epsilon, delta) else "sgd"

    def learner(
        self, method: str, shape: tuple[int, int], norm: float, epsilon: float, delta: float
    ) -> Learner:
        """As LinearTask has it."""
        n, columns = shape
        bound = norm * (_REACH_WITHOUT_NOISE if epsilon == math.inf else _TARGET_REACH)
        if method == "statistics":
            statistics = SufficientStatistics(
                clip_to(columns, bound), label_bound=1.0, second_moments=True
            )
            return learn_by_statistics(statistics, n, epsilon, delta)
        sgd = PrivateSGD(
            loss="squared", epsilon=epsilon, delta=delta, norm_bound=bound, label_bound=1.0
        )
        return learn_by_gradients(sgd, n, columns)


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
) -> CenteredModel:
    """Charge the budget, release means with a tenth of epsilon and delta, learn with the rest.

    (epsilon, delta)-DP under replace_one, exact. Settings for which no noise is enough are refused
    before anything is spent.

    rows: what `unit` makes of the private records.
    labels: numbers of classes, or targets in [-1, 1].
    name: of who releases, for the record.
    """
    n, d = rows.shape
    private = epsilon < math.inf
    if not private and budget is not None:
        refuse("epsilon", epsilon, "only a private fit can be charged to a budget")
    if method == "auto":
        method = task.choose_method(n, d, epsilon, delta)
    share = (epsilon * _SHARE, delta * _SHARE)
    # Rounded down, so that both parts add up to no more than the whole.
    rest = (
        math.nextafter(epsilon - share[0], 0.0) if private else epsilon,
        math.nextafter(delta - share[1], 0.0),
    )
    task.learner(method, (n, d + 1), 1.0, *rest)
    record = None
    if private:
        calibrate_means(2 * unit.sources, n=n, epsilon=share[0], delta=share[1])
        record = _make_record(name, method, d, (epsilon, delta), random_state)
    stream = make_stream(random_state)
    with spend(budget if private else None, record):  # type: ignore[arg-type]
        centered = center(unit, rows, epsilon=share[0], delta=share[1], random_state=stream)
        learn = task.learner(method, (n, d + 1), centered.norm, *rest)
        model = learn(centered.scale(rows), labels, stream)
    return CenteredModel(centered, model, method, record)


def _make_record(
    name: str, method: str, d: int, price: tuple[float, float], random_state: RandomState
) -> PrivacyRecord:
    how = {"sgd": "PrivateSGD", "statistics": "SufficientStatistics"}[method]
    return PrivacyRecord(
        mechanism=f"{name}, {d} columns, means and learners.{how}",
        source="basic composition of a Gaussian mechanism and the learner (Dwork et al. 2006)",
        neighbors="replace_one",
        epsilon=float(price[0]),
        delta=float(price[1]),
        noise=f"rounded normal on integers, with {_SHARE:g} of epsilon and delta on the means",
        rng=rng_of(random_state),
    )


def clip_to(columns: int, norm: float) -> FeatureMap:
    """The map of centered rows to the unit ball: longer rows are shrunk to this norm."""
    return FeatureMap.identity(columns, norm_bound=norm)


def learn_by_statistics(
    statistics: SufficientStatistics, n: int, epsilon: float, delta: float
) -> Learner:
    """Least squares on released statistics; raises what their calibration for n rows raises."""
    if epsilon < math.inf:
        calibrate(statistics, n, epsilon, delta)
    return lambda rows, y, stream: statistics.release(
        rows, y, epsilon=epsilon, delta=delta, random_state=stream
    ).solve()


def learn_by_gradients(sgd: PrivateSGD, n: int, columns: int) -> Learner:
    """Noisy gradients; raises what their plan for n rows of so many columns raises."""
    sgd.plan(n=n, d=columns)
    return lambda rows, y, stream: sgd.learn(rows, y, random_state=stream)


def moments_stand_out(n: int, columns: int, epsilon: float, delta: float) -> bool:
    """Whether the noise on second moments is far below the mean of their eigenvalues.

    Rows of norm 1 have moments with a trace of at most n. Their noise has a norm of about
    2 sqrt(2 columns) / mu for the mu of the Gaussian mechanism. Where the mean eigenvalue is not
    some twenty times that, noisy gradients were measured to be better.
    """
    if epsilon == math.inf:
        return True
    mu = float(accounting.gaussian_mu(epsilon, delta))
    return bool(n * mu >= _CLEAR * 2 * math.sqrt(2) * columns**1.5)
