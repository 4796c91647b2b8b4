"""Scores in [0, 1] by the votes of members for bins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._support.types import RandomState
from .._support.validate import positive_int
from ..budget.account import Budget
from ..data.records import check_features
from ..exceptions import ParameterError
from ..record import PrivacyRecord
from ..stability.plans import VotePlan, members_needed, paper_members
from ..stability.tables import HazardTable
from . import ensemble
from .base import Fitted, Labeler


@dataclass(frozen=True, kw_only=True)
class ScoreResult:
    """Answers to queries for soft labels.

    Attributes:
        scores: of the first queries, as many as were answered before the labeler ended: the center
            of a bin, NaN where the answer is bottom.
        is_bottom: where it is, bool.
        unstable_left: bottoms until the labeler ends.
        queries_left: votes that may still be held, up to two for each score.
        record: what protects all answers of the labeler together; None with diagnose=True.
    """

    scores: NDArray[np.float64]
    is_bottom: NDArray[np.bool_]
    unstable_left: int | None
    queries_left: int
    record: PrivacyRecord | None


class SoftLabeler(Labeler):
    """Answers with scores that members agree on, each trained on its own chunk of the records.

    learner: with fit and predict_proba, of two classes, the second of which is meant, or predict,
    a score; or a function (X, y) -> such a predictor or function. epsilon, delta: of all answers
    together. queries: m, how many scores may be asked. unstable: T, the bottom that ends the
    answers; a score that two histograms miss is two bottoms, one that the second of them finds is
    one. beta, agreement: as stability.plan, of members whose scores lie in one bin. members,
    diagnose: as PrivateLabeler.

    Members vote for one of so many bins of [0, 1], and after a bottom for those that are shifted by
    half a width: two consecutive queries to one table. A member that fails scores 0, and nothing
    names it; all that PrivateLabeler says of members holds here.

    Guarantee: as PrivateLabeler.
    Raises: nothing until fit.
    Cost: none until fit.
    Source: Bassily, Thakkar and Thakurta 2018, Algorithms 6 to 8, with one verified table in the
        place of the noise and exactly T bottoms.

    Attributes:
        plan_: table and numbers of members, the paper's beside them.
        members_: k in use.
        record_: what protects all answers together; None with diagnose=True.
        diagnosis_: with diagnose=True, what went wrong so far, by number of the chunk.
        queries_left: votes that may still be held, up to two for each score.
        unstable_left: bottoms until the answers end.
    """

    _source = "Bassily, Thakkar and Thakurta 2018, Algorithm 6, with a verified table for noise"
    _kept = ("epsilon", "delta", "queries", "unstable", "beta", "agreement", "members", "diagnose")

    def __init__(
        self,
        learner: Any,
        *,
        epsilon: float,
        delta: float,
        queries: int,
        unstable: int,
        beta: float = 0.05,
        agreement: float = 0.75,
        members: int | None = None,
        diagnose: bool = False,
    ):
        super().__init__(
            learner,
            epsilon=epsilon,
            delta=delta,
            queries=queries,
            unstable=unstable,
            beta=beta,
            agreement=agreement,
            members=members,
            diagnose=diagnose,
        )

    def plan(self) -> VotePlan:
        """The table, of twice as many queries, and the number of members that fit will use.

        Guarantee: as stability.plan.
        Raises: ParameterError.
        Cost: as stability.plan.
        Source: Bassily, Thakkar and Thakurta 2018, Theorem 5.14, for k_paper.
        """
        unstable, queries = self._sizes()
        goal = {"epsilon": self.epsilon, "delta": self.delta, "beta": self.beta}
        table = HazardTable.design(unstable, 2 * queries, **goal)
        k = members_needed(table, agreement=self.agreement)
        paper = paper_soft_members(unstable, queries, **goal)
        return VotePlan(table=table, k=k, k_hazard=k, k_vote=None, k_paper=paper)

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        *,
        ids: ArrayLike | None = None,
        budget: Budget | None = None,
        random_state: RandomState = None,
        progress: bool = False,
    ) -> Self:
        """Train the members; what was trained before is forgotten.

        X, ids, budget, random_state, progress: as PrivateLabeler.fit. y: what the learner takes,
        (n,), finite numbers or texts; a list of numbers becomes float64.

        Guarantee: as the class.
        Raises: ShapeError, ParameterError; InsufficientSamples for fewer records than members,
            without ids; BudgetExceeded; ImportError without tqdm where progress is wanted: all of
            them before any training.
        Cost: the learner's, k times on n / k records, and the plan's.
        Source: as the class.
        """
        records = check_features("X", X)
        labels = ensemble.targets(y, int(records.shape[0]))
        if labels.dtype.kind == "f" and not np.isfinite(labels).all():
            raise ParameterError("y holds something else, but every number must be finite")
        return self._trained(records, labels, ids, budget, random_state, progress)

    def score(
        self, Q: Any, bins: int, *, bottoms: int | None = None, progress: bool = False
    ) -> ScoreResult:
        """Ask for the scores of public points.

        Q, bottoms, progress: as PrivateLabeler.label. bins: 2 to 65,536, of width 1 / bins; another
        number in another call, if less is known of those points.

        Guarantee: as the class: all calls together, and however many answers there are.
        Raises: as PrivateLabeler.label.
        Cost: a prediction of each member for each point, and 8 bytes for each of them.
        Source: as the class.
        """
        if positive_int("bins", bins, 1 << 16) == 1:
            raise ParameterError("bins = 1, but it must be at least 2")
        fitted = self._fitted()
        limit, points = fitted.limit(bottoms), fitted.asked(Q)
        with fitted.bar(points, "score", progress) as bar:
            found = self._scores(fitted, points, bar)
        values, (unstable, queries) = fitted.answers(
            lambda session: session.answer_scores(found, bins), found.shape[1], limit
        )
        return ScoreResult(
            scores=values,
            is_bottom=np.isnan(values),
            unstable_left=unstable,
            queries_left=queries,
            record=fitted.record,
        )

    def _scores(self, fitted: Fitted, points: Any, bar: Any) -> NDArray[np.float64]:
        found = [np.empty((fitted.members, 0))]
        blocks = fitted.ensemble.scores(points, fitted.spent.used().queries, bar)
        for scores, faults in blocks:
            self._name(fitted, faults)
            found.append(scores)
        return np.concatenate(found, axis=1)


def paper_soft_members(T: int, m: int, *, epsilon: float, delta: float, beta: float) -> int:
    """The k of the paper's Theorem 5.14: that of Algorithm 4 for 2 T, and for beta twice over."""
    return paper_members(2 * T, m, epsilon=epsilon, delta=delta, beta=min(2 * beta, 1 - 1e-9))
