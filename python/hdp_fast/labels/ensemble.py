"""Members, and the table that answers for them: what a labeler never shows."""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._support.random_state import make_generator, make_key
from .._support.turns import Turn
from .._support.types import RandomState
from ..data import records
from ..stability.gaussian import GaussianSession
from ..stability.plans import AnyTable
from ..stability.sessions import TableSession
from ..stability.tables import HazardTable
from .members import Chunk, Member, run_tasks, score, train, vote
from .partition import Chunks
from .public_facts import Facts, facts_of

# Number of votes, of all members together, that are held in memory at a time.
MOST_VOTES = 1 << 27


@dataclass
class Ensemble:
    """Members trained on disjoint chunks; nothing here may be shown.

    Attributes:
        members: One Member for each chunk.
        table: The table whose coins answer.
        key: Key from which the seeds of the members are derived.
        shape: Shape of the features of one record.
        rng: Generator of the table's coins in a test stream; None draws from the operating system.
        facts: Public facts of all records; None in a file of an older version.
    """

    members: list[Member]
    table: AnyTable
    key: bytes
    shape: tuple[int, ...]
    rng: np.random.Generator | None
    facts: Facts | None = None

    def votes(
        self, Q: Any, classes: NDArray[Any], position: int, bar: Any
    ) -> Iterator[tuple[NDArray[np.uint8], list[str]]]:
        """Yields the votes (k, some queries) block by block, with the fault of each member.

        Args:
            Q: All points.
            classes: The labels that members vote for.
            position: Number of queries that were answered before, so that no seed of a member is
                used twice.
            bar: Bar that moves by the number of votes that have been cast.
        """
        return self._predict(vote, Q, position, bar, classes)

    def scores(
        self, Q: Any, position: int, bar: Any
    ) -> Iterator[tuple[NDArray[np.float64], list[str]]]:
        """Yields the scores (k, some queries) block by block, as votes does."""
        return self._predict(score, Q, position, bar)

    def _predict(
        self, task: Callable[..., Any], Q: Any, position: int, bar: Any, *arguments: Any
    ) -> Iterator[tuple[NDArray[Any], list[str]]]:
        k, n = len(self.members), records.count_rows(Q)
        step = max(1, MOST_VOTES // k)
        for start in range(0, n, step):
            block = records.take_rows(Q, slice(start, start + step))
            turns = (turn_of(self.key, chunk, position + start + 1) for chunk in range(k))
            pairs = zip(self.members, turns, strict=True)
            tasks = ((member, block, *arguments, turn) for member, turn in pairs)
            results = run_tasks(task, tasks, partial(bar.update, records.count_rows(block)))
            predictions, faults = zip(*results, strict=True)
            yield np.stack(predictions), list(faults)

    def session(self, used_bottoms: int, used_queries: int) -> TableSession | GaussianSession:
        """Opens a session of the table that goes on from what has been used up."""
        used: dict[str, Any] = {"used_queries": used_queries, "random_state": self.rng}
        if isinstance(self.table, HazardTable):
            used["used_bottoms"] = used_bottoms
        return self.table.session(**used)


def train_ensemble(
    learner: Any,
    X: Any,
    y: NDArray[Any],
    chunks: Chunks,
    table: AnyTable,
    random_state: RandomState,
    bar: Any,
) -> Ensemble:
    """Trains one member for each chunk; the bar moves by one for each."""
    key = make_key(random_state) or secrets.token_bytes(32)
    rng = None if random_state is None else make_generator(_seed(key, -1, 0))
    tasks = (
        (Chunk(records.take_rows(X, rows), y[rows]), learner, turn_of(key, chunk, 0))
        for chunk, rows in enumerate(chunks(key))
    )
    members = run_tasks(train, tasks, bar.update)
    return Ensemble(members, table, key, tuple(X.shape[1:]), rng, facts_of(X))


def turn_of(key: bytes, chunk: int, position: int) -> Turn:
    """The turn of one member for its training (position 0), or for the queries from a position."""
    return Turn(_seed(key, chunk, position), os.getpid())


def _seed(key: bytes, chunk: int, position: int) -> int:
    """The seed of one member for its training (position 0), or for the queries from a position."""
    text = f"member {chunk} {position}".encode()
    return int.from_bytes(hashlib.blake2b(text, key=key, digest_size=4).digest())
