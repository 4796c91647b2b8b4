"""Arrays of numpy from the containers of other libraries: the one place that converts.

A library is looked up only where an object came from it, or where an object speaks Arrow, which
takes a library that reads Arrow. Where the memory permits, nothing is copied.

Whatever code of a container fails, the error shows neither its message nor an entry.
"""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Callable
from typing import Any, NoReturn

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


def to_array(name: str, value: Any) -> NDArray[Any]:
    """The entries of a container, or a scalar, as a plain array, copied only if they must be.

    Columns of nullable, categorical and Arrow-backed numbers are numbers, NaN where one is missing.

    Raises:
        ShapeError: Rows differ in length.
        ParameterError: The value, or one of its rows, is masked; it is sparse or lazy; it is a text
            or another object without entries; or its own code fails.
    """
    if type(value) is np.ndarray:
        return value
    read: NDArray[Any] = _attempt(name, value, lambda: _without_mask(name, _read(name, value)))
    return read


def to_frame(name: str, value: Any) -> Any:
    """A table of pyarrow or polars in place of any other object that speaks Arrow alone.

    Raises: ParameterError if no library that reads Arrow is installed, or reading fails.
    """
    if not _speaks_arrow_alone(value):
        return value
    return _attempt(name, value, lambda: _read_arrow(name, value))


def to_readable(name: str, value: Any) -> Any:
    """The value itself where other libraries read it as this one does, else a table or an array.

    Raises: the errors of `to_array`, but none for what is no container, sparse or of a wrong shape.
    """
    if isinstance(value, np.ndarray) or _unread(value) not in (None, "toarray"):
        return to_array(name, value)
    refuse_masked_rows(name, value)
    if _speaks_arrow_alone(value):
        return to_frame(name, value)
    has_memory = hasattr(type(value), "__dlpack__") and not hasattr(type(value), "__array__")
    return to_array(name, value) if has_memory else value


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
        return np.asarray(rows)
    except ValueError:
        raise ShapeError(f"{name} has rows that differ in length") from None


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


def _read(name: str, value: Any) -> NDArray[Any]:
    _refuse_by_name(name, value)
    if isinstance(value, list | tuple):
        return _from_rows(name, value)
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
        return np.from_dlpack(value)
    # With any class, so that a mask shows.
    return np.asanyarray(value)


def _without_mask(name: str, values: NDArray[Any]) -> NDArray[Any]:
    if isinstance(values, ma.MaskedArray):
        _refuse_mask(name)
    return np.asarray(values)


def _from_pandas(value: Any) -> NDArray[Any]:
    """Numbers of all columns' common type if all columns are numbers, else what numpy makes."""
    if value.ndim == 1:
        return _from_pandas_column(value)
    kinds = [_numpy_dtype(dtype) for dtype in value.dtypes]
    is_plain = all(isinstance(dtype, np.dtype) for dtype in value.dtypes)
    # numpy does as well, except that it makes objects of bool beside numbers.
    if not kinds or not _are_numeric(*kinds) or (is_plain and len(set(kinds)) == 1):
        return np.asarray(value)
    columns = [_from_pandas_column(value.iloc[:, place]) for place in range(len(kinds))]
    return np.stack(columns, axis=1)


def _from_pandas_column(column: Any) -> NDArray[Any]:
    kind = _numpy_dtype(column.dtype)
    if isinstance(column.dtype, np.dtype) or not _are_numeric(kind):
        return np.asarray(column)
    if not column.isna().any():
        return np.asarray(column.to_numpy(dtype=kind))
    wide = kind if kind.kind == "f" else np.dtype(np.float64)
    return np.asarray(column.to_numpy(dtype=wide, na_value=np.nan))


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


def _from_polars(value: Any) -> NDArray[Any]:
    polars = sys.modules["polars"]
    # A missing bool would make objects of the others.
    if isinstance(value, polars.Series):
        missing = value.dtype == polars.Boolean and value.null_count()
        return np.asarray(value.cast(polars.Float64) if missing else value)
    odd = [one for one in value.iter_columns() if one.dtype == polars.Boolean and one.null_count()]
    wide = [one.cast(polars.Float64) for one in odd]
    return np.asarray(value.with_columns(wide) if wide else value)


def _from_pyarrow(value: Any) -> NDArray[Any]:
    pyarrow = sys.modules["pyarrow"]
    if not isinstance(value, pyarrow.Table | pyarrow.RecordBatch):
        return np.asarray(_widen(value))
    columns = [np.asarray(_widen(column)) for column in value.itercolumns()]
    return np.stack(columns, axis=1) if columns else np.empty((len(value), 0))


def _widen(column: Any) -> Any:
    """The column, in which a missing bool would make objects of the others."""
    pyarrow = sys.modules["pyarrow"]
    missing = pyarrow.types.is_boolean(column.type) and column.null_count
    return column.cast(pyarrow.uint8()) if missing else column


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
