"""Which pairs of data sets a guarantee is about."""

from __future__ import annotations

from enum import StrEnum

from .._support.validate import refuse


class Neighbors(StrEnum):
    """The relation between data sets that a guarantee makes indistinguishable.

    Each member equals its name in lower case, which every argument `neighbors` takes as well.

    Attributes:
        REPLACE_ONE: One record is replaced by another; the number of records is public.
        ADD_REMOVE: One record is added or removed.
        LOCAL: One person's record takes any two values, and the guarantee holds against everybody,
            the collector included.

    Examples:
        >>> from hdp_fast.accounting import Neighbors, Pure
        >>> Pure(0.5, neighbors="add_remove").neighbors is Neighbors.ADD_REMOVE
        True
    """

    REPLACE_ONE = "replace_one"
    ADD_REMOVE = "add_remove"
    LOCAL = "local"


def relation(value: object) -> Neighbors:
    """The relation of that name; ParameterError if there is none."""
    try:
        return Neighbors(value)  # type: ignore[arg-type]
    except ValueError:
        refuse("neighbors", value, f"it must be one of {', '.join(Neighbors)}")
