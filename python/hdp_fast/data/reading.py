"""How untrusted files are read: damage becomes an error of one line that shows no content.

Libraries quote what they could not read, in their messages and in those of the errors that led to
them. Their messages are therefore dropped with the whole chain of errors; only the kind of damage
is kept.
"""

from __future__ import annotations

import errno
import gzip
import io
import math
import os
import stat
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from .._support.validate import positive_int
from ..exceptions import HdpFastError, ParameterError, ShapeError

T = TypeVar("T")

# What unpacks to more is read only where a caller says so: a small file may unpack to any size.
MOST_BYTES = 1 << 32
# Bytes that are unpacked at a time.
_CHUNK_BYTES = 1 << 24
# A thousand times the length of a file of JSON that people write or share.
_LONGEST_TEXT = 1 << 26
# An array without values may declare any length, since the file need not hold a byte of it.
_LONGEST_EMPTY = 1 << 20
_PLAIN = "of plain numbers (pickled objects are never loaded)"
# How numpy's files begin.
_ARRAY = b"\x93NUMPY"


@contextmanager
def read_safely(source: object, kind: str) -> Iterator[None]:
    """Turns whatever a reader raises in the block into one error that shows nothing of the content.

    source is what is read, a path or words; kind is what an undamaged one is. The error is a
    ParameterError. Errors of this package pass as they are.
    """
    try:
        yield
    except HdpFastError:
        raise
    # Readers of damaged files raise nearly every error, and nothing but a reader runs here.
    except Exception as error:
        fault = ParameterError(f"can't read {source}: {_fault(error, kind)}")
        try:
            raise fault
        finally:
            fault.__context__ = None


def _fault(error: Exception, kind: str) -> str:
    if isinstance(error, OSError) and error.errno is not None:
        return os.strerror(error.errno)
    if isinstance(error, MemoryError):
        return "it must fit into memory"
    if isinstance(error, UnicodeError):
        return f"it must be a whole {kind} (not UTF-8)"
    if isinstance(error, gzip.BadGzipFile):
        return f"it must be a whole {kind} (nothing that gzip wrote)"
    if isinstance(error, EOFError):
        return f"it must be a whole {kind} (it ends too early)"
    name, module = type(error).__name__, type(error).__module__.lstrip("_")
    return f"it must be a whole {kind} ({name if module == 'builtins' else f'{module}.{name}'})"


def parse_file(
    path: Path,
    kind: str,
    parse: Callable[[str], T],
    *,
    open_file: Callable[[Path], IO[bytes]] = lambda path: path.open("rb"),
) -> T:
    """The result of `parse` on a file of moderate length; kind is what an undamaged one is.

    Every error is a ParameterError that names the file, the one that `parse` raises included.
    """
    with read_safely(path, kind), io.TextIOWrapper(open_file(path), encoding="utf-8") as handle:
        text = handle.read(_LONGEST_TEXT + 1)
    if len(text) > _LONGEST_TEXT:
        raise ParameterError(f"can't read {path}: it is too long for a {kind}")
    try:
        return parse(text)
    except ParameterError as error:
        raise ParameterError(f"{path}: {error}") from None


def check_size(source: object, size: int, most: int) -> None:
    """Refuses what unpacks to more bytes than a caller allows.

    It raises ParameterError, which names the limit and the flag that sets it.
    """
    positive_int("max_bytes", most, 1 << 62)
    if size > most:
        rule = f"max_bytes = {most:,} are allowed (--max-bytes sets it)"
        raise ParameterError(
            f"can't read {source}: it unpacks to {size:,} bytes or more, but {rule}"
        )


class _Limited(io.RawIOBase):
    """A stream of bytes that fails once more were read than a caller allows."""

    def __init__(self, handle: IO[bytes], source: object, most: int) -> None:
        self._handle, self._source, self._most, self._count = handle, source, most, 0

    def readable(self) -> bool:
        return True

    def readinto(self, target: Any) -> int:
        part = self._handle.read(min(len(target), _CHUNK_BYTES))
        self._count += len(part)
        check_size(self._source, self._count, self._most)
        target[: len(part)] = part
        return len(part)

    def close(self) -> None:
        # No one opens the standard input again.
        if self._handle is not getattr(sys.stdin, "buffer", None):
            self._handle.close()
        super().close()


def limit(handle: IO[bytes], source: object, most: int) -> IO[bytes]:
    """The stream, which raises the error of `check_size` where it holds more bytes."""
    return io.BufferedReader(_Limited(handle, source, most))


def read_whole(handle: IO[bytes], source: object, most: int) -> bytes:
    """All bytes of a file that is not packed, or of the standard input.

    It raises the error of `check_size`.
    """
    size = _stored_size(handle)
    if size is not None:
        check_size(source, size, most)
        return handle.read()
    limited, parts = limit(handle, source, most), []
    while part := limited.read(_CHUNK_BYTES):
        parts.append(part)
    return b"".join(parts)


def open_regular(path: Path) -> IO[bytes]:
    """A regular file, open for reading bytes: what others may put anything in place of.

    No link is followed, where the platform can tell, and what could block or never end is not read.

    It raises OSError for anything else.
    """
    flags = ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY")
    # To open a device may already do something.
    _require_regular(os.lstat(path))
    descriptor = os.open(path, sum(getattr(os, flag, 0) for flag in flags))
    try:
        _require_regular(os.fstat(descriptor))
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def _require_regular(status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "it must be a regular file")


