"""Files that appear whole or not at all, and are on the disk before anybody relies on them.

A file is written under another name in its folder and then linked or renamed. Whoever writes one
holds a shared lock on the folder, which ends with the process, however that ends; whoever gets the
lock alone knows that all scratch files there are of creators that were killed, and removes them.
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
# Some file systems cannot synchronize a folder; there is nothing that could be done about it.
_NO_FOLDERS = {errno.EINVAL, errno.ENOTSUP, errno.ENOSYS}


def create(target: Path, write: Writer, mode: int = 0o600) -> None:
    """Makes a new file; write is called with its handle, again should that be necessary.

    Raises: FileExistsError when there is one already, which stays as it is; OSError; whatever
        write raises. Then nothing is left behind.
    """
    # Unlike a rename, a link never replaces a file.
    _place_file(target, write, mode, os.link)


@contextmanager
def prepare(target: Path, write: Writer, mode: int = 0o600) -> Iterator[Callable[[], None]]:
    """A new file that is whole but has no name yet, which what is yielded gives it.

    Raises: as create.
    """
    with _hold_folder(target.parent), _write_scratch(target, write, mode) as scratch:
        yield lambda: os.link(scratch, target)


def replace(target: Path, write: Writer) -> None:
    """Makes a file, or replaces one and keeps its mode.

    Raises: OSError; whatever write raises. Then the old file is left as it was.
    """
    try:
        mode = stat.S_IMODE(os.stat(target).st_mode)
    except FileNotFoundError:
        _place_file(target, write, 0o666, os.replace)
        return

    def write_in_mode(out: IO[bytes]) -> None:
        # Who could not read the old file must not read the new one.
        os.fchmod(out.fileno(), mode)
        write(out)

    _place_file(target, write_in_mode, 0o600, os.replace)


def remove_second_names(target: Path) -> None:
    """Removes scratch names of a file whose creator was killed between linking and unlinking."""
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
                    # On some file systems locks do not keep others from removing it: once more.
                    if os.path.exists(scratch):
                        raise


@contextmanager
def _write_scratch(target: Path, write: Writer, mode: int) -> Iterator[str]:
    """The name of a file with that content, which is on the disk; gone after the block."""
    name = f".{target.name[:40]}.{secrets.token_hex(8)}{_SUFFIX}"
    scratch = os.path.join(target.parent, name)
    try:
        handle = os.open(scratch, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode)
        # Closed before the file gets its name: closing it would end this process's locks on it.
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
    """Holds a folder against those who tidy up, having tidied up; synchronizes it at the end."""
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
    """Whether the lock could be had at once; nobody waits, for others may lock a folder, too."""
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
    """A file that is lost on a power failure would take what was spent with it."""
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in _NO_FOLDERS:
            raise
