"""Private learners as estimators of scikit-learn: they can be cloned, piped, searched and pickled.

This module needs scikit-learn 1.6 or newer (the extra `sklearn`), and is loaded only where it is
imported. What must be public comes from the caller: bounds or a schema of the columns, the classes,
the bounds of a target. PrivateClassifier and PrivateRegressor choose everything else themselves,
from the numbers of records and columns, epsilon and delta. PrivateStudentClassifier makes any
classifier private where there is a public pool of rows without labels. BoundsScaler and
SchemaTransformer prepare columns by public facts alone, as steps before a private estimator.
PrivateSearchCV chooses parameters within one epsilon and delta for all fits and the choice.

AdaptationRegressor and AdaptationClassifier learn for a target domain from a source and a few
records of the target, and HybridClassifier calibrates a panel's model by answers of agents:
`sample_domain` says which rows are of which domain.
"""

from .._support.lazy import list_only
from .adaptation_estimators import AdaptationClassifier, AdaptationRegressor
from .hybrid_classifier import HybridClassifier
from .private_classifier import PrivateClassifier
from .private_regressor import PrivateRegressor
from .private_search import PrivateSearchCV
from .student_classifier import PrivateStudentClassifier
from .transformers import BoundsScaler, SchemaTransformer

__all__ = [
    "AdaptationClassifier",
    "AdaptationRegressor",
    "BoundsScaler",
    "HybridClassifier",
    "PrivateClassifier",
    "PrivateRegressor",
    "PrivateSearchCV",
    "PrivateStudentClassifier",
    "SchemaTransformer",
]

__dir__ = list_only(__all__)
