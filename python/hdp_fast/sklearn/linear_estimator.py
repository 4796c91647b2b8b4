"""What the private linear estimators share: validation, the release, and the way to scores."""

from __future__ import annotations

import dataclasses
import math
from abc import abstractmethod
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._support.feature_names import names_of
from .._support.notes import note
from .._support.types import Floats
from .._support.validate import number, one_of, positive, probability
from ..budget.account import Budget
from ..data import Label, Number, Schema
from ..data.persons import read_persons
from ..exceptions import ParameterError
from ..learners.centered_linear import METHODS, CenteredModel, LinearTask, release_linear
from ..learners.centered_release import make_private_model
from ..learners.centered_rows import CenteredRows
from ..learners.unit_rows import UnitRows
from .private_estimator import MissingFit, SeededEstimator
from .toolkit import check_is_fitted, column_or_1d, validate_data

_noted_scores: set[str] = set()


class PrivateLinearEstimator(SeededEstimator):
    """A linear model of centered rows, whose means are released with a tenth of the budget."""

    epsilon: float | None
    delta: float
    bounds: Any
    schema: Any
    method: str
    _methods = METHODS

    def __sklearn_tags__(self) -> Any:
        """The tags of scikit-learn: missing numbers count as what is public."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.bounds is not None or self.schema is not None
        return tags

    @abstractmethod
    def _prepare(self, X: Any, y: Any) -> tuple[UnitRows, Floats, NDArray[Any], float]:
        """Validate settings and records: the map to rows, rows, labels, and epsilon."""

    @property
    @abstractmethod
    def _task(self) -> LinearTask:
        """What is learned."""

    def _check_privacy(self) -> float:
        self._check_seed()
        epsilon = check_privacy(self.epsilon, self.delta)
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
                labels = read_targets(labels)
            self._keep_names(X)
            return unit, rows, labels
        # With y_numeric an error of scikit-learn would show an entry of y.
        bounded = self.bounds is not None
        records, labels = validate_data(self, X, y, dtype=np.float64, allow_missing=bounded)
        if numeric:
            labels = read_targets(labels)
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
        owners: tuple[ArrayLike | None, int] = (None, 1),
    ) -> None:
        """Charge the budget, release the means, and learn."""
        with MissingFit(budget, epsilon, self.delta):
            released = release_linear(
                unit,
                rows,
                labels,
                self._task,
                name=f"sklearn.{type(self).__name__}",
                method=self.method,
                epsilon=epsilon,
                delta=self.delta,
                budget=budget,
                random_state=self.test_seed,
                persons=read_persons(*owners, len(rows)),
            )
        self.method_, self.record_ = released.method, released.record
        self.rows_, self.model_ = released.rows, released.model
        self.n_samples_fit_ = len(rows)

    def to_json(self, *, label: str | None = None) -> str:
        """Writes the released model as JSON, in the one format of this package.

        learners.PrivateModel.from_json reads it, without scikit-learn, and `hdp-fast predict` on
        the command line. Columns without names are called x0, x1, ..., and classes are texts.

        Args:
            label: Name of the column that is predicted. None takes that of the schema's label, or
                "label".

        Returns:
            The text. It holds what was released, and the parameters that are public.

        Raises:
            ParameterError: label is the name of a feature, or the labels differ in their type alone
                and not as texts.
            ValueError: fit has not been called (a NotFittedError).
        """
        check_is_fitted(self)
        schema, classes = self._describe(label)
        rows = dataclasses.replace(self.rows_, unit=UnitRows.of_schema(schema))
        released = CenteredModel(rows, self.model_, self.method_, self.record_)
        return make_private_model(released, schema, classes, self.n_samples_fit_).to_json()

    @abstractmethod
    def _describe_label(self, column: str) -> tuple[Label, tuple[str, ...] | None]:
        """What is predicted, and the classes as texts, if there are any."""

    def _describe(self, label: str | None) -> tuple[Schema, tuple[str, ...] | None]:
        """The public schema of what the model reads, and the classes."""
        unit: UnitRows = self.rows_.unit
        usual = "label" if unit.schema is None else unit.schema.label.column
        rule, classes = self._describe_label(usual if label is None else label)
        if unit.schema is not None:
            return Schema(rule, unit.schema.columns), classes
        assert unit.low is not None
        assert unit.high is not None
        places = range(self.n_features_in_)
        names = getattr(self, "feature_names_in_", [f"x{place}" for place in places])
        pairs = zip(unit.low.tolist(), unit.high.tolist(), strict=True)
        columns = {
            str(name): Number(low, high) for name, (low, high) in zip(names, pairs, strict=True)
        }
        return Schema(rule, columns), classes

    def _read_rows(self, X: Any) -> Floats:
        """The centered rows of records to predict on."""
        check_is_fitted(self)
        centered: CenteredRows = self.rows_
        if centered.unit.schema is None:
            bounded = self.bounds is not None
            X = validate_data(self, X, dtype=np.float64, allow_missing=bounded, reset=False)
        return centered(X)


def read_targets(targets: Any) -> Floats:
    """The targets as floats; the error shows none of them."""
    floats = None
    with suppress(Exception):
        floats = np.asarray(targets, np.float64)
    if floats is None:
        raise ParameterError("y has an entry that is no number, but all must be")
    if not np.isfinite(floats).all():
        raise ParameterError("y has an entry that is not finite, but all must be")
    return floats


def check_privacy(epsilon: float | None, delta: float) -> float:
    """Validate what every private estimator has, and return epsilon."""
    if epsilon is None:
        raise ParameterError("epsilon = None, but it must be chosen: math.inf for no protection")
    probability("delta", delta)
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
