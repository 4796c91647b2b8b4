"""What is taken from scikit-learn, and the error where it is missing or too old."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._support.containers import blank_missing, to_readable
from ..data.records import take_rows
from ..data.table import Table
from .public_texts import shield

try:
    from sklearn import get_config, metrics
    from sklearn.base import (
        BaseEstimator,
        ClassifierMixin,
        MetaEstimatorMixin,
        OneToOneFeatureMixin,
        RegressorMixin,
        TransformerMixin,
        clone,
        is_regressor,
    )
    from sklearn.dummy import DummyClassifier
    from sklearn.metrics import check_scoring
    from sklearn.model_selection import ParameterGrid
    from sklearn.utils import check_array as read_array
    from sklearn.utils import check_consistent_length as compare_lengths
    from sklearn.utils import column_or_1d as read_vector
    from sklearn.utils import get_tags
    from sklearn.utils import indexable as make_indexable
    from sklearn.utils.metaestimators import available_if
    from sklearn.utils.multiclass import check_classification_targets as read_kind
    from sklearn.utils.validation import check_is_fitted, has_fit_parameter
    from sklearn.utils.validation import validate_data as read_arrays
except ImportError as error:
    _NEEDED = "scikit-learn 1.6 or newer: pip install 'hdp-fast[sklearn]'"
    raise ImportError(f"hdp_fast.sklearn needs {_NEEDED}") from error

__all__ = [
    "BaseEstimator",
    "ClassifierMixin",
    "DummyClassifier",
    "MetaEstimatorMixin",
    "OneToOneFeatureMixin",
    "ParameterGrid",
    "RegressorMixin",
    "TransformerMixin",
    "accuracy_score",
    "available_if",
    "check_array",
    "check_classification_targets",
    "check_consistent_length",
    "check_is_fitted",
    "check_scoring",
    "clone",
    "column_or_1d",
    "get_config",
    "get_tags",
    "has_fit_parameter",
    "indexable",
    "is_regressor",
    "r2_score",
    "select_rows",
    "takes_missing",
    "usual_classifier",
    "validate_data",
]


def usual_classifier() -> object:
    """What members and students are where nothing else is asked for."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=1_000))


def validate_data(
    estimator: Any, X: Any, *labels: Any, allow_missing: bool = False, **options: Any
) -> Any:
    """What scikit-learn's function makes of records, and labels if there are any.

    Containers that scikit-learn does not know become a table or an array first.

    allow_missing: whether numbers may be missing, which are NaN then, or infinite.

    Raises: ParameterError for lazy frames, masked arrays and what cannot be read; and the errors of
    scikit-learn that show nothing but public facts.
    """
    records, read = to_readable("X", X), [to_readable("y", y) for y in labels]
    if allow_missing:
        records, options = blank_missing(records), {**options, "ensure_all_finite": False}
    return shield("X", read_arrays, estimator, records, *read, **options)


def check_array(name: str, X: Any, **options: Any) -> Any:
    """Records that are not those of fit, as an array; errors as `validate_data`."""
    return shield(name, read_array, to_readable(name, X), input_name=name, **options)


def column_or_1d(y: Any, **options: Any) -> Any:
    """Labels as a vector; errors as `validate_data`."""
    return shield("y", read_vector, to_readable("y", y), **options)


def check_classification_targets(y: Any) -> None:
    """Refuse labels that are numbers with fractions; errors as `validate_data`."""
    shield("y", read_kind, y)


def check_consistent_length(*arrays: Any) -> None:
    """Refuse containers of different lengths; errors as `validate_data`."""
    shield("y", compare_lengths, *arrays)


def indexable(X: Any, *labels: Any) -> Any:
    """Records and labels that have places, of one length; errors as `validate_data`."""
    return shield("X", make_indexable, X, *labels)


def accuracy_score(labels: Any, predictions: Any, weights: Any) -> float:
    """The share of right predictions; errors as `validate_data`."""
    return float(shield("y", metrics.accuracy_score, labels, predictions, sample_weight=weights))


def r2_score(targets: Any, predictions: Any, weights: Any) -> float:
    """The coefficient of determination; errors as `validate_data`."""
    return float(shield("y", metrics.r2_score, targets, predictions, sample_weight=weights))


def takes_missing(estimator: Any) -> bool:
    """Whether an estimator says that it takes missing values."""
    known = hasattr(estimator, "__sklearn_tags__")
    return known and bool(get_tags(estimator).input_tags.allow_nan)


def select_rows(X: Any, rows: NDArray[np.intp]) -> Any:
    """The rows in these places, in their order, of any container that has places."""
    if isinstance(X, Table):
        return X.select(rows)
    if not hasattr(X, "shape"):
        return [X[row] for row in rows]
    # Brackets of pyarrow take columns.
    return X.take(rows) if hasattr(X, "column_names") else take_rows(X, rows)
