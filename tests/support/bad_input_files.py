"""The small files that bad inputs are made of: a table like that of Adult, and all that damages it.

Each file is made where a command line names it, so that a case needs nothing but its words.
"""

import functools
import gzip
import io
import json
from pathlib import Path

import numpy as np

from hdp_fast import Budget
from hdp_fast.collection.questions import frequency_question, mean_question
from hdp_fast.collection.reports import report_lines

COLUMNS = ("age", "workclass", "hours", "gender", "income")
POSITIVE = ">50K"


@functools.cache
def table(n, seed=1):
    """Rows of texts, in the order of COLUMNS."""
    coins = np.random.default_rng(seed)
    age, hours = coins.integers(17, 91, n), coins.integers(5, 80, n)
    work = coins.choice(["Private", "State-gov", "Self-emp"], n, p=[0.7, 0.2, 0.1])
    gender = coins.choice(["Male", "Female"], n)
    income = np.where(age + hours + coins.normal(0, 5, n) > 110, POSITIVE, "<=50K")
    columns = (age, work, hours, gender, income)
    return [list(map(str, row)) for row in zip(*columns, strict=True)]


def csv(rows, names=COLUMNS, sign=",", end="\n"):
    return end.join(sign.join(row) for row in [list(names), *rows] if row) + end


def without(column, rows):
    place = COLUMNS.index(column)
    return [[cell for j, cell in enumerate(row) if j != place] for row in rows]


def changed(rows, column, change):
    """Another value in every cell of a column: change takes the place of the row and the cell."""
    place = COLUMNS.index(column)
    return [
        [change(i, cell) if j == place else cell for j, cell in enumerate(row)]
        for i, row in enumerate(rows)
    ]


def npz(**arrays):
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def npy(array):
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def model(label=None):
    """What hdp-fast fit writes, without noise: by age alone."""
    public = json.loads(schema())
    names = [
        "age",
        "hours",
        *(f"workclass={name}" for name in ("Private", "State-gov", "Self-emp")),
    ]
    names += ["gender=Female", "gender=Male"]
    weights = [1.0] if label else [-1.0, 1.0]
    zero = [0.0] * len(weights)
    features = [
        {
            "name": name,
            "mean": 0.5,
            "slope": 0.0,
            "factor": 1.0,
            "weights": zero if place else weights,
        }
        for place, name in enumerate(names)
    ]
    fields = {"format": "hdp_fast.private_model", "version": 1, "classes": None, "constant": zero}
    fields |= {
        "link": "target" if label else "logistic",
        "method": "sgd",
        "n": 9,
        "norm_bound": 1.0,
    }
    fields |= {"features": features, "signal": None, "record": None}
    return json.dumps({**fields, "schema": {**public, "label": label or public["label"]}})


def schema(**label):
    columns = {
        "age": {"kind": "number", "bounds": [17, 90], "cuts": [40, 60]},
        "hours": {"kind": "number", "bounds": [0, 80], "cuts": [30, 50]},
        "workclass": {"kind": "category", "values": ["Private", "State-gov", "Self-emp"]},
        "gender": {"kind": "category", "values": ["Female", "Male"]},
    }
    label = {"column": "income", "positive": [POSITIVE], **label}
    fields = {"format": "hdp_fast.schema", "version": 1, "label": label, "columns": columns}
    return json.dumps(fields)


@functools.cache
def parity_rows(n, d=6, noise=0.0):
    """Bits whose labels are a parity of the first two, but for noise."""
    coins = np.random.default_rng(3)
    X = coins.integers(0, 2, (n, d), dtype=np.uint8)
    return X, (X[:, 0] ^ X[:, 1] ^ (coins.random(n) < noise)).astype(np.uint8)


def bits(n, d=6, noise=0.0):
    X, y = parity_rows(n, d, noise)
    return npz(X=X, y=y)


def question():
    return mean_question(
        "pay", randomizer="binary", epsilon=1.0, delta=None, low=0.0, high=10.0, beta=0.05
    )


def colors(name="color"):
    return frequency_question(
        name, randomizer="kary", epsilon=1.0, categories="red,green,blue", k=None
    )


