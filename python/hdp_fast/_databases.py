"""Files that several processes write to, one at a time, and that survive a kill."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Literal

# Nobody holds a file for longer than some milliseconds, or answers whose votes are counted, take.
_PATIENCE_SECONDS = 30.0


@contextmanager
def opened(
    path: Path, *, mode: str = "rw", synchronous: Literal["FULL", "EXTRA"] = "FULL"
) -> Iterator[sqlite3.Connection]:
    """A connection that ends with the block and opens no transaction by itself.

    path: absolute. mode: of SQLite's addresses. synchronous: "EXTRA" if not even a power failure
    may undo what has been written.

    Raises: sqlite3.Error.
    """
    address = f"{path.as_uri()}?mode={mode}"
    with closing(
        sqlite3.connect(address, uri=True, timeout=_PATIENCE_SECONDS, isolation_level=None)
    ) as connection:
        connection.execute(f"PRAGMA synchronous={synchronous}")
        yield connection
