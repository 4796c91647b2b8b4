"""The greatest magnitude of a quadratic on the unit ball, with a proof of how exact it is.

A quadratic is a symmetric matrix H of (d + 1, d + 1) and stands for v'Hv at v = (z, -1). Its
greatest and its least value are two trust-region problems, neither of them convex. Whatever the
eigenvectors, the multiplier and the point are that a numerical routine found: the point has a
value, the multiplier a dual bound, and both are corrected for all rounding on the way, by the
classical bound gamma_k = k u / (1 - k u) for sums of k products in any order.
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import numpy as np

from ..._support.types import Floats
from .moments import UNIT

Method = Literal["exact", "dca"]

# The multiplier stays so far from the point where its matrix is singular, in units of its norm.
_FLOOR = 2.0**-50
_LEAST = 1e-290
_NEWTON_STEPS = 50
_DCA_STEPS, _DCA_STOP = 5_000, 1e-14
# How far the starts of DCA lie off the gradient's line.
_DCA_ASIDE = 1e-3


class Extreme(NamedTuple):
    """Where a quadratic is greatest in magnitude.

    Attributes:
        value: sign times the quadratic at the point.
        gap: value is at most so far from the greatest magnitude in the ball.
        point: float64 (d,), of norm at most 1.
        sign: 1 where the quadratic itself is greatest, -1 where its negative is.
    """

    value: float
    gap: float
    point: Floats
    sign: int


class _Spectrum(NamedTuple):
    """What eigenvectors say of z'Pz - 2 q'z for all |z| <= 1.

    Attributes:
        values, vectors: as numpy.linalg.eigh returns them.
        linear: q in the eigenvectors.
        residual: how much is lost by taking the decomposition for P, and `linear` for q.
        stretch: |vectors' z|**2 <= 1 + stretch.
    """

    values: Floats
    vectors: Floats
    linear: Floats
    residual: float
    stretch: float


class _Side(NamedTuple):
    """The greatest value of one sign: what a point has and no point exceeds."""

    value: float
    upper: float
    point: Floats


def extreme(H: Floats, method: Method) -> Extreme:
    """The greatest magnitude of v'Hv, by eigendecomposition or by DCA; certified by the former."""
    # BLAS may add up the two halves in different orders; the values v'Hv are those of their mean.
    H = (H + H.T) / 2
    spectrum = _spectrum(H)
    sides = {sign: _greatest(H, spectrum, sign, method) for sign in (1, -1)}
    sign = max(sides, key=lambda each: sides[each].value)
    best, upper = sides[sign], max(each.upper for each in sides.values())
    slack = 3 * _unit(len(H) - 1) * float(np.linalg.norm(H)) + _LEAST
    return Extreme(best.value, max(slack, upper - best.value), best.point, sign)


def gap_bound(d: int) -> float:
    """The gap that "exact" leaves for a matrix that eigh decomposes as LAPACK promises.

    In units of the greatest |row|**2 of the two samples whose moments are subtracted. The terms are
    those of this module with their sizes put in; they are doubled for the residual and stretch that
    eigh leaves, which took at most a fiftieth of that.
    """
    return 2 * _unit(d) * (2 * d + 4 * math.sqrt(d) + 24)


def _unit(d: int) -> float:
    """Twice gamma_k for all sums over columns here, products of two or three included."""
    return 2 * (d + 17) * UNIT


def _spectrum(H: Floats) -> _Spectrum:
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


def _greatest(H: Floats, spectrum: _Spectrum, sign: int, method: Method) -> _Side:
    """The greatest value of sign v'Hv."""
    values, linear = -sign * spectrum.values, -sign * spectrum.linear
    shift, coordinates = _minimum(values, linear)
    if method == "exact":
        point = _inside(spectrum.vectors @ coordinates)
    else:
        point = _by_dca(-sign * H[:-1, :-1], -sign * H[:-1, -1])
    constant, unit = sign * float(H[-1, -1]), _unit(len(H) - 1)
    dual = float((linear**2 / (values + shift)).sum()) + shift * (1 + spectrum.stretch)
    rounding = unit * (2 * dual + abs(constant)) + _LEAST
    return _Side(_value(H, point, sign), constant + dual + spectrum.residual + rounding, point)


