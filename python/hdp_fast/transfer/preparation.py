"""What a run begins with: proof of privacy, a journal, agents not asked yet."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import secrets
from dataclasses import asdict
from typing import Any

import numpy as np

from .. import accounting, local
from .._support.random_state import make_key
from .._support.types import RandomState
from ..exceptions import CheckpointError, ParameterError
from ..record import PrivacyRecord, rng_of
from ..weights import DenseWeights
from .checkpoint import Journal
from .learner import account_round, composes
from .plans import Plan
from .run_records import RunRecords

_SOURCE = (
    "Kohen and Sheffet 2022, Algorithm 2 and Theorem 4.2, by advanced joint convexity and PLDs"
)


def calibrate_learner(learner: Any, plan: Plan, n: int) -> Any:
    """The learner with the noise of the plan."""
    if not composes(learner):
        return learner.with_epsilon(plan.learner_epsilon)
    return learner.calibrate(
        epsilon=plan.epsilon, delta=plan.delta, n=n, kappa=plan.kappa, rounds=plan.rounds
    )


def verify_privacy(learner: Any, plan: Plan, weights: DenseWeights) -> None:
    """Accounts for the weights that are really drawn from, whatever was planned.

    Raises:
        ParameterError: All rounds together are less private than promised.
    """
    mechanism, times = account_round(learner, plan.draws, weights.rate)
    assert plan.delta is not None
    spent = accounting.delta([(mechanism, times * plan.rounds)], plan.epsilon)
    if not spent <= plan.delta:
        raise ParameterError(f"delta = {plan.delta}, but {plan.rounds} rounds need {spent}")


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
    learner: Any, plan: Plan, run: str, random_state: RandomState
) -> PrivacyRecord | None:
    """The privacy record of the curator's data; None for a plan that protects no one."""
    if plan.delta is None:
        return None
    return PrivacyRecord(
        mechanism=f"transfer.SubsampleTestReweigh, run {run}",
        source=_SOURCE,
        neighbors="replace_one",
        epsilon=plan.epsilon,
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
