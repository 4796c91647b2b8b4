"""Names of features, as containers of records have them; like shapes and dtypes they are public."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from ..exceptions import ParameterError
from .containers import is_lazy, to_frame

FeatureNames = tuple[str, ...] | None

# The largest number of names that an error shows.
_SHOWN = 3


def names_of(X: Any) -> FeatureNames:
    """The names of the columns, in their order; None if the container has none.

    Frames of pandas and polars and tables of pyarrow and hdp_fast have names, as have relations and
    tables of other libraries that list them as texts. Frames whose columns are numbered, arrays and
    lists have none. A lazy frame has none either: it is refused wherever records are read.
    """
    if is_lazy(X):
        return None
    names = _texts(X, "columns")
    # pyarrow keeps names in column_names, which in pandas may be a column.
    return _texts(X, "column_names") if names is None and not _is_pandas(X) else names


def check_names(kept: FeatureNames, X: Any, name: str = "X") -> Any:
    """The records, with their columns in the order of the records that were learned from.

    Where one side has no names, the records stay as they are.

    Args:
        kept: Names of the columns that were learned from.
        X: Records in any container.
        name: Name of the argument, for errors.

    Raises:
        ParameterError: A column is missing, was not learned from, or comes twice.
    """
    names = names_of(X)
    if kept is None or names is None or find_order(kept, names, name) is None:
        return X
    if _is_pandas(X):
        return X.loc[:, list(kept)]
    if isinstance(getattr(X, "columns", None), Mapping):
        return dataclasses.replace(X, columns={column: X.columns[column] for column in kept})
    return to_frame(name, X).select(list(kept))


def find_order(kept: Sequence[str], names: Sequence[str], name: str = "X") -> list[int] | None:
    """The place of each kept name among the others; None if the order is the same.

    Raises the errors of `check_names`.
    """
    if tuple(kept) == tuple(names):
        return None
    faults = {"lacks": [*set(kept) - set(names)], "also has": [*set(names) - set(kept)]}
    texts = [f"{verb} {_list(sorted(columns))}" for verb, columns in faults.items() if columns]
    if texts:
        rule = f"it must have the {len(kept)} columns that were learned from"
        raise ParameterError(f"{name} {' and '.join(texts)}, but {rule}")
    places = {column: place for place, column in enumerate(names)}
    if len(places) < len(names) or len(names) != len(kept):
        rule = "without names of their own they can't be put in order"
        raise ParameterError(f"{name} has two columns of one name, but {rule}")
    return [places[column] for column in kept]


def _texts(X: Any, attribute: str) -> FeatureNames:
    """The columns as names, if all of them are texts and there is at least one."""
    try:
        names = tuple(getattr(X, attribute))
    except Exception:  # The code of the container's own class may raise anything.
        return None
    return names if names and all(isinstance(name, str) for name in names) else None


def _is_pandas(X: Any) -> bool:
    return hasattr(type(X), "loc")


def _list(columns: Sequence[str]) -> str:
    shown = ", ".join(map(repr, columns[:_SHOWN]))
    more = len(columns) - _SHOWN
    return f"{shown} and {more} more" if more > 0 else shown
