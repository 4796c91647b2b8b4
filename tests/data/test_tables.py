"""Tables and schemas: what is read, what becomes a feature, and what is never said of a value."""

import gzip
import io
import json
import logging
import math
import os
import warnings
from pathlib import Path

import numpy as np
import pytest

from hdp_fast.data import (
    Category,
    Column,
    Ignore,
    Label,
    Number,
    Schema,
    arrow,
    columns,
    read_frame,
    read_table,
)
from hdp_fast.data.column_kinds import label_texts
from hdp_fast.exceptions import HdpFastError, ParameterError, ShapeError

TEXT = 'age,job,"pay, yearly",rich\n30, clerk ,10.5,no\n"41",farmer,,yes\n\n30,clerk,99,no\n'
SCHEMA = Schema(
    Label("rich", positive=("yes",)),
    {
        "age": Number(18, 80, (25, 41)),
        "job": Category(("farmer", "clerk")),
        "pay, yearly": Number(0, 100),
        "name": Ignore(),
    },
)


@pytest.fixture
def csv(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text(TEXT, encoding="utf-8-sig")
    return path


def cells(table, name):
    column = table.column(name)
    return [column.texts[code] for code in column.codes]


def test_csv(csv, tmp_path):
    table = read_table(csv)
    assert list(table.columns) == ["age", "job", "pay, yearly", "rich"]
    assert table.rows == 3
    assert cells(table, "age") == ["30", "41", "30"]
    assert cells(table, "job") == ["clerk", "farmer", "clerk"]
    assert cells(table, "pay, yearly") == ["10.5", "", "99"]
    zipped = tmp_path / "people.csv.gz"
    zipped.write_bytes(gzip.compress(csv.read_bytes()))
    assert cells(read_table(zipped), "job") == cells(table, "job")


def test_csv_in_chunks(tmp_path, monkeypatch):
    rows = np.random.default_rng(1).integers(7, size=(50, 2))
    path = tmp_path / "many.csv"
    path.write_text("a,b\n" + "".join(f"{a},{b}\n" for a, b in rows))
    monkeypatch.setattr("hdp_fast.data.arrow.is_installed", lambda: False)
    monkeypatch.setattr("hdp_fast.data.delimited._CHUNK_ROWS", 7)
    table = read_table(path)
    assert [cells(table, name) for name in "ab"] == rows.T.astype(str).tolist()


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("", ParameterError, "bad.csv is empty: line 1 must name every column"),
        ("\n1,2\n", ParameterError, "line 1 of .*bad.csv is empty"),
        ("a,a\n1,2\n", ParameterError, "each differently: columns 1 and 2 have one name$"),
        ("a,\n1,2\n", ParameterError, "must name every column, .*: column 2 has no name$"),
        ("7,secret,7\n1,2,3\n", ParameterError, "columns 1 and 3 .*; is there no header?"),
        ("a;b\n1,5;secret\n", ShapeError, "1 values, 2 found: did you mean --delimiter ';'"),
        ("a,b\n", ShapeError, "at least one row"),
        ("a,b\n1,2\nsecret,2,3\n", ShapeError, "line 3 .* must have 2 values, 3 found"),
        ('a,b\n1,"secret\n', ParameterError, "separated by commas"),
    ],
)
def test_bad_csv(tmp_path, text, error, message):
    path = tmp_path / "bad.csv"
    path.write_text(text)
    with pytest.raises(error, match=message) as caught:
        read_table(path)
    assert "secret" not in str(caught.value).replace(str(path), "")


def test_unreadable_files(tmp_path, csv):
    for name, message in (("none.csv", "No such file"), ("table.xls", "must end in .csv")):
        with pytest.raises(ParameterError, match=message):
            read_table(tmp_path / name)
    (tmp_path / "text.csv").write_bytes(b"a,b\n\xff\xfe,1\n")
    with pytest.raises(ParameterError, match="UTF-8"):
        read_table(tmp_path / "text.csv")
    damaged = gzip.compress(csv.read_bytes())
    for content in (damaged[:-12], damaged[:20] + b"\0" * 30, csv.read_bytes()):
        (tmp_path / "bad.csv.gz").write_bytes(content)
        with pytest.raises(ParameterError, match="can't read"):
            read_table(tmp_path / "bad.csv.gz")


