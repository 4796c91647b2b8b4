"""Which rows are of the source and which of the target, as sample_domain says."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._support.validate import array, refuse
from ..exceptions import ParameterError, ShapeError

_NEEDED = "0 or more for a row of the source, and below 0 for one of the target"


def read_domains(sample_domain: Any, n: int) -> NDArray[np.bool_]:
    """Whether each of n rows is of the target; both domains must have a row.

    Raises: ParameterError, ShapeError.
    """
    is_target = _signs(sample_domain)
    if is_target.shape != (n,):
        rule = f"it must be ({n},) as X has {n} rows"
        raise ShapeError(f"sample_domain has shape {is_target.shape}, but {rule}")
    for name, some in (("source", not is_target.all()), ("target", is_target.any())):
        if not some:
            rule = f"fit needs rows of both domains: {_NEEDED}"
            raise ParameterError(f"sample_domain has no row of the {name}, but {rule}")
    return is_target


def read_scored(sample_domain: Any, n: int) -> NDArray[np.bool_]:
    """Whether each of n rows is of the target; one of them must be. One integer is for all rows.

    Raises: ParameterError, ShapeError.
    """
    is_target = _signs(sample_domain)
    if is_target.shape not in {(), (n,)}:
        rule = f"it must be ({n},) as X has {n} rows, or one integer for all"
        raise ShapeError(f"sample_domain has shape {is_target.shape}, but {rule}")
    if not is_target.any():
        rule = "a score is that of the target, whose rows are below 0"
        raise ParameterError(f"sample_domain has no row of the target, but {rule}")
    return np.broadcast_to(is_target, (n,))


def _signs(sample_domain: Any) -> NDArray[np.bool_]:
    """Whether each entry is below 0; all must be integers, and no truth values."""
    entries = array("sample_domain", sample_domain)
    if entries.dtype.kind == "O":
        # Integers that may be missing, as data frames have them.
        entries = _to_floats(entries)
    if (
        entries.dtype.kind not in "iuf"
        or not (np.isfinite(entries) & (entries == np.rint(entries))).all()
    ):
        refuse("sample_domain", entries.dtype, f"it must hold integers, {_NEEDED}")
    signs: NDArray[np.bool_] = entries < 0
    return signs


def _to_floats(entries: NDArray[Any]) -> NDArray[Any]:
    if any(isinstance(entry, bool | np.bool_ | str) for entry in entries.flat):
        return entries
    try:
        return entries.astype(np.float64)
    except (TypeError, ValueError):
        return entries
