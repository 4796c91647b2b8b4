"""Files that appear whole or not at all, and are on the disk before anybody relies on them.

A file is written under another name in its folder and then linked or renamed. A writer holds a
shared lock on the folder, which ends with its process, however that ends. A process that gets the
lock exclusively therefore knows that all scratch files there belong to writers that were killed,
and removes them. Locks and folders on the disk are what POSIX has: elsewhere nothing is written,
and an error says so.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import sqlite3
import stat
import sys
import zipfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import IO

try:
    import fcntl
except ImportError:  # What follows says so, once a file is to be written.
    fcntl = None  # type: ignore[assignment]

# How a saved labeler begins.
LABELER = b"hdp_fast labeler "
# What the text of a saved statistics labeler calls its format.
STATISTICS_LABELER = "hdp_fast.statistics_labeler"
# What SQLite adds to the name of a file for its logs.
LOG_ENDINGS = ("-wal", "-shm", "-journal")

_DATABASE = b"SQLite format 3\0"
_HEADER_BYTES = 100
# A write-ahead log begins with one of the first two, a journal with the third.
_LOGS = (b"\x37\x7f\x06\x82", b"\x37\x7f\x06\x83", b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7")


def describe_kept(path: str | os.PathLike[str]) -> str | None:
    """Says what an output at this path would destroy; None if it may be written.

    Args:
        path: A regular file, or the name of one that is yet to come. Links are followed.
    """
    target = Path(os.path.realpath(path))
    for ending in LOG_ENDINGS:
        owner = target.with_name(target.name.removesuffix(ending) or target.name)
        if owner != target and _describe_content(owner) == "a database of SQLite":
            return f"a log of {owner}"
    return _describe_content(target)


def _describe_content(path: Path) -> str | None:
    if not path.is_file():
        return None
    # SQLite looks first: closing another descriptor of a file ends the locks of this process on it.
    if _opens_as_database(path):
        return "a database of SQLite"
    try:
        with path.open("rb") as file:
            head = file.read(_HEADER_BYTES)
    except OSError:
        return "a file that cannot be read"
    if _is_damaged_database(head):
        return "a database of SQLite"
    if head.startswith(_LOGS):
        return "a log of SQLite"
    if head.startswith(LABELER) or _is_statistics_labeler(path):
        return "a saved labeler"
    return None


def _opens_as_database(path: Path) -> bool:
    try:
        address = f"{path.as_uri()}?mode=ro&immutable=1"
        with closing(sqlite3.connect(address, uri=True)) as connection:
            # An empty file is a database without a schema.
            ((version,),) = connection.execute("PRAGMA schema_version").fetchall()
            return bool(version)
    except sqlite3.Error:
        return False


def _is_damaged_database(head: bytes) -> bool:
    """One flipped bit leaves the first letters or the constants and the application's letters."""
    return head.startswith(_DATABASE) or (head[21:24], head[68:71]) == (b"\x40\x20\x20", b"HDP")


def _is_statistics_labeler(path: Path) -> bool:
    try:
        with zipfile.ZipFile(path) as archive, archive.open("text.npy") as member:
            return STATISTICS_LABELER.encode("utf-32-le") in member.read(1 << 10)
    except Exception:  # What a damaged archive raises is no fixed list.
        return False


# What several machines can write to at once. Most lack shared memory between machines, which
# SQLite's write-ahead log needs, and many have locks that a lost connection ends silently.
_NETWORK = {"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "coda"}
_NETWORK |= {"ceph", "lustre", "gpfs", "beegfs", "panfs", "pvfs2"}
_NETWORK |= {
    f"fuse.{name}"
    for name in ("sshfs", "glusterfs", "ceph", "ceph-fuse", "s3fs", "gcsfuse", "rclone", "juicefs")
}


def network_type(path: Path) -> str | None:
    """The type of the network file system that holds a path; None for any other or an unknown one.

    The path must be without symbolic links, but need not exist.
    """
    kind = _type_of(path, _mountinfo())
    return kind if kind in _NETWORK else None


def _mountinfo() -> str:
    """The lines of /proc/self/mountinfo, see proc(5); empty where there is none, as on macOS."""
    try:
        return Path("/proc/self/mountinfo").read_text(errors="surrogateescape")
    except OSError:
        return ""


def _type_of(path: Path, mountinfo: str) -> str | None:
    """The type of the innermost mount that holds a path; of several at one place, of the latest."""
    above = {str(folder): len(folder.parts) for folder in (path, *path.parents)}
    longest, kind = 0, None
    for line in mountinfo.splitlines():
        before, _, after = line.partition(" - ")
        fields, types = before.split(" "), after.split(" ")
        # A blank in a name is written \040.
        point = re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), fields[4])
        if above.get(point, 0) >= max(longest, 1):
            longest, kind = above[point], types[0]
    return kind


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
        found = os.stat(target).st_mode
    except FileNotFoundError:
        _place_file(target, write, 0o666, os.replace)
        return
    if not stat.S_ISREG(found):
        # Whoever is root could replace a device, such as /dev/null.
        raise OSError(errno.EINVAL, "it must be a regular file")
    mode = stat.S_IMODE(found)

    def write_in_mode(out: IO[bytes]) -> None:
        # Users who could not read the old file must not be able to read the new one.
        if sys.platform != "win32":
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
    with _open_folder(folder) as handle:
        leftovers = _scratch_files(folder)
        if leftovers and try_lock(handle, alone=True):
            for scratch in leftovers:
                with suppress(OSError):
                    os.unlink(scratch)
        try_lock(handle)
        yield
        _synchronize(handle)


@contextmanager
def _open_folder(folder: Path) -> Iterator[int]:
    require_posix()
    handle = os.open(folder, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0))
    try:
        yield handle
    finally:
        os.close(handle)


def require_posix() -> None:
    """Refuses to keep anything on a system without the locks and the folders of POSIX.

    A file that two processes write at once, or that a power failure takes back, forgets what was
    spent.

    Raises:
        OSError: It is such a system. The text names it, and what it lacks.
    """
    if fcntl is None:
        lacks = f"file locks and synchronized folders, which {sys.platform} lacks"
        remedy = "use Linux, macOS or the Windows Subsystem for Linux"
        raise OSError(errno.ENOTSUP, f"it needs POSIX's {lacks}: {remedy}")


def try_lock(handle: int, *, alone: bool = False) -> bool:
    """Takes the lock on an open file if it is free, and returns whether it was.

    It does not wait: others could hold it for long. The lock ends with the process, or once the
    file is closed.

    Args:
        handle: The descriptor of a file or a folder.
        alone: Whether nobody else may hold it then.

    Raises:
        OSError: The system has no such locks.
    """
    require_posix()
    if sys.platform == "win32":
        return False
    try:
        fcntl.flock(handle, (fcntl.LOCK_EX if alone else fcntl.LOCK_SH) | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def synchronize_folder(folder: Path) -> None:
    """Writes to the disk what names a folder holds.

    Raises:
        OSError: It cannot be written, or the system cannot do so.
    """
    with _open_folder(folder) as handle:
        _synchronize(handle)


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
