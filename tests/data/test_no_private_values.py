"""No value of a record, a vote or a cell stands in an error, a warning, a log or a line."""

import csv
import gzip
import io
import json
import logging
import warnings
import zipfile

import numpy as np
import pytest
from cases import each_case
from doors import DOORS, PLACES
from overheard import REAL, SHAPES, WHOLE, WORD, listen, marked

from hdp_fast import PrivacyRecord, learners, local, stability
from hdp_fast.cli import main
from hdp_fast.cli.tables import read_schema
from hdp_fast.collection.device import answer_once
from hdp_fast.collection.questions import Question, read_question
from hdp_fast.collection.reports import Collection, read_collection
from hdp_fast.data import Label, Number, Schema, files, read_table
from hdp_fast.exceptions import ParameterError


@pytest.fixture
def overheard(capsys, caplog):
    """Runs something; everything that anybody could read afterwards but its result."""

    def hear(function, *arguments, **named):
        texts = listen(caplog, function, *arguments, **named)
        printed = capsys.readouterr()
        return f"{texts}\n{printed.err}", printed.out

    return hear


@each_case("door", DOORS)
def test_every_door_lets_its_own_records_in(door):
    call, arguments, _ = DOORS[door]
    call(**arguments)


@each_case(("door", "argument"), PLACES)
def test_no_mechanism_says_what_it_was_given(overheard, door, argument):
    call, arguments, _ = DOORS[door]
    leaks = {}
    for shape, make in SHAPES.items():
        private = make(arguments[argument])
        texts, printed = overheard(call, **arguments | {argument: private})
        if marked(texts + printed):
            leaks[shape] = texts + printed
    assert leaks == {}


# An array in a place of a parameter has been put there by a slip of the hand.
SLIPS = [(name, argument) for name, door in DOORS.items() for argument in door.arguments]


@each_case(("door", "argument"), SLIPS)
def test_no_parameter_shows_an_array(overheard, door, argument):
    call, arguments, _ = DOORS[door]
    texts, printed = overheard(call, **arguments | {argument: np.full((5, 2), REAL)})
    assert marked(texts + printed) == [], texts


# What is audited is handed on as it is.
READ = [place for place in PLACES if place[0] != "lower_bound"]
# Each entry of a list that a device reports is a value of its own, and no value is an error.
ROWS_READ = [place for place in READ if not place[0].endswith(".sample")]


@each_case(("door", "argument"), READ)
def test_masked_arrays_are_refused_by_name(door, argument):
    """Also where nothing is masked."""
    call, arguments, _ = DOORS[door]
    with pytest.raises(ParameterError, match="masked"):
        call(**arguments | {argument: np.ma.array(arguments[argument])})


@each_case(("door", "argument"), ROWS_READ)
def test_lists_of_masked_rows_are_refused_by_name(door, argument):
    """Numpy drops their masks in silence."""
    call, arguments, _ = DOORS[door]
    with pytest.raises(ParameterError, match="masked"):
        call(**arguments | {argument: [np.ma.array(arguments[argument])]})


def table(header, rows):
    out = io.StringIO()
    csv.writer(out).writerows([header, *rows])
    return out.getvalue()


ROWS = [[WORD, REAL, WHOLE, "1"]] * 5
NAMES = ["name", "pay", "debt", "flag"]
LINES = [json.dumps(dict(zip(NAMES, row, strict=True))) for row in ROWS]
COLUMNS = {
    "name": np.full(5, WORD),
    "pay": np.full(5, REAL),
    "debt": np.full(5, WHOLE),
    "flag": np.ones(5, int),
}


def archive(**members):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as made:
        for name, content in members.items():
            made.writestr(name, content)
    return out.getvalue()


def saved(save, *arrays, **named):
    out = io.BytesIO()
    save(out, *arrays, **named)
    return out.getvalue()


def header_of(text):
    """A .npy file whose header is this text."""
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode()


