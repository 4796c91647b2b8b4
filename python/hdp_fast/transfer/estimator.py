"""Subsample-Test-Reweigh as an estimator: parameters, fit, resume."""

from __future__ import annotations

import hashlib
import json
import math
import pickle
import secrets
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import accounting, local
from .._core import Features
from .._support import progress as progress_module
from .._support.callers import locked
from .._support.random_state import check_random_state, make_key
from .._support.types import Bits, RandomState
from .._support.validate import array, bits, refuse
from ..budget.account import Budget, spend
from ..exceptions import CheckpointError, InsufficientSamples, ParameterError, ShapeError
from ..gf2 import BitMatrix
from ..record import PrivacyRecord, rng_of
from ..weights import DenseWeights
from .adapters import Learner, adapted
from .checkpoint import Journal
from .learner_epsilon import composes, round_cost
from .planning import Output, Plan, Schedule, plan
from .run import Rounds, TransferResult, is_oracle

Population = local.Agents | local.RemoteAgents | local.SQOracle

_SOURCE = (
    "Kohen and Sheffet 2022, Algorithm 2 and Theorem 4.2, by advanced joint convexity and PLDs"
)


class SubsampleTestReweigh:
    """Learns on a curator's biased records a hypothesis that is good on the agents' population.

    learner: for a private run one of hdp_fast.learners; else also a scikit-learn classifier or a
    function (X, y) -> predictor. alpha, beta, epsilon, delta, chi2, kappa, eta, rounds, schedule,
    output, opt, private, draws: as plan. checkpoint: path of a file, made with mode 0600, from
    which a run that died goes on; it holds what was released and a digest of the records, no
    weights: it is the curator's alone.

    A record's weight depends on that record and on released hypotheses alone, and no draw holds it
    with probability above 1 / (kappa_eff n), kappa_eff = kappa (1 - 2**-12).

    Guarantee: private=True: (epsilon, delta)-DP for each record of the curator, under replace_one,
        all planned rounds counted whether they run or not; for each agent, locally, what its own
        answer has. Exact where the learner is. private=False protects the agents only.
    Raises: nothing until fit.
    Cost: none until fit.
    Source: Kohen and Sheffet 2022, Algorithms 1 and 2.

    Attributes:
        result_: what fit released.
        record_: what protects the curator's records; None for a run that is not private.
        plan_: the parameters of the run.
    """

    result_: TransferResult
    record_: PrivacyRecord | None
    plan_: Plan

    def __init__(
        self,
        learner: Any,
        *,
        alpha: float,
        beta: float = 0.05,
        epsilon: float | None = None,
        delta: float | None = None,
        chi2: float | None = None,
        kappa: float | None = None,
        eta: float | Literal["paper"] | None = None,
        rounds: int | None = None,
        schedule: Schedule = "geometric",
        output: Output = "tested",
        opt: float = 0.0,
        private: bool = True,
        draws: int | None = None,
        checkpoint: str | None = None,
    ):
        self.learner = learner
        self.alpha = alpha
        self.beta = beta
        self.epsilon = epsilon
        self.delta = delta
        self.chi2 = chi2
        self.kappa = kappa
        self.eta = eta
        self.rounds = rounds
        self.schedule = schedule
        self.output = output
        self.opt = opt
        self.private = private
        self.draws = draws
        self.checkpoint = checkpoint

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
        of whom those asked are passed over. For private=False an SQ oracle will do. budget: of the
        curator's records, charged epsilon and delta once, before the first round, and not again
        when the run is resumed. random_state: None draws from the operating system; an int or a
        Generator makes a reproducible test stream that protects nobody who knows it. start: one
        fitted in this process to the same records in the same order, private if this one is, with
        whose last weights this run begins; it stays as it is, and both runs count. progress: show a
        bar (tqdm).

        Guarantee: as the class.
        Raises: ShapeError, ParameterError; InsufficientSamples for fewer records than the plan
            needs; BudgetExceeded; CheckpointError for a checkpoint of other data or parameters:
            all of them before any coin is drawn or budget spent. AgentsExhausted when a test needs
            more agents than are left: resume goes on with others.
        Cost: each round the learner's on its draws, a prediction for n records and a handful of
            passes over n weights; 30 bytes a record beside X.
        Source: Kohen and Sheffet 2022, Algorithms 1 and 2.
        """
        check_random_state(random_state)
        records, labels = _records(X, y)
        self._check_agents(agents, records)
        if budget is not None and not self.private:
            raise ParameterError("budget is given, but private=False protects nothing to charge")
        run = self._begun(records, labels, agents, random_state, start)
        with _charged(budget, run.record):
            return self._finished(run, records, labels, agents, progress)

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
        records, labels = _records(X, y)
        self._check_agents(agents, records)
        _check_data(run.journal.settings, records, labels)
        return self._finished(run, records, labels, agents, progress)

    def plan(self, n: int, *, agents_epsilon: float | None = None) -> Plan:
        """The parameters that fit will use for n records.

        n: number of records; agents_epsilon: of an agent's answer, None for an SQ oracle.

        Raises: as the function plan.
        Cost: as the function plan.
        Source: as the function plan.
        """
        return plan(
            self.learner,
            alpha=self.alpha,
            beta=self.beta,
            epsilon=self.epsilon,
            delta=self.delta,
            agents_epsilon=agents_epsilon,
            chi2=self.chi2,
            kappa=self.kappa,
            eta=self.eta,
            rounds=self.rounds,
            n=n,
            schedule=self.schedule,
            output=self.output,
            opt=self.opt,
            private=self.private,
            draws=self.draws,
        )

    def __getstate__(self) -> dict[str, Any]:
        # Private weights and a run with other people's agents stay in this process.
        return {key: value for key, value in self.__dict__.items() if key[0] != "_"}

    def __repr__(self) -> str:
        result = getattr(self, "result_", "not fitted")
        return f"SubsampleTestReweigh({self.learner!r}, alpha={self.alpha}, {result})"

    def _begun(
        self,
        X: NDArray[Any],
        y: Bits,
        agents: Any,
        random_state: RandomState,
        start: SubsampleTestReweigh | None,
    ) -> Rounds:
        """A run at its beginning, or where its checkpoint says; nothing is drawn yet."""
        oracle = is_oracle(agents)
        found = self._planned(X, None if oracle else agents.epsilon)
        learner, weights = adapted(self.learner), _weights(found, X, y, start)
        if self.private:
            _check_start(start)
            own = self._configured(found, len(X))
            _verify(own, found, weights)
            learner = adapted(own)
        if isinstance(learner.prepare(X), Features) and isinstance(agents, local.Agents):
            agents.require_bits()
        if weights._room < found.rounds:
            left = f"only {weights._room} are left before the weights run out"
            raise ParameterError(f"rounds = {found.rounds} with start, but {left}")
        self._check_checkpoint(learner, start)
        identity = self._identity(found, random_state)
        drawn = _drawn(identity, found, X, y, agents, random_state)
        journal = Journal(self.checkpoint, drawn)
        for name, value in identity.items():
            if journal.settings[name] != value:
                rule = f"it belongs to a run with another {name}"
                raise CheckpointError(f"checkpoint = {self.checkpoint!r}, but {rule}")
        if journal.settings != drawn:
            _check_data(journal.settings, X, y)
        if journal.settings["seed"] is not None and isinstance(agents, local.Agents):
            journal.forget_unanswered()
        if not oracle:
            before = journal.settings["answered before"] + journal.asked
            agents.pass_over(max(0, before - _answered(agents)))
        record = self._record(found, journal.settings["run"], random_state)
        return Rounds(found, learner, weights, journal, record)

    def _planned(self, X: NDArray[Any], agents_epsilon: float | None) -> Plan:
        n, d = len(X), math.prod(X.shape[1:])
        own = hasattr(self.learner, "sample_size") or composes(self.learner)
        if self.private or self.draws is not None or own:
            found = self.plan(n, agents_epsilon=agents_epsilon)
        else:
            # The number of draws in the paper's experiments.
            model = SubsampleTestReweigh(**{**self._parameters(), "draws": 1})
            rounds = model.plan(n, agents_epsilon=agents_epsilon).rounds
            model.draws = min(n, math.ceil((d + math.log(rounds / model.beta)) / model.alpha))
            found = model.plan(n, agents_epsilon=agents_epsilon)
        if n < found.n:
            raise InsufficientSamples(f"X has {n:,} records, but the plan needs {found.n:,}")
        return found

    def _parameters(self) -> dict[str, Any]:
        names = SubsampleTestReweigh.__init__.__kwdefaults__ or {}
        return {name: getattr(self, name) for name in ("learner", "alpha", *names)}

    def _configured(self, found: Plan, n: int) -> Any:
        """The learner with the noise that the plan allows it."""
        if not composes(self.learner):
            return self.learner.with_epsilon(found.learner_epsilon)
        return self.learner.calibrated(
            epsilon=found.epsilon, delta=found.delta, n=n, kappa=found.kappa, rounds=found.rounds
        )

    def _check_agents(self, agents: Any, X: NDArray[Any]) -> None:
        if is_oracle(agents):
            if self.private or not hasattr(agents, "query"):
                refuse(
                    "agents",
                    agents,
                    "it must be Agents or RemoteAgents, or for private=False an SQ oracle",
                )
        elif isinstance(agents, local.Agents) and (agents.d,) != X.shape[1:]:
            rule = f"X has shape {X.shape}"
            raise ShapeError(f"agents have {agents.d} features, but {rule}")

    def _check_checkpoint(self, learner: Learner, start: SubsampleTestReweigh | None) -> None:
        if self.checkpoint is None:
            return
        if start is not None:
            rule = "the weights that a run starts with are not saved: leave one of them out"
            raise ParameterError(f"checkpoint = {self.checkpoint!r} with start, but {rule}")
        if not learner.can_restore:
            rule = "only hypotheses that JSON can carry are saved: use a learner with restore"
            raise ParameterError(f"checkpoint = {self.checkpoint!r}, but {rule}")

    def _identity(self, found: Plan, random_state: RandomState) -> dict[str, Any]:
        """What a checkpoint must agree in."""
        learner = None
        if self.checkpoint is not None:
            learner = hashlib.sha256(pickle.dumps(self.learner)).hexdigest()
        generator = isinstance(random_state, np.random.Generator)
        given = "generator" if generator else None if random_state is None else int(random_state)  # type: ignore[arg-type]
        return {"plan": json.loads(json.dumps(asdict(found))), "learner": learner, "coins": given}

    def _record(self, found: Plan, run: str, random_state: RandomState) -> PrivacyRecord | None:
        if found.epsilon is None or found.delta is None:
            return None
        return PrivacyRecord(
            mechanism=f"transfer.SubsampleTestReweigh, run {run}",
            source=_SOURCE,
            neighbors="replace_one",
            epsilon=found.epsilon,
            delta=found.delta,
            noise="the learner's, on records drawn from kappa-dense weights",
            numerics=getattr(self.learner, "numerics", "idealized"),
            rng=rng_of(random_state),
        )

    def _finished(self, run: Rounds, X: NDArray[Any], y: Bits, agents: Any, progress: bool) -> Self:
        self._interrupted: Rounds | None = run
        with run.journal.held(), progress_module.bar(run.plan.rounds, "round", progress) as bar:
            self.result_ = run.finished(X, y, agents, bar)
        self.plan_, self.record_ = run.plan, run.record
        self._weights, self._interrupted = run.weights, None
        self._settings: dict[str, Any] = run.journal.settings
        return self


def _records(X: Any, y: ArrayLike) -> tuple[NDArray[Any], Bits]:
    records = X.to_dense() if isinstance(X, BitMatrix) else array("X", X)
    labels = bits("y", y)
    if records.ndim < 2 or labels.shape != records.shape[:1] or not labels.size:
        shapes = f"X has shape {records.shape} and y {labels.shape}"
        raise ShapeError(f"{shapes}, but they must be (n, d) and (n,), n at least 1")
    # What a learner writes would be what later rounds learn from, and the caller's own.
    return locked(records), locked(labels)


def _weights(
    found: Plan, X: NDArray[Any], y: Bits, start: SubsampleTestReweigh | None
) -> DenseWeights:
    n = len(X)
    # Without projection: a single record may have all the weight.
    kappa = found.kappa if found.kappa is not None else min(1.0, math.nextafter(1 / n, 2))
    if start is None:
        return DenseWeights(n, kappa, found.eta)
    before: DenseWeights | None = getattr(start, "_weights", None)
    if before is None:
        refuse("start", start, "it must have been fitted in this process")
    if before.n != n:
        raise ShapeError(f"start was fitted to {before.n:,} records, but X has {n:,}")
    if not _same_data(start._settings, X, y):
        raise ParameterError("start was fitted to other records, but it must be to X and y")
    return before._continued(kappa, found.eta)


def _verify(learner: Any, found: Plan, weights: DenseWeights) -> None:
    """Accounts for the very weights that are drawn from, whatever was planned."""
    mechanism, times = round_cost(learner, found.draws, weights.rate)
    assert found.epsilon is not None
    assert found.delta is not None
    spent = accounting.delta([(mechanism, times * found.rounds)], found.epsilon)
    if not spent <= found.delta:
        raise ParameterError(f"delta = {found.delta}, but {found.rounds} rounds need {spent}")


def _check_start(start: SubsampleTestReweigh | None) -> None:
    # Weights that follow hypotheses which nothing protects depend on everybody's records.
    if start is not None and start.record_ is None:
        refuse("start", start, "a private run can only go on from a private one")


def _answered(agents: Any) -> int:
    """How many have been asked, by this run or before it."""
    return len(agents) - int(agents.remaining)


def _drawn(
    identity: dict[str, Any],
    found: Plan,
    X: NDArray[Any],
    y: Bits,
    agents: Any,
    random_state: RandomState,
) -> dict[str, Any]:
    """The settings of a new run: its identity, its name and its public coins."""
    key = make_key(random_state)
    seed = None if key is None else key.hex()
    rng = np.random.default_rng(None if seed is None else int(seed, 16))
    wanted = 0 if found.output == "majority" else found.final_tests
    salt = secrets.token_hex(16)
    return {
        **identity,
        "run": secrets.token_hex(8),
        "seed": seed,
        "finalists": sorted({int(t) for t in rng.integers(1, found.rounds, wanted, endpoint=True)}),
        "answered before": 0 if is_oracle(agents) else _answered(agents),
        "salt": salt,
        "digest": _digest(X, y, salt),
    }


def _check_data(settings: dict[str, Any], X: NDArray[Any], y: Bits) -> None:
    if not _same_data(settings, X, y):
        raise CheckpointError("X and y are not the records of the run that was stopped")


def _same_data(settings: dict[str, Any], X: NDArray[Any], y: Bits) -> bool:
    return bool(_digest(X, y, settings["salt"]) == settings["digest"])


def _digest(X: NDArray[Any], y: Bits, salt: str) -> str:
    """Tells data sets apart: private like the records, since guesses can be tried against it."""
    found = hashlib.blake2b(salt.encode(), digest_size=32)
    found.update(f"{X.dtype.str} {X.shape}".encode())
    for values in (X, y):
        plain = np.ascontiguousarray(values).reshape(-1)
        # Objects are known by what they say: their bytes are addresses, other ones in each run.
        objects = plain.dtype.hasobject
        found.update(repr(plain.tolist()).encode() if objects else plain.view(np.uint8).data)
    return found.hexdigest()


def _charged(budget: Budget | None, record: PrivacyRecord | None) -> AbstractContextManager[object]:
    """A reservation, unless an earlier part of the same run has made it."""
    if budget is None or record is None:
        return nullcontext()
    if isinstance(budget, Budget) and any(
        entry.record.mechanism == record.mechanism for entry in budget.records
    ):
        return nullcontext()
    return spend(budget, record)
