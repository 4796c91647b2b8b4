"""Data frames become tables of texts, and no entry raises or warns."""

import datetime
import decimal
import math
import warnings

import numpy as np
import pytest

from hdp_fast import ParameterError, ShapeError
from hdp_fast.data import Category, Ignore, Label, Number, Schema, Table, arrow, read_frame
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
    ],
)
def test_entries_become_texts(entries, dtype, texts):
    if dtype is object:
        values = np.empty(len(entries), object)
        values[:] = entries
        entries = values
    assert texts_of(entries, dtype) == texts


def test_a_time_that_python_cannot_hold_is_missing_and_no_other():
    pyarrow = pytest.importorskip("pyarrow")
    seconds = pyarrow.array([0, 10**13, None], pyarrow.timestamp("s"))
    column = arrow.make_arrow_column(seconds)
    assert [column.texts[code] for code in column.codes] == ["1970-01-01 00:00:00", "", ""]


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


PUBLIC = {
    "age": [45, 25, None, 60],
    "sex": ["f", "m", "f", None],
    "grade": ["b", "a", "b", "b"],
    "member": [True, False, None, True],
    "pay": [60, 20, 70, 10],
}
LABEL = Label("pay", above=50)


def public_frames():
    """The public table in every container, with grades declared as categories where it can be."""
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    pyarrow = pytest.importorskip("pyarrow")
    frame = pandas.DataFrame(PUBLIC)
    grades = pandas.CategoricalDtype(["c", "b", "a"])
    nullable = frame.convert_dtypes().astype({"grade": grades})
    yield nullable
    yield frame.convert_dtypes(dtype_backend="pyarrow").astype({"grade": grades})
    yield polars.DataFrame(PUBLIC, schema_overrides={"grade": polars.Enum(["c", "b", "a"])})
    yield pyarrow.table(PUBLIC)
    yield pyarrow.RecordBatch.from_pydict(PUBLIC)
    yield pyarrow.table({name: pyarrow.chunked_array([v[:2], v[2:]]) for name, v in PUBLIC.items()})
    yield PUBLIC
    yield read_frame(PUBLIC)


@pytest.mark.parametrize("installed", [True, False])
def test_a_public_frame_of_any_library_makes_the_same_schema(monkeypatch, installed):
    frames = list(public_frames())
    monkeypatch.setattr(arrow, "is_installed", lambda: installed)
    for frame in frames:
        columns = Schema.from_public(frame, LABEL, cuts=1).columns
        declared = ("c", "b", "a") if type(frame).__name__ == "DataFrame" else ("a", "b")
        assert columns == {
            "age": Number(25, 60, (45,)),
            "sex": Category(("f", "m")),
            "grade": Category(declared),
            "member": Number(0, 1, (1,)),
        }


def test_categories_that_are_numbers_or_intervals_stay_categories():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"code": [3, 1, 3], "cut": pandas.cut([1, 2, 3], [0, 1, 3]), "y": 1})
    frame["code"] = frame["code"].astype("category")
    schema = Schema.from_public(frame, Label("y", above=0), labeled=False)
    assert schema.columns == {"code": Category(("1", "3")), "cut": Category(("(0, 1]", "(1, 3]"))}
    assert schema.bits(frame).tolist() == [[0, 1, 1, 0], [1, 0, 0, 1], [0, 1, 0, 1]]


def test_dictionaries_of_arrow_show_no_value_that_does_not_occur():
    pyarrow = pytest.importorskip("pyarrow")
    coded = pyarrow.DictionaryArray.from_arrays([2, None, 0], ["a", "elsewhere", " c "])
    column = read_frame(pyarrow.table({"x": coded})).column("x")
    assert [column.texts[code] for code in column.codes] == ["c", "", "a"]
    assert set(column.texts) == {"a", "c", ""}


def test_numbers_of_a_frame_are_not_copied():
    pandas = pytest.importorskip("pandas")
    values = np.array([1.5, math.nan, 3.0])
    pyarrow = pytest.importorskip("pyarrow")
    for frame in (pandas.DataFrame({"a": values}, copy=False), pyarrow.table({"a": values})):
        numbers = read_frame(frame).column("a").row_numbers()
        assert np.shares_memory(numbers, values)


def test_what_is_hidden_under_a_missing_value_is_no_value():
    pandas = pytest.importorskip("pandas")
    hidden = pandas.arrays.IntegerArray(np.array([5, 777, 6]), np.array([False, True, False]))
    column = read_frame(pandas.DataFrame({"a": hidden})).column("a")
    assert column.texts == ("5", "6", "")
    np.testing.assert_array_equal(column.row_numbers(), [5, math.nan, 6])
    assert column.select(np.array([1])).texts == ("",)


