"""Bad inputs, one row each: what was done, what must be said, and how it must end.

    python tests/support/bad_inputs.py

prints the table as Markdown: number, input, what is said, exit code or class of the error.
"""

import os
import sys
import tempfile
from pathlib import Path

from bad_calls import CALLS
from bad_case import run
from bad_commands import COMMANDS

CASES = sorted([*COMMANDS, *CALLS], key=lambda case: case.number)


def _cell(text):
    text = " ".join(text.split()).replace("|", "\\|")
    return text if len(text) < 400 else text[:400] + " ..."


def _print_table():
    sys.stdout.write("| # | done | input | what is said | end |\n|---:|---|---|---|---|\n")
    for case in CASES:
        with tempfile.TemporaryDirectory() as folder:
            outcome = run(case, Path(folder))
        end = outcome.end
        ends = end if isinstance(end, int) else "returns" if end is None else end.__name__
        said = " / ".join(outcome.lines) or "nothing"
        row = (str(case.number), case.done, f"`{case.words}`", said, str(ends))
        sys.stdout.write(f"| {' | '.join(map(_cell, row))} |\n")


if __name__ == "__main__":
    os.environ.setdefault("XDG_CACHE_HOME", tempfile.mkdtemp())
    _print_table()
