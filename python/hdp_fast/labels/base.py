"""What labelers have in common: parameters, one ensemble, one account, one record."""

from __future__ import annotations

import os
import secrets
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from .._support.notes import note_large_delta
from .._support.parameters import SettableParameters
from .._support.progress import bar, log_stage
from .._support.random_state import check_random_state, make_generator
from .._support.types import RandomState
from .._support.validate import positive_int, refuse, shorten
from ..budget.account import Budget, spend
from ..data.records import check_features
from ..exceptions import CheckpointError, HdpFastError, ParameterError
from ..record import PrivacyRecord, rng_of
from ..stability.gaussian import GaussianVote
from ..stability.plans import AnyTable, VotePlan
from ..stability.tables import HazardTable
from .ensemble import MOST_MEMBERS, note_flips, require_records, train_ensemble
from .fitted import Fitted, UsageAccount
from .members import check_learner
from .partition import Source, choose_chunks
from .preflight import Preflight
from .saved_files import ledger_of, new_file, pack_members, read_file, resolve_path

# The most bottoms, and the most queries: scores ask twice as many of a table.
_MOST = 1 << 39


@dataclass(kw_only=True, repr=False, eq=False)
class LabelerParameters(SettableParameters):
    """The parameters that every labeler has.

    Attributes:
        learner: The learner of every member.
        epsilon: Privacy parameter of all answers together.
        delta: Privacy parameter of all answers together.
        queries: Number of queries that may be asked.
        max_unstable: Number of the bottom that ends the answers.
        beta: Failure probability of all answers together.
        agreement: Probability that a member is right on a stable query.
        members: Number of members; None takes as many as the plan needs.
        diagnose: Whether faults of members are shown, which protects nothing.
    """

    learner: Any = field(kw_only=False)
    epsilon: float
    delta: float
    queries: int
    max_unstable: int
    beta: float = 0.05
    agreement: float = 0.75
    members: int | None = None
    diagnose: bool = False


