"""Lines of reports: each device writes one, and a collector reads any number of them."""

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

from .. import _core
from .._support.numbers import floats, silence, to_numbers
from .._support.random_state import make_key
from .._support.validate import (
    file_path,
    function,
    instance,
    list_texts,
    positive_int,
    probability,
    refuse,
)
from ..data.reading import MOST_BYTES, open_arrays, read_member
from ..exceptions import ParameterError
from ..local.queries.query import read_arrays, read_labels
from ..local.randomizers.aggregates import Aggregate
from ..local.randomizers.bounded import BinaryResponse
from ..local.randomizers.frequency import KaryResponse
from ..local.stages import Answered
from ..record import PrivacyRecord
from .questions import Question, check_question

_FORMAT, _VERSION = "hdp_fast.report", 2
_KEYS = {"format", "version", "question", "digest", "report", "id"}
_ID = re.compile(r"[0-9a-f]{32}")
_ID_BYTES = 16
_MOST_NUMBER = (1 << 63) - 1
# No device writes a line of half this length.
LONGEST_LINE = 1 << 12
# The reasons to refuse a line, in the order in which they are checked.
REASONS = ("malformed", "wrong_question", "out_of_range", "duplicates")


def report_lines(question: Question, texts: list[str]) -> list[str]:
    """Randomizes values and writes one JSON line for each: all that leaves a device.

    Each value belongs to one person. The id of a line is random and independent of the value and
    the person.

    Args:
        question: The question that the values answer.
        texts: The values as texts.

    Returns:
        The lines, without line ends.

    Raises:
        ParameterError: A text is not a value, or none of the categories. The error does not show
            it.

    Guarantee:
        Each line has the epsilon and delta of question.randomizer, locally, with random bits from
        the operating system.

    Examples:
        >>> import json
        >>> from hdp_fast import collection, local
        >>> question = collection.Question("hours", local.BinaryResponse(1.0, (0, 24)))
        >>> (line,) = collection.report_lines(question, ["7.5"])
        >>> sorted(json.loads(line))
        ['digest', 'format', 'id', 'question', 'report', 'version']
    """
    check_question(question)
    answers = list_texts("texts", texts)
    question.require_categories(answers)
    reports = question.randomizer.sample(question.values(answers)).tolist()
    return [_write_line(question, report) for report in reports]


def _write_line(question: Question, report: int) -> str:
    """The line with a report; its bytes are those that every device writes."""
    form = {"format": _FORMAT, "version": _VERSION, **_question_fields(question)}
    fields = {**form, "report": report, "id": secrets.token_hex(_ID_BYTES)}
    return json.dumps(fields, separators=(",", ":"))


def hypothesis_line(
    question: Question, features: Any, label: float, *, number: int | None = None
) -> str:
    """Answers, on a device, whether the hypothesis of a question is wrong about its record.

    In place of a hypothesis the question may have the JSON of a local.Query, whose answer it is
    then, or of a local.Stage, of which the number tells the person's own question. Whatever the
    record is, there is an answer: a hypothesis that cannot be applied counts as wrong, and a query
    that does not fit the record has the answer 0. A device that was silent instead would reveal
    something about its record.

    Args:
        question: A question with a hypothesis that learners.predictor reads, or with a query.
        features: The features of the record, d numbers.
        label: Its label, 0 or 1; NaN for one that is missing.
        number: The person's invitation number, which a stage needs, among those who are asked.

    Returns:
        The line, without its end.

    Raises:
        ParameterError: The question has no hypothesis, or one that local.true_answers cannot read,
            or the number does not suit it. This depends on question and number alone.

    Guarantee:
        The line has the epsilon of question.randomizer, locally, with coins from the operating
        system. To answer the question twice costs twice as much: see answer_once.

    Examples:
        >>> from hdp_fast import collection
        >>> rule = '{"kind": "conjunction", "features": [1], "values": [1], "complement": false}'
        >>> question = collection.hypothesis_question("rule-1", rule, epsilon=1.0)
        >>> line = collection.hypothesis_line(question, [0, 1, 1], 1)
        >>> '"question":"rule-1"' in line
        True
    """
    hypothesis = check_question(question).hypothesis
    if hypothesis is None:
        refuse("question", question.id, "it must have a hypothesis")
    stage = question.stage
    if stage is not None and (number is None or number not in stage.numbers):
        rule = f"this stage asks those from {stage.first:,} on, {stage.count:,} people"
        refuse("number", number, rule)
    if number is not None:
        number = positive_int("number", number, _MOST_NUMBER)
    (y,) = read_labels([label])
    row, text = _read_row(features), question.to_json()
    return _core.device_line(text, number, row, float(y), make_key(None))


