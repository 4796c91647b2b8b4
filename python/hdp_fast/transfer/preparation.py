"""What a run begins with: records, proof of privacy, a journal, agents not asked yet."""

from __future__ import annotations

import hashlib
import json
import math
import os
import pickle
import secrets
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import accounting, local
from .._support.feature_names import FeatureNames, names_of
from .._support.numbers import freeze
from .._support.random_state import make_key
from .._support.types import Bits, RandomState
from .._support.validate import array, bits
from ..exceptions import CheckpointError, ParameterError, ShapeError
from ..gf2 import BitMatrix
from ..record import PrivacyRecord, rng_of
from ..weights import DenseWeights
from .checkpoint import Journal
from .learner import account_round, composes
from .plans import Plan

_SOURCE = (
    "Kohen and Sheffet 2022, Algorithm 2 and Theorem 4.2, by advanced joint convexity and PLDs"
)


@dataclass(frozen=True, eq=False)
class RunRecords:
    """Records and their labels, both read-only.

    Attributes:
        X: Array of shape (n, d), or with more dimensions.
        y: Labels 0 and 1 of shape (n,).
        names: Names of the columns of X, or None.
    """

    X: NDArray[Any]
    y: Bits
    names: FeatureNames = None

    def __len__(self) -> int:
        return len(self.y)

    @property
    def d(self) -> int:
        """Number of entries of a record."""
        return math.prod(self.X.shape[1:])

    def digest(self, salt: str) -> str:
        """A digest, which is as private as the records: guesses of them can be tried against it."""
        digest = hashlib.blake2b(salt.encode(), digest_size=32)
        digest.update(f"{self.X.dtype.str} {self.X.shape}".encode())
        for values in (self.X, self.y):
            plain = np.ascontiguousarray(values).reshape(-1)
            # The bytes of objects are addresses, which change from run to run, so repr is digested.
            has_objects = plain.dtype.hasobject
            digest.update(
                repr(plain.tolist()).encode() if has_objects else plain.view(np.uint8).data
            )
        return digest.hexdigest()

    def match(self, settings: dict[str, Any]) -> bool:
        """Whether a run with these settings began with the same records."""
        return bool(self.digest(settings["salt"]) == settings["digest"])

    def require_match(self, settings: dict[str, Any]) -> None:
        """Refuses to go on with a run that began with other records.

        Raises:
            CheckpointError: The records differ.
        """
        if not self.match(settings):
            raise CheckpointError("X and y are not the records of the run that was stopped")


def validate_records(X: Any, y: ArrayLike) -> RunRecords:
    """The records as read-only arrays.

    Raises:
        ShapeError: X has fewer than two dimensions, or y has not one label for each record.
        ParameterError: A label is not 0 or 1, or X is a masked array.
    """
    entries = X.to_dense() if isinstance(X, BitMatrix) else array("X", X)
    labels = bits("y", y)
    if entries.ndim < 2 or labels.shape != entries.shape[:1] or not labels.size:
        shapes = f"X has shape {entries.shape} and y {labels.shape}"
        raise ShapeError(f"{shapes}, but they must be (n, d) and (n,), n at least 1")
    # A learner that wrote to them would change what later rounds see, and the caller's arrays.
    return RunRecords(freeze(entries), freeze(labels), names_of(X))


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
