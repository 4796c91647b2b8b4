"""Writes formats/: one small stored file of every format, and what each says, in expected.json.

`python tests/vectors/formats.py` writes all of them anew, the same bytes each time: random keys are
counted, and times are those of a fixed clock. A change shows up as a difference of the files.
"""

import itertools
import json
import re
import shutil
import sys
import tempfile
import warnings
from pathlib import Path
from unittest import mock

sys.path[:0] = [str(Path(__file__).parents[1] / "support")]

from stored_formats import FOLDER, FORMATS, dump  # noqa: E402

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}")


def fix_times(text):
    """The same SQL with times one second apart, in the order of the real ones."""
    ordered = sorted(set(_TIME.findall(text)))
    fixed = {time: f"2026-01-01T00:00:{place:02}.000000" for place, time in enumerate(ordered)}
    return _TIME.sub(lambda match: fixed[match[0]], text)


def write(name, scratch):
    """The stored files of a format, made in an empty folder: the first one is what is read."""
    made = scratch / "state"
    FORMATS[name].make(made)
    stored = FOLDER / f"{name}.{FORMATS[name].suffix}"
    if FORMATS[name].suffix == "sql":
        stored.write_text(fix_times(dump(made)))
    else:
        shutil.copyfile(made, stored)
    beside = scratch / "state.ledger"
    if beside.exists():
        (FOLDER / f"{name}.ledger.sql").write_text(dump(beside))


def count_keys():
    """Keys that count up, in the place of secrets."""
    keys = itertools.count()
    return mock.patch("secrets.token_hex", lambda size: f"{next(keys):0{2 * size}x}")


def main():
    warnings.simplefilter("ignore")
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir()
    for name in FORMATS:
        with tempfile.TemporaryDirectory() as scratch, count_keys():
            write(name, Path(scratch))
    expected = {}
    for name, kind in FORMATS.items():
        with tempfile.TemporaryDirectory() as folder:
            expected[name] = kind.show(kind.fetch(name, Path(folder)))
    text = json.dumps(expected, indent=1, default=str)
    (FOLDER / "expected.json").write_text(f"{text}\n")


if __name__ == "__main__":
    main()