def _read_row(features: Any) -> list[float]:
    """The features as numbers, NaN for what is none; no entries where they are no row.

    Raises: ParameterError for a masked array, whose hidden entries would be shown.
    """
    (row,) = read_arrays("features", [features])
    try:
        with silence():
            entries = floats(to_numbers(np.asarray(row)))
    except Exception:
        return []
    return entries.tolist() if entries.ndim == 1 else []


def _question_fields(question: Question) -> dict[str, Any]:
    """The fields by which a line names its question; the digest covers all of it."""
    return {"question": question.id, "digest": question.digest}


class Collection:
    r"""The reports about one question: the first of each id, and how many lines were refused.

    It keeps the reports with their ids, and not their aggregate alone, so that duplicates are
    noticed when collections of parts of the lines are merged. A line that is malformed, answers
    another question, holds a report out of range or repeats an id is counted and dropped.

    Args:
        question: The question that the lines must answer.

    Examples:
        >>> import io
        >>> from hdp_fast import collection, local
        >>> question = collection.Question("hours", local.BinaryResponse(1.0, (0, 24)))
        >>> lines = collection.report_lines(question, ["7.5"] * 1000) + ["no report"]
        >>> reports = collection.Collection(question)
        >>> reports.read(io.BytesIO("\n".join(lines).encode()), done=lambda length: None)
        >>> reports.accepted, reports.counts()["malformed"], reports.aggregate().reports
        (1000, 1, 1000)
    """

    def __init__(self, question: Question):
        self._question = check_question(question)
        self._form = LineForm(question)
        self._reports: dict[bytes, int] = {}
        self._refused = dict.fromkeys(REASONS, 0)

    @property
    def accepted(self) -> int:
        """The number of reports that count."""
        return len(self._reports)

    @property
    def lines(self) -> int:
        """The number of lines that were read."""
        return self.accepted + sum(self._refused.values())

    def counts(self) -> dict[str, int]:
        """Counts the lines that were read, accepted and refused.

        Returns:
            A dict with the keys "lines" and "accepted" and one key for each reason: "malformed",
            "wrong_question", "out_of_range" and "duplicates".
        """
        return {"lines": self.lines, "accepted": self.accepted, **self._refused}

    def read(self, handle: IO[bytes], done: Callable[[int], object]) -> None:
        """Reads every line of a file. Whatever a line holds, it raises no error.

        Args:
            handle: The file, open for reading bytes.
            done: Called after each line with the number of its bytes.

        Raises:
            ParameterError: handle is no file, or done is not callable.
        """
        if not callable(getattr(handle, "readline", None)):
            refuse("handle", handle, "it must be a file that is open for reading bytes")
        function("done", done)
        for line, length in split_lines(handle):
            reason = self._accept(line)
            if reason is not None:
                self._refused[reason] += 1
            done(length)

    def _accept(self, line: bytes | None) -> str | None:
        """Accept the report in a line, or return the reason why it was refused."""
        report = self._form.read(line)
        if isinstance(report, str):
            return report
        key = bytes.fromhex(report[0])
        if key in self._reports:
            return "duplicates"
        self._reports[key] = report[1]
        return None

    def merge(self, other: Collection) -> None:
        """Adds another collection, whose lines count as read after the lines of this one.

        Args:
            other: A collection about the same question.

        Raises:
            ParameterError: other is about another question.
        """
        instance("other", other, Collection, "a Collection")
        if other._question != self._question:
            rule = "collections are merged only if they are about one question"
            refuse("other", other._question.id, rule)
        before = self.accepted + other.accepted
        self._reports = {**other._reports, **self._reports}
        for reason, count in other._refused.items():
            self._refused[reason] += count
        self._refused["duplicates"] += before - self.accepted

    def aggregate(self) -> Aggregate:
        """Adds up the accepted reports.

        Returns:
            The aggregate of the question's randomizer, which estimates the mean or the frequencies.

        Raises:
            ParameterError: The question is a stage of several: `answered` sorts its reports.
        """
        if self._question.stage is not None:
            refuse("question", self._question.id, "it is a stage of several: take answered()")
        reports = np.fromiter(self._reports.values(), np.int64, self.accepted)
        return self._question.randomizer.aggregate(reports)

    def answered(self) -> list[Answered]:
        """Sorts the accepted reports about a stage by question.

        Returns:
            For each question of the stage how many people had it, and the bits that arrived.

        Raises:
            ParameterError: The question is no stage.
        """
        stage = self._question.stage
        if stage is None:
            refuse("question", self._question.id, "it must be a stage: take aggregate()")
        return stage.split(np.fromiter(self._reports.values(), np.int64, self.accepted))

    def record(self, *, shuffled: float | None = None) -> PrivacyRecord:
        """States what protects each report, if its device is honest.

        Args:
            shuffled: Delta of all accepted reports behind a shuffler, strictly between 0 and 1, if
                one mixed them before they came here: lines in an order that tells nothing, without
                names, addresses or times. All must be of one mix: files that were mixed one by one,
                such as those of two days, have a collection each. Where some may be an attacker's,
                only `record().shuffled(n, delta=...)` with the number n of the others holds. None
                tells what holds against everybody.

        Returns:
            A PrivacyRecord whose rng is "the clients' own"; with `shuffled` it has both epsilons.

        Raises:
            ParameterError: `shuffled` is out of range, the randomizer is not pure, no report was
                accepted, or the question is a stage, of whose reports only those about one question
                are a mix.
        """
        randomizer = self._question.randomizer
        record = dataclasses.replace(randomizer.record(), rng="the clients' own")
        if shuffled is None:
            return record
        if self._question.stage is not None:
            # Those of one question alone are a mix, and the reports tell whose is which.
            refuse(
                "shuffled", shuffled, "reports about a stage of several questions are no one mix"
            )
        if not self.accepted:
            refuse("shuffled", shuffled, "it needs a report, and none was accepted")
        categories = {BinaryResponse: 2, KaryResponse: getattr(randomizer, "k", None)}
        return record.shuffled(
            self.accepted,
            delta=probability("shuffled", shuffled),
            categories=categories.get(type(randomizer)),
        )

    def to_bytes(self) -> bytes:
        """Writes the collection as the content of an .npz file.

        Returns:
            The bytes, which read_collection reads from a file.
        """
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
        """Take the state that to_bytes wrote.

        Raises:
            ParameterError: The arrays are not such a state.
        """
        keys, (least, most) = ids.tobytes(), self._question.report_range
        whole = refused.dtype == reports.dtype == np.int64 and ids.dtype == np.uint8
        whole = whole and refused.shape == (len(REASONS),) and (refused >= 0).all()
        whole = whole and ids.shape == (*reports.shape, _ID_BYTES)
        if not whole or ((reports < least) | (reports > most)).any():
            raise ParameterError("its arrays are not those of a collection")
        starts = range(0, len(keys), _ID_BYTES)
        pairs = zip(starts, reports.tolist(), strict=True)
        self._reports = {keys[start : start + _ID_BYTES]: report for start, report in pairs}
        if self.accepted != len(reports):
            raise ParameterError("its ids are not different")
        self._refused = dict(zip(REASONS, refused.tolist(), strict=True))


