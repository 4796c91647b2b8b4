"""Private answers from the votes of an ensemble: exact distances, tables of coins, sparse vectors.

Members are trained on disjoint chunks of the records, so that replacing one record replaces one
vote on every query. `distance` counts the votes that must change before one more can change the
winner. Four kinds of mechanisms answer queries from the votes:

- A HazardTable turns the distance into the probability of the answer "bottom".
- A VoteTable, for two labels, turns the votes into the probability of the minority's label.
- A GaussianVote adds noise to the votes for each label.
- StableRelease, AboveThreshold and OnlineQueryRelease add noise to a distance and a threshold, as
  the paper does.

Tables answer in a session, which ends when its queries or its bottoms are used up. `plan` chooses
the table that needs the fewest members. `paper_sizes` computes what the paper prints instead.
"""

from .._support.lazy import list_only
from .distances import StableRelease, count_votes, distance, plurality
from .gaussian import GaussianSession, GaussianVote
from .plans import VotePlan, members_needed, plan
from .printed import PaperSizes, paper_sizes
from .sessions import TableSession
from .sparse_vector import AboveThreshold, OnlineQueryRelease, laplace_scale
from .tables import HazardTable, VoteTable

__all__ = [
    "AboveThreshold",
    "GaussianSession",
    "GaussianVote",
    "HazardTable",
    "OnlineQueryRelease",
    "PaperSizes",
    "StableRelease",
    "TableSession",
    "VotePlan",
    "VoteTable",
    "count_votes",
    "distance",
    "laplace_scale",
    "members_needed",
    "paper_sizes",
    "plan",
    "plurality",
]

__dir__ = list_only(__all__)
