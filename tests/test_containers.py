"""The private module that reads containers: no needless copy, no needless import, no leak."""

import importlib
import math
import subprocess
import sys
import traceback
import types
from functools import partial

import numpy as np
import pytest
from cases import each_case
from containers import (
    COLUMNS,
    WHOLE,
    WithBatch,
    WithMemory,
    WithStream,
    frame_of,
    in_arrow,
    in_pandas,
    in_polars,
)

from hdp_fast import adaptation, learners, local
from hdp_fast._support.containers import to_array, to_entries, to_readable
from hdp_fast._support.feature_names import check_names, names_of
from hdp_fast._support.numbers import finite_rows
from hdp_fast._support.validate import array, bit_entries, bits, numbers
from hdp_fast.exceptions import ParameterError, ShapeError

X = np.random.default_rng(2).integers(0, 2, (30, 3))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_plain_array_passes_through_untouched(dtype):
    plain = X.astype(dtype)
    assert array("X", plain) is plain
    assert numbers("X", plain) is plain
    assert np.shares_memory(finite_rows(plain), plain)
    assert np.shares_memory(
        learners.PrivateSGD(loss="logistic", epsilon=math.inf).prepare(plain).entries, plain
    )
    assert np.shares_memory(adaptation.domains.validate_features("X_target", plain), plain)


@pytest.mark.parametrize(
    "view",
    [lambda X: X.T, lambda X: X[::-2], lambda X: X.view(np.matrix), WithMemory, memoryview],
    ids=["transposed", "strides", "subclass", "DLPack", "buffer"],
)
def test_memory_is_shared_where_the_layout_permits(view):
    plain = X.astype(np.float64)
    read = to_array("X", view(plain))
    assert type(read) is np.ndarray
    assert np.shares_memory(read, plain)


def test_columns_of_frames_are_not_copied():
    polars, pandas = pytest.importorskip("polars"), pytest.importorskip("pandas")
    values = np.arange(9.0)
    column = pandas.Series(values, copy=False)
    assert np.shares_memory(to_array("y", column), column.to_numpy())
    series = polars.Series(values)
    assert np.shares_memory(to_array("y", series), series.to_numpy(allow_copy=False))


def test_bits_and_integers_are_not_copied_before_they_are_packed():
    for plain in (X, X.astype(bool), np.asfortranarray(X.astype(np.int8))):
        assert bit_entries("X", plain) is plain


def test_floats_become_bits_in_parts(monkeypatch):
    monkeypatch.setattr("hdp_fast._support.validate._PART", 4)
    for layout in (np.ascontiguousarray, np.asfortranarray):
        np.testing.assert_array_equal(bit_entries("X", layout(X.astype(np.float64))), X)
    spoiled = X.astype(np.float64)
    for wrong in (0.5, 2.0, -1.0, np.nan, np.inf, 5e-324):
        spoiled[-1, -1] = wrong
        with pytest.raises(ParameterError, match=r"^X holds something else"):
            bit_entries("X", spoiled)
    np.testing.assert_array_equal(bits("y", np.array([-0.0, 1.0], np.float16)), [0, 1])


