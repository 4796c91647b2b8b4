"""Warnings about results of no use, made from public facts and released numbers alone.

Where warnings are errors, a note before a charge is one, and nothing is spent. After a charge the
result is paid for: whoever asked gets it, and `exceptions.notes_of` has the notes.
"""

from __future__ import annotations

import functools
import logging
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import ParamSpec, TypeVar

import numpy as np

from ..exceptions import ParameterError, UtilityWarning, attach_notes

P = ParamSpec("P")
R = TypeVar("R")

_PACKAGE = str(Path(__file__).parents[1])


@dataclass
class _Call:
    """A public call under way: whether anything was charged in it, and its notes."""

    is_charged: bool = False
    notes: list[str] = field(default_factory=list)


_call: ContextVar[_Call | None] = ContextVar("call", default=None)
# Why nothing may be charged; None where it may.
_forbidden: ContextVar[str | None] = ContextVar("forbidden", default=None)


def keep_result(call: Callable[P, R]) -> Callable[P, R]:
    """Makes a public function that charges return its result, once it has charged.

    No note is an error then, and no setting of numpy about rounding is: an error would cost the
    caller a result that is paid for, and one that private values cause would tell of them.
    """

    @functools.wraps(call)
    def run(*args: P.args, **options: P.kwargs) -> R:
        if _call.get() is not None:
            return call(*args, **options)
        under_way = _Call()
        token = _call.set(under_way)
        try:
            with np.errstate(all="ignore"):
                result = call(*args, **options)
        finally:
            _call.reset(token)
        attach_notes(result, under_way.notes)
        return result

    return run


@contextmanager
def drop_notes() -> Iterator[None]:
    """Keeps what a caller's code on private records makes this package note out of all results.

    What is public where a member or a question calls it may be private outside.
    """
    token = _call.set(_Call(is_charged=True))
    try:
        yield
    finally:
        _call.reset(token)


@contextmanager
def forbid_charges(reason: str) -> Iterator[None]:
    """Refuses in the block what charges a budget, draws noise or asks agents, before it does so."""
    token = _forbidden.set(reason)
    try:
        yield
    finally:
        _forbidden.reset(token)


def require_allowed() -> None:
    """Refuses to charge where that is forbidden.

    Raises: ParameterError.
    """
    reason = _forbidden.get()
    if reason is not None:
        raise ParameterError(reason)


def note_charge() -> None:
    """Says that the call under way has charged a budget, drawn noise or asked agents."""
    require_allowed()
    call = _call.get()
    if call is not None:
        call.is_charged = True


def note(text: str) -> None:
    """Warns the caller of the package, at the line of their own code.

    The text is one sentence that names the argument or the number, and says what would help.
    """
    call = _call.get()
    if call is not None:
        call.notes.append(text)
    warn(text, UtilityWarning)


def warn(text: str, category: type[Warning]) -> None:
    """Warns likewise of any category. After a charge it is logged where warnings are errors."""
    depth, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        depth, frame = depth + 1, frame.f_back
    try:
        warnings.warn(text, category, stacklevel=depth)
    except category:
        call = _call.get()
        if call is None or not call.is_charged:
            raise
        logging.getLogger("hdp_fast").warning("%s", text)


def note_large_delta(delta: float, n: int) -> None:
    """Warns of a delta above 1 / n, which allows a mechanism that publishes a record whole."""
    if delta * n > 1:
        rule = "with which a record may be published whole: a much smaller one protects each"
        note(f"delta = {delta:g} is above 1 / n = {1 / n:.2g}, {rule}")
