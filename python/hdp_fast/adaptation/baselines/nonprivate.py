"""Baselines that protect no one, for comparison with private adaptation."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Self

from numpy.typing import ArrayLike, NDArray

from ..._support.notes import keep_result
from ..._support.parameters import Rules, check_fields, optional
from ..._support.types import Floats
from ..._support.validate import (
    number,
    one_of,
    positive,
    positive_int,
    probability,
    read_only,
    refuse,
)
from ...exceptions import ShapeError
from ..base import Estimator
from ..domains import align_source, check_columns, refuse_parts, validate_domain
from .reweighting import (
    LOSSES,
    MOST_STEPS,
    Loss,
    WeightsResult,
    fit_weighted,
    kernel_width,
    match_kernel_means,
    minimize_discrepancy,
)


def _at_least_one(name: str, value: Any) -> float:
    """The value as a finite float of at least 1.

    Raises: ParameterError otherwise.
    """
    real = number(name, value)
    if not 1 <= real < math.inf:
        refuse(name, value, "it must be finite and at least 1")
    return real


@dataclass(kw_only=True, eq=False, repr=False)
class _Reweighted(Estimator):
    """Base class of estimators that learn from the source, weighted to resemble the target."""

    loss: Loss = "squared"
    l2: float = 1e-3
    RULES: ClassVar[Rules] = {"loss": partial(one_of, allowed=LOSSES), "l2": positive}

    weights_: Floats = dataclasses.field(init=False)
    gap_: float = dataclasses.field(init=False)

    def __repr__(self) -> str:
        """Return its parameters, and that it is not private."""
        parameters = ", ".join(
            f"{name}={value!r}" for name, value in self.get_params(deep=False).items()
        )
        return f"{type(self).__name__}({parameters}), not private"

    @keep_result
    def fit(
        self, X_source: ArrayLike, y_source: ArrayLike, X_target: ArrayLike, y_target: ArrayLike
    ) -> Self:
        """Learns the coefficients. Not private.

        No progress is shown, since the number of steps is not known beforehand.

        Args:
            X_source: Records of the source, finite real numbers of shape (m, d), m and d at
                least 1. A constant column makes an intercept. The columns of a frame are put into
                the target's order.
            y_source: Labels of the source, shape (m,): finite real numbers, or integers 0 and 1 for
                the logistic loss.
            X_target: Records of the target, finite real numbers of shape (n, d), n at least 1.
            y_target: Labels of the target, shape (n,), of the same kind. They are validated, but
                nothing is learned from them.

        Returns:
            The estimator itself.

        Raises:
            ShapeError: An array has another shape than described.
            ParameterError: A parameter is out of range, an entry is no finite real number, a label
                is of another kind, or the frames of both domains have different columns.

        Cost:
            `O(k d**2 + d**3)` for k records to learn from, about ten times that for the logistic
            loss; and the search for weights of a reweighting estimator.
        """
        fields = check_fields(self)
        refuse_parts("it weighs each record", X_source=X_source, X_target=X_target)
        X_source, names = align_source(X_source, X_target)
        source = validate_domain("source", X_source, y_source, self.loss)
        target = validate_domain("target", X_target, y_target, self.loss)
        check_columns("X_target", target.X, source.X.shape[1])
        result = self._match_target(source.X, target.X, fields)
        weights = result.weights / result.weights.sum()
        coef = fit_weighted(source.X, source.y, weights, loss=self.loss, l2=fields["l2"])
        self.coef_, self.feature_names_in_ = read_only(coef), names
        self.weights_, self.gap_ = read_only(result.weights), result.gap
        return self

    def _match_target(
        self, source: NDArray[Any], target: NDArray[Any], fields: dict[str, Any]
    ) -> WeightsResult:
        """Return the weights of the source's records, by the checked parameters."""
        raise NotImplementedError


