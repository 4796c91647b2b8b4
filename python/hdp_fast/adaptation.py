"""Learning for a private target from a public source: how far apart the two are.

discrepancy: how differently the two judge linear predictors, with a certified gap;
release_discrepancy: the same under differential privacy; suggested_alpha: what share of the weight
the source should get; learning_bound: what a weighted sample says of the target;
classification_discrepancy: a lower bound for losses of classifiers.
"""

from __future__ import annotations

from ._adaptation_bounds import LearningBound, learning_bound, suggested_alpha
from ._classification_discrepancy import DiscrepancyLowerBound, classification_discrepancy
from ._discrepancy import Discrepancy, discrepancy
from ._discrepancy_release import ReleasedDiscrepancy, release_discrepancy

__all__ = [
    "Discrepancy",
    "DiscrepancyLowerBound",
    "LearningBound",
    "ReleasedDiscrepancy",
    "classification_discrepancy",
    "discrepancy",
    "learning_bound",
    "release_discrepancy",
    "suggested_alpha",
]
