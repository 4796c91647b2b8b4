"""The learners of adaptation with settings that public records alone choose."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from .. import accounting
from .._support.random_state import make_stream
from .._support.types import Floats
from .._support.validate import positive
from ..adaptation import ConvexAdaptation, MomentAdaptation, NonConvexAdaptation
from ..adaptation.discrepancies.exact import Private
from ..adaptation.discrepancies.moments import shrink_rows
from ..budget.account import spend
from ..data.goal import Goal
from ..data.rows import Rows
from ..learners import FeatureMap, SufficientStatistics
from ..learners.centered_rows import center
from ..learners.sufficient_statistics import calibrate
from ..record import PrivacyRecord, rng_of

Learner = ConvexAdaptation | MomentAdaptation | NonConvexAdaptation
L = TypeVar("L", ConvexAdaptation, MomentAdaptation, NonConvexAdaptation)

# A number's deviation counts as at least one over this, in units of its bounds.
_MOST_FACTOR = 20.0
# Rows longer than so many times their root mean square are shrunk by a descent.
_REACH = 1.5
# A penalty on the public optimum, as a share of a standardized column's second moment.
_RIDGE = 1e-3
# The penalty kappa_1 in squares of the public optimum's mean residual, and its range.
_KAPPA, _KAPPA_RANGE = 4.0, (1e-4, 0.1)
# What residuals are clipped to: at least as adaptation.MomentAdaptation does it, in units of the
# public residuals and of the labels' deviation, and at most what there can be.
_CLIP, _LEAST_CLIP, _TINY_CLIP, _LARGEST_CLIP = 1.5, 0.2, 0.01, 2.0
# The noise on a mean of residuals with mu = 1, about, and the part of them that it may be.
_NOISE, _PART = 2.5, 0.1
_LEAST_RADIUS, _LOGISTIC_RADIUS = 1.0, 2.0
# Records get less weight where their loss exceeds so many times that of a guess.
_CROSS_ENTROPY = 1.5
# Rounding may make the parts of a budget add up to a little more than the whole.
_STRETCH = 1 - 1e-6


class Domains(NamedTuple):
    """Centered rows with their constant and labels of both domains, of which one is private.

    Attributes:
        rows: Rows of both domains, shape (n, d + 1).
        labels: Targets in [-1, 1] or codes of classes, shape (n,).
        is_target: Whether each row is of the target, shape (n,).
        private: The domain whose records are protected.
        norm: Root of the mean squared norm of the public rows.
    """

    rows: Floats
    labels: NDArray[Any]
    is_target: NDArray[np.bool_]
    private: Private
    norm: float

    @property
    def sizes(self) -> tuple[int, int]:
        """The numbers of source and target rows."""
        targets = int(self.is_target.sum())
        return len(self.rows) - targets, targets

    def public(self) -> tuple[Floats, NDArray[Any]]:
        """The public rows and their labels."""
        kept = ~self.is_target if self.private == "target" else self.is_target
        return self.rows[kept], self.labels[kept]

    def split(self, labels: NDArray[Any]) -> tuple[Any, ...]:
        """Source rows and labels, target rows and labels."""
        source, target = ~self.is_target, self.is_target
        return self.rows[source], labels[source], self.rows[target], labels[target]

    def split_within(self, norm: float, epsilon: float) -> tuple[Any, ...]:
        """The domains, with public rows shrunk to the norm as a mechanism shrinks private ones."""
        X_source, y_source, X_target, y_target = self.split(self.labels)
        if self.private == "target" or epsilon == math.inf:
            X_source = shrink_rows(X_source, norm)
        if self.private == "source" or epsilon == math.inf:
            X_target = shrink_rows(X_target, norm)
        return X_source, y_source, X_target, y_target


@dataclass(frozen=True, eq=False)
class ClassModels:
    """A model for each class, which predicts 1 for the class and -1 for the others.

    Attributes:
        models: The K models.
        record_: The PrivacyRecord of all of them together; None without privacy.
    """

    models: tuple[MomentAdaptation, ...]
    record_: PrivacyRecord | None

    def scores(self, rows: Floats) -> Floats:
        """The scores of m rows for all classes, shape (m, K)."""
        return np.column_stack([model.scores(rows) for model in self.models])


def center_by_public(unit: Rows, public: Floats, delta: float) -> tuple[Rows, float]:
    """The map to rows around the means of public ones, in units of their deviations, and the norm.

    That is the root of the mean squared norm of the public rows.

    A column that hardly varies there may vary in the private domain: it is not blown up.
    """
    centered = center(unit, public, epsilon=math.inf, delta=delta, random_state=None)
    assert centered.factor is not None
    limited = replace(centered, factor=np.minimum(centered.factor, _MOST_FACTOR))
    norm = math.sqrt(float(np.square(limited.scale(public)).sum(axis=1).mean()))
    return limited, norm


def adapt_targets(method: str, alpha: float | None, domains: Domains, goal: Goal) -> Learner:
    """Learn to predict targets in [-1, 1]."""
    radius, residual = _measure(*domains.public())
    if method == "moments":
        clip = _choose_clip(residual, domains, goal)
        learner = MomentAdaptation(epsilon=goal.epsilon, delta=goal.settled_delta, clip=clip)
        return _fit(learner, domains.split(domains.labels), goal)
    norm, (low, high) = _REACH * domains.norm, _KAPPA_RANGE
    descent = ConvexAdaptation(
        epsilon=goal.epsilon,
        delta=goal.settled_delta,
        radius=radius,
        norm_bound=norm,
        alpha=alpha,
        kappa_1=min(max(_KAPPA * residual**2, low), high),
        private=domains.private,
    )
    return _fit(descent, domains.split_within(norm, goal.epsilon), goal)


def adapt_classes(
    method: str, classes: int, alpha: float | None, domains: Domains, goal: Goal
) -> Learner | ClassModels:
    """Learn to predict codes of classes, from 0 on."""
    if method == "moments":
        if classes > 2:
            return _adapt_each(classes, domains, goal)
        learner = MomentAdaptation(
            epsilon=goal.epsilon, delta=goal.settled_delta, task="classification"
        )
        return _fit(learner, domains.split(domains.labels), goal)
    norm = _REACH * domains.norm
    loss: dict[str, Any] = {"loss": "logistic"}
    if classes > 2:
        loss = {"loss": "softmax", "classes": classes, "discrepancy": 0.0}
    descent = NonConvexAdaptation(
        epsilon=goal.epsilon,
        delta=goal.settled_delta,
        **loss,
        radius=_LOGISTIC_RADIUS * math.sqrt(classes),
        lambda_1=_CROSS_ENTROPY * math.log(classes),
        norm_bound=norm,
        alpha=alpha,
        iterate="last",
        private=domains.private,
    )
    return _fit(descent, domains.split_within(norm, goal.epsilon), goal)


def _fit(learner: L, data: tuple[Any, ...], goal: Goal) -> L:
    learner.fit(*data, budget=goal.budget, random_state=goal.random_state)
    return learner


def _measure(rows: Floats, targets: Floats) -> tuple[float, float]:
    """A radius for coefficients, and the residual, by ridge regression on public records."""
    n, d = rows.shape
    coef = np.linalg.solve(rows.T @ rows / n + _RIDGE * np.eye(d), rows.T @ targets / n)
    residual = math.sqrt(float(np.square(targets - rows @ coef).mean()))
    return max(_LEAST_RADIUS, 2 * float(np.linalg.norm(coef))), residual


def _choose_clip(residual: float, domains: Domains, goal: Goal) -> float:
    """The magnitude that residuals of targets in [-1, 1] around the public optimum are clipped to.

    It follows the residuals of the source, and goes further where the noise that grows with it
    stays a small part of them, since the target may differ by more.
    """
    usual = max(_CLIP * residual, _LEAST_CLIP * float(domains.public()[1].std()), _TINY_CLIP)
    if goal.epsilon == math.inf:
        return _LARGEST_CLIP
    mu = accounting.gaussian_mu(goal.epsilon, goal.settled_delta)
    n, columns = domains.sizes[1], domains.rows.shape[1]
    noise = _NOISE / mu * math.sqrt(columns) / n
    return min(max(usual, usual * _PART / noise), _LARGEST_CLIP)


def _adapt_each(classes: int, domains: Domains, goal: Goal) -> ClassModels:
    """Learn a model for each class; their releases share one Gaussian budget.

    A release with the curve of mu / sqrt(K) costs mu / sqrt(K); K of them cost mu.
    """
    data = [domains.split((domains.labels == code).astype(np.int64)) for code in range(classes)]
    if goal.epsilon == math.inf:
        models = [_learn_class(part, Goal(math.inf, goal.delta)) for part in data]
        return ClassModels(tuple(models), None)
    epsilon, delta = share_of_class(goal.epsilon, goal.settled_delta, classes)
    # What the settings or the public records make impossible is refused before it is charged.
    columns = FeatureMap.identity(domains.rows.shape[1], norm_bound=1.0)
    described = SufficientStatistics(
        columns, label_bound=1.0, second_moments=True, ratio=MomentAdaptation.ratio
    )
    calibrate(described, domains.sizes[1], epsilon, delta)
    public = data[0][:2]
    _learn_class((*public, *public), Goal(math.inf, delta))
    record = PrivacyRecord(
        mechanism=f"sklearn.AdaptationClassifier, {classes} of adaptation.MomentAdaptation",
        source="composition of Gaussian mechanisms (Dong, Roth and Su 2022)",
        neighbors=goal.neighbors,
        epsilon=float(goal.epsilon),
        delta=float(goal.settled_delta),
        noise=f"rounded normal on integers, ({epsilon:g}, {delta:g}) for each class",
        rng=rng_of(goal.random_state),
    )
    share = Goal(epsilon, delta, random_state=make_stream(goal.random_state))
    with spend(goal.budget, record):
        models = [_learn_class(part, share) for part in data]
    return ClassModels(tuple(models), record)


def _learn_class(data: tuple[Any, ...], goal: Goal) -> MomentAdaptation:
    learner = MomentAdaptation(
        epsilon=goal.epsilon, delta=goal.settled_delta, task="classification"
    )
    return _fit(learner, data, goal)


def share_of_class(epsilon: float, delta: float, classes: int) -> tuple[float, float]:
    """The epsilon and delta of each class's release, on the curve of mu / sqrt(classes)."""
    mu = accounting.gaussian_mu(epsilon, delta) * _STRETCH / math.sqrt(classes)
    share = delta / classes
    return positive("epsilon", accounting.gaussian_epsilon(mu, share)), share
