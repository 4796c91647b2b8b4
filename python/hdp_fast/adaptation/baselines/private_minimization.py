"""Discrepancy minimization for a private target without labels: a private rival of adaptation."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Self

from numpy.typing import ArrayLike

from ..._support.notes import note_large_delta
from ..._support.random_state import check_random_state
from ..._support.types import RandomState
from ..._support.validate import bounded_positive, positive, positive_int
from ...budget.account import Budget
from ...learners.hypotheses import read_only
from ..base import (
    BoundedEstimator,
    align_source,
    check_columns,
    check_loss,
    validate_domain,
    validate_features,
)
from ..discrepancies.exact import Private
from ..discrepancies.moments import Bounds, Sample, refuse_beyond
from ..privacy import Numerics, validate_privacy
from .private_moments import release_moment
from .reweighting import match_moment
from .weighted_fit import Loss, fit_weighted

_MOST_STEPS = 1 << 40


@dataclass(kw_only=True, eq=False)
class PrivateDiscrepancyMinimization(BoundedEstimator):
    """Regression on a public source, weighted to a least discrepancy from a private target.

    As DiscrepancyMinimization, which needs the target's records for their second-moment matrix mean
    z z' alone: that is released once, with noise, and all else is done with what was released. The
    target's labels are not used.

    Guarantee: fit is (epsilon, delta)-DP for the target under replace_one; the source is public. A
        record moves the sum of z z' by at most sqrt(2) norm_bound**2 in the Frobenius norm;
        Gaussian noise has deviation s = norm_bound**2 / mu on each entry above the diagonal and
        sqrt(2) s on it, which adds up to mu (proved); the least for this matrix. "exact": the
        target's rows are rounded to integers, sums of products are exact, and discrete Gaussian
        noise is added to them; accounted by zero-concentrated DP, rho = mu**2 / 2. "idealized":
        Gaussian noise in floats, by the curve of Gaussian DP, as if floats were real numbers. Rows
        of the target beyond the bound are shrunk to it, silently. Running time is not protected.

    Attributes:
        epsilon: above 0.
        delta: in (0, 1).
        norm_bound: of all rows, in [1e-30, 1e30]; those of the source must keep it.
        loss: as SourceOnly.
        l2: as SourceOnly.
        steps: as DiscrepancyMinimization.
        tolerance: as DiscrepancyMinimization.
        numerics: "exact" or "idealized".
        random_state: None draws from the operating system; an int or a Generator makes a
            reproducible test stream that protects nobody who knows it.
        budget: charged by fit, before any coin is drawn.
        coef_: float64 (d,), read-only, after fit.
        weights_: float64 (m,), of the source's records, at least 0 and of sum 1, read-only, after
            fit.
        gap_: how far the eigenvalue is above the least possible at most, for the noisy matrix,
            after fit.
        moment_: the released matrix, float64 (d, d), symmetric, read-only, after fit. The noise may
            have left it negative eigenvalues: to cut them off is to raise its trace, and made
            errors larger in 15 of 18 trials (wind, gas, news; epsilon 1, 4, 15; measured).
        noise_: deviation of the noise on an entry of moment_ off the diagonal, after fit.
        record_: what protects the target, after fit.

    Raises: ShapeError, ParameterError, BudgetExceeded, by fit.
    Cost: O(n d**2) once, then as DiscrepancyMinimization.
    Source: Bassily, Mohri and Suresh 2022, Private Domain Adaptation from a Public Source, whose
        problem this is; one release of all second moments in place of their noisy steps is ours.
        Canonne, Kamath and Steinke 2020; Balle and Wang 2018.
    """

    epsilon: float
    delta: float
    norm_bound: float = 1.0
    loss: Loss = "squared"
    l2: float = 1e-3
    steps: int = 300
    tolerance: float = 0.01
    numerics: Numerics = "exact"
    random_state: RandomState = None
    budget: Budget | None = None

    private: ClassVar[Private] = "target"

    def fit(
        self,
        X_source: ArrayLike,
        y_source: ArrayLike,
        X_target: ArrayLike,
        y_target: ArrayLike | None = None,
    ) -> Self:
        """Learn the coefficients.

        X_source, y_source, X_target: as DiscrepancyMinimization.fit takes them; what is private is
        checked for its shape, NaN and infinity alone. y_target: never read.

        Guarantee: as the class.
        Raises: ShapeError, ParameterError, BudgetExceeded; no budget is spent then.
        Cost: as the class.
        Source: as the class.
        """
        check_loss(self.loss)
        check_random_state(self.random_state)
        positive("epsilon", self.epsilon)
        privacy, norm_bound = (
            validate_privacy(self),
            bounded_positive("norm_bound", self.norm_bound),
        )
        l2, tolerance = positive("l2", self.l2), positive("tolerance", self.tolerance)
        steps = positive_int("steps", self.steps, _MOST_STEPS)
        X_source, names = align_source(X_source, X_target)
        source = validate_domain("source", X_source, y_source, self.loss)
        refuse_beyond(Sample("source", *source), Bounds(norm_bound, math.inf))
        rows = validate_features("target", X_target)
        check_columns("X_target", rows, source.X.shape[1])
        note_large_delta(privacy.delta, len(rows))
        released = release_moment(rows, norm_bound, privacy, self.random_state, self.budget)
        result = match_moment(source.X, released.matrix, steps=steps, tolerance=tolerance)
        weights = result.weights / result.weights.sum()
        coef = fit_weighted(source.X, source.y, weights, loss=self.loss, l2=l2)
        self.coef_, self.weights_, self.gap_ = read_only(coef), read_only(weights), result.gap
        self.moment_, self.noise_ = read_only(released.matrix), released.deviation
        self.record_, self.feature_names_in_ = released.record, names
        return self