def _stored_size(handle: IO[bytes]) -> int | None:
    """The size of a regular file; None of anything else, which may be endless."""
    try:
        status = os.fstat(handle.fileno())
    except OSError:
        return None
    return status.st_size if stat.S_ISREG(status.st_mode) else None


@contextmanager
def open_arrays(path: Path, most: int = MOST_BYTES) -> Iterator[Any]:
    """An array or an archive of arrays, open in the block; nothing that would run code when loaded.

    What the arrays declare is compared with the `most` bytes allowed before any is unpacked.

    It raises ParameterError, and ShapeError for an array that declares a length and holds nothing.
    """
    check_size(path, 0, most)
    form = f"{path.suffix} file" + (", a zip," if path.suffix.lower() == ".npz" else "")
    kind = f"{form} {_PLAIN}"
    with read_safely(path, kind):
        handle = path.open("rb")
    # Opened here, since numpy does not close a file that turns out to be damaged.
    with handle:
        with read_safely(path, kind), _silence():
            if handle.read(len(_ARRAY)) == _ARRAY:
                handle.seek(0)
                check_size(path, _read_header(handle)[1], most)
            handle.seek(0)
            loaded = np.load(handle, allow_pickle=False)
            if not isinstance(loaded, np.ndarray):
                check_size(path, sum(size for _, size in read_headers(loaded).values()), most)
        if isinstance(loaded, np.ndarray) != (path.suffix.lower() == ".npy"):
            raise ParameterError(f"{path} must hold what its name says, an {path.suffix} file")
        yield check_stored(loaded, str(path)) if isinstance(loaded, np.ndarray) else loaded


def map_array(path: Path) -> NDArray[Any]:
    """The array in a .npy file, of which is read what is looked at.

    It raises the errors of open_arrays.
    """
    with read_safely(path, f".npy file {_PLAIN}"), _silence():
        loaded: Any = np.load(path, mmap_mode="r", allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            return loaded
        loaded.close()
    raise ParameterError(f"{path} must hold what its name says, a .npy file")


def read_headers(archive: Any) -> dict[str, tuple[tuple[int, ...], int]]:
    """The shape and size in bytes that each array of an open archive declares, by name.

    What is no array has no shape. Nothing but headers is unpacked. Errors are those of numpy and
    zipfile.
    """
    return {name: _read_member_header(archive.zip, name) for name in archive.files}


def _read_member_header(packed: Any, name: str) -> tuple[tuple[int, ...], int]:
    # numpy drops this suffix from names, and hands out what has no such header as bytes.
    member = f"{name}.npy" if f"{name}.npy" in packed.NameToInfo else name
    with packed.open(member) as handle:
        if handle.read(len(_ARRAY)) != _ARRAY:
            return (), packed.getinfo(member).file_size
    with packed.open(member) as handle:
        return _read_header(handle)


def _read_header(handle: IO[bytes]) -> tuple[tuple[int, ...], int]:
    """The shape and size in bytes that an array declares."""
    version = np.lib.format.read_magic(handle)
    form = np.lib.format
    read = form.read_array_header_1_0 if version == (1, 0) else form.read_array_header_2_0
    shape, _, dtype = read(handle)
    return shape, math.prod(shape) * dtype.itemsize


def read_member(archive: Any, name: str, where: str) -> NDArray[Any]:
    """One array of an open archive, of any dtype but object; where is the array in words.

    It raises the errors of open_arrays.
    """
    with read_safely(where, "array of plain numbers or texts"), _silence():
        values = archive[name]
    return check_stored(values, where)


def check_stored(values: Any, where: str) -> NDArray[Any]:
    """The array, if it is one and is about as long as what the file holds of it.

    It raises ParameterError or ShapeError otherwise.
    """
    # numpy hands out a member of an archive that does not look like an array as bytes.
    if not isinstance(values, np.ndarray):
        raise ParameterError(f"can't read {where}: it must be an array")
    if not values.nbytes and max(values.shape, default=0) > _LONGEST_EMPTY:
        raise ShapeError(f"{where} must not declare more rows or columns than it holds values")
    if values.dtype.kind == "U" and values.nbytes and _points(values).max() > sys.maxunicode:
        raise ParameterError(f"can't read {where}: it must be an array of texts")
    return values


def _points(texts: NDArray[np.str_]) -> NDArray[np.uint32]:
    """Code points of all characters. For an invalid one numpy raises an error of Python's own."""
    native = np.ascontiguousarray(texts, texts.dtype.newbyteorder("="))
    return native.reshape(-1).view(np.uint32)


def count_declared(metadata: Any) -> int:
    """The number of values for which a reader reserves memory, by the metadata of a .parquet."""
    groups = [metadata.row_group(place) for place in range(metadata.num_row_groups)]
    rows = max([int(metadata.num_rows), *(int(group.num_rows) for group in groups)])
    return rows * int(metadata.num_columns)


def reserve_memory(entries: int) -> None:
    """Reserves memory for a number of floats and frees it, before a library tries without asking.

    It raises MemoryError, or ValueError for a number that is no size.
    """
    np.empty(entries, np.float64)


@contextmanager
def _silence() -> Iterator[None]:
    # A damaged header may be text of which Python's own parser warns with a quotation.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