def test_no_library_is_imported_for_an_array():
    code = """
import sys
import numpy as np
from hdp_fast import gf2, learners, statistics
X = np.eye(4)
gf2.rank(X), gf2.rank(X.tolist())
learners.PrivateSGD(loss="logistic", steps=1, noise_multiplier=1.0).learn(X, X[:, 0])
statistics.mean(X, low=0, high=1, epsilon=1.0)
print(sorted({"pandas", "polars", "pyarrow", "scipy", "sklearn"} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# Libraries that are not there ---------------------------------------------------------------------


def hide(monkeypatch, *hidden):
    real = importlib.import_module

    def imported(name, *rest):
        if name in hidden:
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr("hdp_fast._support.containers.importlib.import_module", imported)


@pytest.mark.parametrize("hidden", [(), ("pyarrow",)], ids=["pyarrow", "polars"])
def test_arrow_is_read_by_what_is_installed(monkeypatch, hidden):
    pytest.importorskip("polars")
    table, column = in_arrow(chunks=2)(X), in_arrow()(X[:, 0])
    batch, single = in_arrow(batch=True)(X), in_arrow(batch=True)(X[:, 0])
    hide(monkeypatch, *hidden)
    for some in (WithStream(table), WithBatch(batch)):
        np.testing.assert_array_equal(to_array("X", some), X)
    for some in (WithStream(column), WithBatch(single)):
        np.testing.assert_array_equal(to_array("y", some), X[:, 0])


def test_without_a_reader_of_arrow_the_error_says_what_to_install(monkeypatch):
    table = WithStream(in_arrow()(X))
    hide(monkeypatch, "pyarrow", "polars")
    with pytest.raises(ParameterError, match=r"X is a WithStream, .*: install pyarrow or polars"):
        to_array("X", table)


def test_a_library_that_is_blocked_is_no_library(monkeypatch):
    for name in ("pandas", "polars", "pyarrow"):
        monkeypatch.setitem(sys.modules, name, None)
    np.testing.assert_array_equal(to_array("X", X.tolist()), X)
    monkeypatch.setitem(sys.modules, "pandas", types.ModuleType("pandas"))
    np.testing.assert_array_equal(to_array("X", memoryview(X)), X)


# Names --------------------------------------------------------------------------------------------


class Relation(WithStream):
    """A relation as databases have it: columns by name, entries by Arrow alone."""

    @property
    def columns(self):
        return self.values.column_names


def test_columns_of_a_relation_are_put_in_order_by_name():
    relation = Relation(in_arrow()(X))
    assert names_of(relation) == ("c0", "c1", "c2")
    np.testing.assert_array_equal(
        to_array("X", check_names(("c2", "c0", "c1"), relation)), X[:, [2, 0, 1]]
    )
    with pytest.raises(ParameterError, match="lacks 'age'"):
        check_names(("age",), relation)


@pytest.mark.filterwarnings("error")
def test_a_lazy_frame_is_not_resolved_for_its_names():
    assert names_of(in_polars("Int64")(X).lazy()) is None


def test_a_column_is_not_taken_for_a_method():
    frame = in_pandas("Int64")(X).set_axis(["toarray", "collect", "read_all"], axis=1)
    np.testing.assert_array_equal(to_array("X", frame), X)
    assert to_readable("X", frame) is frame


# What a column becomes ----------------------------------------------------------------------------


def same_entries(one, other):
    """Whether two arrays hold the same entries, of one dtype and, in objects, of one type each."""
    if one.dtype != other.dtype or one.shape != other.shape:
        return False
    if one.dtype.kind != "O":
        return np.array_equal(one, other)
    pairs = list(zip(one.ravel(), other.ravel(), strict=True))
    return all(type(a) is type(b) and (a == b or a is b) for a, b in pairs)


@each_case("beside", [None, "integers", "texts"])
@each_case("name", COLUMNS)
def test_one_missing_entry_changes_neither_the_dtype_nor_another_entry(name, beside):
    make, entries = COLUMNS[name]
    for place in range(len(entries)):
        before, after = (
            frame_of(name, make(some, sorted(set(entries))), beside)
            for some in (entries, [*entries[:place], None, *entries[place + 1 :]])
        )
        for whole, part in (
            (to_array("X", before), to_array("X", after)),
            (to_entries("X", before).values, to_entries("X", after).values),
        ):
            rest = np.arange(len(entries)) != place
            assert whole.dtype == part.dtype
            assert same_entries(whole[rest], part[rest])


def test_integers_are_read_exactly_beside_missing_ones():
    large = [2**60 + 1, None, -(2**62) - 1]
    for name in WHOLE:
        values, missing = to_entries("ids", WHOLE[name](large, [large[0], large[2]]))
        assert values[[0, 2]].tolist() == [large[0], large[2]]
        assert missing.tolist() == [False, True, False]


@pytest.mark.skipif(np.finfo(np.longdouble).bits == 64, reason="long doubles are doubles")
@pytest.mark.parametrize("dtype", [np.longdouble, np.clongdouble])
def test_long_doubles_are_refused_by_their_dtype(dtype):
    pandas, wide = pytest.importorskip("pandas"), X.astype(dtype)
    for read in (array, to_readable):
        with pytest.raises(ParameterError, match=r"^X has dtype c?.*, but it must fit float64"):
            read("X", wide)
    with pytest.raises(ParameterError, match="must fit float64"):
        to_readable("X", pandas.DataFrame(wide))
    # A list has no dtype, and no entry of it decides about others.
    assert array("X", [*wide[0]]).dtype.itemsize in (8, 16)


# Hostile objects ----------------------------------------------------------------------------------

SECRET = "secret 471"


def raising(*methods):
    """An object whose methods of these names raise an error that shows an entry."""

    def fail(self, *_, **__):
        raise RuntimeError(SECRET)

    return type("Hostile", (), dict.fromkeys(methods, fail))()


class Meta(type):
    def __getattr__(cls, name):
        raise RuntimeError(SECRET)


class Pretender:
    """It says that it is an array."""

    @property
    def __class__(self):
        return np.ndarray


HOSTILE = {
    "__array__": raising("__array__"),
    "__dlpack__": raising("__dlpack__", "__dlpack_device__"),
    "DLPack without a device": raising("__dlpack__"),
    "__arrow_c_stream__": raising("__arrow_c_stream__"),
    "__arrow_c_array__": raising("__arrow_c_array__"),
    "a sequence": raising("__len__", "__getitem__"),
    "every attribute": raising("__getattr__"),
    "a pretender": Pretender(),
    "a list of such": [raising("__array__")],
    "a list that can't be walked": type("Rows", (list,), {"__iter__": raising("x").x.__func__})(),
    "a capsule that is none": type("No", (), {"__arrow_c_stream__": lambda self, x=None: 7})(),
    "a text": SECRET,
    "a class": np.ndarray,
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", HOSTILE)
def test_code_of_a_container_that_fails_shows_nothing(name):
    for read in (
        partial(array, "X"),
        learners.PrivateSGD(loss="logistic", epsilon=math.inf).prepare,
    ):
        with pytest.raises(ParameterError, match=r"^X is ") as error:
            read(HOSTILE[name])
        assert SECRET not in "".join(traceback.format_exception(error.value))


def test_a_class_that_fails_shows_nothing():
    with pytest.raises(ParameterError, match=r"^X is of type Odd, which can't be read"):
        array("X", Meta("Odd", (), {})())


def test_an_object_that_fails_counts_as_the_low_end_on_a_device():
    values = [0.5, HOSTILE["__array__"], HOSTILE["every attribute"]]
    assert len(local.BinaryResponse(1.0, (0.0, 1.0)).sample(values)) == 3


def test_memory_that_ends_is_an_error_of_memory():
    def fail(self, *_, **__):
        raise MemoryError

    with pytest.raises(MemoryError):
        array("X", type("Large", (), {"__array__": fail})())


class Liar(np.ndarray):
    """An array that lies about itself."""

    shape = property(lambda self: (9, 9))
    dtype = property(lambda self: np.dtype(object))

    def __len__(self):
        return 10**9

    def __getitem__(self, place):
        raise RuntimeError(SECRET)

    def __array__(self, dtype=None, copy=None):
        raise RuntimeError(SECRET)

    def __array_ufunc__(self, *_, **__):
        raise RuntimeError(SECRET)

    def __array_function__(self, *_, **__):
        raise RuntimeError(SECRET)


def test_what_a_subclass_says_of_itself_does_not_count():
    np.testing.assert_array_equal(bit_entries("X", X.view(Liar)), X)


def test_a_mask_is_seen_wherever_it_comes_from():
    masked = np.ma.masked_array(X, X == 1)

    class Holder:
        def __array__(self, dtype=None, copy=None):
            return masked

    for some in (masked, Holder(), [*masked], [np.ma.masked]):
        with pytest.raises(ParameterError, match="X is a masked array"):
            array("X", some)


def test_a_number_alone_has_no_shape_and_three_dimensions_stay():
    assert array("X", 3.5).shape == ()
    assert array("X", np.array(None)).dtype == object
    assert bit_entries("X", np.ones((2, 2, 2))).shape == (2, 2, 2)
    with pytest.raises(ShapeError, match=r"shape \(\)"):
        bits("y", np.array(1.0))


def test_empty_frames_have_the_shape_that_they_show():
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    pyarrow = pytest.importorskip("pyarrow")
    assert to_array("X", pandas.DataFrame(index=range(3))).shape == (3, 0)
    assert to_array("X", pandas.DataFrame(columns=["a"]).astype("boolean")).shape == (0, 1)
    assert to_array("X", polars.DataFrame({"a": []})).shape == (0, 1)
    assert to_array("X", pyarrow.table({"a": pyarrow.array([], "bool")})).shape == (0, 1)