@dataclass(kw_only=True, eq=False, repr=False)
class KernelMeanMatching(_Reweighted):
    """Regression on the source, weighted so that its kernel mean is near the target's. Not private.

    beta = `m weights_` is chosen from all vectors with entries in [0, bound] and |mean(beta) - 1|
    <= slack. The chosen one brings the weighted mean of the source nearest to the mean of the
    target in the space of the Gaussian kernel `exp(-|x - z|**2 / (2 width**2))`. Labels are not
    used for that. Then the weighted mean loss plus `l2 |w|**2 / 2` is minimized, with these weights
    scaled to sum 1. The loss is `(w . x - y)**2 / 2`, or `log(1 + exp(-w . x (2 y - 1)))` for
    labels 0 and 1; only a constant column makes an intercept. With as many landmarks as source
    records the kernel is exact. With fewer, it is projected to the span of landmarks at equal
    distances in the source's order.

    Attributes:
        loss: "squared" or "logistic".
        l2: Weight of the penalty, above 0.
        width: Width of the kernel, above 0. None takes the median distance of at most 1,000 source
            records at equal distances in their order, or 1 where that is 0: a public rule where the
            source is public. It needs at least two records.
        bound: Largest entry of beta, at least 1.
        slack: Allowed distance of the mean of beta from 1, in [0, 1). None takes 1 - 1 / sqrt(m),
            as in the paper.
        landmarks: Number of landmarks, from 1 to `2**20`.
        steps: Largest number of steps of the descent, at least 1.
        tolerance: Gap at which the descent stops, as a share of the objective at equal weights,
            above 0.
        coef_: The coefficients after fit, float64 of shape (d,), read-only.
        weights_: The weights after fit, float64 of shape (m,), read-only.
        gap_: After fit, a bound on how far the objective, half the squared distance of the means,
            is above its minimum.
        record_: None, since nothing is protected.
        feature_names_in_: The names of the features after fit, if fit took a frame; otherwise None.

    Cost:
        fit takes `O((m + n) landmarks d + landmarks**3)` and, in each step, two passes over
        `m landmarks` numbers, which take 8 bytes each; then the regression.

    Source:
        Huang, Smola, Gretton, Borgwardt and Schoelkopf 2006, Correcting Sample Selection Bias by
        Unlabeled Data, equation 12; Nystrom's approximation and accelerated descent are ours.

    Examples:
        >>> import numpy as np
        >>> from hdp_fast.adaptation import KernelMeanMatching
        >>> X = np.linspace(-1, 1, 40)[:, None]  # the target lies in the upper quarter
        >>> y = np.square(X[:, 0])
        >>> model = KernelMeanMatching().fit(X, y, X[30:], y[30:])
        >>> bool(model.weights_[30:].sum() > 0.7)
        True
    """

    width: float | None = None
    bound: float = 1000.0
    slack: float | None = None
    landmarks: int = 500
    steps: int = 500
    tolerance: float = 0.01

    RULES: ClassVar[Rules] = {
        **_Reweighted.RULES,
        "width": optional(positive),
        "bound": _at_least_one,
        "slack": optional(partial(probability, zero=True)),
        "landmarks": partial(positive_int, most=1 << 20),
        "steps": partial(positive_int, most=MOST_STEPS),
        "tolerance": positive,
    }

    def _match_target(
        self, source: NDArray[Any], target: NDArray[Any], fields: dict[str, Any]
    ) -> WeightsResult:
        settings = {name: fields[name] for name in ("bound", "landmarks", "steps", "tolerance")}
        slack, width = fields["slack"], fields["width"]
        if width is None and len(source) < 2:
            raise ShapeError("X_source has 1 record, but two are needed for a width of None")
        return match_kernel_means(
            source,
            target,
            width=kernel_width(source) if width is None else width,
            slack=1 - len(source) ** -0.5 if slack is None else slack,
            **settings,
        )


@dataclass(kw_only=True, eq=False, repr=False)
class DiscrepancyMinimization(_Reweighted):
    """Regression on the source, weighted to minimize the discrepancy from the target. Not private.

    The weights are at least 0 and sum to 1. They minimize the largest absolute eigenvalue of the
    matrix `sum_i q_i x_i x_i' - mean_j z_j z_j'`. This eigenvalue times `4 Lambda**2` is the
    largest difference between both domains in the squared loss of one linear predictor against
    another, both of norm at most Lambda; it depends on no labels. Then the objective of
    KernelMeanMatching is minimized with these weights.

    Attributes:
        loss: "squared" or "logistic".
        l2: Weight of the penalty, above 0.
        steps: Largest number of steps of descent in each stage, at least 1. The stages have less
            and less smoothing; the default tolerance needs at most four of them.
        tolerance: Gap at which the descent stops, as a share of the eigenvalue at equal weights,
            above 0.
        coef_: The coefficients after fit, float64 of shape (d,), read-only.
        weights_: The weights after fit, float64 of shape (m,), read-only.
        gap_: After fit, a bound on how far the eigenvalue is above its minimum.
        record_: None, since nothing is protected.
        feature_names_in_: The names of the features after fit, if fit took a frame; otherwise None.

    Cost:
        fit takes `O(m d**2 + d**3)` twice a step, and the regression.

    Source:
        Cortes and Mohri 2014, Domain adaptation and sample bias correction theory and algorithm for
        regression; smoothing of Nesterov 2007 in place of their solvers.

    Examples:
        >>> import numpy as np
        >>> from hdp_fast.adaptation import DiscrepancyMinimization
        >>> x = np.linspace(-1, 1, 100)
        >>> X_source = np.concatenate([np.c_[x, 0 * x], np.c_[0 * x, x]])
        >>> X_target = np.c_[x, 0 * x]  # like the first half of the source
        >>> model = DiscrepancyMinimization().fit(X_source, np.r_[x, -x], X_target, x)
        >>> bool(model.weights_[:100].sum() > 0.9)
        True
    """

    steps: int = 300
    tolerance: float = 0.01

    RULES: ClassVar[Rules] = {
        **_Reweighted.RULES,
        "steps": partial(positive_int, most=MOST_STEPS),
        "tolerance": positive,
    }

    def _match_target(
        self, source: NDArray[Any], target: NDArray[Any], fields: dict[str, Any]
    ) -> WeightsResult:
        return minimize_discrepancy(
            source, target, steps=fields["steps"], tolerance=fields["tolerance"]
        )
