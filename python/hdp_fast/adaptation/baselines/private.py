"""The private rivals of adaptation: noisy SGD on the target, and discrepancy minimization."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..._support.feature_names import check_names, names_of
from ..._support.notes import keep_result, note_large_delta
from ..._support.parameters import Rules, check_fields, optional
from ..._support.types import Floats, Integers, RandomState
from ..._support.validate import (
    bounded_positive,
    one_of,
    positive,
    positive_int,
    probability,
    read_only,
)
from ...budget.account import Budget, spend
from ...data.chunks import Chunks
from ...data.persons import read_persons
from ...data.states import State
from ...exceptions import ShapeError
from ...learners.linear_model import ValidRows
from ...learners.noisy_steps import Numerics
from ...learners.sgd import PrivateSGD
from ...record import PrivacyRecord
from ..base import BoundedEstimator
from ..discrepancies.moments import (
    RecordBounds,
    Sample,
    choose_units,
    fold_moments,
    refuse_beyond,
    unit_of,
)
from ..domains import (
    Domain,
    align_source,
    check_columns,
    open_domain,
    refuse_parts,
    validate_domain,
)
from ..privacy import (
    NUMERICS,
    DescentNoise,
    Privacy,
    Rng,
    add_noise,
    calibrate_noise,
    make_record,
    open_stream,
    set_privacy,
    sum_bits,
)
from .reweighting import LOSSES, MOST_STEPS, Loss, fit_weighted, match_moment


@dataclass(kw_only=True, eq=False)
class TargetSGD(BoundedEstimator):
    """Noisy minibatch SGD on the target alone: a private rival of adaptation.

    It runs learners.PrivateSGD on the target's records. The source is validated, and not used.

    Attributes:
        epsilon: Privacy parameter, finite and above 0.
        delta: Privacy parameter in (0, 1).
        radius: Radius of the ball that holds the coefficients, in [1e-30, 1e30].
        norm_bound: Norm to which longer records are shrunk, in [1e-30, 1e30].
        label_bound: Labels of the squared loss are clipped to [-label_bound, label_bound]; in
            [1e-30, 1e30]. The logistic loss ignores it.
        loss: "squared" or "logistic".
        steps: Number T of steps, at least 1. None takes
            `min(n / 8, epsilon**2 n**2 / (32 d log(1 / delta)))`, at least 1.
        batch_size: Number of records drawn in a step, at least 1. None takes n sqrt(epsilon / (4
            T)), from 1 to n.
        numerics: "exact" for rounded Gaussian noise on integers, or "idealized" for Gaussian noise
            in floats.
        coef_: The coefficients after fit, float64 of shape (d,), read-only.
        record_: The PrivacyRecord of the target after fit.
        feature_names_in_: The names of the features after fit, if fit took a frame; otherwise None.

    Guarantee:
        fit is (epsilon, delta)-DP for the target under "replace_one", with the guarantee of
        PrivateSGD.learn. The running time is not protected.

    Cost:
        That of PrivateSGD.calibrate and PrivateSGD.learn.

    Source:
        Bassily, Feldman, Talwar and Thakurta 2019, Private Stochastic Convex Optimization with
        Optimal Rates, Algorithm 1; the lengths of the steps and the noise are those of PrivateSGD.

    Examples:
        >>> import numpy as np
        >>> from hdp_fast.adaptation import TargetSGD
        >>> X = np.tile([[0.6, 0.8], [-0.6, 0.8], [0.6, -0.8], [-0.6, -0.8]], (500, 1))
        >>> y_source, y_target = (X > 0).astype(int).T  # the first feature counts, or the second
        >>> model = TargetSGD(epsilon=4, delta=1e-6, loss="logistic", steps=20)
        >>> model = model.fit(X, y_source, X, y_target)
        >>> bool((model.predict(X) == y_target).all()), model.record_.neighbors
        (True, 'replace_one')
    """

    epsilon: float
    delta: float
    radius: float = 1.0
    norm_bound: float = 1.0
    label_bound: float = 1.0
    loss: Loss = "squared"
    steps: int | None = None
    batch_size: int | None = None
    numerics: Numerics = "exact"

    RULES: ClassVar[Rules] = {
        "epsilon": positive,
        "delta": probability,
        "loss": partial(one_of, allowed=LOSSES),
        "steps": optional(partial(positive_int, most=MOST_STEPS)),
    }

    @keep_result
    def fit(
        self,
        X_source: ArrayLike,
        y_source: ArrayLike,
        X_target: ArrayLike,
        y_target: ArrayLike,
        *,
        ids: ArrayLike | None = None,
        rows_per_person: int = 1,
        budget: Budget | None = None,
        random_state: RandomState = None,
    ) -> Self:
        """Learns the coefficients from the target.

        fit warns with a UtilityWarning where delta is above 1 / n.

        Args:
            X_source: Records of the source, finite real numbers of shape (m, d), m and d at
                least 1. They are validated and not used.
            y_source: Labels of the source, shape (m,): finite real numbers, or integers 0 and 1 for
                the logistic loss.
            X_target: Records of the private target, finite real numbers of shape (n, d), n at
                least 1. Only their shape and finiteness are validated. A constant column makes an
                intercept.
            y_target: Labels of the target, shape (n,), of the same kind as those of the source.
                Private labels of the squared loss are validated for shape and finiteness, those of
                the logistic loss must be 0 and 1.
            ids: Whose record it is, for each record of the target, as data.bound_rows takes
                them: the guarantee is then for people, who may have several records. None protects
                each record.
            rows_per_person: The most records of a person that are used, the others being left out;
                public.
            budget: What fit is charged to before any coin is drawn; None charges nothing.
            random_state: None draws from the operating system. An int or a Generator makes a
                reproducible stream for tests, which protects no one who knows it.

        Returns:
            The estimator itself.

        Raises:
            ShapeError: An array has another shape than described.
            ParameterError: A parameter is out of range, an entry is no finite real number, a label
                is of another kind, the frames of both domains have different columns, or no noise
                is enough for epsilon.
            BudgetExceeded: The budget has less than epsilon or delta left.

        Guarantee:
            That of the class. With ids it is for whatever a person's records hold, and ids are
            public. No budget is spent where fit raises.
        """
        fields = check_fields(self)
        refuse_parts("draws of records need all rows", X_source=X_source, X_target=X_target)
        X_source, names = align_source(X_source, X_target)
        d = validate_domain("source", X_source, y_source, self.loss).X.shape[1]
        target = validate_domain("target", X_target, y_target, self.loss)
        check_columns("X_target", target.X, d)
        persons = read_persons(ids, rows_per_person, len(target.y))
        people = persons.count_groups(len(persons.select(target.y)))
        model = self._make_learner(fields, people, d).learn(
            ValidRows(target.X),
            y_target,
            ids=ids,
            rows_per_person=rows_per_person,
            random_state=random_state,
            budget=budget,
        )
        self.coef_, self.record_ = model.weights, model.record
        self.feature_names_in_ = names
        return self

    def _make_learner(self, fields: Mapping[str, Any], n: int, d: int) -> PrivateSGD:
        epsilon, delta, steps = (fields[name] for name in ("epsilon", "delta", "steps"))
        affordable = epsilon * n * epsilon * n / (32 * d * math.log(1 / delta))
        steps = steps or max(1, int(min(n / 8, affordable)))
        batch_size = min(n, max(1, round(n * math.sqrt(epsilon / (4 * steps)))))
        return PrivateSGD(
            loss=self.loss,
            steps=steps,
            batch_size=batch_size if self.batch_size is None else self.batch_size,
            radius=self.radius,
            norm_bound=self.norm_bound,
            label_bound=self.label_bound if self.loss == "squared" else None,
            numerics=self.numerics,
            epsilon=epsilon,
            delta=delta,
        )


# The root of 2, rounded up.
_ROOT = math.nextafter(math.sqrt(2), 2.0)


class MomentSums(NamedTuple):
    """The exact sum of z z' over private rows z, as integers.

    Attributes:
        matrix: The sum, int64 (d, d), in squared units.
        norm: Bound on the norm of any row, in units.
        unit: The number that an entry of 1 stands for.
    """

    matrix: Integers
    norm: int
    unit: float

    @classmethod
    def of(cls, target: Domain, norm_bound: float, noise: DescentNoise) -> MomentSums:
        """Return the sum over rows shrunk to norm_bound, on as fine a grid as the noise allows.

        Raises: ParameterError where that is too coarse; what reading parts raises.
        """
        units = choose_units(target.n)
        if noise.exact:
            # A product of two entries is no larger than the squared norm of a row.
            units = min(units, 1 << sum_bits(noise, target.n) // 2)
        bounds = RecordBounds(norm_bound, 1.0)
        state = target.fold(partial(_fold_rows, bounds=bounds, units=units))
        return cls(state.sums["moments"], units, unit_of(bounds, units, target.columns))

    def add_noise(self, noise: DescentNoise, rng: Rng) -> Floats:
        """Return the sum, its upper triangle with the noise of release_moment."""
        upper, square = np.triu_indices(len(self.matrix), 1), float(self.norm) ** 2
        above = add_noise(self.matrix[upper], square, noise, rng)
        matrix = np.diag(add_noise(self.matrix.diagonal(), _ROOT * square, noise, rng))
        matrix[upper] = above
        matrix.T[upper] = above
        return matrix


def _fold_rows(X: NDArray[Any], y: Floats, *, bounds: RecordBounds, units: int) -> State:
    job = "adaptation.PrivateDiscrepancyMinimization"
    return fold_moments(job, Sample("target", X, y), bounds, units, labels=False)


class ReleasedMoment(NamedTuple):
    """A second-moment matrix with noise; any use of it is free of further privacy cost.

    Attributes:
        matrix: Mean of z z', float64 (d, d), symmetric.
        deviation: Deviation of the noise on an entry off the diagonal; on the diagonal it is
            sqrt(2) times as large.
        record: The PrivacyRecord of the rows.
    """

    matrix: Floats
    deviation: float
    record: PrivacyRecord


def release_moment(target: Domain, norm_bound: float, privacy: Privacy) -> ReleasedMoment:
    """Release the mean of z z' over n rows shrunk to norm_bound, with noise.

    Let r = norm_bound. Replacing a row by z' moves the sum by a matrix D whose Frobenius norm is at
    most `sqrt(2) r**2`, since `|z z'|_F = |z|**2` and the inner product of two such matrices is a
    square. Take noise of deviation s above the diagonal and sqrt(2) s on it. The squared ratios of
    change to deviation then add up to `|D|_F**2 / (2 s**2) <= (r**2 / s)**2`, so that
    `s = r**2 / mu` keeps a budget of mu. Both deviations are the least possible: two orthogonal
    rows along axes need `sqrt(2) r**2 / mu` on the diagonal, and two rows with entries of +-r /
    sqrt(d) need `r**2 / mu` off it. The same noise on all entries would have to be
    `sqrt(2) r**2 / mu`, and its spectral norm would be sqrt(2) times as large.

    Raises: ParameterError, BudgetExceeded.
    """
    noise = calibrate_noise(privacy, 1, 0.0)
    sums = MomentSums.of(target, norm_bound, noise)
    mechanism = "adaptation.PrivateDiscrepancyMinimization, 1 step"
    source = "Bassily, Mohri and Suresh 2022; Gaussian mechanism on the second moments"
    record = make_record(privacy, noise, mechanism, source)
    with spend(privacy.goal.budget, record):
        matrix = sums.add_noise(noise, open_stream(privacy.goal.random_state))
    scale = sums.unit**2 / target.n
    deviation = noise.multiple * float(sums.norm) ** 2 * scale
    return ReleasedMoment(matrix * scale, deviation, record)


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
        sqrt(2) s on it adds up to a budget of mu (proved), and is the least for this matrix. Each
        of the target's rows is rounded by itself to integers, whose norm is checked in integers;
        one that is beyond the bound all the same counts as zeros. The sums of their products are
        exact. With numerics="exact" they get rounded Gaussian noise, which keeps the curve of
        Gaussian DP; "idealized" adds Gaussian noise in floats, accounted by the same curve as if
        floats were real numbers. Rows of the target beyond the bound are shrunk to it, silently.
        The running time is not protected.

    Cost:
        `O(n d**2)` once, then that of DiscrepancyMinimization. Chunks of the target are read twice,
        once to count them.

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

    RULES: ClassVar[Rules] = {
        "epsilon": positive,
        "delta": probability,
        "norm_bound": bounded_positive,
        "loss": partial(one_of, allowed=LOSSES),
        "l2": positive,
        "steps": partial(positive_int, most=MOST_STEPS),
        "tolerance": positive,
        "numerics": partial(one_of, allowed=NUMERICS),
    }

    @keep_result
    def fit(
        self,
        X_source: ArrayLike,
        y_source: ArrayLike,
        X_target: ArrayLike | Chunks,
        y_target: ArrayLike | None = None,
        *,
        ids: ArrayLike | None = None,
        rows_per_person: int = 1,
        budget: Budget | None = None,
        random_state: RandomState = None,
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
                least 1; or data.Chunks of them. Only their shape and finiteness are validated.
            y_target: Never read; it may be None. Labels in Chunks are not read either.
            ids: Whose record it is, for each record of the target, as data.bound_rows takes
                them: the guarantee is then for people, who may have several records. None protects
                each record. Chunks name a column of ids themselves.
            rows_per_person: The most records of a person that are used, the others being left out;
                public.
            budget: What fit is charged to before any coin is drawn; None charges nothing.
            random_state: None draws from the operating system. An int or a Generator makes a
                reproducible stream for tests, which protects no one who knows it.

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
        fields = check_fields(self)
        norm_bound, l2 = fields["norm_bound"], fields["l2"]
        refuse_parts("it weighs each record of the source", X_source=X_source)
        target = open_domain("target", X_target, None, None, owners=(ids, rows_per_person))
        privacy = set_privacy(fields, budget, random_state).change(persons=target.persons)
        X_source = check_names(target.names, X_source, "X_source")
        names = target.names or names_of(X_source)
        source = validate_domain("source", X_source, y_source, self.loss)
        refuse_beyond(Sample("source", *source), RecordBounds(norm_bound, math.inf))
        if source.X.shape[1] != target.columns:
            rule = f"there must be {source.X.shape[1]}"
            raise ShapeError(f"X_target has {target.columns} columns, but {rule}")
        note_large_delta(privacy.delta, target.n)
        released = release_moment(target, norm_bound, privacy)
        result = match_moment(
            source.X, released.matrix, steps=fields["steps"], tolerance=fields["tolerance"]
        )
        weights = result.weights / result.weights.sum()
        coef = fit_weighted(source.X, source.y, weights, loss=self.loss, l2=l2)
        self.coef_, self.weights_, self.gap_ = read_only(coef), read_only(weights), result.gap
        self.moment_, self.noise_ = read_only(released.matrix), released.deviation
        self.record_, self.feature_names_in_ = released.record, names
        return self
