"""Supervised adaptation: learning for a target domain from a source and a few target records.

MomentAdaptation learns a linear predictor of numbers or of two classes from a public source and one
noisy release of a private target. It is the one to begin with: it has nothing to tune.

ConvexAdaptation learns linear regression by noisy steps. NonConvexAdaptation learns a predictor
under the logistic loss, softmax or any other differentiable loss. Both protect the records of one
of the two domains; tune chooses their parameters, with the choice as part of the guarantee.
ScaledFeatures makes of tables the records of norm at most 1 that they take.

discrepancy computes how much the mean losses of linear predictors differ between two samples, with
a certified gap, and release_discrepancy releases it under differential privacy. suggested_alpha
turns a released discrepancy into the share of the source in the total weight, learning_bound bounds
the target's loss by a weighted sample, and classification_discrepancy bounds the discrepancy from
below for losses of classifiers.

The rivals are KernelMeanMatching and DiscrepancyMinimization, which are not private, and TargetSGD
and PrivateDiscrepancyMinimization, which are. A fit to one domain alone, or to both together, is
ridge or logistic regression: take scikit-learn's.
"""

from __future__ import annotations

from .._support.lazy import list_only
from .baselines.nonprivate import DiscrepancyMinimization, KernelMeanMatching
from .baselines.private import PrivateDiscrepancyMinimization, TargetSGD
from .bounds import LearningBound, learning_bound, suggested_alpha
from .convex import ConvexAdaptation
from .discrepancies.classification import DiscrepancyLowerBound, classification_discrepancy
from .discrepancies.exact import Discrepancy, discrepancy
from .discrepancies.private import ReleasedDiscrepancy, release_discrepancy
from .nonconvex import NonConvexAdaptation
from .one_release import MomentAdaptation
from .problem import ScaledFeatures
from .residual_moments import MomentResult
from .tuning import TuningResult, selection_epsilon, tune

__all__ = [
    "ConvexAdaptation",
    "Discrepancy",
    "DiscrepancyLowerBound",
    "DiscrepancyMinimization",
    "KernelMeanMatching",
    "LearningBound",
    "MomentAdaptation",
    "MomentResult",
    "NonConvexAdaptation",
    "PrivateDiscrepancyMinimization",
    "ReleasedDiscrepancy",
    "ScaledFeatures",
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
