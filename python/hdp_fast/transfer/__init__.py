"""Hybrid transfer learning: a curator's biased records, and agents who each answer one question.

Subsample-Test-Reweigh of Kohen and Sheffet, Transfer Learning In Differential Privacy's
Hybrid-Model: a learner sees records drawn from weights, agents of the target population say how
often its hypothesis errs on them, and what it gets right loses weight, until it is good on the
target. The weights are dense, so that no record is drawn often: that is what protects it.
"""

from .._support.lazy import list_only
from .constants import Constants
from .divergences import chi2_finite, chi2_gaussians
from .estimator import SubsampleTestReweigh
from .planning import plan
from .plans import PaperPlan, Plan
from .run import RoundResult, TransferResult

__all__ = [
    "Constants",
    "PaperPlan",
    "Plan",
    "RoundResult",
    "SubsampleTestReweigh",
    "TransferResult",
    "chi2_finite",
    "chi2_gaussians",
    "plan",
]

__dir__ = list_only(__all__)
