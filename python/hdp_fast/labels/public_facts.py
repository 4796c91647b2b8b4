"""Public facts of a table of records, and whether points are of the same kind."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..exceptions import ParameterError

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
