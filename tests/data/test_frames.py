"""Data frames become tables of texts, and no entry raises or warns."""

import datetime
import decimal
import math
import warnings

import numpy as np
import pytest

from hdp_fast import ParameterError, ShapeError
from hdp_fast.data import Category, Label, Number, Schema, Table
from hdp_fast.data.frames import make_column, make_table

SCHEMA = Schema(Label("y", above=0), {"age": Number(0, 10), "place": Category(("None", "sea"))})


def texts_of(entries, dtype=None):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        column = make_column(np.array(entries, dtype))
    assert len(set(column.texts)) == len(column.texts)
    return [column.texts[code] for code in column.codes]


@pytest.mark.parametrize(
    ("entries", "dtype", "texts"),
    [
        ([2, 1, 2], np.int8, ["2", "1", "2"]),
        ([True, False], None, ["1", "0"]),
        ([1.0, 0.5, math.nan, math.inf], None, ["1", "0.5", "", "inf"]),
        ([" None", "None", "nan", ""], None, ["None", "None", "nan", ""]),
        ([" None", None, math.nan, "sea"], object, ["None", "", "", "sea"]),
        ([1, 1.0, True, "1", np.int64(1)], object, ["1"] * 5),
        ([[], {}, b"x", 1j, object], object, [""] * 5),
        ([10**5000, decimal.Decimal("1.5")], object, ["", "1.5"]),
        (["2020-01-02", "NaT"], "datetime64[ns]", ["2020-01-02 00:00:00", ""]),
        ([datetime.date(2020, 1, 2)], object, ["2020-01-02"]),
        ([np.longdouble("1e4000")], np.longdouble, ["inf"]),
    ],
)
def test_entries_become_texts(entries, dtype, texts):
    if dtype is object:
        values = np.empty(len(entries), object)
        values[:] = entries
        entries = values
    assert texts_of(entries, dtype) == texts


def frames():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"place": ["None", None, "sea"], "age": [1.0, None, 20.0], "z": 1})
    yield frame
    yield frame.convert_dtypes()
    yield frame.astype({"place": "category"})
    for library, name in (("polars", "DataFrame"), ("pyarrow", "table")):
        made = getattr(pytest.importorskip(library), name)
        yield made({"place": ["None", None, "sea"], "age": [1.0, None, 20.0], "z": [1, 1, 1]})


def test_frames_of_every_library_become_one_table():
    for frame in frames():
        table = make_table("X", frame, SCHEMA)
        assert isinstance(table, Table)
        assert (table.rows, list(table.columns)) == (3, ["age", "place"])
        assert SCHEMA.floats(table).tolist() == [[0.1, 1, 0], [0, 0, 0], [1, 0, 1]]


def test_what_has_no_such_columns_is_refused():
    pandas = pytest.importorskip("pandas")
    for records in (np.eye(2), {"age": [1], "place": ["sea"]}, [1], None):
        with pytest.raises(ParameterError, match="named columns"):
            make_table("X", records, SCHEMA)
    with pytest.raises(ParameterError, match="X lacks 1 columns, such as 'place'"):
        make_table("X", pandas.DataFrame({"age": [1]}), SCHEMA)
    twice = pandas.DataFrame([[1, 2, "sea"]], columns=["age", "age", "place"])
    with pytest.raises(ShapeError, match="two columns named 'age'"):
        make_table("X", twice, SCHEMA)


def test_names_that_are_no_texts_count_as_their_texts():
    pandas = pytest.importorskip("pandas")
    schema = Schema(Label("y", above=0), {"0": Number(0, 10)})
    frame = pandas.DataFrame({0: [5.0], "other": ["a"]})
    assert schema.floats(make_table("X", frame, schema)).tolist() == [[0.5]]
