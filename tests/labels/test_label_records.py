"""Records and labels of labelers: any shape a learner takes, and no dtype that one entry
decides."""

import math

import numpy as np
import pytest
from cases import each_case
from scipy.sparse import coo_matrix
from voters import TRUTH, Q, X, Y, fitted, labeler, soft

from hdp_fast import Budget
from hdp_fast.exceptions import ParameterError

linear_model = pytest.importorskip("sklearn.linear_model")


class Frame:
    """What a labeler needs of a data frame."""

    def __init__(self, values):
        self.values, self.shape, self.iloc = values, values.shape, Rows(values)

    def __array__(self, dtype=None, copy=None):
        return self.values


class Rows:
    def __init__(self, values):
        self.values = values

    def __getitem__(self, rows):
        return Frame(self.values[rows])


@pytest.mark.parametrize("kind", ["sparse", "frame", "list"])
def test_records_come_in_any_shape_a_learner_takes(kind):
    make = {"sparse": coo_matrix, "frame": Frame, "list": np.ndarray.tolist}[kind]
    learner = linear_model.SGDClassifier(max_iter=5, tol=None)
    assert fitted(learner, records=make(X)).label(make(Q)).labels.tolist() == TRUTH


@each_case(
    ("records", "labels", "rule"),
    [
        (
            [[1, "x"]] * 60,
            Y[:60],
            "X holds something else, but without a dtype it must hold numbers",
        ),
        ([[1j]] * 60, Y[:60], "numbers alone or texts alone: make an array or a data frame"),
        (np.ma.masked_array(np.ones((60, 1))), Y[:60], "X is a masked array"),
        (np.ones((60, 1)), [*Y[:59].tolist(), "x"], "y holds something else"),
        (np.ones((60, 1)), [*Y[:59].tolist(), math.nan], "y holds something else"),
        (np.ones((60, 1)), [*Y[:59].tolist(), None], "y holds something else"),
    ],
)
@each_case("make", [lambda: labeler(), lambda: soft()], ids=["labels", "scores"])
def test_what_would_decide_the_dtype_of_others_is_refused(make, records, labels, rule):
    budget = Budget(20, 1e-3)
    with pytest.raises(ParameterError, match=rule):
        make().fit(records, labels, budget=budget)
    assert budget.spent == (0, 0)


def unlike_categories(pandas):
    return pandas.Series([1, "x"] * 30).astype("category"), "numbers alone or texts alone"


def dates(pandas):
    days = pandas.Series(pandas.to_datetime(["2020-01-01"] * 60))
    return days.astype("category"), "numbers alone or texts alone"


def nested_dictionary(pandas):
    arrow = pytest.importorskip("pyarrow")
    kind = arrow.list_(arrow.dictionary(arrow.int8(), arrow.string()))
    entries = pandas.array(arrow.array([["a"]] * 60, kind), dtype=pandas.ArrowDtype(kind))
    return pandas.Series(entries), "may hold entries of a dictionary"


@pytest.mark.parametrize("table", [False, True], ids=["column", "table"])
@pytest.mark.parametrize("make", [unlike_categories, dates, nested_dictionary])
def test_columns_that_no_member_could_have_as_its_own_are_refused(make, table):
    column, rule = make(pytest.importorskip("pandas"))
    budget = Budget(20, 1e-3)
    with pytest.raises(ParameterError, match=rule):
        labeler().fit(column.to_frame("c") if table else column, Y[:60], budget=budget)
    assert budget.spent == (0, 0)
