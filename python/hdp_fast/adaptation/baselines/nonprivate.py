"""Baselines that protect nobody, for comparison with private adaptation."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..._support.types import Floats
from ..._support.validate import number, positive, positive_int, probability, refuse
from ...exceptions import ShapeError
from ...learners.hypotheses import read_only
from ..base import Estimator, Records, align_source, check_columns, check_loss, validate_domain
from .polytopes import WeightsResult
from .reweighting import kernel_width, match_kernel_means, minimize_discrepancy
from .weighted_fit import Loss, fit_weighted

_MOST_STEPS = 1 << 40


@dataclass(kw_only=True, eq=False, repr=False)
class _Baseline(Estimator):
    """Learns from weighted records of source and target. Protects neither."""

    loss: Loss = "squared"
    l2: float = 1e-3

    def __repr__(self) -> str:
        """Its parameters, and what they are not."""
        parameters = ", ".join(
            f"{name}={value!r}" for name, value in self.get_params(deep=False).items()
        )
        return f"{type(self).__name__}({parameters}), not private"

    def fit(
        self, X_source: ArrayLike, y_source: ArrayLike, X_target: ArrayLike, y_target: ArrayLike
    ) -> Self:
        """Learn the coefficients. Not private.

        X_source: finite real numbers (m, d), m and d at least 1; X_target: (n, d), n at least 1; a
        constant column makes an intercept. y_source (m,), y_target (n,): finite real numbers, or 0
        and 1 for the logistic loss. No progress is shown: nobody knows beforehand when a search
        ends.

        Raises: ShapeError, ParameterError; nothing is learned then.
        Cost: O(k d**2 + d**3) for k records to learn from, ten times that for the logistic loss;
            and the search for weights, where there is one.
        Source: as the class.
        """
        check_loss(self.loss)
        l2 = positive("l2", self.l2)
        X_source, names = align_source(X_source, X_target)
        source = validate_domain("source", X_source, y_source, self.loss)
        target = validate_domain("target", X_target, y_target, self.loss)
        check_columns("X_target", target.X, source.X.shape[1])
        chosen, weights = self._weigh_records(source, target)
        coef = fit_weighted(chosen.X, chosen.y, weights, loss=self.loss, l2=l2)
        self.coef_, self.feature_names_in_ = read_only(coef), names
        return self

    def _weigh_records(self, source: Records, target: Records) -> tuple[Records, Floats]:
        """The records to learn from, and their weights, which sum to about 1."""
        raise NotImplementedError


@dataclass(kw_only=True, eq=False, repr=False)
class SourceOnly(_Baseline):
    """Ridge or logistic regression on the source alone. Not private.

    Minimizes the mean loss plus l2 |w|**2 / 2; the loss is (w . x - y)**2 / 2 or log(1 + exp(-w . x
    (2 y - 1))). There is no intercept but that of a constant column.

    Attributes:
        loss: "squared" or "logistic".
        l2: above 0.
        coef_: float64 (d,), read-only, after fit.
        record_: None: nothing is protected.
    """

    def _weigh_records(self, source: Records, target: Records) -> tuple[Records, Floats]:
        return source, _equal_weights(source, 1.0)


@dataclass(kw_only=True, eq=False, repr=False)
class TargetOnly(_Baseline):
    """Ridge or logistic regression on the target alone. Not private.

    Attributes:
        loss: as SourceOnly.
        l2: as SourceOnly.
        coef_: float64 (d,), read-only, after fit.
        record_: None: nothing is protected.
    """

    def _weigh_records(self, source: Records, target: Records) -> tuple[Records, Floats]:
        return target, _equal_weights(target, 1.0)


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

    def _weigh_records(self, source: Records, target: Records) -> tuple[Records, Floats]:
        m, n = len(source.y), len(target.y)
        alpha = m / (m + n) if self.alpha is None else probability("alpha", self.alpha)
        pooled = Records(np.concatenate([source.X, target.X]), np.concatenate([source.y, target.y]))
        return pooled, np.concatenate(
            [_equal_weights(source, alpha), _equal_weights(target, 1 - alpha)]
        )


@dataclass(kw_only=True, eq=False, repr=False)
class _Reweighted(_Baseline):
    """Learns from the source, weighted to look like the target."""

    weights_: Floats = dataclasses.field(init=False)
    gap_: float = dataclasses.field(init=False)

    @classmethod
    def _parameter_names(cls) -> list[str]:
        return [field.name for field in dataclasses.fields(cls) if field.init]

    def _weigh_records(self, source: Records, target: Records) -> tuple[Records, Floats]:
        result = self._match_target(source.X, target.X)
        self.weights_, self.gap_ = read_only(result.weights), result.gap
        return source, result.weights / result.weights.sum()

    def _match_target(self, source: NDArray[Any], target: NDArray[Any]) -> WeightsResult:
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
        steps: the largest number of steps of descent.
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

    def _match_target(self, source: NDArray[Any], target: NDArray[Any]) -> WeightsResult:
        m, bound = len(source), number("bound", self.bound)
        if not 1 <= bound < math.inf:
            refuse("bound", self.bound, "it must be finite and at least 1")
        return match_kernel_means(
            source,
            target,
            width=self._width(source),
            bound=bound,
            slack=1 - m**-0.5
            if self.slack is None
            else probability("slack", self.slack, zero=True),
            landmarks=positive_int("landmarks", self.landmarks, 1 << 20),
            steps=positive_int("steps", self.steps, _MOST_STEPS),
            tolerance=positive("tolerance", self.tolerance),
        )

    def _width(self, source: NDArray[Any]) -> float:
        if self.width is not None:
            return positive("width", self.width)
        if len(source) < 2:
            raise ShapeError("X_source has 1 record, but two are needed for a width of None")
        return kernel_width(source)


@dataclass(kw_only=True, eq=False, repr=False)
class DiscrepancyMinimization(_Reweighted):
    """Regression on the source, weighted to a least discrepancy from the target. Not private.

    The weights, at least 0 and of sum 1, make the largest absolute eigenvalue of sum_i q_i x_i x_i'
    - mean_j z_j z_j' least; 4 Lambda**2 times that is how much the squared losses of two linear
    predictors of norm at most Lambda can differ between both, without labels. Then as SourceOnly,
    by these weights.

    Attributes:
        loss: as SourceOnly.
        l2: as SourceOnly.
        steps: the largest number of steps of descent in each of about six stages of less smoothing.
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

    def _match_target(self, source: NDArray[Any], target: NDArray[Any]) -> WeightsResult:
        steps = positive_int("steps", self.steps, _MOST_STEPS)
        tolerance = positive("tolerance", self.tolerance)
        return minimize_discrepancy(source, target, steps=steps, tolerance=tolerance)


def _equal_weights(records: Records, total: float) -> Floats:
    return np.full(len(records.y), total / len(records.y))
