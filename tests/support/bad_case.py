"""A bad input: what was done, what must be said, how it must end, and how it is run."""

import contextlib
import io
import re
import shlex
import sys
import warnings
from dataclasses import dataclass, field

from bad_input_files import make_files

from hdp_fast.cli import main
from hdp_fast.exceptions import UtilityWarning


@dataclass(frozen=True)
class Case:
    """A bad input.

    Attributes:
        number: the row of the table.
        done: what was wrong, in a few words.
        words: a command line without hdp-fast, or an expression of Python.
        end: the exit code, the class of the exception, or None for a call that returns.
        said: regular expressions, all of which the error, or the notes, must hold; (): silence.
        given: what stands on the standard input.
        names: what an expression may name; None for a command line.
    """

    number: int
    done: str
    words: str
    end: int | type[Exception] | None
    said: tuple[str, ...]
    given: str = ""
    names: dict | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Outcome:
    """What a bad input ended in, and the lines that were said, errors before notes."""

    end: int | type[Exception] | None
    lines: tuple[str, ...]
    value: object = None


def run(case, folder):
    """Run a case in an empty folder, which is then the current one."""
    with contextlib.chdir(folder):
        return _run_command(case, folder) if case.names is None else _evaluate(case, folder)


def _run_command(case, folder):
    words = shlex.split(case.words)
    make_files(words, folder)
    out, err = io.StringIO(), io.StringIO()
    stdin = io.TextIOWrapper(io.BytesIO(case.given.encode()))
    kept, sys.stdin = sys.stdin, stdin
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main(words)
    finally:
        sys.stdin = kept
    lines = [line.removeprefix("hdp-fast: ") for line in err.getvalue().splitlines()]
    return Outcome(code, tuple(lines), out.getvalue())


def _evaluate(case, folder):
    make_files(re.findall(r"'([^']*)'", case.words), folder)
    end, lines, value = None, [], None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UtilityWarning)
        try:
            value = eval(case.words, dict(case.names))
        except Exception as error:
            end, lines = type(error), [f"error: {error}"]
    notes = [one.message for one in caught if issubclass(one.category, UtilityWarning)]
    return Outcome(end, (*lines, *(f"note: {note}" for note in notes)), value)
