"""What private adaptation is measured against: learners that protect nobody, and noisy SGD."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._checks import fraction, number, positive, shown, sized
from ._hypotheses import read_only
from ._linear_model import labels_of, looked_at
from ._polytopes import Found
from ._reweighting import kernel_width, match_kernel_means, minimise_discrepancy
from ._sgd import Numerics, PrivateSGD, RandomState
from ._weighted_fit import LOSSES, Floats, Loss, fit_weighted
from .budget import Budget
from .exceptions import HdpFastError, ParameterError, ShapeError
from .record import PrivacyRecord

_MOST_STEPS = 1 << 40


class _People(NamedTuple):
    """Records that have been looked at: float X (n, d), and y, -1 or 1 for the logistic loss."""

    X: NDArray[Any]
    y: Floats


class _Estimator:
    """Parameters are the fields of a dataclass, which scikit-learn can read, set and clone."""

    record_: PrivacyRecord | None = None
    coef_: Floats
    loss: Loss

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """All parameters by name.

        deep: accepted as scikit-learn gives it; no parameter has parameters.

        Raises: nothing.
        Cost: constant.
        Source: none.
        """
        return {name: getattr(self, name) for name in self._names()}

    def set_params(self, **parameters: Any) -> Self:
        """Change some of them; fit checks the values.

        Raises: ParameterError for a name that is none, and changes nothing then.
        Cost: constant.
        Source: none.
        """
        for name in parameters:
            if name not in self._names():
                rule = f"it must be one of {', '.join(self._names())}"
                raise ParameterError(f"{type(self).__name__} has no {shown(name)}: {rule}")
        for name, value in parameters.items():
            setattr(self, name, value)
        return self

    def scores(self, X: ArrayLike) -> Floats:
        """The inner product of the coefficients with every record.

        X: finite real numbers (k, d). Returns float64 (k,).

        Raises: ShapeError, ParameterError; HdpFastError before fit.
        Cost: a pass over X.
        Source: none.
        """
        if not hasattr(self, "coef_"):
            raise HdpFastError(f"{type(self).__name__} has not learned yet: call fit first")
        rows = looked_at(X).entries
        _same_columns("X", rows, len(self.coef_))
        return rows @ self.coef_

    def predict(self, X: ArrayLike) -> Floats | NDArray[np.uint8]:
        """The scores of the squared loss; for the logistic one uint8, 1 where they are at least 0.

        X: as scores.

        Raises: as scores.
        Cost: as scores.
        Source: none.
        """
        scores = self.scores(X)
        return scores if self.loss == "squared" else (scores >= 0).view(np.uint8)

    @classmethod
    def _names(cls) -> list[str]:
        return [each.name for each in dataclasses.fields(cls)]  # type: ignore[arg-type]


@dataclass(kw_only=True, eq=False, repr=False)
class _Baseline(_Estimator):
    """Learns from weighted records of source and target. Protects neither."""

    loss: Loss = "squared"
    l2: float = 1e-3

    def __repr__(self) -> str:
        """Its parameters, and what they are not."""
        given = ", ".join(f"{name}={value!r}" for name, value in self.get_params().items())
        return f"{type(self).__name__}({given}), not private"

    def fit(
        self, X_source: ArrayLike, y_source: ArrayLike, X_target: ArrayLike, y_target: ArrayLike
    ) -> Self:
        """Learn the coefficients. Not private.

        X_source: finite real numbers (m, d), m and d at least 1; X_target: (n, d), n at least 1; a
        constant column makes an intercept. y_source (m,), y_target (n,): finite real numbers, or 0
        and 1 for the logistic loss.

        Raises: ShapeError, ParameterError; nothing is learned then.
        Cost: O(k d**2 + d**3) for k records to learn from, ten times that for the logistic loss;
            and the search for weights, where there is one.
        Source: as the class.
        """
        if self.loss not in LOSSES:
            rule = f"it must be one of {', '.join(LOSSES)}"
            raise ParameterError(f"loss = {shown(self.loss)}, but {rule}")
        l2 = positive("l2", self.l2)
        source = _people("source", X_source, y_source, self.loss)
        target = _people("target", X_target, y_target, self.loss)
        _same_columns("X_target", target.X, source.X.shape[1])
        people, weights = self._weighted(source, target)
        found = fit_weighted(people.X, people.y, weights, loss=self.loss, l2=l2)
        self.coef_ = read_only(found)
        return self

    def _weighted(self, source: _People, target: _People) -> tuple[_People, Floats]:
        """The records to learn from, and their weights, which sum to about 1."""
        raise NotImplementedError


@dataclass(kw_only=True, eq=False, repr=False)
class SourceOnly(_Baseline):
    """Ridge or logistic regression on the source alone. Not private.

    Minimises the mean loss plus l2 |w|**2 / 2; the loss is (w . x - y)**2 / 2 or log(1 + exp(-w . x
    (2 y - 1))). There is no intercept but that of a constant column.

    Attributes:
        loss: "squared" or "logistic".
        l2: above 0.
        coef_: float64 (d,), read-only, after fit.
        record_: None: nothing is protected.
    """

    def _weighted(self, source: _People, target: _People) -> tuple[_People, Floats]:
        return source, _equal(source, 1.0)


@dataclass(kw_only=True, eq=False, repr=False)
class TargetOnly(_Baseline):
    """Ridge or logistic regression on the target alone. Not private.

    Attributes:
        loss: as SourceOnly.
        l2: as SourceOnly.
        coef_: float64 (d,), read-only, after fit.
        record_: None: nothing is protected.
    """

    def _weighted(self, source: _People, target: _People) -> tuple[_People, Floats]:
        return target, _equal(target, 1.0)


@dataclass(kw_only=True, eq=False, repr=False)
class Pooled(_Baseline):
    """Ridge or logistic regression on source and target together. Not private.

    Attributes:
        loss: as SourceOnly.
        l2: as SourceOnly.
        alpha: share of the weight that the source has, in (0, 1); None weighs all records equally.
        coef_: float64 (d,), read-only, after fit.
        record_: None: nothing is protected.
    """

    alpha: float | None = None

    def _weighted(self, source: _People, target: _People) -> tuple[_People, Floats]:
        m, n = len(source.y), len(target.y)
        alpha = m / (m + n) if self.alpha is None else fraction("alpha", self.alpha)
        people = _People(np.concatenate([source.X, target.X]), np.concatenate([source.y, target.y]))
        return people, np.concatenate([_equal(source, alpha), _equal(target, 1 - alpha)])


@dataclass(kw_only=True, eq=False, repr=False)
class _Reweighted(_Baseline):
    """Learns from the source, weighted to look like the target."""

    weights_: Floats = dataclasses.field(init=False)
    gap_: float = dataclasses.field(init=False)

    @classmethod
    def _names(cls) -> list[str]:
        return [each.name for each in dataclasses.fields(cls) if each.init]

    def _weighted(self, source: _People, target: _People) -> tuple[_People, Floats]:
        found = self._found(source.X, target.X)
        self.weights_, self.gap_ = read_only(found.weights), found.gap
        return source, found.weights / found.weights.sum()

    def _found(self, source: NDArray[Any], target: NDArray[Any]) -> Found:
        raise NotImplementedError


@dataclass(kw_only=True, eq=False, repr=False)
class KernelMeanMatching(_Reweighted):
    """Regression on the source, weighted so that its kernel mean is the target's. Not private.

    The weights are those m * weights_ = beta in [0, bound] with |mean(beta) - 1| <= slack that
    bring the means of source and target closest in the space of the Gaussian kernel
    exp(-|x - z|**2 / (2 width**2)); they see no labels. Then as SourceOnly, by these weights. With
    as many landmarks as source records the kernel is exact, else it is projected to the span of
    landmarks at equal distances in the source's order.

    Attributes:
        loss: as SourceOnly.
        l2: as SourceOnly.
        width: of the kernel, above 0; None means the median distance of at most 1,000 source
            records at equal distances in their order: a public rule where the source is public.
        bound: of beta, at least 1.
        slack: in [0, 1); None means 1 - 1 / sqrt(m), as the paper has it.
        landmarks: at least 1.
        steps: at most so many steps of descent.
        tolerance: the gap at which to stop, as a share of the objective at equal weights.
        coef_: float64 (d,), read-only, after fit.
        weights_: float64 (m,), read-only, after fit.
        gap_: how far the objective |.|**2 / 2 is above the least possible at most, after fit.
        record_: None: nothing is protected.

    Cost: fit takes O((m + n) landmarks d + landmarks**3), two passes over m * landmarks numbers for
        each step, and 8 m landmarks bytes; then as SourceOnly.
    Source: Huang, Smola, Gretton, Borgwardt and Schoelkopf 2006, Correcting Sample Selection Bias
        by Unlabeled Data, equation 12; Nystrom's approximation and accelerated descent are ours.
    """

    width: float | None = None
    bound: float = 1000.0
    slack: float | None = None
    landmarks: int = 500
    steps: int = 500
    tolerance: float = 0.01

    def _found(self, source: NDArray[Any], target: NDArray[Any]) -> Found:
        m, bound = len(source), number("bound", self.bound)
        if not 1 <= bound < math.inf:
            rule = "it must be finite and at least 1"
            raise ParameterError(f"bound = {shown(self.bound)}, but {rule}")
        return match_kernel_means(
            source,
            target,
            width=self._width(source),
            bound=bound,
            slack=1 - m**-0.5 if self.slack is None else fraction("slack", self.slack, zero=True),
            landmarks=sized("landmarks", self.landmarks, 1 << 20),
            steps=sized("steps", self.steps, _MOST_STEPS),
            tolerance=positive("tolerance", self.tolerance),
        )

    def _width(self, source: NDArray[Any]) -> float:
        if self.width is not None:
            return positive("width", self.width)
        if len(source) < 2:
            raise ShapeError("X_source has 1 record, but two are needed for a width of None")
        return kernel_width(source)


@dataclass(kw_only=True, eq=False, repr=False)
class DiscrepancyMinimisation(_Reweighted):
    """Regression on the source, weighted to a least discrepancy from the target. Not private.

    The weights, at least 0 and of sum 1, make the largest absolute eigenvalue of sum_i q_i x_i x_i'
    - mean_j z_j z_j' least; 4 Lambda**2 times that is how much the squared losses of two linear
    predictors of norm at most Lambda can differ between both, without labels. Then as SourceOnly,
    by these weights.

    Attributes:
        loss: as SourceOnly.
        l2: as SourceOnly.
        steps: at most so many steps of descent for each of some six stages of less smoothing.
        tolerance: the gap at which to stop, as a share of the eigenvalue at equal weights.
        coef_: float64 (d,), read-only, after fit.
        weights_: float64 (m,), read-only, after fit.
        gap_: how far the eigenvalue is above the least possible at most, after fit.
        record_: None: nothing is protected.

    Cost: fit takes O(m d**2 + d**3) twice a step; then as SourceOnly.
    Source: Cortes and Mohri 2014, Domain adaptation and sample bias correction theory and algorithm
        for regression; smoothing of Nesterov 2007 in place of their solvers.
    """

    steps: int = 300
    tolerance: float = 0.01

    def _found(self, source: NDArray[Any], target: NDArray[Any]) -> Found:
        steps = sized("steps", self.steps, _MOST_STEPS)
        tolerance = positive("tolerance", self.tolerance)
        return minimise_discrepancy(source, target, steps=steps, tolerance=tolerance)


@dataclass(kw_only=True, eq=False)
class TargetSGD(_Estimator):
    """Noisy minibatch SGD on the target alone: the private rival, learners.PrivateSGD as it is.

    Guarantee: fit is (epsilon, delta)-DP for the target under replace_one, as PrivateSGD.learn; the
        source is looked at, and not used.

    Attributes:
        epsilon: above 0.
        delta: in (0, 1).
        radius: of the ball that holds the coefficients.
        norm_bound: records are shrunk to this norm.
        label_bound: labels of the squared loss are clipped to [-label_bound, label_bound].
        loss: "squared" or "logistic".
        steps: T; None means min(n / 8, epsilon**2 n**2 / (32 d log(1 / delta))), at least 1.
        batch: records drawn in a step; None means n sqrt(epsilon / (4 T)), from 1 to n.
        numerics: "exact" or "idealised".
        random_state: as PrivateSGD.learn.
        budget: charged by fit, before anything is drawn.
        coef_: float64 (d,), read-only, after fit.
        record_: what protects the target, after fit.

    Raises: ParameterError, by fit.
    Cost: as PrivateSGD.calibrated and PrivateSGD.learn.
    Source: Bassily, Feldman, Talwar and Thakurta 2019, Private Stochastic Convex Optimization with
        Optimal Rates, Algorithm 1; steps and noise are those of PrivateSGD.
    """

    epsilon: float
    delta: float
    radius: float = 1.0
    norm_bound: float = 1.0
    label_bound: float = 1.0
    loss: Loss = "squared"
    steps: int | None = None
    batch: int | None = None
    numerics: Numerics = "exact"
    random_state: RandomState = None
    budget: Budget | None = None

    def fit(
        self, X_source: ArrayLike, y_source: ArrayLike, X_target: ArrayLike, y_target: ArrayLike
    ) -> Self:
        """Learn the coefficients from the target.

        X_source, y_source, X_target, y_target: as the baselines take them. What is private is only
        looked at for its shape and for NaN and infinity.

        Guarantee: as the class.
        Raises: ShapeError, ParameterError, BudgetExceeded; no budget is spent then.
        Cost: as the class.
        Source: as the class.
        """
        if self.loss not in LOSSES:
            rule = f"it must be one of {', '.join(LOSSES)}"
            raise ParameterError(f"loss = {shown(self.loss)}, but {rule}")
        d = _people("source", X_source, y_source, self.loss).X.shape[1]
        rows = looked_at(X_target)
        _same_columns("X_target", rows.entries, d)
        learner = self._learner(len(rows), d)
        model = learner.learn(rows, y_target, random_state=self.random_state, budget=self.budget)
        self.coef_, self.record_ = model.weights, model.record
        return self

    def scores(self, X: ArrayLike) -> Floats:
        """The inner product of the coefficients with every record, shrunk to norm_bound.

        X: finite real numbers (k, d). Returns float64 (k,).

        Guarantee: that of fit, which it only reads.
        Raises: ShapeError, ParameterError; HdpFastError before fit.
        Cost: two passes over X.
        Source: none.
        """
        scores = super().scores(X)
        norms = np.linalg.norm(looked_at(X).entries, axis=1)
        shrunk: Floats = scores / np.maximum(norms / self.norm_bound, 1)
        return shrunk

    def _learner(self, n: int, d: int) -> PrivateSGD:
        epsilon, delta = positive("epsilon", self.epsilon), fraction("delta", self.delta)
        affordable = (epsilon * n) ** 2 / (32 * d * math.log(1 / delta))
        steps = max(1, int(min(n / 8, affordable))) if self.steps is None else self.steps
        sized("steps", steps, _MOST_STEPS)
        batch = min(n, max(1, round(n * math.sqrt(epsilon / (4 * steps)))))
        learner = PrivateSGD(
            self.loss,
            steps=steps,
            batch=batch if self.batch is None else self.batch,
            radius=self.radius,
            row_bound=self.norm_bound,
            label_bound=self.label_bound if self.loss == "squared" else None,
            numerics=self.numerics,
            delta=delta,
        )
        return learner.calibrated(epsilon=epsilon, n=n)


def _people(name: str, X: ArrayLike, y: ArrayLike, loss: Loss) -> _People:
    """Records of a domain.

    Raises: ShapeError, ParameterError, naming the domain's arguments.
    """
    try:
        rows = looked_at(X).entries
        labels = _labels(y, len(rows), loss)
    except HdpFastError as error:
        raise type(error)(f"{name}: {error}") from None
    return _People(rows, labels)


def _labels(y: ArrayLike, n: int, loss: Loss) -> Floats:
    """Labels as fit_weighted takes them."""
    return labels_of(y, n, None if loss == "logistic" else math.inf)


def _same_columns(name: str, rows: NDArray[Any], d: int) -> None:
    if rows.shape[1] != d:
        raise ShapeError(f"{name} has {rows.shape[1]} columns, but there must be {d}")


def _equal(people: _People, total: float) -> Floats:
    return np.full(len(people.y), total / len(people.y))