@pytest.mark.parametrize(
    ("name", "sign", "delimiter"),
    [
        ("t.CSV", ",", None),
        ("t.tsv", "\t", None),
        ("t.TSV.GZ", "\t", None),
        ("t.txt", "|", "|"),
        ("t.Csv.gz", ";", ";"),
        ("t.tsv", ",", ","),
    ],
)
def test_texts_by_their_names_and_delimiters(tmp_path, name, sign, delimiter):
    content = sign.join(["age", "home"]) + "\n" + sign.join(["40", f'"a{sign}b"']) + "\n"
    path = tmp_path / name
    packed = gzip.compress(content.encode()) if name.lower().endswith("gz") else content.encode()
    path.write_bytes(packed)
    table = read_table(path, delimiter=delimiter)
    assert cells(table, "age") + cells(table, "home") == ["40", f"a{sign}b"]


@pytest.mark.parametrize(
    ("name", "delimiter", "message"),
    [
        ("t.txt", None, r"delimiter must be given for .*t\.txt"),
        ("t.csv", ";;", "';;', but it must be one character"),
        ("t.csv", "", "one character"),
        ("t.csv", "a", "one character"),
        ("t.csv", '"', "one character"),
        ("t.npz", ";", "must not go with a"),
    ],
)
def test_delimiters_that_cannot_be(tmp_path, name, delimiter, message):
    with pytest.raises(ParameterError, match=message):
        read_table(tmp_path / name, delimiter=delimiter)


def test_the_standard_input_is_a_table(monkeypatch):
    def give(content):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))

    give("\ufeffage;home\r\n40;own\r\n".encode())
    assert cells(read_table("-", delimiter=";"), "home") == ["own"]
    give(b"")
    with pytest.raises(ParameterError, match="the standard input is empty"):
        read_table("-")
    give(b"age\n\xff\n")
    with pytest.raises(ParameterError, match=r"can't read the standard input: .*UTF-8"):
        read_table("-")
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(ParameterError, match="the standard input is closed"):
        read_table("-")


