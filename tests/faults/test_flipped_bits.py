"""One flipped bit in a file of state is refused, or changes nothing that is read.

HDP_FAST_FAULTS=long flips every bit of a file of each kind, packed into pages of 512 bytes, instead
of one bit of every byte that is not 0.
"""

import contextlib
import sqlite3

import pytest
from harness import LONG, figure
from state_faces import FACES


def places(content):
    """Bits to flip: all, or one of every byte that is not 0, each time another."""
    if LONG:
        return [(byte, bit) for byte in range(len(content)) for bit in range(8)]
    written = [byte for byte, value in enumerate(content) if value]
    return [(byte, byte % 8) for byte in written]


def pack(path):
    """Puts the same rows into small pages, so that fewer bits mean nothing."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        ((mode,),) = connection.execute("PRAGMA journal_mode").fetchall()
        for statement in ("journal_mode = DELETE", "page_size = 512"):
            connection.execute(f"PRAGMA {statement}")
        connection.execute("VACUUM")
        connection.execute(f"PRAGMA journal_mode = {mode}")


def read(face, path):
    """What is in the file; None if it is refused by one line that names it."""
    try:
        return face.show(path)
    except face.error as error:
        text = str(error)
    assert str(path) in text
    assert "\n" not in text
    return None


@pytest.mark.thorough(cases=2)
@pytest.mark.parametrize("name", FACES)
def test_a_flipped_bit_of_a_file_of_state_is_refused_or_harmless(memory, name):
    face, path = FACES[name], memory / "state"
    face.make(path)
    if LONG:
        pack(path)
    content, shown = path.read_bytes(), face.show(path)
    outcomes = {"refused": 0, "equal": 0}
    silent = []
    flips = places(content)
    for byte, bit in flips:
        flipped = bytearray(content)
        flipped[byte] ^= 1 << bit
        path.write_bytes(flipped)
        now = read(face, path)
        if now is not None and now != shown:
            silent.append((byte, bit))
        else:
            outcomes["refused" if now is None else "equal"] += 1
        for left in memory.iterdir():
            if left != path:
                left.unlink()
    words = ", ".join(f"{count:,} {outcome}" for outcome, count in outcomes.items())
    figure(f"flipped bits: {name}", len(flips), f"{words}, {len(silent)} silent")
    assert silent == []
    assert all(outcomes.values())
