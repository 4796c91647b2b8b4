"""Exports of survey tools: one column holds the answer lines, whatever the other cells hold."""

import csv
import io
import json
import random
import tracemalloc

import pytest
from cases import each_case

from hdp_fast import collection, local
from hdp_fast.collection.exports import ExportedLines
from hdp_fast.exceptions import ParameterError

QUESTION = collection.Question("hours", local.BinaryResponse(1.0, (0, 24)))


def written(rows, **form):
    """A table as the csv module writes it."""
    text = io.StringIO(newline="")
    csv.writer(text, **form).writerows(rows)
    return text.getvalue().encode()


def collected(export, column="answer", **more):
    lines = ExportedLines(io.BytesIO(export), column, **more)
    reports = collection.Collection(QUESTION)
    reports.read(lines, done=lambda length: None)
    return lines, reports.counts()


def answers(count):
    return collection.report_lines(QUESTION, ["7.5"] * count)


class Trickle(io.BytesIO):
    """A file of which a read gets as many bytes as it likes, one at least."""

    def __init__(self, content, step):
        super().__init__(content)
        self.step = step

    def read(self, size=-1):
        return super().read(min(size, self.step) if size > 0 else self.step)


@each_case(
    "form",
    [
        {},
        {"delimiter": ";", "quoting": csv.QUOTE_ALL, "lineterminator": "\n"},
        {"delimiter": "\t", "lineterminator": "\r", "quoting": csv.QUOTE_ALL},
        {"delimiter": "¦", "quoting": csv.QUOTE_ALL},
    ],
)
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_a_column_of_lines_is_collected(form, mark):
    first, second, third = answers(3)
    rows = [
        ["id", "Your “code”;\n(leave as it is)", "answer ", "note"],
        ["R1", "", first, "a, b; c\t¦"],
        ["R2", "", "", 'says "no"'],
        ["R3", "", f" {second}\n", "two\r\nlines"],
        ["R4", "", "I will not tell", ""],
        ["R5", "", first, "once more"],
        ["R6", "", third, ""],
    ]
    lines, counts = collected(mark + written(rows, **form), delimiter=form.get("delimiter", ","))
    assert (lines.rows, lines.empty, lines.header_rows) == (6, 1, 1)
    assert (counts["lines"], counts["accepted"]) == (5, 3)
    assert (counts["malformed"], counts["duplicates"]) == (1, 1)


def test_three_rows_of_names_are_no_people():
    lines = answers(3)
    head = [
        ["ResponseId", "answer"],
        ["Response ID", "Leave this field\nas it is"],
        ['{"ImportId":"_recordId"}', '{"ImportId":"QID3_TEXT"}'],
    ]
    read, counts = collected(written([*head, *zip("abc", lines, strict=True)]))
    assert (read.rows, read.header_rows) == (3, 3)
    assert (counts["lines"], counts["accepted"]) == (3, 3)
    # One row of names, and a person who writes what only the third one has: nobody else is lost.
    evil = [head[0], ["R1", lines[0]], ["R2", head[2][1]], ["R3", lines[1]]]
    read, counts = collected(written(evil))
    assert (counts["accepted"], read.header_rows) == (2, 2)


@each_case("step", [1, 2, 3, 7, 1 << 18])
def test_cells_are_those_of_the_csv_module(step):
    signs = ['"', '""', ",", ";", "\n", "\r", "\r\n", "a", "é", " ", '","', "{}"]
    for seed in range(200 if step < 8 else 1500):
        rng = random.Random(seed)
        body = "".join(rng.choices(signs, k=rng.randrange(40)))
        sign, place = ";" if step == 2 else ",", rng.randrange(3)
        names = sign.join([*["x", "y", "z"][:place], "answer", *["u", "v"][: rng.randrange(1, 3)]])
        text = f"{names}\n{body}"
        rows = [row for row in csv.reader(io.StringIO(text, newline=""), delimiter=sign) if row]
        cells = [(row[place] if len(row) > place else "\0").strip(" \r\n") for row in rows[1:]]
        cells = ["\0" if "\n" in cell or "\r" in cell else cell for cell in cells]
        lines = ExportedLines(Trickle(text.encode(), step), "answer", delimiter=sign)
        found = list(iter(lines.readline, b""))
        assert [one.decode()[:-1] for one in found] == [cell for cell in cells if cell], repr(text)
        assert (lines.rows, lines.empty) == (len(cells), cells.count(""))


