"""A model trained on private answers, which may be asked without end."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._support.parameters import SettableParameters
from .._support.random_state import make_generator
from .._support.types import RandomState
from .._support.validate import one_of, refuse, shorten
from ..budget.account import Budget
from ..data.records import check_features, copy_rows, count_rows, take_rows
from ..exceptions import BudgetExceeded, InsufficientSamples, ParameterError, ShapeError
from ..record import PrivacyRecord
from .label_set import check_targets
from .labeler import LabelResult, PrivateLabeler
from .members import check_learner, train_openly
from .public_facts import compare, facts_of

_SOURCE = "Bassily, Thakkar and Thakurta 2018, Algorithm 5, with a verified table for noise"


@dataclass(kw_only=True, repr=False, eq=False)
class PrivateLearner(SettableParameters):
    """Learns from the labels that a labeler gives to public points.

    labeler: a PrivateLabeler with the parameters to use; it stays as it is. final: what learns from
    public points and their labels, in the open: with fit and predict, or a function (X, y) ->
    predictor. bottoms: "random" puts a uniformly random label in the place of a bottom, as the
    theorem has it; "drop" leaves the point out. private: "records", or "labels", where features are
    public and nothing but the labels is protected.

    Guarantee: that of the labeler, for everything shown, predictions included, however many: they
        follow from its answers. private="labels": (epsilon, delta)-DP when one record's label is
        replaced; the features of all records are shown, to final and to whoever asks it.
    Raises: nothing until fit.
    Cost: none until fit.
    Source: Bassily, Thakkar and Thakurta 2018, Algorithm 5 and Section 4.2.

    Attributes:
        labels_: the labeler's answers, bottoms included; kept when final fails, so that another
            one can learn from them at no cost.
        model_: what final made of them.
        used_: how many points it learned from.
        record_: what protects the records, or their labels.
    """

    labeler: PrivateLabeler = field(kw_only=False)
    final: Any = field(kw_only=False)
    bottoms: Literal["random", "drop"] = "random"
    private: Literal["records", "labels"] = "records"

    labels_: LabelResult = field(init=False)
    model_: Any = field(init=False)
    used_: int = field(init=False)
    record_: PrivacyRecord | None = field(init=False)

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
        """Train the members, label the public points, and train the final model on them.

        X, y, ids, budget, random_state, progress: as PrivateLabeler.fit. public: points (q, ...),
        at most as many as the labeler may be asked; None for private="labels": then so many records
        of X, spread evenly, lose their labels and become the public points, and neither ids nor a
        budget can be given, since a budget counts what protects whole records. Where the labeler
        gives its last bottom, the points after it are left out. preflight: try the labeler's
        learner on the points, as PrivateLabeler.check does, before anything is charged.

        Guarantee: as the class.
        Raises: ShapeError, ParameterError; InsufficientSamples; BudgetExceeded for more points than
            the labeler may be asked; ImportError without tqdm where progress is wanted: all of
            them before any training. What final raises comes after labels_ is there, and so does
            InsufficientSamples where no point was labeled.
        Cost: the labeler's training and answers, the final model's training, and that of
            PrivateLabeler.check.
        Source: as the class.
        """
        self._check()
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
        """What the final model predicts for any points, private ones included, without limit.

        X: points (q, ...), of which the model gets a copy.

        Guarantee: as the class; a prediction says something about the point that was asked.
        Raises: ParameterError before fit; what the final model raises.
        Cost: the final model's.
        Source: as the class.
        """
        if not hasattr(self, "model_"):
            raise ParameterError("learner has no model, but fit must make it first")
        points = copy_rows(check_features("X", X), public=True)
        return getattr(self.model_, "predict", self.model_)(points)

    def __repr__(self) -> str:
        state = f"{self.used_:,} points" if hasattr(self, "model_") else "not fitted"
        choices = f"bottoms={self.bottoms!r}, private={self.private!r}"
        return f"PrivateLearner({self.labeler!r}, {shorten(self.final)}, {choices}): {state}"

    def _check(self) -> None:
        if not isinstance(self.labeler, PrivateLabeler):
            refuse("labeler", self.labeler, "it must be a PrivateLabeler")
        check_learner(self.final, "final")
        one_of("bottoms", self.bottoms, ("random", "drop"))
        one_of("private", self.private, ("records", "labels"))

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
