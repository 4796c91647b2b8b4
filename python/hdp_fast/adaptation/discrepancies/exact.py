"""The labeled discrepancy: how much the mean losses of two samples differ for linear predictors."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..._support.json_text import JsonText
from ..._support.notes import keep_result
from ..._support.types import Floats
from ..._support.validate import MOST, array, bounded_positive, one_of, read_only, shorten
from ...exceptions import ParameterError, ShapeError
from .moments import WIDE, Ball, RecordBounds, Sample, moments, refuse_beyond, validate_samples
from .trust_region import Method, maximize_magnitude

Private = Literal["target", "source"]

DOMAINS = ("target", "source")
# Labels of private records are clipped to [-1, 1], those of public ones must lie there.
LABEL_BOUND = 1.0
_METHODS = ("exact", "dca")


@dataclass(frozen=True, eq=False)
class Discrepancy(JsonText):
    """The largest difference of the mean losses of two samples, and the weights that attain it.

    Attributes:
        value: |mean target loss - mean source loss| at w, at least 0 up to the gap.
        gap: Certified bound: the supremum exceeds the value by at most this much, all rounding
            included.
        w: The weights, float64 of shape (d,), read-only.
        sign: 1 where the target's mean loss is the larger one, -1 where the source's is.
        exact: Whether the supremum is over the weights that were asked for. False where it is over
            the smallest ball around them, and thus an upper bound.

    Examples:
        >>> from hdp_fast.adaptation import discrepancy
        >>> result = discrepancy([[1], [-1]], [0.5, -0.5], [[1], [-1]], [-0.5, 0.5], radius=1)
        >>> print(f"{result.value:.6f} at w = {result.w.round(6)}, sign {result.sign}")
        2.000000 at w = [1.], sign 1
        >>> result.exact, result.gap < 1e-12
        (True, True)
    """

    value: float
    gap: float
    w: Floats
    sign: int
    exact: bool


class DiscrepancyProblem(NamedTuple):
    """Two validated samples, their bounds and the ball of weights.

    exact: whether the ball holds no other weights than those that were asked for.
    """

    source: Sample
    target: Sample
    bounds: RecordBounds
    ball: Ball
    exact: bool


@keep_result
def discrepancy(
    X_source: ArrayLike,
    y_source: ArrayLike,
    X_target: ArrayLike,
    y_target: ArrayLike,
    *,
    radius: float,
    norm_bound: float | None = None,
    private: Private = "target",
    around: ArrayLike | None = None,
    local_radius: float | None = None,
    method: Method = "exact",
) -> Discrepancy:
    """Computes the empirical labeled discrepancy of two samples for linear predictors.

    This is the supremum of |mean target loss - mean source loss| over |w| <= radius, where the loss
    of a record is `(w . x - y)**2`. The result has no noise: a private discrepancy is released by
    release_discrepancy.

    Args:
        X_source: Records of the source, finite real numbers of shape (m, d), m and d at least 1.
            Columns of a frame are put into the target's order.
        y_source: Labels of the source, finite real numbers of shape (m,).
        X_target: Records of the target, finite real numbers of shape (n, d), n at least 1.
        y_target: Labels of the target, finite real numbers of shape (n,).
        radius: Bound on the norm of the weights, in [1e-30, 1e30].
        norm_bound: None takes all rows and labels as they are; they must not exceed 1e30. A number
            in [1e-30, 1e30] shrinks the rows of the private sample to this norm and clips its
            labels to [-1, 1], silently; the other sample must keep both bounds.
        private: The sample that norm_bound shrinks, "target" or "source".
        around: Center of a ball that restricts the supremum, shape (d,), of norm at most radius;
            local_radius must come with it. None for no restriction.
        local_radius: Radius of that ball, in [1e-30, 1e30]. Where the ball leaves the ball of
            `radius`, the supremum is over the smallest ball that holds their intersection: an upper
            bound, as the attribute `exact` states.
        method: "exact" solves a trust-region problem for both signs, by eigenvectors and Newton's
            method, the hard case included. "dca" uses differences of convex functions. The gap of
            both methods is certified by the dual bound.

    Returns:
        The discrepancy, its gap and the weights that attain it.

    Raises:
        ShapeError: An array has another shape than described.
        ParameterError: An entry is no finite real number, a parameter is out of range, a row or
            label exceeds its bound, only one of around and local_radius is given, or the frames of
            both samples have different columns.

    Cost:
        `O((m + n) d**2)` by BLAS in a pass over the rows, one or two passes that validate them, and
        `O(d**3)`. "dca" adds at most 20,000 products of a matrix and a vector.

    Source:
        Bassily, Cortes, Mao and Mohri 2024, (2); More and Sorensen 1983 for the secular equation,
        hard case and duality; Tao and An 1998 for DCA, Carmon and Duchi 2020 for its start.

    Examples:
        >>> import numpy as np
        >>> from hdp_fast.adaptation import discrepancy
        >>> X = np.linspace(-1, 1, 1_001)[:, None]
        >>> y = 0.5 * X[:, 0]
        >>> same = discrepancy(X, y, X, y, radius=1)
        >>> opposite = discrepancy(X, y, X, -y, radius=1)
        >>> print(f"{same.value:.3f} and {opposite.value:.3f}")
        0.000 and 0.668
    """
    data = X_source, y_source, X_target, y_target
    problem = validate_problem(data, radius, norm_bound, private, around, local_radius)
    one_of("method", method, _METHODS)
    return solve(problem, method)


def validate_problem(
    data: tuple[ArrayLike, ArrayLike, ArrayLike, ArrayLike],
    radius: float,
    norm_bound: float | None,
    private: Private,
    around: ArrayLike | None,
    local_radius: float | None,
) -> DiscrepancyProblem:
    """Validate the arguments; rows of the public sample must keep their bounds.

    Raises: ShapeError, ParameterError.
    """
    largest = bounded_positive("radius", radius)
    bounds = (
        WIDE
        if norm_bound is None
        else RecordBounds(bounded_positive("norm_bound", norm_bound), LABEL_BOUND)
    )
    one_of("private", private, DOMAINS)
    source, target = validate_samples(*data)
    ball, exact = _restrict_ball(source.X.shape[1], largest, around, local_radius)
    for sample in (source, target):
        if norm_bound is None or sample.name != private:
            refuse_beyond(sample, bounds)
    return DiscrepancyProblem(source, target, bounds, ball, exact)


def solve(problem: DiscrepancyProblem, method: Method = "exact") -> Discrepancy:
    """Compute the discrepancy; the gap includes the errors of the moments."""
    _, _, bounds, ball, exact = problem
    target, source = moments(problem.target, bounds, ball), moments(problem.source, bounds, ball)
    largest = maximize_magnitude(target.matrix - source.matrix, method)
    w = read_only(ball.center + ball.radius * largest.point)
    gap = largest.gap + target.error + source.error
    return Discrepancy(largest.value, gap, w, largest.sign, exact)


def _restrict_ball(
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