# Files of somebody's own, of all kinds, whole and damaged: none is what any reader asks for.
CONTENTS = {
    "table": table(NAMES, ROWS).encode(),
    "no header": table(ROWS[0], ROWS[1:]).encode(),
    "one column": f"{WORD}\n{REAL}\n{WHOLE}\n".encode(),
    "numbers": f"{REAL},{WHOLE}\n{WHOLE},{REAL}\n".encode(),
    "bits with a number": f"1,0\n0,{WHOLE}\n".encode(),
    "bits with a word": f"a,b\n0,1\n1,{WORD}\n".encode(),
    "bits with a long line": f"1,0\n0,1,{WHOLE}\n".encode(),
    "an open quote": f'name,pay\n"{WORD},1\n'.encode(),
    "a long row": f"name,pay\n{WORD},1,{REAL}\n".encode(),
    "no UTF-8": f"name\n{WORD}".encode() + b"\xff\n",
    "UTF-16": table(NAMES, ROWS).encode("utf-16"),
    "JSON object": LINES[0].encode(),
    "JSON list": f"[{','.join(LINES)}]".encode(),
    "JSON lines": "\n".join(LINES).encode(),
    "JSON text": json.dumps(WORD).encode(),
    "JSON number": json.dumps(REAL).encode(),
    "damaged JSON": LINES[0][:-3].encode(),
    "JSON with a known key": json.dumps({"kind": WORD, "randomizer": WORD}).encode(),
    "JSON with known keys": json.dumps(
        {"format": WORD, "version": WHOLE, "kind": REAL, "reports": WHOLE, "sum": WORD}
    ).encode(),
    "columns": saved(np.savez, **COLUMNS),
    "private names": saved(np.savez, **{WORD: COLUMNS["pay"], "X": [[REAL]], "y": [WHOLE]}),
    "private and no array": archive(**{"X": WORD, "y.npy": WORD, f"{WORD}.txt": WORD}),
    "private objects": saved(np.savez, X=np.array([[WORD, None]]), y=[1]),
    "a number of columns": saved(
        np.savez, X_packed=np.ones((1, 1), np.uint8), ncols=WHOLE, y=[WHOLE]
    ),
    "packed": gzip.compress(table(NAMES, ROWS).encode()),
    "packed and damaged": gzip.compress(table(NAMES, ROWS).encode(), 0)[:-9],
    "array": saved(np.save, COLUMNS["pay"]),
    "matrix": saved(np.save, np.full((3, 2), WHOLE)),
    "array of words": saved(np.save, COLUMNS["name"]),
    "a header that is a cell": header_of(f"{{'descr': '{WORD}', 'shape': (1,)}}"),
    "a header that is open": header_of(f"{{'descr': '{WORD}"),
    "a header of other keys": header_of(f"{{'{WORD}': {REAL}}}"),
    "a header with a warning": header_of(f"{{'\\S': '\\{WORD}' is 1}}"),
}
SUFFIXES = (".npy", ".npz", ".csv", ".csv.gz", ".parquet", ".arrow", ".json", ".txt")
QUESTION = Question("pay", local.BinaryResponse(1.0, (0, 1)))
SCHEMA = Schema(Label("flag", positive=("1",)), {"pay": Number(0, 1)})


def read_lines(path):
    with path.open("rb") as handle:
        Collection(QUESTION).read(handle, lambda length: None)


def parse(make):
    return lambda path: make(path.read_text(encoding="utf-8", errors="replace"))


