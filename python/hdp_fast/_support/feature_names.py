"""Names of features, as containers of records have them: public facts, as shapes and dtypes are."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from ..exceptions import ParameterError

FeatureNames = tuple[str, ...] | None

# An error shows so many names at most.
_SHOWN = 3


def names_of(X: Any) -> FeatureNames:
    """The names of the columns, in their order; None for what has none.

    X: frames of pandas and polars, tables of pyarrow and hdp_fast have names; frames whose columns
    are numbered have none, nor have arrays and lists.
    """
    names = _texts(getattr(X, "columns", None))
    # Those of pyarrow are values; any other name may be that of a column of pandas.
    return (
        _texts(getattr(X, "column_names", None)) if names is None and not _is_pandas(X) else names
    )


def check_names(kept: FeatureNames, X: Any, name: str = "X") -> Any:
    """The records with their columns in the order that was learned from.

    kept: the names that were learned from. X: records in any container; where there are no names on
    either side they stay as they are. name: of the argument, for errors.

    Raises: ParameterError for a column that is missing, was not learned from, or comes twice.
    """
    names = names_of(X)
    if kept is None or names is None or find_order(kept, names, name) is None:
        return X
    if _is_pandas(X):
        return X.loc[:, list(kept)]
    if isinstance(getattr(X, "columns", None), Mapping):
        return dataclasses.replace(X, columns={column: X.columns[column] for column in kept})
    return X.select(list(kept))


def find_order(kept: Sequence[str], names: Sequence[str], name: str = "X") -> list[int] | None:
    """Where each of the kept names stands among the others; None where they are the same.

    Raises: as check_names.
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


def _texts(columns: Any) -> FeatureNames:
    """The columns as names, if they are texts and there are some."""
    try:
        names = tuple(columns)
    except TypeError:
        return None
    return names if names and all(isinstance(name, str) for name in names) else None


def _is_pandas(X: Any) -> bool:
    return hasattr(X, "loc")


def _list(columns: Sequence[str]) -> str:
    shown = ", ".join(map(repr, columns[:_SHOWN]))
    more = len(columns) - _SHOWN
    return f"{shown} and {more} more" if more > 0 else shown
