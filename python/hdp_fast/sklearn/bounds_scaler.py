"""A scaler that knows bounds and looks at no record."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from .._support.types import Floats
from .._support.validate import ordered_pair
from ..exceptions import ParameterError, ShapeError
from ..learners.unit_rows import UnitRows
from .toolkit import (
    BaseEstimator,
    OneToOneFeatureMixin,
    TransformerMixin,
    check_array,
    check_is_fitted,
    validate_data,
)


class BoundsScaler(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Scales columns to a range by public bounds, where MinMaxScaler would look at the records.

    A value is clipped to the bounds of its column and then scaled, so that the bounds of what comes
    out are `feature_range`, whatever the records are. A missing value counts as the lower bound.
    Nothing is learned: fit counts the columns.

    Args:
        bounds: Public bounds of the columns: (low, high) for all of them, or one such pair for
            each, shape (d, 2). They must be given.
        feature_range: The (low, high) that bounds become.

    Attributes:
        bounds_: The bounds of every column, shape (d, 2).
        n_features_in_: Number of columns of X in fit.
        feature_names_in_: Their names; only where X had names.

    Examples:
        >>> from hdp_fast.sklearn import BoundsScaler
        >>> scaler = BoundsScaler(bounds=[(0, 100), (0, 50_000)]).fit([[30, 1_000]])
        >>> scaler.transform([[25, 10_000], [120, 25_000]]).tolist()
        [[0.25, 0.2], [1.0, 0.5]]
    """

    def __init__(
        self,
        *,
        bounds: ArrayLike | None = None,
        feature_range: tuple[float, float] = (0.0, 1.0),
    ):
        """Keep the parameters, which fit validates."""
        self.bounds = bounds
        self.feature_range = feature_range

    def fit(self, X: Any, y: Any = None) -> Self:
        """Checks the bounds against the number of columns; values are not looked at.

        Args:
            X: Records, numbers of shape (n, d); some may be missing or infinite.
            y: Ignored.

        Returns:
            The scaler itself.

        Raises:
            ParameterError: bounds is None or has a pair whose low is not below its high, or
                feature_range is no such pair.
            ShapeError: bounds do not fit the columns of X.
            ValueError: X is no array of numbers.
        """
        if self.bounds is None:
            rule = "public ones must be given: (low, high) of all columns, or such a pair for each"
            raise ParameterError(f"bounds = None, but {rule}")
        ordered_pair("feature_range", self.feature_range)
        columns = validate_data(self, X, dtype=np.float64, allow_missing=True).shape[1]
        unit = UnitRows.within(self.bounds, columns)
        assert unit.low is not None
        assert unit.high is not None
        self.bounds_ = np.column_stack([unit.low, unit.high])
        return self

    def transform(self, X: Any) -> Floats:
        """Clips and scales records.

        Args:
            X: Records, numbers of shape (m, d), with the columns of fit.

        Returns:
            A float64 array of shape (m, d), all in feature_range; a frame where set_output asks for
            one.

        Raises:
            ValueError: fit has not been called (a NotFittedError), X is no array of numbers, or its
                columns are others or in another order.
        """
        check_is_fitted(self)
        records = validate_data(self, X, dtype=np.float64, allow_missing=True, reset=False)
        rows = UnitRows.within(self.bounds_, self.n_features_in_)(records)
        return _spread(rows, *self.feature_range)

    def __sklearn_tags__(self) -> Any:
        """The tags of scikit-learn: missing numbers count as the lower bound."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def inverse_transform(self, X: Any) -> Floats:
        """Scales rows back; what was clipped stays at its bound.

        Args:
            X: Rows as transform makes them, finite numbers of shape (m, d).

        Returns:
            A float64 array of shape (m, d), all within the bounds of their columns.

        Raises:
            ShapeError: X has another number of columns.
            ValueError: fit has not been called (a NotFittedError), or X is no array of finite
                numbers.
        """
        check_is_fitted(self)
        records = check_array("X", X, dtype=np.float64)
        if records.shape[1] != self.n_features_in_:
            rule = f"the scaler has {self.n_features_in_}"
            raise ShapeError(f"X has {records.shape[1]} columns, but {rule}")
        rows = UnitRows.within(self.feature_range, self.n_features_in_)(records)
        return _spread(rows, *self.bounds_.T)


def _spread(rows: Floats, low: Any, high: Any) -> Floats:
    """From [0, 1] to the interval between two finite numbers for each column."""
    # The difference of the ends may be infinite, and is not used.
    spread: Floats = (rows * high + (1 - rows) * low).clip(low, high)
    return spread
