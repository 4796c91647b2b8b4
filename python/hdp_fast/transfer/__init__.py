"""Hybrid transfer learning: a curator's biased records, and agents who each answer one question.

This is Subsample-Test-Reweigh of Kohen and Sheffet, Transfer Learning In Differential Privacy's
Hybrid-Model. In each round a learner gets records that are drawn from weights. Agents of the target
population say how often its hypothesis errs on them. Records that the hypothesis labels rightly
lose weight. The rounds end when a hypothesis is good on the target. The weights are kept dense, so
that no record is drawn often: this is what protects the records.

Whatever a model was learned by, `certify` bounds its error on the target by one bit of each agent.
`calibrate` uses agents otherwise: they tell the slope and intercept that a released model's score
needs on the target, where its ranking is right and its base rate wrong.
"""

from .._support.lazy import list_only
from .boosted import BoostedPlan
from .calibration import calibrate
from .calibration_plan import CalibrationPlan, plan_calibration
from .calibration_result import CalibratedModel
from .certificate import Certificate, certify
from .certificate_plan import CertificatePlan
from .constants import Constants
from .divergences import chi2_finite, chi2_gaussians
from .estimator import SubsampleTestReweigh
from .planning import plan
from .plans import PaperPlan, Plan
from .reliability import ReliabilityDiagram
from .run import RoundResult, TransferResult
from .source_alone import SourcePlan

__all__ = [
    "BoostedPlan",
    "CalibratedModel",
    "CalibrationPlan",
    "Certificate",
    "CertificatePlan",
    "Constants",
    "PaperPlan",
    "Plan",
    "ReliabilityDiagram",
    "RoundResult",
    "SourcePlan",
    "SubsampleTestReweigh",
    "TransferResult",
    "calibrate",
    "certify",
    "chi2_finite",
    "chi2_gaussians",
    "plan",
    "plan_calibration",
]

__dir__ = list_only(__all__)
