"""A model trained on private answers, which may be asked without limit."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._support.notes import keep_result
from .._support.parameters import Rules, SettableParameters, check_fields
from .._support.random_state import make_generator
from .._support.types import RandomState
from .._support.validate import instance, one_of, refuse, shorten
from ..budget.account import Budget
from ..data.records import check_features, copy_rows, count_rows, take_rows
from ..exceptions import BudgetExceeded, InsufficientSamples, ParameterError, ShapeError
from ..record import PrivacyRecord
from .labeler import PrivateLabeler
from .members import check_learner, train_openly
from .public_facts import check_targets, compare, facts_of
from .results import LabelResult

_SOURCE = "Bassily, Thakkar and Thakurta 2018, Algorithm 5, with a verified table for noise"


@dataclass(kw_only=True, repr=False, eq=False)
class PrivateLearner(SettableParameters):
    """Learns a model from the labels that a labeler gives to public points.

    Attributes:
        labeler: A PrivateLabeler with the parameters to use; it stays as it is.
        final: What learns from public points and their labels, in the open: an object with fit and
            predict, or a function (X, y) -> predictor.
        bottoms: "random" replaces a bottom by a uniformly random label, as the theorem has it;
            "drop" leaves the point out.
        private: "records", or "labels" where the features are public and only the labels are
            protected.
        labels_: The LabelResult of the public points, bottoms included; after fit. It is kept when
            final fails, so that another learner can use it at no cost.
        model_: What final made of the labels, after fit.
        used_: Number of points that final learned from, after fit.
        record_: PrivacyRecord of the records, or of their labels, after fit.

    Guarantee:
        That of the labeler, for everything shown. Predictions, however many, follow from its
        answers. With private="labels", (epsilon, delta)-DP when the label of one record is
        replaced; the features of all records are shown, to final and to whoever asks the model.

    Source:
        Bassily, Thakkar and Thakurta 2018, Algorithm 5 and Section 4.2.

    Examples:
        >>> import numpy as np
        >>> from hdp_fast import labels
        >>> y = np.random.default_rng(0).integers(0, 2, 3000)
        >>> learner = lambda X, y: lambda Q: Q[:, 0] > X.mean()  # or any classifier
        >>> task = {"epsilon": 5.0, "delta": 1e-6, "queries": 20, "max_unstable": 2, "beta": 1e-9}
        >>> labeler = labels.PrivateLabeler(learner, classes=[0, 1], members=100, **task)
        >>> model = labels.PrivateLearner(labeler, learner).fit(y[:, None], y, y[:20, None])
        >>> model.predict([[0.9], [0.1]]), model.used_
        (array([ True, False]), 20)
    """

    labeler: PrivateLabeler = field(kw_only=False)
    final: Any = field(kw_only=False)
    bottoms: Literal["random", "drop"] = "random"
    private: Literal["records", "labels"] = "records"

    RULES: ClassVar[Rules] = {
        "labeler": partial(instance, kind=PrivateLabeler, what="a PrivateLabeler"),
        "bottoms": partial(one_of, allowed=("random", "drop")),
        "private": partial(one_of, allowed=("records", "labels")),
    }

    labels_: LabelResult = field(init=False)
    model_: Any = field(init=False)
    used_: int = field(init=False)
    record_: PrivacyRecord | None = field(init=False)

    @keep_result
    def fit(
        self,
        X: Any,
        y: ArrayLike,
        public: Any = None,
        *,
        ids: ArrayLike | None = None,
        budget: Budget | None = None,
        random_state: RandomState = None,
        progress: bool = False,
        preflight: bool = True,
    ) -> Self:
        """Trains the members, labels the public points, and trains the final model on them.

        Args:
            X: Records (n, ...) in memory, as PrivateLabeler.fit takes them.
            y: Labels of the records (n,), each one of the labeler's classes.
            public: Public points (q, ...), at most as many as the labeler's queries. If the labeler
                gives its last bottom, the points after it are left out. With private="labels" it
                must be None: as many records of X as there are queries, spread evenly, then lose
                their labels and become the public points.
            ids: None, or ids (n,) as PrivateLabeler.fit takes them; must be None with
                private="labels".
            budget: Budget that epsilon and delta are charged to once, before any training; None
                charges nothing. It must be None with private="labels", since a budget counts what
                protects whole records.
            random_state: None draws from the operating system; an int or a Generator makes a
                reproducible stream for tests, which protects no one.
            progress: Whether to show bars (tqdm) over members and votes.
            preflight: Whether to try the labeler's learner on the points, as PrivateLabeler.check
                does, before anything is charged.

        Returns:
            The learner itself.

        Raises:
            ShapeError: X, y or public has another shape. This error and those below come before any
                training, except where no point got a label.
            ParameterError: A parameter or an argument is not as described, or the trial fails.
            InsufficientSamples: There are too few records or points, or no point got a label.
            BudgetExceeded: There are more points than the labeler answers, or the budget has too
                little left.
            ImportError: A bar is wanted, but tqdm is not installed.

        Guarantee:
            That of the class. What final raises comes when `labels_` is there.

        Cost:
            The labeler's training and answers, the training of the final model, and
            PrivateLabeler.check.
        """
        check_fields(self)
        check_learner(self.final, "final")
        records = check_features("X", X)
        labels = check_targets(y, count_rows(records))
        if self.private == "labels":
            points, records, labels = self._split(records, labels, public, ids, budget)
        else:
            points = self._points(public, records)
        labeler = self.labeler.unfitted()
        if preflight and not labeler.diagnose:
            compare(facts_of(records), facts_of(points), "public")
            labeler.check(points, records=len(labels) if ids is None else None)
        labeler.fit(
            records,
            labels,
            ids=ids,
            budget=budget,
            random_state=random_state,
            progress=progress,
            preflight=False,
        )
        self.labels_ = labeler.label(points, progress=progress, preflight=False)
        self.record_ = self._record(labeler.record_)
        self._learn(points, labeler.classes_, random_state)
        return self

    def predict(self, X: Any) -> Any:
        """Predicts with the final model for any points, private ones included, without limit.

        Args:
            X: Points (q, ...), of which the model gets a copy.

        Returns:
            What the final model predicts.

        Raises:
            ParameterError: There is no model yet. What the final model raises is raised, too.

        Guarantee:
            That of the class for the records. A prediction says something about the point that was
            asked.

        Cost:
            That of the final model.
        """
        if not hasattr(self, "model_"):
            raise ParameterError("learner has no model, but fit must make it first")
        points = copy_rows(check_features("X", X), public=True)
        return getattr(self.model_, "predict", self.model_)(points)

    def __repr__(self) -> str:
        state = f"{self.used_:,} points" if hasattr(self, "model_") else "not fitted"
        choices = f"bottoms={self.bottoms!r}, private={self.private!r}"
        return f"PrivateLearner({self.labeler!r}, {shorten(self.final)}, {choices}): {state}"

    def _points(self, public: Any, records: Any) -> Any:
        if public is None:
            refuse("public", None, "there must be points unless labels are private")
        points = check_features("public", public)
        if tuple(points.shape[1:]) != tuple(records.shape[1:]):
            rule = f"X has shape {tuple(records.shape)}"
            raise ShapeError(f"public has shape {tuple(points.shape)}, but {rule}")
        queries, most = count_rows(points), self.labeler.plan().table.queries
        if queries > most:
            raise BudgetExceeded(f"public has {queries:,} points, but the labeler answers {most:,}")
        if not queries:
            raise InsufficientSamples("public has 0 points, but there must be at least 1")
        return points

    def _split(
        self, X: Any, y: NDArray[Any], public: Any, ids: Any, budget: Any
    ) -> tuple[Any, Any, NDArray[Any]]:
        for name, value in (("public", public), ("ids", ids), ("budget", budget)):
            if value is not None:
                rule = "private='labels' makes points of the records and protects labels alone"
                raise ParameterError(f"{name} is given, but {rule}")
        queries, n = self.labeler.plan().table.queries, len(y)
        if queries >= n:
            raise InsufficientSamples(f"X has {n:,} records, but {queries:,} become public points")
        chosen = np.zeros(n, bool)
        chosen[np.arange(queries) * n // queries] = True
        kept = np.flatnonzero(~chosen)
        return take_rows(X, np.flatnonzero(chosen)), take_rows(X, kept), y[kept]

    def _record(self, record: PrivacyRecord | None) -> PrivacyRecord | None:
        if record is None:
            return None
        whose = ", of one record's label alone" if self.private == "labels" else ""
        return replace(
            record, mechanism=f"labels.PrivateLearner{whose}, {record.mechanism}", source=_SOURCE
        )

    def _learn(self, points: Any, classes: NDArray[Any], random_state: RandomState) -> None:
        labels, is_bottom = self.labels_.labels, self.labels_.is_bottom
        taken = np.arange(len(labels))
        if self.bottoms == "drop":
            taken = taken[~is_bottom]
        else:
            seeded = random_state is not None
            rng = make_generator(random_state) if seeded else np.random.default_rng()
            labels = np.where(is_bottom, rng.choice(classes, len(labels)), labels)
        if not len(taken):
            raise InsufficientSamples("0 points have labels, but final must learn from some")
        points = copy_rows(take_rows(points, taken), public=True)
        self.model_ = train_openly(self.final, points, labels[taken])
        self.used_ = len(taken)
