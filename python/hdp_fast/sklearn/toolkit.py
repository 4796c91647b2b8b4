"""What is taken from scikit-learn, and the error where it is missing or too old."""

try:
    from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
    from sklearn.metrics import accuracy_score, r2_score
    from sklearn.utils import check_consistent_length, column_or_1d
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError as error:
    _NEEDED = "scikit-learn 1.6 or newer: pip install 'hdp-fast[sklearn]'"
    raise ImportError(f"hdp_fast.sklearn needs {_NEEDED}") from error

__all__ = [
    "BaseEstimator",
    "ClassifierMixin",
    "RegressorMixin",
    "accuracy_score",
    "check_classification_targets",
    "check_consistent_length",
    "check_is_fitted",
    "column_or_1d",
    "r2_score",
    "validate_data",
]