PRIVATE, PUBLIC = table(600), table(100, seed=2)
_SPACED = [[f" {cell} " for cell in row] for row in PRIVATE]
# The content of each file, made when it is asked for.
FILES = {
    "priv.csv": lambda: csv(PRIVATE),
    "pub.csv": lambda: csv(PUBLIC),
    "semicolon.csv": lambda: csv(PRIVATE, sign=";"),
    "priv.tsv": lambda: csv(PRIVATE, sign="\t"),
    "priv.txt": lambda: csv(PRIVATE, sign="\t"),
    "PRIV.CSV": lambda: csv(PRIVATE),
    "crlf.csv": lambda: csv(PRIVATE, end="\r\n"),
    "bom.csv": lambda: csv(PRIVATE).encode("utf-8-sig"),
    "latin.csv": lambda: csv([["40", "Café", "40", "Male", "<=50K"]]).encode("latin-1"),
    "utf16.csv": lambda: csv(PRIVATE).encode("utf-16"),
    "headless.csv": lambda: csv(PRIVATE[1:], names=("40", "Private", "40", "Male", "<=50K")),
    "twice.csv": lambda: csv(PRIVATE, names=("age", "workclass", "age", "gender", "income")),
    "ragged.csv": lambda: csv([*PRIVATE[:100], PRIVATE[100][:3], *PRIVATE[101:]]),
    "empty.csv": lambda: "",
    "header.csv": lambda: csv([]),
    "ten.csv": lambda: csv(PRIVATE[:10]),
    "missing.csv": lambda: csv(changed(PRIVATE, "age", lambda i, cell: "" if i % 9 == 0 else cell)),
    "one_class.csv": lambda: csv(changed(PRIVATE, "income", lambda i, cell: "<=50K")),
    "unlike.csv": lambda: csv(changed(PRIVATE, "income", lambda i, cell: "low")),
    "no_age.csv": lambda: csv(without("age", PRIVATE), names=COLUMNS[1:]),
    "extra.csv": lambda: csv([[*row, "x"] for row in PRIVATE], names=(*COLUMNS, "note")),
    "spaced.csv": lambda: csv(_SPACED, names=[f" {name} " for name in COLUMNS]),
    "capitals.csv": lambda: csv(PRIVATE, names=[name.upper() for name in COLUMNS]),
    "plain.csv.gz": lambda: csv(PRIVATE),
    "cut.csv.gz": lambda: gzip.compress(csv(PRIVATE).encode())[:400],
    "bad.parquet": lambda: csv(PRIVATE),
    "bad.npz": lambda: csv(PRIVATE),
    "nul.csv": lambda: csv(changed(PRIVATE, "gender", lambda i, cell: "\0" if i == 7 else cell)),
    "ids.csv": lambda: csv(
        [[*row, f"id{i}"] for i, row in enumerate(PRIVATE)], names=(*COLUMNS, "who")
    ),
    "wrong_label.csv": lambda: csv(changed(PRIVATE, "income", lambda i, cell: "high")),
    "schema.json": schema,
    "model.json": lambda: model(),
    "number_model.json": lambda: model(label={"column": "income", "bounds": [0, 1]}),
    "no_json.json": lambda: "schema: yes",
    "braces.json": lambda: "{}",
    "wider.csv": lambda: csv([[*row, "1"] for row in PRIVATE], names=(*COLUMNS, "x")),
    # Of bits, for parities.
    "words.csv": lambda: csv(PRIVATE),
    "no_x.npz": lambda: npz(Z=parity_rows(20)[0]),
    "bits.npy": lambda: npy(parity_rows(20)[0]),
    "objects.npz": lambda: npz(X=parity_rows(20)[0].astype(object), y=parity_rows(20)[1]),
    "ten.npz": lambda: bits(10, 30),
    "none.npz": lambda: bits(0, 20),
    "noisy.npz": lambda: bits(2000, 6, 0.2),
    "bits.npz": lambda: bits(600),
    "labels.npy": lambda: npy(parity_rows(600)[1]),
    "bits.csv": lambda: csv(
        [list(map(str, [*row, label])) for row, label in zip(*parity_rows(600), strict=True)],
        names=[*"abcdef", "label"],
    ),
    # Of people, one line each.
    "question.json": lambda: question().to_json(),
    "colors.json": lambda: colors().to_json(),
    "other.jsonl": lambda: "\n".join(report_lines(colors("other"), ["red"] * 200)) + "\n",
    "garbage.jsonl": lambda: "no line\n" * 3,
    "empty.jsonl": lambda: "",
    "setup.py": lambda: "print('hello')\n",
}


def make_files(words, folder):
    """Make what these words name."""
    for word in words:
        if word in FILES:
            content = FILES[word]()
            Path(folder, word).write_bytes(
                content if isinstance(content, bytes) else content.encode()
            )
        elif word == "half.budget":
            Budget.open(Path(folder, word), epsilon=0.5)
        elif word == "full.budget":
            Budget.open(Path(folder, word), epsilon=1.0)
        elif word == "folder.csv":
            Path(folder, word).mkdir()
        elif word == "there.csv":
            Path(folder, word).write_text("old")
