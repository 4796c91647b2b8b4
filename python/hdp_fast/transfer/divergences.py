"""Divergences of a target from a source: chi-squared, Renyi of every order, any f-divergence."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._support.types import Floats
from .._support.validate import (
    array,
    number,
    refuse,
)
from ..exceptions import ParameterError, ShapeError

# Variances and means that differ by so little, in units of the target, are the same.
_ALIKE = 1e-12


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
    p, q = _validate_laws(target, source)
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
    pair = _pair(target_mean, target_covariance, source_mean, source_covariance)
    log_ratio = _renyi_of_normals(*pair, 2.0)
    try:
        return math.expm1(log_ratio)
    except OverflowError:
        return math.inf


def renyi_finite(target: ArrayLike, source: ArrayLike, order: float) -> float:
    """Computes the Renyi divergence of target from source on finitely many outcomes.

    At order a it is ln(sum of `target**a source**(1 - a)`) / (a - 1). Order 1 is the
    Kullback-Leibler divergence, order 2 is ln(1 + chi2), and order math.inf the logarithm of the
    largest ratio of the probabilities, which the paper writes D with an infinity sign.

    Args:
        target: Probabilities of shape (k,), each at least 0 and summing to 1 up to 1e-9.
        source: Probabilities of the same k outcomes.
        order: At least 1; math.inf is allowed.

    Returns:
        The divergence in natural logarithms, at least 0; inf where the source lacks an outcome that
        the target has.

    Raises:
        ShapeError: An argument has not one dimension, is empty, or the shapes differ.
        ParameterError: The entries are not probabilities that sum to 1, or order is below 1.

    Cost:
        O(k).

    Source:
        Kohen and Sheffet 2022, Section 2.

    Examples:
        >>> import math
        >>> from hdp_fast import transfer
        >>> laws = [0.5, 0.5], [0.25, 0.75]
        >>> [round(transfer.renyi_finite(*laws, order), 4) for order in (1, 2, 4, math.inf)]
        [0.1438, 0.2877, 0.4784, 0.6931]
        >>> round(math.expm1(transfer.renyi_finite(*laws, 2)), 4) == round(
        ...     transfer.chi2_finite(*laws), 4)
        True
    """
    a = _validate_order(order)
    p, q = _validate_laws(target, source)
    if (p[q == 0] > 0).any():
        return math.inf
    p, q = p[p > 0], q[p > 0]
    ratios = np.log(p) - np.log(q)
    if a == math.inf:
        return max(0.0, float(ratios.max()))
    if a == 1:
        return max(0.0, float(p @ ratios))
    # Of the mean of exp((a - 1) ratio), whose largest term is taken out.
    powers = np.log(p) + (a - 1) * ratios
    top = powers.max()
    return max(0.0, float((top + np.log(np.exp(powers - top).sum())) / (a - 1)))


def renyi_gaussians(
    target_mean: ArrayLike,
    target_covariance: ArrayLike,
    source_mean: ArrayLike,
    source_covariance: ArrayLike,
    order: float,
) -> float:
    """Computes the Renyi divergence of one Gaussian from another, as `renyi_finite` defines it.

    Args:
        target_mean: Mean of the target, of shape (d,).
        target_covariance: Covariance of the target: a symmetric, positive definite matrix of shape
            (d, d), or its diagonal of shape (d,).
        source_mean: Mean of the source, of shape (d,).
        source_covariance: Covariance of the source, in either of the two forms.
        order: At least 1; math.inf is allowed.

    Returns:
        The divergence in natural logarithms. It is inf where the tails of the target are too heavy:
        unless order S - (order - 1) T is positive definite for the covariances T and S. At order
        math.inf no variance of the target, in units of the source's, may be above 1, and a
        direction in which they agree to 1e-12 adds nothing if the means do, and else inf.

    Raises:
        ShapeError: As for `chi2_gaussians`.
        ParameterError: As for `chi2_gaussians`, or order is below 1.

    Cost:
        `O(d**3)`.

    Source:
        Gil, Alajaji and Linder 2013; Kohen and Sheffet 2022, Sections 2 and 5.

    Examples:
        >>> from hdp_fast import transfer
        >>> pair = [0.5], [1.0], [0.0], [1.0]
        >>> [transfer.renyi_gaussians(*pair, order) for order in (1, 2, 4)]  # order (0.5**2) / 2
        [0.125, 0.25, 0.5]
        >>> round(transfer.renyi_gaussians([0.0], [0.25], [0.0], [1.0], float("inf")), 4)  # ln 2
        0.6931
    """
    a = _validate_order(order)
    pair = _pair(target_mean, target_covariance, source_mean, source_covariance)
    return _renyi_of_normals(*pair, a)


def f_divergence(target: ArrayLike, source: ArrayLike, f: Callable[[Floats], ArrayLike]) -> float:
    """Computes the f-divergence of target from source on finitely many outcomes.

    It is the mean under the source of f(target / source). f(w) = |w - 1| / 2 makes the total
    variation distance, w ln(w) the Kullback-Leibler divergence and `w**2` - 1 the chi-squared one.

    Args:
        target: Probabilities of shape (k,), each at least 0 and summing to 1 up to 1e-9.
        source: Probabilities of the same k outcomes; 0 only where the target has 0.
        f: A convex function with f(1) = 0, called with an array of ratios, at least 0.

    Returns:
        The divergence.

    Raises:
        ShapeError: An argument has not one dimension, is empty, or the shapes differ.
        ParameterError: The entries are not probabilities that sum to 1, the source lacks an outcome
            that the target has, f is not callable, or it returns other than k finite numbers.

    Cost:
        O(k), and one call of f.

    Source:
        Kohen and Sheffet 2022, Section 2.

    Examples:
        >>> from hdp_fast import transfer
        >>> transfer.f_divergence([0.5, 0.5], [0.25, 0.75], lambda w: abs(w - 1) / 2)
        0.25
    """
    if not callable(f):
        refuse("f", f, "it must be callable")
    p, q = _validate_laws(target, source)
    if (p[q == 0] > 0).any():
        raise ParameterError("source has 0 where target has not, but then no ratio is finite")
    p, q = p[q > 0], q[q > 0]
    values = _validate_finite("f(target / source)", f(p / q))
    if values.shape != q.shape:
        raise ShapeError(f"f returned shape {values.shape}, but it must be {q.shape}")
    return float(q @ values)


def _validate_order(order: Any) -> float:
    checked = number("order", order)
    if not checked >= 1:
        refuse("order", order, "it must be at least 1")
    return checked


def _validate_laws(target: ArrayLike, source: ArrayLike) -> tuple[Floats, Floats]:
    p, q = _validate_law("target", target), _validate_law("source", source)
    if p.shape != q.shape:
        rule = "they must list the same outcomes"
        raise ShapeError(f"target has shape {p.shape} and source {q.shape}, but {rule}")
    return p, q


def _pair(
    target_mean: ArrayLike,
    target_covariance: ArrayLike,
    source_mean: ArrayLike,
    source_covariance: ArrayLike,
) -> tuple[Floats, Floats]:
    """The source's variances and its mean in coordinates in which the target is standard."""
    means = [
        _validate_vector(name, value)
        for name, value in (("target_mean", target_mean), ("source_mean", source_mean))
    ]
    if means[0].shape != means[1].shape:
        rule = "they must have the same length"
        raise ShapeError(f"the means have shapes {means[0].shape} and {means[1].shape}, but {rule}")
    named = ("target_covariance", target_covariance), ("source_covariance", source_covariance)
    covariances = [(name, _validate_covariance(name, each, means[0].size)) for name, each in named]
    (target, turn), (source, _) = [_decompose(*each) for each in covariances]
    scaled = turn / np.sqrt(target)
    full = covariances[1][1]
    full = np.diag(full) if full.ndim == 1 else full
    variances, vectors = np.linalg.eigh(scaled.T @ full @ scaled)
    # A rounded eigenvalue may be 0 or below where the source's own are not.
    variances = np.maximum(variances, source.min() / target.max() / 2)
    # Means so far apart that a product overflows are infinitely far apart for floats.
    with np.errstate(over="ignore", invalid="ignore"):
        gap: Floats = vectors.T @ (scaled.T @ (means[1] - means[0]))
    return variances, gap