def test_a_missing_column_names_the_file_and_a_guess_where_it_may(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("Age,home\n1,2\n")
    with pytest.raises(ParameterError, match=r"2 columns that .*t\.csv names$"):
        read_table(path).select(np.array([0])).column("age")
    with pytest.raises(ParameterError, match=r"t\.csv names: did you mean 'Age'\?"):
        read_table(path, public=True).select(np.array([0])).column("age")
    path.write_text("age;home\n1;2\n")
    with pytest.raises(ParameterError, match=r"1 column that .*: did you mean --delimiter ';'\?"):
        read_table(path).column("age")


def test_npz(tmp_path):
    path = tmp_path / "table.npz"
    np.savez(path, X=np.array([[1.0, 0.5], [2.0, np.nan]]), y=[True, False], job=["a", "b"])
    table = read_table(path)
    assert list(table.columns) == ["X0", "X1", "y", "job"]
    assert [cells(table, name) for name in ("X0", "X1", "y")] == [
        ["1", "2"],
        ["0.5", ""],
        ["1", "0"],
    ]
    for arrays, message in (
        ({"a": [1], "b": [1, 2]}, "one length"),
        ({"a": 1}, "a vector or a matrix"),
        ({"a": np.array([None])}, "can't read a"),
        ({"X": [[1]], "X0": [1]}, "differently"),
        ({}, "at least one row"),
    ):
        np.savez(path, **arrays)
        with pytest.raises(HdpFastError, match=message):
            read_table(path)


def test_parquet(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "table.parquet"
    columns = {"age": [30, None], "pay": [1.0, 2.5], "job": ["a", None], "rich": [True, False]}
    parquet.write_table(pyarrow.table(columns), path)
    table = read_table(path)
    found = {name: cells(table, name) for name in columns}
    wanted = {"age": ["30", ""], "pay": ["1", "2.5"], "job": ["a", ""], "rich": ["1", "0"]}
    assert found == wanted
    path.write_bytes(b"PAR1 no")
    with pytest.raises(ParameterError, match="can't read"):
        read_table(path)
    with pytest.raises(ParameterError, match="can't read"):
        read_table(tmp_path / "none.parquet")


@pytest.mark.parametrize("suffix", [".arrow", ".FEATHER"])
def test_files_of_arrow(tmp_path, suffix):
    pyarrow, feather = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.feather")
    path = tmp_path / f"table{suffix}"
    columns = {"age": [30, None], "job": pyarrow.array(["a", None]).dictionary_encode()}
    feather.write_feather(pyarrow.table(columns), path)
    table = read_table(path)
    assert [cells(table, name) for name in columns] == [["30", ""], ["a", ""]]
    with pyarrow.OSFile(str(path), "wb") as out:
        made = pyarrow.table([[1], [2]], names=["a", "a"])
        with pyarrow.ipc.new_file(out, made.schema) as writer:
            writer.write_table(made)
    with pytest.raises(ParameterError, match="every column differently"):
        read_table(path)
    path.write_bytes(b"ARROW1 no")
    with pytest.raises(ParameterError, match=r"can't read .* Arrow's file format"):
        read_table(path)


def test_parquet_without_pyarrow(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow.parquet", None)
    with pytest.raises(ImportError, match=r"pip install pyarrow \(the extra hdp-fast\[tables\]"):
        read_table(tmp_path / "table.parquet")


@pytest.mark.parametrize("rows", [slice(1), slice(3, 9), slice(None), slice(-3, -1), slice(5, 2)])
@pytest.mark.parametrize("library", [True, False])
def test_select_takes_a_slice_of_any_column(rows, library, tmp_path, monkeypatch):
    if not library:
        monkeypatch.setattr(arrow, "is_installed", lambda: False)
    words, path = [f"w{place % 7}" for place in range(12)], tmp_path / "few.csv"
    path.write_text("word,size\n" + "".join(f"{word},{word[1]}\n" for word in words))
    columns = {"size": np.arange(12), "word": words}
    for table in (read_table(path), read_frame(columns), read_frame(columns).select(np.arange(12))):
        some = table.select(rows)
        column = some.column("word")
        assert some.rows == len(words[rows]) == column.rows
        assert [column.texts[code] for code in column.codes] == words[rows]
        of_all = table.column("size").row_numbers()[rows].tolist()
        assert some.column("size").row_numbers().tolist() == of_all


def test_select_leaves_out_texts_that_a_short_slice_does_not_have():
    column = read_frame({"word": [f"w{place}" for place in range(9)]}).column("word")
    assert column.select(slice(2, 4)).texts == ("w2", "w3")


def test_select(csv):
    table = read_table(csv).select(np.array([False, True, True]))
    assert table.rows == 2
    assert cells(table, "age") == ["41", "30"]
    assert read_table(csv).select(np.array([2, 0, 0])).rows == 3


def test_bits_and_floats(csv):
    table = read_table(csv)
    names = ["age>=25", "age>=41", "job=farmer", "job=clerk"]
    assert SCHEMA.names == names + [f"pay, yearly>={cut}" for cut in (25, 50, 75)]
    bits = [[1, 0, 0, 1, 0, 0, 0], [1, 1, 1, 0, 0, 0, 0], [1, 0, 0, 1, 1, 1, 1]]
    np.testing.assert_array_equal(SCHEMA.bits(table), bits)
    assert SCHEMA.bits(table).dtype == np.uint8
    assert SCHEMA.float_names == ["age", "job=farmer", "job=clerk", "pay, yearly"]
    floats = [[12 / 62, 0, 1, 0.105], [23 / 62, 1, 0, 0], [12 / 62, 0, 1, 0.99]]
    np.testing.assert_allclose(SCHEMA.floats(table), floats)
    np.testing.assert_array_equal(SCHEMA.labels(table), [0, 1, 0])


def test_label_above_a_number(csv):
    label = Label("pay, yearly", above=10.5)
    np.testing.assert_array_equal(
        Schema(label, {"age": Number(0, 1)}).labels(read_table(csv)), [0, 0, 1]
    )


def test_label_of_an_integer_type_refuses_words_whatever_the_rows_hold():
    words, digits = Label("y", positive=("true",)), Label("y", positive=("true", "1"))
    for values in (np.array([True, False]), np.array([False, False]), np.array([3, 7])):
        table = {"x": np.array([0.0, 1.0]), "y": values}
        with pytest.raises(ParameterError, match=r"'true',.*type: true is spelled 1, false 0"):
            Schema(words, {"x": Number(0, 1)}).labels(table)
        assert Schema(digits, {"x": Number(0, 1)}).labels(table).tolist() == (values == 1).tolist()
    for texts in (["true", "0"], ["1", "0"]):  # cells of texts have no type, and raise nothing
        made = Schema(words, {"x": Number(0, 1)}).labels({"x": [0, 1], "y": texts})
        assert made.tolist() == [texts[0] == "true", 0]


def test_label_between_bounds(tmp_path):
    path = tmp_path / "pay.csv"
    path.write_text("pay,age\n10,1\n25,1\n-3,1\n1e999,1\n?,1\n,1\n30,1\n")
    schema = Schema(Label("pay", bounds=[10, 30]), {"age": Number(0, 1)})
    read = schema.float_labels(read_table(path))
    np.testing.assert_array_equal(read, [-1, 0.5, -1, 1, -1, -1, 1])
    with pytest.raises(ParameterError, match="'pay': bounds make it a number"):
        schema.labels(read_table(path))
    assert Schema.from_json(schema.to_json()) == schema
    above = Schema(Label("pay", above=20), {"age": Number(0, 1)})
    np.testing.assert_array_equal(above.float_labels(read_table(path)), [-1, 1, -1, 1, -1, -1, 1])
    with pytest.raises(ParameterError, match="column = 'none'"):
        Schema(Label("none", bounds=(0, 1)), {"age": Number(0, 1)}).float_labels(read_table(path))


@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        ((1, 1), "below high"),
        ((0, float("nan")), "finite"),
        ((0, 1, 2), "two numbers"),
        (3, "must be a list"),
        (("0", 1), "finite number"),
    ],
)
def test_bounds_of_a_label(bounds, message):
    with pytest.raises(ParameterError, match=message):
        Label("pay", bounds=bounds)


def test_unforeseen_private_values_are_silent(tmp_path, caplog):
    path = tmp_path / "odd.csv"
    odd = ["-1e999,spy,nan,maybe", "1e999,,text,", "text,CLERK,-5,yes", ",farmer,5e9,yes"]
    path.write_text('age,job,"pay, yearly",rich\n' + "\n".join(odd) + "\n")
    with warnings.catch_warnings(), caplog.at_level(logging.DEBUG):
        warnings.simplefilter("error")
        table = read_table(path)
        bits, floats, labels = (f(table) for f in (SCHEMA.bits, SCHEMA.floats, SCHEMA.labels))
    assert caplog.records == []
    np.testing.assert_array_equal(bits[0], [0] * 7)
    np.testing.assert_array_equal(bits[1], [1, 1, 0, 0, 0, 0, 0])
    np.testing.assert_array_equal(bits[2], [0] * 7)
    np.testing.assert_array_equal(bits[3], [0, 0, 1, 0, 1, 1, 1])
    np.testing.assert_array_equal(floats, [[0, 0, 0, 0], [1, 0, 0, 0], [0, 0, 0, 0], [0, 1, 0, 1]])
    np.testing.assert_array_equal(labels, [0, 0, 1, 1])


def test_features_do_not_depend_on_other_rows(csv):
    table = read_table(csv)
    for row in range(3):
        alone = table.select(np.array([row]))
        for f in (SCHEMA.bits, SCHEMA.floats, SCHEMA.labels):
            np.testing.assert_array_equal(f(alone)[0], f(table)[row])


def test_a_missing_column_is_an_error(csv):
    table = read_table(csv)
    schema = Schema(Label("no", above=1), {"age": Number(0, 1)})
    with pytest.raises(ParameterError, match=r"column = 'no'.* 4 columns"):
        schema.labels(table)
    schema = Schema(Label("rich", above=1), {"wage": Number(0, 1)})
    for f in (schema.bits, schema.floats):
        with pytest.raises(ParameterError, match="column = 'wage'"):
            f(table)


def test_json_round_trip():
    assert Schema.from_json(SCHEMA.to_json()) == SCHEMA
    read = json.loads(SCHEMA.to_json())
    assert (read["format"], read["version"]) == ("hdp_fast.schema", 1)
    by_hand = {"kind": "number", "cuts": [1, 2]}
    read["columns"] = {"age": by_hand}
    assert Schema.from_json(json.dumps(read)).columns == {"age": Number(1, 2, (1, 2))}


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("version",), 2, "format and version"),
        (("format",), "other", "format and version"),
        (("more",), 1, "'more'"),
        (("label",), None, "Schema.to_json"),
        (("label", "above"), 3, "exactly one"),
        (("label", "positive"), None, "exactly one"),
        (("label", "bounds"), [0, 1], "exactly one"),
        (("label", "positive"), "yes", "must be a list"),
        (("label", "positive"), [], "each once"),
        (("label", "positive"), [1], "list texts"),
        (("label", "column"), "age", "not be a feature too"),
        (("columns",), [], "Schema.to_json"),
        (("columns",), {}, "no feature"),
        (("columns", "age", "kind"), "date", "one of category, number, ignore"),
        (("columns", "age", "bounds"), [5, 5], "below high"),
        (("columns", "age", "bounds"), [0, 1e999], "finite"),
        (("columns", "age", "bounds"), [0], "Schema.to_json"),
        (("columns", "age", "cuts"), [41, 25], "must increase"),
        (("columns", "age", "cuts"), ["x"], "finite"),
        (("columns", "age", "color"), 1, "Schema.to_json"),
        (("columns", "job", "values"), ["a", "a"], "each once"),
        (("columns", "job", "missing"), "smith", "one of the column's values"),
        (("columns", "job", "missing"), 1, "one of the column's values"),
        (("columns", "job", "missing"), ["clerk"], "one of the column's values"),
        (("columns", "age", "missing"), 81, "between 18 and 80"),
        (("columns", "age", "missing"), "30", "finite"),
        (("columns", "age", "missing"), 1e999, "finite"),
        (("columns", "name", "missing"), 1, "Schema.to_json"),
    ],
)
def test_bad_schemas(path, value, message):
    read = json.loads(SCHEMA.to_json())
    *folders, last = path
    place = read
    for name in folders:
        place = place[name]
    place[last] = value
    with pytest.raises(ParameterError, match=message):
        Schema.from_json(json.dumps(read))


