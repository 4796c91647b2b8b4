"""A study: a folder with the keys, invitations and answers of people who are asked once each."""

from __future__ import annotations

import datetime
import json
import os
import secrets
import shutil
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import IO, Any, ClassVar
from urllib.parse import quote, urlsplit

from .. import _core
from .._support.atomic import synchronize_folder
from .._support.parameters import Checked, Rules, store
from .._support.validate import (
    file_path,
    from_json,
    instance,
    positive,
    positive_int,
    refuse,
    take_form,
)
from ..data.reading import open_regular, parse_file, read_safely
from ..exceptions import ParameterError
from ..local.randomizers.bounded import BinaryResponse
from .questions import Question, check_asker
from .store import AnswerStore, Desk, PublishedStage

_FORM = {"format": "hdp_fast.study", "version": 1}
_FACTS, _KEY, _INVITATIONS, _ANSWERS = (
    "study.json",
    "signing.key",
    "invitations.csv",
    "collector.db",
)
_MOST_PEOPLE, _MOST_STAGES = 10_000_000, 1 << 53
_ID_BYTES, _TOKEN_BYTES, _SECRET_BYTES = 8, 16, 32
_SIGNED = b"hdp_fast.question\n"
_HOSTS_WITHOUT_TLS = ("localhost", "127.0.0.1", "[::1]")


def _check_hexadecimal(name: str, value: Any, length: int) -> str:
    digits = set("0123456789abcdef")
    if not isinstance(value, str) or len(value) != length or not set(value) <= digits:
        refuse(name, value, f"it must have {length} hexadecimal digits")
    return value


def _check_url(name: str, value: Any) -> str:
    rule = "it must be https:// and a host, for trials http://localhost, and nothing behind it"
    if not isinstance(value, str) or not value.isascii() or not value.isprintable():
        refuse(name, value, rule)
    try:
        parts = urlsplit(value)
        host, _ = parts.hostname, parts.port
    except ValueError:
        refuse(name, value, rule)
    is_plain = parts.netloc.partition(":")[0] in _HOSTS_WITHOUT_TLS or host == "::1"
    is_safe = parts.scheme == "https" or (parts.scheme == "http" and is_plain)
    more = parts.path.strip("/") or parts.query or parts.fragment or "@" in parts.netloc
    if not is_safe or not host or more or set(value) & set(' "<>\\^`{|}?#'):
        refuse(name, value, rule)
    return value.rstrip("/")


