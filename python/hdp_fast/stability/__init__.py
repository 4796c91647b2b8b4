"""Private answers from the votes of an ensemble: exact distances, tables of coins, sparse vectors.

Members are trained on disjoint chunks of the records, so that replacing one record replaces one
vote on every query. `distance` says how many votes must change before one more can change the
winner. A HazardTable turns it into the probability of the answer "bottom", a VoteTable, of two
labels, into that of the other label; a session of the table answers queries. A GaussianVote adds
noise to the votes for each label, AboveThreshold and what is built on it to a distance and a
threshold, as the paper does.
"""

from .._support.lazy import list_only
from .distances import count_votes, distance, plurality
from .gaussian import GaussianSession, GaussianVote
from .plans import VotePlan, members_needed, paper_members, plan
from .sessions import TableSession
from .sparse_vector import AboveThreshold, OnlineQueryRelease, laplace_scale
from .stable_release import StableRelease
from .tables import HazardTable, VoteTable

__all__ = [
    "AboveThreshold",
    "GaussianSession",
    "GaussianVote",
    "HazardTable",
    "OnlineQueryRelease",
    "StableRelease",
    "TableSession",
    "VotePlan",
    "VoteTable",
    "count_votes",
    "distance",
    "laplace_scale",
    "members_needed",
    "paper_members",
    "plan",
    "plurality",
]

__dir__ = list_only(__all__)