def test_mixed_objects_are_read_one_by_one():
    pandas = pytest.importorskip("pandas")

    class Loud:
        def __str__(self):
            raise RuntimeError("SECRET")

    mixed = [1, "a", 2.0, None, b"x", [1], Loud(), pandas.NaT, "\ud800", 2**70, True]
    column = read_frame(pandas.DataFrame({"a": mixed})).column("a")
    texts = ["1", "a", "2", "", "", "", "", "", "\ud800", str(2**70), "1"]
    assert [column.texts[code] for code in column.codes] == texts
    assert repr(column) == "<Column of 11 rows>"


ODD = {
    "Int64": lambda pandas, polars: pandas.Series([1, None, 2**60 + 1], dtype="Int64"),
    "Float32": lambda pandas, polars: pandas.Series([0.1, None], dtype="Float32"),
    "string": lambda pandas, polars: pandas.Series([" a", None], dtype="string"),
    "zone": lambda pandas, polars: pandas.Series([DAY, None]).dt.tz_localize("Europe/Berlin"),
    "period": lambda pandas, polars: pandas.Series(pandas.period_range("2020", periods=2)),
    "mixed": lambda pandas, polars: pandas.Series([3, "a", None, 2.0]).astype("category"),
    "sparse": lambda pandas, polars: pandas.Series(pandas.arrays.SparseArray([0, 0, 1.5])),
    "categories": lambda pandas, polars: polars.Series(["b", None], dtype=polars.Categorical),
    "objects": lambda pandas, polars: polars.Series([{1}, "x", 1], dtype=polars.Object),
    "lists": lambda pandas, polars: polars.Series([[1], None]),
    "floats": lambda pandas, polars: polars.Series([1.5, None, math.nan, math.inf]),
    "time": lambda pandas, polars: polars.Series([DAY, None]),
}
DAY = datetime.datetime(2020, 1, 2)


@pytest.mark.parametrize("kind", ODD)
def test_columns_are_read_alike_without_pyarrow(monkeypatch, kind):
    series = ODD[kind](pytest.importorskip("pandas"), pytest.importorskip("polars"))
    read = []
    for installed in (True, False):
        monkeypatch.setattr(arrow, "is_installed", lambda kept=installed: kept)
        column = read_frame({"x": series}).column("x")
        numbers = column.row_numbers()
        np.testing.assert_array_equal(numbers, column.numbers()[column.codes])
        texts = [column.texts[code] for code in column.codes]
        read.append((type(column).__name__ == "CategoryColumn", texts, list(map(repr, numbers))))
    assert read[0] == read[1]


def test_frames_that_are_refused():
    polars = pytest.importorskip("polars")
    pandas = pytest.importorskip("pandas")
    for frame, error, message in (
        (polars.LazyFrame({"a": [1]}), ParameterError, "LazyFrame', but .* collect"),
        (pandas.Series([1]), ParameterError, "named columns"),
        (np.eye(2), ParameterError, "named columns"),
        ({}, ParameterError, "named columns"),
        ({"a": [1], "b": [1, 2]}, ShapeError, r"columns of \[1, 2\] rows"),
        ({"a": []}, ShapeError, "no rows"),
        ({"a": np.eye(2)}, ShapeError, "one dimension"),
        ({"a": np.ma.array([1])}, ParameterError, "masked"),
        (pandas.DataFrame([[1, 2]], columns=["a", "a"]), ShapeError, "two columns named 'a'"),
    ):
        with pytest.raises(error, match=message):
            read_frame(frame)
    with pytest.raises(ParameterError, match="must be a Label"):
        Schema.from_public({"a": [1]}, "a")


def test_a_schema_reads_frames_and_tables_alike():
    schema = Schema.from_public(PUBLIC, LABEL, cuts=1)
    expected = schema.bits(read_frame(PUBLIC))
    for frame in public_frames():
        if not isinstance(frame, dict):
            np.testing.assert_array_equal(schema.bits(frame), expected)
            np.testing.assert_array_equal(schema.labels(frame), [1, 0, 1, 0])
            assert schema.float_labels(frame).tolist() == [1, -1, 1, -1]
    assert schema.columns.keys() == set(schema.reads)
    ignoring = Schema(LABEL, {"age": Number(0, 1), "name": Ignore()})
    assert ignoring.reads == ["age"]
