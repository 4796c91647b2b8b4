"""Labels by the votes of members, one query or many at a time, for as long as the budget lasts."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import stability
from .._support.notes import keep_result, note_large_delta
from .._support.random_state import check_random_state, make_generator
from .._support.types import RandomState
from .._support.validate import one_of, refuse
from ..budget.account import Budget, spend
from ..data.states import State, describe_settings
from ..record import PrivacyRecord
from ..stability.gaussian import THRESHOLD
from ..stability.plans import AnyTable, VotePlan, members_needed
from .base import Labeler
from .ensemble import Ensemble, Group, VoteJob, note_flips, require_queries
from .fitted import Fitted
from .partition import Source
from .public_facts import check_classes, check_labels, choose_marker
from .results import LabelResult, note_one_label

TableChoice = Literal["fewest", "hazard", "vote", "gaussian"]


@dataclass(kw_only=True, repr=False, eq=False)
class PrivateLabeler(Labeler):
    """Answers with labels that members vote for, each trained on its own chunk of the records.

    Records and members: a member gets copies of its own of its records and of every block of
    points, which it may change in place. What goes along with a whole table does not: a data frame
    comes with neither its index nor attrs, and a chunk comes only with the categories that occur in
    it. Each member is a new copy of the learner. Its seed is derived from the number of its chunk.

    State of the process: the global generators (random, numpy, torch) are seeded for each member
    and put back afterwards. Python's warnings, logs, streams, environment, folder, locale,
    recursion limit and decimals are put back, too, and so are numpy's settings. For this, members
    in one process take turns, threads included; processes make it faster. A learner that uses a
    labeler itself must do so in its own thread: another thread would wait for ever for the turn
    that the learner is in.

    What a learner keeps: nothing can undo what a learner keeps in a module, a class, a closure, a
    file, a thread, or in the settings of other libraries. It must keep nothing there that depends
    on its records. Where you cannot tell, give each member a process of its own, which costs some
    hundredths of a second each:
    `joblib.parallel_config("multiprocessing", n_jobs=-1, maxtasksperchild=1)`.

    Failures: a member votes for the smallest label if its chunk is empty, if its training or
    prediction fails, or where it predicts anything but one of the classes. Nothing names it,
    whatever it raises, except for a KeyboardInterrupt in the main thread, which looks like Ctrl-C.
    Python's warnings, logs and streams are silent while members run, in other threads too. Not
    hidden are: what compiled code writes past Python, a thread or a finalizer that goes on
    afterwards, the running time, and a worker process that dies.

    Parallel members: if joblib is installed, members run where `joblib.parallel_config` says. If
    threadpoolctl is installed, their linear algebra runs in one thread.

    Attributes:
        learner: An object with fit and predict, as scikit-learn's classifiers have them, or a
            function (X, y) -> predictor, which may take random_state.
        epsilon: Privacy parameter of all answers together, 0.001 to 1,000.
        delta: Privacy parameter of all answers together, in (0, 1).
        queries: Number of queries that may be asked, 1 to `2**39`.
        max_unstable: Number of the bottom that ends the answers, 1 to `2**39`: 1 more than the
            unstable queries that are to be survived.
        beta: Failure probability of all answers together, in (0, 1), as stability.plan takes it.
        agreement: Probability that a member is right on a stable query, in (1/2, 1), as
            stability.plan takes it.
        members: Number k of members, 1 to `2**24`; None takes as many as the plan needs. Any number
            is private.
        diagnose: Whether to show which chunks' members fail, and why. True protects nothing.
        classes: The public label set: 2 to 256 different integers, real numbers or texts.
        table: What answers. "hazard" gives bottom with a probability that grows as the vote gets
            closer. "vote", for two classes, gives the other label with such a probability.
            "gaussian" adds noise to the votes for each class and gives bottom where the noisy votes
            are close, which never ends the answers. "fewest" takes the one that needs fewer
            members, as stability.plan does.
        threshold: The threshold of stability.GaussianVote, which the other tables ignore.
        bottom: Marker that stands for bottom among the labels; None takes -1, NaN or the empty
            text.
        classes_: The label set in order, after fit.
        plan_: The VotePlan: the table, and the numbers of members with the paper's among them;
            after fit.
        members_: Number of members in use, after fit.
        record_: PrivacyRecord of all answers together, after fit; None with diagnose=True.
        diagnosis_: With diagnose=True, what went wrong so far, by number of the chunk.

    Guarantee:
        All answers together are (epsilon, delta)-DP, to queries chosen in any way: when one record
        is replaced, or, with ids, when all records of one id are added or removed, whatever their
        number. The random draws are exact. This holds if a member depends on its own chunk, its
        seed and the queries alone: it does, unless the learner keeps something. Public facts must
        be the same for neighbors: the columns and dtypes of X and, without ids, its number of rows,
        or those of the parts of Chunks. A part holds whole members, so that a record that is
        replaced, in its part and its place, changes one chunk. Parts must not depend on values.
        diagnose=True protects nothing.

    Source:
        Bassily, Thakkar and Thakurta 2018, Algorithm 4, with the exact distance, a verified table
        instead of noise, and exactly T bottoms; or stability.GaussianVote.

    Examples:
        >>> import numpy as np
        >>> from hdp_fast import labels
        >>> y = np.random.default_rng(0).integers(0, 2, 3000)
        >>> X = np.random.default_rng(1).normal(8.0 * y[:, None], 1.0, (3000, 2))
        >>> learner = lambda X, y: lambda Q: Q.mean(axis=1) > X.mean()  # or any classifier
        >>> task = {"epsilon": 5.0, "delta": 1e-6, "queries": 10, "max_unstable": 2}
        >>> labeler = labels.PrivateLabeler(learner, classes=[0, 1], members=100, beta=1e-9, **task)
        >>> labeler.fit(X, y).label([[8.0, 8.0], [0.0, 1.0]]).labels
        array([1, 0])
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
        """Plans the table and the number of members that fit will use.

        Returns:
            A VotePlan, with the paper's number of members for comparison.

        Raises:
            ParameterError: A parameter is out of range, or no table keeps the promise.

        Guarantee:
            That of the table, whatever the votes; the number of members promises utility alone. No
            record is read.

        Cost:
            That of stability.plan.
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
            X: Records (n, ...), as the learner takes them: an array, a sparse matrix, or a data
                frame of pandas or polars. Lists and other tables become arrays of float64 if all is
                numbers and of objects if all is texts; others are refused, so that no entry decides
                the dtype of others. Arrays of texts become objects, too. So do pandas categories
                that are texts, and those that are numbers become float64; categories of both, or of
                anything else, are refused unless they are ordered. Or data.Chunks of them with
                their labels, of which each part holds whole members: m of the k, the number m
                following from the numbers of rows of the parts.
            y: Labels of the records (n,), each one of classes. None beside Chunks.
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
            preflight: Whether to try the learner before anything is charged, on made-up rows of the
                container, dtypes and columns of X. The learner is refused if it fails on them and
                not on the same rows in a plain array, as with sparse matrices or one dimension. If
                the rows may be at fault, there is a UtilityWarning. With diagnose=True nothing is
                tried.

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
            four members more. Parts are read twice, and trained where they are read, one in memory
            at a time for each worker.
        """
        classes = check_classes(self.classes)
        choose_marker(self.bottom, classes)
        source = Source.open(X, y, partial(check_labels, classes=classes))
        return self._train(source, ids, budget, random_state, progress, preflight)

    @keep_result
    def label(
        self,
        Q: Any,
        *,
        bottoms: int | None = None,
        progress: bool = False,
        preflight: bool = True,
    ) -> LabelResult:
        """Answers queries with the labels of public points.

        The points are answered in their order. Members see all of Q at once: one that fails at a
        single point votes for the smallest label at all of them.

        Args:
            Q: Points (q, ...), with the features of X.
            bottoms: Number of bottoms after which to stop, so that the rest of `max_unstable` is
                kept for other points; the points that follow are not used up. None stops at the
                last bottom alone.
            progress: Whether to show a bar (tqdm) over the votes of all members.
            preflight: Whether to do what check does, before anything is asked; it is not done with
                diagnose=True.

        Returns:
            A LabelResult.

        Raises:
            ShapeError: Q has other features than X. Nothing is used up by this error or those
                below.
            ParameterError: There are no members yet, bottoms is not possible with this table, or
                check refuses Q.
            BudgetExceeded: There are more points than queries left, or the last bottom has been
                given.
            CheckpointError: The ledger of a saved labeler has become unusable.
            ImportError: A bar is wanted, but tqdm is not installed.

        Guarantee:
            That of the class, for all calls together; how many answers there are is part of them.

        Cost:
            A prediction of each member for each point. Votes are counted as they are cast: 4 bytes
            a point and class.
        """
        fitted = self._require_fitted()
        limit, points = fitted.check_bottoms(bottoms), fitted.check_queries(Q)
        if preflight and fitted.record is not None:
            fitted.preflight.check(points)
        classes = fitted.classes
        with fitted.show_progress(points, "vote", progress) as bar:
            counts = self._count_votes(fitted, points, bar)
        codes, bottoms_left, queries_left = fitted.answer(
            lambda session: session.answer(counts), len(counts), limit
        )
        left = bottoms_left, queries_left, fitted.record
        return self._make_result(codes, classes, fitted.plan.flip(fitted.members), left)

    def fold(
        self,
        X: Any,
        y: ArrayLike | None = None,
        *,
        Q: Any,
        members: int,
        part: str | None = None,
        random_state: RandomState = None,
    ) -> State:
        """Trains a group of members, and counts their votes on public points: for release.

        Groups are trained wherever records lie, each on records of its own, and counts of all of
        them add up. No member is kept, and no vote.

        Args:
            X: Records of this group (n, ...), as fit takes them.
            y: Their labels (n,), each one of classes. None beside Chunks.
            Q: Public points (q, ...), which all groups must have alike.
            members: Number of members of this group, public, at most n: row i is in the chunk of
                member i mod members. The attribute of this name is not used.
            part: A public name of the group, by which one that is added twice is refused; None
                gives it none.
            random_state: None draws from the operating system; an int or a Generator makes a
                reproducible stream for tests, which protects no one.

        Returns:
            The private state of the group, for `+` and release: 8 bytes a point and class.

        Raises:
            ShapeError: X, y or Q has another shape.
            ParameterError: A parameter, X, y or Q is not as described.
            InsufficientSamples: There are fewer records than members.

        Guarantee:
            A state is as private as the records. A record that is replaced, in its group and its
            place, changes the vote of one member on every point, and so the sums of all groups as
            release takes them. A record must be in one group alone.

        Cost:
            The learner's training, members times on n / members records, and their predictions.
        """
        classes = check_classes(self.classes)
        source = Source.open(X, y, partial(check_labels, classes=classes))
        group = Group(members, part, random_state)
        return _votes_of(classes).fold(self.learner, source, Q, group)

    @keep_result
    def release(
        self, state: State, *, budget: Budget | None = None, random_state: RandomState = None
    ) -> LabelResult:
        """Answers the points of a state with labels, once: fit and label for groups of members.

        Args:
            state: The sum of what fold made of all groups.
            budget: Budget that epsilon and delta are charged to, before anything is drawn; None
                charges nothing. Its neighbors must be "replace_one".
            random_state: As in fold.

        Returns:
            A LabelResult.

        Raises:
            ParameterError: The state is of another job or of other classes, or a parameter is out
                of range.
            BudgetExceeded: There are more points than queries, or the budget has less than epsilon
                and delta left. Nothing is spent then.

        Guarantee:
            (epsilon, delta)-DP when one record is replaced, in whichever group: the votes of one
            member change. A state that is released again is paid for again.

        Cost:
            The plan, and a pass over the counts.
        """
        check_random_state(random_state)
        classes = check_classes(self.classes)
        choose_marker(self.bottom, classes)
        votes, k = _votes_of(classes).read(state)
        plan = self.plan()
        require_queries(plan, len(votes))
        record = self._record(plan.table, k, "replace_one", random_state)
        note_flips(plan, k)
        note_large_delta(self.delta, state.rows)
        rng = None if random_state is None else make_generator(random_state)
        with spend(budget, record):
            session = plan.table.session(random_state=rng)
            codes = np.asarray(session.answer(votes))
        left = session.bottoms_left, session.queries_left, record
        return self._make_result(codes, classes, plan.flip(k), left)

    def _make_result(
        self,
        codes: NDArray[Any],
        classes: NDArray[Any],
        flip: float,
        left: tuple[int | None, int, PrivacyRecord | None],
    ) -> LabelResult:
        unstable_left, queries_left, record = left
        is_bottom = codes < 0
        values = np.where(is_bottom, choose_marker(self.bottom, classes), classes[codes])
        result = LabelResult(
            labels=values,
            is_bottom=is_bottom,
            unstable_left=unstable_left,
            queries_left=queries_left,
            record=record,
            flip_probability=flip,
        )
        note_one_label(result)
        return result

    def unfitted(self) -> PrivateLabeler:
        """Makes a labeler of the same parameters without members.

        Returns:
            The new PrivateLabeler.
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
        for block, faults in fitted.ensemble.count_votes(points, fitted.classes, position, bar):
            self._note(fitted, faults)
            counts.append(block)
        return np.concatenate(counts)


def _votes_of(classes: NDArray[Any]) -> VoteJob:
    """The job of counting votes for these classes."""
    settings = describe_settings(classes=classes)
    return VoteJob(
        "labels.PrivateLabeler",
        "votes",
        len(classes),
        settings,
        partial(_count_votes, classes),
    )


def _count_votes(classes: NDArray[Any], ensemble: Ensemble, points: Any, bar: Any) -> Any:
    return ensemble.count_votes(points, classes, 0, bar)


_NAMES = {"hazard": "HazardTable", "vote": "VoteTable", "gaussian": "GaussianVote"}
