"""Records of source and target as the descents of adaptation take them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _core
from ._adaptation_noise import Grid
from ._checks import within
from ._discrepancy import LABEL_BOUND
from ._moments import Bounds, Sample, projected, refuse_beyond, samples
from .exceptions import ParameterError, ShapeError

Floats = NDArray[np.float64]
Private = Literal["target", "source"]
FeatureMap = Callable[[Any], Any]
Data = tuple[ArrayLike, ArrayLike, ArrayLike, ArrayLike]


class Shape(NamedTuple):
    """Bounds of predictors, rows and labels.

    Attributes:
        radius: of the ball that holds w.
        norm_bound: of x.
        label: of |y|.
    """

    radius: float
    norm_bound: float
    label: float = LABEL_BOUND

    @classmethod
    def checked(cls, radius: Any, norm_bound: Any) -> Shape:
        """The same of arguments.

        Raises: ParameterError.
        """
        return cls(within("radius", radius), within("norm_bound", norm_bound))

    @property
    def residual(self) -> float:
        """The largest |w.x - y|."""
        return self.radius * self.norm_bound + self.label

    @property
    def bounds(self) -> Bounds:
        """Of rows and labels."""
        return Bounds(self.norm_bound, self.label)


class Rows(NamedTuple):
    """Records of one domain, within their bounds.

    Attributes:
        X: float32 or float64 (n, d), C-contiguous, multiples of `unit`: integers where the noise is
            exact.
        y: float64 (n,).
        unit: what an entry of 1 stands for.
        loss: as the compiled module names it.
    """

    X: NDArray[Any]
    y: Floats
    unit: float
    loss: str = "squared"

    @property
    def given(self) -> tuple[NDArray[Any], int, Floats]:
        """As the compiled module takes them."""
        return self.X.reshape(-1), self.X.shape[1], self.y


def domains(data: Data, bounds: Bounds, private: Private | None) -> tuple[Sample, Sample]:
    """Source and target, looked at; the public ones keep their bounds.

    Raises: ShapeError, ParameterError.
    """
    found = samples(*data)
    for sample in found:
        if sample.name != private:
            refuse_beyond(sample, bounds)
    return found


def in_reals(sample: Sample, bounds: Bounds) -> Rows:
    """The records of a sample within their bounds."""
    return Rows(*projected(sample, bounds), 1.0)


def on_grid(sample: Sample, bounds: Bounds, grid: Grid) -> Rows:
    """The records of a private sample, each projected and rounded to integers.

    That their norms are at most grid.rows is checked in integers; a row that rounding errors leave
    beyond counts as zero.
    """
    entries = np.require(sample.X, None, ["C", "A"]).reshape(-1)
    columns, units = sample.X.shape[1], float(grid.rows)
    X, scale = _core.adaptation_integers(entries, columns, bounds.norm, units, None)
    y = sample.y.clip(-bounds.label, bounds.label)
    return Rows(X.reshape(sample.X.shape), y, 1 / scale)


def mapped(feature_map: FeatureMap | None, X: ArrayLike, private: bool) -> Any:
    """The source's records in the target's space; private ones are shown one at a time.

    Raises: ParameterError unless the map can be called, ShapeError unless it keeps the number of
        records.
    """
    if feature_map is None:
        return X
    if not callable(feature_map):
        raise ParameterError(f"feature_map = {feature_map!r}, but it must be callable, or None")
    rows = np.asarray(X)
    found = np.asarray(
        np.concatenate([feature_map(rows[i : i + 1]) for i in range(len(rows))])
        if private and len(rows)
        else feature_map(rows)
    )
    if found.ndim != 2 or len(found) != len(rows):
        rule = f"it must make a row of each of the {len(rows)} records"
        raise ShapeError(f"feature_map made shape {found.shape}, but {rule}")
    return found
