"""How commands read tables, and copy them with one more column and all else as it was."""

from __future__ import annotations

import argparse
import csv
import glob
import gzip
import io
import json
import sys
import zipfile
from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from .._support.lazy import load_optional
from .._support.validate import refuse
from ..data import arrow
from ..data.column_kinds import require_label
from ..data.delimited import TEXTS, delimiter_of, is_text, name_of
from ..data.reading import parse_file, read_safely, read_whole
from ..data.schema import Schema
from ..data.table import Table, read_table, suffix_of
from ..exceptions import ParameterError
from .output import is_standard

if TYPE_CHECKING:
    from ..data.chunks import Chunks

# A single file that is no longer is read whole.
_LONG = 1 << 26
PARTS_HELP = "files of one table, a folder or a pattern: .csv, .tsv, .txt, .npz, .parquet, .arrow"
FILE_HELP = (
    "a table with named columns: .csv, .tsv, .txt, .npz, .parquet, .arrow; - is the standard input"
)
SCHEMA_HELP = "columns and their bounds, all public: hdp-fast schema --new FILE asks for them"

# From the new column, numbers or texts, "" for none, to the content of a file.
Values = Sequence[str] | Sequence[float]
Append = Callable[[Values], bytes]


def add_delimiter(parser: argparse.ArgumentParser) -> None:
    """Adds the option of every command that reads tables."""
    text = "between the values of tables of text [a comma, or a tab in .tsv]"
    parser.add_argument("--delimiter", metavar="SIGN", help=text)


def sign_of(arguments: argparse.Namespace) -> str | None:
    """The delimiter, if one was passed; a tab may be spelled, as it is hard to type in a shell."""
    sign: str | None = arguments.delimiter
    return "\t" if sign in ("\\t", "tab") else sign


def read(path: Path, arguments: argparse.Namespace, *, public: bool = False) -> Table:
    """Reads the table in a file; only if the file is public may an error name a column of it."""
    most = arguments.max_bytes
    return read_table(path, delimiter=sign_of(arguments), public=public, max_bytes=most)


def add_parts(parser: argparse.ArgumentParser, word: str = "PRIVATE", *, least: int = 1) -> None:
    """Adds the private table of a command, which may lie in parts, and who reads them.

    least: 0 where the command can do without it.
    """
    add, many = parser.add_argument, "+" if least else "*"
    add("private", type=Path, nargs=many, metavar=word, help=f"{FILE_HELP}; or {PARTS_HELP}")
    add_workers(parser)


def add_workers(parser: argparse.ArgumentParser) -> None:
    """Adds who reads parts."""
    add = parser.add_argument
    add("--workers", type=int, metavar="N", help="processes that read parts, by joblib [1]")
    add("--dask", metavar="ADDRESS", help="parts are read by the workers of this dask scheduler")


def add_owners(parser: argparse.ArgumentParser) -> None:
    """Adds whose rows those of the private table are."""
    add = parser.add_argument
    add("--ids", metavar="COLUMN", help="whose row it is: protects all rows of an id together")
    add("--rows-per-person", type=int, metavar="K", help="the most rows of an id that are used [1]")


def owners_of(arguments: argparse.Namespace) -> dict[str, Any]:
    """The column that says whose row it is, and the most rows of a person; nothing without one."""
    most = arguments.rows_per_person
    if arguments.ids is None:
        if most is not None:
            raise ParameterError("--rows-per-person must go with --ids COLUMN")
        return {}
    return {"ids": arguments.ids, "rows_per_person": 1 if most is None else most}


def read_parts(
    arguments: argparse.Namespace,
    *,
    whole: bool = False,
    may_be_empty: bool = False,
    longest: int = _LONG,
    **owners: Any,
) -> Table | Chunks:
    """The private table: whole where it is one file that is short or must be, else its parts.

    may_be_empty: whether a file without rows is no error, as that would show how many there are.
    longest: the bytes of the longest file of plain text that is short.
    owners: whose rows those of parts are, as Chunks take it.

    Raises:
        ParameterError: There is no such file, or the standard input is one of several.
    """
    paths: list[Path] = arguments.private
    if len(paths) > 1 and any(map(is_standard, paths)):
        raise ParameterError("a file is - beside others, but the standard input must come alone")
    options: Any = {"whole": whole, "may_be_empty": may_be_empty, "longest": longest}
    return open_parts(paths, arguments, **options, **owners)


