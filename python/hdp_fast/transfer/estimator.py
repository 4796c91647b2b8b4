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
from .._support import progress as progress_module
from .._support.notes import keep_result, note, note_large_delta
from .._support.parameters import SettableParameters
from .._support.progress import log_stage
from .._support.random_state import check_random_state
from .._support.types import Bits, RandomState, Variant
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
from .automatic import note_useless
from .boosted import plan_boosted
from .learner import Learner, adapt, composes
from .plans import Auto, Output, Plan, Schedule, WeighBy, is_auto, is_private, validate_goal
from .preparation import (
    calibrate_learner,
    check_printed_answers,
    count_offered,
    is_oracle,
    make_record,
    open_journal,
    pass_over_asked,
    verify_privacy,
)
from .released_rounds import ReleasedRounds, collect_rounds, compute_weights
from .results import TransferResult
from .run import Run
from .run_planning import make_plan
from .run_records import RunRecords, validate_records

Population = local.Agents | local.RemoteAgents | local.SQOracle


@dataclass(eq=False, repr=False)
class SubsampleTestReweigh(SettableParameters):
    """Learns on a curator's biased records a hypothesis that is good on the agents' population.

    Only learner, epsilon and delta are needed. The settings that are "auto" follow public rules,
    which `transfer.plan_rounds` states, and `result_.plan` shows what they chose.

    The weight of a record depends on that record and on released hypotheses alone. No draw holds a
    record with probability above 1 / (kappa_eff n), where `kappa_eff = kappa (1 - 2**-12)`.

    Args:
        learner: For a private run a learner of `hdp_fast.learners`, or an object with the same
            methods; see `transfer.plan_rounds`. Otherwise also a scikit-learn classifier, or a
            function (X, y) that returns a predictor.
        alpha: Half width of the interval of every test, and error of the learner on its draws, in
            (0, 1). If tests may accept, 3 alpha + opt must be below 1/2. "auto" uses all agents in
            tests that are as narrow as they allow.
        epsilon: Privacy parameter of the curator's records, above 0; math.inf protects none of
            them.
        beta: Failure probability, in (0, 1), of each of three or four parts.
        delta: Privacy parameter of the curator's records, in (0, 1); None if epsilon is math.inf.
        chi2: Public bound, at least 0, on the chi-squared divergence of target from source, from
            which kappa, eta and rounds then follow. None without a bound.
        kappa: Density of the weights, in (0, 1]. "auto" follows from chi2, or without it from the
            numbers of records and hypotheses and from epsilon.
        eta: Step size of the weights, in (0, 4]. "paper" takes alpha / 8, and "auto" 1 where
            another number is chosen without chi2, else 3 alpha / 2.
        rounds: Largest number of rounds, at least 1. "auto" follows from chi2, or from kappa.
        schedule: When hypotheses are tested: "every" round, "geometric", "final" or, for a majority
            vote without agents, "never". "auto" takes "geometric"; where a number is chosen
            without chi2, "every" up to 10 rounds and "final" beyond; and "never" without agents.
        output: Which hypothesis is released: the first that is "tested" with success, that with the
            "smallest" estimate, or the "majority" vote of all rounds. "auto" takes "tested"; where
            a number is chosen without chi2, "smallest"; and "majority" if nothing is tested.
        opt: Least error of the class on the target, in [0, 1).
        draws: Records that a round draws, for a run that is not private. None takes the sample_size
            of the learner; if it has none, `(d + log(rounds / beta)) / alpha`, at most n, as in the
            paper's experiments.
        weigh_by: What the weights follow: "errors", 1 where a hypothesis predicts another label and
            0 where not; or "losses", the losses in [0, 1] that a hypothesis has of its own, which
            for linear models are shares of the largest possible loss, as Kohen and Sheffet print
            it. That is so large that a typical loss is a small share and hardly moves a weight.
        checkpoint: Path of a file, made with mode 0600, from which a run that died goes on. It
            holds what was released and a digest of the records, but no weights. It is the curator's
            alone, since guesses of the records can be tried against the digest. None keeps the run
            in memory.
        assume: "boostable" runs the plan of `transfer.plan_boosted`: the majority
            vote of all rounds, without agents. It takes error, chi2, epsilon, delta, beta and opt,
            and promises the error if the class is boostable. None tests hypotheses by agents.
        error: Error on the target to promise, in (0, 1), with assume="boostable"; None else.
        variant: "tight", or "paper" for Algorithm 2 as printed, for epsilon = math.inf Algorithm 1,
            and for a PrivateSGD Algorithm 4, as `transfer.plan_rounds` says. It takes alpha, beta,
            chi2, opt and rounds, and `local.Agents` of a delta at least as large as this one: each
            answers with the printed Gaussian noise. No one is asked about the constants. For other
            hypotheses that have losses of their own, weigh_by = "losses" uses these in tests and
            weights, and "errors" uses them in neither.

    Attributes:
        result_: What `fit` released.
        record_: Privacy record of the curator's data; None for a run that is not private.
        plan_: Parameters of the run.

    Guarantee:
        (epsilon, delta)-DP for each record of the curator, under "replace_one"; all planned rounds
        are counted, whether they run or not. For each agent, locally, the guarantee of its own
        answer. The numerics are exact where those of the learner are. epsilon = math.inf protects
        the agents only. With variant = "paper" the noise does not go with epsilon, and record_
        states, and a budget is charged, what the printed rounds really spend on the records of this
        fit: at most epsilon, or the fit is refused, and with `plan_.paper.n` records far less.
        Answers of agents are then (epsilon of the agents, delta)-DP.

    Source:
        Kohen and Sheffet 2022, Algorithms 1 and 2.

    Examples:
        >>> import numpy as np
        >>> from hdp_fast import learners, local, transfer
        >>> rng = np.random.default_rng(0)
        >>> S, T = rng.integers(0, 2, (2, 100_000, 4), dtype=np.uint8)  # source and target
        >>> S[:, 1] |= rng.random(100_000) < 0.5  # the curator's records are biased
        >>> agents = local.Agents(T, T[:, 1] & T[:, 2], epsilon=2.0)
        >>> learner = learners.ExponentialLearner(learners.Conjunctions(4, 2), epsilon=1.0)
        >>> goal = {"alpha": 0.05, "epsilon": 1.0, "delta": 1e-6, "kappa": 0.1, "rounds": 20}
        >>> model = transfer.SubsampleTestReweigh(learner, eta=0.5, **goal)
        >>> model.fit(S, S[:, 1] & S[:, 2], agents).result_.hypothesis["features"]
        [1, 2]
    """

    learner: Any
    _: dataclasses.KW_ONLY
    alpha: float | Auto | None = "auto"
    epsilon: float
    beta: float = 0.05
    delta: float | None = None
    chi2: float | None = None
    kappa: float | Auto | None = "auto"
    eta: float | Literal["paper", "auto"] | None = "auto"
    rounds: int | Auto | None = "auto"
    schedule: Schedule | Auto = "auto"
    output: Output | Auto = "auto"
    opt: float = 0.0
    draws: int | None = None
    weigh_by: WeighBy = "errors"
    checkpoint: str | None = None
    assume: Literal["boostable"] | None = None
    error: float | None = None
    variant: Variant = "tight"
    result_: TransferResult = field(init=False)
    record_: PrivacyRecord | None = field(init=False)
    plan_: Plan = field(init=False)

    @keep_result
    def fit(
        self,
        X: Any,
        y: ArrayLike | None = None,
        agents: Population | None = None,
        *,
        budget: Budget | None = None,
        random_state: RandomState = None,
        start: SubsampleTestReweigh | ReleasedRounds | None = None,
        progress: bool = False,
    ) -> Self:
        """Runs the rounds until a test accepts or all of them are over.

        A UtilityWarning says when the released hypothesis is not shown to be better than a
        constant, and when delta is above 1 / n.

        Args:
            X: The curator's records of shape (n, d), in a form that the learner takes. Or
                data.Chunks of such with their labels, for a learner that takes drawn records: the
                number of a record is its place in all parts, in the order in which they came.
            y: Their labels 0 and 1, of shape (n,); None beside Chunks.
            agents: Agents of the target population, `local.Agents` or `local.RemoteAgents`. With a
                checkpoint that exists, pass the same agents in the same order: those who were asked
                are passed over. RemoteAgents need not all answer: the plan asks as many as their
                response rate says, and uses the answers that arrive. For epsilon = math.inf an SQ
                oracle is accepted as well. None releases the majority vote of all rounds untested,
                which needs output = "majority" or assume = "boostable".
            budget: Budget of the curator's records. It is charged epsilon and delta once, before
                the first round, and not again when the run is resumed. None charges nothing.
            random_state: None draws from the operating system. An int or a numpy Generator makes a
                reproducible stream for tests, which protects no one who knows it.
            start: A model that was fitted in this process to the same records in the same order,
                and privately if this run is private. This run begins with its last weights. It
                stays as it is, and the privacy losses of both runs add up. Or what `hand_over` of a
                private run returned, which may have read other records of the same columns: their
                weights are then computed from the hypotheses. None begins with equal weights.
            progress: Whether to show a progress bar (tqdm).

        Returns:
            The model itself.

        Raises:
            ShapeError: X, y, agents and start do not fit each other.
            ParameterError: A parameter is out of range or excludes another one; or Chunks come with
                ids or with a learner that draws for itself, such as PrivateSGD.
            InsufficientSamples: There are fewer records than the plan needs.
            AgentsExhausted: There are fewer agents than the plan needs. It is also raised during
                the run, when others have asked the agents meanwhile, or none of those who were
                asked about a hypothesis has answered; `resume` then goes on with further agents.
            BudgetExceeded: The budget does not hold epsilon and delta.
            CheckpointError: The checkpoint belongs to other records or parameters, is damaged, is
                held by another run, or cannot be written. All these errors, but for agents that
                others have asked and a file that can no longer be written, are raised before any
                coin is drawn or budget spent.

        Guarantee:
            (epsilon, delta)-DP for each record of the curator, under "replace_one", and for each
            agent, locally, the guarantee of its own answer; see the class.

        Cost:
            In each round what the learner needs for its draws, one prediction for n records, and a
            handful of passes over n weights. Memory of 30 bytes for each record beside X. Chunks
            are read twice where an ExponentialLearner makes bits of them that take at most 64 MB,
            and else once at first and twice in each round: for what was drawn, and for its errors.
            In memory are weights, 27 bytes for each record, a block, and the drawn records or bits.

        Source:
            Kohen and Sheffet 2022, Algorithms 1 and 2.
        """
        check_random_state(random_state)
        records = validate_records(X, y, self.learner)
        self._check_agents(agents, records)
        if budget is not None and not is_private(self.epsilon):
            refuse("epsilon", self.epsilon, "only a private run can be charged to a budget")
        run = self._begin(records, agents, random_state, start)
        # Kept apart: this object itself may be the start.
        earlier = start if isinstance(start, ReleasedRounds) else getattr(start, "_released", None)
        self._earlier: ReleasedRounds | str | None = earlier
        with _charge(budget, run.record):
            return self._finish(run, records, agents, progress)

    def resume(
        self,
        X: Any,
        y: ArrayLike | None = None,
        agents: Population | None = None,
        *,
        progress: bool = False,
    ) -> Self:
        """Goes on with a fit that ended for want of agents, by an error or by Ctrl-C.

        Nothing is charged again, and no round that anybody has seen is run twice.

        Args:
            X: The records that were passed to `fit`; Chunks in the same parts.
            y: Their labels; None beside Chunks.
            agents: Other agents of the target population, or those of `fit`; None for a run without
                agents. No agents are passed over here.
            progress: Whether to show a progress bar (tqdm).

        Returns:
            The model itself.

        Raises:
            ShapeError: X, y and agents do not fit each other.
            ParameterError: No fit of this model was stopped, or this process was forked from the
                one that ran it.
            CheckpointError: The records are not those of the run that was stopped, or the
                checkpoint cannot be used.
            AgentsExhausted: There are fewer agents left than the next test needs; `resume` can be
                called again.

        Guarantee:
            That of `fit`, which is not spent a second time.

        Cost:
            That of the rounds that are left.

        Source:
            Kohen and Sheffet 2022, Algorithms 1 and 2.
        """
        run: Run | None = getattr(self, "_interrupted", None)
        if run is None:
            raise ParameterError("resume goes on with a fit of this object, but none was stopped")
        records = validate_records(X, y, self.learner)
        self._check_agents(agents, records)
        records.require_match(run.journal.settings)
        return self._finish(run, records, agents, progress)

    def predict(self, X: Any) -> Bits:
        """Predicts labels by the hypothesis that `fit` released.

        Args:
            X: Records of shape (m, d), as for `TransferResult.predict`.

        Returns:
            Labels, uint8 of shape (m,).

        Raises:
            HdpFastError: The model is not fitted.
            ShapeError: X has not d columns.
            ParameterError: An entry is none that the hypothesis takes, or a column of a frame is
                missing, was not learned from, or comes twice.
        """
        result: TransferResult | None = getattr(self, "result_", None)
        if result is None:
            raise HdpFastError("SubsampleTestReweigh has not learned yet: call fit first")
        return result.predict(X)

    def hand_over(self) -> ReleasedRounds:
        """Hands the last weights to another curator, as the hypotheses that made them.

        Returns:
            The released hypotheses of all rounds that moved the weights, those of the runs that
            this one started with included.

        Raises:
            HdpFastError: The model was not fitted in this process.
            ParameterError: The run was not private, so that its hypotheses may tell its records; a
                hypothesis has no description; or the weights follow losses of the hypotheses' own.

        Guarantee:
            Post-processing of what was released and charged; nothing else is spent.

        Source:
            Kohen and Sheffet 2022, Section 5, the second of their open problems.
        """
        rounds: ReleasedRounds | str | None = getattr(self, "_released", None)
        if rounds is None:
            raise HdpFastError(
                "SubsampleTestReweigh has not learned in this process: call fit first"
            )
        if isinstance(rounds, str):
            raise ParameterError(f"hand_over needs a run of released hypotheses, but {rounds}")
        return rounds

    def plan(
        self,
        n: int,
        *,
        N: int | None = None,
        agents_epsilon: float | None = None,
        response_rate: float = 1.0,
    ) -> Plan:
        """Computes the parameters that `fit` will use for n records.

        Args:
            n: Number of records.
            N: Number of agents that there are; None takes alpha = 0.1 where alpha is "auto".
            agents_epsilon: Privacy parameter of each agent's answer, above 0; None for an SQ
                oracle.
            response_rate: Public share of the agents asked who will answer, in (0, 1].

        Returns:
            The plan.

        Raises:
            ParameterError: As for `transfer.plan_rounds`, or N comes without agents_epsilon.

        Cost:
            A few seconds for a private run.
        """
        agents = {"agents_epsilon": agents_epsilon, "response_rate": response_rate, "N": N}
        made = self._plan(n, agents, self.draws)
        note_useless(made)
        return made

    def __getstate__(self) -> dict[str, Any]:
        # Private weights and a run with its agents stay in this process.
        return {key: value for key, value in self.__dict__.items() if key[0] != "_"}

    def __repr__(self) -> str:
        result = getattr(self, "result_", "not fitted")
        return f"SubsampleTestReweigh({self.learner!r}, alpha={self.alpha}, {result})"

    def _begin(
        self,
        records: RunRecords,
        agents: Any,
        random_state: RandomState,
        start: SubsampleTestReweigh | ReleasedRounds | None,
    ) -> Run:
        """A run at its beginning, or where its checkpoint left it; nothing is drawn yet."""
        plan = self._plan_run(records, agents)
        learner = adapt(self.learner)
        weights = self._begin_weights(plan, records, start)
        spent = plan.epsilon
        if is_private(self.epsilon):
            private, spent = self._make_private(plan, records, weights, start)
            learner = adapt(private)
        if records.become_bits(learner) and isinstance(agents, local.Agents):
            agents.require_bits()
        if weights.updates_left < plan.rounds:
            left = f"only {weights.updates_left} are left before the weights run out"
            raise ParameterError(f"rounds = {plan.rounds} with start, but {left}")
        self._check_checkpoint(learner, start)
        self._require_agents(plan, agents)
        journal = open_journal(self.checkpoint, self.learner, plan, records, agents, random_state)
        pass_over_asked(agents, journal)
        record = make_record(self.learner, plan, journal.settings["run"], random_state, spent)
        note_useless(plan)
        return Run(plan, learner, weights, journal, record)

    def _plan(self, n: int, agents: dict[str, Any], draws: int | None) -> Plan:
        """The plan for n records, and for agents of whom it is told what `plan_rounds` takes."""
        if self.assume is not None:
            if self.variant != "tight":
                refuse("variant", self.variant, "with assume = 'boostable' it must be 'tight'")
            return self._plan_vote()
        if self.error is not None:
            refuse("error", self.error, "it is promised with assume = 'boostable' only")
        settings = {**self.get_params(deep=False), **agents, "n": n, "draws": draws}
        for name in ("checkpoint", "assume", "error"):
            del settings[name]
        return make_plan(validate_goal(**settings))

    def _plan_vote(self) -> Plan:
        """The plan of a run that asks no agents."""
        if self.assume != "boostable":
            rule = "a run takes 'boostable' only; transfer.plan_source needs none of rounds"
            refuse("assume", self.assume, rule)
        for name in ("alpha", "kappa", "eta", "rounds", "draws"):
            value = getattr(self, name)
            if not (value is None or is_auto(value)):
                refuse(name, value, "a plan with assume = 'boostable' has none: leave it out")
        names = ("error", "chi2", "epsilon", "delta", "beta", "opt")
        return plan_boosted(self.learner, **{name: getattr(self, name) for name in names})

    def _plan_run(self, records: RunRecords, agents: Any) -> Plan:
        """The plan for these records and agents.

        Raises:
            InsufficientSamples: There are fewer records than the plan needs.
            ParameterError: As for `plan`.
        """
        asked = self._describe(agents)
        n, draws = len(records), self.draws
        says_draws = hasattr(self.learner, "sample_size") or composes(self.learner)
        says_draws = says_draws or self.variant == "paper"
        if not (is_private(self.epsilon) or draws is not None or says_draws):
            # The paper's experiments draw this number.
            first = self._plan(n, asked, 1)
            wanted = (records.d + math.log(first.rounds / first.beta)) / first.alpha
            draws = min(n, math.ceil(wanted))
        planned = self._plan(n, asked, draws)
        if n < planned.n:
            raise InsufficientSamples(f"X has {n:,} records, but the plan needs {planned.n:,}")
        if planned.delta is not None:
            note_large_delta(planned.delta, n)
        return planned

    def _describe(self, agents: Any) -> dict[str, Any]:
        """What `plan_rounds` takes of these agents."""
        if agents is None or is_oracle(agents):
            known = {"agents_epsilon": None, "response_rate": 1.0, "N": None}
            return known if agents is not None else {**known, "schedule": "never"}
        return {
            "agents_epsilon": agents.epsilon,
            "response_rate": agents.response_rate,
            "N": count_offered(self.checkpoint, agents) if is_auto(self.alpha) else None,
        }

    def _begin_weights(
        self, plan: Plan, records: RunRecords, start: SubsampleTestReweigh | ReleasedRounds | None
    ) -> DenseWeights:
        """Equal weights, or the last weights of an earlier run."""
        n = len(records)
        # Without projection a single record may have all the weight.
        kappa = plan.kappa if plan.kappa is not None else min(1.0, math.nextafter(1 / n, 2))
        if start is None:
            return DenseWeights(n, kappa, plan.eta)
        if isinstance(start, ReleasedRounds):
            return compute_weights(start, records, kappa).with_parameters(kappa, plan.eta)
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
        records: RunRecords,
        weights: DenseWeights,
        start: SubsampleTestReweigh | ReleasedRounds | None,
    ) -> tuple[Any, float]:
        """The learner with the noise of the plan, once all rounds are proved to be private.

        Beside it stands the epsilon of the record.
        """
        # Weights from hypotheses that nothing protects depend on everybody's records.
        if isinstance(start, SubsampleTestReweigh) and start.record_ is None:
            refuse("start", start, "a private run can only go on from a private one")
        learner = calibrate_learner(self.learner, plan, len(records))
        return learner, verify_privacy(learner, plan, weights)

    def _check_agents(self, agents: Any, records: RunRecords) -> None:
        untested = self.assume is not None or self.schedule == "never"
        if agents is None:
            if not (untested or (self.schedule == "auto" and self.output == "majority")):
                rule = "only the majority vote, output = 'majority', is released without tests"
                refuse("agents", agents, rule)
        elif untested:
            name = "schedule" if self.assume is None else "assume"
            rule = f"with {name} = {getattr(self, name)!r} no one is asked: leave them out"
            refuse("agents", agents, rule)
        elif is_oracle(agents):
            if is_private(self.epsilon) or not hasattr(agents, "query"):
                rule = "it must be Agents or RemoteAgents, or for epsilon = inf an SQ oracle"
                refuse("agents", agents, rule)
        elif isinstance(agents, local.Agents) and (agents.d,) != records.shape:
            rule = f"X has shape {(len(records), *records.shape)}"
            raise ShapeError(f"agents have {agents.d} features, but {rule}")
        if self.variant == "paper" and agents is not None:
            check_printed_answers(agents, self.delta)

    def _require_agents(self, plan: Plan, agents: Any) -> None:
        """Refuses to begin a run whose tests need more agents than there are.

        Raises:
            AgentsExhausted: There are fewer agents than the plan needs.
        """
        is_begun = self.checkpoint is not None and os.path.exists(self.checkpoint)
        if not is_oracle(agents) and not is_begun and agents.remaining < plan.N:
            fewer = "fewer rounds or schedule = 'final'"
            if self.schedule == "final":
                fewer = "a larger alpha or beta, or agents of a larger epsilon"
            rule = f"the plan needs {plan.N:,}: {fewer} need fewer"
            raise AgentsExhausted(f"agents = {agents.remaining:,} left, but {rule}")

    def _check_checkpoint(
        self, learner: Learner, start: SubsampleTestReweigh | ReleasedRounds | None
    ) -> None:
        if self.checkpoint is None:
            return
        if start is not None:
            rule = "the weights that a run starts with are not saved: leave one of them out"
            raise ParameterError(f"checkpoint = {self.checkpoint!r} with start, but {rule}")
        if not learner.can_restore:
            rule = "only hypotheses that JSON can carry are saved: use a learner with restore"
            raise ParameterError(f"checkpoint = {self.checkpoint!r}, but {rule}")

    def _finish(self, run: Run, records: RunRecords, agents: Any, progress: bool) -> Self:
        self._interrupted: Run | None = run
        log_stage("transfer: %d rounds planned", run.plan.rounds)
        with run.journal.lock(), progress_module.bar(run.plan.rounds, "round", progress) as bar:
            result = run.finish(records, agents, bar)
        self.result_ = dataclasses.replace(result, feature_names_in_=records.names)
        log_stage("transfer: %d rounds run", self.result_.rounds)
        self.plan_, self.record_ = run.plan, run.record
        self._weights, self._interrupted = run.weights, None
        self._settings: dict[str, Any] = run.journal.settings
        self._released: ReleasedRounds | str = collect_rounds(run, self._earlier)
        _note_constants(self.result_)
        return self


def _note_constants(result: TransferResult) -> None:
    """Warns that a hypothesis is not shown to be better than a constant."""
    if result.tested is None or result.constants is None or result.beats_constants:
        return
    tested, better = result.tested, result.constants.better
    error = f"error {tested.value:.3f} in [{tested.low:.3f}, {tested.high:.3f}]"
    constant = f"{result.comparison} than a constant, whose error is about {better:.3f}"
    note(f"{error} is {constant}: a smaller alpha with more agents, or another class, may help")


def _charge(budget: Budget | None, record: PrivacyRecord | None) -> AbstractContextManager[object]:
    """Charges the budget for the run, unless an earlier part of the same run has done so."""
    if budget is None or record is None:
        return nullcontext()
    if isinstance(budget, Budget) and any(
        entry.record.run == record.run for entry in budget.records
    ):
        return nullcontext()
    return spend(budget, record)
