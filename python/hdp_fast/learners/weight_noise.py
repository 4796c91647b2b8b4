"""What the noise of a release does to the weights of a linear model of centered rows."""

from __future__ import annotations

import dataclasses
from statistics import NormalDist
from typing import Any

import numpy as np

from .._support.types import Floats
from ..data.rows import Rows
from .additive import AdditiveNoise
from .centered_linear import CenteredModel, Model
from .centered_rows import scale_of
from .descents import SGDPlan
from .linear_model import LinearModel, SoftmaxModel
from .moment_equation import softmax, to_halves
from .noisy_descent import DescentNoise
from .statistics_model import StatisticsModel
from .target_model import TargetModel

# The share of a column's variance that other columns are taken not to explain.
_OWN_SHARE = 0.03
# More of an additive model would make too large a matrix.
_MOST_BITS = 1 << 11
# Quantiles of a normal variable that stand for all of it.
_NORMAL = np.array([NormalDist().inv_cdf((place + 0.5) / 16) for place in range(16)])


def score_weights(model: Model) -> Floats:
    """The weights of the scores that a model decides by, shape (columns, E).

    E is 1 for a target, and for two classes, whose score is that of the second less that of the
    first; else it is the number of classes. Rows are those that the model was learned from.
    """
    if isinstance(model, StatisticsModel):
        weights: Floats = model.coefficients * float(model.features.factor[0])
        return weights[:, [1]] - weights[:, [0]] if _has_two(model) else weights
    return model.weights[:, None] if model.weights.ndim == 1 else model.weights


def weight_covariances(released: CenteredModel, *, scaled: bool = True) -> Floats | None:
    """The covariance that the noise of the release makes in each column of score_weights.

    It follows from released numbers and public facts, to first order. With "statistics" it is that
    of the delta method. With "descent" noise is followed through all steps, in the same curvature
    as for "sgd", and the factor at the end counts as far as it is not known: in simulated tables
    that is too much for small weights. With "sgd" it is what SGDPlan.weight_variances makes of a
    curvature that holds where other columns of the table explain no more than 97 % of a column. The
    release does not tell whether they do. For a target with "descent" noise is followed in that
    curvature, with the shrinkage and the clip norm as they were released. With "evidence" it is
    that of the delta method with the shrinkage, the first slopes and the mean of the target as they
    were released; the constant's is not known, and what is stated of it is what the slopes make of
    it.

    scaled: Whether the factor at the end of a descent counts, which moves no weight through 0.

    Returns an array of shape (E, columns, columns); None where it is not known, or no noise was
    added.
    """
    model: Any = released.model
    if released.record is None:
        return None
    if isinstance(released.noise, AdditiveNoise):
        return _join(released.noise)
    if isinstance(model, StatisticsModel):
        return _scale(model, model.covariances)
    if isinstance(model, TargetModel):
        return None if model.covariance is None else model.covariance[None]
    columns, scores = score_weights(model).shape
    if released.noise is not None:
        scale, factor = scale_of(released.rows), released.noise.factor
        values, vectors = _curvatures(released.rows, model, scale, released.noise)
        variances = released.noise.weight_variances(values)
        vectors = vectors * (factor * scale)[:, None]
    else:
        plan: SGDPlan | None = getattr(model, "plan", None)
        if plan is None:
            return None
        values, vectors = _curvatures(released.rows, model)
        known = plan.weight_variances(values)
        if known is None:
            return None
        variances = known
    covariance = (vectors * variances) @ vectors.T
    if released.noise is None or not scaled:
        return np.broadcast_to(covariance, (scores, columns, columns))
    # The factor is not known either: it moves all weights alike. Nor are the base rates.
    moved = _descended(model, released.noise).T * released.noise.factor_spread
    covariances: Floats = covariance + moved[:, :, None] * moved[:, None, :]
    covariances[:, -1, -1] += released.noise.base_spread**2
    return covariances


