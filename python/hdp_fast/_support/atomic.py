"""Files that appear whole or not at all, and are on the disk before anybody relies on them.

A file is written under another name in its folder and then linked or renamed. A writer holds a
shared lock on the folder, which ends with its process, however that ends. A process that gets the
lock exclusively therefore knows that all scratch files there belong to writers that were killed,
and removes them.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import secrets
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

Writer = Callable[[IO[bytes]], object]

_SUFFIX = ".hdp_fast.tmp"
_SCRATCH = re.compile(rf"\..+\.[0-9a-f]{{16}}{re.escape(_SUFFIX)}", re.DOTALL)
# Errors of file systems that cannot synchronize a folder, which are passed over.
_NO_FOLDERS = {errno.EINVAL, errno.ENOTSUP, errno.ENOSYS}


def create(target: Path, write: Writer, mode: int = 0o600) -> None:
    """Makes a new file. `write` gets the open file, and may be called a second time.

    Raises:
        FileExistsError: There is a file of that name, which stays as it is.
        OSError: The file cannot be written. Neither this nor an error of `write` leaves anything
            behind.
    """
    # Unlike a rename, a link never replaces a file.
    _place_file(target, write, mode, os.link)


@contextmanager
def prepare(target: Path, write: Writer, mode: int = 0o600) -> Iterator[Callable[[], None]]:
    """Makes a new file that is whole but gets its name only when what is yielded is called.

    Raises the errors of `create`.
    """
    with _hold_folder(target.parent), _write_scratch(target, write, mode) as scratch:
        yield lambda: os.link(scratch, target)


def replace(target: Path, write: Writer) -> None:
    """Makes a file, or replaces one and keeps its mode.

    Raises:
        OSError: The file cannot be written. This and an error of `write` leave the old file as it
            was.
    """
    try:
        mode = stat.S_IMODE(os.stat(target).st_mode)
    except FileNotFoundError:
        _place_file(target, write, 0o666, os.replace)
        return

    def write_in_mode(out: IO[bytes]) -> None:
        # Users who could not read the old file must not be able to read the new one.
        os.fchmod(out.fileno(), mode)
        write(out)

    _place_file(target, write_in_mode, 0o600, os.replace)


def remove_second_names(target: Path) -> None:
    """Removes scratch names of a file whose writer was killed between linking and unlinking."""
    status = os.stat(target)
    for scratch in _scratch_files(target.parent):
        with suppress(OSError):
            if os.path.samestat(os.stat(scratch), status):
                os.unlink(scratch)


def _place_file(
    target: Path, write: Writer, mode: int, place: Callable[[str, Path], object]
) -> None:
    with _hold_folder(target.parent):
        while True:
            with _write_scratch(target, write, mode) as scratch:
                try:
                    place(scratch, target)
                    return
                except FileNotFoundError:
                    # On some file systems locks do not keep others from removing the file: try
                    # again.
                    if os.path.exists(scratch):
                        raise


@contextmanager
def _write_scratch(target: Path, write: Writer, mode: int) -> Iterator[str]:
    """Yields the name of a file with that content, on the disk; removes it afterwards."""
    name = f".{target.name[:40]}.{secrets.token_hex(8)}{_SUFFIX}"
    scratch = os.path.join(target.parent, name)
    try:
        handle = os.open(scratch, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode)
        # Closed before the file gets its name: closing it later would end this process's locks.
        with os.fdopen(handle, "wb") as out:
            write(out)
            out.flush()
            os.fsync(handle)
        yield scratch
    finally:
        with suppress(FileNotFoundError):
            os.unlink(scratch)


@contextmanager
def _hold_folder(folder: Path) -> Iterator[None]:
    """Removes what killed writers left in a folder, locks it for the block, and synchronizes it."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        leftovers = _scratch_files(folder)
        if leftovers and _try_lock(handle, fcntl.LOCK_EX):
            for scratch in leftovers:
                with suppress(OSError):
                    os.unlink(scratch)
        _try_lock(handle, fcntl.LOCK_SH)
        yield
        _synchronize(handle)
    finally:
        os.close(handle)


def _try_lock(handle: int, lock: int) -> bool:
    """Takes the lock if it is free, and returns whether it was: others could hold it for long."""
    try:
        fcntl.flock(handle, lock | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _scratch_files(folder: Path) -> list[str]:
    with os.scandir(folder) as entries:
        return [
            entry.path
            for entry in entries
            if _SCRATCH.fullmatch(entry.name) and entry.is_file(follow_symlinks=False)
        ]


def _synchronize(handle: int) -> None:
    """Writes the folder to the disk: a file lost in a power failure loses what was spent."""
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in _NO_FOLDERS:
            raise
