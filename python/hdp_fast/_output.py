"""How commands deliver what they found: printed, and written to a file where one is named."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from . import files
from .budget import Budget
from .exceptions import ParameterError
from .record import PrivacyRecord


def record_of(record: PrivacyRecord | None) -> Any:
    """A record as JSON carries it."""
    return None if record is None else json.loads(record.to_json())


def check_output(arguments: argparse.Namespace) -> None:
    """Refuses an output that can't be written.

    Before the run: a private result that can't be written has spent its epsilon all the same.
    """
    if arguments.output is not None:
        files.check_writable(arguments.output)


def check_new(paths: Iterable[Path | None]) -> None:
    """Refuses outputs that can't be written, and those that are there: they have been paid for."""
    taken: set[Path] = set()
    for path in paths:
        if path is None:
            continue
        files.check_writable(path)
        if path.exists() or path in taken:
            raise ParameterError(f"each output must be a new file of its own, got {path}")
        taken.add(path)


def spent(budget: Budget | None) -> str:
    """What of a budget is gone, in words; nothing without one."""
    if budget is None:
        return ""
    epsilon, delta = budget.spent
    return f"epsilon = {epsilon:g} and delta = {delta:g}"


def deliver(summary: dict[str, Any], arguments: argparse.Namespace) -> None:
    """Writes the summary to the output, if there is one, and prints it."""
    try:
        if arguments.output is not None:
            text = json.dumps(summary, indent=2) + "\n"
            files.write_atomically(arguments.output, text.encode())
    finally:
        # The epsilon is spent: a full disk must not take the result with it.
        show(summary, arguments.json)


def show(summary: dict[str, Any], as_json: bool) -> None:
    """Prints the summary, one line for each entry that is there."""
    if as_json:
        print(json.dumps(summary, indent=2))
        return
    if summary.get("released") is False:
        print("bottom: the mechanism released nothing, as privacy needs it to now and then")
    width = max(map(len, summary))
    for name, value in summary.items():
        if value is not None:
            print(f"{name:<{width}}  {_text(value)}")


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return json.dumps(value) if isinstance(value, dict | list) else str(value)
