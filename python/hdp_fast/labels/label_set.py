"""Labels: the public set that members vote for, and the labels of the records."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._support.validate import refuse, whole_array
from ..data import records
from ..exceptions import ParameterError, ShapeError


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