FILLED = Schema(
    SCHEMA.label,
    {
        "age": Number(18, 80, (25, 41), missing=41),
        "job": Category(("farmer", "clerk"), missing=" clerk "),
        "pay": Number(0, 100),
    },
)


def test_missing_cells_count_as_public_values(tmp_path):
    with_gaps = {"age": [None, 20], "job": [None, "spy"], "pay": [None, 7], "rich": ["yes", None]}
    pandas, pyarrow = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    path = tmp_path / "gaps.csv"
    path.write_text("age,job,pay,rich\n?, ,,yes\n20,spy,7,\n")
    frame = pandas.DataFrame(with_gaps)
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pyarrow.table(with_gaps), tmp_path / "gaps.parquet")
    arrays = {"age": [np.nan, 20], "job": ["", "spy"], "pay": [np.nan, 7], "rich": ["yes", ""]}
    np.savez(tmp_path / "gaps.npz", **arrays)
    tables = [read_table(tmp_path / f"gaps.{suffix}") for suffix in ("csv", "parquet", "npz")]
    for table in [*tables, frame, frame.convert_dtypes(), frame.astype({"job": "category"})]:
        bits = FILLED.bits(table)
        assert bits.tolist() == [[1, 1, 0, 1, 0, 0, 0], [0] * 7]
        np.testing.assert_allclose(FILLED.floats(table), [[23 / 62, 0, 1, 0], [2 / 62, 0, 0, 0.07]])
        assert FILLED.labels(table).tolist() == [1, 0]


