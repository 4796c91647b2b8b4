"""Finite classes of hypotheses and the private learner that chooses from one.

A class knows its hypotheses by index and never holds all of them: it counts the errors of every one
in a single call, predicts with any of them and describes it as a dict that JSON can carry. Nothing
about a class is private; ExponentialLearner is what releases. It is the generic learner of
Kasiviswanathan, Lee, Nissim, Raskhodnikova and Smith, What Can We Learn Privately?, Section 3.
"""

from ._bit_classes import ConjunctionList, Conjunctions, Parities, SparseHalfspaces, Stumps, cut
from ._core import Features
from ._doubling import Doubled, DoublingLearner, DoublingRound
from ._generic_learner import ExponentialLearner, Learned, PaperSampleSize, vc_sample_size
from ._halfspaces import Halfspaces
from ._hypotheses import Chosen, Hypotheses
from ._labelings import Labelings, sauer_bound
from ._linear_model import LinearModel
from ._predictors import predictor
from ._separator import LinearSeparator, Separated
from ._sgd import PrivateSGD, SGDGuarantees

__all__ = [
    "Chosen",
    "ConjunctionList",
    "Conjunctions",
    "Doubled",
    "DoublingLearner",
    "DoublingRound",
    "ExponentialLearner",
    "Features",
    "Halfspaces",
    "Hypotheses",
    "Labelings",
    "Learned",
    "LinearModel",
    "LinearSeparator",
    "PaperSampleSize",
    "Parities",
    "PrivateSGD",
    "SGDGuarantees",
    "Separated",
    "SparseHalfspaces",
    "Stumps",
    "cut",
    "predictor",
    "sauer_bound",
    "vc_sample_size",
]
