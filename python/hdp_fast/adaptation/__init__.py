"""Supervised adaptation: learning for a target domain from a source and a few records of its own.

ConvexAdaptation learns linear regression, NonConvexAdaptation a predictor under the logistic loss,
softmax or any other, both with privacy for one of the domains; tune chooses their parameters.
discrepancy: how much their mean losses of linear predictors differ, with a certified gap;
release_discrepancy: the same under differential privacy; suggested_alpha: what share of the weight
the source should get; learning_bound: a bound on the target's loss by a weighted sample;
classification_discrepancy: a lower bound for losses of classifiers. SourceOnly, TargetOnly, Pooled,
KernelMeanMatching, DiscrepancyMinimization, and under privacy TargetSGD and
PrivateDiscrepancyMinimization, are the baselines.
"""

from __future__ import annotations

from .._support.lazy import list_only
from .baselines.nonprivate import (
    DiscrepancyMinimization,
    KernelMeanMatching,
    Pooled,
    SourceOnly,
    TargetOnly,
)
from .baselines.private_minimization import PrivateDiscrepancyMinimization
from .baselines.target_sgd import TargetSGD
from .bounds import LearningBound, learning_bound, suggested_alpha
from .convex import ConvexAdaptation
from .discrepancies.classification import DiscrepancyLowerBound, classification_discrepancy
from .discrepancies.exact import Discrepancy, discrepancy
from .discrepancies.private import ReleasedDiscrepancy, release_discrepancy
from .nonconvex import NonConvexAdaptation
from .tuning import TuningResult, selection_epsilon, tune

__all__ = [
    "ConvexAdaptation",
    "Discrepancy",
    "DiscrepancyLowerBound",
    "DiscrepancyMinimization",
    "KernelMeanMatching",
    "LearningBound",
    "NonConvexAdaptation",
    "Pooled",
    "PrivateDiscrepancyMinimization",
    "ReleasedDiscrepancy",
    "SourceOnly",
    "TargetOnly",
    "TargetSGD",
    "TuningResult",
    "classification_discrepancy",
    "discrepancy",
    "learning_bound",
    "release_discrepancy",
    "selection_epsilon",
    "suggested_alpha",
    "tune",
]

__dir__ = list_only(__all__)