def read_collection(path: Path, question: Question, *, max_bytes: int = MOST_BYTES) -> Collection:
    """Reads the collection in a file.

    Args:
        path: An .npz file, which holds what Collection.to_bytes wrote.
        question: The question that the collection must be about.
        max_bytes: The most bytes that the file may unpack to.

    Returns:
        The Collection.

    Raises:
        ParameterError: The file cannot be read, unpacks to more than max_bytes, is not a
            collection, or is about another question.

    Examples:
        >>> from pathlib import Path
        >>> from hdp_fast import collection, local
        >>> question = collection.Question("hours", local.BinaryResponse(1.0, (0, 24)))
        >>> path = Path("monday.npz")
        >>> size = path.write_bytes(collection.Collection(question).to_bytes())
        >>> collection.read_collection(path, question).counts()["lines"]
        0
    """
    collection = Collection(question)
    path = file_path("path", path)
    with open_arrays(path, max_bytes) as archive:
        names = ("question", "refused", "ids", "reports")
        if sorted(getattr(archive, "files", ())) != sorted(names):
            raise ParameterError(f"{path} must be a file that --aggregate wrote")
        text, *state = (read_member(archive, name, f"{name} in {path}") for name in names)
    if str(text) != question.to_json():
        raise ParameterError(f"{path} must hold reports about the same question, {question.id!r}")
    try:
        collection._restore(*state)
    except ParameterError as error:
        raise ParameterError(f"{path} must be a file that --aggregate wrote: {error}") from None
    return collection


