"""Reading 0/1 examples from .npy, .npz and .csv files, and writing results whole or not at all."""

from __future__ import annotations

import itertools
import os
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from .._support import atomic
from .._support.notes import note
from .._support.types import Bits
from ..exceptions import ParameterError, ShapeError
from ..gf2 import BitMatrix
from .reading import open_arrays, read_member, read_safely

Array = NDArray[Any]

# Numbers of a text file held as floats at any time: 32 MB, whatever the size of the file.
_CHUNK_VALUES = 1 << 22
# A line of a million values, each as long as numbers get, is half as long.
_LONGEST_LINE = 1 << 26
_CSV = "table of 0 and 1 separated by commas, in UTF-8"
# What a column of labels is usually called.
_LABEL_NAMES = ("label", "labels", "y", "target", "class")


@dataclass(frozen=True, eq=False)
class Examples:
    """Labeled examples read from a file.

    Attributes:
        X: the features, a 0/1 array (m, d) or a BitMatrix of that shape.
        y: the labels, a 0/1 array (m,).
    """

    X: Array | BitMatrix
    y: Array


def read_examples(
    path: str | os.PathLike[str],
    *,
    labels: str | os.PathLike[str] | None = None,
    label: str | None = None,
) -> Examples:
    """Read features and labels from one file, or from one file each.

    path: .npy (a matrix; needs labels), .npz (arrays X and y, or X_packed and ncols in the layout
    of packbits(bitorder="little")), or .csv (header optional; the last column is the label).
    labels: a .npy or .csv file with one column of labels, which then replaces those in path.
    label: name of the label's column in a .csv file with a header.
    Pickled objects are never loaded.

    Raises: ParameterError for an unreadable file or values other than 0 and 1, ShapeError for
        shapes that do not fit together.
    Cost: O(m d), one copy of the data in memory.
    Source: the formats of numpy.save and numpy.savez; RFC 4180 without quoted line breaks.
    """
    source = Path(path)
    if labels is not None and label is not None:
        raise ParameterError("labels and label must not both be given")
    suffix = source.suffix.lower()
    if label is not None and suffix != ".csv":
        raise ParameterError(f"label must go with a .csv file, got label {label!r} for {source}")
    read = {".npy": _read_npy, ".npz": _read_npz, ".csv": _read_csv}.get(suffix)
    if read is None:
        raise ParameterError(f"data file must end in .npy, .npz or .csv, got {source}")
    X, y = read(source, labels is not None, label)
    if labels is not None:
        y = read_labels(labels)
    if y is None:
        raise ParameterError(f"labels must be given for {source}: it holds no array of labels")
    if y.ndim != 1 or y.shape[0] != X.shape[0]:
        raise ShapeError(
            f"labels must have shape ({X.shape[0]},), one for each row of {source}, got {y.shape}"
        )
    return Examples(X, y)


def read_labels(path: str | os.PathLike[str]) -> Array:
    """Read one column of labels.

    path: .npy with a vector, or .csv with one column and an optional header. Returns 0/1 (m,).

    Raises: ParameterError for an unreadable file or values other than 0 and 1, ShapeError when it
        holds more than one column.
    Cost: O(m).
    Source: as read_examples.
    """
    source = Path(path)
    suffix = source.suffix.lower()
    if suffix == ".npy":
        values = _load_bits(source)
    elif suffix == ".csv":
        values = _read_csv_matrix(source)[1]
    else:
        raise ParameterError(f"labels file must end in .npy or .csv, got {source}")
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1:
        raise ShapeError(f"labels must be one column, got shape {values.shape} in {source}")
    return values


