"""Words of hypotheses: they say what the hypothesis does, and nothing twice."""

import itertools

import numpy as np
import pytest

from hdp_fast.data import Category, Label, Number, Schema, read_table
from hdp_fast.learners import predictor

SCHEMA = Schema(
    Label("rich", positive=("yes",)),
    {"age": Number(0, 90, (20, 40, 60)), "job": Category(("clerk", "farmer"))},
)
NAMES = SCHEMA.names
VALUES = {"age": ("", "x", "0", "20", "39", "40", "99"), "job": ("", "clerk", "farmer", "nurse")}


@pytest.fixture(scope="module")
def bits(tmp_path_factory):
    """The bits of every row that there can be."""
    path = tmp_path_factory.mktemp("words") / "rows.csv"
    rows = itertools.product(*VALUES.values())
    path.write_text("age,job\n" + "".join(f"{age},{job}\n" for age, job in rows))
    return SCHEMA.bits(read_table(path))


def literals(most):
    """All lists of so many different features at most, each with a value."""
    for size in range(most + 1):
        for features in itertools.combinations(range(len(NAMES)), size):
            for values in itertools.product((0, 1), repeat=size):
                yield list(features), list(values)


def evaluate(text, bits):
    """What a text of literals says of rows."""
    if text.startswith("always "):
        return np.full(len(bits), int(text[-1]), np.uint8)
    parts = [_evaluate_literal(part, bits) for part in split(text)]
    return (np.max if " or " in text else np.min)(parts, axis=0)


def split(text):
    return text.split(" or " if " or " in text else " and ")


def _evaluate_literal(text, bits):
    values = bits[:, NAMES.index(text.removeprefix("not "))]
    return 1 - values if text.startswith("not ") else values


def check(hypothesis, bits):
    """The words say the same of every row, with no literal that could be left out."""
    text, expected = SCHEMA.words(hypothesis), predictor(hypothesis)(bits)
    assert (evaluate(text, bits) == expected).all(), text
    assert text.startswith("always ") == (expected.min() == expected.max()), text
    if len(parts := split(text)) > 1:
        joint = " or " if " or " in text else " and "
        for place in range(len(parts)):
            fewer = joint.join(parts[:place] + parts[place + 1 :])
            assert (evaluate(fewer, bits) != expected).any(), text


def test_conjunctions_and_complements(bits):
    for (features, values), complement in itertools.product(literals(5), (False, True)):
        parts = {"features": features, "values": values, "complement": complement}
        check({"kind": "conjunction", **parts}, bits)


def test_votes_of_literals_that_are_conjunctions_or_constant(bits):
    counted = 0
    for (features, values), threshold in itertools.product(literals(4), range(6)):
        parts = {"features": features, "values": values, "threshold": threshold}
        hypothesis = {"kind": "at_least", **parts}
        if SCHEMA.words(hypothesis).startswith("at least"):
            counted += 1
            expected = predictor(hypothesis)(bits)
            assert expected.min() < expected.max()
        else:
            check(hypothesis, bits)
    assert counted > 100


def test_a_feature_twice():
    parts = {"features": [4, 4], "values": [1, 1], "complement": False}
    assert SCHEMA.words({"kind": "conjunction", **parts}) == "job=farmer"
    parts["values"] = [1, 0]
    assert SCHEMA.words({"kind": "conjunction", **parts}) == "always 0"


def test_parities():
    parity = {"kind": "parity", "features": [0, 3], "complement": False}
    assert SCHEMA.words(parity) == "an odd number of: age>=20, job=clerk"
    assert SCHEMA.words(parity | {"complement": True}).startswith("an even number")
    assert SCHEMA.words(parity | {"features": [3], "complement": True}) == "not job=clerk"
    assert SCHEMA.words(parity | {"features": []}) == "always 0"
