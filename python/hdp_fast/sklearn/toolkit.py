"""What is taken from scikit-learn, and the error where it is missing or too old."""

from typing import Any

from .._support.containers import to_readable

try:
    from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
    from sklearn.utils import column_or_1d as read_vector
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import check_is_fitted
    from sklearn.utils.validation import validate_data as read_arrays
except ImportError as error:
    _NEEDED = "scikit-learn 1.6 or newer: pip install 'hdp-fast[sklearn]'"
    raise ImportError(f"hdp_fast.sklearn needs {_NEEDED}") from error

__all__ = [
    "BaseEstimator",
    "ClassifierMixin",
    "RegressorMixin",
    "check_classification_targets",
    "check_is_fitted",
    "column_or_1d",
    "validate_data",
]


def validate_data(estimator: Any, X: Any, *labels: Any, **options: Any) -> Any:
    """What scikit-learn's function makes of records, and labels if there are any.

    Containers that scikit-learn does not know become a table or an array first.

    Raises: ParameterError for lazy frames, masked arrays and what cannot be read; and the errors of
    scikit-learn.
    """
    read = (to_readable("y", y) for y in labels)
    return read_arrays(estimator, to_readable("X", X), *read, **options)


def column_or_1d(y: Any, **options: Any) -> Any:
    """Labels as a vector; errors as `validate_data`."""
    return read_vector(to_readable("y", y), **options)
