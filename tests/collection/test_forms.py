"""Forms of a schema: a page's answers make the features that the schema makes of the record."""

import json

import numpy as np
import pytest

from hdp_fast import _core, collection
from hdp_fast.collection import Question
from hdp_fast.data import Category, Ignore, Label, Number, Schema
from hdp_fast.exceptions import ParameterError
from hdp_fast.local import BinaryResponse, Query

SECRET = bytes(range(32))
KEY = _core.ed25519_public(SECRET).hex()
WORDS = ("own", "rent", "other", "other_", "10 & more", "<b>", "né")


def form_of(schema, **options):
    return json.loads(collection.form_of(schema, **options))


def read(rule, answers):
    """A feature of a form as its specification says, not as a device computes it."""
    asked = answers[rule["input"]]
    if "values" in rule:
        return float(asked in rule["values"])
    if "at_least" in rule:
        return float(asked >= rule["at_least"])
    return asked * rule["scale"] + rule["offset"]


def answer(form, record):
    """What a person with a record types: numbers between the bounds, and a choice that is there."""
    typed = []
    for asked in form["inputs"]:
        value = record[asked["name"]]
        if asked["kind"] == "number":
            typed.append(min(max(value, asked["low"]), asked["high"]))
        else:
            values = [choice["value"] for choice in asked["choices"]]
            typed.append(value if value in values[:-1] else values[-1])
    return typed


def draw_schema(rng):
    columns, names = {"note": Ignore()}, rng.permutation([f"c{place}" for place in range(4)])
    for name in names[: rng.integers(1, 5)].tolist():
        if rng.random() < 0.5:
            low = float(rng.choice([-1e6, -3, 0, 18, 1990]))
            ends = (low, low + float(rng.choice([0.25, 1, 50, 1e7])))
            inner = np.sort(rng.uniform(*ends, rng.integers(0, 4)))
            columns[name] = Number(*ends, tuple(np.unique(inner).tolist()))
        else:
            values = rng.permutation(WORDS)[: rng.integers(1, len(WORDS) - 1)]
            columns[name] = Category(tuple(values.tolist()))
    return Schema(Label("y", positive=("own", "rent")[: rng.integers(1, 3)]), columns)


def draw_record(rng, schema):
    record = {"y": str(rng.choice(WORDS))}
    for name, kind in schema.columns.items():
        if isinstance(kind, Number):
            values = [kind.low, kind.high, rng.uniform(kind.low, kind.high), *kind.cuts]
            record[name] = float(rng.choice(values))
        else:
            record[name] = str(rng.choice(WORDS))
    return record


def test_a_form_makes_the_features_and_the_label_of_its_schema():
    rng = np.random.default_rng(1)
    for _ in range(40):
        schema = draw_schema(rng)
        records = [draw_record(rng, schema) for _ in range(20)]
        frame = {name: [record[name] for record in records] for name in records[0]}
        for features, make, error in (("bits", schema.bits, 0), ("numbers", schema.floats, 1e-7)):
            form = form_of(schema, features=features)
            typed = [answer(form, record) for record in records]
            made = [[read(rule, answers) for rule in form["features"]] for answers in typed]
            assert np.abs(np.array(made) - make(frame)).max() <= error
            labels = [read(form["label"], answers) for answers in typed]
            assert labels == schema.labels(frame).tolist()


def on_device(form, query, typed):
    """The true answer to a query, as a device works it out from what a person types."""
    randomizer = BinaryResponse(1.0, (0.0, 1.0))
    hypothesis = json.dumps(query.hypothesis)
    asked = {"study": "town", "form": json.dumps(form), "hypothesis": hypothesis}
    question = Question("town-1", randomizer, **asked).to_json()
    signature = _core.ed25519_sign(SECRET, b"hdp_fast.question\n" + question.encode()).hex()
    envelope = {"format": "hdp_fast.signed", "version": 1}
    signed = json.dumps({**envelope, "question": question, "signature": signature})
    invitation = {"signed": signed, "key": KEY, "study": "town", "epsilon": 1.0, "number": 1}
    shown = json.loads(_core.device_describe(json.dumps(invitation)))
    needed = {form["inputs"][place]["name"]: typed[place] for place in shown["inputs"]}
    answers = {name: text if isinstance(text, str) else repr(text) for name, text in needed.items()}
    output = json.loads(_core.device_answer(json.dumps({**invitation, "answers": answers})))
    return output["truth"]


