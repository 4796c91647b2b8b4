"""Supervised adaptation: learning for a target domain from a source and a few records of its own.

ConvexAdaptation learns linear regression, NonConvexAdaptation a predictor under the logistic loss,
softmax or any other, both with privacy for one of the domains; tune chooses their parameters.
discrepancy: how differently the two judge linear predictors, with a certified gap;
release_discrepancy: the same under differential privacy; suggested_alpha: what share of the weight
the source should get; learning_bound: what a weighted sample says of the target;
classification_discrepancy: a lower bound for losses of classifiers. SourceOnly, TargetOnly, Pooled,
KernelMeanMatching, DiscrepancyMinimisation, and under privacy TargetSGD and
PrivateDiscrepancyMinimisation, are what adaptation is measured against.
"""

from __future__ import annotations

from ._adaptation_baselines import (
    DiscrepancyMinimisation,
    KernelMeanMatching,
    Pooled,
    SourceOnly,
    TargetOnly,
)
from ._adaptation_bounds import LearningBound, learning_bound, suggested_alpha
from ._adaptation_tuning import Tuned, selection_epsilon, tune
from ._classification_discrepancy import DiscrepancyLowerBound, classification_discrepancy
from ._convex_adaptation import ConvexAdaptation
from ._discrepancy import Discrepancy, discrepancy
from ._discrepancy_release import ReleasedDiscrepancy, release_discrepancy
from ._nonconvex_adaptation import NonConvexAdaptation
from ._private_discrepancy_minimisation import PrivateDiscrepancyMinimisation
from ._target_sgd import TargetSGD

__all__ = [
    "ConvexAdaptation",
    "Discrepancy",
    "DiscrepancyLowerBound",
    "DiscrepancyMinimisation",
    "KernelMeanMatching",
    "LearningBound",
    "NonConvexAdaptation",
    "Pooled",
    "PrivateDiscrepancyMinimisation",
    "ReleasedDiscrepancy",
    "SourceOnly",
    "TargetOnly",
    "TargetSGD",
    "Tuned",
    "classification_discrepancy",
    "discrepancy",
    "learning_bound",
    "release_discrepancy",
    "selection_epsilon",
    "suggested_alpha",
    "tune",
]