def check_writable(path: str | os.PathLike[str]) -> None:
    """Refuse a path that write_atomically could not write, before any work is done for it.

    path: where a file will be written.

    Raises: ParameterError naming the path and what is wrong with it.
    Cost: constant.
    Source: none.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        # Replacing a device such as /dev/null by a file would break the machine.
        raise ParameterError(f"output must be a regular file, got {path}")
    if not target.parent.is_dir():
        raise ParameterError(f"output must be in an existing directory, got {path}")
    if not os.access(target.parent, os.R_OK | os.W_OK | os.X_OK):
        raise ParameterError(f"output must be in a readable and writable directory, got {path}")


def write_atomically(path: str | os.PathLike[str], data: bytes) -> None:
    """Write a file so that a reader sees the old content or the whole new one, never a part.

    path: a regular file to create or replace, which keeps its mode; data: its content.

    Raises: ParameterError when it can't be written; the old file is then left as it was.
    Cost: O(len(data)), synchronized to the disk, and its directory, too.
    Source: write under another name in the same directory, then rename.
    """
    check_writable(path)
    try:
        atomic.replace(Path(os.path.realpath(path)), lambda out: out.write(data))
    except OSError as error:
        raise ParameterError(
            f"output can't be written to {path}: {describe_error(error)}"
        ) from error


def describe_error(error: Exception) -> str:
    """What an exception says went wrong, in a few words."""
    return (isinstance(error, OSError) and error.strerror) or str(error) or type(error).__name__


def _load_bits(path: Path) -> Array:
    with open_arrays(path) as loaded:
        return _check_bits(loaded, str(path))


def _check_bits(values: Array, name: str) -> Array:
    """Integers pass as they are, for the core checks them; floats must be exactly 0 or 1."""
    if values.dtype.kind in "bui":
        return values
    if values.dtype.kind != "f":
        raise ParameterError(f"{name} must hold only 0 and 1, got dtype {values.dtype}")
    if not _are_bits(values):
        raise ParameterError(f"{name} must hold only 0 and 1, but holds another number")
    return values.astype(np.uint8)


def _read_npy(path: Path, has_labels: bool, label: str | None) -> tuple[Array, Array | None]:
    X = _load_bits(path)
    if X.ndim != 2:
        raise ShapeError(f"{path} must have 2 dimensions, got {X.ndim}")
    return X, None


def _read_npz(
    path: Path, has_labels: bool, label: str | None
) -> tuple[Array | BitMatrix, Array | None]:
    with open_arrays(path) as archive:
        names = set(archive.files)
        packed = {"X_packed", "ncols"} <= names
        if not packed and "X" not in names:
            raise ParameterError(f"{path} must hold X and y, or X_packed, ncols and y")
        y = _read_bits(archive, "y", path) if "y" in names and not has_labels else None
        if packed:
            return _read_packed(archive, path), y
        X = _read_bits(archive, "X", path)
    if X.ndim != 2:
        raise ShapeError(f"X in {path} must have 2 dimensions, got {X.ndim}")
    return X, y


def _read_bits(archive: Any, name: str, path: Path) -> Array:
    where = f"{name} in {path}"
    return _check_bits(read_member(archive, name, where), where)


def _read_packed(archive: Any, path: Path) -> BitMatrix:
    names = ("ncols", "X_packed")
    columns, rows = (read_member(archive, name, f"{name} in {path}") for name in names)
    if columns.shape != () or columns.dtype.kind not in "ui":
        raise ParameterError(f"ncols in {path} must be one integer")
    if rows.dtype != np.uint8 or rows.ndim != 2:
        raise ShapeError(
            f"X_packed in {path} must be uint8 with 2 dimensions, got {rows.dtype} {rows.shape}"
        )
    if rows.shape[1] != -(-int(columns) // 8):
        raise ShapeError(f"X_packed in {path} must have the bytes of ncols columns in each row")
    return BitMatrix.from_packed(rows, int(columns))


def _read_csv(path: Path, has_labels: bool, label: str | None) -> tuple[Array, Array | None]:
    header, values = _read_csv_matrix(path)
    if has_labels:
        if header is not None and header[-1].lower() in _LABEL_NAMES:
            rows = f"{path} ends in a column that is named like a label"
            note(
                f"{rows}, and is taken for a feature beside the other labels: leave it or them out"
            )
        return values, None
    column = values.shape[1] - 1
    if label is not None:
        if header is None or header.count(label) != 1:
            raise ParameterError(f"label must name one column of {path}, got {label!r}")
        column = header.index(label)
    if values.shape[1] < 2:
        raise ShapeError(f"{path} must have a feature and a label column, got {values.shape[1]}")
    return np.delete(values, column, axis=1), values[:, column]


def _read_csv_matrix(path: Path) -> tuple[list[str] | None, Bits]:
    """The header, where there is one, and all values of a .csv file."""
    with read_safely(path, _CSV), path.open(encoding="utf-8-sig") as handle:
        text_lines = _read_lines(handle, path)
        first = next(text_lines, "")
        header = _parse_csv_header(first, path)
        lines = itertools.chain([] if header else [first], text_lines)
        width = first.count(",") + 1
        parts = list(_read_csv_parts(lines, width, 2 if header else 1, path))
    if not parts:
        raise ShapeError(f"{path} must have at least one row of values")
    return header, np.concatenate(parts)


def _read_lines(handle: IO[str], path: Path) -> Iterator[str]:
    """The lines of a file, none of which is read without an end."""
    for number in itertools.count(1):
        line = handle.readline(_LONGEST_LINE)
        if not line:
            return
        if len(line) == _LONGEST_LINE:
            raise ParameterError(f"line {number} of {path} must end after a table's row of values")
        yield line


def _parse_csv_header(first: str, path: Path) -> list[str] | None:
    fields = [field.strip().strip('"') for field in first.split(",")]
    numeric = [_is_number(field) for field in fields]
    if not first:
        raise ShapeError(f"{path} is empty: it must have at least one row of values")
    if not first.strip():
        raise ShapeError(f"{path} must not start with an empty line")
    if all(numeric):
        return None
    if any(numeric):
        # Taking such a line for a header would silently drop a damaged row of values.
        raise ParameterError(f"line 1 of {path} must be all names or all 0 and 1")
    return fields


def _is_number(field: str) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


def _read_csv_parts(lines: Iterator[str], width: int, line: int, path: Path) -> Iterator[Bits]:
    rows = max(1, _CHUNK_VALUES // width)
    while chunk := list(itertools.islice(lines, rows)):
        filled = [text for text in chunk if not text.isspace()]
        try:
            with warnings.catch_warnings():
                # An empty chunk is no mistake here: the end of the file may be blank lines.
                warnings.simplefilter("ignore", UserWarning)
                values = np.loadtxt(filled, delimiter=",", comments=None, ndmin=2, quotechar='"')
        except ValueError:
            values = None
        if values is None or (filled and values.shape[1] != width) or not _are_bits(values):
            raise _find_csv_error(chunk, width, line, path)
        if filled:
            yield values.astype(np.uint8)
        line += len(chunk)


def _are_bits(values: Array) -> bool:
    return bool(((values == 0) | (values == 1)).all())


def _find_csv_error(chunk: list[str], width: int, line: int, path: Path) -> Exception:
    """Find the first line that breaks a rule; only reached when one does."""
    for number, text in enumerate(chunk, start=line):
        fields = [field.strip().strip('"') for field in text.split(",")]
        if text.isspace():
            continue
        if len(fields) != width:
            return ShapeError(
                f"line {number} of {path} must have {width} values, {len(fields)} found"
            )
        for column, field in enumerate(fields, start=1):
            if not _is_number(field) or float(field) not in (0, 1):
                # The place, never the value: a file of other numbers is a private one, too.
                return ParameterError(f"line {number}, column {column} of {path} must be 0 or 1")
    return ParameterError(f"{path} must be a {_CSV}")
