"""Subsample-Test-Reweigh as an estimator: parameters, fit, resume."""

from __future__ import annotations

import dataclasses
import math
import os
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any, Literal, Self

from numpy.typing import ArrayLike

from .. import local
from .._core import Features
from .._support import progress as progress_module
from .._support.notes import note, note_large_delta
from .._support.parameters import SettableParameters
from .._support.random_state import check_random_state
from .._support.stages import log_stage
from .._support.types import Bits, RandomState
from .._support.validate import refuse
from ..budget.account import Budget, spend
from ..exceptions import (
    AgentsExhausted,
    HdpFastError,
    InsufficientSamples,
    ParameterError,
    ShapeError,
)
from ..record import PrivacyRecord
from ..weights import DenseWeights
from .adapters import Learner, adapt
from .learner_epsilon import composes
from .planning import is_private, plan
from .plans import Output, Plan, Schedule
from .preparation import (
    calibrate_learner,
    make_record,
    open_journal,
    pass_over_asked,
    verify_privacy,
)
from .records import Records, validate_records
from .run import Rounds, TransferResult, is_oracle

Population = local.Agents | local.RemoteAgents | local.SQOracle


@dataclass(eq=False, repr=False)
class SubsampleTestReweigh(SettableParameters):
    """Learns on a curator's biased records a hypothesis that is good on the agents' population.

    learner: for a private run one of hdp_fast.learners; else also a scikit-learn classifier or a
    function (X, y) -> predictor. alpha, epsilon, beta, delta, chi2, kappa, eta, rounds, schedule,
    output, opt, draws: as plan; epsilon = math.inf protects no record of the curator. checkpoint:
    path of a file, made with mode 0600, from which a run that died goes on; it holds what was
    released and a digest of the records, no weights: it is the curator's alone.

    A record's weight depends on that record and on released hypotheses alone, and no draw holds it
    with probability above 1 / (kappa_eff n), kappa_eff = kappa (1 - 2**-12).

    Guarantee: (epsilon, delta)-DP for each record of the curator, under replace_one, all planned
        rounds counted whether they run or not; for each agent, locally, what its own answer has.
        Exact where the learner is. epsilon = math.inf protects the agents only.
    Raises: nothing until fit.
    Cost: none until fit.
    Source: Kohen and Sheffet 2022, Algorithms 1 and 2.

    Attributes:
        result_: what fit released.
        record_: what protects the curator's records; None for a run that is not private.
        plan_: the parameters of the run.
    """

    learner: Any
    _: dataclasses.KW_ONLY
    alpha: float
    epsilon: float
    beta: float = 0.05
    delta: float | None = None
    chi2: float | None = None
    kappa: float | None = None
    eta: float | Literal["paper"] | None = None
    rounds: int | None = None
    schedule: Schedule = "geometric"
    output: Output = "tested"
    opt: float = 0.0
    draws: int | None = None
    checkpoint: str | None = None
    result_: TransferResult = field(init=False)
    record_: PrivacyRecord | None = field(init=False)
    plan_: Plan = field(init=False)

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        agents: Population,
        *,
        budget: Budget | None = None,
        random_state: RandomState = None,
        start: SubsampleTestReweigh | None = None,
        progress: bool = False,
    ) -> Self:
        """Run all rounds, or until a test accepts.

        X: the curator's records (n, d), as the learner takes them; y: their labels, 0/1 (n,).
        agents: of the target population; where a checkpoint is resumed, the same in the same order,
        of whom those asked are passed over. For epsilon = math.inf an SQ oracle will do. budget: of
        the curator's records, charged epsilon and delta once, before the first round, and not again
        when the run is resumed. random_state: None draws from the operating system; an int or a
        Generator makes a reproducible test stream that protects nobody who knows it. start: one
        fitted in this process to the same records in the same order, private if this one is, with
        whose last weights this run begins; it stays as it is, and both runs count. progress: show a
        bar (tqdm).

        Guarantee: as the class.
        Raises: ShapeError, ParameterError; InsufficientSamples for fewer records than the plan
            needs; AgentsExhausted for fewer agents; BudgetExceeded; CheckpointError for a
            checkpoint of other data or parameters: all of them before any coin is drawn or budget
            spent. AgentsExhausted also when agents were asked by others meanwhile: resume goes on.
        Cost: each round the learner's on its draws, a prediction for n records and a handful of
            passes over n weights; 30 bytes a record beside X.
        Source: Kohen and Sheffet 2022, Algorithms 1 and 2.
        """
        check_random_state(random_state)
        records = validate_records(X, y)
        self._check_agents(agents, records)
        if budget is not None and not is_private(self.epsilon):
            refuse("epsilon", self.epsilon, "only a private run can be charged to a budget")
        run = self._begin(records, agents, random_state, start)
        with _charge(budget, run.record):
            return self._finish(run, records, agents, progress)

    def resume(self, X: Any, y: ArrayLike, agents: Population, *, progress: bool = False) -> Self:
        """Go on with a fit of this object that ended for want of agents, by an error or by Ctrl-C.

        X, y: the same records. agents: others of the target population, or those of fit; the
        number asked so far is not passed over here. Nothing is charged again, and no round that
        anybody has seen is run twice. progress: as fit.

        Guarantee: as the class; that of fit is not spent a second time.
        Raises: ParameterError when nothing was interrupted; CheckpointError for other records;
            AgentsExhausted.
        Cost: as fit, for what is left of it.
        Source: as fit.
        """
        run: Rounds | None = getattr(self, "_interrupted", None)
        if run is None:
            raise ParameterError("resume goes on with a fit of this object, but none was stopped")
        records = validate_records(X, y)
        self._check_agents(agents, records)
        records.require_match(run.journal.settings)
        return self._finish(run, records, agents, progress)

    def predict(self, X: Any) -> Bits:
        """The predictions of the hypothesis that fit released.

        X: as TransferResult.predict. Returns uint8 (m,).

        Raises: HdpFastError before fit; as TransferResult.predict.
        Cost: as TransferResult.predict.
        Source: none.
        """
        result: TransferResult | None = getattr(self, "result_", None)
        if result is None:
            raise HdpFastError("SubsampleTestReweigh has not learned yet: call fit first")
        return result.predict(X)

    def plan(self, n: int, *, agents_epsilon: float | None = None) -> Plan:
        """The parameters that fit will use for n records.

        n: number of records; agents_epsilon: of an agent's answer, None for an SQ oracle.

        Raises: as the function plan.
        Cost: as the function plan.
        Source: as the function plan.
        """
        return self._plan(n, agents_epsilon, self.draws)

    def __getstate__(self) -> dict[str, Any]:
        # Private weights and a run with other people's agents stay in this process.
        return {key: value for key, value in self.__dict__.items() if key[0] != "_"}

    def __repr__(self) -> str:
        result = getattr(self, "result_", "not fitted")
        return f"SubsampleTestReweigh({self.learner!r}, alpha={self.alpha}, {result})"

    def _begin(
        self,
        records: Records,
        agents: Any,
        random_state: RandomState,
        start: SubsampleTestReweigh | None,
    ) -> Rounds:
        """A run at its beginning, or where its checkpoint says; nothing is drawn yet."""
        plan = self._plan_run(records, agents)
        learner = adapt(self.learner)
        weights = self._begin_weights(plan, records, start)
        if is_private(self.epsilon):
            learner = adapt(self._make_private(plan, records, weights, start))
        if isinstance(learner.prepare(records.X), Features) and isinstance(agents, local.Agents):
            agents.require_bits()
        if weights.updates_left < plan.rounds:
            left = f"only {weights.updates_left} are left before the weights run out"
            raise ParameterError(f"rounds = {plan.rounds} with start, but {left}")
        self._check_checkpoint(learner, start)
        self._require_agents(plan, agents)
        journal = open_journal(self.checkpoint, self.learner, plan, records, agents, random_state)
        pass_over_asked(agents, journal)
        record = make_record(self.learner, plan, journal.settings["run"], random_state)
        return Rounds(plan, learner, weights, journal, record)

    def _plan(self, n: int, agents_epsilon: float | None, draws: int | None) -> Plan:
        goal = {
            **self.get_params(deep=False),
            "draws": draws,
            "n": n,
            "agents_epsilon": agents_epsilon,
        }
        del goal["learner"], goal["checkpoint"]
        return plan(self.learner, **goal)

    def _plan_run(self, records: Records, agents: Any) -> Plan:
        """The plan for these records and agents.

        Raises: InsufficientSamples where they are too few, ParameterError.
        """
        agents_epsilon = None if is_oracle(agents) else agents.epsilon
        n, draws = len(records), self.draws
        says_draws = hasattr(self.learner, "sample_size") or composes(self.learner)
        if not (is_private(self.epsilon) or draws is not None or says_draws):
            # The number of draws in the paper's experiments.
            rounds = self._plan(n, agents_epsilon, 1).rounds
            draws = min(n, math.ceil((records.d + math.log(rounds / self.beta)) / self.alpha))
        planned = self._plan(n, agents_epsilon, draws)
        if n < planned.n:
            raise InsufficientSamples(f"X has {n:,} records, but the plan needs {planned.n:,}")
        if planned.delta is not None:
            note_large_delta(planned.delta, n)
        return planned

    def _begin_weights(
        self, plan: Plan, records: Records, start: SubsampleTestReweigh | None
    ) -> DenseWeights:
        """Equal weights, or those that an earlier run has left."""
        n = len(records)
        # Without projection: a single record may have all the weight.
        kappa = plan.kappa if plan.kappa is not None else min(1.0, math.nextafter(1 / n, 2))
        if start is None:
            return DenseWeights(n, kappa, plan.eta)
        earlier: DenseWeights | None = getattr(start, "_weights", None)
        if earlier is None:
            refuse("start", start, "it must have been fitted in this process")
        if earlier.n != n:
            raise ShapeError(f"start was fitted to {earlier.n:,} records, but X has {n:,}")
        if not records.match(start._settings):
            raise ParameterError("start was fitted to other records, but it must be to X and y")
        return earlier.with_parameters(kappa, plan.eta)

    def _make_private(
        self,
        plan: Plan,
        records: Records,
        weights: DenseWeights,
        start: SubsampleTestReweigh | None,
    ) -> Any:
        """The learner with the plan's noise, once all rounds are proved to be private."""
        # Weights that follow hypotheses which nothing protects depend on everybody's records.
        if start is not None and start.record_ is None:
            refuse("start", start, "a private run can only go on from a private one")
        learner = calibrate_learner(self.learner, plan, len(records))
        verify_privacy(learner, plan, weights)
        return learner

    def _check_agents(self, agents: Any, records: Records) -> None:
        if is_oracle(agents):
            if is_private(self.epsilon) or not hasattr(agents, "query"):
                rule = "it must be Agents or RemoteAgents, or for epsilon = inf an SQ oracle"
                refuse("agents", agents, rule)
        elif isinstance(agents, local.Agents) and (agents.d,) != records.X.shape[1:]:
            rule = f"X has shape {records.X.shape}"
            raise ShapeError(f"agents have {agents.d} features, but {rule}")

    def _require_agents(self, plan: Plan, agents: Any) -> None:
        """Refuse to begin a run whose tests need more agents than there are.

        Raises: AgentsExhausted.
        """
        is_begun = self.checkpoint is not None and os.path.exists(self.checkpoint)
        if not is_oracle(agents) and not is_begun and agents.remaining < plan.N:
            rule = f"the plan needs {plan.N:,}: fewer rounds or schedule = 'final' need fewer"
            raise AgentsExhausted(f"agents = {agents.remaining:,} left, but {rule}")

    def _check_checkpoint(self, learner: Learner, start: SubsampleTestReweigh | None) -> None:
        if self.checkpoint is None:
            return
        if start is not None:
            rule = "the weights that a run starts with are not saved: leave one of them out"
            raise ParameterError(f"checkpoint = {self.checkpoint!r} with start, but {rule}")
        if not learner.can_restore:
            rule = "only hypotheses that JSON can carry are saved: use a learner with restore"
            raise ParameterError(f"checkpoint = {self.checkpoint!r}, but {rule}")

    def _finish(self, run: Rounds, records: Records, agents: Any, progress: bool) -> Self:
        self._interrupted: Rounds | None = run
        log_stage("transfer: %d rounds planned", run.plan.rounds)
        with run.journal.lock(), progress_module.bar(run.plan.rounds, "round", progress) as bar:
            result = run.finish(records, agents, bar)
        self.result_ = dataclasses.replace(result, feature_names_in_=records.names)
        log_stage("transfer: %d rounds run", self.result_.rounds)
        self.plan_, self.record_ = run.plan, run.record
        self._weights, self._interrupted = run.weights, None
        self._settings: dict[str, Any] = run.journal.settings
        _note_constants(self.result_)
        return self


def _note_constants(result: TransferResult) -> None:
    """Say that a hypothesis is not shown to be better than none."""
    if result.constants is None or result.beats_constants:
        return
    tested, better = result.tested, result.constants.better
    error = f"error {tested.value:.3f} in [{tested.low:.3f}, {tested.high:.3f}]"
    constant = f"{result.comparison} than a constant, whose error is about {better:.3f}"
    note(f"{error} is {constant}: a smaller alpha with more agents, or another class, may help")


def _charge(budget: Budget | None, record: PrivacyRecord | None) -> AbstractContextManager[object]:
    """A reservation, unless an earlier part of the same run has made it."""
    if budget is None or record is None:
        return nullcontext()
    if isinstance(budget, Budget) and any(
        entry.record.mechanism == record.mechanism for entry in budget.records
    ):
        return nullcontext()
    return spend(budget, record)
