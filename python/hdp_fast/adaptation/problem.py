"""What both problems of adaptation have in common: two domains, one of them perhaps private."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import _core
from .._support.callers import freeze, silence
from .._support.types import Floats
from .._support.validate import array, bounded_positive, refuse
from ..exceptions import ShapeError
from .bounds import least_alpha
from .discrepancies.exact import LABEL_BOUND, discrepancy
from .discrepancies.moments import Bounds, Sample, projected, refuse_beyond, samples
from .discrepancies.private import release_discrepancy
from .privacy import Grid, Noise

Private = Literal["target", "source"]
FeatureMap = Callable[[Any], Any]
Data = tuple[ArrayLike, ArrayLike, ArrayLike, ArrayLike]
Result = TypeVar("Result")


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
        return cls(bounded_positive("radius", radius), bounded_positive("norm_bound", norm_bound))

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


def mapped(
    feature_map: FeatureMap | None, X_source: ArrayLike, X_target: ArrayLike, private: Any
) -> Any:
    """The source's records in the target's space.

    Private ones are shown one at a time, in silence. What the map makes of one of them raises
    nothing: a row that is missing, or of no numbers, counts as zero. A record of zeros is tried
    first, so that a map that is wrong for all of them says so.

    Raises: ParameterError unless the map can be called, ShapeError unless it keeps the number of
        records; whatever the map raises of public records, and of zeros.
    """
    if feature_map is None:
        return X_source
    if not callable(feature_map):
        refuse("feature_map", feature_map, "it must be callable, or None")
    rows, others = array("X_source", X_source), array("X_target", X_target)
    if not rows.ndim or others.ndim != 2:
        shapes = f"X_source has shape {rows.shape} and X_target {others.shape}"
        raise ShapeError(f"{shapes}, but they must hold rows")
    if private != "source":
        return _made(feature_map, freeze(rows), None)
    columns = others.shape[1]
    if rows.dtype.kind in "buif":
        _made(feature_map, np.zeros_like(rows, shape=(1, *rows.shape[1:])), columns)
    found = np.zeros((len(rows), columns))
    with silence():
        for i in range(len(rows)):
            found[i] = _alone(feature_map, rows[i : i + 1].copy(), columns)
    return found


def _made(feature_map: FeatureMap, rows: NDArray[Any], columns: int | None) -> NDArray[Any]:
    """What a map makes of some rows."""
    found = np.asarray(feature_map(rows))
    fits = found.ndim == 2 and len(found) == len(rows)
    if not fits or columns not in (None, found.shape[1]):
        rule = f"it must make a row of each of the {len(rows)} records"
        rule += "" if columns is None else f", of {columns} columns as X_target has"
        raise ShapeError(f"feature_map made shape {found.shape}, but {rule}")
    return found


def _alone(feature_map: FeatureMap, row: NDArray[Any], columns: int) -> Floats:
    """What a map makes of a private record: numbers, whatever happens."""
    made = attempted(lambda: _made(feature_map, row, columns)[0].astype(np.float64))
    found = np.zeros(columns) if made is None else made
    return np.where(np.isfinite(found), found, 0.0)


def attempted(call: Callable[[], Result]) -> Result | None:
    """What a caller's code makes of private records; None where it fails, and nothing names it.

    No warning, print or log of it is heard, and no floating-point trouble counts as a failure.
    """
    with silence():
        try:
            return call()
        except KeyboardInterrupt:
            raise
        except BaseException:
            return None


_PRIVATE = ("target", "source", None)


class Weighing(NamedTuple):
    """How a domain's records are weighed: q = cap min(1, sqrt(kappa_1 / l)), l = loss + offset.

    Attributes:
        cap: largest weight of a record, above 0.
        kappa_1: above 0.
        offset: at least 0; the discrepancy for the source.
    """

    cap: float
    kappa_1: float
    offset: float

    def steepest(self, residual: float) -> float:
        """The most that q times the slope of the loss is in magnitude, for residuals up to this."""
        return 2 * self.cap * min(math.sqrt(self.kappa_1), residual)


class Problem(NamedTuple):
    """Two domains that have been looked at.

    Attributes:
        source, target: their records.
        shape: bounds of records and predictors.
        private: which of both is protected, if any.
    """

    source: Sample
    target: Sample
    shape: Shape
    private: Private | None

    @classmethod
    def of(cls, data: Data, shape: Shape, private: Any) -> Problem:
        """The problem of these arguments; public rows keep their bounds.

        Raises: ShapeError, ParameterError.
        """
        if private not in _PRIVATE:
            refuse("private", private, "it must be one of target, source, None")
        return cls(*domains(data, shape.bounds, private), shape, private)

    @property
    def sizes(self) -> tuple[int, int]:
        """How many records source and target have."""
        return len(self.source.y), len(self.target.y)

    @property
    def columns(self) -> int:
        """How many features they have."""
        return int(self.source.X.shape[1])

    @property
    def hidden(self) -> Sample:
        """The private records; the target's where there are none."""
        return self.source if self.private == "source" else self.target

    @property
    def known(self) -> Sample:
        """The other ones."""
        return self.target if self.private == "source" else self.source

    def judged(self, noise: Noise, delta: float, coins: np.random.Generator | None) -> float:
        """The discrepancy with noise."""
        return release_discrepancy(
            *self._data(),
            radius=self.shape.radius,
            norm_bound=self.shape.norm_bound,
            mu=noise.discrepancy,
            delta=delta,
            private="source" if self.private == "source" else "target",
            random_state=coins,
        ).value

    def judged_openly(self) -> float:
        """The discrepancy without noise."""
        found = discrepancy(
            *self._data(),
            radius=self.shape.radius,
            norm_bound=self.shape.norm_bound,
            private=self.private,
        )
        return max(found.value, 0.0)

    def weighings(
        self, alpha: float, kappa_1: float, discrepancy: float
    ) -> tuple[Weighing, Weighing]:
        """How known and hidden records are weighed."""
        source = Weighing(alpha / self.sizes[0], kappa_1, discrepancy)
        target = Weighing((1 - alpha) / self.sizes[1], kappa_1, 0.0)
        return (target, source) if self.private == "source" else (source, target)

    def _data(self) -> Data:
        return self.source.X, self.source.y, self.target.X, self.target.y


def chosen_alpha(alpha: float | None, discrepancy: float, problem: Problem) -> float:
    """The share of the source that was asked for, or what the discrepancy suggests."""
    if alpha is not None:
        return alpha
    radius, norm_bound, _ = problem.shape
    return least_alpha(discrepancy, problem.sizes, (radius, norm_bound))
