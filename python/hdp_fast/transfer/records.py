"""The curator's records, and a digest that distinguishes them from others."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._support.callers import freeze
from .._support.feature_names import FeatureNames, names_of
from .._support.types import Bits
from .._support.validate import array, bits
from ..exceptions import CheckpointError, ShapeError
from ..gf2 import BitMatrix


@dataclass(frozen=True, eq=False)
class Records:
    """Records and their labels, both read-only.

    Attributes:
        X: Array of shape (n, d), or with more dimensions.
        y: Labels 0 and 1 of shape (n,).
        names: Names of the columns of X, or None.
    """

    X: NDArray[Any]
    y: Bits
    names: FeatureNames = None

    def __len__(self) -> int:
        return len(self.y)

    @property
    def d(self) -> int:
        """Number of entries of a record."""
        return math.prod(self.X.shape[1:])

    def digest(self, salt: str) -> str:
        """A digest, which is as private as the records: guesses of them can be tried against it."""
        digest = hashlib.blake2b(salt.encode(), digest_size=32)
        digest.update(f"{self.X.dtype.str} {self.X.shape}".encode())
        for values in (self.X, self.y):
            plain = np.ascontiguousarray(values).reshape(-1)
            # The bytes of objects are addresses, which change from run to run, so repr is digested.
            has_objects = plain.dtype.hasobject
            digest.update(
                repr(plain.tolist()).encode() if has_objects else plain.view(np.uint8).data
            )
        return digest.hexdigest()

    def match(self, settings: dict[str, Any]) -> bool:
        """Whether a run with these settings began with the same records."""
        return bool(self.digest(settings["salt"]) == settings["digest"])

    def require_match(self, settings: dict[str, Any]) -> None:
        """Refuses to go on with a run that began with other records.

        Raises:
            CheckpointError: The records differ.
        """
        if not self.match(settings):
            raise CheckpointError("X and y are not the records of the run that was stopped")


def validate_records(X: Any, y: ArrayLike) -> Records:
    """The records as read-only arrays.

    Raises:
        ShapeError: X has fewer than two dimensions, or y has not one label for each record.
        ParameterError: A label is not 0 or 1, or X is a masked array.
    """
    entries = X.to_dense() if isinstance(X, BitMatrix) else array("X", X)
    labels = bits("y", y)
    if entries.ndim < 2 or labels.shape != entries.shape[:1] or not labels.size:
        shapes = f"X has shape {entries.shape} and y {labels.shape}"
        raise ShapeError(f"{shapes}, but they must be (n, d) and (n,), n at least 1")
    # A learner that wrote to them would change what later rounds see, and the caller's arrays.
    return Records(freeze(entries), freeze(labels), names_of(X))
