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
from ..._support.validate import bounded_positive, one_of, read_only
from .moments import (
    UNIT,
    WIDE,
    Ball,
    RecordBounds,
    Sample,
    moments,
    refuse_beyond,
    restrict_ball,
    validate_samples,
)

Method = Literal["exact", "dca"]

# A quadratic is a symmetric matrix H of shape (d + 1, d + 1) and stands for v'Hv at v = (z, -1).
# Its maximum and its minimum are two trust-region problems, and neither is convex. The certificate
# holds for any eigenvectors, multiplier and point that a routine returns: the point has a value,
# the multiplier a dual bound, and both are corrected for all rounding errors on the way. The
# correction is the classical bound gamma_k = k u / (1 - k u) for sums of k products in any order.

# Least distance of the multiplier from where its matrix is singular, in units of the matrix's norm.
_FLOOR = 2.0**-50
_LEAST = 1e-290
_NEWTON_STEPS = 50
_DCA_STEPS, _DCA_STOP = 5_000, 1e-14
# Distance of the starts of DCA from the gradient's line.
_DCA_ASIDE = 1e-3


class Extreme(NamedTuple):
    """The point at which a quadratic is largest in magnitude.

    Attributes:
        value: sign times the quadratic at the point.
        gap: The largest magnitude in the ball exceeds the value by at most this much.
        point: float64 (d,), of norm at most 1.
        sign: 1 where the quadratic itself is largest, -1 where its negative is.
    """

    value: float
    gap: float
    point: Floats
    sign: int


class _Spectrum(NamedTuple):
    """The eigendecomposition of z'Pz - 2 q'z, with bounds on its errors for |z| <= 1.

    Attributes:
        values: Eigenvalues, as numpy.linalg.eigh returns them.
        vectors: Eigenvectors, in its columns.
        linear: q in the basis of the eigenvectors.
        residual: Bound on the error of replacing P by the decomposition, and q by `linear`.
        stretch: `|vectors' z|**2 <= 1 + stretch`.
    """

    values: Floats
    vectors: Floats
    linear: Floats
    residual: float
    stretch: float


class _SignMaximum(NamedTuple):
    """The maximum for one sign: the value at a point, and a bound that no point exceeds."""

    value: float
    upper: float
    point: Floats


def maximize_magnitude(H: Floats, method: Method) -> Extreme:
    """Maximize the magnitude of v'Hv, by eigenvectors or by DCA.

    The eigenvectors certify the gap of both methods.
    """
    # BLAS may add up the two triangles in different orders; v'Hv is that of their mean.
    H = (H + H.T) / 2
    spectrum = _decompose(H)
    sides = {sign: _maximize_sign(H, spectrum, sign, method) for sign in (1, -1)}
    sign = 1 if sides[1].value >= sides[-1].value else -1
    best, upper = sides[sign], max(sides[1].upper, sides[-1].upper)
    slack = 3 * _unit(len(H) - 1) * float(np.linalg.norm(H)) + _LEAST
    return Extreme(best.value, max(slack, upper - best.value), best.point, sign)


def gap_bound(d: int) -> float:
    """Return a bound on the gap of "exact", if eigh decomposes as accurately as LAPACK promises.

    The unit is the largest `|row|**2` of the two samples whose moments are subtracted. The terms
    are those of the certificate with their sizes put in. They are doubled to leave room for the
    residual and the stretch of eigh, which took at most a fiftieth of it in all measurements.
    """
    return 2 * _unit(d) * (2 * d + 4 * math.sqrt(d) + 24)


def _unit(d: int) -> float:
    """Return twice gamma_k for all sums over columns here, products of two or three included."""
    return 2 * (d + 17) * UNIT


def _decompose(H: Floats) -> _Spectrum:
    P, q = H[:-1, :-1], H[:-1, -1]
    values, vectors = np.linalg.eigh(P)
    linear = vectors.T @ q
    d = len(q)
    unit = _unit(d)
    residual = np.linalg.norm(P - (vectors * values) @ vectors.T)
    residual += 2 * np.linalg.norm(q - vectors @ linear)
    # |V| |values| |V'| has at most twice the norm sum |values|, |V| |linear| at most sqrt(2 d)
    # times that of linear, |V| |V'| at most 2 d.
    rounding = np.abs(values).sum() + math.sqrt(d) * np.linalg.norm(q)
    stretch = np.linalg.norm(vectors @ vectors.T - np.eye(d)) + d * unit
    return _Spectrum(
        values, vectors, linear, float(1.01 * residual + 4 * unit * rounding), float(1.01 * stretch)
    )


