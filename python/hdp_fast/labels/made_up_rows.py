"""Made-up rows, of no record, with the container, dtypes and columns of a table."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data import records
from .public_facts import facts_of, kind_of

Texts = tuple[str, str] | None


def make_rows(like: Any, size: int, texts: Texts) -> Any:
    """Make rows of numbers from 0 to 1 (0 or 1 in columns of integers) and of texts.

    Args:
        like: What check_features returned.
        size: Number of rows.
        texts: Two texts for columns of texts and of categories, so that no entry is read. None
            takes the entries of `like`, which must be public.

    Returns:
        The rows; None for dtypes whose entries cannot be made up.
    """
    rng = np.random.default_rng(2)
    facts = facts_of(like)
    if hasattr(like, "tocsr"):
        return _make_sparse(like, size, rng)
    if facts.container == "an array" or isinstance(like, np.ndarray):
        return _make_array(like, size, texts, rng)
    if not hasattr(like, "columns"):
        return _make_column(like, like.dtype, size, texts, rng)
    columns = [like.iloc[:, i] for i in range(like.shape[1])] if hasattr(like, "iloc") else like
    made = [_make_column(column, column.dtype, size, texts, rng) for column in columns]
    if not made or any(column is None for column in made):
        return None
    return _join_columns(like, made)


def plainer_rows(rows: Any) -> tuple[str, Any] | None:
    """Turn rows into a plain array of two dimensions.

    Returns:
        What the user should do, in words, and the array. None if the rows are such an array
        already, or hold anything but numbers.
    """
    if hasattr(rows, "tocsr"):
        return "take X.toarray() and Q.toarray(), or another learner", rows.toarray()
    if len(rows.shape) != 1 or kind_of(rows.dtype) != "number":
        return None
    values = np.asarray(rows)
    return "give each record a row, as X.reshape(-1, 1) does, and each point", values[:, None]


def _make_sparse(like: Any, size: int, rng: np.random.Generator) -> Any:
    if kind_of(like.dtype) != "number":
        return None
    sparse = sys.modules["scipy.sparse"]
    kind = sparse.csr_matrix if sparse.isspmatrix(like) else sparse.csr_array
    return kind(rng.integers(0, 2, (size, *like.shape[1:])).astype(like.dtype))


def _make_array(like: NDArray[Any], size: int, texts: Texts, rng: np.random.Generator) -> Any:
    shape = (size, *like.shape[1:])
    if like.dtype.kind == "O":
        # The objects of an array may be of any type.
        return None if texts else records.take_rows(like, np.resize(np.arange(len(like)), size))
    if kind_of(like.dtype) != "number":
        return None
    return _make_numbers(shape, like.dtype.kind, rng).astype(like.dtype)


def _make_numbers(shape: tuple[int, ...], kind: str, rng: np.random.Generator) -> NDArray[Any]:
    return rng.random(shape) if kind == "f" else rng.integers(0, 2, shape)


def _make_column(column: Any, dtype: Any, size: int, texts: Texts, rng: np.random.Generator) -> Any:
    """Make a column of a data frame, of pandas or polars."""
    kind = kind_of(dtype)
    if kind == "number":
        return _make_number_column(column, dtype, size, rng)
    if kind not in ("text", "any"):
        return None
    if texts is None:
        rows = rng.permutation(np.resize(np.arange(len(column)), size))
        return records.take_rows(column, rows)
    values = [texts[code] for code in rng.integers(0, 2, size)]
    if hasattr(column, "iloc"):
        return _make_text_column(dtype, values)
    polars = sys.modules["polars"]
    return polars.Series(column.name, values, dtype=polars.String)


def _make_number_column(column: Any, dtype: Any, size: int, rng: np.random.Generator) -> Any:
    if hasattr(column, "iloc"):
        floats = "float" in str(dtype).lower() or "double" in str(dtype)
        values = _make_numbers((size,), "f" if floats else "i", rng)
        return sys.modules["pandas"].Series(values).astype(dtype)
    values = _make_numbers((size,), "f" if dtype.is_float() else "i", rng)
    return sys.modules["polars"].Series(column.name, values).cast(dtype)


def _make_text_column(dtype: Any, values: list[str]) -> Any:
    pandas = sys.modules["pandas"]
    if not isinstance(dtype, pandas.CategoricalDtype):
        return pandas.Series(values, dtype=dtype)
    if kind_of(dtype.categories.dtype) == "number":
        # Which categories occur is private, so that the values are made up, too.
        return pandas.Series(np.array([len(text) % 2 for text in values], float)).astype("category")
    return pandas.Series(values, dtype=object).astype("category")


def _join_columns(like: Any, columns: list[Any]) -> Any:
    if not hasattr(like, "iloc"):
        return sys.modules["polars"].DataFrame(columns)
    pandas = sys.modules["pandas"]
    made = pandas.concat([column.reset_index(drop=True) for column in columns], axis=1)
    made.columns = like.columns
    return made