def open_parts(
    paths: list[Path],
    arguments: argparse.Namespace,
    *,
    whole: bool = False,
    may_be_empty: bool = False,
    longest: int = _LONG,
    public: bool = False,
    **owners: Any,
) -> Table | Chunks:
    """A table: whole where it is one file that is short or must be, else its parts.

    longest, owners: as read_parts has it.
    public: whether errors may name the file's columns.
    """
    # The standard input can be read once, and by this process alone.
    asked = may_be_empty or arguments.workers is not None or arguments.dask is not None
    is_one = len(paths) == 1 and not asked and is_file(paths[0])
    is_short = whole or _is_short(paths[0], longest, arguments.max_bytes)
    if is_standard(paths[0]) or (is_one and is_short):
        return read(paths[0], arguments, public=public)
    workers = None if arguments.dask is not None else arguments.workers
    from ..data.chunks import Chunks  # Help and a wrong flag do not wait for it.

    return Chunks(list(paths), delimiter=sign_of(arguments), workers=workers, **owners)


def is_file(path: Path) -> bool:
    """Whether it is no folder and no pattern; what does not exist counts as a file."""
    return not path.is_dir() and (path.exists() or not glob.has_magic(str(path)))


def _is_short(path: Path, longest: int, max_bytes: int) -> bool:
    """Whether a file is read whole, as is what is none, and what is too long, for the error."""
    if not path.is_file():
        return True
    size = path.stat().st_size
    is_plain = is_text(path) and path.suffix.lower() != ".gz"
    return size <= (longest if is_plain and size <= max_bytes else _LONG)


def name_parts(arguments: argparse.Namespace) -> Path:
    """What is said of the private table: its file, or the first of several."""
    return name_files(arguments.private)


def name_files(paths: list[Path]) -> Path:
    """What is said of several files: the first, and how many more."""
    first, *others = paths
    return Path(f"{first} and {len(others):,} more") if others else first


@contextmanager
def open_workers(arguments: argparse.Namespace) -> Iterator[None]:
    """Sends the parts to the workers of --dask inside the block.

    Raises:
        ImportError: joblib or distributed is not installed.
    """
    if arguments.dask is None:
        yield
        return
    joblib = load_optional("joblib", "--dask", "parallel")
    distributed = load_optional("distributed", "--dask")
    with distributed.Client(arguments.dask), joblib.parallel_config("dask"):
        yield


def describe_label(schema: Schema) -> dict[str, Any]:
    """What the file of a schema says of the label."""
    fields: dict[str, Any] = json.loads(schema.to_json())["label"]
    return fields


def read_schema(path: Path, *, labeled: bool = True) -> Schema:
    """Reads the schema in a file.

    Raises:
        ParameterError: The file is no schema, or has no label where it must be `labeled`.
    """
    try:
        schema = parse_file(path, "schema, a JSON object in UTF-8", Schema.from_json)
    except ParameterError as error:
        if is_standard(path) or path.exists():
            raise
        # Whoever reads one off the private table, for want of another idea, publishes its values.
        made = f"hdp-fast schema --new {path} asks for what is public of the columns, and writes it"
        raise ParameterError(f"{error}: {made}") from None
    if labeled:
        require_label(schema.label)
    return schema


def read_with_content(path: Path, arguments: argparse.Namespace) -> tuple[Table, bytes | None]:
    """Reads a public table, and returns what the standard input held if it is that.

    The standard input can be read once, and a copy of the table is to get a column more.
    """
    if not is_standard(path) or sys.stdin is None:
        return read(path, arguments, public=True), None
    stdin = sys.stdin
    content = read_whole(stdin.buffer, name_of(path), arguments.max_bytes)
    sys.stdin = io.TextIOWrapper(io.BytesIO(content))
    try:
        return read(path, arguments, public=True), content
    finally:
        sys.stdin = stdin


def appender(
    path: Path, name: str, delimiter: str | None = None, content: bytes | None = None
) -> Append:
    """Read a file that read_table could read, to give it a column of this new name later.

    content: what it holds, where that was read before: the standard input is read once.

    Whatever can go wrong goes wrong here, before answers are paid for. Rows of text keep every
    byte, arrays and columns their types; in those of Arrow a text of "" is a null.

    Raises: ParameterError when the file cannot be read any more, or has an array of that name.
    """
    suffix, content = _read_content(path, content)
    with read_safely(path, f"{suffix} file"):
        return _appender(content, suffix, name, delimiter_of(path, delimiter))


