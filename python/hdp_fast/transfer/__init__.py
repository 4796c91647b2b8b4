"""Hybrid transfer learning: a curator's biased records, and agents who each answer one question.

This is Subsample-Test-Reweigh of Kohen and Sheffet, Transfer Learning In Differential Privacy's
Hybrid-Model. In each round a learner gets records that are drawn from weights. Agents of the target
population say how often its hypothesis errs on them. Records that the hypothesis labels rightly
lose weight. The rounds end when a hypothesis is good on the target. The weights are kept dense, so
that no record is drawn often: this is what protects the records.

Whatever a model was learned by, `certify` bounds its error on the target by one bit of each agent.
`survey` estimates means, shares and tables in the same way, and `shifted_columns` says which
columns have other means than in the source. Where a model's ranking is right and its base rate
wrong, `calibrate` lets agents tell the slope and intercept that its score needs.
"""

from .._support.lazy import list_only
from .calibration import calibrate
from .calibration_plan import CalibrationPlan, plan_calibration
from .calibration_result import CalibratedModel
from .certificate import Certificate, agents_to_certify, certify
from .column_means import ColumnMeans, release_means
from .constants import Constants
from .divergences import chi2_finite, chi2_gaussians
from .estimator import SubsampleTestReweigh
from .planning import plan
from .plans import PaperPlan, Plan
from .reliability import ReliabilityDiagram
from .run import RoundResult, TransferResult
from .shift_plan import ShiftPlan, plan_shifts
from .shift_report import ColumnShift, ShiftReport
from .shifts import shifted_columns
from .surveys import SurveyResult, SurveyRow, cross_table, survey

__all__ = [
    "CalibratedModel",
    "CalibrationPlan",
    "Certificate",
    "ColumnMeans",
    "ColumnShift",
    "Constants",
    "PaperPlan",
    "Plan",
    "ReliabilityDiagram",
    "RoundResult",
    "ShiftPlan",
    "ShiftReport",
    "SubsampleTestReweigh",
    "SurveyResult",
    "SurveyRow",
    "TransferResult",
    "agents_to_certify",
    "calibrate",
    "certify",
    "chi2_finite",
    "chi2_gaussians",
    "cross_table",
    "plan",
    "plan_calibration",
    "plan_shifts",
    "release_means",
    "shifted_columns",
    "survey",
]

__dir__ = list_only(__all__)
