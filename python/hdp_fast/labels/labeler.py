"""Labels by the votes of members, one query or many at a time, for as long as the budget lasts."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import stability
from .._support.notes import note
from .._support.types import RandomState
from .._support.validate import one_of, refuse
from ..budget.account import Budget
from ..data.records import check_features
from ..record import PrivacyRecord
from ..stability.gaussian import THRESHOLD
from ..stability.plans import AnyTable, VotePlan, members_needed
from .base import Labeler
from .fitted import Fitted
from .label_set import check_classes, check_labels, choose_marker

TableChoice = Literal["fewest", "hazard", "vote", "gaussian"]


# One label alone is no news of fewer answers.
_FEW_ANSWERS = 8


@dataclass(frozen=True, kw_only=True, repr=False)
class LabelResult:
    """Answers to queries.

    Attributes:
        labels: of the first queries, as many as were answered before the labeler ended; of the
            labels' type, the labeler's marker where the answer is bottom.
        is_bottom: where it is, bool.
        unstable_left: bottoms until the labeler ends; None where none or any number may come.
        queries_left: queries that may still be asked.
        record: what protects all answers of the labeler together; None with diagnose=True.
        flip_probability: with which a unanimous vote of the members is not answered with its label;
            a public number, which no answer moves.
    """

    labels: NDArray[Any]
    is_bottom: NDArray[np.bool_]
    unstable_left: int | None
    queries_left: int
    record: PrivacyRecord | None
    flip_probability: float | None = None

    @property
    def shares(self) -> dict[Any, float]:
        """The share of each label among the answers that are no bottoms."""
        values, counts = np.unique(self.labels[~self.is_bottom], return_counts=True)
        shares = counts / max(1, counts.sum())
        return dict(zip(values.tolist(), shares.tolist(), strict=True))

    def __repr__(self) -> str:
        bottoms = int(np.count_nonzero(self.is_bottom))
        shares = ", ".join(f"{label!r}: {share:.3f}" for label, share in self.shares.items())
        counts = f"{len(self.labels) - bottoms:,} answered, {bottoms:,} bottoms"
        left = f"{self.queries_left:,} queries left"
        return f"LabelResult({counts}, shares {{{shares}}}, {left})"


@dataclass(kw_only=True, repr=False, eq=False)
class PrivateLabeler(Labeler):
    """Answers with labels that members vote for, each trained on its own chunk of the records.

    learner: with fit and predict, as scikit-learn's classifiers have them, or a function (X, y) ->
    predictor, which may take random_state. Every member is a new copy with a seed of its own,
    derived from its chunk's number.
    epsilon, delta: of all answers together. queries: how many may be asked. max_unstable: number of
    the bottom that ends the answers; 1 more than the unstable queries to be survived. classes: the
    public label set, 2 to 256 integers, real numbers or texts. beta, agreement: as stability.plan.
    members: k, None for as many as the plan needs; any number is private. table: "hazard" answers
    bottom where a vote is close, "vote", of two classes, the other label; "gaussian" adds noise to
    the votes for each class and answers bottom where the noisy ones are close, which never ends the
    answers; "fewest" takes the one that needs fewer members, as stability.plan. threshold: that of
    stability.GaussianVote, of no use to the others. bottom: what stands for it among the labels;
    None for -1, NaN or the empty text. diagnose: says which chunks' members fail, and why, and so
    protects nothing.

    A member is handed copies of its own of its records and of every block of points, which it may
    change in place. What goes along with a whole table does not: a data frame comes with neither
    its index nor attrs, and its chunks with the categories alone that occur in them. Global
    generators (random, numpy, torch) are seeded for each member and put back, and so are Python's
    warnings, logs, streams, environment, folder, locale, recursion limit and decimals, and numpy's
    settings. For that, members in one process take turns, threads included: processes make it
    faster. A learner that uses a labeler itself must do so in its own thread: another would wait
    for ever for the turn that the learner is in.

    Nothing can undo what a learner keeps in a module, a class, a closure, a file, a thread, or in
    the settings of other libraries: it must keep nothing there that depends on its records. Where
    you cannot tell, give each member a process of its own, whatever that costs (some hundredths of
    a second each): joblib.parallel_config("multiprocessing", n_jobs=-1, maxtasksperchild=1).

    A member whose chunk is empty, or whose training or prediction fails or says anything but one of
    the classes, votes for the smallest label. Nothing names it, whatever it raises, but for a
    KeyboardInterrupt in the main thread, which looks like Ctrl-C: Python's warnings, logs and
    streams are silent while members run, in other threads too; what compiled code writes past
    Python, a thread or a finalizer that goes on afterwards, the running time and a worker process
    that dies are not hidden. Members run by joblib, if it is installed, where
    joblib.parallel_config says, with linear algebra in one thread where threadpoolctl is installed.

    Guarantee: (epsilon, delta)-DP for all answers together, to queries chosen in any way: when one
        record is replaced; with ids, when all records of one id are added or removed, whatever
        their number. Exact coins. Holds if a member depends on its own chunk, its seed and the
        queries alone: as above, unless the learner keeps something. What public facts are, such as
        the shape and the dtypes of X, is the same for neighbors. diagnose=True: none.
    Raises: nothing until fit.
    Cost: none until fit.
    Source: Bassily, Thakkar and Thakurta 2018, Algorithm 4, with the exact distance, a verified
        table in the place of noise, and exactly T bottoms; or stability.GaussianVote.

    Attributes:
        classes_: the label set in order.
        plan_: table and numbers of members, the paper's beside them.
        members_: k in use.
        record_: what protects all answers together; None with diagnose=True.
        diagnosis_: with diagnose=True, what went wrong so far, by number of the chunk.
        queries_left: queries that may still be asked.
        unstable_left: bottoms until the answers end; None where none or any number may come.
    """

    _source: ClassVar[str] = (
        "Bassily, Thakkar and Thakurta 2018, Algorithm 4, with a verified table for noise"
    )

    classes: ArrayLike
    table: TableChoice = "fewest"
    threshold: float = THRESHOLD
    bottom: Any = None

    classes_: NDArray[Any] = field(init=False)

    def plan(self) -> VotePlan:
        """The table and the numbers of members that fit will use, the paper's beside them.

        Guarantee: as stability.plan.
        Raises: ParameterError.
        Cost: as stability.plan.
        Source: as stability.plan.
        """
        labels = len(check_classes(self.classes))
        one_of("table", self.table, ("fewest", *_NAMES))
        if self.table == "vote" and labels > 2:
            refuse("table", "vote", f"classes holds {labels} labels, not 2")
        plan = self._plan_fewest(labels)
        if self.table == "fewest" or type(plan.table).__name__ == _NAMES[self.table]:
            return plan
        table = self._design_table(labels)
        return replace(plan, table=table, k=members_needed(table, agreement=self.agreement))

    def _plan_fewest(self, labels: int) -> VotePlan:
        max_unstable, queries = self._limits()
        return stability.plan(
            max_unstable,
            queries,
            labels=labels,
            agreement=self.agreement,
            threshold=self.threshold,
            **self._goal(),
        )

    def _design_table(self, labels: int) -> AnyTable:
        max_unstable, queries = self._limits()
        if self.table == "hazard":
            return stability.HazardTable.design(max_unstable, queries, **self._goal())
        if self.table == "vote":
            return stability.VoteTable.design(queries, **self._goal())
        return stability.GaussianVote.design(
            queries, labels=labels, threshold=self.threshold, **self._goal()
        )

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

        X: records (n, ...), as the learner takes them: an array, a sparse matrix, or a data frame
        of pandas or polars; lists and other tables become arrays of float64 where all is numbers,
        of objects where all is texts, and are refused else: no entry decides the dtype of others.
        Arrays of texts become objects, too, and so do categories of pandas, those that are numbers
        float64; categories of both, or of anything else, are refused unless they are ordered.
        y: their labels (n,), each one of classes. ids: None puts row i into chunk i mod k; integers
        or texts (n,) put each record into the chunk of a keyed hash of its id, which no other
        record moves. budget: charged epsilon and delta once, here, before any training; one of
        neighbors="add_remove" with ids. random_state: None draws from the operating system; an int
        or a Generator makes a reproducible test stream. progress: show a bar (tqdm) over members;
        where joblib's backend gives all results at once, it moves at the end. preflight: train the
        learner before anything is charged on made-up rows of the container, dtypes and columns of
        X: it is refused where it fails at them and not at the same rows in a plain array (sparse
        matrices, one dimension), and where it may be the rows' fault, there is a UtilityWarning.

        Guarantee: as the class.
        Raises: ShapeError, ParameterError; InsufficientSamples for fewer records than members,
            without ids; BudgetExceeded; ImportError without tqdm where progress is wanted: all of
            them before any training.
        Cost: the learner's, k times on n / k records, and the plan's; the trial is one to four
            members more.
        Source: as the class.
        """
        classes = check_classes(self.classes)
        choose_marker(self.bottom, classes)
        records = check_features("X", X)
        labels = check_labels(y, int(records.shape[0]), classes)
        return self._train(records, labels, ids, budget, random_state, progress, preflight)

    def label(
        self,
        Q: Any,
        *,
        bottoms: int | None = None,
        progress: bool = False,
        preflight: bool = True,
    ) -> LabelResult:
        """Ask for the labels of public points.

        Q: points (q, ...), of the features of X. bottoms: None, or after how many of them to stop,
        so that the rest of the unstable budget is kept for other points. They are answered in their
        order, up to the bottom that stops them; the others are not used up. Members see all of Q at
        once: one that fails at a single point votes for the smallest label at all of them.
        progress: show a bar (tqdm) over the votes of all members. preflight: do what check does,
        before anything is asked.

        Guarantee: as the class: all calls together, and however many answers there are.
        Raises: ShapeError, ParameterError; BudgetExceeded for more queries than are left, and after
            the last bottom; ImportError without tqdm where progress is wanted; what check raises.
            Nothing is used up then. CheckpointError when a saved labeler's ledger has become
            unusable.
        Cost: a prediction of each member for each point, and a pass over their votes.
        Source: as the class.
        """
        fitted = self._require_fitted()
        limit, points = fitted.check_bottoms(bottoms), fitted.check_queries(Q)
        if preflight and fitted.record is not None:
            fitted.preflight.check(points)
        classes = fitted.classes
        with fitted.show_progress(points, "vote", progress) as bar:
            counts = self._count_votes(fitted, points, bar)
        codes, unstable_left, queries_left = fitted.answer(
            lambda session: session.answer(counts), len(counts), limit
        )
        is_bottom = codes < 0
        values = np.where(is_bottom, choose_marker(self.bottom, classes), classes[codes])
        result = LabelResult(
            labels=values,
            is_bottom=is_bottom,
            unstable_left=unstable_left,
            queries_left=queries_left,
            record=fitted.record,
            flip_probability=fitted.plan.flip(fitted.members),
        )
        _note_one_label(result)
        return result

    def unfitted(self) -> PrivateLabeler:
        """A labeler of the same parameters without members.

        Raises: nothing.
        Cost: constant.
        Source: none.
        """
        return type(self)(**self.get_params(deep=False))

    def _label_set(self) -> NDArray[Any]:
        return check_classes(self.classes)

    def _begin(self, fitted: Fitted) -> None:
        self.classes_ = fitted.classes
        super()._begin(fitted)

    def _count_votes(self, fitted: Fitted, points: Any, bar: Any) -> NDArray[np.uint32]:
        size = len(fitted.classes)
        position = fitted.account.usage().queries
        counts = [np.empty((0, size), np.uint32)]
        for votes, faults in fitted.ensemble.votes(points, fitted.classes, position, bar):
            self._note(fitted, faults)
            counts.append(stability.count_votes(votes, size))
        return np.concatenate(counts)


def _note_one_label(result: LabelResult) -> None:
    """Say of released answers that they may be those of members that failed."""
    shares = result.shares
    answered = np.count_nonzero(~result.is_bottom)
    if answered >= _FEW_ANSWERS and len(shares) == 1:
        (label,) = shares
        cause = "as they are where members fail on private rows, or learn the more frequent label"
        advice = "try the learner with diagnose=True on public rows like them"
        note(f"all {answered:,} answers are one label, {label!r}, {cause}: {advice}")


_NAMES = {"hazard": "HazardTable", "vote": "VoteTable", "gaussian": "GaussianVote"}
