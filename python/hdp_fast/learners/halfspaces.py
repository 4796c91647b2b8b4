"""Finite classes of halfspaces over real numbers, which are listed one by one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from .. import _core
from .._support.parameters import store
from .._support.types import Bits, Floats
from .._support.validate import bits, read_only
from ..exceptions import ShapeError
from .descriptions import Description
from .hypotheses import Errors, Hypotheses, first, reals


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
    """Return a read-only float64 copy of the numbers, which must all be finite."""
    return read_only(reals(name, value, dimensions).copy())
