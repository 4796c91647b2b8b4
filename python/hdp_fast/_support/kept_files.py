"""Files that no output ever replaces: files of state, their logs, and saved labelers.

They are known by their content, whatever they are called. What else is lost can be made again; with
a file of state it is forgotten who has answered and what has been paid.
"""

from __future__ import annotations

import os
import sqlite3
import zipfile
from contextlib import closing
from pathlib import Path

# How a saved labeler begins.
LABELER = b"hdp_fast labeler "
# What the text of a saved statistics labeler calls its format.
STATISTICS_LABELER = "hdp_fast.statistics_labeler"
# What SQLite adds to the name of a file for its logs.
LOG_ENDINGS = ("-wal", "-shm", "-journal")

_DATABASE = b"SQLite format 3\0"
_HEADER_BYTES = 100
# A write-ahead log begins with one of the first two, a journal with the third.
_LOGS = (b"\x37\x7f\x06\x82", b"\x37\x7f\x06\x83", b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7")


def describe_kept(path: str | os.PathLike[str]) -> str | None:
    """Says what an output at this path would destroy; None if it may be written.

    Args:
        path: A regular file, or the name of one that is yet to come. Links are followed.
    """
    target = Path(os.path.realpath(path))
    for ending in LOG_ENDINGS:
        owner = target.with_name(target.name.removesuffix(ending) or target.name)
        if owner != target and _describe_content(owner) == "a database of SQLite":
            return f"a log of {owner}"
    return _describe_content(target)


def _describe_content(path: Path) -> str | None:
    if not path.is_file():
        return None
    # SQLite looks first: closing another descriptor of a file ends the locks of this process on it.
    if _opens_as_database(path):
        return "a database of SQLite"
    try:
        with path.open("rb") as file:
            head = file.read(_HEADER_BYTES)
    except OSError:
        return "a file that cannot be read"
    if _is_damaged_database(head):
        return "a database of SQLite"
    if head.startswith(_LOGS):
        return "a log of SQLite"
    if head.startswith(LABELER) or _is_statistics_labeler(path):
        return "a saved labeler"
    return None


def _opens_as_database(path: Path) -> bool:
    try:
        address = f"{path.as_uri()}?mode=ro&immutable=1"
        with closing(sqlite3.connect(address, uri=True)) as connection:
            # An empty file is a database without a schema.
            ((version,),) = connection.execute("PRAGMA schema_version").fetchall()
            return bool(version)
    except sqlite3.Error:
        return False


def _is_damaged_database(head: bytes) -> bool:
    """One flipped bit leaves the first letters or the constants and the application's letters."""
    return head.startswith(_DATABASE) or (head[21:24], head[68:71]) == (b"\x40\x20\x20", b"HDP")


def _is_statistics_labeler(path: Path) -> bool:
    try:
        with zipfile.ZipFile(path) as archive, archive.open("text.npy") as member:
            return STATISTICS_LABELER.encode("utf-32-le") in member.read(1 << 10)
    except Exception:  # What a damaged archive raises is no fixed list.
        return False
