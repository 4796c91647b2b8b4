"""A private linear regression as scikit-learn has them."""

from __future__ import annotations

import math
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from .._support.notes import keep_result
from .._support.types import Floats, RandomState
from .._support.validate import ordered_pair
from ..budget.account import Budget
from ..data import Chunks, Label, Schema
from ..data.persons import Persons
from ..data.rows import PlainRows, Rows
from ..exceptions import ParameterError
from ..learners import StatisticsModel
from ..learners.centered_linear import TARGET_METHODS, TargetTask
from ..learners.centered_rows import PartedRows
from .private_estimator import PrivateLinearEstimator, note_score, read_targets
from .toolkit import RegressorMixin, shield


def _center_of(ends: tuple[float, float]) -> tuple[float, float]:
    """The middle and half of the width of an interval."""
    low, high = ends
    # Half of the smallest interval would be 0.
    return low / 2 + high / 2, max(high / 2 - low / 2, math.ulp(0.0))


def _scale_targets(ends: tuple[float, float], targets: Floats) -> Floats:
    """Targets clipped to bounds and scaled to [-1, 1]."""
    middle, half = _center_of(ends)
    # Clipped first, so that no target overflows and warns.
    with np.errstate(all="ignore"):
        scaled: Floats = (targets.clip(*ends) - middle) / half
    return scaled.clip(-1.0, 1.0)


def _read_scaled(ends: tuple[float, float], targets: Any) -> Floats:
    return _scale_targets(ends, read_targets(targets))


