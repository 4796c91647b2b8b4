"""Finite classes of hypotheses and the private learner that chooses from one.

A class knows its hypotheses by index and never holds all of them: it counts the errors of every one
in a single call, predicts with any of them and describes it as a dict that JSON can carry. Nothing
about a class is private; ExponentialLearner is what releases. It is the generic learner of
Kasiviswanathan, Lee, Nissim, Raskhodnikova and Smith, What Can We Learn Privately?, Section 3.
"""

from .._core import Features
from .._support.lazy import list_only
from .bit_classes import Conjunctions, SparseHalfspaces, Stumps
from .doubling import DoublingLearner, DoublingResult, DoublingRound
from .exponential import ExponentialLearner, ExponentialResult, PaperSampleSize, vc_sample_size
from .halfspaces import Halfspaces
from .hypotheses import Hypotheses, HypothesisResult
from .labelings import Labelings, sauer_bound
from .linear_model import LinearModel
from .literals import cut
from .noisy_steps import SGDGuarantees
from .separator import LinearSeparator, SeparatorResult
from .serialization import predictor
from .sgd import PrivateSGD
from .stored_classes import ConjunctionList, Parities

__all__ = [
    "ConjunctionList",
    "Conjunctions",
    "DoublingLearner",
    "DoublingResult",
    "DoublingRound",
    "ExponentialLearner",
    "ExponentialResult",
    "Features",
    "Halfspaces",
    "Hypotheses",
    "HypothesisResult",
    "Labelings",
    "LinearModel",
    "LinearSeparator",
    "PaperSampleSize",
    "Parities",
    "PrivateSGD",
    "SGDGuarantees",
    "SeparatorResult",
    "SparseHalfspaces",
    "Stumps",
    "cut",
    "predictor",
    "sauer_bound",
    "vc_sample_size",
]

__dir__ = list_only(__all__)
