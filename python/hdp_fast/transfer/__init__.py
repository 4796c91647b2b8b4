"""Hybrid transfer learning: a curator's biased records, and agents who each answer one question.

This is Subsample-Test-Reweigh of Kohen and Sheffet, Transfer Learning In Differential Privacy's
Hybrid-Model. In each round a learner gets records that are drawn from weights. Agents of the target
population say how often its hypothesis errs on them. Records that the hypothesis labels rightly
lose weight. The rounds end when a hypothesis is good on the target. The weights are kept dense, so
that no record is drawn often: this is what protects the records.

Agents serve more than tests. Where a released model's ranking is right and its base rate wrong,
`calibrate` lets them tell the slope and intercept that its score needs. `certify` bounds the error
of any model on the target, `survey` estimates means, shares and tables of the target, and
`shifted_columns` says which columns have other means there. Each agent sends one bit for it.
`combine` makes one mean or table of a panel's release and of agents' reports.
`HybridRun` chains them: it screens a panel's columns, learns, calibrates and certifies.
"""

from .._support.lazy import list_only
from .agent_plans import (
    CertificatePlan,
    ShiftPlan,
    agents_to_certify,
    plan_certificate,
    plan_shifts,
)
from .boosted import BoostedPlan, plan_boosted
from .calibration import calibrate
from .calibration_plan import CalibrationPlan, plan_calibration
from .calibration_result import CalibratedModel, ReliabilityDiagram
from .certificate import Certificate, certify
from .column_means import ColumnMeans, release_means
from .combination import CombinedEstimate, combine
from .divergences import (
    chi2_finite,
    chi2_gaussians,
    f_divergence,
    renyi_finite,
    renyi_gaussians,
)
from .estimator import SubsampleTestReweigh
from .hybrid_model import HybridModel, HybridPlan
from .hybrid_run import HybridRun
from .plans import PaperPlan, Plan
from .printed import (
    PaperDescent,
    PaperSteps,
    paper_descent,
    paper_records,
    paper_rounds,
    paper_steps,
)
from .released_rounds import ReleasedRounds
from .results import Constants, RoundResult, TransferResult
from .run_planning import plan_rounds
from .shifts import ColumnShift, ShiftReport, shifted_columns
from .source_plan import SourcePlan, plan_source
from .surveys import SurveyResult, SurveyRow, cross_table, survey

__all__ = [
    "BoostedPlan",
    "CalibratedModel",
    "CalibrationPlan",
    "Certificate",
    "CertificatePlan",
    "ColumnMeans",
    "ColumnShift",
    "CombinedEstimate",
    "Constants",
    "HybridModel",
    "HybridPlan",
    "HybridRun",
    "PaperDescent",
    "PaperPlan",
    "PaperSteps",
    "Plan",
    "ReleasedRounds",
    "ReliabilityDiagram",
    "RoundResult",
    "ShiftPlan",
    "ShiftReport",
    "SourcePlan",
    "SubsampleTestReweigh",
    "SurveyResult",
    "SurveyRow",
    "TransferResult",
    "agents_to_certify",
    "calibrate",
    "certify",
    "chi2_finite",
    "chi2_gaussians",
    "combine",
    "cross_table",
    "f_divergence",
    "paper_descent",
    "paper_records",
    "paper_rounds",
    "paper_steps",
    "plan_boosted",
    "plan_calibration",
    "plan_certificate",
    "plan_rounds",
    "plan_shifts",
    "plan_source",
    "release_means",
    "renyi_finite",
    "renyi_gaussians",
    "shifted_columns",
    "survey",
]

__dir__ = list_only(__all__)