def _renyi_of_normals(variances: Floats, gap: Floats, order: float) -> float:
    """The divergence of a standard normal law from one of these variances and means."""
    with np.errstate(over="ignore", invalid="ignore"):
        if order == 1:
            parts = (1 / variances + gap**2 / variances - 1 + np.log(variances)) / 2
        elif order == math.inf:
            room = variances - 1
            even = np.abs(room) <= _ALIKE
            if (room < -_ALIKE).any() or (np.abs(gap[even]) > _ALIKE).any():
                return math.inf
            room, gap = room[~even], gap[~even]
            parts = (gap**2 / room + np.log1p(room)) / 2
        else:
            mixed = 1 + order * (variances - 1)
            if mixed.min() <= 0:
                return math.inf
            logarithms = np.log(mixed) - order * np.log(variances)
            parts = (order * gap**2 / mixed - logarithms / (order - 1)) / 2
        total = float(parts.sum())
    return math.inf if math.isnan(total) else max(0.0, total)


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


def _decompose(name: str, values: Floats) -> tuple[Floats, Floats]:
    """Eigenvalues and eigenvectors of a covariance."""
    full = np.diag(values) if values.ndim == 1 else values
    if not np.allclose(full, full.T):
        raise ParameterError(f"{name} must be symmetric")
    eigenvalues, vectors = np.linalg.eigh(full)
    if eigenvalues.min() <= 0:
        least = eigenvalues.min()
        raise ParameterError(f"{name} has eigenvalue {least:g}, but all must be above 0")
    return eigenvalues, vectors
