"""Lines of reports: how a client writes one, and what a collector makes of any number of them."""

from __future__ import annotations

import dataclasses
import io
import json
import re
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np

from ..data.reading import open_arrays, read_member
from ..exceptions import ParameterError
from ..local.randomizers.aggregates import Aggregate
from ..record import PrivacyRecord
from .questions import Question

_FORMAT, _VERSION = "hdp_fast.report", 1
_KEYS = {"format", "version", "question", "digest", "randomizer", "report", "id"}
_ID = re.compile(r"[0-9a-f]{32}")
_ID_BYTES = 16
# No line of a client is a quarter as long.
_LONGEST_LINE = 1 << 12
# Why a line was not accepted, in the order in which that is asked.
_REASONS = ("malformed", "wrong_question", "out_of_range", "duplicates")


def report_lines(question: Question, texts: list[str]) -> list[str]:
    """One JSON line for each value, of one person each: all that leaves a device.

    Its id is drawn for the line and has nothing to do with the value or the person.

    Raises: ParameterError for a text that holds no value.
    """
    reports = question.randomizer.sample(question.values(texts)).tolist()
    form = {"format": _FORMAT, "version": _VERSION, **_asked(question)}
    return [
        json.dumps({**form, "report": report, "id": secrets.token_hex(_ID_BYTES)})
        for report in reports
    ]


def _asked(question: Question) -> dict[str, Any]:
    """What a line says of its question. The digest tells what the rest leaves out: categories."""
    parameters = question.parameters()
    return {"question": question.id, "digest": question.digest, "randomizer": parameters}


class Collection:
    """The reports about one question, each id's first, and how many lines were no such report.

    Collections of parts of the lines add up to the one of all lines, duplicates across the parts
    included: that is why it keeps reports with their ids, and not their aggregate alone.
    """

    def __init__(self, question: Question):
        self._question = question
        self._asked = _asked(question)
        self._range = question.randomizer.report_range
        self._reports: dict[bytes, int] = {}
        self._refused = dict.fromkeys(_REASONS, 0)

    @property
    def accepted(self) -> int:
        """Reports that count."""
        return len(self._reports)

    @property
    def lines(self) -> int:
        """Lines read, each of them counted once below."""
        return self.accepted + sum(self._refused.values())

    def counts(self) -> dict[str, int]:
        """What became of the lines."""
        return {"lines": self.lines, "accepted": self.accepted, **self._refused}

    def read(self, handle: IO[bytes], done: Callable[[int], object]) -> None:
        """Takes every line; `done` hears of the bytes read. No content of a line is an error."""
        for line, length in _lines(handle):
            reason = self._reason(line)
            if reason is not None:
                self._refused[reason] += 1
            done(length)

    def _reason(self, line: bytes | None) -> str | None:
        """Accepts the report in a line, or says why not."""
        fields = None if line is None else _fields(line)
        if fields is None:
            return "malformed"
        if any(fields[name] != value for name, value in self._asked.items()):
            return "wrong_question"
        least, most = self._range
        # Not clipped: nobody who ran the randomizer has sent this.
        if not least <= fields["report"] <= most:
            return "out_of_range"
        key = bytes.fromhex(fields["id"])
        if key in self._reports:
            return "duplicates"
        self._reports[key] = fields["report"]
        return None

    def merge(self, other: Collection) -> None:
        """Takes all of another collection, whose lines count as read after the own ones."""
        before = self.accepted + other.accepted
        self._reports = {**other._reports, **self._reports}
        for reason, count in other._refused.items():
            self._refused[reason] += count
        self._refused["duplicates"] += before - self.accepted

    def aggregate(self) -> Aggregate:
        """What the accepted reports say together."""
        reports = np.fromiter(self._reports.values(), np.int64, self.accepted)
        found: Aggregate = self._question.randomizer.aggregate(reports)
        return found

    def record(self) -> PrivacyRecord:
        """What protects each report, if its client is honest."""
        found = self._question.randomizer.record()
        return dataclasses.replace(found, rng="the clients' own")

    def to_bytes(self) -> bytes:
        """The collection as an .npz file, which read_collection reads."""
        content = io.BytesIO()
        np.savez(
            content,
            question=np.array(self._question.to_json()),
            refused=np.array(list(self._refused.values()), np.int64),
            ids=np.frombuffer(b"".join(self._reports), np.uint8).reshape(-1, _ID_BYTES),
            reports=np.fromiter(self._reports.values(), np.int64, self.accepted),
        )
        return content.getvalue()

    def _restore(self, refused: Any, ids: Any, reports: Any) -> None:
        """Raises: ParameterError when they are not what to_bytes wrote."""
        keys, (least, most) = ids.tobytes(), self._range
        whole = refused.dtype == reports.dtype == np.int64 and ids.dtype == np.uint8
        whole = whole and refused.shape == (len(_REASONS),) and (refused >= 0).all()
        whole = whole and ids.shape == (*reports.shape, _ID_BYTES)
        if not whole or ((reports < least) | (reports > most)).any():
            raise ParameterError("its arrays are not those of a collection")
        starts = range(0, len(keys), _ID_BYTES)
        pairs = zip(starts, reports.tolist(), strict=True)
        self._reports = {keys[start : start + _ID_BYTES]: report for start, report in pairs}
        if self.accepted != len(reports):
            raise ParameterError("its ids are not different")
        self._refused = dict(zip(_REASONS, refused.tolist(), strict=True))


def read_collection(path: Path, question: Question) -> Collection:
    """The collection in a file.

    Raises: ParameterError when it is not one, or is of another question.
    """
    found = Collection(question)
    with open_arrays(path) as archive:
        names = ("question", "refused", "ids", "reports")
        if sorted(getattr(archive, "files", ())) != sorted(names):
            raise ParameterError(f"{path} must be a file that --aggregate wrote")
        text, *state = (read_member(archive, name, f"{name} in {path}") for name in names)
    if str(text) != question.to_json():
        raise ParameterError(f"{path} must hold reports about the same question, {question.id!r}")
    try:
        found._restore(*state)
    except ParameterError as error:
        raise ParameterError(f"{path} must be a file that --aggregate wrote: {error}") from None
    return found


def _lines(handle: IO[bytes]) -> Iterator[tuple[bytes | None, int]]:
    """Each line and its length, None for one that is too long to be held."""
    while line := handle.readline(_LONGEST_LINE):
        length, ended = len(line), line.endswith(b"\n")
        if ended or length < _LONGEST_LINE:
            yield line, length
            continue
        while not ended and (rest := handle.readline(_LONGEST_LINE)):
            length, ended = length + len(rest), rest.endswith(b"\n")
        yield None, length


def _fields(line: bytes) -> dict[str, Any] | None:
    """What a line says, if it is one that a client could have written."""
    try:
        found = json.loads(line.decode("utf-8"), object_pairs_hook=_different)
    # Of text that is not UTF-8, of JSON, of numbers too long to read: all are ValueErrors.
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or found.keys() != _KEYS or found["format"] != _FORMAT:
        return None
    # bool is an int to isinstance; 1.0 and 1e0 are floats.
    if type(found["version"]) is not int or found["version"] != _VERSION:
        return None
    if type(found["report"]) is not int or not isinstance(found["id"], str):
        return None
    return found if _ID.fullmatch(found["id"]) else None


def _different(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object, if no key comes twice: readers would differ on what it says."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key comes twice")
    return found
