"""Parts of the records on their way to a caller's code: each a copy that reveals no other row.

An array, a sparse matrix or a data frame is more than its rows. It has memory that other parts
share, and it may carry what belongs to the whole table, such as the categories that occur in it.
Code that changes its part in place, or reads what comes with it, must neither change another part
nor learn anything about it.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.lib.format import drop_metadata
from numpy.typing import ArrayLike, NDArray

from .._support.numbers import floats, real_array
from .._support.validate import array
from ..exceptions import ParameterError, ShapeError

_NUMBERS = (bool, int, float, np.bool_, np.integer, np.floating, type(None))
# Types of entries that cannot be changed in place.
_CONSTANTS = {str, bytes, bool, int, float, type(None)}


def check_features(name: str, value: Any) -> Any:
    """A data frame or a sparse matrix as it is, and everything else as an array.

    Data frames are those of pandas and polars.

    It raises ShapeError and ParameterError as check_values does, and ParameterError for columns of
    a data frame that cannot be copied for one member alone.
    """
    if _is_instance(value, "pandas", "DataFrame", "Series"):
        _check_columns(name, value)
        return value
    if _is_instance(value, "polars", "DataFrame", "Series"):
        return value
    records = value.tocsr() if hasattr(value, "tocsr") else check_values(name, value)
    if not records.shape:
        raise ShapeError(f"{name} has no dimension, but it must have rows")
    return records


def check_values(name: str, value: ArrayLike) -> NDArray[Any]:
    """An array of the declared dtype, or of float64 if none is declared. Texts become objects.

    One entry, such as a float among integers in a list or the longest of all texts, must not decide
    what everybody's entries become. A number beyond float64 becomes infinite. It raises ShapeError
    for rows that differ in length, and ParameterError for masked arrays and for lists that hold
    neither numbers alone nor texts alone.
    """
    entries = array(name, value)
    if hasattr(value, "dtype"):
        return entries.astype(object) if entries.dtype.kind in "SU" else entries
    if entries.dtype.kind in "biuf":
        return floats(entries)
    if entries.dtype.kind != "O":
        entries = np.asarray(value, dtype=object)
    if _all_of(str, entries.flat):
        return entries
    if _all_of(_NUMBERS, entries.flat):
        return floats(real_array(name, entries))
    rule = "without a dtype it must hold numbers alone or texts alone"
    raise ParameterError(f"{name} holds something else, but {rule}: make an array or a data frame")


def _all_of(kinds: Any, entries: Iterable[Any]) -> bool:
    return all(issubclass(kind, kinds) for kind in set(map(type, entries)))


def _check_columns(name: str, value: Any) -> None:
    pandas = sys.modules["pandas"]
    for dtype in value.dtypes if value.ndim == 2 else [value.dtype]:
        if isinstance(dtype, pandas.CategoricalDtype) and not dtype.ordered:
            categories = dtype.categories.astype(object)
            if not (_all_of(str, categories) or _all_of(_NUMBERS, categories)):
                rule = "categories without a declared order must be numbers alone or texts alone"
                raise ParameterError(f"{name} has a column of other categories, but {rule}")
        if isinstance(dtype, pandas.ArrowDtype) and "dictionary<" in str(dtype)[1:]:
            rule = "no list or structure may hold entries of a dictionary"
            raise ParameterError(f"{name} has a column of dtype {dtype}, but {rule}")


def take_rows(X: Any, indices: Any) -> Any:
    """Some rows of what check_features returned."""
    return X.iloc[indices] if hasattr(X, "iloc") else X[indices]


def count_rows(X: Any) -> int:
    """The number of rows of what check_features returned."""
    return int(X.shape[0])


def copy_rows(part: Any, *, public: bool) -> Any:
    """A copy of some rows that shares nothing with anybody; it is writable and C-contiguous.

    A data frame loses its index and attrs. If all rows of the table are public, a column keeps its
    categories. Otherwise a category that does not occur is dropped, and the order of the others,
    unless it is declared, is that of the part alone. Categories that are numbers are float64, and
    texts are objects, whatever the whole table has. Copying an entry may raise, so that a member
    must call this in silence.
    """
    if _is_instance(part, "pandas", "Series"):
        return _copy_pandas(part.to_frame(), public).iloc[:, 0].rename(part.name)
    if _is_instance(part, "pandas", "DataFrame"):
        return _copy_pandas(part, public)
    if _is_instance(part, "polars", "Series"):
        return _copy_polars(part.to_frame()).to_series()
    if _is_instance(part, "polars", "DataFrame"):
        return _copy_polars(part)
    return _copy_sparse(part) if hasattr(part, "tocsr") else copy_array(part)


def copy_array(part: NDArray[Any]) -> NDArray[Any]:
    """A plain array of the same entries: a subclass's attributes may be those of a whole table."""
    made = np.empty(part.shape, drop_metadata(part.dtype))
    made[...] = part
    return _copy_objects(made) if made.dtype.hasobject else made


