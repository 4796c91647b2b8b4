"""Chi-squared divergences, the measure of how far a target is from a source."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from .._support.types import Floats
from .._support.validate import array
from ..exceptions import ParameterError, ShapeError


def chi2_finite(target: ArrayLike, source: ArrayLike) -> float:
    """Chi-squared divergence of target from source, the sum of target**2 / source, less 1.

    target, source: probabilities (k,) of the same outcomes, each at least 0 and summing to 1.
    Returns inf where the source lacks an outcome of the target.

    Raises: ShapeError, ParameterError.
    Cost: O(k).
    Source: Kohen and Sheffet 2022, Section 2.
    """
    p, q = _validate_law("target", target), _validate_law("source", source)
    if p.shape != q.shape:
        rule = "they must list the same outcomes"
        raise ShapeError(f"target has shape {p.shape} and source {q.shape}, but {rule}")
    if (p[q == 0] > 0).any():
        return math.inf
    support = q > 0
    # As a sum of squares it is never negative.
    return float((((p - q)[support]) ** 2 / q[support]).sum())


def chi2_gaussians(
    target_mean: ArrayLike,
    target_covariance: ArrayLike,
    source_mean: ArrayLike,
    source_covariance: ArrayLike,
) -> float:
    """Chi-squared divergence of one Gaussian from another.

    target_mean, source_mean: (d,). target_covariance, source_covariance: (d, d), symmetric and
    positive definite, or (d,) for the diagonal of a diagonal one. Returns inf where the target's
    tails are too heavy: unless 2 / target - 1 / source is positive definite.

    Raises: ShapeError, ParameterError.
    Cost: O(d**3), O(d) for diagonals.
    Source: integral of target**2 / source in closed form; Kohen and Sheffet 2022, Section 5, for
        diagonals of mean 0.
    """
    means = [
        _validate_vector(name, value) for name, value in _pair(target_mean, source_mean, "mean")
    ]
    spreads = [
        _invert(name, value, means[0].size)
        for name, value in _pair(target_covariance, source_covariance, "covariance")
    ]
    if means[0].shape != means[1].shape:
        rule = "they must have the same length"
        raise ShapeError(f"the means have shapes {means[0].shape} and {means[1].shape}, but {rule}")
    (target, log_target), (source, log_source) = spreads
    mixed = 2 * target - source
    values, vectors = np.linalg.eigh(mixed)
    if values.min() <= 0:
        return math.inf
    # Means so far apart that a product overflows are infinitely far apart for floats.
    with np.errstate(over="ignore", invalid="ignore"):
        gap = source @ (means[0] - means[1])
        # Completing the square, with the target's mean as origin.
        gain = gap @ (vectors / values) @ (vectors.T @ gap)
        gain += (means[0] - means[1]) @ gap
    log_ratio = float(log_target - (log_source + np.log(values).sum()) / 2 + gain / 2)
    try:
        return math.inf if math.isnan(log_ratio) else math.expm1(log_ratio)
    except OverflowError:
        return math.inf


def _pair(target: ArrayLike, source: ArrayLike, what: str) -> list[tuple[str, ArrayLike]]:
    return [(f"target_{what}", target), (f"source_{what}", source)]


def _validate_finite(name: str, value: ArrayLike) -> Floats:
    values = array(name, value)
    if values.dtype.kind not in "buif" or not np.isfinite(values).all():
        raise ParameterError(f"{name} must hold finite real numbers")
    return values.astype(np.float64)


def _validate_vector(name: str, value: ArrayLike) -> Floats:
    values = _validate_finite(name, value)
    if values.ndim != 1 or not values.size:
        rule = "it must have one dimension and at least one entry"
        raise ShapeError(f"{name} has shape {values.shape}, but {rule}")
    return values


def _validate_law(name: str, value: ArrayLike) -> Floats:
    values = _validate_vector(name, value)
    # All at most 1, so that no sum overflows.
    if not 0 <= values.min() <= values.max() <= 1 + 1e-9 or abs(values.sum() - 1) > 1e-9:
        raise ParameterError(f"{name} must hold probabilities that sum to 1")
    return values


def _invert(name: str, value: ArrayLike, d: int) -> tuple[Floats, float]:
    """The inverse of a covariance and the logarithm of its determinant."""
    values = _validate_finite(name, value)
    if values.shape not in ((d,), (d, d)):
        raise ShapeError(f"{name} has shape {values.shape}, but it must be ({d},) or ({d}, {d})")
    full = np.diag(values) if values.ndim == 1 else values
    if not np.allclose(full, full.T):
        raise ParameterError(f"{name} must be symmetric")
    eigenvalues, vectors = np.linalg.eigh(full)
    if eigenvalues.min() <= 0:
        least = eigenvalues.min()
        raise ParameterError(f"{name} has eigenvalue {least:g}, but all must be above 0")
    return (vectors / eigenvalues) @ vectors.T, float(-np.log(eigenvalues).sum())
