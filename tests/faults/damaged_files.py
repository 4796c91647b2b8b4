"""Files that are damaged on purpose, read in a process of their own: it prints what went wrong.

Run as `damaged_files.py FOLDER CASES SEED`; prints a JSON object: for each reader, how many files
were read after all, how many refused, and every outcome that is neither; beside them those of
tests/corpus/readers, which `guided_files.py` has found.
"""

import contextlib
import gzip
import io
import json
import os
import random
import resource
import signal
import sys
import zipfile
from collections import Counter
from pathlib import Path

import numpy as np

from hdp_fast import PrivacyRecord, gf2, learners, local, stability
from hdp_fast.cli import command_line
from hdp_fast.cli.tables import appender, read_schema
from hdp_fast.collection.device import answer_once
from hdp_fast.collection.questions import Question, read_question
from hdp_fast.collection.reports import Collection, read_collection, report_lines
from hdp_fast.data import Label, Number, Schema, files, read_table
from hdp_fast.data.rows import Rows
from hdp_fast.exceptions import HdpFastError
from hdp_fast.learners import PrivateModel

# No file here is longer than some kilobytes: whoever takes this long or this much hangs.
PATIENCE_SECONDS = 10
MOST_MEMORY = 6 << 30

RNG = np.random.default_rng(5)
X = RNG.integers(2, size=(12, 9), dtype=np.uint8)
Y = X[:, 0]
OVER = ("--probabilities", "--force")
UNIT = ("--low", "0", "--high", "1")
QUESTION = Question("pay", local.BinaryResponse(1.0, (0, 1)))
SCHEMA = Schema(Label("job", positive=("a",)), {"age": Number(18, 80, (25, 41))})
ROWS = Rows(SCHEMA, center=np.array([0.5]), factor=np.array([3.0]))
MODEL = PrivateModel(
    *(SCHEMA, None, ROWS, np.array([[-1.0, 1.0], [0.5, -0.5]])),
    *(2.0, "logistic", "sgd", 12, 3.0, QUESTION.randomizer.record()),
)
TABLE = "age,job\n" + "".join(f"{20 + i},{'ab'[i % 2]}\n" for i in range(12))
HYPOTHESIS = {"kind": "conjunction", "features": [0, 2], "values": [1, 0], "complement": False}
VOTE_TABLE = stability.VoteTable.design(queries=9, epsilon=1, delta=1e-6, beta=0.1)
OUTCOMES = ("read", "refused")
CORPUS = Path(__file__).resolve().parents[1] / "corpus" / "readers"
INSERTS = (b"9" * 18, b"-1", b"\\S", b"\0", b"(", b'"', b"\n")
NASTY = [None, True, -1, 0.5, 2**70, 10**30, float("inf"), "", "x", [], [1], {}, {"a": 1}]


def saved(save, *arrays, **named):
    content = io.BytesIO()
    save(content, *arrays, **named)
    return content.getvalue()


def parquet():
    import pyarrow
    import pyarrow.parquet

    table = pyarrow.table({"age": list(range(12)), "job": ["a", None] * 6, "pay": [1.5] * 12})
    return saved(lambda out: pyarrow.parquet.write_table(table, out))


def feather():
    import pyarrow
    import pyarrow.feather

    table = pyarrow.table({"age": list(range(12)), "job": ["a", None] * 6, "pay": [1.5] * 12})
    coded = table.append_column("home", pyarrow.array(["x", "y"] * 6).dictionary_encode())
    out = io.BytesIO()
    pyarrow.feather.write_feather(coded, out, compression="uncompressed")
    return out.getvalue()


def collected():
    found = Collection(QUESTION)
    found.read(io.BytesIO(lines()), lambda length: None)
    return found.to_bytes()


def lines():
    return "".join(f"{line}\n" for line in report_lines(QUESTION, ["0", "1", "1"])).encode()


def device():
    path = Path("whole.state")
    answer_once(path, QUESTION, lambda: "a line")
    return path.read_bytes()


# Each reader: the name and content of a whole file, and what reads it.
def read_bits(path):
    found = files.read_examples(path, labels="y.npy" if path.suffix == ".npy" else None)
    assert len(found.y) == found.X.shape[0]
    assert isinstance(found.y, np.ndarray)


def read_columns(path):
    table = read_table(path)
    assert all(len(c.codes) == table.rows > 0 for c in table.columns.values())
    assert all(isinstance(text, str) for c in table.columns.values() for text in c.texts)


def append(path):
    rows = read_table(path).rows
    assert isinstance(appender(path, "new")([1.0] * rows), bytes)


