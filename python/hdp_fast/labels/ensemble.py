"""The members of a labeler together: how many, the records of each, and what answers for them."""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._support.notes import note
from .._support.random_state import make_generator, make_key
from .._support.turns import Turn
from .._support.types import Integers, RandomState
from ..data import records
from ..data.persons import read_ids, write_texts
from ..exceptions import InsufficientSamples, ShapeError
from ..stability.gaussian import GaussianSession
from ..stability.plans import AnyTable, VotePlan
from ..stability.sessions import TableSession
from ..stability.tables import HazardTable
from .members import Chunk, Member, run_tasks, score, train, vote
from .public_facts import Facts, facts_of

# The largest share of unanimous votes that may be flipped without a note.
MOST_FLIPS = 0.05
# Number of records from which a member learns something.
_FEW_ROWS = 10
# No text in UTF-8, which stands for all records without an id.
_NOBODY = b"\xff"
# Number of votes, of all members together, that are held in memory at a time.
MOST_VOTES = 1 << 27


def require_records(plan: VotePlan, n: int, k: int, name: str) -> None:
    """Refuse more members than records, and state what members that fit would be worth.

    Args:
        plan: The plan of the labeler.
        n: Number of records.
        k: Number of members.
        name: The records and their number, in words.

    Raises:
        InsufficientSamples: n is less than k.
    """
    if n >= k:
        return
    fit = max(1, n // _FEW_ROWS)
    flip = plan.flip(fit)
    fault = f"{name}, but {k:,} members need one each (the paper: {plan.k_paper:,})"
    rows = f"{fit:,} member{'s' * (fit > 1)} of about {min(n, _FEW_ROWS)} would fit"
    worth = f"even a unanimous vote of them is {_fate(plan)} with probability {flip:.3f}"
    advice = f"take members = {fit:,}"
    if flip > MOST_FLIPS:
        advice = "too much to be of use; a larger epsilon, fewer queries or more records help"
    raise InsufficientSamples(f"{fault}: {rows}, and {worth}: {advice}")


def note_flips(plan: VotePlan, k: int) -> None:
    """Note before anything is spent that so few members are worth little: a public fact."""
    flip = plan.flip(k)
    if flip > MOST_FLIPS:
        fault = f"members = {k:,}, but even a unanimous vote of them is {_fate(plan)}"
        advice = "fewer queries, a larger epsilon or more members make it less"
        note(f"{fault} with probability {flip:.3f} ({plan.k:,} keep beta): {advice}")


def _fate(plan: VotePlan) -> str:
    return "turned into bottom" if isinstance(plan.table, HazardTable) else "flipped"


# Computes the rows of each chunk from a key.
Chunks = Callable[[bytes], list[Integers]]


def choose_chunks(ids: ArrayLike | None, n: int, k: int) -> Chunks:
    """Choose how n records are split into k chunks: by their ids if there are any, or by position.

    Raises:
        InsufficientSamples: There are fewer records than chunks, and no ids. With ids the number of
            records is private, and is not compared.
        ShapeError: ids has another shape than (n,).
        ParameterError: ids has no dtype of integers, texts or objects.
    """
    if ids is not None:
        names = _check_ids(ids, n)
        return lambda key: split_by_id(names, key, k)
    if n < k:
        raise InsufficientSamples(f"X has {n:,} records, but {k:,} members need one each")
    return lambda key: split_by_position(n, k)


def split_by_position(n: int, k: int) -> list[Integers]:
    """The rows of each of k chunks: row i is in chunk i mod k.

    Replacing a record changes one chunk. Inserting a record would change many.
    """
    return [np.arange(chunk, n, k) for chunk in range(k)]


def split_by_id(ids: list[bytes], key: bytes, k: int) -> list[Integers]:
    """The rows of each of k chunks, by a keyed hash of the record's id.

    Rows with the same id are in the same chunk. Inserting or removing all rows of one id changes
    one chunk, whatever the key, and keeps the order of rows in all others.
    """
    chunks = np.array([_chunk(name, key, k) for name in ids], np.int64)
    order = np.argsort(chunks, kind="stable")
    return np.split(order, np.searchsorted(chunks[order], np.arange(1, k)))


def _check_ids(ids: ArrayLike, n: int) -> list[bytes]:
    """Validate ids, one for each of n records, and return them as bytes.

    No id causes an error: all records without one are those of one person.

    Raises:
        ShapeError: The shape is another one.
        ParameterError: The dtype is that of neither integers, texts nor objects.
    """
    values, missing = read_ids(ids, "iuSUO")
    if values.shape != (n,):
        raise ShapeError(f"ids has shape {values.shape}, but it must be ({n},), as there are rows")
    names: list[Any] = values.tolist()
    if missing is not None:
        names = [None if absent else name for name, absent in zip(names, missing, strict=True)]
    return [_bytes(name) for name in (write_texts(names) if values.dtype.kind != "S" else names)]


def _bytes(name: str | bytes | None) -> bytes:
    if name is None:
        return _NOBODY
    # Lone surrogates are allowed in ids.
    return name if isinstance(name, bytes) else name.encode(errors="surrogatepass")


def _chunk(name: bytes, key: bytes, k: int) -> int:
    return int.from_bytes(hashlib.blake2b(name, key=key, digest_size=16).digest()) % k


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
