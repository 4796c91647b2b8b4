"""Bars that show how far a run has come, with tqdm from the extra `pip install hdp-fast[progress]`.

A bar counts what has been done and nothing else: neither records nor answers move it.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any

_hidden = ContextVar("hidden", default=False)


class NoBar:
    """Stands for a bar where none is shown."""

    def update(self, done: float = 1) -> None:
        """Do nothing."""

    def set_description(self, text: str) -> None:
        """Do nothing."""

    def external_write_mode(self, file: Any) -> AbstractContextManager[None]:
        """Do nothing: no bar is in the way of other lines."""
        return nullcontext()


@contextmanager
def hide() -> Iterator[None]:
    """No bar can be shown inside."""
    token = _hidden.set(True)
    try:
        yield
    finally:
        _hidden.reset(token)


def can_show() -> bool:
    """Whether a bar can be shown: the error stream is a terminal, and tqdm is installed."""
    return (
        not _hidden.get()
        and sys.stderr is not None
        and sys.stderr.isatty()
        and importlib.util.find_spec("tqdm") is not None
    )


def bar(total: int, unit: str, visible: bool) -> AbstractContextManager[Any]:
    """A bar of so many units of work, gone when it is left; `update(done)` moves it.

    It writes to the error stream there is now: members, who are silent, do not silence it.

    Raises: ImportError naming the extra where a bar is to be shown and tqdm is not installed.
    """
    if not visible:
        return nullcontext(NoBar())
    try:
        tqdm = importlib.import_module("tqdm")
    except ImportError as error:
        raise ImportError("progress needs tqdm: pip install hdp-fast[progress]") from error
    shown: AbstractContextManager[Any] = tqdm.tqdm(
        total=total, unit=unit, unit_scale=total >= 10_000, leave=False
    )
    return shown
