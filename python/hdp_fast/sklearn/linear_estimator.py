"""What the private linear estimators share: validation, the release, and the way to scores."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import accounting
from .._support.feature_names import names_of
from .._support.notes import note
from .._support.random_state import check_random_state, make_stream
from .._support.types import Floats
from .._support.validate import number, one_of, positive, probability, refuse
from ..accounting.noisy_sums import calibrate_means
from ..budget.account import Budget
from ..exceptions import ParameterError
from ..learners import (
    FeatureMap,
    LinearModel,
    PrivateSGD,
    SoftmaxModel,
    StatisticsModel,
    SufficientStatistics,
)
from ..learners.centered_rows import CenteredRows, center
from ..learners.sufficient_statistics import calibrate
from ..learners.unit_rows import UnitRows
from ..record import PrivacyRecord, rng_of
from .charges import spend
from .toolkit import BaseEstimator, check_is_fitted, column_or_1d, validate_data

Model = LinearModel | SoftmaxModel | StatisticsModel
Learner = Callable[[Floats, NDArray[Any], np.random.Generator | None], Model]

# Share of epsilon and delta that the means take.
_SHARE = 0.1
# How far second moments must stand out of their noise.
_CLEAR = 18
_noted_scores: set[str] = set()


class PrivateLinearEstimator(BaseEstimator):  # type: ignore[misc]
    """A linear model of centered rows, whose means are released with a tenth of the budget."""

    epsilon: float | None
    delta: float
    bounds: Any
    schema: Any
    method: str
    random_state: Any
    _methods = ("auto", "statistics", "sgd")

    @abstractmethod
    def _prepare(self, X: Any, y: Any) -> tuple[UnitRows, Floats, NDArray[Any], float]:
        """Validate settings and records: the map to rows, rows, labels, and epsilon."""

    @abstractmethod
    def _choose_method(self, n: int, d: int, epsilon: float) -> str:
        """The method of "auto" for n records of d columns, by public numbers."""

    @abstractmethod
    def _learner(
        self, method: str, shape: tuple[int, int], norm: float, epsilon: float, delta: float
    ) -> Learner:
        """The function that learns from centered rows of this shape and norm.

        Raises all errors that the public settings alone can cause.
        """

    def _check_privacy(self) -> float:
        epsilon = check_privacy(self.epsilon, self.delta, self.random_state)
        one_of("method", self.method, self._methods)
        if self.bounds is not None and self.schema is not None:
            rule = "only one of them may be given: the schema has bounds"
            raise ParameterError(f"bounds = {self.bounds!r} and schema = a Schema, but {rule}")
        if epsilon < math.inf and self.bounds is None and self.schema is None:
            rule = (
                "with a finite epsilon what is public must be given: bounds = (low, high) of all"
                " columns, or one such pair for each, or a schema; epsilon = math.inf takes them"
                " from the data and protects nobody"
            )
            raise ParameterError(f"bounds = None and schema = None, but {rule}")
        return epsilon

    def _read_training(self, X: Any, y: Any, numeric: bool) -> tuple[UnitRows, Floats, Any]:
        """The map to rows in [0, 1], the rows, and the labels as a vector."""
        if self.schema is not None:
            unit = UnitRows.of_schema(self.schema)
            rows, labels = unit(X), column_or_1d(y, warn=True)
            if len(labels) != len(rows):
                raise ParameterError(f"y has {len(labels):,} entries, but X has {len(rows):,} rows")
            if numeric:
                labels = _to_numbers(labels)
            self._keep_names(X)
            return unit, rows, labels
        records, labels = validate_data(self, X, y, dtype=np.float64, y_numeric=numeric)
        if numeric:
            labels = _to_numbers(labels)
        if self.bounds is None:
            unit = UnitRows.spanned_by(records)
        else:
            unit = UnitRows.within(self.bounds, records.shape[1])
        return unit, unit(records), labels

    def _keep_names(self, X: Any) -> None:
        names = names_of(X)
        if names is None:
            names = tuple(X.columns)
        self.n_features_in_ = len(names)
        self.feature_names_in_ = np.array(names, object)

    def _release(
        self,
        unit: UnitRows,
        rows: Floats,
        labels: NDArray[Any],
        epsilon: float,
        budget: Budget | None,
    ) -> None:
        """Charge the budget, release the means, and learn."""
        n, d = len(rows), rows.shape[1]
        private = epsilon < math.inf
        if not private and budget is not None:
            refuse("epsilon", epsilon, "only a private fit can be charged to a budget")
        method = self._choose_method(n, d, epsilon) if self.method == "auto" else self.method
        share = (epsilon * _SHARE, self.delta * _SHARE)
        # Rounded down, so that both parts add up to no more than the whole.
        rest = (
            math.nextafter(epsilon - share[0], 0.0) if private else epsilon,
            math.nextafter(self.delta - share[1], 0.0),
        )
        # Settings for which no noise is enough are refused before anything is spent.
        self._learner(method, (n, d + 1), 1.0, *rest)
        if private:
            calibrate_means(2 * unit.sources, n=n, epsilon=share[0], delta=share[1])
        record = self._make_record(method, n, d) if private else None
        stream = make_stream(self.random_state)
        with spend(budget if private else None, record):  # type: ignore[arg-type]
            centered = center(unit, rows, epsilon=share[0], delta=share[1], random_state=stream)
            learn = self._learner(method, (n, d + 1), centered.norm, *rest)
            model = learn(centered.scale(rows), labels, stream)
        self.method_, self.record_ = method, record
        self.rows_, self.model_ = centered, model

    def _make_record(self, method: str, n: int, d: int) -> PrivacyRecord:
        assert self.epsilon is not None
        how = {"sgd": "PrivateSGD", "statistics": "SufficientStatistics"}[method]
        return PrivacyRecord(
            mechanism=f"sklearn.{type(self).__name__}, {d} columns, means and learners.{how}",
            source="basic composition of a Gaussian mechanism and the learner (Dwork et al. 2006)",
            neighbors="replace_one",
            epsilon=float(self.epsilon),
            delta=float(self.delta),
            noise=f"rounded normal on integers, with {_SHARE:g} of epsilon and delta on the means",
            rng=rng_of(self.random_state),
        )

    def _read_rows(self, X: Any) -> Floats:
        """The centered rows of records to predict on."""
        check_is_fitted(self)
        centered: CenteredRows = self.rows_
        if centered.unit.schema is None:
            X = validate_data(self, X, dtype=np.float64, reset=False)
        return centered(X)

    def _note_score(self) -> None:
        """Warn once that a score is no private release."""
        note_score(self)


def _to_numbers(targets: Any) -> Floats:
    """The targets as floats; the error shows none of them."""
    try:
        floats = np.asarray(targets, np.float64)
    except (TypeError, ValueError):
        raise ParameterError("y has an entry that is no number, but all must be") from None
    if not np.isfinite(floats).all():
        raise ParameterError("y has an entry that is not finite, but all must be")
    return floats


def check_privacy(epsilon: float | None, delta: float, random_state: Any) -> float:
    """Validate what every private estimator has, and return epsilon."""
    if epsilon is None:
        raise ParameterError("epsilon = None, but it must be chosen: math.inf for no protection")
    probability("delta", delta)
    check_random_state(random_state)
    return math.inf if number("epsilon", epsilon) == math.inf else positive("epsilon", epsilon)


def note_score(estimator: Any) -> None:
    """Warn once for each class that a score is no private release."""
    name = type(estimator).__name__
    if getattr(estimator, "epsilon", None) != math.inf and name not in _noted_scores:
        _noted_scores.add(name)
        note(
            "score is an unprotected release wherever its records are private, as the folds of a"
            " search or a cross-validation are: publish and choose by scores of public records"
            " alone, or choose with PrivateSearchCV"
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
