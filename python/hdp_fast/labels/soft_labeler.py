"""Scores in [0, 1] by the votes of members for bins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

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
from .base import Labeler
from .fitted import Fitted
from .label_set import check_targets


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


@dataclass(kw_only=True, repr=False, eq=False)
class SoftLabeler(Labeler):
    """Answers with scores that members agree on, each trained on its own chunk of the records.

    learner: with fit and predict_proba, of two classes, the second of which is meant, or predict,
    a score; or a function (X, y) -> such a predictor or function. epsilon, delta: of all answers
    together. queries: how many scores may be asked. max_unstable: number of the bottom that ends
    the answers; a score that two histograms miss is two bottoms, one that the second of them finds
    is
    one. beta, agreement: as stability.plan, of members whose scores lie in one bin. members,
    diagnose: as PrivateLabeler.

    Members vote for a bin of [0, 1], and after a bottom for one of the bins that are shifted by
    half
    a width: two consecutive queries to one table. A member that fails scores 0, and nothing
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

    _source: ClassVar[str] = (
        "Bassily, Thakkar and Thakurta 2018, Algorithm 6, with a verified table for noise"
    )

    def plan(self) -> VotePlan:
        """The table, of twice as many queries, and the number of members that fit will use.

        Guarantee: as stability.plan.
        Raises: ParameterError.
        Cost: as stability.plan.
        Source: Bassily, Thakkar and Thakurta 2018, Theorem 5.14, for k_paper.
        """
        (max_unstable, queries), goal = self._limits(), self._goal()
        table = HazardTable.design(max_unstable, 2 * queries, **goal)
        k = members_needed(table, agreement=self.agreement)
        paper = paper_soft_members(max_unstable, queries, **goal)
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
        preflight: bool = True,
    ) -> Self:
        """Train the members; what was trained before is forgotten.

        X, ids, budget, random_state, progress, preflight: as PrivateLabeler.fit. y: what the
        learner takes, (n,), finite numbers or texts; a list of numbers becomes float64.

        Guarantee: as the class.
        Raises: ShapeError, ParameterError; InsufficientSamples for fewer records than members,
            without ids; BudgetExceeded; ImportError without tqdm where progress is wanted: all of
            them before any training.
        Cost: the learner's, k times on n / k records, and the plan's.
        Source: as the class.
        """
        records = check_features("X", X)
        labels = check_targets(y, int(records.shape[0]))
        if labels.dtype.kind == "f" and not np.isfinite(labels).all():
            raise ParameterError("y holds something else, but every number must be finite")
        return self._train(records, labels, ids, budget, random_state, progress, preflight)

    def score(
        self,
        Q: Any,
        bins: int,
        *,
        bottoms: int | None = None,
        progress: bool = False,
        preflight: bool = True,
    ) -> ScoreResult:
        """Ask for the scores of public points.

        Q, bottoms, progress, preflight: as PrivateLabeler.label. bins: 2 to 65,536, of width 1 /
        bins; another number in another call, if less is known of those points.

        Guarantee: as the class: all calls together, and however many answers there are.
        Raises: as PrivateLabeler.label.
        Cost: a prediction of each member for each point, and 8 bytes for each of them.
        Source: as the class.
        """
        if positive_int("bins", bins, 1 << 16) == 1:
            raise ParameterError("bins = 1, but it must be at least 2")
        fitted = self._require_fitted()
        limit, points = fitted.check_bottoms(bottoms), fitted.check_queries(Q)
        if preflight and fitted.record is not None:
            fitted.preflight.check(points)
        with fitted.show_progress(points, "score", progress) as bar:
            scores = self._collect_scores(fitted, points, bar)
        values, unstable_left, queries_left = fitted.answer(
            lambda session: session.answer_scores(scores, bins), scores.shape[1], limit
        )
        return ScoreResult(
            scores=values,
            is_bottom=np.isnan(values),
            unstable_left=unstable_left,
            queries_left=queries_left,
            record=fitted.record,
        )

    def _collect_scores(self, fitted: Fitted, points: Any, bar: Any) -> NDArray[np.float64]:
        blocks = [np.empty((fitted.members, 0))]
        position = fitted.account.usage().queries
        for scores, faults in fitted.ensemble.scores(points, position, bar):
            self._note(fitted, faults)
            blocks.append(scores)
        return np.concatenate(blocks, axis=1)


def paper_soft_members(
    max_unstable: int, queries: int, *, epsilon: float, delta: float, beta: float
) -> int:
    """The k of the paper's Theorem 5.14: that of Algorithm 4 for 2 T and 2 beta."""
    twice = min(2 * beta, 1 - 1e-9)
    return paper_members(2 * max_unstable, queries, epsilon=epsilon, delta=delta, beta=twice)