def test_missing_in_json():
    assert Schema.from_json(FILLED.to_json()) == FILLED
    columns = json.loads(FILLED.to_json())["columns"]
    assert [columns[name].get("missing") for name in columns] == [41, "clerk", None]
    assert "missing" not in SCHEMA.to_json()


def test_schemas_with_missing():
    plain = Schema(SCHEMA.label, {"age": Number(18, 80, (25, 41)), "job": SCHEMA.columns["job"]})
    filled = plain.with_missing({"job": "clerk", "age": 30})
    assert filled.columns["age"] == Number(18, 80, (25, 41), 30)
    assert filled.with_missing({}) == filled
    assert plain.columns["job"].missing is None
    for defaults, message in (
        ({"jobs": "clerk"}, "'jobs', but it must be a feature: did you mean 'job'"),
        ({"job": "spy"}, "column 'job': missing = 'spy'"),
        ({"age": math.nan}, "column 'age': missing = nan, but it must be a finite number"),
        ({"age": "30"}, "finite number"),
        ({3: "30"}, "must be a feature"),
    ):
        with pytest.raises(ParameterError, match=message):
            plain.with_missing(defaults)
    with pytest.raises(ParameterError, match="values list ''"):
        Category(("", "a"), missing="a")
    assert Category(("", "a"), missing=" ").missing == ""


