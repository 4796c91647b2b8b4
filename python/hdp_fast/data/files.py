"""Reading 0/1 examples from files, and writing results whole or not at all."""

from __future__ import annotations

import itertools
import os
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from .._support import atomic
from .._support.atomic import describe_kept
from .._support.notes import note
from .._support.types import Bits
from .._support.validate import file_path, refuse
from ..exceptions import ParameterError, ShapeError
from ..gf2 import BitMatrix
from .delimited import delimiter_of, guess_delimiter, is_text, name_of, open_text
from .reading import MOST_BYTES, open_arrays, read_headers, read_member, read_safely

Array = NDArray[Any]

# How many numbers of a text file are held as floats at once: 32 MB, whatever the size of the file.
_CHUNK_VALUES = 1 << 22
# Twice the length of a line of a million values, each as long as numbers get.
_LONGEST_LINE = 1 << 26
_TEXT_TABLE = "table of 0 and 1, in UTF-8"
# What a column of labels is usually called.
_LABEL_NAMES = ("label", "labels", "y", "target", "class")


@dataclass(frozen=True, eq=False)
class Examples:
    """Labeled examples read from a file.

    Attributes:
        X: Features, a 0/1 array (m, d) or a BitMatrix of that shape.
        y: Labels, a 0/1 array (m,).
    """

    X: Array | BitMatrix
    y: Array


def read_examples(
    path: str | os.PathLike[str],
    *,
    labels: str | os.PathLike[str] | None = None,
    label: str | None = None,
    delimiter: str | None = None,
    max_bytes: int = MOST_BYTES,
) -> Examples:
    """Reads features and labels from one file, or from one file each.

    Pickled objects are never loaded.

    Args:
        path: A .npy file (a matrix; it needs `labels`), a .npz file (arrays X and y, or X_packed
            and ncols in the layout of packbits(bitorder="little")), or a text in a format of
            `read_table`, except that its header is optional (the last column is the label). "-" is
            the standard input.
        labels: A .npy file or a text with one column of labels, which then replaces those in
            `path`.
        label: Name of the label's column in a text with a header.
        delimiter: One character between the values of a text, as for `read_table`.
        max_bytes: The most bytes that a file may unpack to, as for `read_table`.

    Returns:
        The examples.

    Raises:
        ParameterError: A file cannot be read, holds values other than 0 and 1, or unpacks to more
            than max_bytes.
        ShapeError: Shapes do not fit together.

    Cost:
        O(m d), with one copy of the data in memory.

    Source:
        The formats of numpy.save and numpy.savez; RFC 4180 without quoted line breaks.
    """
    source = file_path("path", path)
    if labels is not None and label is not None:
        raise ParameterError("labels and label must not both be given")
    X, y = _read_examples(source, labels is not None, label, delimiter, max_bytes)
    if labels is not None:
        y = read_labels(labels, max_bytes=max_bytes)
    if y is None:
        raise ParameterError(f"labels must be given for {source}: it holds no array of labels")
    _check_labels(source, y.shape, X.shape)
    return Examples(X, y)


def _check_labels(source: Path, y: tuple[int, ...], X: tuple[int, ...]) -> None:
    """Refuses shapes of labels and features that do not fit together."""
    if y != X[:1]:
        raise ShapeError(f"labels must have shape ({X[0]},), one for each row of {source}, got {y}")


def read_labels(path: str | os.PathLike[str], *, max_bytes: int = MOST_BYTES) -> Array:
    """Reads one column of labels.

    Args:
        path: A .npy file with a vector, or a .csv file with one column and an optional header.
        max_bytes: The most bytes that the file may unpack to, as for `read_table`.

    Returns:
        A 0/1 array (m,).

    Raises:
        ParameterError: The file cannot be read, holds values other than 0 and 1, or unpacks to more
            than max_bytes.
        ShapeError: It holds more than one column.
    """
    source = file_path("path", path)
    suffix = source.suffix.lower()
    if suffix == ".npy":
        values = _load_bits(source, max_bytes)
    elif suffix == ".csv" or str(source) == "-":
        values = _read_text_matrix(source, ",", max_bytes)[1]
    else:
        raise ParameterError(f"labels file must end in .npy or .csv, got {source}")
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1:
        raise ShapeError(f"labels must be one column, got shape {values.shape} in {source}")
    return values