def test_a_device_works_out_the_features_and_the_label_of_the_schema():
    rng = np.random.default_rng(3)
    for _ in range(12):
        schema = draw_schema(rng)
        record = draw_record(rng, schema)
        frame = {name: [value] for name, value in record.items()}
        for features, make in (("bits", schema.bits), ("numbers", schema.floats)):
            form = form_of(schema, features=features)
            typed, values = answer(form, record), make(frame)[0]
            made = [
                on_device(form, Query.value(place, 0.0, 1.0), typed) for place in range(len(values))
            ]
            assert np.abs(np.array(made) - values).max() <= (1e-7 if features == "numbers" else 0)
            assert on_device(form, Query.label(), typed) == schema.labels(frame)[0]


def test_a_number_is_scaled_to_the_last_digits_where_its_bounds_are_no_wider_than_its_values():
    rng, kind = np.random.default_rng(2), Number(18, 90)
    (rule,) = form_of(Schema(None, {"age": kind}), features="numbers")["features"]
    ages = rng.uniform(18, 90, 1000)
    scaled = Schema(None, {"age": kind}).floats({"age": ages})[:, 0]
    assert np.abs(ages * rule["scale"] + rule["offset"] - scaled).max() < 1e-15


def test_a_label_above_a_number_is_a_choice_and_one_without_is_none():
    columns = {"age": Number(0, 100)}
    form = form_of(Schema(Label("income", above=50), columns), features="bits")
    assert form["inputs"][1]["choices"] == [
        {"value": "1", "text": "more than 50"},
        {"value": "0", "text": "50 or less"},
    ]
    assert form["label"] == {"input": 1, "values": ["1"]}
    assert form_of(Schema(None, columns), features="bits")["label"] is None


def test_texts_name_columns_and_choices_and_nothing_else():
    columns = {"home": Category(("own", "rent"))}
    schema = Schema(Label("bought", positive=("yes",)), columns)
    texts = {"home": "Your home", "home=own": "mine", "home=": "neither", "bought=": "never"}
    home, bought = form_of(schema, features="bits", texts=texts)["inputs"]
    assert [choice["text"] for choice in home["choices"]] == ["mine", "rent", "neither"]
    assert [choice["text"] for choice in bought["choices"]] == ["yes", "never"]
    assert home["text"] == "Your home"
    for wrong in ({"hoem": "x"}, {"home=tent": "x"}, {"home": ""}, {"home": 1}, ["home"]):
        with pytest.raises(ParameterError, match="texts"):
            form_of(schema, features="bits", texts=wrong)


def test_what_a_page_cannot_ask_is_refused():
    columns = {"age": Number(0, 100)}
    with pytest.raises(ParameterError, match="label = 'income' has bounds"):
        form_of(Schema(Label("income", bounds=(0, 1)), columns), features="bits")
    with pytest.raises(ParameterError, match="bounds of column 'age'"):
        form_of(Schema(None, {"age": Number(0, 1e-310)}), features="numbers")
    for name in ("", "x" * 101, "a\nb"):
        with pytest.raises(ParameterError, match="schema = "):
            form_of(Schema(None, {"way": Category((name, "bus"))}), features="bits")
    many = Schema(None, {"way": Category(tuple(map(str, range(1000))))})
    with pytest.raises(ParameterError, match="1,000 values"):
        form_of(many, features="bits")
    with pytest.raises(ParameterError, match="features"):
        form_of(Schema(None, columns), features="floats")