@dataclass(frozen=True)
class Study(Checked):
    """A study of people who are asked one question each, in a folder of its own.

    The folder holds what everybody may know (`study.json`), the key that signs questions
    (`signing.key`), a link for each person (`invitations.csv`) and all that was asked and answered
    (`collector.db`). Only its owner can read it. A `SurveyServer` publishes stages there, and
    `hdp-fast survey serve` hands them out and takes the answers; the two may be separate processes,
    and any of them may die at any time.

    A person has a number and a token. The token opens the page once: with an answer it is burned.

    Attributes:
        path: The folder.
        id: Its name in links and questions, 16 hexadecimal digits.
        asker: Who asks, as people are shown it; 1 to 200 characters.
        epsilon: Privacy parameter of every answer, at least 1e-9.
        people: Number of people, from 1 to 10 million.
        url: Where people open the page: https:// and a host.
        public_key: The Ed25519 key that checks the questions, 64 hexadecimal digits.
        created: The day on which it was made.
        form: What the page asks for, so that it can work out an answer, as JSON; None if it asks
            for nothing.

    Raises:
        ParameterError: An attribute breaks its rule.

    Guarantee:
        Each answer is pure epsilon-DP for the person, if the device randomizes it, whoever reads
        the folder. Nothing there links an answer to a token once a stage is closed; while a server
        runs, whoever can read its memory or its log sees which token came with which answer.

    Examples:
        >>> from hdp_fast import collection
        >>> study = collection.Study.create(
        ...     "study", asker="City of Example", epsilon=1.0, people=3, url="https://example.org"
        ... )
        >>> stage = study.publish('{"kind": "query", "terms": []}', 2)
        >>> stage.first, stage.count, study.answers(stage.number)
        (1, 2, [])
        >>> collection.Study.open("study") == study
        True
    """

    RULES: ClassVar[Rules] = {
        "path": file_path,
        "id": partial(_check_hexadecimal, length=2 * _ID_BYTES),
        "asker": check_asker,
        "epsilon": positive,
        "people": partial(positive_int, most=_MOST_PEOPLE),
        "url": _check_url,
        "public_key": partial(_check_hexadecimal, length=2 * _SECRET_BYTES),
    }

    path: Path
    id: str
    asker: str
    epsilon: float
    people: int
    url: str
    public_key: str
    created: str
    form: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        """Validate the attributes, and that questions can be made of them."""
        super().__post_init__()
        # A form is kept as questions have it.
        store(self, form=self._make_question("trial", "{}").form)

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        *,
        asker: str,
        epsilon: float,
        people: int,
        url: str,
        form: str | None = None,
    ) -> Study:
        """Makes the folder of a new study, whole or not at all.

        Args:
            path: The folder, which must not be there, or be empty.
            asker: Who asks, as people are shown it; 1 to 200 characters.
            epsilon: Privacy parameter of every answer, at least 1e-9.
            people: Number of people, from 1 to 10 million.
            url: Where people open the page: https:// and a host, or http://localhost for a trial.
            form: What the page asks for, as JSON; see the specification of questions.

        Returns:
            The study.

        Raises:
            ParameterError: An argument breaks its rule, or the folder cannot be made.

        Guarantee:
            Keys and tokens are random bits of the operating system.
        """
        place = file_path("path", path)
        secret = secrets.token_bytes(_SECRET_BYTES)
        study = cls(
            path=place,
            id=secrets.token_hex(_ID_BYTES),
            asker=asker,
            epsilon=epsilon,
            people=people,
            url=url,
            public_key=_core.ed25519_public(secret).hex(),
            created=datetime.datetime.now(datetime.UTC).date().isoformat(),
            form=form,
        )
        if os.path.lexists(place) and not (place.is_dir() and not any(place.iterdir())):
            refuse("path", str(place), "it must be a new folder")
        try:
            _make_folder(place, lambda folder: study._fill(folder, secret))
        except OSError as error:
            refuse("path", str(place), f"it must be a folder that can be made ({error.strerror})")
        return study

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Study:
        """Opens the study in a folder.

        Args:
            path: The folder.

        Returns:
            The study.

        Raises:
            ParameterError: The folder holds no study, or one that is damaged.
        """
        place = file_path("path", path)

        def make(fields: dict[str, Any]) -> Study:
            take_form("study", fields, _FORM)
            form = fields.pop("form")
            text = None if form is None else json.dumps(form)
            return cls(path=place, form=text, **fields)

        def read(text: str) -> Study:
            return from_json("study", text, "hdp-fast survey create", make)

        kind = "study, a JSON object in UTF-8"
        study = parse_file(place / _FACTS, kind, read, open_file=open_regular)
        study._store.check()
        return study

    def to_json(self) -> str:
        """Writes what everybody may know of the study, as its folder has it.

        Returns:
            A JSON object, without the path.
        """
        names = ("id", "asker", "epsilon", "people", "url", "public_key", "created")
        form = None if self.form is None else json.loads(self.form)
        facts = {name: getattr(self, name) for name in names}
        return json.dumps({**_FORM, **facts, "form": form}, indent=2) + "\n"

    @property
    def _store(self) -> AnswerStore:
        return AnswerStore(self.path / _ANSWERS)

    def publish(
        self, hypothesis: str, count: int, *, first: int | None = None, number: int | None = None
    ) -> PublishedStage:
        """Publishes a stage: a signed question to the next people, or to those from a number on.

        Args:
            hypothesis: What is asked: a hypothesis, a query or a stage of them, as JSON.
            count: Number of people who are invited, at least 1.
            first: Number of the first of them. None takes those after all who were invited, or for
                a stage those whom it names.
            number: Number of the stage, at least 1; None takes the next one.

        Returns:
            The stage, which is on the disk.

        Raises:
            ParameterError: An argument breaks its rule, some of these people were invited before,
                there are not so many, or the key cannot be read. Nothing is published.

        Guarantee:
            Nobody is invited twice, whatever dies in between.
        """
        positive_int("count", count, _MOST_PEOPLE)
        if number is not None:
            positive_int("number", number, _MOST_STAGES)
        if first is not None:
            positive_int("first", first, _MOST_PEOPLE)
        stage = self._make_question("trial", hypothesis).stage
        if stage is not None:
            first = _agree("first", first, stage.first)
            _agree("count", count, stage.count)
        secret = self._read_secret()

        def write(stage: int) -> str:
            text = self._make_question(f"{self.id}-{stage}", hypothesis).to_json()
            signature = _core.ed25519_sign(secret, _SIGNED + text.encode())
            form = {"format": "hdp_fast.signed", "version": 1}
            return json.dumps({**form, "question": text, "signature": signature.hex()})

        # What cannot be asked is refused before a transaction begins.
        write(number or 1)
        return self._store.publish(
            hypothesis, count, self.people, write, first=first, number=number
        )

    def find(self, hypothesis: str, *, number: int | None = None) -> PublishedStage:
        """Finds a stage that was published.

        Args:
            hypothesis: What it asks.
            number: Its number; None takes the last one that asks this.

        Returns:
            The stage.

        Raises:
            NeverAsked: There is none.
            ParameterError: hypothesis is no text, or number no number.
        """
        instance("hypothesis", hypothesis, str, "a text")
        wanted = None if number is None else positive_int("number", number, _MOST_STAGES)
        return self._store.find(hypothesis, wanted)

    def stages(self) -> list[PublishedStage]:
        """Lists all stages.

        Returns:
            The stages by their numbers.
        """
        return self._store.stages()

    def close(self, number: int) -> None:
        """Closes a stage: no answer to it is accepted any more.

        All pages of the file are written anew, so that nothing there shows in which order answers
        came.

        Args:
            number: Number of the stage.

        Raises:
            ParameterError: There is no such stage.
        """
        self._store.close(self._check_stage(number))

    def answers(self, number: int) -> list[tuple[str, int]]:
        """Reads the answers to a stage that were accepted.

        Args:
            number: Number of the stage.

        Returns:
            Pairs of a random id, which devices draw, and a report, by their ids.

        Raises:
            ParameterError: There is no such stage.
        """
        return self._store.answers(self._check_stage(number))

    def counts(self, number: int | None = None) -> dict[str, int]:
        """Counts people; all of it is public.

        Args:
            number: Number of a stage; None counts those of all stages.

        Returns:
            A dict with the keys "invited" and "answered".

        Raises:
            ParameterError: There is no such stage.
        """
        asked = None if number is None else self._check_stage(number)
        invited = sum(stage.count for stage in self.stages() if asked in (None, stage.number))
        store = self._store
        answered = store.count_burned() if asked is None else store.count(asked)
        return {"invited": invited, "answered": answered}

    def _check_stage(self, value: Any) -> int:
        number = positive_int("number", value, _MOST_STAGES)
        if all(stage.number != number for stage in self.stages()):
            refuse("number", number, "the study has no stage of it")
        return number

    def open_desk(self) -> AbstractContextManager[Desk]:
        """Opens the study for a server.

        Returns:
            A context manager, which yields what looks up tokens and takes answers.
        """
        return self._store.open_desk()

    def _make_question(self, name: str, hypothesis: str) -> Question:
        randomizer = BinaryResponse(self.epsilon, (0.0, 1.0))
        return Question(
            name,
            randomizer,
            hypothesis=hypothesis,
            study=self.id,
            asker=self.asker,
            form=self.form,
        )

    def _read_secret(self) -> bytes:
        path, kind = self.path / _KEY, "key that hdp-fast survey create wrote"
        with read_safely(path, kind), open_regular(path) as handle:
            text = handle.read(2 * _SECRET_BYTES + 2).decode("ascii", "replace").strip()
        try:
            secret = bytes.fromhex(text)
            is_ours = _core.ed25519_public(secret).hex() == self.public_key
        except ValueError:
            is_ours = False
        if not is_ours:
            raise ParameterError(f"{path} must be the key of this study")
        return secret

    def _fill(self, folder: Path, secret: bytes) -> None:
        """Writes all files of a new study into a folder."""
        tokens = [secrets.token_bytes(_TOKEN_BYTES) for _ in range(self.people)]
        _write(folder / _FACTS, lambda out: out.write(self.to_json().encode()))
        _write(folder / _KEY, lambda out: out.write(f"{secret.hex()}\n".encode()))
        _write(folder / _INVITATIONS, lambda out: self._write_links(out, tokens))
        AnswerStore(folder / _ANSWERS).create(tokens)

    def _write_links(self, out: IO[bytes], tokens: list[bytes]) -> None:
        """Writes the invitations: what stands behind # never reaches a server."""
        head = f"{self.url}/#study={self.id}&number="
        tail = f"&key={self.public_key}&epsilon={quote(repr(self.epsilon))}\n"
        out.write(b"number,link\n")
        for number, token in enumerate(tokens, start=1):
            out.write(f"{number},{head}{number}&token={token.hex()}{tail}".encode())


def _agree(name: str, value: int | None, told: int) -> int:
    """The value of an argument that a stage tells, too."""
    if value not in (None, told):
        refuse(name, value, f"the stage says {told}")
    return told


def read_envelope(text: str) -> Question:
    """The question in an envelope that `Study.publish` made."""
    return Question.from_json(json.loads(text)["question"])


def _make_folder(place: Path, fill: Callable[[Path], None]) -> None:
    """Makes a folder that gets its name once it is full."""
    parent = place.absolute().parent
    scratch = Path(tempfile.mkdtemp(prefix=f".{place.name[:40]}.", dir=parent))
    try:
        fill(scratch)
        synchronize_folder(scratch)
        os.rename(scratch, place)
        synchronize_folder(parent)
    except BaseException:
        shutil.rmtree(scratch, ignore_errors=True)
        raise


def _write(path: Path, fill: Callable[[IO[bytes]], object]) -> None:
    handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    with os.fdopen(handle, "wb") as out:
        fill(out)
        out.flush()
        os.fsync(handle)
