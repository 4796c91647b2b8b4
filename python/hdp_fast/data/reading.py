"""How untrusted files are read: damage becomes an error of one line that shows no content.

Libraries quote what they could not read, in their messages and in those of the errors that led to
them. Their messages are therefore dropped with the whole chain of errors; only the kind of damage
is kept.
"""

from __future__ import annotations

import gzip
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..exceptions import HdpFastError, ParameterError, ShapeError

T = TypeVar("T")

# A thousand times the length of a file of JSON that people write or share.
_LONGEST_TEXT = 1 << 26
# An array without values may declare any length, since the file need not hold a byte of it.
_LONGEST_EMPTY = 1 << 20


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
        raise ParameterError(f"can't read {source}: {_fault(error, kind)}") from None


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


def parse_file(path: Path, kind: str, parse: Callable[[str], T]) -> T:
    """The result of `parse` on a file of moderate length; kind is what an undamaged one is.

    Every error is a ParameterError that names the file, the one that `parse` raises included.
    """
    with read_safely(path, kind), path.open(encoding="utf-8") as handle:
        text = handle.read(_LONGEST_TEXT + 1)
    if len(text) > _LONGEST_TEXT:
        raise ParameterError(f"can't read {path}: it is too long for a {kind}")
    try:
        return parse(text)
    except ParameterError as error:
        raise ParameterError(f"{path}: {error}") from None


@contextmanager
def open_arrays(path: Path) -> Iterator[Any]:
    """An array or an archive of arrays, open in the block; nothing that would run code when loaded.

    It raises ParameterError, and ShapeError for an array that declares a length and holds nothing.
    """
    form = f"{path.suffix} file" + (", a zip," if path.suffix.lower() == ".npz" else "")
    kind = f"{form} of plain numbers (pickled objects are never loaded)"
    with read_safely(path, kind):
        handle = path.open("rb")
    # Opened here, since numpy does not close a file that turns out to be damaged.
    with handle:
        with read_safely(path, kind), _silence():
            loaded = np.load(handle, allow_pickle=False)
        if isinstance(loaded, np.ndarray) != (path.suffix.lower() == ".npy"):
            raise ParameterError(f"{path} must hold what its name says, an {path.suffix} file")
        yield check_stored(loaded, str(path)) if isinstance(loaded, np.ndarray) else loaded


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