def read_bits(
    path: str | os.PathLike[str], *, delimiter: str | None = None, max_bytes: int = MOST_BYTES
) -> BitMatrix:
    """Reads a matrix of 0 and 1 in any format of `read_examples`, without labels.

    Args:
        path: As for `read_examples`; labels in a .npz file are left out. A vector in a .npy file is
            a matrix of one column.
        delimiter: As for `read_examples`.
        max_bytes: As for `read_examples`.

    Raises:
        ParameterError: The file cannot be read, holds values other than 0 and 1, or unpacks to more
            than max_bytes.
        ShapeError: It has not two dimensions.
    """
    source = file_path("path", path)
    if is_text(source):
        sign = delimiter_of(source, delimiter)
        return BitMatrix.from_dense(_read_text_matrix(source, sign, max_bytes)[1])
    if source.suffix.lower() == ".npy" and delimiter is None:
        X: Array | BitMatrix = _load_bits(source, max_bytes)
        X = X[:, None] if len(X.shape) == 1 else X
    else:
        X, _ = _read_examples(source, True, None, delimiter, max_bytes)
    if isinstance(X, BitMatrix):
        return X
    if X.ndim != 2:
        raise ShapeError(f"{source} must have 2 dimensions, got {X.ndim}")
    try:
        return BitMatrix.from_dense(X)
    except ParameterError:
        rule = "every entry must be 0 or 1"
        raise ParameterError(f"{source} holds something else, but {rule}") from None