def _copy_objects(entries: NDArray[Any]) -> NDArray[Any]:
    if entries.dtype.kind == "O" and _CONSTANTS.issuperset(map(type, entries.flat)):
        return entries
    return copy.deepcopy(entries)


def _copy_sparse(part: Any) -> Any:
    sparse = sys.modules["scipy.sparse"]
    kind = sparse.csr_matrix if sparse.isspmatrix(part) else sparse.csr_array
    # The constructor takes the indices' dtype from this part, not from the whole matrix.
    parts = copy_array(part.data), part.indices.copy(), part.indptr.copy()
    return kind(parts, shape=part.shape)


def _copy_pandas(part: Any, public: bool) -> Any:
    pandas = sys.modules["pandas"]
    made = pandas.DataFrame(part.copy(deep=True))
    made.index = pandas.RangeIndex(len(made))
    made.columns = part.columns.copy(deep=True)
    made.attrs = {}
    made.flags.allows_duplicate_labels = True
    for place, dtype in enumerate(part.dtypes):
        column = made.iloc[:, place]
        if isinstance(dtype, pandas.CategoricalDtype):
            made.isetitem(place, _copy_categories(column, public))
        elif dtype.kind == "O" and isinstance(dtype, np.dtype):
            made.isetitem(place, _copy_objects(column.to_numpy(copy=True)))
        elif "dictionary" in str(dtype) and isinstance(dtype, pandas.ArrowDtype):
            kept = pandas.ArrowDtype(dtype.pyarrow_dtype.value_type)
            made.isetitem(place, column.astype(kept))
    return made


def _copy_categories(column: Any, public: bool) -> Any:
    pandas = sys.modules["pandas"]
    # Categories that do not occur in the part must not even be read, since reading could fail.
    codes = (column if public else column.cat.remove_unused_categories()).cat
    labels = codes.categories.astype(object)
    numbers = len(labels) > 0 and _all_of(_NUMBERS, labels)
    # One float among integers, or a missing entry, may have turned all categories into floats.
    plain = [float(category) for category in labels] if numbers else list(labels)
    entries = pandas.Series([*plain, None], dtype=object).to_numpy()[codes.codes]
    kept = list(dict.fromkeys(plain))
    if not (public or codes.ordered):
        kept.sort()
    dtype = np.float64 if numbers else object if _all_of(str, labels) else None
    categories = pandas.Index(kept, dtype=dtype, tupleize_cols=False)
    return pandas.Categorical(entries, categories=categories, ordered=codes.ordered)


def _copy_polars(part: Any) -> Any:
    polars = sys.modules["polars"]
    # A list of categories is shared by all columns that use it, or by the whole process.
    wanted = {name: _without_categories(dtype) for name, dtype in part.schema.items()}
    changed = {name: dtype for name, dtype in wanted.items() if dtype != part.schema[name]}
    made = part.cast(changed).rechunk().clone()
    for name, dtype in wanted.items():
        if isinstance(dtype, polars.Object):
            kept = copy.deepcopy(part[name].to_list())
            made = made.with_columns(polars.Series(name, kept, dtype=dtype))
    return made


def _without_categories(dtype: Any) -> Any:
    polars = sys.modules["polars"]
    if isinstance(dtype, polars.Categorical):
        return polars.String()
    if isinstance(dtype, polars.List):
        return polars.List(_without_categories(dtype.inner))
    if isinstance(dtype, polars.Array):
        return polars.Array(_without_categories(dtype.inner), dtype.size)
    if isinstance(dtype, polars.Struct):
        fields = {field.name: _without_categories(field.dtype) for field in dtype.fields}
        return polars.Struct(fields)
    return dtype


def _is_instance(value: Any, module: str, *names: str) -> bool:
    """Whether the value is of one of these classes; no library is imported for it."""
    library = sys.modules.get(module)
    kinds = tuple(getattr(library, name) for name in names if library)
    return isinstance(value, kinds)
