"""Files of the data folder beside the checksums of docs/reproduction/data.md.

Run `HDP_FAST_DATA=FOLDER python benches/papers/_data.py`: a second. It prints ok, differs or
missing for each file, and fails where one differs; what is missing, scripts skip.
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from _report import FOLDER

PAGE = Path(__file__).parents[2] / "docs" / "reproduction" / "data.md"
ROW = re.compile(r"^\| `([\w.]+)` \|.*`([0-9a-f]{64})` \|$", re.MULTILINE)


def read_checksums() -> dict[str, str]:
    """SHA-256 of each file by its name, as the page has them."""
    return dict(ROW.findall(PAGE.read_text()))


def check_folder(folder: Path) -> Iterator[tuple[str, str]]:
    """Each file with ok, differs or missing."""
    for name, expected in read_checksums().items():
        path = folder / name
        if not path.is_file():
            yield name, "missing"
        else:
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
            yield name, "ok" if digest == expected else "differs"


def main() -> None:
    """Print a line for each file."""
    lines = list(check_folder(FOLDER))
    for name, state in lines:
        print(f"{state:<8} {name}")
    sys.exit(any(state == "differs" for _, state in lines))


if __name__ == "__main__":
    main()
