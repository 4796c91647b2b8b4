"""Tables of text: names in the first line, a delimiter between values, quotes as in RFC 4180.

Python's csv module says what a text means, and finds the line of an error. Where pyarrow is
installed it reads long texts many times faster, if it is certain to read the same. Otherwise, for
short texts, and where pyarrow meets an error, the csv module reads them.
"""

from __future__ import annotations

import csv
import gzip
import io
import math
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import IO, Any

import numpy as np

from .._support.validate import refuse
from ..exceptions import HdpFastError, ParameterError, ShapeError
from . import arrow
from .columns import Column, ColumnBuilder, to_number
from .reading import check_size, limit, read_safely, read_whole

TEXTS = (".csv", ".tsv", ".txt")
# How many rows of a text file are held as objects at once.
_CHUNK_ROWS = 1 << 14
# Bytes of a packed text that are looked at together. A line of a table is shorter.
_CHUNK_BYTES = 1 << 24
# Bytes of a text that become a block of a table, whose columns take many times as many.
_PART_BYTES = 1 << 22
# A line of values, quoted line breaks included, is shorter.
_LONGEST_RECORD = 1 << 28
# What a thread of pyarrow reads at a time.
_BLOCK_BYTES = 1 << 20
# The csv module reads this much in about the time that the import of pyarrow takes.
_SHORT_BYTES = 1 << 20
_DELIMITERS = (";", "\t", "|", ",")
_PIECE = 1 << 18
_QUOTE, _BREAKS, _MARK = ord('"'), b"\r\n", b"\xef\xbb\xbf"


def delimiter_of(path: Path, delimiter: str | None = None) -> str:
    """What stands between the values of a file of text, whose suffix must be one of a text.

    It raises ParameterError for what cannot stand between values, and for .txt without a delimiter.
    """
    if delimiter is None:
        stem = path.name.lower().removesuffix(".gz")
        if stem.endswith(".txt"):
            raise ParameterError(f"delimiter must be given for {path}, such as ';' or a tab")
        return "\t" if stem.endswith(".tsv") else ","
    return check_delimiter(delimiter)


def check_delimiter(delimiter: str) -> str:
    """The delimiter; ParameterError for what cannot stand between values."""
    is_one = isinstance(delimiter, str) and len(delimiter) == 1
    if not is_one or delimiter in '"\r\n' or delimiter.isalnum():
        refuse("delimiter", delimiter, "it must be one character, and no letter, digit or quote")
    return delimiter


def guess_delimiter(names: Sequence[str]) -> str:
    """A question that names another delimiter, where all values of a line have become one."""
    inside = [sign for sign in _DELIMITERS if sign in names[0]] if len(names) == 1 else []
    return f": did you mean --delimiter {inside[0]!r}?" if inside else ""


def name_of(path: Path) -> str:
    """What errors call a file."""
    return "the standard input" if str(path) == "-" else str(path)


def is_text(path: Path) -> bool:
    """Whether a file holds lines of text, by its name; - is the standard input, which does."""
    return str(path) == "-" or path.name.lower().removesuffix(".gz").endswith(TEXTS)


def open_text(path: Path, max_bytes: int) -> IO[str]:
    """Open a file of text, or the standard input.

    Raises: ParameterError where that is closed, and once more bytes were read, packed ones counted
    as they unpack; what open and gzip raise.
    """
    check_size(name_of(path), 0, max_bytes)
    return _decode(limit(_open_bytes(path), name_of(path), max_bytes))


def _decode(handle: IO[bytes]) -> IO[str]:
    return io.TextIOWrapper(handle, encoding="utf-8-sig", newline="")


def _open_bytes(path: Path) -> IO[bytes]:
    if str(path) == "-":
        if sys.stdin is None:
            raise ParameterError("the standard input is closed, but it must be read")
        return sys.stdin.buffer
    return gzip.open(path) if path.suffix.lower() == ".gz" else path.open("rb")  # type: ignore[return-value]


def read_text(path: Path, delimiter: str, max_bytes: int) -> dict[str, Column]:
    """The columns of a table of text, by their names.

    Raises:
        ParameterError: The file is no such table, or unpacks to more bytes.
        ShapeError: A line has another number of values than the first.
    """
    kind = {",": "commas", "\t": "tabs"}.get(delimiter, repr(delimiter))
    name = name_of(path)
    with read_safely(name, f"table separated by {kind}, in UTF-8"):
        content = _read_bytes(path, name, max_bytes)
        return _read_block(content, name, delimiter)