class PrivateRegressor(RegressorMixin, PrivateLinearEstimator):  # type: ignore[misc]
    """Linear regression under differential privacy that needs no settings but public facts.

    fit scales every column by its public bounds. It releases an interval that holds most of the
    target and its mean, finds slopes by 8 to 120 noisy steps on all records, centered, and shrinks
    them as far as their noise asks for. With few records it is the mean alone: where records
    times epsilon is below 400, and below 90 without an interval, which may leave noise larger than
    what the target varies by.

    Args:
        epsilon: Privacy parameter of a fit, above 0. It must be chosen; math.inf adds no noise and
            protects no one.
        delta: Privacy parameter, strictly between 0 and 1.
        bounds: Public bounds of the columns, to which values are clipped: (low, high) for all of
            them, or one such pair for each, shape (d, 2). A missing value counts as the lower
            bound, as with a schema. Only with epsilon = math.inf None takes them from the data,
            which must be finite then. Columns of bool or an integer type with bounds (0, 1) are
            bits, by bounds as by a schema.
        schema: Public data.Schema, for a frame or a data.Table with categories; its label is not
            used. None for columns of numbers.
        target_bounds: Public bounds (low, high) of the target, to which it is clipped. Only with
            epsilon = math.inf None takes them from the data.
        method: "descent", or "auto", for that; "evidence" for slopes by released moments instead,
            averaged over priors; "additive" for shapes that bend, as learners.PrivateAdditive
            learns them, whose features are bits: whether a number is at or above a cut;
            "statistics" for least squares on what
            learners.SufficientStatistics releases, or "sgd" for least squares by
            learners.PrivateSGD, after means that take a tenth of epsilon and delta.
        test_seed: None draws from the operating system. An int or a Generator makes a
            reproducible stream for tests, which protects no one.

    Attributes:
        n_features_in_: Number of columns of X in fit.
        feature_names_in_: Their names; only where X had names.
        target_bounds_: The bounds of the target, a pair.
        record_: The PrivacyRecord of the fit; None with epsilon = math.inf.
        method_: The method that was used.
        model_: The model of the centered rows and the scaled target, as its learner made it.
        rows_: The map from records to centered rows.
        n_samples_fit_: The public number of records of fit.

    Guarantee:
        That of fit.

    Cost:
        A pass over X, and that of the method.

    Source:
        Basic composition (Dwork et al. 2006) of permute-and-flip (McKenna and Sheldon 2020),
        discrete Laplace noise (Ghosh, Roughgarden and Sundararajan 2009) and Gaussian mechanisms
        (Balle and Wang 2018); of these and the learner with another method. MacKay 1992 for
        evidence.

    Examples:
        >>> import numpy as np
        >>> from hdp_fast.sklearn import PrivateRegressor
        >>> X = np.tile([[20.0], [40.0], [60.0]], (20_000, 1))
        >>> y = np.tile([2.0, 4.0, 6.0], 20_000)
        >>> learner = PrivateRegressor(epsilon=1.0, bounds=(0, 100), target_bounds=(0, 10))
        >>> bool(abs(learner.fit(X, y).predict([[40]])[0] - 4) < 0.5)
        True
        >>> learner.method_, learner.record_.epsilon
        ('descent', 1.0)
    """

    _methods = TARGET_METHODS

    def __init__(
        self,
        *,
        epsilon: float | None = None,
        delta: float = 1e-6,
        bounds: ArrayLike | None = None,
        schema: Schema | None = None,
        target_bounds: tuple[float, float] | None = None,
        method: str = "auto",
        test_seed: RandomState = None,
    ):
        """Keep the parameters, which fit validates."""
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.schema = schema
        self.target_bounds = target_bounds
        self.method = method
        self.test_seed = test_seed

    @keep_result
    def fit(
        self,
        X: Any,
        y: ArrayLike | None = None,
        *,
        ids: ArrayLike | None = None,
        rows_per_person: int = 1,
        budget: Budget | None = None,
    ) -> Self:
        """Learns from private records.

        A UtilityWarning comes before anything is spent where records are so few that the mean alone
        is released, and afterwards where the released slopes explain less than their noise.

        Args:
            X: The records, numbers of shape (n, d), or with a schema a frame or data.Table. Or
                data.Chunks of such with their targets, for all methods but "sgd".
            y: Their targets, finite real numbers of shape (n,); None beside Chunks.
            ids: Whose row it is, shape (n,), as data.bound_rows takes them: the guarantee is then
                for people, who may have several rows. None protects each row. Chunks name the
                column of ids themselves. A search slices ids with the rows where metadata routing
                passes them on.
            rows_per_person: The most rows of a person that are used, the others being left out;
                public.
            budget: The budget that the fit is charged to, as a whole and before anything is drawn;
                None charges nothing. In a pipeline it is passed as STEP__budget.

        Returns:
            The estimator itself.

        Raises:
            ParameterError: A parameter lies outside its range, something public was not given at a
                finite epsilon, or a fit without noise comes with a budget.
            ShapeError: bounds do not fit the columns of X, or ids has another length.
            ValueError: X or y is no array of numbers, y has one that is not finite, or X has one
                without bounds, or they differ in length.
            BudgetExceeded: The budget has less than epsilon or delta left.

        Guarantee:
            (epsilon, delta)-DP under "replace_one", exact, with the number of records public: what
            is released is the means, the model, and n. With ids that is for whatever a person's
            rows hold, and ids are public. Bounds and schema must not be chosen by a
            look at the records. Where records are so few that the mean is released alone, delta is
            0. Nothing is spent where an error is raised.
        """
        return self._fit(X, y, (ids, rows_per_person), budget)

    def _prepare_parts(
        self, chunks: Chunks, y: Any, owners: tuple[Any, int]
    ) -> tuple[tuple[Rows, PartedRows, None, float], Persons]:
        """As _prepare, of records in parts, and who owns them."""
        epsilon = self._check_privacy()
        if self.target_bounds is None:
            raise ParameterError("target_bounds = None, but of records in parts they must be given")
        ends = ordered_pair("target_bounds", self.target_bounds)
        unit, rows, persons = self._open_parts(chunks, y, owners, partial(_read_scaled, ends))
        self.target_bounds_ = ends
        return (unit, rows, None, epsilon), persons

    def _prepare(
        self, X: Any, y: ArrayLike | None
    ) -> tuple[Rows, Floats | PlainRows, Floats, float]:
        """Validate settings and records: the map to rows, rows, scaled targets, and epsilon."""
        epsilon = self._check_privacy()
        if self.target_bounds is not None:
            self.target_bounds_ = ordered_pair("target_bounds", self.target_bounds)
        unit, rows, targets = self._read_training(X, y, numeric=True)
        if self.target_bounds is None:
            low, high = float(targets.min()), float(targets.max())
            self.target_bounds_ = low, high if high > low else low + max(abs(low), 1.0)
        return unit, rows, _scale_targets(self.target_bounds_, targets), epsilon

    def predict(self, X: Any) -> Floats:
        """Predicts the target.

        Args:
            X: The records, m of them, with the columns of fit.

        Returns:
            A float64 array of shape (m,), within the bounds of the target.

        Raises:
            ValueError: fit has not been called (a NotFittedError), X is no array of numbers, or
                its columns are others or in another order.
        """
        scores = self._predict_blocks(X, self._score_rows)
        middle, half = self._target_scale
        targets: Floats = scores.clip(-1.0, 1.0) * half + middle
        return targets

    def _score_rows(self, rows: Floats) -> Floats:
        model: Any = self.model_
        scores: Floats = model.scores(rows)
        return scores[:, 0] if isinstance(model, StatisticsModel) else scores

    def score(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Computes the coefficient of determination.

        The score is an unprotected release about X and y, and no budget is charged. Where they are
        private, as the folds of a search or a cross-validation are, neither publish it nor choose
        anything by it that is published: PrivateSearchCV chooses by a score that is paid for. The
        first call in a process warns of this.

        Args:
            X: The records, with the columns of fit; public ones.
            y: Their targets, shape (m,).
            sample_weight: Public weights of shape (m,); None weighs all alike.

        Returns:
            1 less the squared error over that of the mean of y; at most 1.

        Raises:
            ValueError: As in predict, or y or sample_weight has another length.
        """
        note_score(self)
        return float(shield("y", super().score, X, y, sample_weight))

    @property
    def _target_scale(self) -> tuple[float, float]:
        return _center_of(self.target_bounds_)

    def _by_score(self, values: Floats) -> Any:
        return values[0] if values.ndim == 2 else float(values[0])

    def _describe_label(self, column: str) -> tuple[Label, None]:
        return Label(column, bounds=self.target_bounds_), None

    @property
    def _task(self) -> TargetTask:
        return TargetTask()