def _read_content(path: Path, content: bytes | None) -> tuple[str, bytes]:
    """The suffix of a table, which is .csv on the standard input, and what it holds."""
    suffix = ".csv" if is_standard(path) else suffix_of(path).lower()
    if content is not None:
        return suffix, content
    with read_safely(path, f"{suffix} file"):
        return suffix, path.read_bytes()


def _appender(content: bytes, suffix: str, name: str, delimiter: str) -> Append:
    if suffix == ".npz":
        return _to_arrays(content, name)
    if suffix == ".parquet":
        return _to_parquet(content, name)
    if suffix in (".arrow", ".feather"):
        return _to_arrow(content, name)
    to_text = _to_packed_text if suffix.endswith(".gz") else _to_text
    return to_text(content, name, delimiter)


def name_new_column(file: str, label: str, ending: str, columns: Container[str]) -> str:
    """The name of the new column: that of the labels, with an ending where the file has it.

    Raises: ParameterError where the file has both.
    """
    column = label if label not in columns else f"{label}_{ending}"
    if column in columns:
        raise ParameterError(f"{file} has columns {label!r} and {column!r}: rename one of them")
    return column


def check_printable(option: str, suffix: str) -> None:
    """Require a suffix of text files, which alone can be printed.

    Raises: ParameterError.
    """
    if suffix.lower() not in TEXTS:
        refuse(option, "-", f"{suffix} files cannot be printed")


def _to_text(content: bytes, name: str, delimiter: str) -> Append:
    records = list(records_of(io.StringIO(content.decode("utf-8-sig"), newline=""), delimiter))

    def append(values: Values) -> bytes:
        fields = iter([name, *values])
        return "".join(
            append_field(record, next(fields, ""), delimiter) if filled else record
            for record, filled in records
        ).encode()

    return append


def records_of(text: IO[str], delimiter: str) -> Iterator[tuple[str, bool]]:
    """Yields each record as it stands, line breaks included, and whether it has any field."""
    lines: list[str] = []

    def note_lines() -> Iterator[str]:
        for line in text:
            lines.append(line)
            yield line

    for fields in csv.reader(note_lines(), strict=True, delimiter=delimiter):
        yield "".join(lines), bool(fields)
        lines.clear()


def append_field(record: str, field: str | float, delimiter: str) -> str:
    """The record with one more field, before its line break."""
    body = record.rstrip("\r\n")
    # The empty field before it makes the delimiter; alone, an empty one would be quoted.
    quoted = io.StringIO()
    csv.writer(quoted, lineterminator="", delimiter=delimiter).writerow(["", field])
    return body + quoted.getvalue() + record[len(body) :]


def _to_packed_text(content: bytes, name: str, delimiter: str) -> Append:
    append = _to_text(gzip.decompress(content), name, delimiter)
    return lambda values: gzip.compress(append(values), mtime=0)


def _to_arrays(content: bytes, name: str) -> Append:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        if f"{name}.npy" in archive.namelist():
            refuse("column", name, "it must not be the name of an array in the public file")

    def append(values: Values) -> bytes:
        whole, column = io.BytesIO(content), io.BytesIO()
        np.save(column, np.array(values), allow_pickle=False)
        with zipfile.ZipFile(whole, "a", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(f"{name}.npy", column.getvalue())
        return whole.getvalue()

    return append


def _to_parquet(content: bytes, name: str) -> Append:
    parquet = arrow.load("parquet")
    table = parquet.read_table(arrow.load().BufferReader(arrow.copy(content)))

    def append(values: Values) -> bytes:
        whole = io.BytesIO()
        parquet.write_table(table.append_column(name, to_nulls(values)), whole)
        return whole.getvalue()

    return append


def _to_arrow(content: bytes, name: str) -> Append:
    ipc = arrow.load("ipc")
    table = ipc.open_file(arrow.copy(content)).read_all()
    table.validate(full=True)

    def append(values: Values) -> bytes:
        whole = io.BytesIO()
        made = table.append_column(name, to_nulls(values))
        with ipc.new_file(whole, made.schema) as writer:
            writer.write_table(made)
        return whole.getvalue()

    return append


def to_nulls(values: Values) -> Any:
    """An array of pyarrow, in which a text of "" is a null."""
    pyarrow = arrow.load()
    kind = pyarrow.string() if len(values) and isinstance(values[0], str) else None
    return pyarrow.array([None if value == "" else value for value in values], kind)
