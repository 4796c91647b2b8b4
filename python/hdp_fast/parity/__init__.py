"""Private learning of parities: labels that are the sum over GF(2) of some unknown features.

The learners are those of Kasiviswanathan, Lee, Nissim, Raskhodnikova and Smith, What Can We Learn
Privately?, Section 4, with parameters from a sharper analysis, which needs fewer records. The
transfer to another population is that of Appendix B of Kohen and Sheffet, Transfer Learning In
Differential Privacy's Hybrid-Model.
"""

from .._support.lazy import list_only
from .learning import learn
from .planning import (
    PaperSpanning,
    ParityPlan,
    TransferPlan,
    paper_sample_size,
    paper_spanning,
    plan,
    plan_transfer,
)
from .results import ParityResult, ParityTransferResult
from .transferring import transfer

__all__ = [
    "PaperSpanning",
    "ParityPlan",
    "ParityResult",
    "ParityTransferResult",
    "TransferPlan",
    "learn",
    "paper_sample_size",
    "paper_spanning",
    "plan",
    "plan_transfer",
    "transfer",
]

__dir__ = list_only(__all__)
