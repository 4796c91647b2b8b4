"""The file that keeps the members of a labeler, checked before anything in it is run."""

from __future__ import annotations

import hashlib
import importlib
import os
import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from .._support import atomic
from .._support.kept_files import LABELER
from .._support.validate import refuse
from ..exceptions import CheckpointError, ParameterError
from ..stability.plans import VotePlan
from .ensemble import Ensemble, turn_of
from .members import Member
from .usage import check_free

# Raised by one whenever the parts or their names change.
_FORMAT = LABELER + b"3\n"
_DIGEST = 32


def ledger_of(file: Path) -> Path:
    """The path of the ledger beside the file with the members."""
    return file.with_name(f"{file.name}.ledger")


def resolve_path(path: str | os.PathLike[str]) -> Path:
    """The absolute path.

    Raises:
        ParameterError: It is no path.
    """
    try:
        return Path(os.path.abspath(os.fsdecode(path)))
    except (TypeError, ValueError):
        refuse("path", path, "it must be a path")


def pack_members(ensemble: Ensemble) -> list[Member]:
    """Pack the members as bytes. One that cannot be packed will predict nothing, and is not named.

    Raises:
        ParameterError: No member at all can be packed.
    """
    _require_joblib()
    members = [
        member.pack(turn_of(ensemble.key, chunk, 0))
        for chunk, member in enumerate(ensemble.members)
    ]
    if not any(member.is_whole() for member in members):
        raise ParameterError("labeler has no member that can be pickled, but save needs that")
    return members


@contextmanager
def new_file(file: Path, kind: str, state: dict[str, Any]) -> Iterator[Callable[[], None]]:
    """Write a file of mode 0600 with all that is kept. Calling what is yielded gives it its name.

    The file is there whole or not at all, and it replaces no other file.

    Raises:
        ParameterError: The file exists or cannot be written.
    """
    content = pickle.dumps({"kind": kind, **state})

    def write(out: IO[bytes]) -> None:
        out.writelines((_FORMAT, _digest(content), content))

    try:
        if file.exists():
            raise FileExistsError("it is there already")
        with atomic.prepare(file, write) as publish:
            yield publish
    except OSError as error:
        rule = f"it must be new and in a folder that can be written ({error})"
        raise ParameterError(f"path = {str(file)!r}, but {rule}") from error


def read_file(file: Path, kind: str) -> dict[str, Any]:
    """Read what save wrote into a file. Reading runs whatever code is in it.

    Raises:
        CheckpointError: It is anything else, or damaged.
        ImportError: joblib is not installed.
    """
    _require_joblib()
    try:
        whole = file.read_bytes()
    except OSError as error:
        rule = f"it must be a file that save wrote ({error})"
        raise CheckpointError(f"path = {str(file)!r}, but {rule}") from error
    start = len(_FORMAT) + _DIGEST
    head, content = whole[:start], whole[start:]
    if head != _FORMAT + _digest(content):
        form = "in the format of this hdp_fast: use the one that wrote it"
        rule = f"it must be a whole file that save wrote, {form}"
        raise CheckpointError(f"path = {str(file)!r}, but {rule}")
    try:
        state = dict(pickle.loads(content))
    except Exception as error:
        # Its text may reveal something of the records behind the members.
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
    """The digest that a damaged file does not match; anybody can compute it."""
    return hashlib.blake2b(content, digest_size=_DIGEST).digest()


def require_free(file: Path) -> None:
    """Refuse to go on if members could not be kept in this new file.

    Raises:
        ImportError: joblib is not installed.
        CheckpointError: The ledger belongs to another file.
    """
    _require_joblib()
    check_free(ledger_of(resolve_path(file)), file)


def _require_joblib() -> None:
    try:
        importlib.import_module("joblib")
    except ImportError as error:
        text = "saving and loading members needs joblib: pip install hdp-fast[parallel]"
        raise ImportError(text) from error
