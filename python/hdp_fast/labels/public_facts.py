"""Public facts of a table of records, and of their labels; whether points are of the same kind."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._support.validate import refuse, whole_array
from ..data import records
from ..exceptions import ParameterError, ShapeError

# The most names that an error shows.
_MOST_NAMES = 5
# Kinds by the letter of numpy's dtypes.
_KINDS = {"b": "number", "i": "number", "u": "number", "f": "number", "O": "text"}


@dataclass(frozen=True)
class Facts:
    """The container of a table, its columns and their kinds, which are the same for all neighbors.

    Attributes:
        container: The container in words.
        columns: The names of the columns; None if they have none.
        kinds: The kind of each column's entries, or one kind for all; "any" agrees with every kind.
        dtypes: The same as dtypes of the table's library.
    """

    container: str
    columns: tuple[Any, ...] | None
    kinds: tuple[str, ...]
    dtypes: tuple[str, ...]


def facts_of(X: Any) -> Facts:
    """The facts of what check_features returned; no entry is read."""
    library = type(X).__module__.split(".")[0]
    if hasattr(X, "tocsr"):
        return _make("a sparse matrix", None, [X.dtype])
    if len(X.shape) == 1:
        return _make("a single column", None, [X.dtype])
    if hasattr(X, "columns"):
        dtypes = list(X.dtypes)
        return _make(f"a data frame of {library}", tuple(X.columns), dtypes)
    return _make("an array", None, [X.dtype])


def compare(X: Facts, Q: Facts, name: str) -> None:
    """Refuse points of another kind than the records.

    Args:
        X: Facts of the records.
        Q: Facts of the points.
        name: Name of the points in the error.

    Raises:
        ParameterError: They differ. The error names the columns, and what to do.
    """
    if Q.container != X.container:
        raise ParameterError(f"{name} is {Q.container}, but X is {X.container}: make it one")
    if X.columns is not None and Q.columns is not None and Q.columns != X.columns:
        _refuse_columns(X.columns, Q.columns, name)
    names = X.columns or ("all",) * len(X.kinds)
    for column, *kinds, x, q in zip(names, X.kinds, Q.kinds, X.dtypes, Q.dtypes, strict=True):
        if "any" not in kinds and kinds[0] != kinds[1]:
            where = name if X.columns is None else f"column {column!r} of {name}"
            raise ParameterError(f"{where} has dtype {q}, but in X it is {x}: convert one of them")


def _refuse_columns(x: tuple[Any, ...], q: tuple[Any, ...], name: str) -> None:
    missing = [column for column in x if column not in q]
    if not missing and len(x) == len(q):
        rule = f"X has {_join(x)}: take {name}[list(X.columns)]"
        raise ParameterError(f"{name} has its columns in another order, {_join(q)}, but {rule}")
    extra = [column for column in q if column not in x]
    parts = [f"lacks {_join(missing)}"] * bool(missing) + [f"has {_join(extra)}"] * bool(extra)
    raise ParameterError(f"{name} {' and '.join(parts)}, but its columns must be those of X")


def _join(names: Iterable[Any]) -> str:
    texts = list(map(repr, names))
    return ", ".join([*texts[:_MOST_NAMES], *["..."] * (len(texts) > _MOST_NAMES)])


def _make(container: str, columns: tuple[Any, ...] | None, dtypes: list[Any]) -> Facts:
    kinds = tuple(map(kind_of, dtypes))
    names = tuple(
        "category" if kind == "any" else str(d) for kind, d in zip(kinds, dtypes, strict=True)
    )
    return Facts(container, columns, kinds, names)


def kind_of(dtype: Any) -> str:
    """The kind of a dtype: number, text (also for objects), any (for categories), or its name."""
    if isinstance(dtype, np.dtype):
        return _KINDS.get(dtype.kind) or _word(dtype)
    if hasattr(dtype, "is_numeric"):
        return _kind_of_polars(dtype)
    pandas = sys.modules["pandas"]
    if isinstance(dtype, pandas.CategoricalDtype) or "dictionary" in str(dtype):
        return "any"
    if pandas.api.types.is_numeric_dtype(dtype):
        return "number"
    return "text" if pandas.api.types.is_string_dtype(dtype) else _word(dtype)


def _word(dtype: Any) -> str:
    """The name of a dtype without its unit, time zone or parts."""
    return re.split(r"[\[(<]", str(dtype))[0]


def _kind_of_polars(dtype: Any) -> str:
    polars = sys.modules["polars"]
    if dtype.is_numeric() or dtype == polars.Boolean:
        return "number"
    if isinstance(dtype, polars.Categorical | polars.Enum | polars.Null):
        return "any"
    return "text" if isinstance(dtype, polars.String | polars.Object) else _word(dtype)


def check_targets(y: ArrayLike, n: int) -> NDArray[Any]:
    """Validate a vector of n entries, one for each record, of a dtype that no single entry decides.

    Raises:
        ShapeError: The shape is another one.
        ParameterError: The entries are of an unknown kind.
    """
    entries = records.check_values("y", y)
    if entries.dtype.kind == "O":
        entries = records.check_values("y", entries.tolist())
    if entries.shape != (n,):
        raise ShapeError(f"y has shape {entries.shape}, but it must be ({n},), as X has {n} rows")
    return entries


def check_finite_targets(y: ArrayLike, n: int) -> NDArray[Any]:
    """Validate as check_targets does, and refuse numbers that are not finite.

    Raises:
        ShapeError: The shape is another one.
        ParameterError: The entries are of an unknown kind, or not finite.
    """
    entries = check_targets(y, n)
    if entries.dtype.kind == "f" and not np.isfinite(entries).all():
        raise ParameterError("y holds something else, but every number must be finite")
    return entries


def check_labels(y: ArrayLike, n: int, classes: NDArray[Any]) -> NDArray[Any]:
    """Validate a vector of n of these labels, and return it in their dtype.

    Raises:
        ShapeError: The shape is another one.
        ParameterError: Some entry is no label. The error names neither the row nor the entry.
    """
    entries = check_targets(y, n)
    if entries.dtype.kind == "O":
        entries = entries.astype(str)
    texts = {"U": True, "b": False, "i": False, "u": False, "f": False}
    same = texts.get(entries.dtype.kind) == texts[classes.dtype.kind]
    if n and not (same and np.isin(entries, classes).all()):
        rule = "every entry must be one of classes, and a missing one is none"
        raise ParameterError(f"y holds something else, but {rule}")
    return entries.astype(classes.dtype)


def check_classes(classes: ArrayLike) -> NDArray[Any]:
    """Validate the label set and return it in order, as int64, float64 or texts.

    Raises:
        ShapeError: There is not one dimension.
        ParameterError: These are not 2 to 256 different integers, real numbers or texts.
    """
    names = whole_array("classes", classes)
    if names.ndim != 1:
        raise ShapeError(f"classes has shape {names.shape}, but it must have one dimension")
    kinds = {"b": np.int64, "i": np.int64, "u": np.int64, "f": np.float64, "U": None}
    if names.dtype.kind not in kinds:
        rule = "it must hold integers, real numbers or texts"
        raise ParameterError(f"classes has dtype {names.dtype}, but {rule}")
    dtype = kinds[names.dtype.kind]
    ordered = np.unique(names if dtype is None else names.astype(dtype))
    if not 2 <= len(ordered) <= 256 or len(ordered) != len(names) or (ordered != ordered).any():
        refuse("classes", classes, "it must hold 2 to 256 different labels")
    return ordered


def choose_marker(bottom: Any, classes: NDArray[Any]) -> Any:
    """The marker that stands for bottom among these labels; None takes -1, NaN or the empty text.

    Raises:
        ParameterError: The marker is a label, or is not of the type of the labels.
    """
    usual = {"i": -1, "f": math.nan, "U": ""}[classes.dtype.kind]
    chosen = usual if bottom is None else bottom
    value = np.asarray(chosen)
    fits = value.ndim == 0 and (value.dtype.kind == "U") == (classes.dtype.kind == "U")
    if not fits or value in classes or (classes.dtype.kind == "i" and value.dtype.kind not in "iu"):
        refuse("bottom", chosen, "it must be of the labels' type and no label")
    return chosen
