"""What a run begins with: proof of privacy, a journal, agents not asked yet."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import os
import pickle
import secrets
from dataclasses import asdict
from typing import Any

import numpy as np

from .. import accounting, local
from .._support.random_state import make_key
from .._support.types import RandomState
from .._support.validate import refuse
from ..exceptions import CheckpointError, ParameterError
from ..local.randomizers.noisy import GaussianRandomizer
from ..record import PrivacyRecord, rng_of
from ..weights import DenseWeights
from .checkpoint import Journal
from .learner import account_round, composes
from .plans import Plan
from .printed import count_square
from .run_records import RunRecords

_BY = "by advanced joint convexity and PLDs"
_SOURCES = {
    "tight": f"Kohen and Sheffet 2022, Algorithm 2 and Theorem 4.2, {_BY}",
    "paper": f"Kohen and Sheffet 2022, Algorithm 2 or 4 as printed, {_BY}",
}
# A printed run of so many records that its delta alone is a guarantee.
_LEAST_EPSILON = 1e-9


def calibrate_learner(learner: Any, plan: Plan, n: int) -> Any:
    """The learner with the noise of the plan."""
    if not composes(learner):
        return learner.with_epsilon(plan.learner_epsilon)
    if plan.variant == "paper":
        assert plan.kappa is not None
        assert plan.delta is not None
        noise = math.sqrt(count_square(plan.kappa * n, plan.epsilon, plan.delta))
        return dataclasses.replace(learner, epsilon=None, noise_multiplier=noise)
    return learner.calibrate(
        epsilon=plan.epsilon, delta=plan.delta, n=n, kappa=plan.kappa, rounds=plan.rounds
    )


def verify_privacy(learner: Any, plan: Plan, weights: DenseWeights) -> float:
    """Accounts for the weights that are really drawn from, whatever was planned.

    Returns: The epsilon to state: that of the plan, or what a printed run, whose noise does not
        depend on it, really spends.

    Raises:
        ParameterError: All rounds together are less private than promised.
    """
    mechanism, times = account_round(learner, plan.draws, weights.rate)
    assert plan.delta is not None
    terms = [(mechanism, times * plan.rounds)]
    spent = accounting.delta(terms, plan.epsilon)
    if not spent <= plan.delta:
        raise ParameterError(f"delta = {plan.delta}, but {plan.rounds} rounds need {spent}")
    if plan.variant == "tight":
        return plan.epsilon
    return min(plan.epsilon, max(accounting.epsilon(terms, plan.delta), _LEAST_EPSILON))


def check_printed_answers(agents: Any, delta: float | None) -> None:
    """Refuses agents who cannot answer as Algorithm 1 or 2 prints it.

    Raises:
        ParameterError: Private records come with agents other than `local.Agents`, who do not agree
            to delta, or whom the printed noise does not protect.
    """
    if delta is None:
        if not is_oracle(agents):
            rule = "Algorithm 1, variant = 'paper', asks an SQ oracle: local.EmpiricalOracle(X, y)"
            refuse("agents", agents, rule)
        return
    if not isinstance(agents, local.Agents):
        rule = "variant = 'paper' needs Gaussian answers, which only local.Agents send"
        refuse("agents", agents, rule)
    if agents.delta < delta:
        rule = f"printed answers have delta = {delta:g}: local.Agents(X, y, ..., delta={delta:g})"
        raise ParameterError(f"agents have delta = {agents.delta:g}, but {rule}")
    printed_answers(agents, delta)


def printed_answers(agents: local.Agents, delta: float) -> GaussianRandomizer:
    """The printed randomizer of these agents' losses.

    Raises:
        ParameterError: It does not keep their epsilon and delta.
    """
    return GaussianRandomizer.printed(agents.epsilon, delta, (0, 1))


def open_journal(
    path: str | None,
    learner: Any,
    plan: Plan,
    records: RunRecords,
    agents: Any,
    random_state: RandomState,
) -> Journal:
    """The journal of a new run, or of the same run at `path`.

    Raises:
        CheckpointError: The journal belongs to another run.
    """
    identity = _identify(path, learner, plan, random_state)
    settings = {**identity, **_draw_settings(plan, records, agents, random_state)}
    journal = Journal(path, settings)
    for name, value in identity.items():
        if journal.settings[name] != value:
            rule = f"it belongs to a run with another {name}"
            raise CheckpointError(f"checkpoint = {path!r}, but {rule}")
    if journal.settings != settings:
        records.require_match(journal.settings)
    if journal.settings["seed"] is not None and isinstance(agents, local.Agents):
        journal.forget_unanswered()
    return journal


def count_offered(path: str | None, agents: Any) -> int:
    """The number of agents for whom the run was planned: those left, when it began."""
    if path is not None and os.path.exists(path):
        planned = Journal(path, {}).settings["plan"].get("N")
        if type(planned) is int:
            return planned
    return int(agents.remaining)


def pass_over_asked(agents: Any, journal: Journal) -> None:
    """Passes over the agents whom an earlier part of the run has asked."""
    if not is_oracle(agents):
        asked = journal.settings["answered before"] + journal.asked
        agents.pass_over(max(0, asked - _count_asked(agents)))


def make_record(
    learner: Any, plan: Plan, run: str, random_state: RandomState, epsilon: float
) -> PrivacyRecord | None:
    """The privacy record of the curator's data; None for a plan that protects no one.

    epsilon is what `verify_privacy` states.
    """
    if plan.delta is None:
        return None
    return PrivacyRecord(
        mechanism=f"transfer.SubsampleTestReweigh, run {run}",
        source=_SOURCES[plan.variant],
        neighbors="replace_one",
        epsilon=epsilon,
        delta=plan.delta,
        noise="the learner's, on records drawn from kappa-dense weights",
        numerics=getattr(learner, "numerics", "idealized"),
        rng=rng_of(random_state),
        run=run,
    )


def _identify(
    path: str | None, learner: Any, plan: Plan, random_state: RandomState
) -> dict[str, Any]:
    """The settings in which a checkpoint must agree with the run."""
    digest = None if path is None else hashlib.sha256(pickle.dumps(learner)).hexdigest()
    if isinstance(random_state, np.random.Generator):
        seed: str | int | None = "generator"
    else:
        seed = None if random_state is None else int(random_state)
    return {"plan": json.loads(json.dumps(asdict(plan))), "learner": digest, "coins": seed}


def _draw_settings(
    plan: Plan, records: RunRecords, agents: Any, random_state: RandomState
) -> dict[str, Any]:
    """The identity of a new run and its public random choices."""
    key = make_key(random_state)
    seed = None if key is None else key.hex()
    rng = np.random.default_rng(None if seed is None else int(seed, 16))
    finalists = 0 if plan.output == "majority" else plan.final_tests
    salt = secrets.token_hex(16)
    return {
        "run": secrets.token_hex(8),
        "seed": seed,
        "finalists": sorted(
            {int(t) for t in rng.integers(1, plan.rounds, finalists, endpoint=True)}
        ),
        "answered before": 0 if is_oracle(agents) else _count_asked(agents),
        "salt": salt,
        "digest": records.digest(salt),
    }


def _count_asked(agents: Any) -> int:
    """The number of agents that have been asked, by this run or before it."""
    return len(agents) - int(agents.remaining)


def is_oracle(agents: Any) -> bool:
    """Whether `agents` answers statistical queries, instead of being a population of agents."""
    return not isinstance(agents, local.Agents | local.RemoteAgents)
