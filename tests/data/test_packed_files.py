"""Small files that unpack to gigabytes: refused by what they declare, or once too much was read."""

import gzip
import io
import json
import subprocess
import sys
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pytest
from command_line import fails

from hdp_fast.cli import main
from hdp_fast.collection import Collection, Question, read_collection
from hdp_fast.data import files, read_table
from hdp_fast.exceptions import ParameterError, ShapeError
from hdp_fast.local import BinaryResponse

BLOCK, BLOCKS = 1 << 24, 128
SIZE = BLOCK * BLOCKS
ROWS = b"1,0\n" * (BLOCK // 4)
# What is read of a file before it is refused stays far below what it would unpack to. The system's
# own count of a process begins anew with its program; that of getrusage begins with its parent's.
MOST_MEMORY = 700 << 20


def write_archive(path, large):
    """An .npz with a column y of three zeros, and X of zeros, of which each block is one copy.

    large: the shape of X.
    """
    header = io.BytesIO()
    form = {"descr": "|u1", "fortran_order": False, "shape": large}
    np.lib.format.write_array_header_1_0(header, form)
    block, packer, checksum = bytes(BLOCK), zlib.compressobj(9, wbits=-15), 0
    parts = [packer.compress(header.getvalue()) + packer.flush(zlib.Z_FULL_FLUSH)]
    parts += [packer.compress(block) + packer.flush(zlib.Z_FULL_FLUSH)] * BLOCKS
    checksum = zlib.crc32(header.getvalue())
    for _ in range(BLOCKS):
        checksum = zlib.crc32(block, checksum)
    column = io.BytesIO()
    np.save(column, np.zeros(3, np.uint8))
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("y.npy", column.getvalue())
        archive.writestr("X.npy", b"".join([*parts, packer.flush()]))
        # The directory, which readers go by, says that the second one is packed.
        entry = archive.filelist[-1]
        entry.compress_type, entry.CRC = zipfile.ZIP_DEFLATED, checksum
        entry.file_size = len(header.getvalue()) + SIZE


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("packed")
    write_archive(folder / "rows.npz", (SIZE,))
    write_archive(folder / "examples.npz", (SIZE // 2, 2))
    # A file of gzip may have many parts, one after the other.
    (folder / "rows.csv.gz").write_bytes(gzip.compress(b"X,y\n") + gzip.compress(ROWS) * BLOCKS)
    return folder


READERS = {
    "columns that disagree": ("data.read_table('rows.npz')", "of one length, got"),
    "labels that disagree": ("data.files.read_examples('examples.npz')", "labels must have shape"),
    "an array beyond the limit": (
        "data.files.read_examples('examples.npz', labels='y.npy', max_bytes=10**8)",
        "unpacks to 2,147,483,651 bytes or more, but max_bytes = 100,000,000",
    ),
    "a text beyond the limit": (
        "data.read_table('rows.csv.gz', max_bytes=10**8)",
        "can't read rows.csv.gz: it unpacks to",
    ),
    "examples of text beyond the limit": (
        "data.files.read_examples('rows.csv.gz', max_bytes=10**7)",
        "max_bytes = 10,000,000 are allowed (--max-bytes sets it)",
    ),
}
PROGRAM = """
from hdp_fast import data
from hdp_fast.data import files
from hdp_fast.exceptions import HdpFastError
try:
    {call}
except HdpFastError as error:
    print(error)
print(*(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""


@pytest.mark.thorough(cases=2)
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is counted by Linux")
@pytest.mark.parametrize(("call", "message"), READERS.values(), ids=READERS)
def test_a_file_that_unpacks_to_gigabytes_is_refused_in_little_memory(folder, call, message):
    program = PROGRAM.format(call=call)
    command = [sys.executable, "-c", program]
    run = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=60, check=True
    )
    error, peak = run.stdout.splitlines()
    assert message in error
    assert int(peak) * 1024 < MOST_MEMORY


def test_the_command_line_has_a_flag_for_the_limit(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    np.savez("table.npz", age=np.arange(1000.0), bought=np.arange(1000) % 2)
    (tmp_path / "table.csv").write_text("age,bought\n" + "30,1\n50,0\n" * 500)
    (tmp_path / "packed.csv.gz").write_bytes(gzip.compress((tmp_path / "table.csv").read_bytes()))
    for name, size in (("table.npz", "16,000"), ("table.csv", "5,"), ("packed.csv.gz", "5,")):
        argv = ["schema", name, "--label", "bought", "--positive", "1"]
        line = fails(capsys, *argv, "--max-bytes", "1e3")
        assert f"can't read {name}: it unpacks to {size}" in line
        assert "max_bytes = 1,000 are allowed (--max-bytes sets it)" in line
        assert main([*argv, "--max-bytes", "1e5", "--quiet"]) == 0
        assert json.loads(capsys.readouterr().out)["label"]["column"] == "bought"
    line = fails(capsys, *argv, "--max-bytes", "0")
    assert "max_bytes = 0, but it must be an integer from 1" in line


def test_the_standard_input_is_read_up_to_the_limit(tmp_path, monkeypatch, capsys):
    lines = io.TextIOWrapper(io.BytesIO(b"age,bought\n" + b"30,1\n50,0\n" * 500))
    monkeypatch.setattr(sys, "stdin", lines)
    argv = ["schema", "-", "--label", "bought", "--positive", "1", "--max-bytes", "1e3"]
    assert "max_bytes = 1,000 are allowed" in fails(capsys, *argv)


@pytest.mark.parametrize("suffix", [".parquet", ".arrow"])
def test_tables_of_arrow_have_the_limit(tmp_path, suffix):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import ipc, parquet

    table = pyarrow.table({"x": np.zeros(100_000)})
    path = tmp_path / f"table{suffix}"
    if suffix == ".parquet":
        parquet.write_table(table, path)
    else:
        options = ipc.IpcWriteOptions(compression="zstd")
        with ipc.new_file(path, table.schema, options=options) as writer:
            writer.write_table(table, max_chunksize=1_000)
    assert path.stat().st_size < 100_000
    with pytest.raises(ParameterError, match="max_bytes = 700,000 are allowed"):
        read_table(path, max_bytes=700_000)
    assert read_table(path, max_bytes=900_000).rows == 100_000


def test_collections_have_the_limit(tmp_path):
    question = Question("hours", BinaryResponse(1.0, (0, 24)))
    path = tmp_path / "hours.npz"
    path.write_bytes(Collection(question).to_bytes())
    assert read_collection(path, question).counts()["lines"] == 0
    with pytest.raises(ParameterError, match="max_bytes = 9 are allowed"):
        read_collection(path, question, max_bytes=9)


@pytest.mark.parametrize("value", [0, -1, 1.5, "9", None, True])
def test_the_limit_is_a_whole_number(tmp_path, value):
    path = tmp_path / "x.csv"
    path.write_text("1,0\n")
    for read in (read_table, files.read_examples):
        with pytest.raises(ParameterError, match="max_bytes = "):
            read(path, max_bytes=value)


def test_an_archive_of_other_forms_is_read_as_before(tmp_path):
    """Headers of later versions, arrays without rows or axes, and members that are no arrays."""
    path = tmp_path / "x.npz"
    with zipfile.ZipFile(path, "w") as archive:
        for version in ((1, 0), (2, 0), (3, 0)):
            column = io.BytesIO()
            np.lib.format.write_array(column, np.arange(3), version)
            archive.writestr(f"x{version[0]}.npy", column.getvalue())
    assert read_table(path).rows == 3
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("notes.txt", "no array")
    with pytest.raises(ParameterError, match="must be an array"):
        read_table(path)
    np.savez(path, X=np.zeros((3, 2), int), y=np.zeros(4, int))
    with pytest.raises(ShapeError, match=r"labels must have shape \(3,\)"):
        files.read_examples(path)
