"""What is taken from scikit-learn, and the error where it is missing or too old."""

try:
    from sklearn import get_config
    from sklearn.base import (
        BaseEstimator,
        ClassifierMixin,
        MetaEstimatorMixin,
        RegressorMixin,
        clone,
        is_regressor,
    )
    from sklearn.metrics import check_scoring
    from sklearn.model_selection import ParameterGrid
    from sklearn.utils import (
        _safe_indexing,
        check_consistent_length,
        column_or_1d,
        get_tags,
        indexable,
    )
    from sklearn.utils.metaestimators import available_if
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import check_is_fitted, has_fit_parameter, validate_data
except ImportError as error:
    _NEEDED = "scikit-learn 1.6 or newer: pip install 'hdp-fast[sklearn]'"
    raise ImportError(f"hdp_fast.sklearn needs {_NEEDED}") from error

__all__ = [
    "BaseEstimator",
    "ClassifierMixin",
    "MetaEstimatorMixin",
    "ParameterGrid",
    "RegressorMixin",
    "_safe_indexing",
    "available_if",
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
    "validate_data",
]
