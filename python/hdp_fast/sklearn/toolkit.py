"""What is taken from scikit-learn, and the error where it is missing or too old."""

try:
    from sklearn.base import (
        BaseEstimator,
        ClassifierMixin,
        OneToOneFeatureMixin,
        RegressorMixin,
        TransformerMixin,
    )
    from sklearn.utils import check_array, column_or_1d
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import _check_feature_names_in as check_names_in
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError as error:
    _NEEDED = "scikit-learn 1.6 or newer: pip install 'hdp-fast[sklearn]'"
    raise ImportError(f"hdp_fast.sklearn needs {_NEEDED}") from error

__all__ = [
    "BaseEstimator",
    "ClassifierMixin",
    "OneToOneFeatureMixin",
    "RegressorMixin",
    "TransformerMixin",
    "check_array",
    "check_classification_targets",
    "check_is_fitted",
    "check_names_in",
    "column_or_1d",
    "validate_data",
]
