"""The labeled discrepancy: how much the mean losses of two samples differ for linear predictors."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..._support.json_text import to_text
from ..._support.types import Floats
from ..._support.validate import MOST, array, bounded_positive, one_of, shorten
from ...exceptions import ParameterError, ShapeError
from ...learners.hypotheses import read_only
from .moments import WIDE, Ball, Bounds, Sample, moments, refuse_beyond, validate_samples
from .trust_region import Method, maximize_magnitude

Private = Literal["target", "source"]

DOMAINS = ("target", "source")
# Labels of private records are clipped to [-1, 1], those of public ones must lie there.
LABEL_BOUND = 1.0
_METHODS = ("exact", "dca")


@dataclass(frozen=True, eq=False)
class Discrepancy:
    """The greatest difference of mean losses, and the weights that have it.

    Attributes:
        value: |mean target loss - mean source loss| at w, at least 0 up to the gap.
        gap: certified: the supremum is at most so far from the value, all rounding included.
        w: float64 (d,), read-only.
        sign: 1 where the target's mean loss is the larger one, -1 where the source's is.
        exact: whether the supremum is over the weights that were asked for; False where it is over
            the least ball around them, and bounds theirs from above.
    """

    value: float
    gap: float
    w: Floats
    sign: int
    exact: bool

    def to_json(self) -> str:
        """Its attributes as a JSON object.

        Raises: nothing.
        Cost: that of the text.
        Source: none.
        """
        return to_text(vars(self))


class DiscrepancyProblem(NamedTuple):
    """Two validated samples, their bounds and the ball of weights; exact: as Discrepancy."""

    source: Sample
    target: Sample
    bounds: Bounds
    ball: Ball
    exact: bool


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
    """The empirical labeled discrepancy: sup over |w| <= radius of |target loss - source loss|.

    A loss is the mean of (w.x - y)**2 over a sample. This is no release: see release_discrepancy.

    X_source (m, d), y_source (m,), X_target (n, d), y_target (n,): finite real numbers, m and n at
    least 1. radius: in [1e-30, 1e30]. norm_bound: None takes all rows and labels as they are, up to
    1e30; otherwise rows of the private sample are shrunk to this norm and its labels clipped to
    [-1, 1], silently, while those of the other one must keep both. private: which sample is
    shrunk, "target" or "source". around (d,), |around| <= radius, and local_radius: restrict the
    supremum to the weights at most local_radius from around. Where that ball leaves the ball of
    radius, the supremum is over the least ball that holds their intersection: an upper bound, as
    `exact` says. method: "exact" solves both signs as trust-region problems by eigenvectors and
    Newton's method, the hard case included; "dca" by differences of convex functions. The gap is
    certified for both, by the dual bound.

    Raises: ShapeError, ParameterError.
    Cost: a pass over the rows, O((m + n) d**2) by BLAS, besides one or two that look at them, and
        O(d**3); "dca" adds at most 20,000 products of a matrix and a vector.
    Source: Bassily, Cortes, Mao and Mohri, (2); More and Sorensen 1983 for the secular equation,
        hard case and duality; Tao and An 1998 for DCA, Carmon and Duchi 2020 for its start.
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
        else Bounds(bounded_positive("norm_bound", norm_bound), LABEL_BOUND)
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
    """The ball that the supremum is over, and whether it holds no other weights."""
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
    """The least ball around the intersection of a ball at 0 and one at the center.

    The spheres meet in the plane at `height` along the center. Where it lies between both centers,
    what they have in common is at its widest there; otherwise more than half of one ball is left.
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