@pytest.mark.parametrize(
    "text", ["", "[]", "1", "{}", "{" * 100_000, '{"format": "hdp_fast.schema"}']
)
def test_what_is_no_schema(text):
    with pytest.raises(ParameterError, match=r"schema is .*Schema\.to_json"):
        Schema.from_json(text)


def public(tmp_path):
    rng = np.random.default_rng(3)
    rows = 1_000
    path = tmp_path / "public.npz"
    np.savez(
        path,
        age=rng.integers(18, 80, rows),
        flag=rng.integers(2, size=rows),
        job=rng.choice(["a", "b", "c"], rows),
        name=[f"person {i}" for i in range(rows)],
        same=np.ones(rows),
        skewed=np.where(rng.random(rows) < 0.95, 0, rng.random(rows)),
        rich=rng.integers(2, size=rows),
    )
    return read_table(path)


def test_from_a_public_table(tmp_path):
    table = public(tmp_path)
    schema = Schema.from_public(table, Label("rich", positive=("1",)), cuts=3)
    columns = schema.columns
    assert "rich" not in columns
    assert columns["flag"] == Number(0, 1, (1,))
    assert columns["job"] == Category(("a", "b", "c"))
    assert columns["name"] == columns["same"] == Ignore()
    ages = table.column("age").numbers()[table.column("age").codes]
    assert (columns["age"].low, columns["age"].high) == (18, 79)
    shares = [(ages >= cut).mean() for cut in columns["age"].cuts]
    np.testing.assert_allclose(shares, [0.75, 0.5, 0.25], atol=0.02)
    # A bit that is 1 for everybody would say nothing, and so would one that is 0.
    features = schema.bits(table)
    assert (features.min(axis=0) < features.max(axis=0)).all()
    assert Schema.from_json(schema.to_json()) == schema


def test_from_public_refuses(tmp_path):
    table = public(tmp_path)
    with pytest.raises(ParameterError, match="column = 'none'"):
        Schema.from_public(table, Label("none", above=1))
    with pytest.raises(ParameterError, match="cuts = 0"):
        Schema.from_public(table, Label("rich", above=0), cuts=0)


def test_words():
    def conjunction(features, values, complement=False):
        parts = {"features": features, "values": values, "complement": complement}
        return {"kind": "conjunction", **parts}

    both = conjunction([1, 2], [1, 0])
    assert SCHEMA.words(both) == "age>=41 and not job=farmer"
    assert SCHEMA.words(both | {"complement": True}) == "not age>=41 or job=farmer"
    assert SCHEMA.words(conjunction([0, 1], [0, 0], True)) == "age>=25"
    assert SCHEMA.words(conjunction([], [])) == "always 1"
    assert SCHEMA.words(conjunction([], [], True)) == "always 0"
    vote = {"kind": "vote", "hypotheses": [conjunction([0], [1]), both, both]}
    assert SCHEMA.words(vote) == "age>=41 and not job=farmer"
    vote["hypotheses"] += [conjunction([3], [1])]
    counted = "2 x (age>=41 and not job=farmer); 1 x (age>=25); 1 x (job=clerk)"
    assert SCHEMA.words(vote) == counted
    some = {"kind": "at_least", "threshold": 1, "features": [0, 1, 3], "values": [1, 1, 0]}
    assert SCHEMA.words(some) == "age>=25 or not job=clerk"
    assert SCHEMA.words(some | {"threshold": 2}) == "at least 2 of: age>=25, age>=41, not job=clerk"
    plane = {"kind": "halfspace", "weights": [1, -2, 0, 0.5], "bias": -0.25}
    said = "-0.25 -2 job=farmer +1 age +0.5 pay, yearly >= 0"
    assert SCHEMA.words(plane) == said
    assert SCHEMA.words(plane | {"bias": 2}) == "always 1"
    assert SCHEMA.words(plane | {"bias": -1.75}) == "always 0"
    assert SCHEMA.words(plane | {"bias": -1.5}).endswith(">= 0")
    for wrong in (
        {},
        {"kind": "parity", "features": [1]},
        conjunction([7], [1]),
        plane | {"weights": [1]},
    ):
        with pytest.raises(ParameterError, match="over 7 bits"):
            SCHEMA.words(wrong)


