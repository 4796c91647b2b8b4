"""The verb gf2: ranks, products, inverses, null spaces and solutions of matrices of 0 and 1."""

from __future__ import annotations

import argparse
import json
from functools import reduce
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from .._support.validate import refuse
from ..data import files
from ..data.delimited import delimiter_of, is_text
from .exit_codes import ExitCode
from .output import check_outputs, inform, is_standard, say_table, show
from .tables import add_delimiter, sign_of

if TYPE_CHECKING:
    from ..gf2 import BitMatrix

_ENDINGS = (".npz", ".npy", ".csv", ".tsv")
_FILE_HELP = (
    ".npy, .npz (X, or X_packed and ncols as to_npz writes them) or .csv, .tsv, .txt of 0 and 1; "
    "- is the standard input, read as .csv"
)


def add_gf2(parser: argparse.ArgumentParser) -> None:
    """Adds the verbs of `gf2`."""
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    rank = commands.add_parser("rank", help="the rank of each matrix")
    _add_files(rank, "files", nargs="+", metavar="FILE")
    rank.add_argument("--json", action="store_true", help="print JSON")
    rank.set_defaults(command=_rank)

    solve = commands.add_parser(
        "solve", help="X with A X = B, column by column, of the files A and B"
    )
    _add_files(solve, "files", nargs=2, metavar="FILE")
    solve.add_argument("--left", action="store_true", help="X with X A = B, row by row")
    _add_output(solve, _solve)

    nullspace = commands.add_parser("nullspace", help="a basis of all x with A x = 0, in rows")
    _add_files(nullspace, "file", metavar="FILE")
    _add_output(nullspace, _nullspace)

    inverse = commands.add_parser("inverse", help="the inverse of a square matrix")
    _add_files(inverse, "file", metavar="FILE")
    _add_output(inverse, _inverse)

    multiply = commands.add_parser("multiply", help="the product of matrices, from left to right")
    _add_files(multiply, "files", nargs="+", metavar="FILE")
    _add_output(multiply, _multiply)


def _add_files(parser: argparse.ArgumentParser, name: str, **options: Any) -> None:
    parser.add_argument(name, type=Path, help=_FILE_HELP, **options)
    add_delimiter(parser)


def _add_output(parser: argparse.ArgumentParser, command: Any) -> None:
    ends = "its name ends in .npz (packed), .npy, .csv or .tsv"
    text = f"write the matrix to a new file, and print its shape; {ends}; else it is printed"
    parser.add_argument("--output", type=Path, metavar="FILE", help=text)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(command=command)


def _read(arguments: argparse.Namespace, path: Path) -> BitMatrix:
    # Where no file is a text the delimiter is refused.
    listed = arguments.files if "files" in arguments else [arguments.file]
    one_is_text = any(map(is_text, listed))
    delimiter = None if one_is_text and not is_text(path) else sign_of(arguments)
    return files.read_bits(path, delimiter=delimiter, max_bytes=arguments.max_bytes)


def _rank(arguments: argparse.Namespace) -> None:
    from .. import gf2  # Help and a wrong flag do not wait for it.

    show({str(path): gf2.rank(_read(arguments, path)) for path in arguments.files}, arguments.json)


def _solve(arguments: argparse.Namespace) -> ExitCode:
    from .. import gf2

    _check_output(arguments)
    A, B = (_read(arguments, path) for path in arguments.files)
    x, consistent = gf2.solve(A, B, left=arguments.left)
    count, solved = consistent.size, int(consistent.sum())
    if solved < count:
        what = "row" if arguments.left else "column"
        zeros = f"zeros stand for the {what}s of B that have none"
        inform(arguments, f"{solved} of {count} {what}s of B have a solution: {zeros}")
    _deliver(arguments, x, solved=solved)
    return ExitCode.DONE if solved or not count else ExitCode.NOTHING_USEFUL


def _nullspace(arguments: argparse.Namespace) -> None:
    from .. import gf2

    _check_output(arguments)
    _deliver(arguments, gf2.nullspace(_read(arguments, arguments.file)))


def _inverse(arguments: argparse.Namespace) -> None:
    from .. import gf2

    _check_output(arguments)
    _deliver(arguments, gf2.inverse(_read(arguments, arguments.file)))


def _multiply(arguments: argparse.Namespace) -> None:
    _check_output(arguments)
    matrices = (_read(arguments, path) for path in arguments.files)
    _deliver(arguments, reduce(lambda left, right: left @ right, matrices))


def _check_output(arguments: argparse.Namespace) -> None:
    if is_standard(arguments.output):
        arguments.output = None
    if arguments.output is None:
        return
    if arguments.output.suffix.lower() not in _ENDINGS:
        refuse("--output", str(arguments.output), f"it must end in one of {', '.join(_ENDINGS)}")
    check_outputs(arguments, [arguments.output])


def _deliver(arguments: argparse.Namespace, matrix: BitMatrix, **facts: int) -> None:
    """Writes a matrix and prints its shape, or prints the matrix."""
    rows, columns = matrix.shape
    summary = {"rows": rows, "columns": columns, **facts}
    path = arguments.output
    if path is not None:
        files.write_atomically(path, lambda stream: _write(path, matrix, stream))
        show(summary, arguments.json, path)
    elif arguments.json:
        say_table(json.dumps(summary | {"matrix": matrix.to_dense().tolist()}))
    else:
        say_table(_to_text(matrix, ",").decode())


def _write(path: Path, matrix: BitMatrix, stream: IO[bytes]) -> None:
    match path.suffix.lower():
        case ".npz":
            np.savez(stream, X_packed=matrix.to_packed(), ncols=matrix.shape[1])
        case ".npy":
            np.save(stream, matrix.to_dense())
        case _:
            stream.write(_to_text(matrix, delimiter_of(path, None)))


def _to_text(matrix: BitMatrix, delimiter: str) -> bytes:
    """A line of 0 and 1 for each row."""
    rows, columns = matrix.shape
    if not columns:
        return b"\n" * rows
    text = np.full((rows, 2 * columns), ord(delimiter), np.uint8)
    text[:, ::2] = matrix.to_dense()
    text[:, ::2] += ord("0")
    text[:, -1] = ord("\n")
    return text.tobytes()
