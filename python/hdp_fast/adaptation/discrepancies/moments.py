"""Validated samples, balls of weights, and second moments of rows, in floats or exact."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ... import _core
from ..._support.feature_names import check_names, names_of
from ..._support.numbers import floats
from ..._support.types import Floats
from ..._support.validate import MOST, array, bounded_positive, numbers, shorten
from ...data.states import State, describe_settings
from ...exceptions import ParameterError, ShapeError

# Rows per block: they stay in the cache, and sums of block sums lose fewer digits.
BLOCK = 1024
UNIT = 2.0**-53
# The square of such an entry, times any number of columns, is still a finite float.
_LARGEST_ENTRY = 1e150
# No entry of a row whose square is at most this exceeds the above.
_LARGEST_SQUARE = 1e300
# Bounds on relative errors do not hold for sums as small as this.
_LEAST_ERROR = 1e-290
# Relative error allowed to rows that a caller has scaled to a norm.
_TOLERANCE = 1e-9
# Integers of so many bits have products of which a float holds the sum over a block of rows.
_MOST_BITS = 21
_SUM_BITS = 62


class Sample(NamedTuple):
    """Validated labeled rows: finite numbers.

    Attributes:
        name: "source" or "target", for errors.
        X: float32 or float64 (n, d).
        y: float64 (n,).
    """

    name: str
    X: NDArray[Any]
    y: Floats


class RecordBounds(NamedTuple):
    """The norm that rows are shrunk to, and the magnitude that labels are clipped to."""

    norm: float
    label: float


class Ball(NamedTuple):
    """The weights at most `radius` from a center.

    Attributes:
        center: float64 (d,).
        radius: above 0.
    """

    center: Floats
    radius: float

    @property
    def outer_radius(self) -> float:
        """A bound on the norm of any weights in the ball."""
        distance = float(np.linalg.norm(self.center))
        return self.radius + distance * (1 + (len(self.center) + 8) * UNIT)


class Moments(NamedTuple):
    """The mean loss of all weights of a ball: v'Hv at v = (z, -1) for weights center + radius z.

    Attributes:
        matrix: H, float64 (d + 1, d + 1), symmetric.
        error: Bound on the distance of v'Hv from the mean loss, wherever |z| <= 1.
    """

    matrix: Floats
    error: float


def validate_samples(
    X_source: ArrayLike, y_source: ArrayLike, X_target: ArrayLike, y_target: ArrayLike
) -> tuple[Sample, Sample]:
    """Validate source and target, the source's columns in the order of the target's.

    Raises: ShapeError, ParameterError.
    """
    X_source = check_names(names_of(X_target), X_source, "X_source")
    source = _validate_sample("source", X_source, y_source)
    target = _validate_sample("target", X_target, y_target)
    if source.X.shape[1] != target.X.shape[1]:
        features = f"X_target has {target.X.shape[1]:,} features"
        raise ShapeError(f"{features}, but X_source has {source.X.shape[1]:,}")
    return source, target


def refuse_beyond(sample: Sample, bounds: RecordBounds) -> None:
    """Refuse a public sample that exceeds its bounds.

    The error does not show the row or label that exceeds them: the samples may have been swapped.

    Raises: ParameterError.
    """
    most = max(float(_norms(block).max()) for block, _ in _blocks(sample))
    if most > bounds.norm * (1 + _TOLERANCE):
        rule = f"its norm must be at most {bounds.norm:g}"
        raise ParameterError(f"X_{sample.name} has a longer row, but {rule}")
    if float(np.abs(sample.y).max()) > bounds.label * (1 + _TOLERANCE):
        rule = f"every label must lie in [{-bounds.label:g}, {bounds.label:g}]"
        raise ParameterError(f"y_{sample.name} holds another label, but {rule}")


def moments(sample: Sample, bounds: RecordBounds, ball: Ball) -> Moments:
    """Compute the mean loss of a sample that is projected into its bounds.

    The error assumes that BLAS adds up the products of each entry in any order, one by one.
    """
    n, d = sample.X.shape
    total, largest = np.zeros((d + 1, d + 1)), 0.0
    product, rows = np.empty_like(total), np.empty((min(n, BLOCK), d + 1))
    distance = float(np.linalg.norm(ball.center))
    for X, y in _slices(sample):
        # A residual is the product of (z, -1) with radius x and the residual at the center.
        part = rows[: len(X)]
        part[:, :-1] = X
        norms, part[:, -1] = _project(part[:, :-1], y, bounds)
        largest = max(
            largest, float((norms * (ball.radius + distance) + np.abs(part[:, -1])).max())
        )
        if distance > 0:
            part[:, -1] -= part[:, :-1] @ ball.center
        part[:, :-1] *= ball.radius
        total += np.matmul(part.T, part, out=product)
    error = moments_error(n, d) * largest**2 + _LEAST_ERROR
    return Moments(total / n, error)


def choose_units(n: int) -> int:
    """Return the largest norm of integer rows at which the sums over n records stay below 2**62."""
    return 1 << min(_MOST_BITS, (_SUM_BITS - n.bit_length()) // 2)


def fold_moments(
    job: str, sample: Sample, bounds: RecordBounds, units: int, *, labels: bool
) -> State:
    """Add up v v' over the records of a sample, exactly; v is the row x, and after it the label.

    Each record becomes integers by itself: x is shrunk to the norm of the bounds and rounded, and a
    row whose integers are beyond the norm `units` counts as zeros; the label is clipped and rounded
    to a multiple of 1 / units of its bound.

    job: what the state is of. units: at most 2**21, so that a block's sums are exact in floats.
    labels: whether labels count; without them v is x alone.

    Cost: O(n d**2), in blocks.
    """
    d = sample.X.shape[1]
    total = np.zeros((d + labels, d + labels), np.int64)
    room = np.empty((min(len(sample.y), BLOCK), d + labels))
    for X, y in _slices(sample):
        rows = room[: len(X)]
        entries = np.require(X, None, ["C", "A"]).reshape(-1)
        integers, _ = _core.adaptation_integers(entries, d, bounds.norm, float(units), None)
        rows[:, :d] = integers.reshape(X.shape)
        if labels:
            rows[:, d] = np.rint(y.clip(-bounds.label, bounds.label) * (units / bounds.label))
        total += (rows.T @ rows).astype(np.int64)
    settings = describe_settings(norm_bound=bounds.norm, units=units, columns=d)
    return State(job, settings, len(sample.y), {"moments": total})


def unit_of(bounds: RecordBounds, units: int, d: int) -> float:
    """Return the number that 1 stands for in the integers of rows.

    It leaves room for the rounding of d entries, so that integers of norm `units` stand for rows a
    little longer than the bound.
    """
    empty = np.zeros(d)
    return 1 / float(_core.adaptation_integers(empty, d, bounds.norm, float(units), None)[1])


def keeps_bounds(sample: Sample, bounds: RecordBounds) -> bool:
    """Return whether projecting the sample into its bounds would change nothing."""
    most = _most_norm(bounds, sample.X.shape[1])
    return bool(np.abs(sample.y).max() <= bounds.label) and all(
        float(_norms(block).max()) <= most for block, _ in _blocks(sample)
    )


def project_sample(sample: Sample, bounds: RecordBounds) -> tuple[NDArray[Any], Floats]:
    """Return copies of rows and labels, projected into their bounds; rows keep their precision."""
    rows, labels = np.empty(sample.X.shape, sample.X.dtype), np.empty(len(sample.y))
    for start, (X, y) in zip(range(0, len(labels), BLOCK), _blocks(sample), strict=True):
        _, labels[start : start + BLOCK] = _project(X, y, bounds)
        rows[start : start + BLOCK] = X
    return rows, labels


def shrink_rows(X: NDArray[Any], norm: float) -> NDArray[Any]:
    """Return a copy of the rows, longer ones shrunk to the norm, as in a private sample."""
    rows, _ = project_sample(Sample("", X, np.zeros(len(X))), RecordBounds(norm, 0.0))
    return rows


def moments_error(n: int, d: int) -> float:
    """Return a bound on the error of the moments of n rows, in squares of their largest residual.

    An entry is a sum of sums of at most BLOCK products, divided by n, and `|v|**2 <= 2`. The
    multiplied rows have errors of d + 3 roundings, which count twice.
    """
    sums = min(n, BLOCK) + -(-n // BLOCK) + 2
    return 1.01 * UNIT * (2 * sums + 2 * d + 8)


def _validate_sample(name: str, X: ArrayLike, y: ArrayLike) -> Sample:
    rows, labels = _validate_numbers(f"X_{name}", X), _validate_numbers(f"y_{name}", y)
    if rows.ndim != 2 or not rows.size:
        rule = "it must have two dimensions and at least one entry"
        raise ShapeError(f"X_{name} has shape {rows.shape}, but {rule}")
    if labels.shape != (len(rows),):
        rule = f"it must be ({len(rows)},), a label for each row of X_{name}"
        raise ShapeError(f"y_{name} has shape {labels.shape}, but {rule}")
    sample = Sample(name, rows, floats(labels))
    for block, part in _slices(sample):
        for letter, values in (("X", block), ("y", part)):
            if not np.isfinite(values).all():
                rule = "an infinite entry or NaN, but all must be finite"
                raise ParameterError(f"{letter}_{name} has {rule}")
    return sample


def _validate_numbers(name: str, value: ArrayLike) -> NDArray[Any]:
    """Validate real numbers: float32 stays, all other types become float64."""
    entries = numbers(name, value)
    return entries if entries.dtype == np.float32 else floats(entries)


def _slices(sample: Sample) -> Iterator[tuple[NDArray[Any], Floats]]:
    """Yield the rows, BLOCK at a time, with their labels."""
    for start in range(0, len(sample.y), BLOCK):
        stop = start + BLOCK
        yield sample.X[start:stop], sample.y[start:stop]


def _blocks(sample: Sample) -> Iterator[tuple[Floats, Floats]]:
    """Yield copies of the rows, BLOCK at a time, with their labels; each replaces the last one."""
    room = np.empty((min(len(sample.y), BLOCK), sample.X.shape[1]))
    for X, y in _slices(sample):
        copy = room[: len(X)]
        copy[...] = X
        yield copy, y


def _norms(X: Floats) -> Floats:
    """Clip entries, in place, so that squares stay finite; return the norms of the rows."""
    squares = np.einsum("ij,ij->i", X, X)
    if not squares.max() <= _LARGEST_SQUARE:
        np.clip(X, -_LARGEST_ENTRY, _LARGEST_ENTRY, out=X)
        squares = np.einsum("ij,ij->i", X, X)
    norms: Floats = np.sqrt(squares, out=squares)
    return norms


def _most_norm(bounds: RecordBounds, d: int) -> float:
    """The norm that longer rows are shrunk to: rounding must not leave one beyond the bound."""
    return bounds.norm * (1 - 4 * (d + 8) * UNIT)


def _project(X: Floats, y: Floats, bounds: RecordBounds) -> tuple[Floats, Floats]:
    """Shrink rows to the bound, in place; return their norms and the labels, clipped."""
    norms = _norms(X)
    most = _most_norm(bounds, X.shape[1])
    if norms.max() > most:
        X *= (most / np.maximum(norms, most))[:, None]
        np.minimum(norms, most, out=norms)
    return norms, y.clip(-bounds.label, bounds.label)


def restrict_ball(
    d: int, radius: float, around: ArrayLike | None, local_radius: float | None
) -> tuple[Ball, bool]:
    """Return the ball of the supremum, and whether it holds no other weights."""
    if around is None and local_radius is None:
        return Ball(np.zeros(d), radius), True
    if around is None or local_radius is None:
        pair = f"around = {shorten(around)} and local_radius = {shorten(local_radius)}"
        raise ParameterError(f"{pair}, but both must be given, or none")
    center, local = _validate_center(around, d), bounded_positive("local_radius", local_radius)
    distance = float(np.linalg.norm(center))
    if distance > radius * (1 + 1e-9):
        rule = f"its norm must be at most radius = {radius:g}"
        raise ParameterError(f"around has norm {distance:g}, but {rule}")
    if distance + local <= radius:
        return Ball(center, local), True
    return _enclose_intersection(center, distance, radius, local)


def _enclose_intersection(
    center: Floats, distance: float, radius: float, local: float
) -> tuple[Ball, bool]:
    """Return the smallest ball around the intersection of a ball at 0 and one at the center.

    The spheres meet in the plane at `height` along the center. Where the plane lies between both
    centers, the intersection is at its widest there; otherwise more than half of one ball is left.
    The result's second entry is whether the ball is the intersection itself.
    """
    if local >= distance + radius:
        return Ball(np.zeros_like(center), radius), True
    height = (distance**2 + radius**2 - local**2) / (2 * distance)
    kept = min(max(height, 0.0), distance)
    widest = math.sqrt(min(radius**2 - kept**2, local**2)) if kept < distance else local
    return Ball(center * (kept / distance), widest), False


def _validate_center(around: ArrayLike, d: int) -> Floats:
    center = array("around", around)
    if center.shape != (d,):
        raise ShapeError(f"around has shape {center.shape}, but it must be ({d},)")
    if center.dtype.kind not in "buif" or not (np.abs(center) <= MOST).all():
        raise ParameterError("around holds something else, but it must hold finite numbers")
    return center.astype(np.float64)


WIDE = RecordBounds(MOST, MOST)
