"""Transformers whose scales are public: by bounds, or by a schema."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._support.feature_names import check_names, names_of
from .._support.types import Floats
from .._support.validate import ordered_pair, refuse
from ..data.column_kinds import Ignore, Number
from ..data.frames import make_table, require_columns
from ..data.rows import Bounds, Rows
from ..data.schema import Schema
from ..data.table import Table
from ..exceptions import ParameterError, ShapeError
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
    Nothing is learned: fit counts the columns. It is for dense columns of numbers; categories are
    for SchemaTransformer.

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
            TypeError: X is sparse.
            ValueError: X is no array of numbers.
        """
        if self.bounds is None:
            rule = "public ones must be given: (low, high) of all columns, or such a pair for each"
            raise ParameterError(f"bounds = None, but {rule}")
        ordered_pair("feature_range", self.feature_range)
        columns = validate_data(self, X, dtype=np.float64, allow_missing=True).shape[1]
        bounds = Rows.within(self.bounds, columns).source
        assert isinstance(bounds, Bounds)
        self.bounds_ = np.column_stack([bounds.low, bounds.high])
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
        rows = Rows.within(self.bounds_, self.n_features_in_)(records)
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
        rows = Rows.within(self.feature_range, self.n_features_in_)(records)
        return _spread(rows, *self.bounds_.T)


def _spread(rows: Floats, low: Any, high: Any) -> Floats:
    """From [0, 1] to the interval between two finite numbers for each column."""
    # The difference of the ends may be infinite, and is not used.
    spread: Floats = (rows * high + (1 - rows) * low).clip(low, high)
    return spread


class SchemaTransformer(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Makes numbers in [0, 1] of the columns of a table by a public schema.

    A category becomes one bit for each of its names, and a number is clipped to its bounds and
    scaled. No value is refused: a category that the schema does not list has all bits 0, and a
    missing number counts as the lower bound, unless the schema has another default. Where unlisted
    categories are many, list one for them, and write its name in their place before, row by row.
    Nothing is learned: fit reads the names of the columns. A model that follows takes (0, 1) for
    bounds. What goes in and what comes out is dense.

    Args:
        schema: Public data.Schema; its label is not used. It must be given. Columns are found by
            name, and other columns are not read. Those of an array are called x0, x1, and so on.

    Attributes:
        n_features_in_: Number of columns of X in fit.
        feature_names_in_: Their names; only where X had names.

    Examples:
        >>> import pandas
        >>> from hdp_fast.data import Category, Label, Number, Schema
        >>> from hdp_fast.sklearn import SchemaTransformer
        >>> columns = {"sex": Category(("female", "male")), "age": Number(0, 100)}
        >>> people = pandas.DataFrame({"age": [40, None], "sex": ["male", "unknown"]})
        >>> schema = Schema(Label("income", above=50), columns)
        >>> SchemaTransformer(schema=schema).set_output(transform="pandas").fit_transform(people)
           sex=female  sex=male  age
        0         0.0       1.0  0.4
        1         0.0       0.0  0.0
    """

    def __init__(self, *, schema: Schema | None = None):
        """Keep the parameters, which fit validates."""
        self.schema = schema

    def fit(self, X: Any, y: Any = None) -> Self:
        """Checks that the columns of the schema are there; values are not looked at.

        Args:
            X: Records: a frame of pandas, polars or pyarrow, a data.Table, or an array (n, d).
            y: Ignored.

        Returns:
            The transformer itself.

        Raises:
            ParameterError: schema is no Schema, or X lacks one of its columns.
            TypeError: X is sparse.
            ValueError: X has no rows or columns, or is something else.
        """
        if not isinstance(self.schema, Schema):
            refuse("schema", self.schema, "it must be a data.Schema")
        columns = self._check(X, reset=True)
        names = names_of(columns) or _numbered(self.n_features_in_)
        require_columns("X", names, self.schema.reads)
        return self

    def transform(self, X: Any) -> Floats:
        """Makes the numbers.

        Args:
            X: Records (m, ...), with the columns of fit.

        Returns:
            A float64 array of shape (m, k), all in [0, 1], whose columns get_feature_names_out
            names; a frame where set_output asks for one.

        Raises:
            ValueError: fit has not been called (a NotFittedError), X has no rows, or its columns
                are others or in another order. No value in a column raises anything.
        """
        check_is_fitted(self)
        assert self.schema is not None
        records = self._check(X, reset=False)
        if names_of(records) is None:
            columns = dict(zip(_numbered(records.shape[1]), records.T, strict=True))
            return self.schema.floats(columns)
        return self.schema.floats(make_table("X", records, self.schema))

    def inverse_transform(self, X: Any) -> NDArray[Any]:
        """Makes values of the schema's columns again, as far as the numbers keep them.

        A category is the name of its largest bit, and None where no bit is above 0. A number that
        was clipped stays at its bound.

        Args:
            X: Rows as transform makes them, shape (m, k).

        Returns:
            An array of shape (m, c) for the c columns that the schema does not ignore, in its
            order: float64 where all are numbers, and objects otherwise.

        Raises:
            ShapeError: X has another number of columns.
            ValueError: fit has not been called (a NotFittedError), or X is no array of finite
                numbers.
        """
        check_is_fitted(self)
        assert self.schema is not None
        rows, place = check_array("X", X, dtype=np.float64), 0
        if rows.shape[1] != len(self.schema.float_names):
            rule = f"transform makes {len(self.schema.float_names)}"
            raise ShapeError(f"X has {rows.shape[1]} columns, but {rule}")
        values: list[NDArray[Any]] = []
        for kind in self.schema.columns.values():
            if isinstance(kind, Ignore):
                continue
            if isinstance(kind, Number):
                values.append(rows[:, place].clip(0, 1) * (kind.high - kind.low) + kind.low)
                place += 1
                continue
            bits = rows[:, place : place + len(kind.values)]
            names = np.array([*kind.values, None], object)
            values.append(names[np.where((bits > 0).any(axis=1), bits.argmax(axis=1), -1)])
            place += len(kind.values)
        return np.column_stack(values)

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray[Any]:
        """Names the columns that transform makes.

        Args:
            input_features: The names of the columns of fit, which are checked, or None.

        Returns:
            An array of texts of shape (k,): "sex=male" for a category's bit, and a number's name.

        Raises:
            ValueError: fit has not been called (a NotFittedError), or input_features are no names
                of the columns of fit.
        """
        check_is_fitted(self)
        assert self.schema is not None
        # It returns the names of the columns of fit, and refuses others.
        OneToOneFeatureMixin.get_feature_names_out(self, input_features)
        return np.array(self.schema.float_names, object)

    def __sklearn_tags__(self) -> Any:
        """What the contract of scikit-learn needs to know: texts and missing values are taken."""
        tags = super().__sklearn_tags__()
        tags.input_tags.string = tags.input_tags.categorical = tags.input_tags.allow_nan = True
        return tags

    def _check(self, X: Any, reset: bool) -> Any:
        """Records with the names and the number of columns of fit; an array if they have none."""
        names = names_of(X)
        if isinstance(X, Table):
            if reset:
                self.n_features_in_, self.feature_names_in_ = len(X.columns), np.array(names)
            return check_names(tuple(self.feature_names_in_), X)
        if names is None:
            return validate_data(self, X, dtype=None, ensure_all_finite=False, reset=reset)
        validate_data(self, X, skip_check_array=True, reset=reset)
        if not len(X):
            raise ShapeError("X has 0 rows, but it must have 1 or more")
        return X


def _numbered(columns: int) -> list[str]:
    return [f"x{place}" for place in range(columns)]
