"""Halfspaces over real numbers, given one by one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._checks import bits
from ._descriptions import Hypothesis
from ._hypotheses import Bits, Errors, Hypotheses, first, read_only, reals, store
from .exceptions import ShapeError

Floats = NDArray[np.float64]

# Scores of halfspaces that are in memory at a time: 32 MB.
_SCORES = 1 << 22


@dataclass(frozen=True, eq=False)
class Halfspaces(Hypotheses):
    """Linear threshold functions: 1 where weights times the record plus bias is at least 0.

    Their inner products are numpy's floats: beside a boundary, rounding decides, and may do so
    otherwise for another number of records or threads. What is released with them is idealised.

    Attributes:
        W: weights, finite float64 (k, d), k and d at least 1; kept as a read-only copy.
        b: biases, finite float64 (k,); kept as a read-only copy.
    """

    W: Floats
    b: Floats
    numerics: ClassVar[Literal["exact", "idealised"]] = "idealised"
    _kind = "halfspace"

    def __post_init__(self) -> None:
        """Refuse what is no class."""
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
        records, labels = self._records(X), bits("y", y).astype(np.bool_)
        if labels.shape != records.shape[:1]:
            rule = f"X has {len(records)} records"
            raise ShapeError(f"y has length {len(labels)}, but {rule}")
        wrong = np.zeros(len(self), np.int64)
        rows, each = max(1, _SCORES // len(self)), min(len(self), _SCORES)
        for start in range(0, len(records), rows):
            some, true = records[start : start + rows], labels[start : start + rows, None]
            for low in range(0, len(self), each):
                part = slice(low, low + each)
                wrong[part] += np.count_nonzero(self._says(part, some) != true, axis=0)
        return wrong

    def _predict(self, i: int, X: ArrayLike) -> Bits:
        said = self._says(slice(i, i + 1), self._records(X))
        return said[:, 0].astype(np.uint8)

    def _hypothesis(self, i: int) -> Hypothesis:
        return {"kind": "halfspace", "weights": self.W[i].tolist(), "bias": float(self.b[i])}

    def _place(self, said: Hypothesis) -> int | None:
        if len(said["weights"]) != self.d:
            return None
        weights = np.array(said["weights"])
        return first((weights == self.W).all(axis=1) & (self.b == said["bias"]))

    def _prepare(self, X: ArrayLike) -> Floats:
        return self._records(X)

    def _says(self, part: slice, records: Floats) -> NDArray[np.bool_]:
        scores = records @ self.W[part].T
        scores += self.b[part]
        return scores >= 0

    def _records(self, X: ArrayLike) -> Floats:
        found = reals("X", X, 2)
        if found.shape[1] != self.d:
            rule = f"the hypotheses have {self.d} features"
            raise ShapeError(f"X has shape {found.shape}, but {rule}")
        return found


def _finite(name: str, value: ArrayLike, dimensions: int) -> Floats:
    """A read-only copy of the numbers, all finite."""
    return read_only(reals(name, value, dimensions).copy())
