"""Arrays of numpy from the containers of other libraries: the one place that converts.

A library is looked up only where an object came from it, or where an object speaks Arrow, which
takes a library that reads Arrow. Where the memory permits, nothing is copied.

What a column becomes depends on its public type alone, entry by entry: a column that may lack an
entry is read alike whether it lacks one or not, so that no record decides how others are read.

Whatever code of a container fails, the error shows neither its message nor an entry.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import sys
from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn

import numpy as np

# Imported now, since numpy would do it at first use: a child forked meanwhile would hang.
from numpy import ma
from numpy.typing import NDArray

from ..exceptions import HdpFastError, ParameterError, ShapeError

# What must be called first: a method that a type has in place of entries, and what that makes.
_FIRST = {
    "toarray": "dense",
    "toPandas": "a data frame",
    "collect": "collected",
    "read_all": "a table",
    "to_table": "a table",
}
_READERS = ("pyarrow", "polars")
# What pandas calls a missing entry among objects.
MISSING_KINDS = ("NAType", "NaTType")


class Entries(NamedTuple):
    """The entries of a container, and which of them are missing.

    Attributes:
        values: The entries in a dtype that holds each exactly; 0 where one is missing.
        missing: Whether each is missing. None where no entry can be, by the type of the container,
            or where the dtype has a value of its own for it, such as NaN.
    """

    values: NDArray[Any]
    missing: NDArray[np.bool_] | None = None

    def fill(self) -> NDArray[Any]:
        """The entries, NaN where one is missing; always floats where an integer can be missing."""
        if self.missing is None:
            return self.values
        kind = self.values.dtype if self.values.dtype.kind == "f" else np.float64
        filled: NDArray[Any] = self.values.astype(kind)
        filled[self.missing] = np.nan
        return filled


def to_array(name: str, value: Any) -> NDArray[Any]:
    """The entries of a container, or a scalar, as a plain array, copied only if they must be.

    Columns of nullable, categorical and Arrow-backed numbers are numbers, NaN where one is missing:
    integers and bool among them are float64, whether one is missing or not. In a frame that has
    columns of other kinds, too, every entry is an object.

    Raises:
        ShapeError: Rows differ in length.
        ParameterError: The value, or one of its rows, is masked; it is sparse or lazy; it is a text
            or another object without entries; or its own code fails.
    """
    return to_entries(name, value).fill()


def to_entries(name: str, value: Any) -> Entries:
    """The entries as `to_array` reads them, but values and mask apart, never by way of floats.

    Raises: the errors of `to_array`.
    """
    if type(value) is np.ndarray:
        # Where a processor reads entries: what came by a network may lie anywhere.
        return Entries(value if value.flags.aligned else value.copy())
    read: Entries = _attempt(name, value, lambda: _without_mask(name, _read(name, value)))
    return read if read.values.flags.aligned else read._replace(values=read.values.copy())


def to_categories(name: str, value: Any) -> tuple[Any, NDArray[Any]] | None:
    """Different entries of a column of pandas or pyarrow, and the place of each one among them.

    They are the declared categories, or the texts of a column of Arrow. A missing entry has the
    place -1. None where the type of the column has neither.

    Raises: ParameterError if its own code fails.
    """
    made: tuple[Any, NDArray[Any]] | None = _attempt(name, value, lambda: _encode(value))
    return made


def _encode(value: Any) -> tuple[Any, NDArray[Any]] | None:
    if _is_instance(value, "pandas", "Series", "Index", "api.extensions.ExtensionArray"):
        dtype, entries = value.dtype, getattr(value, "array", value)
        if isinstance(dtype, sys.modules["pandas"].CategoricalDtype):
            codes = np.asarray(entries.codes)
            return None if dtype.categories is None else (dtype.categories, codes)
        if getattr(dtype, "storage", "") != "pyarrow":
            return None
        value = entries.__arrow_array__()
    if not _is_instance(value, "pyarrow", "Array", "ChunkedArray"):
        return None
    types = sys.modules["pyarrow"].types
    if types.is_string(value.type) or types.is_large_string(value.type):
        value = value.dictionary_encode()
    if not types.is_dictionary(value.type):
        return None
    if hasattr(value, "chunks"):  # Each chunk may have a dictionary of its own.
        value = value.unify_dictionaries().combine_chunks()
    places = np.asarray(value.indices.fill_null(0)).astype(np.int64)
    places[np.asarray(value.indices.is_null())] = -1
    return value.dictionary, places


def refuse_wide(name: str, dtype: Any) -> None:
    """Refuse long doubles by their dtype: float64 would round them, and few machines have them.

    Raises: ParameterError.
    """
    if _is_wide(dtype):
        raise ParameterError(f"{name} has dtype {dtype}, but it must fit float64: convert it first")


def _is_wide(dtype: Any) -> bool:
    kind = dtype.kind if isinstance(dtype, np.dtype) else ""
    return kind in ("f", "c") and bool(dtype.itemsize > (8 if kind == "f" else 16))


def to_frame(name: str, value: Any) -> Any:
    """A table of pyarrow or polars in place of any other object that speaks Arrow alone.

    Raises: ParameterError if no library that reads Arrow is installed, or reading fails.
    """
    if not _speaks_arrow_alone(value):
        return value
    return _attempt(name, value, lambda: _read_arrow(name, value))


def to_readable(name: str, value: Any) -> Any:
    """The value itself where other libraries read it as this one does, else a table or an array.

    Raises: the errors of `to_array`, but none for what is no container, sparse or of a wrong shape;
    ParameterError for dtype longdouble.
    """
    if isinstance(value, np.ndarray) or _unread(value) not in (None, "toarray"):
        made = to_array(name, value)
        refuse_wide(name, made.dtype)
        return made
    refuse_masked_rows(name, value)
    if _is_instance(value, "pandas", "DataFrame", "Series"):
        for dtype in value.dtypes if value.ndim == 2 else [value.dtype]:
            refuse_wide(name, dtype)
    if _speaks_arrow_alone(value):
        return to_frame(name, value)
    has_memory = hasattr(type(value), "__dlpack__") and not hasattr(type(value), "__array__")
    return to_array(name, value) if has_memory else value


def blank_missing(value: Any) -> Any:
    """The value with NaN in place of what stands for a missing number among objects.

    A value that holds no objects, by its type, is returned as it is.
    """
    if _is_instance(value, "pandas", "DataFrame"):
        places = [place for place, dtype in enumerate(value.dtypes) if dtype.kind == "O"]
        made = value.copy(deep=False) if places else value
        for place in places:
            made.isetitem(place, _blank_entries(value.iloc[:, place].to_numpy()))
        return made
    entries = value
    if isinstance(value, list | tuple):
        with contextlib.suppress(ValueError):  # Rows that differ in length.
            entries = np.asarray(value)
    is_object = isinstance(entries, np.ndarray) and entries.dtype == object
    return _blank_entries(entries) if is_object else value


def _blank_entries(entries: NDArray[Any]) -> NDArray[Any]:
    made = entries.astype(object)
    for place, entry in enumerate(entries.flat):
        if entry is None or type(entry).__name__ in MISSING_KINDS:
            made.flat[place] = np.nan
    return made


def is_lazy(value: Any) -> bool:
    """Whether the value is a query of polars, whose columns are not known before it has run."""
    return _is_instance(value, "polars", "LazyFrame")


def _refuse_by_name(name: str, value: Any) -> None:
    """Refuse what numpy would take for a single object, or for something that it is not."""
    kind = type(value)
    if isinstance(value, ma.MaskedArray):
        _refuse_mask(name)
    if isinstance(value, str | bytes):
        refuse_type(name, value)
    method = _unread(value)
    if method:
        form = f"sparse {kind.__name__}" if method == "toarray" else kind.__name__
        rule = f"it must be {_FIRST[method]}: {name}.{method}()"
        raise ParameterError(f"{name} is a {form}, but {rule}")


def refuse_type(name: str, value: Any) -> NoReturn:
    """Refuse what is no container.

    Raises: ParameterError.
    """
    if hasattr(type(value), "map_blocks"):
        rule = "it must be in memory here: statistics.Job and describe take records in parts"
        raise ParameterError(f"{name} is of type Chunks, but {rule}")
    kind = "None" if value is None else f"of type {type(value).__name__}"
    raise ParameterError(f"{name} is {kind}, but it must be an array, a data frame or a list")


def _unread(value: Any) -> str | None:
    """The method that must be called before there are entries, if there is one."""
    kind = type(value)
    if hasattr(kind, "__array__"):
        return None
    methods = [method for method in _FIRST if hasattr(kind, method)]
    # A stream of Arrow may have a method to_table that is something else.
    return methods[0] if methods and not (methods == ["to_table"] and _speaks_arrow(kind)) else None


def _refuse_mask(name: str) -> NoReturn:
    rule = "masked entries have no value: fill them first"
    raise ParameterError(f"{name} is a masked array, but {rule}")


def refuse_masked_rows(name: str, value: Any) -> None:
    """Refuse a list of masked arrays, of which numpy would show what they hide.

    Raises: ParameterError.
    """
    rows = value if isinstance(value, list | tuple) else ()
    if any(isinstance(row, ma.MaskedArray) for row in rows):
        _refuse_mask(name)


def _from_rows(name: str, rows: list[Any] | tuple[Any, ...]) -> NDArray[Any]:
    refuse_masked_rows(name, rows)
    try:
        values = np.asarray(rows)
    except ValueError:
        raise ShapeError(f"{name} has rows that differ in length") from None
    if not _is_wide(values.dtype):
        return values
    # A list has no dtype by which it could be refused: an entry beyond float64 is infinite.
    with np.errstate(all="ignore"):
        return values.astype(np.float64 if values.dtype.kind == "f" else np.complex128)


def _attempt(name: str, value: Any, read: Callable[[], Any]) -> Any:
    """What `read` returns; the code of a container may raise anything, with entries in it."""
    try:
        return read()
    except (HdpFastError, MemoryError):
        raise
    except Exception:
        kind = type(value).__name__
    rule = "it must be: copy it to an array of numpy first"
    raise ParameterError(f"{name} is of type {kind}, which can't be read, but {rule}")


def _read(name: str, value: Any) -> Entries:
    _refuse_by_name(name, value)
    if isinstance(value, list | tuple):
        return Entries(_from_rows(name, value))
    if _is_instance(
        value, "pandas", "DataFrame", "Series", "Index", "api.extensions.ExtensionArray"
    ):
        return _from_pandas(value)
    if _is_instance(value, "polars", "DataFrame", "Series"):
        return _from_polars(value)
    if _is_instance(value, "pyarrow", "Table", "RecordBatch", "Array", "ChunkedArray"):
        return _from_pyarrow(value)
    if _speaks_arrow_alone(value):
        return _read(name, _read_arrow(name, value))
    if hasattr(type(value), "__dlpack__") and not hasattr(type(value), "__array__"):
        return Entries(np.from_dlpack(value))
    # With any class, so that a mask shows.
    return Entries(np.asanyarray(value))


def _without_mask(name: str, entries: Entries) -> Entries:
    if isinstance(entries.values, ma.MaskedArray):
        _refuse_mask(name)
    return Entries(np.asarray(entries.values), entries.missing)


def _join(columns: list[Entries]) -> Entries:
    """Columns as a matrix: of the common type of numbers, or of times, or else of objects."""
    kinds = {column.values.dtype.kind for column in columns}
    if not (kinds <= set("buif") or kinds in ({"M"}, {"m"})):
        return Entries(np.stack([_to_objects(column) for column in columns], axis=1))
    values = np.stack([column.values for column in columns], axis=1)
    if all(column.missing is None for column in columns):
        return Entries(values)
    missing = np.zeros(values.shape, bool)
    for place, column in enumerate(columns):
        if column.missing is not None:
            missing[:, place] = column.missing
    return Entries(values, missing)


def _to_objects(column: Entries) -> NDArray[np.object_]:
    """Each entry as an object of its own, NaN where a number is missing."""
    objects: NDArray[np.object_] = column.values.astype(object)
    if column.missing is not None:
        objects[column.missing] = np.nan
    return objects


def _from_pandas(value: Any) -> Entries:
    if value.ndim == 1:
        return _from_pandas_column(value)
    kinds = [_numpy_dtype(dtype) for dtype in value.dtypes]
    is_plain = all(isinstance(dtype, np.dtype) for dtype in value.dtypes)
    # numpy makes objects of bool beside numbers, and no times of times without an offset.
    if not kinds or (is_plain and (len(set(kinds)) == 1 or not _are_numeric(*kinds))):
        return Entries(np.asarray(value))
    places = range(len(kinds))
    if _are_numeric(*kinds):
        return _join([_from_pandas_column(value.iloc[:, place]) for place in places])
    columns = [(value.iloc[:, place], _are_numeric(kinds[place])) for place in places]
    return _join(
        [
            _from_pandas_column(column) if is_number else Entries(np.asarray(column, object))
            for column, is_number in columns
        ]
    )


def _from_pandas_column(column: Any) -> Entries:
    pandas = sys.modules["pandas"]
    dtype, kind = column.dtype, _numpy_dtype(column.dtype)
    if isinstance(dtype, np.dtype) or not _are_numeric(kind):
        return Entries(np.asarray(column))
    if isinstance(dtype, pandas.SparseDtype):
        return Entries(np.asarray(column.to_numpy(dtype=kind)))
    entries = getattr(column, "array", column)
    if isinstance(dtype, pandas.ArrowDtype):
        return _from_pyarrow_column(entries.__arrow_array__())
    if isinstance(dtype, pandas.CategoricalDtype):
        return _take(_from_pandas_column(dtype.categories).values, entries.codes)
    if kind.kind == "f":
        return Entries(np.asarray(entries.to_numpy(dtype=kind, na_value=np.nan)))
    missing = np.asarray(entries.isna(), bool)
    return Entries(np.asarray(entries.to_numpy(dtype=kind, na_value=0)), missing)


def _take(categories: NDArray[Any], codes: Any) -> Entries:
    """The numbers of categories by their places, of which -1 is none."""
    places = np.asarray(codes, np.intp)
    missing = places < 0
    # The last number stands for none, whose place is -1.
    values = np.append(categories, np.zeros(1, categories.dtype))[places]
    if categories.dtype.kind != "f":
        return Entries(values, missing)
    values[missing] = np.nan
    return Entries(values)


def _numpy_dtype(dtype: Any) -> np.dtype[Any]:
    """The dtype of numpy that holds all entries of a column but the missing ones."""
    pandas = sys.modules["pandas"]
    if isinstance(dtype, np.dtype):
        return dtype
    if isinstance(dtype, pandas.CategoricalDtype):
        return (
            np.dtype(object) if dtype.categories is None else _numpy_dtype(dtype.categories.dtype)
        )
    if isinstance(dtype, pandas.SparseDtype):
        return _numpy_dtype(dtype.subtype)
    if "dictionary" in str(dtype) and isinstance(dtype, pandas.ArrowDtype):
        return _numpy_dtype(pandas.ArrowDtype(dtype.pyarrow_dtype.value_type))
    # Nullable and Arrow-backed columns know it.
    known = getattr(dtype, "numpy_dtype", None)
    return known if isinstance(known, np.dtype) else np.dtype(object)


def _are_numeric(*dtypes: np.dtype[Any]) -> bool:
    return all(dtype.kind in "buif" for dtype in dtypes)


def _from_polars(value: Any) -> Entries:
    polars = sys.modules["polars"]
    if isinstance(value, polars.Series):
        return _from_polars_column(value)
    columns = [_from_polars_column(column) for column in value.iter_columns()]
    return _join(columns) if columns else Entries(np.asarray(value))


def _from_polars_column(column: Any) -> Entries:
    polars = sys.modules["polars"]
    kind = column.dtype
    if kind == polars.Boolean or kind.is_integer():
        missing = np.asarray(column.is_null())
        values = column.fill_null(False if kind == polars.Boolean else 0)
        return Entries(np.asarray(values), missing)
    if kind == polars.Array:
        leaf = functools.reduce(lambda inner, _: inner.inner, kind.shape, kind)
        if leaf == polars.Boolean or leaf.is_integer():
            column = column.cast(polars.Array(polars.Float64, kind.shape))
    values = np.asarray(column)
    # Texts are objects where one is missing, and so they are always.
    return Entries(values.astype(object) if values.dtype.kind == "U" else values)


def _from_pyarrow(value: Any) -> Entries:
    pyarrow = sys.modules["pyarrow"]
    if not isinstance(value, pyarrow.Table | pyarrow.RecordBatch):
        return _from_pyarrow_column(value)
    columns = [_from_pyarrow_column(column) for column in value.itercolumns()]
    return _join(columns) if columns else Entries(np.empty((len(value), 0)))


def _from_pyarrow_column(column: Any) -> Entries:
    types = sys.modules["pyarrow"].types
    if types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    is_bool = types.is_boolean(column.type)
    if not (is_bool or types.is_integer(column.type)):
        return Entries(np.asarray(column))
    missing = np.asarray(column.is_null())
    # Filled, since pyarrow makes floats or objects of what lacks an entry.
    return Entries(np.asarray(column.fill_null(False if is_bool else 0)), missing)


def _speaks_arrow_alone(value: Any) -> bool:
    return _speaks_arrow(type(value)) and not hasattr(type(value), "__array__")


def _speaks_arrow(kind: type) -> bool:
    return hasattr(kind, "__arrow_c_stream__") or hasattr(kind, "__arrow_c_array__")


def _read_arrow(name: str, value: Any) -> Any:
    """A table, or a column alone, of the first library that reads Arrow."""
    for module in _READERS:
        try:
            library = importlib.import_module(module)
        except ImportError:
            continue
        return _to_polars(library, value) if module == "polars" else _to_pyarrow(library, value)
    kind = type(value).__name__
    rule = "nothing that is installed reads Arrow: install pyarrow or polars"
    raise ParameterError(f"{name} is a {kind}, but {rule}")


def _to_pyarrow(pyarrow: Any, value: Any) -> Any:
    is_stream = hasattr(type(value), "__arrow_c_stream__")
    column = pyarrow.chunked_array(value if is_stream else [pyarrow.array(value)])
    is_table = pyarrow.types.is_struct(column.type)
    return pyarrow.Table.from_struct_array(column) if is_table else column


def _to_polars(polars: Any, value: Any) -> Any:
    column = polars.Series(value)
    return column.struct.unnest() if isinstance(column.dtype, polars.Struct) else column


def _is_instance(value: Any, module: str, *names: str) -> bool:
    """Whether the value is of one of these classes; no library is imported for it."""
    library = sys.modules.get(module)
    # A library that is still being imported has not made its classes yet.
    kinds: Any = tuple(functools.reduce(_look_up, name.split("."), library) for name in names)
    return isinstance(value, kinds)


def _look_up(owner: Any, name: str) -> Any:
    return getattr(owner, name, ())