def _join(known: AdditiveNoise) -> Floats | None:
    """The covariance of all bits of an additive model: columns have noise of their own."""
    size = sum(map(len, known.covariances)) + 1
    if size > _MOST_BITS:
        return None
    covariance, place = np.zeros((1, size, size)), 0
    for part in known.covariances:
        some = slice(place, place + len(part))
        covariance[0, some, some] = part
        place += len(part)
    covariance[0, -1, -1] = known.constant**2
    return covariance


def _descended(model: Model, known: DescentNoise) -> Floats:
    """The part of the weights that was learned by descent, times its factor."""
    weights = score_weights(model).copy()
    weights[-1] -= known.base
    return weights


def _curvatures(
    rows: Rows,
    model: LinearModel | SoftmaxModel,
    scale: Floats | None = None,
    known: DescentNoise | None = None,
) -> tuple[Floats, Floats]:
    """Eigenvalues and eigenvectors of the loss's second derivatives at a model.

    The spread of columns is that of their released means, and rows are shrunk alike.

    scale: what columns were multiplied with where the model was learned.
    known: what is known of its descent, at whose end the curvature is taken.
    """
    spread = rows.spread_columns()
    shrunk = min(model.loss.norm_bound / rows.norm, 1.0)
    weights = score_weights(model) if known is None else _descended(model, known) / known.factor
    weights = weights * shrunk
    bend = 1.0
    if model.loss.label_bound is None:
        deviations = np.sqrt(np.einsum("ik,ij,jk->k", weights[:-1], spread, weights[:-1]))
        scores = weights[-1] + np.outer(_NORMAL, deviations)
        shares = softmax(scores if scores.shape[1] > 1 else to_halves(scores[:, 0]))
        bend = float((shares * (1 - shares)).mean(axis=0).min())
    second = np.zeros((len(weights), len(weights)))
    second[:-1, :-1], second[-1, -1] = _OWN_SHARE * spread, 1.0
    if scale is not None:
        # Where most gradients are clipped, they hardly pull the constant back either.
        second[-1, -1] = _OWN_SHARE
        second *= np.outer(scale, scale)
    values, vectors = np.linalg.eigh(second)
    return np.maximum(values, 0.0) * bend * shrunk**2, vectors


def weight_deviations(released: CenteredModel) -> Floats | None:
    """The standard deviation that the noise of the release makes in each weight, less its scale.

    For a category it is that of its weight less what its column adds on average, as
    Rows.contrast_categories has it.

    Returns an array of the shape of score_weights; None where weight_covariances does.
    """
    covariances = weight_covariances(released, scaled=False)
    if covariances is None:
        return None
    contrasts = released.rows.contrast_categories()
    variances = np.einsum("ij,ejk,ik->ie", contrasts, covariances, contrasts, optimize=True)
    deviations: Floats = np.sqrt(np.maximum(variances, 0.0))
    return deviations


def population_weights(model: Model) -> tuple[Floats, Floats] | None:
    """The columns of score_weights without a penalty, and their covariance of noise and sampling.

    Returns arrays of shapes (columns, E) and (E, columns, columns); None where the release does not
    tell how far the population's are from them.
    """
    if isinstance(model, TargetModel):
        return model.population
    fit = model.population if isinstance(model, StatisticsModel) else None
    if fit is None or not isinstance(model, StatisticsModel):
        return None
    free = dataclasses.replace(model, coefficients=fit.coefficients)
    return score_weights(free), _scale(model, fit.covariances)


def _scale(model: StatisticsModel, covariances: Floats) -> Floats:
    """Covariances of columns of coefficients as those of score_weights."""
    factor = float(model.features.factor[0])
    if not _has_two(model):
        return covariances * factor**2
    # The coefficients of two classes are opposite to each other.
    return covariances[1:] * (2 * factor) ** 2


def _has_two(model: StatisticsModel) -> bool:
    return model.classes is not None and len(model.classes) == 2
