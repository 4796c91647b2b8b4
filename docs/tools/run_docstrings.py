"""Runs the examples of all public docstrings and compares what they print.

python docs/tools/run_docstrings.py [ROOM ...] [--slowest 10]
"""

import argparse
import contextlib
import doctest
import os
import sys
import tempfile
import time
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "support"))

from docstrings import Documented, public_objects

OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def run(documented: Documented) -> tuple[int, int]:
    """Runs the examples of one docstring in an empty namespace: how many, and how many failed."""
    test = doctest.DocTestParser().get_doctest(
        documented.text, {"__name__": "__main__"}, documented.path, None, None
    )
    results = doctest.DocTestRunner(optionflags=OPTIONS).run(test)
    return results.attempted, results.failed


def main(rooms: list[str], slowest: int) -> int:
    """Runs every example, in an empty folder, and says how many and how long."""
    seconds: dict[str, float] = {}
    attempted = failed = 0
    warnings.simplefilter("error", DeprecationWarning)
    for documented in public_objects():
        if rooms and documented.room not in rooms:
            continue
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            os.environ["XDG_CACHE_HOME"] = folder
            start = time.perf_counter()
            examples, wrong = run(documented)
            seconds[documented.path] = time.perf_counter() - start
        attempted, failed = attempted + examples, failed + wrong
    for path in sorted(seconds, key=seconds.__getitem__, reverse=True)[:slowest]:
        print(f"{seconds[path]:6.2f} s  {path}")
    print(f"{attempted} examples in {sum(seconds.values()):.1f} s, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rooms", nargs="*", metavar="ROOM")
    parser.add_argument("--slowest", type=int, default=0, metavar="K")
    options = parser.parse_args()
    sys.exit(main(options.rooms, options.slowest))
