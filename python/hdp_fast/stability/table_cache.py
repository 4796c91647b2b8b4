"""A folder of texts that take long to compute. Whoever reads one must verify it."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from .._support import atomic

# Raised by one whenever the texts change their meaning, so that old ones are not read.
_FORMAT = 2
# Longer than the text of any table.
_MOST_BYTES = 1 << 23


def read(name: str) -> str | None:
    """The text that was kept under a name; None if there is none or it cannot be read."""
    try:
        with _path(name).open(encoding="utf-8") as file:
            return file.read(_MOST_BYTES)
    except (OSError, RuntimeError, UnicodeDecodeError):
        return None


def write(name: str, text: str) -> None:
    """Keep a text under a name, whole or not at all. A failure to write is ignored."""
    try:
        path = _path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        atomic.replace(path, lambda out: out.write(text.encode()))
    except (OSError, RuntimeError):
        return


def _path(name: str) -> Path:
    named = Path(os.environ.get("XDG_CACHE_HOME", ""))
    # The specification of that variable says that a relative path is ignored.
    folder = named if named.is_absolute() else Path.home() / ".cache"
    digest = hashlib.sha256(f"{_FORMAT} {name}".encode()).hexdigest()
    return folder / "hdp_fast" / f"{digest}.json"