def read_text_blocks(
    path: Path, delimiter: str, numbers: frozenset[str] = frozenset()
) -> Iterator[dict[str, Column]]:
    """The columns of a table of text, of a block of its rows at a time.

    A block ends where a line does and no quote is open. Where quotes or the ends of lines do not
    tell where that is, the csv module reads the rest. A table without rows has one empty block, and
    a file without a byte none.

    numbers: columns of which nobody wants the texts, which may be read as numbers at once.

    It raises the errors of read_text.
    """
    name, rows = name_of(path), 0
    with read_safely(name, "table of text, in UTF-8"):
        with _open_bytes(path) as handle:
            if not handle.read(1):
                return
        with _open_bytes(path) as handle:
            names, start = _read_head(handle, name, delimiter)
        with _open_bytes(path) as handle:
            head, kept = handle.read(start), b""
            while piece := handle.read(_PART_BYTES):
                kept = kept + piece if kept else piece
                end = _last_end(kept) if len(piece) == _PART_BYTES else len(kept)
                quoted = kept.find(b'"', 0, end) >= 0
                if not end or (quoted and not _has_regular_quotes(kept[:end], delimiter)):
                    break
                is_fast = end > _SHORT_BYTES and _is_parsed(kept, delimiter)
                body, kept = memoryview(kept)[:end], kept[end:]
                block = _parse(body, names, delimiter, numbers, quoted=quoted) if is_fast else None
                if block is None and is_fast and numbers:
                    # What is no number in pyarrow's eyes may be one in Python's: texts are kept.
                    numbers = frozenset()
                    block = _parse(body, names, delimiter, numbers, quoted=quoted)
                if block is None:
                    block = _read_part(path, head + body, delimiter)
                rows += block[names[0]].rows
                yield block
        if kept:
            for block in _read_rest(path, delimiter, rows):
                rows += block[names[0]].rows
                yield block
        if not rows:
            yield {name: ColumnBuilder().column() for name in names}


def _read_head(handle: Any, name: str, delimiter: str) -> tuple[list[str], int]:
    """The names of the columns, and the number of bytes of the line that has them."""
    lines: list[str] = []
    marked = handle.peek(len(_MARK)).startswith(_MARK)
    with _decode(handle) as text:
        reader = csv.reader(_keep(_limit_lines(text), lines), strict=True, delimiter=delimiter)
        names = _read_names(reader, name)
    return names, sum(len(line.encode()) for line in lines) + len(_MARK) * marked


def _read_part(path: Path, content: bytes, delimiter: str) -> dict[str, Column]:
    """A block of a file; an error is that of the file, whose lines it counts."""
    try:
        return _read_block(content, name_of(path), delimiter)
    except HdpFastError:
        for _ in _read_rest(path, delimiter, 0):
            pass
        raise


def _read_rest(path: Path, delimiter: str, start: int) -> Iterator[dict[str, Column]]:
    """The columns of blocks of rows, from that number on, as the csv module reads them."""
    name = name_of(path)
    with _open_bytes(path) as handle, _decode(handle) as text:
        reader = csv.reader(_limit_lines(text), strict=True, delimiter=delimiter)
        names = _read_names(reader, name)
        rows = islice(_read_rows(reader, names, name), start, None)
        while chunk := list(islice(rows, _CHUNK_ROWS)):
            yield _make_columns(names, [chunk])


def _limit_lines(handle: IO[str]) -> Iterator[str]:
    while line := handle.readline(_LONGEST_RECORD):
        if len(line) == _LONGEST_RECORD:
            raise ValueError("a line without an end")
        yield line


def _last_end(content: bytes) -> int:
    """Where the last line ends that is not within quotes; 0 where none does."""
    if b'"' not in content:
        return content.rfind(b"\n") + 1
    odd, stop = content.count(b'"') % 2, len(content)
    # From quote to quote, so that no byte is looked at more than twice.
    while stop >= 0:
        start = content.rfind(b'"', 0, stop)
        end = 0 if odd else content.rfind(b"\n", start + 1, stop) + 1
        if end:
            return end
        odd, stop = 1 - odd, start
    return 0


def _read_block(content: bytes, name: str, delimiter: str) -> dict[str, Column]:
    columns = _read_fast(content, name, delimiter) if len(content) > _SHORT_BYTES else None
    return _read_exactly(content, name, delimiter) if columns is None else columns


def _read_bytes(path: Path, name: str, max_bytes: int) -> bytes:
    """The whole content, unless it is no table but something that a small file unpacks to."""
    if str(path) == "-":
        return read_whole(_open_bytes(path), name, max_bytes)
    with _open_bytes(path) as handle:
        if not isinstance(handle, gzip.GzipFile):
            return read_whole(handle, name, max_bytes)
        limited, parts = limit(handle, name, max_bytes), []
        while part := limited.read(_CHUNK_BYTES):
            if len(part) == _CHUNK_BYTES and not any(sign in part for sign in _BREAKS):
                raise ValueError("a line without an end")
            parts.append(part)
        return b"".join(parts)


def _read_exactly(content: bytes, name: str, delimiter: str) -> dict[str, Column]:
    """The columns as the csv module reads them, or the error that it meets."""
    reader = csv.reader(_decode(io.BytesIO(content)), strict=True, delimiter=delimiter)
    names = _read_names(reader, name)
    rows = _read_rows(reader, names, name)
    return _make_columns(names, iter(lambda: list(islice(rows, _CHUNK_ROWS)), []))