class Labeler(LabelerParameters, ABC):
    """The part of a labeler that does not depend on what its members predict.

    Attributes:
        plan_: The VotePlan: the table, and the numbers of members.
        members_: Number of members in use.
        record_: PrivacyRecord of all answers together; None where diagnose=True protects nothing.
        diagnosis_: With diagnose=True, what went wrong so far, by number of the chunk.
    """

    _source: ClassVar[str]

    plan_: VotePlan
    members_: int
    record_: PrivacyRecord | None
    diagnosis_: dict[int, str]

    _state: Fitted | None = None

    @abstractmethod
    def plan(self) -> VotePlan:
        """Plans the table and the number of members for these parameters, without data.

        Returns:
            A VotePlan.
        """

    def _limits(self) -> tuple[int, int]:
        """The numbers of unstable queries and of all queries, as a table takes them."""
        unstable = positive_int("max_unstable", self.max_unstable, _MOST)
        return unstable, positive_int("queries", self.queries, _MOST)

    def _goal(self) -> dict[str, float]:
        return {"epsilon": self.epsilon, "delta": self.delta, "beta": self.beta}

    @property
    def queries_left(self) -> int:
        """Number of queries that may still be asked.

        For scores it is the number of votes that may still be held, up to two for each score.
        """
        return self._require_fitted().queries_left()

    @property
    def unstable_left(self) -> int | None:
        """Number of bottoms until all answers end; None where there are none, or any number."""
        return self._require_fitted().unstable_left()

    def check(self, Q: Any, *, records: int | None = None) -> None:
        """Checks whether members could answer for public points, and spends nothing.

        The learner is trained as a member would be, on rows of Q with made-up labels that hold
        every class, and predicts for all of Q. For fewer than four points the rows are made up,
        too. After fit, the container, columns and dtypes of Q are compared with those of X. label
        and score do the same before they ask, unless preflight=False.

        Args:
            Q: Public points (q, ...), as label or score takes them.
            records: Number of records to train on, before fit, if it is public: the learner is
                tried on as many rows as a member would get. None tries 256 rows, or more where
                there are many classes.

        Raises:
            ShapeError: Q has other features than X.
            ParameterError: Q is of another kind than X; or the learner fails in most trials, or
                predicts something else than classes. The error shows what the learner raised.

        Guarantee:
            No private value is read: only facts that are public, such as the columns of X.

        Cost:
            The training of one to seven members, and their predictions for Q. For more points of
            the same kind only the predictions.
        """
        if self._state is not None:
            self._state.preflight.check(self._state.check_points(Q))
            return
        check_learner(self.learner)
        size = None
        if records is not None:
            size = -(-positive_int("records", records, _MOST) // self._members(self.plan()))
        self._preflight(None, size).check(check_features("Q", Q))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Keeps the members in a file, and what they have used up in a ledger beside it.

        From now on this labeler and all that are loaded from the file, in any process, share what
        is left. A query is paid for before its answer is shown, so that no crash gives one back.

        Keep no copies of the ledger. Nothing can tell an old copy of it from the latest one:
        whoever restores one, alone or with the file, gets back all queries that have been asked
        since, and the answers to them are not paid for.

        A member that cannot be pickled votes for the smallest label, or scores 0, where the file is
        loaded, and nothing names it. A ledger whose labeler never came, since save was killed, is
        used again.

        Args:
            path: Path of a new file, which gets mode 0600: it holds what the records taught, and is
                as private as they are. The ledger is the path with ".ledger" added.

        Raises:
            ParameterError: The file exists or cannot be written, there are no members yet, or none
                can be pickled.
            CheckpointError: The labeler has been saved already, or the ledger belongs to another
                one.
            ImportError: joblib is not installed.

        Guarantee:
            That of the class, for all loaded labelers together, if the ledger is never replaced by
            an older one. The error for members none of which can be pickled is not covered.

        Cost:
            The pickles of the members, twice in memory.
        """
        fitted, file, key = self._require_fitted(), resolve_path(path), secrets.token_hex(16)
        ensemble, record = fitted.ensemble, fitted.record
        fitted.account.require_memory(ledger_of(file))
        state = {
            "parameters": self._saved_parameters(),
            "plan": replace(fitted.plan),
            "members": fitted.members,
            "record": None if record is None else record.to_json(),
            "ensemble": replace(ensemble, members=pack_members(ensemble), rng=None),
            "key": key,
        }
        with (
            new_file(file, type(self).__name__, state) as publish,
            fitted.account.move_to(ledger_of(file), key, file),
        ):
            publish()

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        *,
        trusted: bool = False,
        random_state: RandomState = None,
    ) -> Self:
        """Opens what save wrote.

        The learner, which is no longer needed, is None. Nothing is charged.

        Args:
            path: The path that save got.
            trusted: True if you know who wrote the file. It holds pickles, and loading it runs
                whatever code somebody put into it; hence anything but True is refused.
            random_state: None draws from the operating system; an int or a Generator makes a
                reproducible stream for tests, which protects no one.

        Returns:
            The labeler.

        Raises:
            ParameterError: trusted is not True, before the file is read; or random_state is of the
                wrong kind.
            CheckpointError: The file is not a whole saved labeler of this class with its own
                ledger.
            ImportError: joblib is not installed.

        Guarantee:
            That of save.

        Cost:
            The pickles of the members, each unpacked at its first answer.
        """
        check_random_state(random_state)
        file = resolve_path(path)
        if trusted is not True:
            rule = f"loading {str(file)!r} runs whatever code is in it"
            advice = "pass trusted=True if you know who wrote it"
            refuse("trusted", trusted, f"{rule}: {advice}")
        state = read_file(file, cls.__name__)
        account = UsageAccount(ledger_of(file), state["key"])
        try:
            return cls._restore(state, account, random_state)
        except (HdpFastError, TypeError, ValueError) as error:
            rule = f"it must be a file that this hdp_fast can read ({error})"
            raise CheckpointError(f"path = {str(file)!r}, but {rule}") from error

    @classmethod
    def _restore(
        cls, state: dict[str, Any], account: UsageAccount, random_state: RandomState
    ) -> Self:
        labeler = cls(None, **state["parameters"])
        text, ensemble = state["record"], state["ensemble"]
        record = None if text is None else PrivacyRecord.from_json(text)
        if random_state is not None:
            ensemble.rng = make_generator(random_state)
            record = record and replace(record, rng=rng_of(random_state))
        untried = replace(labeler._preflight(None, None), facts=ensemble.facts)
        classes = labeler._label_set()
        labeler._begin(Fitted(state["plan"], record, ensemble, account, classes, untried))
        return labeler

    def _train(
        self,
        source: Source,
        ids: Any,
        budget: Budget | None,
        random_state: RandomState,
        progress: bool,
        preflight: bool,
    ) -> Self:
        plan = self.plan()
        k = self._members(plan)
        check_random_state(random_state)
        check_learner(self.learner)
        n = source.n
        if ids is None:
            require_records(plan, n, k, f"X has {n:,} records")
        split = choose_chunks(ids, source, k)
        if budget is not None and self.diagnose:
            raise ParameterError("budget is given, but diagnose=True protects nothing to charge")
        classes = self._label_set()
        relation = "replace_one" if ids is None else _relation_of_people(budget)
        record = self._record(plan.table, k, relation, random_state)
        note_flips(plan, k)
        if ids is None:
            note_large_delta(self.delta, n)
        X, y = source.first
        # With ids the number of records is private.
        trial = self._preflight(y, n // k if ids is None else None)
        if preflight and not self.diagnose:
            trial.check_container(X)
        log_stage("labels: %d members learn", k)
        with bar(k, "member", progress) as shown, spend(budget, record):
            ensemble = train_ensemble(self.learner, source, split, k, random_state, shown)
            shown_record = None if self.diagnose else record
            trial.facts = ensemble.facts
            fitted = Fitted(plan, shown_record, ensemble, UsageAccount(), classes, trial)
            self._note(fitted, [member.fault for member in ensemble.members])
            self._begin(fitted)
        return self

    def _begin(self, fitted: Fitted) -> None:
        self.plan_, self.members_, self.record_ = fitted.plan, fitted.members, fitted.record
        self.diagnosis_ = fitted.diagnosis
        self._state = fitted

    def _record(
        self, table: AnyTable, k: int, relation: str, random_state: RandomState
    ) -> PrivacyRecord:
        limits = f"queries={table.queries}"
        if isinstance(table, HazardTable):
            limits = f"max_unstable={table.max_unstable}, {limits}"
        record = table.session().record
        return replace(
            record,
            mechanism=f"labels.{type(self).__name__}, {type(table).__name__}, {limits}, k={k}",
            source=record.source if isinstance(table, GaussianVote) else self._source,
            neighbors=relation,  # type: ignore[arg-type]
            rng=rng_of(random_state),
        )

    def _members(self, plan: VotePlan) -> int:
        """How many members are used."""
        if self.members is None:
            return plan.k
        return positive_int("members", self.members, MOST_MEMBERS)

    def _preflight(self, y: NDArray[Any] | None, size: int | None) -> Preflight:
        """Trials of the learner, with labels of the dtype of y alone, and none of its entries."""
        classes = self._label_set()
        targets = classes
        if not len(classes):
            texts = y is not None and y.dtype.kind in "OU"
            targets = (
                np.array(["0", "1"], object)
                if texts
                else np.array([0, 1], None if y is None else y.dtype)
            )
        return Preflight(self.learner, classes, targets, None, size)

    def _label_set(self) -> NDArray[Any]:
        """The labels that members vote for; empty where they score."""
        return np.empty(0)

    def _note(self, fitted: Fitted, faults: list[str]) -> None:
        """Notes the faults of members, if they are to be shown."""
        if self.diagnose:
            shown = {chunk: fault for chunk, fault in enumerate(faults) if fault}
            fitted.diagnosis.update(shown)

    def _saved_parameters(self) -> dict[str, Any]:
        """All parameters but the learner, which a loaded labeler does not need."""
        parameters = self.get_params(deep=False)
        del parameters["learner"]
        return parameters

    def _require_fitted(self) -> Fitted:
        if self._state is None:
            raise ParameterError("labeler has no members, but fit must train them first")
        return self._state

    def __reduce_ex__(self, protocol: Any) -> Any:
        if self._state is not None:
            reason = "a copy could ask the same queries again, and would show its members"
            raise TypeError(f"a fitted labeler can't be copied or pickled: {reason}; use save")
        return super().__reduce_ex__(protocol)

    def __repr__(self) -> str:
        parameters = self._saved_parameters().items()
        options = ", ".join(f"{name}={shorten(value)}" for name, value in parameters)
        state = "not fitted"
        if self._state is not None:
            bottoms = self.unstable_left
            state = "" if bottoms is None else f"{bottoms:,} bottoms and "
            state = f"{self.members_:,} members, {state}{self.queries_left:,} queries left"
        return f"{type(self).__name__}({shorten(self.learner)}, {options}): {state}"


def _relation_of_people(budget: Budget | None) -> str:
    """What a record states of ids: the relation of the budget, where it follows.

    Whatever happens to the rows of one id, added, removed or replaced, changes one chunk.
    """
    known = ("replace_person", "add_remove_person")
    if isinstance(budget, Budget) and budget.neighbors in known:
        return budget.neighbors
    return "add_remove"
