"""Whatever a file holds, its reader says what is in it or raises one error of this package.

HDP_FAST_FAULTS=long reads some 15,000 damaged files instead of some 300.
"""

import contextlib
import gzip
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

from hdp_fast.data import files, read_table
from hdp_fast.exceptions import HdpFastError, ParameterError, ShapeError

pytest.importorskip("pyarrow")

DRIVER = Path(__file__).with_name("damaged_files.py")
LONG = os.environ.get("HDP_FAST_FAULTS") == "long"
CASES, SEED, SECONDS = (500, "long", 3000) if LONG else (10, "short", 300)
READERS = (
    *("array", "vector", "arrays", "compressed", "packed", "bits"),
    *("table", "packed table", "table of arrays", "parquet", "arrow"),
    *("append to csv", "append to gz", "append to npz", "append to parquet", "append to arrow"),
    *("schema", "model", "predict", "question", "lines", "collection", "row space"),
    "device",
    *("record", "randomizer", "mean", "counts", "hypothesis", "coins"),
    *("parity learn", "parity learn csv", "schema of", "estimate", "randomize", "collect"),
)
# A line of a client is no error, whatever is in it: it is counted.
NEVER_REFUSED = {"lines", "collect"}


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """What became of the damaged files, read where neither a hang nor a crash takes tests along."""
    folder = tmp_path_factory.mktemp("damaged")
    command = [sys.executable, str(DRIVER), str(folder), str(CASES), SEED]
    run = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
    assert run.returncode == 0, run.stderr[-2000:]
    return json.loads(run.stdout)


def test_every_reader_is_tried(report):
    assert set(report) == set(READERS)


def test_the_stored_corpus_is_tried(report):
    assert sum(sum(one["stored"].values()) for one in report.values()) > 100


@pytest.mark.parametrize("reader", READERS)
def test_a_damaged_file_is_read_or_refused(report, reader):
    found = dict(report[reader])
    assert found.pop("whole") == "read"
    assert found.pop("stored").keys() <= {"read", "refused"}
    read, refused = found.pop("read", 0), found.pop("refused", 0)
    assert found == {}
    assert read + refused == CASES
    assert (refused == 0) == (reader in NEVER_REFUSED)


def archive(path, members, **options):
    with zipfile.ZipFile(path, "w", **options) as made:
        for name, content in members.items():
            made.writestr(name, content)
    return path


def array(header):
    """A .npy file of this header and nothing else."""
    text = header.encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


def declared(shape, dtype="<i8"):
    return array(f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}")


FAR = 10**12
HEADERS = {
    "no rows": declared((0, FAR)),
    "no columns": declared((FAR, 0)),
    "texts of length 0": declared((FAR,), "<U0"),
    "too many rows": declared((FAR, 2)),
    "negative rows": declared((-1, 2)),
    "true rows": declared((True, 2)),
    "rows beyond 64 bits": declared((10**30, 2)),
    "rows that are no number": declared("(1.5, 2)"),
    "an open bracket": array("{'descr': ('<i8', 'shape': (1,"),
    "an open text": array("{'descr': '<i8"),
    "no dict": array("[1]"),
    "objects": declared((1,), "|O"),
    "no array": b"hello",
    "nothing": b"",
}


def readings(folder, header):
    """Readers of files that hold nothing but this array."""
    members = {"X.npy": header, "y.npy": header}
    packed = {"X_packed.npy": header, "ncols.npy": header, "y.npy": header}
    (folder / "a.npy").write_bytes(header)
    archive(folder / "a.npz", members)
    archive(folder / "packed.npz", packed)
    yield lambda: files.read_examples(folder / "a.npy", labels=folder / "a.npy")
    yield lambda: files.read_labels(folder / "a.npy")
    yield lambda: files.read_examples(folder / "a.npz")
    yield lambda: files.read_examples(folder / "packed.npz")
    yield lambda: read_table(folder / "a.npz")


@pytest.mark.parametrize("header", HEADERS.values(), ids=HEADERS)
def test_what_an_array_declares_is_never_believed(tmp_path, header):
    for read in readings(tmp_path, header):
        with pytest.raises(HdpFastError) as caught:
            read()
        assert str(tmp_path) in str(caught.value)


