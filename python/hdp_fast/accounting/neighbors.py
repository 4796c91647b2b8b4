"""Which pairs of data sets a guarantee speaks of."""

from __future__ import annotations

from enum import StrEnum

from .._support.validate import refuse


class Neighbors(StrEnum):
    """The relation between data sets that a guarantee makes indistinguishable.

    Members are equal to their names in lower case, which every argument `neighbors` takes, too.

    Attributes:
        REPLACE_ONE: one record replaced by another; the number of records is public.
        ADD_REMOVE: one record added or removed.
        LOCAL: any two values of one person's record, against everybody.
    """

    REPLACE_ONE = "replace_one"
    ADD_REMOVE = "add_remove"
    LOCAL = "local"


def relation(value: object) -> Neighbors:
    """The relation of that name.

    Raises: ParameterError if there is none.
    """
    try:
        return Neighbors(value)  # type: ignore[arg-type]
    except ValueError:
        refuse("neighbors", value, f"it must be one of {', '.join(Neighbors)}")
