"""Schemas without a label, and those that a person writes by hand."""

import json

import numpy as np
import pandas as pd
import pytest

from hdp_fast import statistics
from hdp_fast.adaptation import ScaledFeatures
from hdp_fast.data import Category, Ignore, Label, Number, Schema
from hdp_fast.exceptions import ParameterError
from hdp_fast.learners import CenteredLinear
from hdp_fast.sklearn import PrivateClassifier, SchemaTransformer
from hdp_fast.transfer import HybridRun

COLUMNS = {"age": Number(0, 100), "home": Category(("own", "rent")), "name": Ignore()}
FEATURES = Schema(columns=COLUMNS)
PEOPLE = {"age": [25, 75] * 500, "home": ["own", "boat"] * 500}
NO_LABEL = "schema has features alone and no label, but one is needed here"


def test_a_schema_of_features_alone_makes_features():
    assert FEATURES.label is None
    assert FEATURES.names == ["age>=25", "age>=50", "age>=75", "home=own", "home=rent"]
    assert FEATURES.floats(PEOPLE)[:2].tolist() == [[0.25, 1, 0], [0.75, 0, 0]]
    assert Schema.from_json(FEATURES.to_json()) == FEATURES
    assert "label" not in json.loads(FEATURES.to_json())
    assert FEATURES.with_missing({"age": 40}).label is None
    public = Schema.from_public({"age": [20, 30], "buys": ["no", "yes"]})
    assert list(public.columns) == ["age", "buys"]
    with pytest.raises(ParameterError, match="columns hold no feature"):
        Schema()


@pytest.mark.parametrize(
    "use",
    [
        lambda: FEATURES.labels(PEOPLE),
        lambda: FEATURES.float_labels(PEOPLE),
        lambda: HybridRun(FEATURES, epsilon=1.0, delta=1e-6),
        lambda: CenteredLinear(FEATURES, epsilon=1.0, delta=1e-6).learn(PEOPLE),
        lambda: ScaledFeatures(FEATURES).labels([0.5]),
    ],
)
def test_what_needs_a_label_says_so(use):
    with pytest.raises(ParameterError, match=NO_LABEL):
        use()


def test_statistics_and_transformers_need_no_label():
    assert list(statistics.columns_of(FEATURES)) == ["age", "home"]
    described = statistics.describe(PEOPLE, FEATURES, epsilon=8.0, random_state=0)
    kinds = {(row["statistic"], row.get("column")) for row in described.rows}
    assert {("mean", "age"), ("quantiles", "age"), ("histogram", "home")} <= kinds
    frame = pd.DataFrame(PEOPLE)
    assert SchemaTransformer(schema=FEATURES).fit_transform(frame).shape == (1_000, 3)
    learner = PrivateClassifier(epsilon=8.0, schema=FEATURES, classes=["no", "yes"])
    learner.fit(frame, np.array(["no", "yes"] * 500))
    assert json.loads(learner.to_json())["schema"]["label"]["column"] == "label"


def test_format_and_version_may_be_left_out():
    columns = {"age": {"kind": "number", "bounds": [0, 100]}}
    label = {"column": "income", "above": 50}
    expected = Schema(Label("income", above=50), {"age": Number(0, 100)})
    assert Schema.from_json(json.dumps({"label": label, "columns": columns})) == expected
    form = {"format": "hdp_fast.schema", "columns": columns}
    assert Schema.from_json(json.dumps(form)) == Schema(columns=expected.columns)
    for wrong in ({"version": 2}, {"format": "hdp_fast.model"}, {"version": None}):
        with pytest.raises(ParameterError, match="must have format and version"):
            Schema.from_json(json.dumps({"columns": columns, **wrong}))
    with pytest.raises(ParameterError, match=r"\['lable'\] mean nothing"):
        Schema.from_json(json.dumps({"columns": columns, "lable": label}))


@pytest.mark.parametrize(
    "content",
    [{}, [], {"columns": {}}, {"columns": ["Ada"]}, {"columns": {"Ada": 3}}, {"Ada": {"kind": 1}}],
)
def test_other_json_is_refused_and_not_shown(content):
    with pytest.raises(ParameterError, match="schema is other JSON, but") as refused:
        Schema.from_json(json.dumps(content))
    assert "Ada" not in str(refused.value)
