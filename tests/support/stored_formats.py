"""Every format that the package stores: one small file of each, how it is read, a later version."""

import contextlib
import io
import json
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from state_faces import FACES, RECORD

from hdp_fast import Budget, PrivacyRecord, local, stability
from hdp_fast.collection import (
    Collection,
    Question,
    Study,
    frequency_question,
    read_collection,
    report_lines,
)
from hdp_fast.collection.store import Answer, AnswerStore, hash_token
from hdp_fast.data import Category, Ignore, Label, Number, Schema
from hdp_fast.data.rows import Rows, Squares
from hdp_fast.data.table import Column, Table
from hdp_fast.exceptions import CheckpointError, HdpFastError, ParameterError
from hdp_fast.labels import PrivateLabeler
from hdp_fast.learners import PrivateModel, predictor

FOLDER = Path(__file__).parents[1] / "vectors" / "formats"
QUESTION = frequency_question(
    "pet", randomizer="kary", epsilon=1.0, categories="cat, dog, none", k=None
)
SCHEMA = Schema(
    Label("income", positive=("high",)),
    {"age": Number(0.0, 90.0, (30.0, 60.0)), "sex": Category(("f", "m")), "id": Ignore()},
)
HYPOTHESIS = {
    "kind": "vote",
    "hypotheses": [
        {"kind": "conjunction", "features": [0, 2], "values": [1, 0], "complement": False},
        {"kind": "parity", "features": [1], "complement": True},
        {"kind": "at_least", "threshold": 1, "features": [0, 1], "values": [1, 1]},
    ],
}
RECORDS = np.array([[i >> 2 & 1, i >> 1 & 1, i & 1] for i in range(8)], np.uint8)


class Majority:
    """Says the commoner label of its chunk."""

    def fit(self, X, y):
        self.label = int(y.mean() > 0.5)
        return self

    def predict(self, X):
        return np.full(len(X), self.label)


# State files, kept as SQL, which a change shows up in -------------------------------------------


