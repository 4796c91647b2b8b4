"""How commands end: their exit codes, and what stands on the error stream."""

from __future__ import annotations

import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum

from ..exceptions import (
    AgentsExhausted,
    BudgetExceeded,
    HdpFastError,
    InsufficientSamples,
    UtilityWarning,
)


class ExitCode(IntEnum):
    """The exit codes, by which a pipeline knows how a command ended.

    Attributes:
        DONE: The command ran, and its result stands.
        NOTHING_USEFUL: It ran, but released nothing useful: by public facts or released numbers a
            constant is as good as the model, no point has a label, no parity fits. Or --strict was
            passed, and there was a note, such as that a model predicts one label for nearly all.
        BAD_INPUT: An argument or a file is wrong, or cannot be written. Nothing was spent, unless
            the error says so.
        REFUSED: The budget, or the number of records or agents, does not allow it.
        UNEXPECTED: The package has a defect.
        INTERRUPTED: The user pressed Ctrl-C.
    """

    DONE = 0
    NOTHING_USEFUL = 1
    BAD_INPUT = 2
    REFUSED = 3
    UNEXPECTED = 70
    INTERRUPTED = 130


_MEANINGS = {
    ExitCode.DONE: "done",
    ExitCode.NOTHING_USEFUL: "it ran, but released nothing useful; or --strict and a note",
    ExitCode.BAD_INPUT: "an argument or a file is wrong, or cannot be written",
    ExitCode.REFUSED: "refused by the budget, or by too few records or agents",
    ExitCode.UNEXPECTED: "a defect of hdp-fast; please report its one line, which holds no values",
    ExitCode.INTERRUPTED: "interrupted by Ctrl-C; the line says what was spent and written",
}


def describe_codes() -> str:
    """A text with one line for each exit code."""
    return "\n".join(f"  {code:>3}  {meaning}" for code, meaning in _MEANINGS.items())


def code_of(error: BaseException) -> ExitCode:
    """The exit code of an error."""
    if isinstance(error, BudgetExceeded | InsufficientSamples | AgentsExhausted):
        return ExitCode.REFUSED
    if isinstance(error, HdpFastError | ImportError | MemoryError | OSError):
        return ExitCode.BAD_INPUT
    return ExitCode.UNEXPECTED


def describe_defect(error: BaseException) -> str:
    """One line on a defect, without the text of the error, which might be private."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    place = f"{last.filename.rsplit('hdp_fast', 1)[-1].lstrip('/')}:{last.lineno}"
    return f"unexpected {type(error).__name__} at {place}; please report it with this line"


@contextmanager
def collect_notes() -> Iterator[list[str]]:
    """Collects the notes on results, each once; other warnings are shown as usual."""
    notes: list[str] = []
    with warnings.catch_warnings():
        warnings.simplefilter("always", UtilityWarning)
        show = warnings.showwarning

        def keep(message, category, *place, **more):  # type: ignore[no-untyped-def]
            if not issubclass(category, UtilityWarning):
                show(message, category, *place, **more)
            elif str(message) not in notes:
                notes.append(str(message))

        warnings.showwarning = keep
        yield notes
