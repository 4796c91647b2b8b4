"""How commands read tables."""

from __future__ import annotations

import argparse
import io
import json
import sys
from pathlib import Path
from typing import Any

from ..data.delimited import name_of
from ..data.reading import read_whole
from ..data.schema import Schema
from ..data.table import Table, read_table
from .output import is_standard

FILE_HELP = (
    "a table with named columns: .csv, .tsv, .txt, .npz, .parquet, .arrow; - is the standard input"
)


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


def describe_label(schema: Schema) -> dict[str, Any]:
    """What the file of a schema says of the label."""
    fields: dict[str, Any] = json.loads(schema.to_json())["label"]
    return fields


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
