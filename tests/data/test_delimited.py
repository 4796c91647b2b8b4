"""Private module data.delimited: tables of text are read alike with pyarrow and without it."""

import gzip
import random
import subprocess
import sys

import numpy as np
import pytest

from hdp_fast.data import arrow, delimited, read_table
from hdp_fast.exceptions import HdpFastError, ParameterError

pytest.importorskip("pyarrow")

CELLS = [
    *(
        "1",
        "2.5",
        "",
        " x",
        "00501",
        "-0",
        "nan",
        "1_0",
        "1e999",
        "é",
        "\xa0",
        "\x00",
        "\x1c",
        "\\",
    ),
    *('"q"', '"a,b"', '"a""b"', '"l\n2"', '"\r\n"', '""', '"', 'a"b', '"a"b', ' "a"'),
]
SIGNS = [*CELLS, ",", ",", ",", "\n", "\n", "\r", "\r\n", "\ufeff", ";", "# ", "\u2028"]
NO_TEXTS = (b"\xff", b"\xed\xa0\x80", b"\xc0\x80", b"\xf4\x90\x80\x80")


def made_up(dice):
    """A table of odd cells, or signs in any order."""
    if dice.random() < 0.5:
        width, end = dice.randint(1, 3), dice.choice(("\n", "\r\n", "\r"))
        rows = [[dice.choice(CELLS) for _ in range(width)] for _ in range(dice.randint(0, 6))]
        lines = [",".join("abc"[:width]), *map(",".join, rows)]
        text = dice.choice(("", "\ufeff")) + end.join(lines) + dice.choice(("", end, end * 2))
    else:
        text = "a,b\n" + "".join(dice.choices(SIGNS, k=dice.randint(0, 14)))
    content = text.encode()
    if dice.random() < 0.05:
        place = dice.randrange(len(content) + 1)
        content = content[:place] + dice.choice(NO_TEXTS) + content[place:]
    return content


def reading(path):
    """What a file holds, or the error that it is refused with."""
    try:
        table = read_table(path)
    except HdpFastError as error:
        return type(error), str(error)
    columns = table.columns.items()
    assert all(len(set(column.texts)) == len(column.texts) for _, column in columns)
    texts = {name: [column.texts[code] for code in column.codes] for name, column in columns}
    return texts, {name: list(map(repr, column.row_numbers().tolist())) for name, column in columns}


def differences(monkeypatch, path, contents):
    """The contents that pyarrow and the csv module read differently, and how many it read alone."""
    fast, other, read = delimited._read_fast, [], []
    monkeypatch.setattr(delimited, "_SHORT_BYTES", -1)

    def counted(*arguments):
        columns = fast(*arguments)
        read.append(columns is not None)
        return columns

    monkeypatch.setattr(delimited, "_read_fast", counted)
    for content in contents:
        path.write_bytes(content)
        monkeypatch.setattr(arrow, "is_installed", lambda: True)
        first = reading(path)
        monkeypatch.setattr(arrow, "is_installed", lambda: False)
        if reading(path) != first:
            other.append(content)
    return other, sum(read)


@pytest.mark.thorough(cases=1)
@pytest.mark.parametrize("block", [1 << 20, 16, 9])
def test_pyarrow_reads_what_the_csv_module_reads(monkeypatch, tmp_path, block):
    monkeypatch.setattr(delimited, "_BLOCK_BYTES", block)
    monkeypatch.setattr(delimited, "_PIECE", block)
    dice = random.Random(block)
    contents = [made_up(dice) for _ in range(300)]
    other, read = differences(monkeypatch, tmp_path / "a.csv", contents)
    assert other == []
    assert read > 25


def test_the_comparison_sees_what_pyarrow_reads_otherwise(monkeypatch, tmp_path):
    monkeypatch.setattr(delimited, "_has_regular_quotes", lambda *_: True)
    contents = [b'a,b\n"x"y,2\n', b'a\n"x" \n', b'a\n"x"\n']
    assert differences(monkeypatch, tmp_path / "a.csv", contents) == (contents[:2], 3)


def test_texts_stay_texts(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("zip,flag,big,day,pay\n00501,true,9007199254740993,2020-01-02,1e3\n,,,,\n")
    table = read_table(path)
    texts = [column.texts for column in table.columns.values()]
    first = ("00501", "true", "9007199254740993", "2020-01-02", "1e3")
    assert texts == [(text, "") for text in first]
    np.testing.assert_array_equal(table.column("pay").row_numbers(), [1000, np.nan])


def test_pyarrow_is_not_imported_for_short_texts(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("age,home\n54,own\n")
    read = "import sys; from hdp_fast.data import read_table; read_table(sys.argv[1])"
    command = [sys.executable, "-c", f"{read}; print('pyarrow' in sys.modules)", str(path)]
    assert subprocess.check_output(command, text=True).strip() == "False"


def test_pyarrow_holds_no_memory_of_python():
    content = b"age,home\n" + b"54,own\n" * 1000
    references = sys.getrefcount(content)
    buffer = arrow.copy(memoryview(content)[9:])
    assert sys.getrefcount(content) == references
    assert buffer.to_pybytes() == content[9:]
    assert arrow.copy(memoryview(content)[len(content) :]).size == 0


@pytest.mark.parametrize("installed", [True, False])
def test_what_unpacks_to_no_table_is_not_held(monkeypatch, tmp_path, installed):
    monkeypatch.setattr(arrow, "is_installed", lambda: installed)
    monkeypatch.setattr(delimited, "_CHUNK_BYTES", 1 << 12)
    monkeypatch.setattr(delimited, "_SHORT_BYTES", -1)
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress(b"a,b\n" + b"1" * (5 << 12)))
    held = []
    monkeypatch.setattr(delimited, "_read_exactly", lambda *_: held.append(1))
    with pytest.raises(ParameterError, match="whole table separated by commas"):
        read_table(path)
    assert held == []


def test_quotes_in_pieces():
    def regular(text, piece):
        delimited._PIECE, kept = piece, delimited._PIECE
        try:
            return delimited._has_regular_quotes(text.encode(), ",")
        finally:
            delimited._PIECE = kept

    for text, expected in (
        ('"a","b""c"\n"",x\n', True),
        ('\ufeff"a"\n', True),
        ('"a', False),
        ('a"b"\n', False),
        ('"a"b\n', False),
        ('"a" ,\n', False),
        ('"a,"b",c"\n', False),
        ('"""a"\n', True),
        ('""a"\n', False),
    ):
        assert {regular(text, piece) for piece in (1, 2, 3, 100)} == {expected}, text