def collect(path):
    found = Collection(QUESTION)
    with path.open("rb") as handle:
        found.read(handle, lambda length: None)
    assert found.lines == sum(found.counts().values()) - found.lines


def read_space(path):
    content = path.read_bytes()
    assert gf2.RowSpace.from_bytes(content).to_bytes() == content


def parse(make):
    return lambda path: make(path.read_bytes().decode("utf-8", "replace"))


def predict(text):
    found = learners.predictor(text)(X)
    assert found.shape == (12,)


def predict_table(path):
    model = parse(PrivateModel.from_json)(path)
    table = read_table("t.csv")
    assert len(model.predict(table)) == table.rows
    assert model.usual_label() in {None, *(model.labels or ())}
    assert len(model.effects()) == len(model.weights) - 1
    if model.labels is not None:
        assert np.isfinite(model.probabilities(table)).all()


def command(*argv):
    def run(path):
        arguments = [str(path) if word == "FILE" else word for word in argv]
        out, complaint = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(complaint):
            code = command_line.main(arguments)
        text = complaint.getvalue()
        errors = [line for line in text.splitlines() if line.startswith("hdp-fast: error: ")]
        assert (code, len(errors)) in ((0, 0), (1, 0), (2, 1), (3, 1)), text
        if errors:
            raise HdpFastError(text)

    return run


def readers():
    """Name: (name of the file, its content, what reads it)."""
    npz, packed = saved(np.savez, X=X, y=Y), np.packbits(X, axis=1, bitorder="little")
    bits = "".join(",".join(map(str, row)) + "\n" for row in X.tolist()).encode()
    aggregate = QUESTION.randomizer.aggregate([0, 1, 1]).to_json()
    mixed = saved(np.savez_compressed, age=np.arange(12), job=["a", "b"] * 6, Z=X)
    record = QUESTION.randomizer.record().to_json()
    frequencies = local.KaryResponse(3, 1.0).aggregate([0, 2]).to_json()
    learn = ("parity", "learn", "FILE", "--epsilon", "1")
    return {
        "array": ("a.npy", saved(np.save, X), read_bits),
        "vector": ("a.npy", saved(np.save, Y), files.read_labels),
        "arrays": ("a.npz", npz, read_bits),
        "compressed": ("a.npz", saved(np.savez_compressed, X=X.astype(float), y=Y), read_bits),
        "packed": ("a.npz", saved(np.savez, X_packed=packed, ncols=9, y=Y), read_bits),
        "bits": ("a.csv", bits, read_bits),
        "table": ("a.csv", TABLE.encode(), read_columns),
        "packed table": ("a.csv.gz", gzip.compress(TABLE.encode()), read_columns),
        "table of arrays": ("a.npz", mixed, read_columns),
        "parquet": ("a.parquet", parquet(), read_columns),
        "arrow": ("a.arrow", feather(), read_columns),
        "append to arrow": ("a.feather", feather(), append),
        "append to csv": ("a.csv", TABLE.encode(), append),
        "append to gz": ("a.csv.gz", gzip.compress(TABLE.encode()), append),
        "append to npz": ("a.npz", mixed, append),
        "append to parquet": ("a.parquet", parquet(), append),
        "schema": ("a.json", SCHEMA.to_json().encode(), read_schema),
        "model": ("a.json", MODEL.to_json().encode(), predict_table),
        "predict": ("a.json", MODEL.to_json().encode(), command("predict", "FILE", "t.csv", *OVER)),
        "question": ("a.json", QUESTION.to_json().encode(), read_question),
        "lines": ("a.txt", lines(), collect),
        "row space": ("a.bin", gf2.RowSpace.of(X, Y).to_bytes(), read_space),
        "collection": ("a.npz", collected(), lambda path: read_collection(path, QUESTION)),
        "device": ("a.state", device(), lambda path: answer_once(path, QUESTION, lambda: "new")),
        "record": ("a.json", record.encode(), parse(PrivacyRecord.from_json)),
        "randomizer": (
            "a.json",
            QUESTION.randomizer.to_json().encode(),
            parse(local.randomizer_of),
        ),
        "mean": ("a.json", aggregate.encode(), parse(local.Aggregate.from_json)),
        "counts": ("a.json", frequencies.encode(), parse(local.Aggregate.from_json)),
        "hypothesis": ("a.json", json.dumps(HYPOTHESIS).encode(), parse(predict)),
        "coins": ("a.json", VOTE_TABLE.to_json().encode(), parse(stability.VoteTable.from_json)),
        "parity learn": ("a.npz", npz, command(*learn)),
        "parity learn csv": ("a.csv", bits, command(*learn)),
        "schema of": (
            "a.csv",
            TABLE.encode(),
            command("schema", "FILE", "--label", "job", "--positive", "a"),
        ),
        "estimate": (
            "a.csv",
            TABLE.encode(),
            command("local", "estimate", "FILE", "--column", "age", "--epsilon", "1", *UNIT),
        ),
        "randomize": (
            "a.json",
            QUESTION.to_json().encode(),
            command("local", "randomize", "1", "--question", "FILE"),
        ),
        "collect": (
            "a.txt",
            lines(),
            command("local", "collect", "FILE", "--question", "question.json"),
        ),
    }


