"""Halfspaces over real numbers, given one by one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from .. import _core
from .._support.types import Bits, Floats
from .._support.validate import bits
from ..exceptions import ShapeError
from .descriptions import Description
from .hypotheses import Errors, Hypotheses, first, read_only, reals, store


@dataclass(frozen=True, eq=False)
class Halfspaces(Hypotheses):
    """Linear threshold functions: 1 where weights times the record plus bias is at least 0.

    The inner product is a sum of float64 in the order of the features, the bias last, rounded as
    IEEE 754 has it, and of one record alone. Beside a boundary, rounding decides; but it decides in
    the same way in every call, on any number of threads, on any machine. The functions are
    therefore fixed ones, their errors counted exactly, and what is released with them is exact.

    Attributes:
        W: weights, finite float64 (k, d), k and d at least 1; kept as a read-only copy.
        b: biases, finite float64 (k,); kept as a read-only copy.
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
        return first((weights == self.W).all(axis=1) & (self.b == description["bias"]))

    def _prepare(self, X: ArrayLike) -> Floats:
        return self._records(X)

    def _records(self, X: ArrayLike) -> Floats:
        records = reals("X", X, 2)
        if records.shape[1] != self.d:
            rule = f"the hypotheses have {self.d} features"
            raise ShapeError(f"X has shape {records.shape}, but {rule}")
        return records


def _finite(name: str, value: ArrayLike, dimensions: int) -> Floats:
    """A read-only copy of the numbers, all finite."""
    return read_only(reals(name, value, dimensions).copy())
