"""Hybrid transfer learning: a curator's biased records, and agents who each answer one question.

This is Subsample-Test-Reweigh of Kohen and Sheffet, Transfer Learning In Differential Privacy's
Hybrid-Model. In each round a learner gets records that are drawn from weights. Agents of the target
population say how often its hypothesis errs on them. Records that the hypothesis labels rightly
lose weight. The rounds end when a hypothesis is good on the target. The weights are kept dense, so
that no record is drawn often: this is what protects the records.

Whatever a model was learned by, `certify` bounds its error on the target by one bit of each agent.
`survey` estimates means, shares and tables in the same way.
"""

from .._support.lazy import list_only
from .certificate import Certificate, agents_to_certify, certify
from .constants import Constants
from .divergences import chi2_finite, chi2_gaussians
from .estimator import SubsampleTestReweigh
from .planning import plan
from .plans import PaperPlan, Plan
from .run import RoundResult, TransferResult
from .surveys import SurveyResult, SurveyRow, cross_table, survey

__all__ = [
    "Certificate",
    "Constants",
    "PaperPlan",
    "Plan",
    "RoundResult",
    "SubsampleTestReweigh",
    "SurveyResult",
    "SurveyRow",
    "TransferResult",
    "agents_to_certify",
    "certify",
    "chi2_finite",
    "chi2_gaussians",
    "cross_table",
    "plan",
    "survey",
]

__dir__ = list_only(__all__)
