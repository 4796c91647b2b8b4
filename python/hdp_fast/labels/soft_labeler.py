"""Scores in [0, 1] by the votes of members for bins."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._support.notes import keep_result, note_large_delta
from .._support.random_state import check_random_state, make_generator
from .._support.types import RandomState
from .._support.validate import instance
from ..budget.account import Budget, spend
from ..data.states import State, describe_settings
from ..stability.distances import check_bins, winners_of
from ..stability.plans import VotePlan, members_needed
from ..stability.printed import paper_soft_members
from ..stability.tables import HazardTable
from .base import Labeler
from .ensemble import Ensemble, Group, VoteJob, note_flips, require_queries
from .fitted import Fitted
from .partition import Source
from .public_facts import check_finite_targets
from .results import ScoreResult

# Digits of the number of bins in a state.
_DIGITS = 5


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
        paper = paper_soft_members(max_unstable, queries, self.epsilon, self.delta, self.beta)
        return VotePlan(table=table, k=k, k_hazard=k, k_vote=None, k_paper=paper)

    @keep_result
    def fit(
        self,
        X: Any,
        y: ArrayLike | None = None,
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
                becomes float64. None beside Chunks.
            ids: None puts row i into chunk i mod k, and row i of a part into chunk i mod m of it.
                Integers or texts (n,) put each record into the chunk of a keyed hash of its id,
                which no other record moves; not beside Chunks.
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
            InsufficientSamples: There are fewer records than members, or more parts than members,
                without ids.
            BudgetExceeded: The budget has less than epsilon and delta left.
            ImportError: A bar is wanted, but tqdm is not installed.

        Guarantee:
            That of the class.

        Cost:
            The learner's training, k times on n / k records, and the plan. The trial trains one to
            four members more.
        """
        source = Source.open(X, y, check_finite_targets)
        return self._train(source, ids, budget, random_state, progress, preflight)

    def fold(
        self,
        X: Any,
        y: ArrayLike | None = None,
        *,
        Q: Any,
        bins: int,
        members: int,
        part: str | None = None,
        random_state: RandomState = None,
    ) -> State:
        """Trains a group of members, and counts their scores of public points: for release.

        Groups are trained wherever records lie, each on records of its own, and counts of all of
        them add up. No member is kept, and no score.

        Args:
            X: Records of this group (n, ...), as fit takes them.
            y: What the learner learns to predict, as fit takes it. None beside Chunks.
            Q: Public points (q, ...), which all groups must have alike.
            bins: Number of bins, 2 to 65,536.
            members: Number of members of this group, public, at most n: row i is in the chunk of
                member i mod members. The attribute of this name is not used.
            part: A public name of the group, by which one that is added twice is refused; None
                gives it none.
            random_state: None draws from the operating system; an int or a Generator makes a
                reproducible stream for tests, which protects no one.

        Returns:
            The private state of the group, for `+` and release: 16 bytes a point and bin.

        Raises:
            ShapeError: X, y or Q has another shape.
            ParameterError: A parameter, X, y or Q is not as described.
            InsufficientSamples: There are fewer records than members.

        Guarantee:
            That of PrivateLabeler.fold.

        Cost:
            That of PrivateLabeler.fold.
        """
        job = _scores_of(check_bins(bins))
        source = Source.open(X, y, check_finite_targets)
        return job.fold(self.learner, source, Q, Group(members, part, random_state))

    @keep_result
    def release(
        self, state: State, *, budget: Budget | None = None, random_state: RandomState = None
    ) -> ScoreResult:
        """Answers the points of a state with scores, once: fit and score for groups of members.

        Args:
            state: The sum of what fold made of all groups.
            budget: Budget that epsilon and delta are charged to, before anything is drawn; None
                charges nothing. Its neighbors must be "replace_one".
            random_state: As in fold.

        Returns:
            A ScoreResult.

        Raises:
            ParameterError: The state is of another job, or a parameter is out of range.
            BudgetExceeded: There are more points than queries, or the budget has less than epsilon
                and delta left. Nothing is spent then.

        Guarantee:
            (epsilon, delta)-DP when one record is replaced, in whichever group: the scores of one
            member change. A state that is released again is paid for again.

        Cost:
            The plan, and a pass over the counts.
        """
        check_random_state(random_state)
        instance("state", state, State, "a State that fold made")
        text = state.settings.get("bins", "")
        bins = int(text) if text.isdecimal() and len(text) <= _DIGITS else 2
        cells, k = _scores_of(check_bins(bins)).read(state)
        plan = self.plan()
        require_queries(plan, len(cells))
        record = self._record(plan.table, k, "replace_one", random_state)
        note_flips(plan, k)
        note_large_delta(self.delta, state.rows)
        rng = None if random_state is None else make_generator(random_state)
        with spend(budget, record):
            session: Any = plan.table.session(random_state=rng)
            values = session.answer_winners(winners_of(cells), bins)
        return ScoreResult(
            scores=values,
            is_bottom=np.isnan(values),
            unstable_left=session.bottoms_left,
            queries_left=session.queries_left,
            record=record,
        )

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
            A prediction of each member for each point. Scores are counted as they are made: 8 bytes
            a point and bin, of as many points at a time as 128 MB hold.
        """
        check_bins(bins)
        fitted = self._require_fitted()
        limit, points = fitted.check_bottoms(bottoms), fitted.check_queries(Q)
        if preflight and fitted.record is not None:
            fitted.preflight.check(points)
        with fitted.show_progress(points, "score", progress) as bar:
            winners = self._find_winners(fitted, points, bins, bar)
        values, unstable_left, queries_left = fitted.answer(
            lambda session: session.answer_winners(winners, bins), len(winners), limit
        )
        return ScoreResult(
            scores=values,
            is_bottom=np.isnan(values),
            unstable_left=unstable_left,
            queries_left=queries_left,
            record=fitted.record,
        )

    def _find_winners(self, fitted: Fitted, points: Any, bins: int, bar: Any) -> NDArray[np.uint32]:
        """What the table answers from: no count is kept beyond its block of points."""
        blocks = [np.empty((0, 4), np.uint32)]
        position = fitted.account.usage().queries
        for counts, faults in fitted.ensemble.count_scores(points, bins, position, bar):
            self._note(fitted, faults)
            blocks.append(winners_of(counts))
        return np.concatenate(blocks)


def _scores_of(bins: int) -> VoteJob:
    """The job of counting scores in so many bins."""
    return VoteJob(
        "labels.SoftLabeler",
        "scores",
        2 * bins,
        describe_settings(bins=bins),
        partial(_count_scores, bins),
    )


def _count_scores(bins: int, ensemble: Ensemble, points: Any, bar: Any) -> Any:
    return ensemble.count_scores(points, bins, 0, bar)