def test_a_member_that_is_no_array_is_refused(tmp_path):
    path = archive(tmp_path / "a.npz", {"X": "SECRETCELL", "y": "SECRETCELL"})
    for read in (files.read_examples, read_table):
        with pytest.raises(ParameterError, match="must be an array"):
            read(path)


def one_byte_damages(path):
    """The file's content with the lowest bit of one byte changed, at every place."""
    content = path.read_bytes()
    for place in range(len(content)):
        damaged = bytearray(content)
        damaged[place] ^= 1
        yield bytes(damaged)


def test_every_byte_of_a_compressed_archive(tmp_path):
    path = tmp_path / "a.npz"
    X = np.random.default_rng(1).integers(2, size=(20, 5), dtype=np.uint8)
    np.savez_compressed(path, X=X, y=X[:, 0])
    faults = set()
    for content in [*one_byte_damages(path)]:
        path.write_bytes(content)
        with contextlib.suppress(HdpFastError):
            files.read_examples(path)
            continue
        with pytest.raises(ParameterError) as caught:
            files.read_examples(path)
        faults.add(str(caught.value).rpartition("(")[2])
    # The commonest damage of all is among them.
    assert "zlib.error)" in faults


def test_encrypted_and_unknown_members(tmp_path):
    path = archive(tmp_path / "a.npz", {"X.npy": declared((1,)), "y.npy": declared((1,))})
    content = bytearray(path.read_bytes())
    central = content.find(b"PK\x01\x02")
    # The flag of encryption, and a method of compression that no one has.
    for local, place, value in ((6, 8, 1), (8, 10, 99)):
        changed = bytearray(content)
        changed[local] = changed[central + place] = value
        path.write_bytes(changed)
        for read in (files.read_examples, read_table):
            with pytest.raises(ParameterError, match="must be a whole"):
                read(path)


def test_texts_that_hold_no_characters(tmp_path):
    content = declared((2,), "<U1") + b"\xff" * 8
    with pytest.raises(ParameterError, match="array of texts"):
        read_table(archive(tmp_path / "a.npz", {"job.npy": content}))


def varint(number):
    low, high = number & 127, number >> 7
    return bytes([low | 128]) + varint(high) if high else bytes([low])


def test_a_parquet_file_that_declares_absurd_rows(tmp_path):
    import pyarrow
    import pyarrow.parquet

    path, rows = tmp_path / "a.parquet", 77
    pyarrow.parquet.write_table(pyarrow.table({"a": list(range(rows))}), path)
    content = path.read_bytes()
    start = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    # Twice the number, as a variable-length integer: of the file, of its group and of the column.
    few, many = varint(2 * rows), varint(2 * FAR)
    footer = content[start:-8]
    assert footer.count(few) >= 3
    footer = footer.replace(few, many)
    path.write_bytes(content[:start] + footer + len(footer).to_bytes(4, "little") + b"PAR1")
    with pytest.raises(ParameterError, match="it unpacks to 8,000,000,000,000 bytes or more"):
        read_table(path)
    with pytest.raises(ParameterError, match="must fit into memory"):
        read_table(path, max_bytes=1 << 60)


def test_a_line_without_an_end_is_not_held(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "_LONGEST_LINE", 64)
    path = tmp_path / "a.csv"
    for text in ("1," * 100, "1,0\n" + "0," * 100):
        path.write_text(text)
        with pytest.raises(ParameterError, match="must end after"):
            files.read_examples(path)


def test_a_packed_line_without_an_end_is_not_held(tmp_path):
    path = tmp_path / "a.csv.gz"
    # 64 MB in 64 kB.
    path.write_bytes(gzip.compress(b"a,b\n" + bytes(1 << 26).replace(b"\0", b"1")))
    with pytest.raises(ParameterError, match="separated by commas"):
        read_table(path)


def test_empty_tables_are_refused_before_their_columns_are_counted(tmp_path):
    path = tmp_path / "a.npz"
    np.savez(path, X=np.empty((0, 1 << 19)))
    with pytest.raises(ShapeError, match="at least one row"):
        read_table(path)