def _make_columns(
    names: Sequence[str], chunks: Iterable[Sequence[Sequence[str]]]
) -> dict[str, Column]:
    """The columns of rows that come in chunks."""
    builders = [ColumnBuilder() for _ in names]
    for chunk in chunks:
        for builder, texts in zip(builders, zip(*chunk, strict=True), strict=True):
            builder.extend(texts)
    return {name: builder.column() for name, builder in zip(names, builders, strict=True)}


def _read_fast(content: bytes, name: str, delimiter: str) -> dict[str, Column] | None:
    """The columns as pyarrow reads them; None where the csv module may read something else."""
    quoted = b'"' in content
    if quoted and not _has_regular_quotes(content, delimiter):
        return None
    names, start = _read_head(io.BufferedReader(io.BytesIO(content)), name, delimiter)
    if not _is_parsed(content, delimiter, start):
        return None
    return _parse(memoryview(content)[start:], names, delimiter, quoted=quoted)


def _is_parsed(content: bytes, delimiter: str, start: int = 0) -> bool:
    """Whether pyarrow, if it is there, reads the lines from a place on as the csv module does."""
    # Its delimiters are bytes, and it would drop a mark, which is a part of the first value here.
    is_byte = delimiter == "\t" or (delimiter.isascii() and delimiter.isprintable())
    return is_byte and not content.startswith(_MARK, start) and arrow.is_installed()


def _keep(handle: Iterable[str], lines: list[str]) -> Iterator[str]:
    """The lines, each of which is kept when it is read."""
    for line in handle:
        lines.append(line)
        yield line


def _has_regular_quotes(content: bytes, delimiter: str) -> bool:
    """Whether quotes are only at both ends of values, and in pairs within them.

    After an even number of quotes, one opens a value, behind a delimiter or a line break, or it is
    the second of a pair. After an odd number, one closes a value or is the first of a pair.
    """
    signs = np.frombuffer(content, np.uint8)
    edges = np.zeros(256, bool)
    edges[[_QUOTE, ord(delimiter), *_BREAKS]] = True
    first, last = len(_MARK) * content.startswith(_MARK), len(signs) - 1
    odd = 0
    # By pieces that a processor's cache holds.
    for start in range(0, len(signs), _PIECE):
        places = np.flatnonzero(signs[start : start + _PIECE] == _QUOTE) + start
        opening, closing = places[odd::2], places[1 - odd :: 2]
        before = signs[(opening[1:] if first in opening[:1] else opening) - 1]
        after = signs[(closing[:-1] if last in closing[-1:] else closing) + 1]
        if not (edges[before].all() and edges[after].all()):
            return False
        odd = (odd + len(places)) % 2
    return not odd


def _parse(
    content: memoryview,
    names: list[str],
    delimiter: str,
    numbers: frozenset[str] = frozenset(),
    *,
    quoted: bool,
) -> dict[str, Column] | None:
    """The columns of lines without a head, as pyarrow reads them; None where it gives up.

    numbers: columns that are read as numbers; a text that is none makes it give up.
    """
    pyarrow, reader = arrow.load(), arrow.load("csv")
    # Texts stay texts: 00501 is no number, and what is one, a schema says.
    kinds = dict.fromkeys(names, pyarrow.string())
    kinds |= dict.fromkeys(numbers.intersection(names), pyarrow.float64())
    try:
        table = reader.read_csv(
            pyarrow.BufferReader(arrow.copy(content)),
            read_options=reader.ReadOptions(column_names=names, block_size=_BLOCK_BYTES),
            parse_options=reader.ParseOptions(
                delimiter=delimiter,
                quote_char='"' if quoted else False,
                newlines_in_values=quoted,
            ),
            convert_options=reader.ConvertOptions(
                column_types=kinds, strings_can_be_null=True, null_values=[""]
            ),
        )
    except pyarrow.ArrowException:
        return None
    columns = zip(names, table.columns, strict=True)
    return {name: arrow.make_arrow_column(column) for name, column in columns}


def _read_names(reader: Iterator[list[str]], name: str) -> list[str]:
    """The names of the columns; errors tell which are wrong by their places alone."""
    line = next(reader, None)
    if line is None:
        raise ParameterError(f"{name} is empty: line 1 must name every column")
    names = [text.strip() for text in line]
    if not any(names):
        raise ParameterError(f"line 1 of {name} is empty: it must name every column")
    for place, text in enumerate(names, start=1):
        fault = "" if text else f"column {place} has no name"
        if text and names.index(text) < place - 1:
            fault = f"columns {names.index(text) + 1} and {place} have one name"
        if fault:
            missing = "; is there no header?" if _look_like_values(names) else ""
            rule = "must name every column, each differently"
            raise ParameterError(f"line 1 of {name} {rule}: {fault}{missing}")
    return names


def _look_like_values(names: Iterable[str]) -> bool:
    return not all(math.isnan(to_number(name)) for name in names)


def _read_rows(reader: Any, names: Sequence[str], name: str) -> Iterator[list[str]]:
    width = len(names)
    for row in reader:
        if len(row) == width:
            yield row
        elif row:
            text = f"must have {width} values, {len(row)} found{guess_delimiter(names)}"
            raise ShapeError(f"line {reader.line_num} of {name} {text}")