def damage(content, dice):
    """Some bytes changed, lost, doubled, moved or put in; mostly one place, sometimes several."""
    found = bytearray(content)
    for _ in range(dice.choice((1, 1, 1, 1, 2, 9))):
        start = dice.randrange(len(found) + 1)
        end = min(len(found), start + dice.choice((1, 1, 1, 2, 4, 8, 40, len(found))))
        found[start:end] = dice.choice(
            (
                lambda part: bytes(byte ^ 1 << dice.randrange(8) for byte in part[:1]) + part[1:],
                lambda part: dice.randbytes(len(part)),
                lambda part: bytes([dice.choice((0, 0x7F, 0x80, 0xFF))]) * len(part),
                lambda part: b"",
                lambda part: part + part,
                lambda part: part + dice.choice(INSERTS),
            )
        )(bytes(found[start:end]))
    return bytes(found)


def damage_inside(content, dice):
    """What checksums protect, damaged before they are taken."""
    if content[:2] == b"\x1f\x8b":
        return gzip.compress(damage(gzip.decompress(content), dice))
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as whole, zipfile.ZipFile(out, "w") as made:
        chosen = dice.choice(whole.namelist())
        for name in whole.namelist():
            part = whole.read(name)
            # The header of an array is where readers decide how much room they need.
            cut = dice.choice((128, len(part)))
            spoilt = damage(part[:cut], dice) + part[cut:] if name == chosen else part
            made.writestr(name, spoilt)
    return out.getvalue()


def damage_values(content, dice):
    """JSON with other values in some places, and keys lost or put in."""

    def changed(value):
        if dice.random() < 0.15:
            return dice.choice(NASTY)
        if isinstance(value, dict):
            kept = {key: changed(each) for key, each in value.items() if dice.random() > 0.03}
            return kept | ({"more": 1} if dice.random() < 0.03 else {})
        return [changed(each) for each in value] if isinstance(value, list) else value

    return json.dumps(changed(json.loads(content))).encode()


def damaged(name, content, dice):
    ways = [damage]
    if name.endswith((".npz", ".gz")):
        ways.append(damage_inside)
    if name.endswith(".json"):
        ways.append(damage_values)
    return dice.choice(ways)(content, dice)


class Hung(BaseException):
    """The alarm: no `except Exception` takes it for a fault of the file."""


def ring(_number, _frame):
    raise Hung


def outcome(read, path):
    """read, refused, or what else happened."""
    signal.alarm(PATIENCE_SECONDS)
    try:
        read(path)
    except HdpFastError:
        return "refused"
    except BaseException as error:
        return repr(error)[:300]
    finally:
        signal.alarm(0)
    return "read"


def prepare():
    """An alarm, and the files beside those that are damaged."""
    signal.signal(signal.SIGALRM, ring)
    Path("question.json").write_text(QUESTION.to_json())
    np.save("y.npy", Y)
    Path("t.csv").write_text(TABLE)


def main(folder, cases, seed):
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    os.chdir(folder)
    prepare()
    report = {}
    for reader, (name, content, read) in readers().items():
        path, found = Path(name), Counter()
        path.write_bytes(content)
        report[reader] = {"whole": outcome(read, path)}
        for case in range(cases):
            path.write_bytes(damaged(name, content, random.Random(f"{seed} {reader} {case}")))
            result = outcome(read, path)
            found[result if result in OUTCOMES else f"case {case}: {result}"] += 1
        report[reader] |= found
        stored = sorted((CORPUS / reader.replace(" ", "_")).glob("*"))
        report[reader]["stored"] = Counter()
        for one in stored:
            path.write_bytes(one.read_bytes())
            result = outcome(read, path)
            report[reader]["stored"][result if result in OUTCOMES else f"{one.name}: {result}"] += 1
        path.unlink()
    print(json.dumps(report))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3])
