"""Finite classes whose hypotheses are listed: conjunctions, parities, halfspaces, labelings."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import _core
from .._core import Features
from .._support.numbers import finite_reals, first_index
from .._support.parameters import store
from .._support.types import Bits, Floats
from .._support.validate import bits, flag, nonnegative_int, read_only
from ..exceptions import ParameterError, ShapeError
from .bit_classes import ListedClass
from .descriptions import Description, list_members, make_mask, required_values, validate_masks
from .hypotheses import Errors, Hypotheses, check_class


class StoredClass(ListedClass):
    """Hypotheses that are stored one by one."""

    _lists: _core.Lists

    def _plain_errors(self, features: Features, y: ArrayLike, threads: int | None) -> Errors:
        return self._lists.errors(features, y, threads)

    def _list_of(self, i: int) -> tuple[_core.Lists, int]:
        return self._lists, i


@dataclass(frozen=True, eq=False)
class ConjunctionList(StoredClass):
    """Conjunctions that are listed one by one.

    A conjunction that requires a feature to be both 0 and 1 is the constant 0.

    Attributes:
        ones: The features that must be 1, 0/1 of shape (k, d), an array or a BitMatrix, k and d at
            least 1. A read-only copy is kept.
        zeros: The features that must be 0, of the same shape. A read-only copy is kept.

    Raises:
        ShapeError: ones or zeros is empty or has not two dimensions, or their shapes differ.
        ParameterError: An entry is neither 0 nor 1.

    Examples:
        >>> from hdp_fast.learners import ConjunctionList
        >>> rules = ConjunctionList(ones=[[1, 1, 0], [0, 0, 1]], zeros=[[0, 0, 0], [1, 0, 0]])
        >>> rules.hypothesis(1)  # x2 and not x0
        {'kind': 'conjunction', 'features': [0, 2], 'values': [0, 1], 'complement': False}
        >>> rules.errors([[1, 1, 0], [0, 0, 1]], [1, 0])
        array([0, 2])
    """

    ones: Bits
    zeros: Bits
    _lists: _core.Lists = field(init=False, repr=False)
    _kind = "conjunction"

    def __post_init__(self) -> None:
        """Validate the parameters."""
        store(
            self, ones=validate_masks("ones", self.ones), zeros=validate_masks("zeros", self.zeros)
        )
        store(self, _lists=_core.Lists(self.ones, self.zeros))

    @property
    def d(self) -> int:  # type: ignore[override]
        """Number of features."""
        return int(self.ones.shape[1])

    def _plain(self) -> int:
        return len(self.ones)

    def _complements(self) -> int:
        return 0

    def _description(self, i: int) -> Description:
        literals = [(j, 1) for j in list_members(self.ones[i])] + [
            (j, 0) for j in list_members(self.zeros[i])
        ]
        features, values = [list(part) for part in zip(*sorted(literals), strict=True)] or ([], [])
        return {"kind": "conjunction", "features": features, "values": values}

    def _plain_index(self, description: Description) -> int | None:
        if max(description["features"], default=0) >= self.d:
            return None
        zeros, ones = required_values([description["features"]], [description["values"]], self.d)
        return first_index((self.ones == ones).all(axis=1) & (self.zeros == zeros).all(axis=1))

    def __reduce__(self) -> tuple[Any, ...]:
        return ConjunctionList, (self.ones, self.zeros)


@dataclass(frozen=True, eq=False)
class Parities(StoredClass):
    """Parities that are listed one by one: sums of some features over GF(2).

    Attributes:
        masks: The features that each parity sums, 0/1 of shape (k, d), an array or a BitMatrix, k
            and d at least 1. A read-only array is kept.
        affine: Whether the class also contains each parity plus the constant 1. These have the
            indices k, ..., 2 k - 1.

    Raises:
        ShapeError: masks is empty or has not two dimensions.
        ParameterError: An entry of masks is neither 0 nor 1, or affine is no bool.

    Examples:
        >>> from hdp_fast.learners import Parities
        >>> parities = Parities([[1, 1, 0], [0, 1, 1]], affine=True)
        >>> len(parities)
        4
        >>> parities.predict(2, [[1, 0, 0], [1, 1, 1]])  # 1 + x0 + x1
        array([0, 1], dtype=uint8)
    """

    masks: Bits
    affine: bool = False
    _lists: _core.Lists = field(init=False, repr=False)
    _kind = "parity"

    def __post_init__(self) -> None:
        """Validate the parameters."""
        store(self, masks=validate_masks("masks", self.masks))
        flag("affine", self.affine)
        store(self, _lists=_core.Lists(self.masks, None))

    @property
    def d(self) -> int:  # type: ignore[override]
        """Number of features."""
        return int(self.masks.shape[1])

    def _plain(self) -> int:
        return len(self.masks)

    def _complements(self) -> int:
        return self._plain() if self.affine else 0

    def _description(self, i: int) -> Description:
        return {"kind": "parity", "features": list_members(self.masks[i])}

    def _plain_index(self, description: Description) -> int | None:
        if max(description["features"], default=0) >= self.d:
            return None
        return first_index((self.masks == make_mask(description["features"], self.d)).all(axis=1))

    def __reduce__(self) -> tuple[Any, ...]:
        return Parities, (self.masks, self.affine)


@dataclass(frozen=True, eq=False)
class Halfspaces(Hypotheses):
    """Linear threshold functions: hypothesis i is 1 where W[i] times the record plus b[i] is >= 0.

    The inner product is a float64 sum in the order of the features, the bias last, with the
    rounding of IEEE 754, and computed for each record alone. Near a boundary rounding decides the
    label, but it decides in the same way in every call, on any number of threads and on any
    machine. The functions are therefore fixed, their errors are counted exactly, and what is
    released with them is exact.

    Attributes:
        W: The weights, finite real numbers of shape (k, d), k and d at least 1. A read-only float64
            copy is kept.
        b: The biases, finite real numbers of shape (k,). A read-only float64 copy is kept.

    Raises:
        ShapeError: W is not (k, d) with k and d at least 1, or b is not (k,).
        ParameterError: An entry is no finite real number.

    Examples:
        >>> from hdp_fast.learners import Halfspaces
        >>> lines = Halfspaces([[1.0, 1.0], [1.0, -1.0]], [-1.0, 0.0])
        >>> lines.errors([[0.2, 0.1], [0.9, 0.8], [0.1, 0.7]], [0, 1, 0])
        array([0, 1])
        >>> lines.predict(0, [[0.5, 0.5]])
        array([1], dtype=uint8)
    """

    W: Floats
    b: Floats
    _kind = "halfspace"

    def __post_init__(self) -> None:
        """Validate the parameters."""
        W, b = _finite("W", self.W, 2), _finite("b", self.b, 1)
        if not W.size or b.shape != W.shape[:1]:
            rule = "they must be (k, d) and (k,), k and d at least 1"
            raise ShapeError(f"W has shape {W.shape} and b {b.shape}, but {rule}")
        store(self, W=W, b=b)

    @property
    def d(self) -> int:  # type: ignore[override]
        """Number of features."""
        return int(self.W.shape[1])

    def __len__(self) -> int:
        return len(self.b)

    def _errors(self, X: ArrayLike, y: ArrayLike, threads: int | None) -> Errors:
        records, labels = self._records(X), bits("y", y)
        if labels.shape != records.shape[:1]:
            rule = f"X has {len(records)} records"
            raise ShapeError(f"y has length {len(labels)}, but {rule}")
        return _core.halfspace_errors(records.ravel(), labels, self.W.ravel(), self.b, threads)

    def _predict(self, i: int, X: ArrayLike) -> Bits:
        return _core.halfspace_values(self._records(X).ravel(), self.W[i], float(self.b[i]))

    def _hypothesis(self, i: int) -> Description:
        return {"kind": "halfspace", "weights": self.W[i].tolist(), "bias": float(self.b[i])}

    def _place(self, description: Description) -> int | None:
        if len(description["weights"]) != self.d:
            return None
        weights = np.array(description["weights"])
        return first_index((weights == self.W).all(axis=1) & (self.b == description["bias"]))

    def _prepare(self, X: ArrayLike) -> Floats:
        return self._records(X)

    def _records(self, X: ArrayLike) -> Floats:
        records = finite_reals("X", X, 2)
        if records.shape[1] != self.d:
            rule = f"the hypotheses have {self.d} features"
            raise ShapeError(f"X has shape {records.shape}, but {rule}")
        return records


def _finite(name: str, value: ArrayLike, dimensions: int) -> Floats:
    """Return a read-only float64 copy of the numbers, which must all be finite."""
    return read_only(finite_reals(name, value, dimensions).copy())


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
        places: dict[bytes, int] = {}
        for i in range(len(self.hypotheses)):
            labels = np.packbits(self.hypotheses.predict(i, domain))
            places.setdefault(labels.tobytes(), i)
        store(self, indices=read_only(np.array([*places.values()], np.int64)))
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
