"""Discrepancy minimization for a private target without labels: a private rival of adaptation."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Self

from numpy.typing import ArrayLike

from ..._support.notes import keep_result, note_large_delta
from ..._support.random_state import check_random_state
from ..._support.types import RandomState
from ..._support.validate import bounded_positive, positive, positive_int, read_only
from ...budget.account import Budget
from ..base import (
    BoundedEstimator,
    align_source,
    bound_records,
    check_columns,
    check_loss,
    validate_domain,
    validate_features,
)
from ..discrepancies.exact import Private
from ..discrepancies.moments import RecordBounds, Sample, refuse_beyond
from ..privacy import Numerics, validate_privacy
from .private_moments import release_moment
from .reweighting import match_moment
from .weighted_fit import Loss, fit_weighted

_MOST_STEPS = 1 << 40


@dataclass(kw_only=True, eq=False)
class PrivateDiscrepancyMinimization(BoundedEstimator):
    """Regression on a public source, weighted to minimize the discrepancy from a private target.

    DiscrepancyMinimization reads nothing of the target's records but their second-moment matrix,
    mean z z'. Here this matrix is released once, with noise, and everything else is computed from
    the release and the source. The target's labels are not used.

    Attributes:
        epsilon: Privacy parameter, finite and above 0.
        delta: Privacy parameter in (0, 1).
        norm_bound: Bound on the norm of all rows, in [1e-30, 1e30]. Rows of the source must keep
            it, longer rows of the target are shrunk to it.
        loss: "squared" or "logistic", as in KernelMeanMatching.
        l2: Weight of the penalty `l2 |w|**2 / 2`, above 0.
        steps: Largest number of steps of descent in each stage of less smoothing, at least 1.
        tolerance: Gap at which the descent stops, as a share of the eigenvalue at equal weights,
            above 0.
        numerics: "exact" for rounded Gaussian noise on integers, or "idealized" for Gaussian noise
            in floats.
        random_state: None draws from the operating system. An int or a Generator makes a
            reproducible stream for tests, which protects nobody who knows it.
        budget: The budget that fit is charged to before any coin is drawn; None charges nothing.
        coef_: The coefficients after fit, float64 of shape (d,), read-only.
        weights_: The weights of the source's records after fit, float64 of shape (m,), at least 0
            and of sum 1, read-only.
        gap_: After fit, a bound on how far the largest absolute eigenvalue is above its minimum,
            for the noisy matrix.
        moment_: The released matrix after fit, float64 of shape (d, d), symmetric, read-only. The
            noise may have left it negative eigenvalues. To cut them off would raise its trace, and
            made errors larger in 15 of 18 trials (wind, gas, news; epsilon 1, 4, 15; measured).
        noise_: Standard deviation of the noise on an entry of `moment_` off the diagonal, after
            fit.
        record_: The PrivacyRecord of the target after fit.
        feature_names_in_: The names of the features after fit, if fit took a frame; otherwise None.

    Guarantee:
        fit is (epsilon, delta)-DP for the target under "replace_one"; the source is public. A
        record moves the sum of z z' by at most `sqrt(2) norm_bound**2` in the Frobenius norm.
        Gaussian noise of deviation `s = norm_bound**2 / mu` on each entry above the diagonal and
        sqrt(2) s on it adds up to a budget of mu (proved), and is the least for this matrix.
        numerics="exact" rounds the target's rows to integers. The sums of products are exact and
        get rounded Gaussian noise, which keeps the curve of Gaussian DP. numerics="idealized" adds
        Gaussian noise in floats, accounted by the same curve as if floats were real numbers. Rows
        of the target beyond the bound are shrunk to it, silently. The running time is not
        protected.

    Cost:
        `O(n d**2)` once, then that of DiscrepancyMinimization.

    Source:
        Bassily, Mohri and Suresh 2022, Private Domain Adaptation from a Public Source, who pose
        this problem; one release of all second moments in place of their noisy steps is ours.
        Balle and Wang 2018.

    Examples:
        >>> import numpy as np
        >>> from hdp_fast.adaptation import PrivateDiscrepancyMinimization
        >>> x = np.linspace(-1, 1, 200)
        >>> X_source = np.concatenate([np.c_[x, 0 * x], np.c_[0 * x, x]])
        >>> X_target = np.tile(np.c_[x, 0 * x], (10, 1))  # like the first half of the source
        >>> model = PrivateDiscrepancyMinimization(epsilon=4, delta=1e-6)
        >>> model = model.fit(X_source, np.r_[x, -x], X_target)
        >>> model.record_.epsilon, bool(model.weights_[:200].sum() > 0.7)
        (4.0, True)
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

    @keep_result
    def fit(
        self,
        X_source: ArrayLike,
        y_source: ArrayLike,
        X_target: ArrayLike,
        y_target: ArrayLike | None = None,
        *,
        ids: ArrayLike | None = None,
        rows_per_person: int = 1,
    ) -> Self:
        """Learns the coefficients from the source, weighted by the released matrix of the target.

        fit warns with a UtilityWarning where delta is above 1 / n.

        Args:
            X_source: Records of the public source, finite real numbers of shape (m, d), m and d at
                least 1. A constant column makes an intercept. The columns of a frame are put into
                the target's order.
            y_source: Labels of the source, shape (m,): finite real numbers, or integers 0 and 1 for
                the logistic loss.
            X_target: Records of the private target, finite real numbers of shape (n, d), n at
                least 1. Only their shape and finiteness are validated.
            y_target: Never read; it may be None.
            ids: Whose record it is, for each record of the target, as data.bound_rows takes
                them: the guarantee is then for people, who may have several records. None protects
                each record.
            rows_per_person: The most records of a person that are used, the others being left out;
                public.

        Returns:
            The estimator itself.

        Raises:
            ShapeError: An array has another shape than described.
            ParameterError: A parameter is out of range, an entry is no finite real number, a label
                is of another kind, a row of the source exceeds norm_bound, the frames of both
                domains have different columns, or no noise that can be drawn is enough for epsilon.
            BudgetExceeded: The budget has less than epsilon or delta left.

        Guarantee:
            That of the class. With ids it is for whatever a person's records hold, and ids are
            public. No budget is spent where fit raises.
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
        X_target, _, persons = bound_records(X_target, None, ids, rows_per_person)
        privacy = privacy._replace(persons=persons)
        X_source, names = align_source(X_source, X_target)
        source = validate_domain("source", X_source, y_source, self.loss)
        refuse_beyond(Sample("source", *source), RecordBounds(norm_bound, math.inf))
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