@pytest.mark.data
def test_census_file():
    folder = os.environ.get("HDP_FAST_DATA")
    read = Path(folder or Path(__file__).parents[3] / "shared" / "data")
    path = read / "census_income_kdd_21cols.csv.gz"
    if not path.exists() and not folder:
        pytest.skip(f"{path} is missing, and HDP_FAST_DATA names no folder")
    table = read_table(path)
    assert (table.rows, len(table.columns)) == (299_285, 21)
    # Columns of the codebook.
    assert set(table.column("sex").texts) == {"female", "male"}
    assert set(table.column("year").texts) == {"1", "2"}
    schema = Schema.from_public(table, Label("income_gt_50k", positive=("1",)))
    assert schema.labels(table).sum() == 18_568
    assert schema.bits(table).shape == (299_285, len(schema.names))


HOSTILE = ["", "1", " 2 ", "1_000", "inf", "-Infinity", "nan", "-nan", "1e999", "4.9e-324", "0x10",
           "1\x00", "\u0663", "1,5", "--1", "\ud800", "1__0", "+.5", "1e", "True",
           "\u2003" + "7"]  # fmt: skip


@pytest.mark.parametrize("cells", [HOSTILE, HOSTILE[:10], *([cell, "0.1", ""] for cell in HOSTILE)])
def test_a_column_reads_each_cell_as_python_reads_it_alone(cells):
    column = Column(tuple(cells), np.arange(len(cells)))
    alone = np.array([columns.to_number(cell) for cell in cells])
    assert column.numbers().tobytes() == alone.tobytes()


def test_a_column_numbers_its_texts_in_order_of_their_first_place():
    column = columns.encode([" b", "a", "b", "", "a ", 1, 1.0, True, None])
    assert column.texts == ("b", "a", "", "1")
    assert column.codes.tolist() == [0, 1, 0, 2, 1, 3, 3, 3, 2]


def test_place_among_says_nothing_of_a_text_that_is_none_of_the_classes():
    column = columns.encode(["b", "a", "b"])
    assert columns.place_among(column, "y", ["a", "b"]).tolist() == [1, 0, 1]
    with pytest.raises(ParameterError) as caught:
        columns.place_among(column, "y", ["a", "c"])
    assert str(caught.value) == (
        "column 'y' holds something else, but every row must hold one of classes"
    )


@pytest.mark.parametrize(("label", "cells", "negative", "texts"), [
    (Label("y", above=1.0), ["0", "3"], None, ("0", "1")),
    (Label("y", positive=("yes",)), [], None, ("no", "yes")),
    (Label("y", positive=("TRUE",)), [], None, ("FALSE", "TRUE")),
    (Label("y", positive=("rich",)), [], None, ("not rich", "rich")),
    (Label("y", positive=("a", "b")), [], None, ("other", "a or b")),
    (Label("y", positive=("rich",)), ["poor", "rich", ""], None, ("poor", "rich")),
    (Label("y", positive=("rich",)), ["poor", "rich"], "none", ("none", "rich")),
])  # fmt: skip
def test_label_texts_follow_public_facts(label, cells, negative, texts):
    public = {"y": columns.encode(cells)} if cells else {}
    assert label_texts(label, public, negative) == texts


@pytest.mark.parametrize(("label", "negative"), [
    (Label("y", above=1.0), "0"),
    (Label("y", positive=("rich",)), " "),
    (Label("y", positive=("rich",)), "rich"),
])  # fmt: skip
def test_label_texts_refuse_a_negative_that_is_none(label, negative):
    with pytest.raises(ParameterError, match="negative = "):
        label_texts(label, {}, negative)
