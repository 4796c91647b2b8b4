"""The records of a search, from which some are taken by their places."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..exceptions import ShapeError
from .toolkit import select_rows


@dataclass(frozen=True, eq=False)
class Records:
    """Records with labels, in any container that has places.

    Attributes:
        X: The records.
        y: Their labels or targets, a vector.
        domain: Whose rows they are, as sample_domain has it; None where all are of one population.
    """

    X: Any
    y: NDArray[Any]
    domain: NDArray[Any] | None = None

    def __len__(self) -> int:
        return len(self.y)

    def take(self, rows: NDArray[np.intp]) -> Records:
        """The records in these places."""
        domain = None if self.domain is None else self.domain[rows]
        return Records(select_rows(self.X, rows), self.y[rows], domain)

    def split(
        self, share: float, allowed: NDArray[np.bool_], generator: np.random.Generator
    ) -> tuple[Records, Records]:
        """Records to learn from, and about this share of some, which are held out.

        Coins decide before any value is seen. So each record is in one of the parts, whatever its
        values are, and replacing it changes that part alone.

        allowed: which records may be held out, from public facts alone.
        """
        places = np.flatnonzero(allowed)
        if len(places) < 2:
            rule = "a search needs one to hold out and one more"
            raise ShapeError(f"X has {len(places)} sample(s) to choose by, but {rule}")
        count = min(max(round(share * len(places)), 1), len(places) - 1)
        held = np.zeros(len(self), bool)
        held[generator.permutation(places)[:count]] = True
        return self.take(np.flatnonzero(~held)), self.take(np.flatnonzero(held))
