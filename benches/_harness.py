"""What the benches share: their arguments, numbers of threads, and how results are printed."""

from __future__ import annotations

import argparse
import json
import os
import warnings
from collections.abc import Iterable, Sequence
from typing import Any

from hdp_fast.bench import Action, align
from hdp_fast.exceptions import UtilityWarning

THREADS = "HDP_FAST_NUM_THREADS"

# What is run here is run for its time, or to fail at a size that the table names.
warnings.filterwarnings("ignore", category=UtilityWarning)


def make_parser(description: str | None, *, repeats: int | None = None) -> argparse.ArgumentParser:
    """Return a parser with --json and, unless it is None, the default of --repeats."""
    parser = argparse.ArgumentParser(description=description)
    if repeats is not None:
        parser.add_argument("--repeats", type=int, default=repeats)
    parser.add_argument("--json", action="store_true", help="print JSON instead of the tables")
    return parser


def print_json(results: Any) -> None:
    """Print the results as one JSON value."""
    print(json.dumps(results, indent=2))


def print_aligned(rows: Iterable[Sequence[str]]) -> None:
    """Print a table whose columns are as wide as they need to be; the first row is the header."""
    print("\n".join(align(rows)))


def right(cells: Iterable[Any], width: int, form: str = "") -> str:
    """Return the cells in one line, flush right in columns of this width, numbers in this form."""
    return "".join(f"{cell:>{width}{form}}" for cell in cells)


def with_threads(count: int, action: Action) -> Action:
    """Return the action, run on so many threads; the environment is as before after each run."""

    def limited() -> None:
        before = os.environ.get(THREADS)
        os.environ[THREADS] = str(count)
        action()
        if before is None:
            del os.environ[THREADS]
        else:
            os.environ[THREADS] = before

    return limited
