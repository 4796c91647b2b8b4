"""Writes formats/: one small stored file of every format, and what each says, in expected.json.

`python tests/vectors/formats.py` writes all of them anew, the same bytes each time: random keys are
counted, and times are those of a fixed clock. A change shows up as a difference of the files.
"""

import contextlib
import itertools
import json
import shutil
import sys
import tempfile
import warnings
from pathlib import Path
from unittest import mock

sys.path[:0] = [str(Path(__file__).parents[1] / "support")]

from stored_formats import FOLDER, FORMATS, dump  # noqa: E402


def write(name, scratch):
    """The stored files of a format, made in an empty folder: the first one is what is read."""
    made = scratch / "state"
    FORMATS[name].make(made)
    stored = FOLDER / f"{name}.{FORMATS[name].suffix}"
    if FORMATS[name].suffix == "sql":
        stored.write_text(dump(made))
    else:
        shutil.copyfile(made, stored)
    beside = scratch / "state.ledger"
    if beside.exists():
        (FOLDER / f"{name}.ledger.sql").write_text(dump(beside))


@contextlib.contextmanager
def count_all():
    """Keys that count up, in the place of secrets, and times that are one second apart."""
    keys, seconds = itertools.count(), itertools.count()
    times = mock.patch(
        "hdp_fast.budget.tables.write_time",
        side_effect=lambda: f"2026-01-01T00:00:{next(seconds):02}.000000+00:00",
    )
    with mock.patch("secrets.token_hex", lambda size: f"{next(keys):0{2 * size}x}"), times:
        yield


def main():
    warnings.simplefilter("ignore")
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir()
    for name in FORMATS:
        with tempfile.TemporaryDirectory() as scratch, count_all():
            write(name, Path(scratch))
    expected = {}
    for name, kind in FORMATS.items():
        with tempfile.TemporaryDirectory() as folder:
            expected[name] = kind.show(kind.fetch(name, Path(folder)))
    text = json.dumps(expected, indent=1, default=str)
    (FOLDER / "expected.json").write_text(f"{text}\n")


if __name__ == "__main__":
    main()
