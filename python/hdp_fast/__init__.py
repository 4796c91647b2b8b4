"""Learning under differential privacy in the hybrid model.

gf2: linear algebra over GF(2). parity: private learning of parities, and its transfer to another
population. transfer: Subsample-Test-Reweigh, hybrid transfer learning from a curator's biased
records. learners: finite classes of hypotheses and the private choice from one. weights:
kappa-dense weights over records. local: randomized response and agents who answer once. noise:
exact draws and integer noise. budget: one ledger for all releases about the same records.
stability: private answers from the votes of an ensemble. labels: labels for public points from
private records, by any learner. adaptation: learning for a target domain from a source and a few
records of its own. advice: which method to take. accounting: guarantees as functions. statistics:
private counts, means and quantiles. audit: how much privacy a mechanism spends at least. Every
release carries a PrivacyRecord; docs/guarantees says what its words mean.
"""

import logging
from typing import TYPE_CHECKING

from ._core import __version__
from ._support.lazy import attach
from .exceptions import (
    AgentsExhausted,
    BudgetExceeded,
    CheckpointError,
    HdpFastError,
    InsufficientSamples,
    ParameterError,
    ShapeError,
    UtilityWarning,
)

if TYPE_CHECKING:
    from . import (
        accounting,
        adaptation,
        advice,
        audit,
        budget,
        collection,
        data,
        exceptions,
        gf2,
        labels,
        learners,
        local,
        noise,
        parity,
        plotting,
        stability,
        statistics,
        transfer,
        weights,
    )
    from .advice import advise
    from .budget import Budget
    from .record import PrivacyRecord

__all__ = [
    "AgentsExhausted",
    "Budget",
    "BudgetExceeded",
    "CheckpointError",
    "HdpFastError",
    "InsufficientSamples",
    "ParameterError",
    "PrivacyRecord",
    "ShapeError",
    "UtilityWarning",
    "__version__",
    "accounting",
    "adaptation",
    "advice",
    "advise",
    "audit",
    "budget",
    "collection",
    "data",
    "exceptions",
    "gf2",
    "labels",
    "learners",
    "local",
    "noise",
    "parity",
    "plotting",
    "stability",
    "statistics",
    "transfer",
    "weights",
]

__getattr__, __dir__ = attach(
    __name__, {"Budget": ".budget", "PrivacyRecord": ".record", "advise": ".advice"}, __all__
)

logging.getLogger(__name__).addHandler(logging.NullHandler())
