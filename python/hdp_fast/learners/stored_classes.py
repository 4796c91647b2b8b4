"""Finite classes over bits whose hypotheses are stored one by one: conjunctions and parities."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from numpy.typing import ArrayLike

from .. import _core
from .._core import Features
from .._support.parameters import store
from .._support.types import Bits
from .._support.validate import flag
from .bit_classes import ListedClass
from .descriptions import Description
from .hypotheses import Errors, first
from .literals import list_members, make_mask, required_values, validate_masks


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
        return first((self.ones == ones).all(axis=1) & (self.zeros == zeros).all(axis=1))

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
        return first((self.masks == make_mask(description["features"], self.d)).all(axis=1))

    def __reduce__(self) -> tuple[Any, ...]:
        return Parities, (self.masks, self.affine)