def check_writable(path: str | os.PathLike[str]) -> None:
    """Refuses a path that write_atomically could not write, before any work is done for it.

    Args:
        path: Where a file will be written.

    Raises:
        ParameterError: The path cannot be written, or is a file of state, a log of one or a saved
            labeler, which nothing replaces; the text states why.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        # Replacing a device such as /dev/null by a file would break the machine.
        raise ParameterError(f"output must be a regular file, got {path}")
    if not target.parent.is_dir():
        raise ParameterError(f"output must be in an existing directory, got {path}")
    if not os.access(target.parent, os.R_OK | os.W_OK | os.X_OK):
        raise ParameterError(f"output must be in a readable and writable directory, got {path}")
    kept = describe_kept(target)
    if kept is not None:
        rule = "output must not replace a file of state, a log of one, or a saved labeler"
        raise ParameterError(f"{rule}, got {path}, which is {kept}: choose another output")


def write_atomically(
    path: str | os.PathLike[str], data: bytes | Callable[[IO[bytes]], object]
) -> None:
    """Writes a file so that a reader sees the old content or the whole new one, never a part.

    The file is written under another name in the same directory and then renamed.

    Args:
        path: A regular file to create or replace, which keeps its mode.
        data: Its content, or a function that writes it to an open file, and may be called again.

    Raises:
        ParameterError: The file cannot be written, or there is a file of state, a log of one or a
            saved labeler. The old one is then left as it was.

    Cost:
        O(len(data)); the file and its directory are synchronized to the disk.
    """
    check_writable(path)
    write = data if callable(data) else partial(_write_all, data)
    try:
        atomic.replace(Path(os.path.realpath(path)), write)
    except OSError as error:
        raise ParameterError(
            f"output can't be written to {path}: {describe_error(error)}"
        ) from error


def _write_all(data: bytes, out: IO[bytes]) -> None:
    out.write(data)


def describe_error(error: Exception) -> str:
    """What went wrong, according to an exception, in a few words."""
    return (isinstance(error, OSError) and error.strerror) or str(error) or type(error).__name__


def _load_bits(path: Path, max_bytes: int) -> Array:
    with open_arrays(path, max_bytes) as loaded:
        return _check_bits(loaded, str(path))


def _check_bits(values: Array, name: str) -> Array:
    """Floats must be exactly 0 or 1; integers pass as they are, since the core checks them."""
    if values.dtype.kind in "bui":
        return values
    if values.dtype.kind != "f":
        raise ParameterError(f"{name} must hold only 0 and 1, got dtype {values.dtype}")
    if not _are_bits(values):
        raise ParameterError(f"{name} must hold only 0 and 1, but holds another number")
    return values.astype(np.uint8)


def _read_examples(
    path: Path, has_labels: bool, label: str | None, delimiter: str | None, max_bytes: int
) -> tuple[Array | BitMatrix, Array | None]:
    """Features, and the labels beside them where there are some and no others."""
    if is_text(path):
        return _read_text(path, has_labels, label, delimiter_of(path, delimiter), max_bytes)
    if label is not None:
        raise ParameterError(f"label must go with a file of text, got label {label!r} for {path}")
    suffix = path.suffix.lower()
    if delimiter is not None:
        refuse("delimiter", delimiter, f"it must not go with a {suffix} file")
    if suffix == ".npy":
        return _read_npy(path, max_bytes), None
    if suffix == ".npz":
        return _read_npz(path, has_labels, max_bytes)
    raise ParameterError(f"data file must end in .npy, .npz, .csv, .tsv or .txt, got {path}")


def _read_npy(path: Path, max_bytes: int) -> Array:
    X = _load_bits(path, max_bytes)
    if X.ndim != 2:
        raise ShapeError(f"{path} must have 2 dimensions, got {X.ndim}")
    return X


def _read_npz(
    path: Path, has_labels: bool, max_bytes: int
) -> tuple[Array | BitMatrix, Array | None]:
    with open_arrays(path, max_bytes) as archive:
        names = set(archive.files)
        packed = {"X_packed", "ncols"} <= names
        if not packed and "X" not in names:
            raise ParameterError(f"{path} must hold X and y, or X_packed, ncols and y")
        with read_safely(path, ".npz file"):
            shapes = {name: shape for name, (shape, _) in read_headers(archive).items()}
        labeled, rows = "y" in names and not has_labels, shapes["X_packed" if packed else "X"]
        if labeled and len(rows) == 2:
            # Before any of them is unpacked, which may be large.
            _check_labels(path, shapes["y"], rows)
        y = _read_bits(archive, "y", path) if labeled else None
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


def _read_text(
    path: Path, has_labels: bool, label: str | None, delimiter: str, max_bytes: int
) -> tuple[Array, Array | None]:
    name = name_of(path)
    header, values = _read_text_matrix(path, delimiter, max_bytes)
    if has_labels:
        if header is not None and header[-1].lower() in _LABEL_NAMES:
            taken = "and is taken for a feature beside the other labels: leave it or them out"
            note(f"{name} ends in a column that is named like a label, {taken}")
        return values, None
    column = values.shape[1] - 1
    if label is not None:
        if header is None or header.count(label) != 1:
            raise ParameterError(f"label must name one column of {name}, got {label!r}")
        column = header.index(label)
    if values.shape[1] < 2:
        raise ShapeError(f"{name} must have a feature and a label column, got {values.shape[1]}")
    return np.delete(values, column, axis=1), values[:, column]


def _read_text_matrix(path: Path, delimiter: str, max_bytes: int) -> tuple[list[str] | None, Bits]:
    """The header, if there is one, and all values of a text."""
    name = name_of(path)
    with read_safely(name, _TEXT_TABLE), open_text(path, max_bytes) as handle:
        text_lines = _read_lines(handle, name)
        first = next(text_lines, "")
        header = _parse_header(first, name, delimiter)
        lines = itertools.chain([] if header else [first], text_lines)
        width = first.count(delimiter) + 1
        parts = list(_read_text_parts(lines, width, 2 if header else 1, name, delimiter))
    if not parts:
        raise ShapeError(f"{name} must have at least one row of values")
    return header, np.concatenate(parts)


def _read_lines(handle: IO[str], name: str) -> Iterator[str]:
    """The lines of a file, each of bounded length."""
    for number in itertools.count(1):
        line = handle.readline(_LONGEST_LINE)
        if not line:
            return
        if len(line) == _LONGEST_LINE:
            raise ParameterError(f"line {number} of {name} must end after a table's row of values")
        yield line


def _parse_header(first: str, name: str, delimiter: str) -> list[str] | None:
    fields = [field.strip().strip('"') for field in first.split(delimiter)]
    numeric = [_is_number(field) for field in fields]
    if not first:
        raise ShapeError(f"{name} is empty: it must have at least one row of values")
    if not first.strip():
        raise ShapeError(f"{name} must not start with an empty line")
    if all(numeric):
        return None
    if any(numeric):
        # Taking such a line for a header would silently drop a damaged row of values.
        raise ParameterError(f"line 1 of {name} must be all names or all 0 and 1")
    return fields


def _is_number(field: str) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


def _read_text_parts(
    lines: Iterator[str], width: int, line: int, name: str, delimiter: str
) -> Iterator[Bits]:
    rows = max(1, _CHUNK_VALUES // width)
    while chunk := list(itertools.islice(lines, rows)):
        filled = [text for text in chunk if not text.isspace()]
        try:
            with warnings.catch_warnings():
                # An empty chunk is no mistake here: the end of the file may be blank lines.
                warnings.simplefilter("ignore", UserWarning)
                values = np.loadtxt(
                    filled, delimiter=delimiter, comments=None, ndmin=2, quotechar='"'
                )
        except ValueError:
            values = None
        if values is None or (filled and values.shape[1] != width) or not _are_bits(values):
            raise _find_text_error(chunk, width, line, name, delimiter)
        if filled:
            yield values.astype(np.uint8)
        line += len(chunk)


def _are_bits(values: Array) -> bool:
    return bool(((values == 0) | (values == 1)).all())


def _find_text_error(
    chunk: list[str], width: int, line: int, name: str, delimiter: str
) -> Exception:
    """Finds the first line that breaks a rule; called only when there is one."""
    for number, text in enumerate(chunk, start=line):
        fields = [field.strip().strip('"') for field in text.split(delimiter)]
        if text.isspace():
            continue
        hint = guess_delimiter(fields)
        if len(fields) != width:
            return ShapeError(
                f"line {number} of {name} must have {width} values, {len(fields)} found{hint}"
            )
        for column, field in enumerate(fields, start=1):
            if not _is_number(field) or float(field) not in (0, 1):
                # The place, never the value: a file of other numbers is a private one, too.
                where = f"line {number}, column {column} of {name}"
                return ParameterError(f"{where} must be 0 or 1{hint}")
    return ParameterError(f"{name} must be a {_TEXT_TABLE}")
