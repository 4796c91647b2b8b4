"""Finite classes of hypotheses, linear models, and the learners that choose from them.

A class counts the errors of all its hypotheses in one call, predicts with any of them by its index,
and describes it as a dict that JSON can carry. Nothing about a class is private. What is released
comes from a learner: ExponentialLearner is the generic learner of Kasiviswanathan, Lee, Nissim,
Raskhodnikova and Smith 2011, Section 3, and DoublingLearner the one that takes fewer records where
a concise hypothesis is enough. PrivateSGD learns linear models by noisy gradient descent.
CenteredLinear learns a linear model of a table without settings, and returns a PrivateModel, which
is one file for commands and estimators alike. PrivateAdditive learns such a model whose columns
have shapes that bend. LinearSeparator learns halfspaces without privacy. A
FeatureMap is a public map from records to features of norm at most 1, computed row by row.
SufficientStatistics releases once what all linear models of such features need.
"""

from .._core import Features
from .._support.lazy import list_only
from .additive_columns import Shape
from .bit_classes import Conjunctions, SparseHalfspaces, Stumps
from .centered_learner import CenteredLinear, PrivateAdditive
from .descents import SGDPlan
from .descriptions import cut
from .doubling import DoublingLearner, DoublingResult, DoublingRound
from .effects import Effect, ToldEffects
from .exponential import ExponentialLearner, ExponentialResult, PaperSampleSize, vc_sample_size
from .feature_maps import FeatureMap
from .hypotheses import Hypotheses, HypothesisResult
from .linear_model import LinearModel, SoftmaxModel
from .private_model import PrivateModel
from .released_statistics import ReleasedStatistics
from .scores import predictor, score_of
from .separator import LinearSeparator, SeparatorResult
from .sgd import PrivateSGD
from .statistics_features import suggest_features
from .statistics_model import StatisticsModel
from .stored_classes import ConjunctionList, Halfspaces, Labelings, Parities, sauer_bound
from .sufficient_statistics import SufficientStatistics

__all__ = [
    "CenteredLinear",
    "ConjunctionList",
    "Conjunctions",
    "DoublingLearner",
    "DoublingResult",
    "DoublingRound",
    "Effect",
    "ExponentialLearner",
    "ExponentialResult",
    "FeatureMap",
    "Features",
    "Halfspaces",
    "Hypotheses",
    "HypothesisResult",
    "Labelings",
    "LinearModel",
    "LinearSeparator",
    "PaperSampleSize",
    "Parities",
    "PrivateAdditive",
    "PrivateModel",
    "PrivateSGD",
    "ReleasedStatistics",
    "SGDPlan",
    "SeparatorResult",
    "Shape",
    "SoftmaxModel",
    "SparseHalfspaces",
    "StatisticsModel",
    "Stumps",
    "SufficientStatistics",
    "ToldEffects",
    "cut",
    "predictor",
    "sauer_bound",
    "score_of",
    "suggest_features",
    "vc_sample_size",
]

__dir__ = list_only(__all__)
