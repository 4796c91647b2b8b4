"""Classes of the hypotheses that differ on a finite domain."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._support.types import Bits
from .._support.validate import nonnegative_int
from ..exceptions import ParameterError
from .descriptions import Description
from .hypotheses import Errors, Hypotheses, check_class, read_only, store

# The sum of so many binomials takes a second.
_MOST_DIMENSIONS = 1_000


@dataclass(frozen=True, eq=False)
class Labelings(Hypotheses):
    """One hypothesis of a class for each labeling of a finite domain that the class has.

    On the domain nothing is lost, and as few hypotheses as Sauer's lemma allows are left, whatever
    the size of the class: at most sauer_bound(D, its VC dimension). Of those with the same labels
    the first one is kept. Records outside the domain are read as the class reads them; the privacy
    of a choice does not depend on the domain, its accuracy does. The domain must be public.

    Attributes:
        domain: D records as the class takes them, D at least 1.
        hypotheses: the class, which must be small enough to be enumerated once.
        indices: int64, ascending: which hypotheses of the class are kept.
    """

    domain: Any
    hypotheses: Hypotheses
    indices: NDArray[np.int64] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Enumerate the class."""
        check_class("hypotheses", self.hypotheses)
        domain = self.hypotheses.prepare(self.domain)
        if not len(domain):
            raise ParameterError("domain holds no record, but it must hold one at least")
        first_index: dict[bytes, int] = {}
        for i in range(len(self.hypotheses)):
            labels = np.packbits(self.hypotheses.predict(i, domain))
            first_index.setdefault(labels.tobytes(), i)
        store(self, indices=read_only(np.array([*first_index.values()], np.int64)))
        store(self, _kind=self.hypotheses._kind)

    @property
    def d(self) -> int:  # type: ignore[override]
        """Number of features."""
        return self.hypotheses.d

    def __len__(self) -> int:
        return len(self.indices)

    def _errors(self, X: Any, y: ArrayLike, threads: int | None) -> Errors:
        return self.hypotheses.errors(X, y, threads=threads)[self.indices]

    def _predict(self, i: int, X: Any) -> Bits:
        return self.hypotheses.predict(int(self.indices[i]), X)

    def _hypothesis(self, i: int) -> Description:
        return self.hypotheses.hypothesis(int(self.indices[i]))

    def _place(self, description: Description) -> int | None:
        place = self.hypotheses._place(description)
        return None if place is None else int(np.searchsorted(self.indices, place))

    def _prepare(self, X: Any) -> Any:
        return self.hypotheses.prepare(X)


def sauer_bound(domain: int, vc: int) -> int:
    """How many labelings of a domain a class of this VC dimension has at most.

    domain: number of points, at least 1; vc: VC dimension, at least 0.

    Raises: ParameterError.
    Cost: min(domain, vc) multiplications.
    Source: Sauer's lemma: the sum of C(domain, i) over i from 0 to vc.
    """
    points, dimension = nonnegative_int("domain", domain), nonnegative_int("vc", vc)
    if not points:
        raise ParameterError("domain = 0, but it must be at least 1")
    if dimension > _MOST_DIMENSIONS:
        raise ParameterError(f"vc = {dimension}, but it must be at most {_MOST_DIMENSIONS}")
    return sum(math.comb(points, i) for i in range(min(points, dimension) + 1))
