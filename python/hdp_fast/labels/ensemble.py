"""Members and the table that answers for them: what labelers keep to themselves."""

from __future__ import annotations

import hashlib
import importlib
import math
import os
import pickle
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._support import atomic
from .._support.random_state import make_generator, make_key
from .._support.turns import Turn
from .._support.types import RandomState
from .._support.validate import array, refuse
from ..data import records
from ..exceptions import CheckpointError, InsufficientSamples, ParameterError, ShapeError
from ..stability.gaussian import GaussianSession
from ..stability.plans import Table, VotePlan
from ..stability.sessions import Session
from ..stability.tables import HazardTable
from . import members as members_module
from . import partition
from .members import Chunk, Member
from .usage import check_free

_FORMAT = b"hdp_fast labeler 2\n"
_DIGEST = 32
# Votes of all members that are held at a time.
_MOST_VOTES = 1 << 27


@dataclass
class Ensemble:
    """Members trained on disjoint chunks; nothing here may be shown.

    Attributes:
        members: one for each chunk.
        table: whose coins answer.
        key: what the members' seeds are derived from.
        shape: of one record's features.
        coins: None, or those of a test stream.
    """

    members: list[Member]
    table: Table
    key: bytes
    shape: tuple[int, ...]
    coins: np.random.Generator | None

    def votes(
        self, Q: Any, classes: NDArray[Any], position: int, bar: Any
    ) -> Iterator[tuple[NDArray[np.uint8], list[str]]]:
        """Votes (k, some queries) block by block, and each member's fault.

        position: queries that were answered before, so that no coin of a member comes twice. bar:
        moved by as many votes as have been cast.
        """
        return self._said(members_module.votes, Q, position, bar, classes)

    def scores(
        self, Q: Any, position: int, bar: Any
    ) -> Iterator[tuple[NDArray[np.float64], list[str]]]:
        """Scores (k, some queries), likewise."""
        return self._said(members_module.scores, Q, position, bar)

    def _said(
        self, task: Callable[..., Any], Q: Any, position: int, bar: Any, *given: Any
    ) -> Iterator[tuple[NDArray[Any], list[str]]]:
        k, n = len(self.members), records.row_count(Q)
        step = max(1, _MOST_VOTES // k)
        for start in range(0, n, step):
            block = records.rows(Q, slice(start, start + step))
            turns = (_turn(self.key, chunk, position + start + 1) for chunk in range(k))
            pairs = zip(self.members, turns, strict=True)
            tasks = ((member, block, *given, turn) for member, turn in pairs)
            found = members_module.each(task, tasks, partial(bar.update, records.row_count(block)))
            said, faults = zip(*found, strict=True)
            yield np.stack(said), list(faults)

    def session(self, bottoms: int, queries: int) -> Session | GaussianSession:
        """A session of the table that goes on from what has been used up."""
        if isinstance(self.table, HazardTable):
            return self.table.session(bottoms=bottoms, queries=queries, random_state=self.coins)
        return self.table.session(queries=queries, random_state=self.coins)


def trained(
    learner: Any,
    X: Any,
    y: NDArray[Any],
    chunks: Callable[[bytes], list[NDArray[np.int64]]],
    table: Table,
    random_state: RandomState,
    bar: Any,
) -> Ensemble:
    """One member for each chunk; chunks: from a key to the rows of each; bar: moved by members."""
    key = make_key(random_state) or secrets.token_bytes(32)
    coins = None if random_state is None else make_generator(_seed(key, -1, 0))
    tasks = (
        (Chunk(records.rows(X, rows), y[rows]), learner, _turn(key, chunk, 0))
        for chunk, rows in enumerate(chunks(key))
    )
    members = members_module.each(members_module.train, tasks, bar.update)
    return Ensemble(members, table, key, tuple(X.shape[1:]), coins)


def chunking(ids: ArrayLike | None, n: int, k: int) -> Callable[[bytes], list[NDArray[np.int64]]]:
    """From a key to the rows of each of k chunks of n records.

    Raises: InsufficientSamples for fewer records than chunks, unless there are ids: then nobody
        may learn how many records there are. ShapeError, ParameterError for other ids.
    """
    if ids is not None:
        names = partition.names(ids, n)
        return lambda key: partition.by_identity(names, key, k)
    if n < k:
        raise InsufficientSamples(f"X has {n:,} records, but {k:,} members need one each")
    return lambda key: partition.by_position(n, k)


def targets(y: ArrayLike, n: int) -> NDArray[Any]:
    """A vector of n entries, one for each record, of a dtype that no single entry decides.

    Raises: ShapeError, ParameterError.
    """
    found = records.values("y", y)
    if found.dtype.kind == "O":
        found = records.values("y", found.tolist())
    if found.shape != (n,):
        raise ShapeError(f"y has shape {found.shape}, but it must be ({n},), as X has {n} rows")
    return found


def labels(y: ArrayLike, n: int, classes: NDArray[Any]) -> NDArray[Any]:
    """A vector of n of these labels, of their type.

    Raises: ShapeError, ParameterError; the latter names neither a row nor what stands there.
    """
    found = targets(y, n)
    if found.dtype.kind == "O":
        found = found.astype(str)
    texts = {"U": True, "b": False, "i": False, "u": False, "f": False}
    same = texts.get(found.dtype.kind) == texts[classes.dtype.kind]
    if n and not (same and np.isin(found, classes).all()):
        raise ParameterError("y holds something else, but every entry must be one of classes")
    return found.astype(classes.dtype)


def label_set(classes: ArrayLike) -> NDArray[Any]:
    """The labels in order: int64, float64 or texts.

    Raises: ShapeError, ParameterError.
    """
    found = array("classes", classes)
    if found.ndim != 1:
        raise ShapeError(f"classes has shape {found.shape}, but it must have one dimension")
    kinds = {"b": np.int64, "i": np.int64, "u": np.int64, "f": np.float64, "U": None}
    if found.dtype.kind not in kinds:
        rule = "it must hold integers, real numbers or texts"
        raise ParameterError(f"classes has dtype {found.dtype}, but {rule}")
    wanted = kinds[found.dtype.kind]
    ordered = np.unique(found if wanted is None else found.astype(wanted))
    if not 2 <= len(ordered) <= 256 or len(ordered) != len(found) or (ordered != ordered).any():
        refuse("classes", classes, "it must hold 2 to 256 different labels")
    return ordered


def marker(bottom: Any, classes: NDArray[Any]) -> Any:
    """What stands for bottom among these labels; None picks -1, NaN or the empty text.

    Raises: ParameterError for a label, and for what does not fit their type.
    """
    usual = {"i": -1, "f": math.nan, "U": ""}[classes.dtype.kind]
    chosen = usual if bottom is None else bottom
    found = np.asarray(chosen)
    fits = found.ndim == 0 and (found.dtype.kind == "U") == (classes.dtype.kind == "U")
    if not fits or found in classes or (classes.dtype.kind == "i" and found.dtype.kind not in "iu"):
        refuse("bottom", chosen, "it must be of the labels' type and no label")
    return chosen


def ledger_of(file: Path) -> Path:
    """The ledger next to the file with the members."""
    return file.with_name(f"{file.name}.ledger")


def place(path: str | os.PathLike[str]) -> Path:
    """An absolute path.

    Raises: ParameterError.
    """
    try:
        return Path(os.path.abspath(os.fsdecode(path)))
    except (TypeError, ValueError):
        refuse("path", path, "it must be a path")


def packed(ensemble: Ensemble) -> list[Member]:
    """The members in bytes; those that cannot be packed will say nothing, which nothing tells.

    Raises: ParameterError where no member at all can be packed.
    """
    _require_joblib()
    members = [
        member.packed(_turn(ensemble.key, chunk, 0))
        for chunk, member in enumerate(ensemble.members)
    ]
    if not any(member.whole() for member in members):
        raise ParameterError("labeler has no member that can be pickled, but save needs that")
    return members


@contextmanager
def written(file: Path, kind: str, state: dict[str, Any]) -> Iterator[Callable[[], None]]:
    """Everything that is kept, in a file of mode 0600 that what is yielded gives its name.

    The file is there whole or not at all, and no other is replaced by it.

    Raises: ParameterError when it exists or cannot be written.
    """
    content = pickle.dumps({"kind": kind, **state})

    def write(out: IO[bytes]) -> None:
        out.writelines((_FORMAT, _digest(content), content))

    try:
        if file.exists():
            raise FileExistsError("it is there already")
        with atomic.prepared(file, write) as publish:
            yield publish
    except OSError as error:
        rule = f"it must be new and in a folder that can be written ({error})"
        raise ParameterError(f"path = {str(file)!r}, but {rule}") from error


def read(file: Path, kind: str) -> dict[str, Any]:
    """What has been written; it runs whatever code is in the file.

    Raises: CheckpointError for anything else, a damaged file included.
    """
    _require_joblib()
    try:
        found = file.read_bytes()
    except OSError as error:
        rule = f"it must be a file that save wrote ({error})"
        raise CheckpointError(f"path = {str(file)!r}, but {rule}") from error
    start = len(_FORMAT) + _DIGEST
    head, content = found[:start], found[start:]
    if head != _FORMAT + _digest(content):
        rule = "it must be a whole file that save wrote, in the format of this hdp_fast"
        raise CheckpointError(f"path = {str(file)!r}, but {rule}")
    try:
        state = dict(pickle.loads(content))
    except Exception as error:
        # What it says may be about the records behind the members.
        rule = f"it must be a file that save wrote ({type(error).__name__})"
        raise CheckpointError(f"path = {str(file)!r}, but {rule}") from None
    if state.get("kind") != kind or not all(
        isinstance(state.get(name), kinds) for name, kinds in _PARTS.items()
    ):
        rule = f"it must be that of a {kind}, with all its parts"
        raise CheckpointError(f"path = {str(file)!r}, but {rule}")
    return state


_PARTS = {
    "parameters": dict,
    "plan": VotePlan,
    "members": int,
    "record": str | None,
    "ensemble": Ensemble,
    "key": str,
}


def _digest(content: bytes) -> bytes:
    """Tells a damaged file; anybody can make a file with the right one."""
    return hashlib.blake2b(content, digest_size=_DIGEST).digest()


def require_free(file: Path) -> None:
    """Refuse to go on where no members could be kept in this new file.

    Raises: ImportError without joblib; CheckpointError for a ledger that another file needs.
    """
    _require_joblib()
    check_free(ledger_of(place(file)), file)


def _require_joblib() -> None:
    try:
        importlib.import_module("joblib")
    except ImportError as error:
        text = "saving and loading members needs joblib: pip install hdp-fast[parallel]"
        raise ImportError(text) from error


def _turn(key: bytes, chunk: int, position: int) -> Turn:
    """The turn of one member, for its training (position 0) or for the queries from one on."""
    return Turn(_seed(key, chunk, position), os.getpid())


def _seed(key: bytes, chunk: int, position: int) -> int:
    """The seed of one member, for its training (position 0) or for the queries from one on."""
    text = f"member {chunk} {position}".encode()
    return int.from_bytes(hashlib.blake2b(text, key=key, digest_size=4).digest())