def dump(path):
    """A state file as SQL, its header included."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        pragmas = ("application_id", "user_version", "journal_mode")
        values = {name: connection.execute(f"PRAGMA {name}").fetchone()[0] for name in pragmas}
        lines = [f"PRAGMA {name} = {value};" for name, value in values.items()]
        return "\n".join([*lines, *connection.iterdump(), ""])


def restore(source, path):
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.executescript(source.read_text())


def raise_version(path):
    with contextlib.closing(sqlite3.connect(path)) as connection:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        connection.execute(f"PRAGMA user_version = {version + 1}")


# Everything else ---------------------------------------------------------------------------------


def add_to_json(path):
    """What a later version could write: its number where there is one, else one thing more."""
    fields = json.loads(path.read_text())
    if "format" in fields:
        fields["version"] += 1
    else:
        fields["added later"] = 1
    path.write_text(json.dumps(fields))


def write_collection(path):
    collection, made = Collection(QUESTION), report_lines(QUESTION, ["cat"] * 3)
    # Lines as clients write them, but with reports that no coin decides.
    reports = [{**json.loads(line), "report": report} for report, line in enumerate(made)]
    lines = "\n".join([*map(json.dumps, reports), "no report"])
    collection.read(io.BytesIO(lines.encode()), lambda _: None)
    path.write_bytes(collection.to_bytes())


def read_counts(path):
    collection = read_collection(path, QUESTION)
    return collection.counts(), collection.aggregate().to_json()


def add_an_array(path):
    with np.load(path) as archive:
        arrays = dict(archive)
    with path.open("wb") as out:
        np.savez(out, **arrays, added_later=np.zeros(1))


def write_labeler(path):
    settings = {"epsilon": 8.0, "delta": 1e-3, "queries": 4, "max_unstable": 1, "members": 12}
    labeler = PrivateLabeler(learner=Majority(), classes=[0, 1], table="hazard", **settings)
    labeler.fit(np.zeros((24, 1)), np.ones(24, int), random_state=5).label(np.zeros((1, 1)))
    labeler.save(path)


def read_labeler(path):
    labeler = PrivateLabeler.load(path, trusted=True, random_state=6)
    left = labeler.queries_left
    return left, labeler.label(np.zeros((2, 1))).labels.tolist(), labeler.record_.to_json()


def write_labeler_of_a_later_version(path):
    head, _, content = path.read_bytes().partition(b"\n")
    words, _, number = head.rpartition(b" ")
    path.write_bytes(b"%s %d\n%s" % (words, int(number) + 1, content))


@dataclass(frozen=True)
class Format:
    """A kind of files.

    suffix: of the stored one. make writes a file, show reads all there is in it, as JSON has it;
    later turns it into one of a later version, which is refused with an error that says `refusal`.
    """

    suffix: str
    make: Callable[[Path], object]
    show: Callable[[Path], Any]
    later: Callable[[Path], object] = add_to_json
    error: type[HdpFastError] = ParameterError
    refusal: str = "it must be what .* wrote"

    def fetch(self, name, folder):
        """The stored file of this name as it was made, and its ledger beside it."""
        path, ledger = folder / "state", FOLDER / f"{name}.ledger.sql"
        stored = FOLDER / f"{name}.{self.suffix}"
        if self.suffix == "sql":
            restore(stored, path)
        else:
            path.write_bytes(stored.read_bytes())
        if ledger.exists():
            restore(ledger, folder / "state.ledger")
        return path


def state(name, show=None):
    face, refusal = FACES[name], "must be [23], .* it is [34]: use the hdp_fast that wrote it"
    return Format("sql", face.make, show or face.show, raise_version, face.error, refusal)


def text(make, show, refusal=Format.refusal):
    """A format of JSON: `make` returns the text, `show` takes it."""
    return Format(
        "json",
        lambda path: path.write_text(f"{make()}\n"),
        lambda path: show(path.read_text()),
        refusal=refusal,
    )


def pair(value, from_json, *refusal):
    """A format of JSON of an object with to_json."""

    def show(stored):
        restored = from_json(stored)
        return repr(restored), restored.to_json()

    return text(value.to_json, show, *refusal)


AGGREGATE = QUESTION.randomizer.aggregate(np.array([0, 1, 1, 2]))
GAUSSIAN = stability.GaussianVote.design(3, labels=2, epsilon=1.0, delta=1e-5, beta=0.1)
HAZARD = stability.HazardTable.design(1, 3, epsilon=4.0, delta=1e-2, beta=0.1)

PRIVATE_MODEL = PrivateModel(
    schema=SCHEMA,
    classes=("low", "high", "top"),
    rows=Rows(
        SCHEMA,
        center=np.array([0.5, 0.25, 0.75]),
        factor=np.array([4.0, 1.0, 1.0]),
        squares=Squares(np.array([0.375]), np.array([0.5]), np.array([8.0])),
    ),
    weights=np.array(
        [[1.0, 0.0, -1.0], [0.5, -0.5, 0.0], [0.0, 0.25, 0.5], [0.5, 0.0, 0.25], [0.0, 1.0, -1.0]]
    ),
    norm_bound=1.5,
    link="logistic",
    method="sgd",
    n=1000,
    signal=12.5,
    record=RECORD,
)


def read_private_model(stored):
    model = PrivateModel.from_json(stored)
    columns = {
        "age": Column(("9", "", "90"), np.arange(3)),
        "sex": Column(("m", "f"), np.array([0, 1, 0])),
    }
    table = Table(columns, 3)
    return model.to_json(), model.predict(table), model.probabilities(table).round(6).tolist()


STUDY = Study(
    path="study",
    id="0123456789abcdef",
    asker="City of Example",
    epsilon=1.0,
    people=3,
    url="https://example.org",
    public_key="0" * 64,
    created="2026-01-31",
    form='{"inputs": []}',
)


def read_study(path):
    """The facts of the study in a file, beside a file of answers that is whole."""
    folder = path.with_name("study")
    folder.mkdir(exist_ok=True)
    (folder / "study.json").write_text(path.read_text())
    if not (folder / "collector.db").exists():
        AnswerStore(folder / "collector.db").create([bytes(16)])
    read = Study.open(folder)
    return {name: getattr(read, name) for name in FACTS}


FACTS = ("id", "asker", "epsilon", "people", "url", "public_key", "created", "form")


def write_answers(path):
    store = AnswerStore(path)
    store.create([bytes([number]) * 16 for number in range(3)])
    with mock.patch("time.time", return_value=1.5):
        store.publish("{}", 2, 3, lambda number: f"envelope {number}")
    with store.open_desk() as desk:
        desk.begin()
        desk.take([Answer(hash_token(bytes(16)), 1, b"0123456789abcdef", 1)])
        desk.commit()
    store.close(1)


def read_answers(path):
    store = AnswerStore(path)
    store.check()
    with store.open_desk() as desk:
        envelope, who = desk.read_envelope(1), desk.find(hash_token(bytes(16)))
    return repr(store.stages()), store.answers(1), envelope, who


FORMATS = {
    "budget_ledger": state("ledger", lambda path: json.loads(Budget.open(path).to_json())),
    "transfer_checkpoint": state("checkpoint"),
    "device_answers": state("answers"),
    "labeler_usage": state("account"),
    "remote_agents": state("agents"),
    "study_answers": Format(
        "sql",
        write_answers,
        read_answers,
        raise_version,
        refusal="must be 1, .* it is 2: use the hdp_fast that wrote it",
    ),
    "study": Format(
        "json",
        lambda path: path.write_text(STUDY.to_json()),
        read_study,
        refusal="format and version .*: use the hdp_fast that wrote it",
    ),
    "labeler": Format(
        "bin",
        write_labeler,
        read_labeler,
        write_labeler_of_a_later_version,
        CheckpointError,
        "format of this hdp_fast: use the one that wrote it",
    ),
    "collection": Format(
        "npz", write_collection, read_counts, add_an_array, refusal="that --aggregate wrote"
    ),
    "privacy_record": pair(RECORD, PrivacyRecord.from_json),
    "schema": pair(
        SCHEMA, Schema.from_json, "format and version .*: use the hdp_fast that wrote it"
    ),
    "question": pair(
        QUESTION, Question.from_json, "format and version .*: use the hdp_fast that wrote it"
    ),
    "private_model": text(
        PRIVATE_MODEL.to_json,
        read_private_model,
        "format and version .*: use the hdp_fast that wrote it",
    ),
    "randomizer": pair(QUESTION.randomizer, local.randomizer_of),
    "aggregate": pair(AGGREGATE, type(AGGREGATE).from_json),
    "gaussian_vote": pair(GAUSSIAN, stability.GaussianVote.from_json),
    "hazard_table": pair(HAZARD, stability.HazardTable.from_json),
    "hypothesis": text(
        lambda: json.dumps(HYPOTHESIS),
        lambda stored: predictor(stored)(RECORDS).tolist(),
        "its keys must be",
    ),
}