def _maximize_sign(H: Floats, spectrum: _Spectrum, sign: int, method: Method) -> _SignMaximum:
    """Return the maximum of sign v'Hv."""
    values, linear = -sign * spectrum.values, -sign * spectrum.linear
    shift, coordinates = _minimize_on_ball(values, linear)
    if method == "exact":
        point = _shrink_into_ball(spectrum.vectors @ coordinates)
    else:
        point = _minimize_by_dca(-sign * H[:-1, :-1], -sign * H[:-1, -1])
    constant, unit = sign * float(H[-1, -1]), _unit(len(H) - 1)
    dual = float((linear**2 / (values + shift)).sum()) + shift * (1 + spectrum.stretch)
    rounding = unit * (2 * dual + abs(constant)) + _LEAST
    return _SignMaximum(
        _value(H, point, sign), constant + dual + spectrum.residual + rounding, point
    )


def _minimize_on_ball(values: Floats, linear: Floats) -> tuple[float, Floats]:
    """Return multiplier and minimum of `sum values_i z_i**2 - 2 linear_i z_i` on the ball.

    A minimum has z_i = linear_i / (values_i + multiplier), where no denominator is negative. It
    lies on the sphere unless the multiplier is 0 (More and Sorensen 1983). The search is for the
    smallest denominator instead of the multiplier, since differences of eigenvalues keep their
    digits.
    """
    first = int(values.argmin())
    lowest, distances = float(values[first]), values - values[first]
    floor = max(_FLOOR * float(np.abs(values).max() + np.linalg.norm(linear)), _LEAST)
    least, z = move_to_sphere(distances, linear, max(lowest, floor))
    shift = max(least - lowest, 0.0)
    # The hard case: only along the lowest eigenvector can the point still reach the sphere.
    missing = 1 - float(z @ z)
    if shift > 0 and missing > 0:
        z[first] = math.copysign(math.sqrt(missing + z[first] ** 2), z[first])
    return shift, z


def move_to_sphere(distances: Floats, linear: Floats, least: float) -> tuple[float, Floats]:
    """Increase x from `least` until z_i = linear_i / (distances_i + x) has |z| at most 1.

    Returns x and z. Newton's method for 1 / |z| = 1 never overshoots, 1 / |z| being concave in x.
    """
    for _ in range(_NEWTON_STEPS):
        z: Floats = linear / (distances + least)
        length = float(np.linalg.norm(z))
        if length <= 1 + 8 * UNIT:
            break
        least += (length - 1) / float(((z / length) ** 2 / (distances + least)).sum())
    return least, z


def _minimize_by_dca(P: Floats, q: Floats) -> Floats:
    """Return a minimum of z'Pz - 2 q'z on the ball, without eigenvectors.

    The convex parts are `rho |z|**2` and `rho |z|**2 - z'Pz + 2 q'z`; the second is replaced by its
    tangent (Tao and An 1998, Section 3). From the gradient's direction every coordinate in the
    basis of the eigenvectors keeps its right sign. Then only the global minimum is left to converge
    to, unless such a coordinate is 0 (Carmon and Duchi 2020); hence the two starts a little off
    that direction. From other starts DCA may stop at the one local minimum that is not global,
    contrary to Bassily, Cortes, Mao and Mohri 2024, Section 4.
    """
    largest = min(np.linalg.norm(P), np.abs(P).sum(axis=0).max())
    rho = max(largest, UNIT * np.linalg.norm(q), _LEAST)
    aside = _DCA_ASIDE * np.cos(np.arange(1.0, len(q) + 1))
    ahead = q / max(float(np.linalg.norm(q)), _LEAST)
    minima = [
        _run_dca(P / rho, q / rho, _shrink_into_ball(ahead + side)) for side in (aside, -aside)
    ]
    return min(minima, key=lambda z: float(z @ P @ z - 2 * q @ z))


def _run_dca(P: Floats, q: Floats, z: Floats) -> Floats:
    for _ in range(_DCA_STEPS):
        before, z = z, _shrink_into_ball(z - P @ z + q)
        if np.linalg.norm(z - before) <= _DCA_STOP:
            break
    return z


def _shrink_into_ball(z: Floats) -> Floats:
    """Return the point, shrunk into the ball where it lies outside, with room for rounding."""
    most = 1 - 4 * (len(z) + 8) * UNIT
    shrunk: Floats = z * (most / max(float(np.linalg.norm(z)), most))
    return shrunk


def _value(H: Floats, point: Floats, sign: int) -> float:
    v = np.append(point, -1.0)
    return sign * float(v @ H @ v)


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
    ball, exact = restrict_ball(source.X.shape[1], largest, around, local_radius)
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
