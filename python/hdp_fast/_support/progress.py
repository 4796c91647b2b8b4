"""Progress bars of long runs, with tqdm from the extra `hdp-fast[progress]`.

A bar counts the units of work that are done and nothing else: no record or answer moves it.
"""

from __future__ import annotations

import importlib.util
import logging
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any

from .lazy import load_optional

_LOGGER = logging.getLogger("hdp_fast")


def log_stage(text: str, *sizes: object) -> None:
    """Logs that a stage begins or ends.

    Args:
        text: Format string of the log line, with the name of the stage in it.
        sizes: Public numbers and names alone, nothing that depends on a private value before it is
            released.
    """
    _LOGGER.info(text, *sizes)


_hidden = ContextVar("hidden", default=False)


class NoBar:
    """Stands in for a bar where none is shown."""

    def update(self, done: float = 1) -> None:
        """Does nothing."""

    def set_description(self, text: str) -> None:
        """Does nothing."""


@contextmanager
def hide() -> Iterator[None]:
    """Shows no bar inside the block."""
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
    """A bar of `total` units of work, removed at the end; `update(done)` moves it.

    It writes to the error stream as it is at the call, so that it goes on while members are
    silenced.

    Raises:
        ImportError: A bar is to be shown and tqdm is not installed; the error names the extra.
    """
    if not visible:
        return nullcontext(NoBar())
    tqdm = load_optional("tqdm", "progress", "progress")
    shown: AbstractContextManager[Any] = tqdm.tqdm(
        total=total, unit=unit, unit_scale=total >= 10_000, leave=False
    )
    return shown


def say_time(seconds: float) -> str:
    """A time in its two largest units."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days} d {hours} h"
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"