def test_no_cell_becomes_two_lines_or_stops_the_others():
    first, second, inner = answers(3)
    quoted = inner.replace('"', '""')
    hostile = [
        f"{first}\n{inner}",  # two lines in one cell
        f"{'x' * 200_000}\n{inner}\n",  # longer than the csv module takes
        f'"\n{inner}',
        "\x00" * 50,
        "[" * 100_000,
        "\ufeff" + first,
        "=cmd()",
        json.dumps(first),
    ]
    rows = [["answer", "more"], [second, ""], *([one, ""] for one in hostile)]
    _, counts = collected(written(rows))
    assert (counts["lines"], counts["accepted"]) == (9, 1)
    # What a careless tool writes without quotes is that tool's word; bytes that are no text are
    # one malformed line, a row too short another.
    raw = f'answer,more\n"{quoted}",1\n'.encode() + b'\xff\xfe\x00"\xff,\n"' + b'",1\n'
    lines, counts = collected(raw + b'last\n"open to the end\n1\n2')
    assert (counts["accepted"], lines.rows, lines.empty) == (1, 5, 1)
    assert counts["malformed"] == 3
    _, counts = collected(f'more,answer\n1\n1,"{quoted}"'.encode())
    assert (counts["malformed"], counts["accepted"]) == (1, 1)


def test_one_column_alone_has_blank_lines_for_the_silent():
    first, second = answers(2)
    lines, counts = collected(written([["answer"], [first], [], [second], []]))
    assert (counts["accepted"], lines.rows, lines.empty) == (2, 4, 2)


def test_memory_does_not_grow_with_a_cell_or_a_file():
    (line,) = answers(1)
    cell = line.replace('"', '""').encode()

    class Endless(io.RawIOBase):
        """A header, an answer, thirty megabytes of one cell with quotes in it, and an answer."""

        left = 30

        def read(self, size=-1):
            self.left -= 1
            if self.left == 29:
                return b'answer,x\n"' + cell + b'",1\n"'
            if self.left == 0:
                return b'",1\n"' + cell + b'",1\n'
            return b'ab""' * (1 << 18) if self.left > 0 else b""

    reports = collection.Collection(QUESTION)
    tracemalloc.start()
    try:
        reports.read(ExportedLines(Endless(), "answer"), done=lambda length: None)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert reports.counts() == dict.fromkeys(reports.counts(), 0) | {
        "lines": 3, "accepted": 1, "malformed": 1, "duplicates": 1
    }  # fmt: skip
    assert peak < 8e6


@each_case(
    "export, more, match",
    [
        (b"secret,answer\n", {"column": "reply"}, "column = 'reply', but 0 of 2 columns"),
        (b"answer,answer\n", {}, "column = 'answer', but 2 of 2 columns"),
        (b"id;answer\n", {}, "0 of 1 columns.*did you mean --delimiter ';'"),
        (b"", {}, "0 of 1 columns"),
        ("id,answer\n".encode("utf-16"), {}, "UTF-16"),
        (b"," * 70_000, {}, "first row is too long"),
        (b"answer\n", {"column": " "}, "column = ' '"),
        (b"answer\n", {"column": 3}, "column = 3"),
        (b"answer\n", {"delimiter": "ab"}, "delimiter = 'ab'"),
        (b"answer\n", {"delimiter": None}, "delimiter = None"),
    ],
)
def test_an_export_without_the_column_is_refused(export, more, match):
    with pytest.raises(ParameterError, match=match) as caught:
        collected(export, **more)
    assert "secret" not in str(caught.value)


def test_a_file_of_text_is_refused():
    with pytest.raises(ParameterError, match=r"handle = .*reading bytes"):
        ExportedLines(io.StringIO("answer"), "answer")


def test_pieces_and_long_reads_are_told():
    (line,) = answers(1)
    export = written([["answer"], [line]])
    sizes = []
    lines = ExportedLines(io.BytesIO(export), "answer", done=sizes.append)
    assert b"".join(iter(lambda: lines.readline(5), b"")) == line.encode() + b"\n"
    assert sum(sizes) == len(export)