class LineForm:
    """What a line must be that answers a question."""

    def __init__(self, question: Question):
        self._fields = _question_fields(question)
        self._range = question.report_range

    def read(self, line: bytes | None) -> tuple[str, int] | str:
        """The id and the report in a line, or the reason why it is refused; None is too long."""
        fields = None if line is None else _fields(line)
        if fields is None:
            return "malformed"
        if any(fields[name] != value for name, value in self._fields.items()):
            return "wrong_question"
        least, most = self._range
        # A report out of range is not clipped, since the randomizer never makes one.
        if not least <= fields["report"] <= most:
            return "out_of_range"
        return fields["id"], fields["report"]


def split_lines(handle: IO[bytes]) -> Iterator[tuple[bytes | None, int]]:
    """Each line and its length; None stands for a line that is too long to be held."""
    while line := handle.readline(LONGEST_LINE):
        length, ended = len(line), line.endswith(b"\n")
        if ended or length < LONGEST_LINE:
            yield line, length
            continue
        while not ended and (rest := handle.readline(LONGEST_LINE)):
            length, ended = length + len(rest), rest.endswith(b"\n")
        yield None, length


def _fields(line: bytes) -> dict[str, Any] | None:
    """The fields of a line, or None if no device could have written it."""
    try:
        fields = json.loads(line.decode("utf-8"), object_pairs_hook=_refuse_duplicate_keys)
    # Text that is not UTF-8, other JSON and numbers too long to read are all ValueErrors.
    except (ValueError, RecursionError):
        return None
    if not isinstance(fields, dict) or fields.keys() != _KEYS or fields["format"] != _FORMAT:
        return None
    # isinstance would take a bool as an int; 1.0 and 1e0 are floats.
    if type(fields["version"]) is not int or fields["version"] != _VERSION:
        return None
    if type(fields["report"]) is not int or not isinstance(fields["id"], str):
        return None
    return fields if _ID.fullmatch(fields["id"]) else None


def _refuse_duplicate_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object as a dict, without any key twice, since readers differ on which value holds."""
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise ValueError("a key comes twice")
    return fields