READERS = {
    "read_examples": files.read_examples,
    "read_examples with labels": lambda path: files.read_examples(path, labels=path),
    "read_examples with a label": lambda path: files.read_examples(path, label="none"),
    "read_labels": files.read_labels,
    "read_table": read_table,
    "a column": lambda path: read_table(path).column("none"),
    "the schema's features": lambda path: SCHEMA.floats(read_table(path)),
    "read_schema": read_schema,
    "read_question": read_question,
    "read_collection": lambda path: read_collection(path, QUESTION),
    "read_lines": read_lines,
    "record": parse(PrivacyRecord.from_json),
    "randomizer": parse(local.randomizer_of),
    "aggregate": parse(local.Aggregate.from_json),
    "hypothesis": parse(learners.predictor),
    "vote table": parse(stability.VoteTable.from_json),
    "hazard table": parse(stability.HazardTable.from_json),
    "values of a mean": parse(lambda text: QUESTION.values([text])),
    "schema of words": parse(lambda text: SCHEMA.words(json.loads(text))),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Each content under each name that tells a reader what it is."""
    path = tmp_path_factory.mktemp("private")
    for place, content in enumerate(CONTENTS.values()):
        for suffix in SUFFIXES:
            (path / f"{place}{suffix}").write_bytes(content)
    (path / "schema.json").write_text(SCHEMA.to_json())
    (path / "question.json").write_text(QUESTION.to_json())
    (path / "public.csv").write_text("pay,flag\n0,1\n1,0\n")
    return path


@pytest.mark.parametrize("reader", READERS)
def test_no_reader_says_what_is_in_a_file(overheard, folder, reader):
    leaks = {}
    for place, name in enumerate(CONTENTS):
        for suffix in SUFFIXES:
            texts, printed = overheard(READERS[reader], folder / f"{place}{suffix}")
            if marked(texts + printed):
                leaks[name, suffix] = texts + printed
    assert leaks == {}


PRIVACY = ("--epsilon", "1", "--delta", "1e-3")
STR = ("--agents-epsilon", "1", "--alpha", ".3", "--kappa", "1", "--rounds", "1")
LOCAL = ("--epsilon", "1")
RANGE = ("--low", "0", "--high", "1")
COMMANDS = {
    "parity learn": ("parity", "learn", "FILE", *LOCAL),
    "parity learn, label": ("parity", "learn", "FILE", "--label", "none", *LOCAL),
    "parity learn, labels": ("parity", "learn", "FILE", "--labels", "FILE", *LOCAL),
    "parity transfer": (
        *("parity", "transfer", "FILE", "--agents", "FILE", *LOCAL),
        *("--agents-epsilon", "1", "--alpha", ".2"),
    ),
    "hybrid": (
        *("hybrid", "FILE", "FILE", "--schema", "schema.json", *PRIVACY),
        *("--agents-epsilon", "1"),
    ),
    "hybrid, survey": (
        *("hybrid", "public.csv", "FILE", "--schema", "schema.json", *PRIVACY),
        *("--agents-epsilon", "1", "--screen", ".3"),
    ),
    "transfer": ("transfer", "FILE", "FILE", "--schema", "schema.json", *PRIVACY, *STR),
    "transfer, schema": (
        "transfer",
        "public.csv",
        "public.csv",
        "--schema",
        "FILE",
        *PRIVACY,
        *STR,
    ),
    "transfer, budget": (
        *("transfer", "public.csv", "public.csv", "--schema", "schema.json", *PRIVACY, *STR),
        *("--budget", "FILE"),
    ),
    "transfer, checkpoint": (
        *("transfer", "public.csv", "public.csv", "--schema", "schema.json", *PRIVACY, *STR),
        *("--checkpoint", "FILE"),
    ),
    "label": (
        *("label", "FILE", "public.csv", "--schema", "schema.json", *PRIVACY),
        *("--estimator", "naive-bayes", "--members", "2", "--output", "OUT.csv"),
    ),
    "label, classes": (
        *("label", "FILE", "public.csv", "--schema", "schema.json", *PRIVACY),
        *("--estimator", "naive-bayes", "--members", "2", "--output", "OUT.csv"),
        *("--classes", "a,b", "--label", "name"),
    ),
    "label, schema": (
        *("label", "public.csv", "public.csv", "--schema", "FILE", *PRIVACY),
        *("--estimator", "naive-bayes"),
    ),
    "label, public": (
        *("label", "public.csv", "FILE", "--schema", "schema.json", *PRIVACY),
        *("--estimator", "naive-bayes", "--output", "OUT.csv"),
    ),
    "label, save": (
        *("label", "public.csv", "public.csv", "--schema", "schema.json", *PRIVACY),
        *("--estimator", "naive-bayes", "--output", "OUT.csv", "--save", "FILE"),
    ),
    "adapt": ("adapt", "FILE", "FILE", "--schema", "schema.json", *PRIVACY, "--steps", "1"),
    "adapt, bounds": (
        *("adapt", "FILE", "public.csv", "--schema", "schema.json", *PRIVACY, "--steps", "1"),
        *("--label-bounds", "0", "1"),
    ),
    "adapt, predict": (
        *("adapt", "public.csv", "public.csv", "--schema", "schema.json", *PRIVACY),
        *("--steps", "1", "--predict", "FILE", "--predictions", "OUT.csv"),
    ),
    "local estimate": ("local", "estimate", "FILE", *RANGE, *LOCAL),
    "local estimate, column": ("local", "estimate", "FILE", "--column", "name", *RANGE, *LOCAL),
    "local frequency": ("local", "frequency", "FILE", "--categories", "a,b", *LOCAL),
    "local frequency, k": ("local", "frequency", "FILE", "--column", "name", "--k", "3", *LOCAL),
    "local randomize": ("local", "randomize", "1", "--question", "FILE"),
    "local randomize, value": ("local", "randomize", WORD, "--question", "question.json"),
    "local randomize, state": (
        *("local", "randomize", "1", "--question", "question.json", "--state", "FILE"),
    ),
    "local collect": ("local", "collect", "FILE", "--question", "question.json"),
    "local collect, question": ("local", "collect", "public.csv", "--question", "FILE"),
    "local collect, merge": ("local", "collect", "--merge", "FILE", "--question", "question.json"),
    "budget": ("budget", "FILE"),
}


@pytest.mark.thorough(cases=8)
@pytest.mark.parametrize("command", COMMANDS)
def test_no_command_says_what_is_in_a_file(overheard, folder, monkeypatch, command):
    monkeypatch.chdir(folder)
    leaks = {}
    for place, name in enumerate(CONTENTS):
        for suffix in (".csv", ".npz"):
            path = folder / f"{place}{suffix}"
            words = {"FILE": str(path), "OUT.csv": f"{place}{suffix}.out.csv"}
            before = path.read_bytes()
            texts, printed = overheard(main, [words.get(word, word) for word in COMMANDS[command]])
            path.write_bytes(before)
            if marked(texts + printed):
                leaks[name, suffix] = texts + printed
    assert leaks == {}


def test_a_device_keeps_its_state_to_itself(overheard, tmp_path):
    path = tmp_path / "state"
    for content in CONTENTS.values():
        path.write_bytes(content)
        texts, printed = overheard(answer_once, path, QUESTION, lambda: "a line")
        assert marked(texts + printed) == []


def test_the_marks_would_be_heard(overheard):
    """The listener hears messages, what led to them, warnings, logs and lines."""

    def chained():
        try:
            float(WORD)
        except ValueError as error:
            raise ParameterError("nothing") from error

    def kept():
        try:
            float(WORD)
        except ValueError:
            raise ParameterError("nothing") from None

    def noted():
        error = ParameterError("nothing")
        error.add_note(WORD)
        raise error

    def loud(say):
        return marked("".join(overheard(say)))

    assert loud(chained) == loud(kept) == loud(noted) == [WORD]
    assert loud(lambda: float(WORD)) == [WORD]
    assert loud(lambda: warnings.warn(WORD, UserWarning, stacklevel=1)) == [WORD]
    assert loud(lambda: logging.getLogger("hdp_fast").debug("%s", WORD)) == [WORD]
    assert loud(lambda: print(REAL)) == ["7777"]
    assert loud(lambda: None) == []