def _minimum(values: Floats, linear: Floats) -> tuple[float, Floats]:
    """Multiplier and minimum of sum values_i z_i**2 - 2 linear_i z_i on the ball.

    A minimum has z_i = linear_i / (values_i + multiplier), none of these denominators negative, and
    lies on the sphere unless the multiplier is 0 (More and Sorensen 1983). The search is for the
    least denominator: differences of eigenvalues keep their digits.
    """
    first = int(values.argmin())
    lowest, distances = float(values[first]), values - values[first]
    floor = max(_FLOOR * float(np.abs(values).max() + np.linalg.norm(linear)), _LEAST)
    least, found = on_sphere(distances, linear, max(lowest, floor))
    shift = max(least - lowest, 0.0)
    # The hard case: nothing but the lowest eigenvector is left to reach the sphere with.
    missing = 1 - float(found @ found)
    if shift > 0 and missing > 0:
        found[first] = math.copysign(math.sqrt(missing + found[first] ** 2), found[first])
    return shift, found


def on_sphere(distances: Floats, linear: Floats, least: float) -> tuple[float, Floats]:
    """The first x from `least` on, and z_i = linear_i / (distances_i + x), with |z| at most 1.

    Newton's method for 1 / |z| = 1: it never goes too far, 1 / |z| being concave in x.
    """
    for _ in range(_NEWTON_STEPS):
        found: Floats = linear / (distances + least)
        length = float(np.linalg.norm(found))
        if length <= 1 + 8 * UNIT:
            break
        least += (length - 1) / float(((found / length) ** 2 / (distances + least)).sum())
    return least, found


def _by_dca(P: Floats, q: Floats) -> Floats:
    """A minimum of z'Pz - 2 q'z on the ball, without eigenvectors.

    The convex parts are rho |z|**2 and rho |z|**2 - z'Pz + 2 q'z, the second of which is replaced
    by its tangent (Tao and An 1998, Section 3). From the gradient's direction every coordinate in
    the eigenvectors keeps its right sign, so that only the global minimum is left to converge to
    unless a coordinate is 0 there (Carmon and Duchi 2020); hence the two starts a little aside.
    From elsewhere DCA may stop at the one local minimum that is not global, unlike what is said in
    Bassily, Cortes, Mao and Mohri 2024, Section 4.
    """
    largest = min(np.linalg.norm(P), np.abs(P).sum(axis=0).max())
    rho = max(largest, UNIT * np.linalg.norm(q), _LEAST)
    aside = _DCA_ASIDE * np.cos(np.arange(1.0, len(q) + 1))
    ahead = q / max(float(np.linalg.norm(q)), _LEAST)
    found = [_descended(P / rho, q / rho, _inside(ahead + side)) for side in (aside, -aside)]
    return min(found, key=lambda z: float(z @ P @ z - 2 * q @ z))


def _descended(P: Floats, q: Floats, z: Floats) -> Floats:
    for _ in range(_DCA_STEPS):
        before, z = z, _inside(z - P @ z + q)
        if np.linalg.norm(z - before) <= _DCA_STOP:
            break
    return z


def _inside(z: Floats) -> Floats:
    """The point, shrunk into the ball where it is outside, rounding included."""
    most = 1 - 4 * (len(z) + 8) * UNIT
    shrunk: Floats = z * (most / max(float(np.linalg.norm(z)), most))
    return shrunk


def _value(H: Floats, point: Floats, sign: int) -> float:
    v = np.append(point, -1.0)
    return sign * float(v @ H @ v)
