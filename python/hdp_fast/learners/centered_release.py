"""The model of a release of centered rows, as all commands and estimators write it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._support.types import Floats
from ..data.schema import Schema
from .centered_linear import CenteredModel
from .linear_model import LinearModel
from .moment_equation import to_halves
from .private_model import Link, PrivateModel
from .statistics_checks import LEVEL, chi_square_quantile
from .statistics_model import StatisticsModel


def make_private_model(
    released: CenteredModel, schema: Schema, classes: Sequence[str] | None, n: int
) -> PrivateModel:
    """The model of a release of n records.

    schema: says what the rows are made of, by columns in the order of the release.
    """
    weights, bound, link = _weigh(released)
    return PrivateModel(
        schema=schema,
        classes=None if classes is None else tuple(classes),
        rows=released.rows,
        weights=weights,
        norm_bound=bound,
        link=link,
        method=released.method,
        n=n,
        signal=None if released.record is None else _signal(released),
        record=released.record,
    )


def _weigh(released: CenteredModel) -> tuple[Floats, float, Link]:
    """Weights of all classes, the norm that rows are shrunk to, and the link."""
    model: Any = released.model
    if isinstance(model, StatisticsModel):
        # Its features are the centered rows times this factor, shrunk to norm 1.
        factor = float(model.features.factor[0])
        link: Link = "target" if model.classes is None else "shares"
        if model.link == "logistic":
            link = "logistic"
        return model.coefficients * factor, 1 / factor, link
    if not isinstance(model, LinearModel):
        return model.weights, model.loss.norm_bound, "logistic"
    if model.loss.label_bound is not None:
        return model.weights[:, None], model.loss.norm_bound, "target"
    return to_halves(model.weights), model.loss.norm_bound, "logistic"


def _signal(released: CenteredModel) -> float:
    """How far signal stands out of noise: that of the plan, or of what was learned.

    For gradients, the longest one that the plan allows over the noise in the mean of all steps,
    whatever the labels are. For statistics, the released weights over what noise alone would make
    of them, but for a chance of a hundredth.
    """
    model: Any = released.model
    if isinstance(model, StatisticsModel):
        return math.sqrt(max(map(_square, model.coefficients[:-1].T, model.covariances)))
    return 1 / max(float(model.plan.noise), 1e-9)


def _square(weights: NDArray[Any], covariance: Floats) -> float:
    inverse = np.linalg.pinv(covariance[:-1, :-1], hermitian=True)
    square = float(weights @ inverse @ weights)
    return max(square / chi_square_quantile(len(weights), 1 - LEVEL), 1e-9)
