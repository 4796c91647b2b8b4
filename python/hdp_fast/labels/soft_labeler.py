"""Scores in [0, 1] by the votes of members for bins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._support.json_text import JsonText
from .._support.notes import keep_result
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
from .public_facts import check_targets


@dataclass(frozen=True, kw_only=True)
class ScoreResult(JsonText):
    """Answers to queries for soft labels.

    Attributes:
        scores: float64, answers to the first queries, as many as were answered before the labeler
            ended: the center of a bin, or NaN where the answer is bottom.
        is_bottom: bool, True where the answer is bottom.
        unstable_left: Number of bottoms until the labeler ends.
        queries_left: Number of votes that may still be held, up to two for each score.
        record: PrivacyRecord of all answers of the labeler together; None with diagnose=True.

    Examples:
        >>> import numpy as np
        >>> from hdp_fast import labels
        >>> answers = {"scores": np.array([0.25, np.nan]), "is_bottom": np.array([False, True])}
        >>> left = {"unstable_left": 3, "queries_left": 17}
        >>> result = labels.ScoreResult(**answers, **left, record=None)  # as score returns it
        >>> result.scores[~result.is_bottom]
        array([0.25])
    """

    scores: NDArray[np.float64]
    is_bottom: NDArray[np.bool_]
    unstable_left: int | None
    queries_left: int
    record: PrivacyRecord | None


@dataclass(kw_only=True, repr=False, eq=False)
class SoftLabeler(Labeler):
    """Answers with scores that members agree on, each trained on its own chunk of the records.

    Members vote for a bin of [0, 1]. After a bottom they vote for one of the bins that are shifted
    by half their width: a second query to the same table. A score that both histograms miss uses up
    two bottoms, and one that the second histogram answers uses up one.

    A member that fails scores 0, and nothing names it. All else that PrivateLabeler says of members
    holds here, too.

    Attributes:
        learner: An object with fit and predict_proba, for two classes of which the second counts,
            or with fit and predict, which predicts a score; or a function (X, y) -> such a
            predictor or function.
        epsilon: Privacy parameter of all answers together, 0.001 to 1,000.
        delta: Privacy parameter of all answers together, in (0, 1).
        queries: Number of scores that may be asked for certain, 1 to `2**39`. The table allows
            twice as many votes, so that there may be more scores where one vote is enough for most.
        max_unstable: Number of the bottom that ends the answers, 1 to `2**39`.
        beta: Failure probability of all answers together, in (0, 1), as stability.plan takes it.
        agreement: Probability that the score of a member lies in the bin that wins, in (1/2, 1), as
            stability.plan takes it.
        members: Number k of members, 1 to `2**24`; None takes as many as the plan needs. Any number
            is private.
        diagnose: Whether to show which chunks' members fail, and why. True protects nothing.
        plan_: The VotePlan: the table, and the numbers of members with the paper's among them;
            after fit.
        members_: Number of members in use, after fit.
        record_: PrivacyRecord of all answers together, after fit; None with diagnose=True.
        diagnosis_: With diagnose=True, what went wrong so far, by number of the chunk.

    Guarantee:
        All answers together are (epsilon, delta)-DP, to queries chosen in any way: when one record
        is replaced, or, with ids, when all records of one id are added or removed, whatever their
        number. What this needs of the learner is stated by PrivateLabeler. diagnose=True protects
        nothing.

    Source:
        Bassily, Thakkar and Thakurta 2018, Algorithms 6 to 8, with one verified table instead of
        the noise, and exactly T bottoms.

    Examples:
        >>> import numpy as np
        >>> from hdp_fast import labels
        >>> y = np.random.default_rng(0).normal(0.3, 0.02, 2000)  # say, shares of income
        >>> learner = lambda X, y: lambda Q: np.full(len(Q), y.mean())
        >>> task = {"epsilon": 5.0, "delta": 1e-6, "queries": 10, "max_unstable": 3}
        >>> labeler = labels.SoftLabeler(learner, members=100, beta=1e-9, **task)
        >>> labeler.fit(y[:, None], y).score(np.zeros((2, 1)), bins=5).scores
        array([0.3, 0.3])
    """

    _source: ClassVar[str] = (
        "Bassily, Thakkar and Thakurta 2018, Algorithm 6, with a verified table for noise"
    )

    def plan(self) -> VotePlan:
        """Plans the table, for twice as many queries, and the number of members that fit will use.

        Returns:
            A VotePlan, with the paper's number of members for comparison.

        Raises:
            ParameterError: A parameter is out of range, or no table keeps the promise.

        Guarantee:
            That of the table, whatever the votes; the number of members promises utility alone. No
            record is read.

        Cost:
            That of stability.HazardTable.design.

        Source:
            Bassily, Thakkar and Thakurta 2018, Theorem 5.14, for `k_paper`.
        """
        (max_unstable, queries), goal = self._limits(), self._goal()
        table = HazardTable.design(max_unstable, 2 * queries, **goal)
        k = members_needed(table, agreement=self.agreement)
        paper = paper_soft_members(max_unstable, queries, **goal)
        return VotePlan(table=table, k=k, k_hazard=k, k_vote=None, k_paper=paper)

    @keep_result
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
        """Trains the members; what was trained before is forgotten.

        Args:
            X: Records (n, ...), as PrivateLabeler.fit takes them.
            y: What the learner learns to predict, (n,): finite numbers or texts. A list of numbers
                becomes float64.
            ids: None puts row i into chunk i mod k. Integers or texts (n,) put each record into the
                chunk of a keyed hash of its id, which no other record moves.
            budget: Budget that epsilon and delta are charged to once, here, before any training;
                None charges nothing. Its neighbors must be "replace_one" without ids. With ids they
                are "add_remove", "add_remove_person" or "replace_person", and the record states the
                same ("add_remove" without a budget).
            random_state: None draws from the operating system; an int or a Generator makes a
                reproducible stream for tests, which protects no one.
            progress: Whether to show a bar (tqdm) over members. It moves at the end if joblib's
                backend gives all results at once.
            preflight: Whether to try the learner before anything is charged, as PrivateLabeler.fit
                does.

        Returns:
            The labeler itself.

        Raises:
            ShapeError: X or y has another shape. This error, and all below, comes before any
                training.
            ParameterError: A parameter, X, y or ids is not as described, or the trial fails.
            InsufficientSamples: There are fewer records than members, without ids.
            BudgetExceeded: The budget has less than epsilon and delta left.
            ImportError: A bar is wanted, but tqdm is not installed.

        Guarantee:
            That of the class.

        Cost:
            The learner's training, k times on n / k records, and the plan. The trial trains one to
            four members more.
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
        """Answers queries with the scores of public points.

        The points are answered in their order. Members see all of Q at once: one that fails at a
        single point scores 0 at all of them.

        Args:
            Q: Points (q, ...), with the features of X.
            bins: Number of bins, 2 to 65,536, each of width 1 / bins. It may differ from call to
                call, for points about which less is known.
            bottoms: Number of bottoms after which to stop, so that the rest of `max_unstable` is
                kept for other points; the points that follow are not used up. None stops at the
                last bottom alone.
            progress: Whether to show a bar (tqdm) over the scores of all members.
            preflight: Whether to do what check does, before anything is asked.

        Returns:
            A ScoreResult.

        Raises:
            ShapeError: Q has other features than X. Nothing is used up by this error or those
                below.
            ParameterError: There are no members yet, bins or bottoms is out of range, or check
                refuses Q.
            BudgetExceeded: There are more points than queries left, or the last bottom has been
                given.
            CheckpointError: The ledger of a saved labeler has become unusable.
            ImportError: A bar is wanted, but tqdm is not installed.

        Guarantee:
            That of the class, for all calls together; how many answers there are is part of them.

        Cost:
            A prediction of each member for each point, and 8 bytes for each of them.
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
    """The k of the paper's Theorem 5.14, which is that of Algorithm 4 for 2 T and 2 beta."""
    twice = min(2 * beta, 1 - 1e-9)
    return paper_members(2 * max_unstable, queries, epsilon=epsilon, delta=delta, beta=twice)
