"""Chi-squared divergences, which measure how far a target is from a source."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from .._support.types import Floats
from .._support.validate import array
from ..exceptions import ParameterError, ShapeError


def chi2_finite(target: ArrayLike, source: ArrayLike) -> float:
    """Computes the chi-squared divergence of target from source on finitely many outcomes.

    The divergence is the sum of `target**2 / source`, minus 1.

    Args:
        target: Probabilities of shape (k,), each at least 0 and summing to 1 up to 1e-9.
        source: Probabilities of the same k outcomes.

    Returns:
        The divergence, at least 0; inf where the source lacks an outcome that the target has.

    Raises:
        ShapeError: An argument has not one dimension, is empty, or the shapes differ.
        ParameterError: The entries are not probabilities that sum to 1.

    Cost:
        O(k).

    Source:
        Kohen and Sheffet 2022, Section 2.

    Examples:
        >>> from hdp_fast import transfer
        >>> round(transfer.chi2_finite([0.5, 0.5], [0.25, 0.75]), 4)
        0.3333
        >>> transfer.chi2_finite([0.5, 0.5], [1, 0])
        inf
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
    """Computes the chi-squared divergence of one Gaussian from another.

    Args:
        target_mean: Mean of the target, of shape (d,).
        target_covariance: Covariance of the target: a symmetric, positive definite matrix of shape
            (d, d), or its diagonal of shape (d,).
        source_mean: Mean of the source, of shape (d,).
        source_covariance: Covariance of the source, in either of the two forms.

    Returns:
        The divergence. It is inf where the tails of the target are too heavy, that is unless `2
        T**-1 - S**-1` is positive definite for the covariances T and S, and where it is too large
        for a float.

    Raises:
        ShapeError: A mean has not one dimension, the means have different lengths, or a covariance
            has neither shape.
        ParameterError: An entry is not a finite real number, or a covariance is not symmetric or
            has an eigenvalue that is not above 0.

    Cost:
        `O(d**3)`.

    Source:
        The integral of `target**2 / source` in closed form. Kohen and Sheffet 2022, Section 5,
        gives it for diagonals and means 0.

    Examples:
        >>> from hdp_fast import transfer
        >>> round(transfer.chi2_gaussians([0.0], [1.0], [0.5], [1.0]), 4)  # exp(0.5**2) - 1
        0.284
        >>> transfer.chi2_gaussians([0.0], [2.0], [0.0], [1.0])  # the target's tails are too heavy
        inf
    """
    means = [
        _validate_vector(name, value) for name, value in _pair(target_mean, source_mean, "mean")
    ]
    if means[0].shape != means[1].shape:
        rule = "they must have the same length"
        raise ShapeError(f"the means have shapes {means[0].shape} and {means[1].shape}, but {rule}")
    covariances = [
        (name, _validate_covariance(name, value, means[0].size))
        for name, value in _pair(target_covariance, source_covariance, "covariance")
    ]
    (target, log_target), (source, log_source) = [_invert(*named) for named in covariances]
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


def _validate_covariance(name: str, value: ArrayLike, d: int) -> Floats:
    """A covariance or its diagonal, checked before any diagonal is filled up to a matrix."""
    values = _validate_finite(name, value)
    if values.shape not in ((d,), (d, d)):
        raise ShapeError(f"{name} has shape {values.shape}, but it must be ({d},) or ({d}, {d})")
    return values


def _invert(name: str, values: Floats) -> tuple[Floats, float]:
    """The inverse of a covariance, and the logarithm of the determinant of that inverse."""
    full = np.diag(values) if values.ndim == 1 else values
    if not np.allclose(full, full.T):
        raise ParameterError(f"{name} must be symmetric")
    eigenvalues, vectors = np.linalg.eigh(full)
    if eigenvalues.min() <= 0:
        least = eigenvalues.min()
        raise ParameterError(f"{name} has eigenvalue {least:g}, but all must be above 0")
    return (vectors / eigenvalues) @ vectors.T, float(-np.log(eigenvalues).sum())
