"""Classes that keep one hypothesis for each labeling of a finite domain."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._support.parameters import store
from .._support.types import Bits
from .._support.validate import nonnegative_int, read_only
from ..exceptions import ParameterError
from .descriptions import Description
from .hypotheses import Errors, Hypotheses, check_class

# A sum of this many binomials takes a second.
_MOST_DIMENSIONS = 1_000


@dataclass(frozen=True, eq=False)
class Labelings(Hypotheses):
    """One hypothesis of a class for each labeling of a finite domain that the class contains.

    On the domain no labeling is lost, and at most sauer_bound(D, VC dimension) hypotheses are left,
    however large the class is. Among hypotheses with the same labels the first one is kept. Records
    outside the domain are read as the class reads them. The privacy of a choice does not depend on
    the domain, its accuracy does. The domain must be public.

    Attributes:
        domain: The D points of the domain, records as the class takes them, D at least 1.
        hypotheses: The class, which must be small enough to be enumerated once.
        indices: The kept hypotheses, an ascending int64 array of indices into the class. It is
            computed.

    Raises:
        ParameterError: The domain has no point or an entry outside its domain, or hypotheses is no
            class of this module.
        ShapeError: The domain does not have the features of the class.

    Cost:
        A prediction on the domain for each hypothesis of the class.

    Examples:
        >>> import numpy as np
        >>> from hdp_fast.learners import Halfspaces, Labelings
        >>> half_lines = Halfspaces(np.ones((500, 1)), -np.linspace(0, 10, 500))  # x >= threshold
        >>> domain = np.arange(10.0)[:, None]
        >>> len(half_lines), len(Labelings(domain, half_lines))
        (500, 11)
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
    """Bounds the number of labelings of a domain by a class of given VC dimension.

    Args:
        domain: Number of points in the domain, at least 1.
        vc: VC dimension of the class, from 0 to 1,000.

    Returns:
        The sum of C(domain, i) over i from 0 to vc, an exact int.

    Raises:
        ParameterError: domain or vc is out of range.

    Cost:
        min(domain, vc) + 1 binomial coefficients.

    Source:
        Sauer's lemma (Sauer 1972).

    Examples:
        >>> from hdp_fast.learners import sauer_bound
        >>> sauer_bound(100, 1)
        101
        >>> sauer_bound(100, 2)
        5051
    """
    points, dimension = nonnegative_int("domain", domain), nonnegative_int("vc", vc)
    if not points:
        raise ParameterError("domain = 0, but it must be at least 1")
    if dimension > _MOST_DIMENSIONS:
        raise ParameterError(f"vc = {dimension}, but it must be at most {_MOST_DIMENSIONS}")
    return sum(math.comb(points, i) for i in range(min(points, dimension) + 1))
