"""What the scripts of the papers share: arguments, the folder of the data, tables and files."""

from __future__ import annotations

import argparse
import json
import os
import sys
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from hdp_fast.exceptions import UtilityWarning

FOLDER = Path(os.environ.get("HDP_FAST_DATA") or Path(__file__).parents[3] / "shared" / "data")

Result = dict[str, Any]


def make_parser(
    description: str,
    *,
    quick: str | None = None,
    repetitions: int | None = None,
    printing: bool = False,
    writing: bool = True,
) -> argparse.ArgumentParser:
    """Return a parser of the arguments that scripts have in common.

    description: the script's docstring, whose first line is shown; quick: what --quick does;
    repetitions: the default of --repetitions; printing: whether --json takes the tables' place;
    writing: whether files are written to --output.
    """
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    if quick:
        parser.add_argument("--quick", action="store_true", help=quick)
    if repetitions:
        parser.add_argument("--repetitions", type=int, default=repetitions)
    if printing:
        parser.add_argument("--json", action="store_true", help="print JSON instead of the tables")
    if writing:
        folder = "folder of the files"
        parser.add_argument("--output", type=Path, default=Path("build"), help=folder)
    return parser


def accept_seeds() -> None:
    """Turn off the warnings that seeded noise protects no one, and that a result is of little use.

    Seeds make the tables the same each time, and no one is protected here; how useful a result is
    stands in the tables, failures included.
    """
    warnings.filterwarnings("ignore", message="random_state", category=UserWarning)
    warnings.filterwarnings("ignore", category=UtilityWarning)


def missing_file(name: str) -> str | None:
    """Return why a file of the data folder cannot be read, or None where it is there."""
    if (FOLDER / name).exists():
        return None
    return f"{FOLDER / name} is missing (docs/reproduction/data.md has its source)"


def select_present(problems: Iterable[Any], only: str | None) -> Iterable[Any]:
    """Yield the problems whose data are at hand, and name the others on standard error."""
    for problem in problems:
        if only not in (None, problem.name):
            continue
        if reason := problem.missing():
            print(f"skipped {problem.name}: {reason}", file=sys.stderr)
        else:
            yield problem


def print_results(
    arguments: argparse.Namespace,
    problems: Iterable[Any],
    measure: Callable[[Any], Result],
    table: Callable[[Result], str],
) -> list[Result]:
    """Measure every problem and print its table at once, or all results as JSON at the end."""
    results = []
    for problem in problems:
        results.append(measure(problem))
        if not arguments.json:
            print(table(results[-1]), end="\n\n", flush=True)
    if arguments.json:
        print_json(results)
    return results


def print_json(results: Any) -> None:
    """Print results as one JSON value."""
    print(json.dumps(results, indent=2))


def write_figure(path: Path, figure: Any) -> None:
    """Write a figure of matplotlib, in a folder that is made where there is none."""
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)


def write_json(path: Path, numbers: Any) -> None:
    """Write numbers, in a folder that is made where there is none."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(numbers, indent=1) + "\n")


def write_files(folder: Path, name: str, numbers: Any, figure: Any) -> str:
    """Write a figure and its numbers; return a line that says where they are."""
    path = folder / name
    write_json(path.with_suffix(".json"), numbers)
    write_figure(path.with_suffix(".png"), figure)
    return f"{path}.png, .json"
