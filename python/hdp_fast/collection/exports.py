"""Answer lines in the exports of survey tools: tables of text, of which one column holds them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import IO

from .._support.validate import function, refuse
from ..data.delimited import check_delimiter, guess_delimiter
from ..exceptions import ParameterError
from .reports import LONGEST_LINE

# The bytes of a file that are read at once.
_PIECE = 1 << 18
# Nobody asks so many questions, nor such a long one.
_MOST_COLUMNS, _LONGEST_NAME = 1 << 16, 1 << 16
_QUOTE, _PAIR, _MARK, _WIDE = b'"', b'""', b"\xef\xbb\xbf", (b"\xff\xfe", b"\xfe\xff")
# All that stands before a quote that is not one of a pair; it never goes back.
_NEVER = re.compile(rb"(?!)")
_QUOTED = re.compile(rb'(?:[^"]++|"")*+')
# What is in the third row of an export of Qualtrics, and in no answer line.
_IMPORT = b'{"ImportId"'
# What no device writes, in place of a cell that is too long, missing or of several lines.
_DAMAGED = b"\x00"


class ExportedLines:
    r"""The cells of one column of a survey tool's export, as the lines that Collection.read takes.

    The export is a table of text in UTF-8 as RFC 4180 has it: LimeSurvey, Qualtrics, Google Forms
    and spreadsheets write such tables. A cell is the answer line of one person, with its quotes
    doubled. Whatever the cells hold, none raises an error and none counts as more than one line:
    one that is longer than a line, has line breaks in it, or is missing from its row becomes a line
    that a Collection counts as malformed. It takes no more memory than a piece of the file.

    The first row names the columns. Two more rows of names, as Qualtrics writes them, are known by
    the third one, whose cell begins with `{"ImportId"`, which no answer does.

    Args:
        handle: The export, open for reading bytes.
        column: The name of the column.
        delimiter: What stands between cells, one character.
        done: Called with the number of bytes of each piece of the file that was read; None is not.

    Attributes:
        rows: Number of rows of people that were read.
        empty: Number of these whose cell is empty: people who did not answer.
        header_rows: Number of rows of names, 1 to 3.

    Raises:
        ParameterError: An argument breaks its rule, or the first row does not name the column once.
            The error shows nothing of the file.

    Examples:
        >>> import io
        >>> from hdp_fast import collection, local
        >>> question = collection.Question("hours", local.BinaryResponse(1.0, (0, 24)))
        >>> (line,) = collection.report_lines(question, ["7.5"])
        >>> cell = line.replace('"', '""')
        >>> export = f'ResponseId,answer\r\nR_1,"{cell}"\r\nR_2,\r\n'.encode()
        >>> lines = collection.ExportedLines(io.BytesIO(export), "answer")
        >>> reports = collection.Collection(question)
        >>> reports.read(lines, done=lambda length: None)
        >>> reports.accepted, lines.rows, lines.empty
        (1, 2, 1)
    """

    def __init__(
        self,
        handle: IO[bytes],
        column: str,
        *,
        delimiter: str = ",",
        done: Callable[[int], object] | None = None,
    ):
        if not callable(getattr(handle, "read", None)):
            refuse("handle", handle, "it must be a file that is open for reading bytes")
        if not isinstance(column, str) or not column.strip():
            refuse("column", column, "it must be the name of a column")
        sign = check_delimiter(delimiter)
        self._cells = _Cells(
            handle, sign.encode(), None if done is None else function("done", done)
        )
        self.rows, self.empty, self.header_rows = 0, 0, 1
        self._place, self._columns = self._find(column.strip(), sign)
        self._cells.expect(self._place)
        self._waiting = self._skip_names()
        self._rest = b""

    def _find(self, column: str, sign: str) -> tuple[int, int]:
        """The place of the column among those of the first row, and how many there are."""
        names = [(cell or b"").decode("utf-8", "replace").strip() for cell in self._read_names()]
        times = names.count(column)
        if times != 1:
            have = f"{times} of {len(names)} columns in the first row have this name"
            more = "" if times else guess_delimiter(names)
            refuse("column", column, f"{have}, and one must{more}")
        return names.index(column), len(names)

    def _read_names(self) -> list[bytes | None]:
        names, ended = [], False
        while not ended:
            cell, ended = self._cells.read(_LONGEST_NAME)
            names.append(cell)
            if len(names) > _MOST_COLUMNS:
                raise ParameterError("the first row is too long: it must name the columns")
        return names

    def _skip_names(self) -> list[bytes]:
        """The first two rows, unless they are names."""
        rows = [row for row in (self._read_row(), self._read_row()) if row is not None]
        if len(rows) == 2 and rows[1].startswith(_IMPORT):
            # A row that could be an answer stays one.
            rows = [row for row in rows[:1] if row.startswith(b"{")]
            self.header_rows = 3 - len(rows)
        return rows

    def _read_row(self) -> bytes | None:
        """The cell of the column in the next row; None after the last one."""
        while not self._cells.is_at_end():
            wanted, ended = _DAMAGED, False
            place = self._place if self._cells.pass_lead() else 0
            while not ended:
                longest = LONGEST_LINE - 1 if place == self._place else 0
                cell, ended = self._cells.read(longest)
                if place == self._place:
                    wanted = _DAMAGED if cell is None else cell.strip()
                    if not ended and self._cells.pass_rest():
                        place, ended = place + 1, True
                place += 1
            # A blank line is no row, unless it is an empty cell of the only column.
            if place == 1 < self._columns and cell == b"" and not self._cells.was_quoted:
                continue
            return _DAMAGED if b"\n" in wanted or b"\r" in wanted else wanted
        return None

    def readline(self, size: int = -1) -> bytes:
        """Reads the next cell that is not empty.

        Args:
            size: The most bytes; negative for any number. What is left comes the next time.

        Returns:
            The cell and a line end, or nothing after the last row.

        Raises:
            ParameterError: size is no integer.
        """
        if not isinstance(size, int):
            refuse("size", size, "it must be an integer")
        line = self._rest or self._next_line()
        cut = len(line) if size < 0 else size
        self._rest = line[cut:]
        return line[:cut]

    def _next_line(self) -> bytes:
        while (cell := self._waiting.pop(0) if self._waiting else self._read_row()) is not None:
            self.rows += 1
            if cell:
                return cell + b"\n"
            self.empty += 1
        return b""


class _Cells:
    """The cells of a table of text, one after the other, as the csv module reads them.

    The module itself would hold a cell of any length, and fails on a long one, in whose middle its
    reader then goes on: what one person wrote would count as rows.
    """

    def __init__(self, handle: IO[bytes], sign: bytes, done: Callable[[int], object] | None):
        self._handle, self._sign, self._done = handle, sign, done
        self._data, self._at, self._ended = b"", 0, False
        self._stop = re.compile(b"|".join(map(re.escape, (sign, b"\r", b"\n"))))
        self._lead = self._rest = _NEVER
        self.was_quoted = False
        self._look(len(_MARK))
        if self._data.startswith(_WIDE):
            raise ParameterError("the export is in UTF-16, but it must be text in UTF-8")
        self._at = len(_MARK) if self._data.startswith(_MARK) else 0

    def expect(self, place: int) -> None:
        """Says which cell of each row is wanted, so that the others are passed at once."""
        if len(self._sign) > 1:
            return
        sign = re.escape(self._sign)
        cell = rb'(?:"(?:[^"]++|"")*+"|[^"\r\n%b][^\r\n%b]*+|)' % (sign, sign)
        self._lead = re.compile(rb"(?:%b%b){%d}+" % (cell, sign, place)) if place else _NEVER
        self._rest = re.compile(rb"(?:%b%b)*+%b(?:\n|\r\n)" % (cell, sign, cell))

    def pass_lead(self) -> bool:
        """Passes the cells before the wanted one, if they are regular and were read whole."""
        return self._pass(self._lead)

    def pass_rest(self) -> bool:
        """Passes the cells behind the wanted one and the line end, likewise."""
        return self._pass(self._rest)

    def _pass(self, cells: re.Pattern[bytes]) -> bool:
        found = cells.match(self._data, self._at)
        self._at = self._at if found is None else found.end()
        return found is not None

    def is_at_end(self) -> bool:
        return not self._look(1)

    def read(self, longest: int) -> tuple[bytes | None, bool]:
        """A cell, None if it is longer than that, and whether it ends its row."""
        text = _Text(longest)
        self.was_quoted = self._look(1) == _QUOTE
        if self.was_quoted:
            self._at += 1
            self._take_quoted(text)
        ended = self._take_plain(text)
        return text.content, ended

    def _take_quoted(self, text: _Text) -> None:
        """What stands before the quote that closes, pairs of quotes being one."""
        while True:
            found = _QUOTED.match(self._data, self._at)
            end = self._at if found is None else found.end()
            text.add(self._data[self._at : end].replace(_PAIR, _QUOTE))
            self._at = end
            # A quote at the end of a piece may be the first one of a pair.
            if (ahead := self._look(2)) == _PAIR:
                continue
            if ahead.startswith(_QUOTE) or not ahead:
                self._at += len(ahead[:1])
                return

    def _take_plain(self, text: _Text) -> bool:
        """What stands before the next delimiter or line end, and whether that is a line end."""
        while True:
            # A delimiter of several bytes may begin at the end of a piece.
            self._look(len(self._sign))
            found = self._stop.search(self._data, self._at)
            if found is None:
                end = len(self._data) if self._ended else len(self._data) - len(self._sign) + 1
                text.add(self._data[self._at : end])
                self._at = end
                if self._ended:
                    return True
                self._fill()
                continue
            text.add(self._data[self._at : found.start()])
            self._at = found.end()
            if found[0] == self._sign:
                return False
            if found[0] == b"\r" and self._look(1) == b"\n":
                self._at += 1
            return True

    def _look(self, count: int) -> bytes:
        """The next bytes, fewer only at the end of the file."""
        while len(self._data) - self._at < count and not self._ended:
            self._fill()
        return self._data[self._at : self._at + count]

    def _fill(self) -> None:
        piece = self._handle.read(_PIECE)
        if not isinstance(piece, bytes):
            refuse("handle", self._handle, "it must be open for reading bytes")
        self._ended = not piece
        self._data, self._at = self._data[self._at :] + piece, 0
        if self._done is not None and piece:
            self._done(len(piece))


class _Text:
    """The bytes of a cell, as long as they are not too many."""

    def __init__(self, longest: int):
        self._parts: list[bytes] = []
        self._left = longest

    def add(self, part: bytes) -> None:
        self._left -= len(part)
        if self._left >= 0:
            self._parts.append(part)

    @property
    def content(self) -> bytes | None:
        return b"".join(self._parts) if self._left >= 0 else None
