"""Labels for public points from private records, by any learner at all.

The records are split among members, each of which trains a model of its own on its chunk. All
members vote on a query, and a verified table of coins answers with the winner, or with bottom where
the vote is close. One record changes one vote. Answers are all that is ever shown: the members,
their votes and how close a vote was stay private.

- PrivateLabeler answers queries with labels.
- SoftLabeler answers queries with scores.
- PrivateLearner trains a model on the labels, which may then be asked without limit.
- StatisticsLabeler answers with a linear model that one noisy release of the records makes; no
  members, and any number of queries.
- `suggest` tries on public rows how many members to take.
"""

from __future__ import annotations

from .._support.lazy import list_only
from .labeler import PrivateLabeler
from .learner import PrivateLearner
from .plans import (
    LearningPlan,
    pac_sample_size,
    plan_answers,
    plan_learning,
    sgd_stability,
    soft_bins,
    unstable_queries,
)
from .pool import MethodChoice, choose_method
from .public_features import PopulationTest
from .results import LabelResult, ScoreResult
from .soft_labeler import SoftLabeler
from .statistics_labeler import StatisticsLabeler
from .suggestion import Candidate, Suggestion, suggest

__all__ = [
    "Candidate",
    "LabelResult",
    "LearningPlan",
    "MethodChoice",
    "PopulationTest",
    "PrivateLabeler",
    "PrivateLearner",
    "ScoreResult",
    "SoftLabeler",
    "StatisticsLabeler",
    "Suggestion",
    "choose_method",
    "pac_sample_size",
    "plan_answers",
    "plan_learning",
    "sgd_stability",
    "soft_bins",
    "suggest",
    "unstable_queries",
]

__dir__ = list_only(__all__)
