"""Codebooks: a row for each variable of another table."""

import pandas as pd
import pytest

from hdp_fast.data import Category, Ignore, Label, Number, Schema
from hdp_fast.exceptions import ParameterError


def make(*rows):
    """A codebook of a few variables, each a dict."""
    heads = dict.fromkeys(head for row in rows for head in row)
    return {head: [row.get(head) for row in rows] for head in heads}


AGE = {"name": "age", "low": 18, "high": 90}


def test_variables_are_what_is_said_of_them():
    schema = Schema.from_codebook(
        make(
            {**AGE, "cuts": "30| 60", "missing": "40"},
            {"name": "home", "kind": "Category", "categories": "own | rent", "missing": "rent"},
            {"name": "member", "categories": "yes"},
            {"name": "id", "kind": "ignore", "description": "of the card"},
            {"name": "bought", "label": "yes|often"},
        )
    )
    assert schema == Schema(
        Label("bought", positive=("yes", "often")),
        {
            "age": Number(18, 90, (30, 60), 40),
            "home": Category(("own", "rent"), "rent"),
            "member": Category(("yes",)),
            "id": Ignore(),
        },
    )
    assert Schema.from_codebook(pd.DataFrame(make(AGE))).label is None


@pytest.mark.parametrize(
    ("cells", "label"),
    [
        ({"label": "above 50"}, Label("pay", above=50)),
        ({"label": "between", "low": 0, "high": 9}, Label("pay", bounds=(0, 9))),
        ({"label": "between 1 8", "low": 0, "high": 9}, Label("pay", bounds=(1, 8))),
        ({"label": ">50K"}, Label("pay", positive=(">50K",))),
    ],
)
def test_a_label_has_its_rule(cells, label):
    assert Schema.from_codebook(make(AGE, {"name": "pay", **cells})).label == label


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{"low": 0, "high": 9}], "codebook has no column 'name'"),
        ([{**AGE, "Low": 0}], "codebook has two columns of one name"),
        ([{**AGE, "catgories": "a"}], "codebook has a column 'catgories', .* did you mean"),
        ([AGE, {"name": "", "low": 1, "high": 2}], "names no variable in row 2"),
        ([AGE, AGE], "codebook = 'age', but it must name each variable once"),
        ([AGE, {"name": "age", "label": "yes"}], "must name each variable once"),
        ([AGE, {"name": "a", "label": "1"}, {"name": "b", "label": "1"}], "'b': label = '1', but"),
        ([{"name": "age"}], "codebook, variable 'age': kind = '', but it must be one of number"),
        ([{"name": "age", "kind": "numeric"}], "variable 'age': kind = 'numeric'"),
        ([{"name": "age", "kind": "number", "low": 1}], "variable 'age': high = ''"),
        ([{"name": "age", "low": 9, "high": 1}], "variable 'age': .*high"),
        ([{**AGE, "cuts": "30|x"}], "variable 'age': cuts = 'x'"),
        ([{**AGE, "missing": "old"}], "variable 'age': missing = 'old'"),
        ([{"name": "home", "kind": "category"}], "variable 'home': categories = ''"),
        ([{"name": "pay", "label": "between"}], "variable 'pay': low = ''"),
        ([{"name": "pay", "label": "yes"}], "columns hold no feature"),
    ],
)
def test_what_a_codebook_cannot_say_is_refused_by_the_name_of_the_variable(rows, message):
    with pytest.raises(ParameterError, match=message):
        Schema.from_codebook(make(*rows))
