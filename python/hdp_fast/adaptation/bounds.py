"""Generalization bounds for weighted samples, and the share of the source that they suggest."""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from .._support.json_text import to_text
from .._support.types import Floats
from .._support.validate import (
    array,
    bounded_positive,
    fractions,
    nonnegative,
    one_of,
    positive_int,
    probability,
    refuse,
)
from .discrepancies.exact import LABEL_BOUND
from .discrepancies.private import ReleasedDiscrepancy

Variant = Literal["tight", "paper"]

_VARIANTS = ("tight", "paper")


class LearningBound(NamedTuple):
    """A bound on the expected target loss, and the terms that it is the sum of.

    Attributes:
        value: the sum.
        loss: the weighted loss on both samples.
        discrepancy: the source's weight times the discrepancy.
        complexity: twice the bound on the weighted Rademacher complexity.
        drift: what the weights' distance from the reference costs.
        deviation: what the confidence costs.
    """

    value: float
    loss: float
    discrepancy: float
    complexity: float
    drift: float
    deviation: float

    def to_json(self) -> str:
        """Its attributes, an infinite one as "inf", as a JSON object.

        Raises: nothing.
        Cost: that of the text.
        Source: none.
        """
        return to_text(self._asdict())


class _Constants(NamedTuple):
    """Largest loss, and bound on the weighted Rademacher complexity in units of |q|_2."""

    largest: float
    complexity: float


def learning_bound(
    loss: float,
    weights: ArrayLike,
    *,
    source: int,
    alpha: float,
    discrepancy: float,
    radius: float,
    norm_bound: float,
    confidence: float = 0.95,
    variant: Variant = "tight",
) -> LearningBound:
    """A bound on the expected squared loss on the target of every predictor with |w| <= radius.

    loss: the weighted sum of losses sum q_i l_i, at least 0. weights: q (m + n,), in [0, 1], those
    of the source's m = `source` records first. alpha: in (0, 1): the reference weights p are
    alpha / m and (1 - alpha) / n. discrepancy: of the two distributions, at least 0; an empirical
    one is below it by O(sqrt(1 / m + 1 / n)). radius, norm_bound: rows have at most this norm,
    labels lie in [-1, 1]. confidence: in (0, 1), of the draw of both samples. variant: "paper" is
    Theorem B.1, infinite where |q - p|_1 >= 1; "tight" holds for any q and is never larger. Loss
    and weights of private records are private, and so is what comes out.

    Both hold uniformly over w and q (proved). "tight" needs the deviation at q = p only, where
    McDiarmid gives B |p|_2 sqrt(ln(1 / eta) / 2): each of loss, source weight times discrepancy and
    twice the complexity moves by at most B |q - p|_1 to any other q, hence 3 B instead of 6 B and
    no iterated logarithm. (The proof printed for B.1 covers fixed q_k and adds up to more than 6 B;
    what it states is right because of this.) The complexity is at most 2 (radius norm_bound + 1)
    times that of the linear predictors, by contraction, hence at most G radius |q|_2, G = 2
    norm_bound (radius norm_bound + 1).

    Raises: ShapeError, ParameterError.
    Cost: linear in m + n.
    Source: Bassily, Cortes, Mao and Mohri 2024, Theorem B.1; Meir and Zhang 2003, Lemma 5
        (contraction).
    """
    one_of("variant", variant, _VARIANTS)
    q = fractions("weights", weights, array("weights", weights).size)
    m = positive_int("source", source, len(q) - 1)
    terms = nonnegative("loss", loss), nonnegative("discrepancy", discrepancy)
    constants = _constants(
        bounded_positive("radius", radius), bounded_positive("norm_bound", norm_bound)
    )
    difference = q - _reference_weights(m, len(q) - m, probability("alpha", alpha))
    failing = 1 - probability("confidence", confidence)
    drift, deviation = _drift_and_deviation(q, difference, failing, variant)
    return _add_terms(
        terms[0],
        float(q[:m].sum()) * terms[1],
        2 * constants.complexity * float(np.linalg.norm(q)),
        constants.largest * drift,
        constants.largest * deviation,
    )


def suggested_alpha(released: ReleasedDiscrepancy, *, confidence: float = 0.95) -> float:
    """The share alpha of the source at which learning_bound is least, but for the loss.

    released: of release_discrepancy, whose noise makes this free of further privacy cost.
    confidence: in (0, 1), as in learning_bound. Returns a number in (0, 1): m / (m + n) without any
    discrepancy, less the larger it is, and never below the weight 1 / (m + n) of one record.

    At q = p the bound is the loss plus alpha d + c sqrt(alpha**2 / m + (1 - alpha)**2 / n), where c
    gathers complexity and confidence; it is convex in alpha, and this is its minimum.

    Raises: ParameterError.
    Cost: constant.
    Source: Bassily, Cortes, Mao and Mohri 2024, Section 3 and Theorem B.1.
    """
    if not isinstance(released, ReleasedDiscrepancy):
        refuse("released", released, "it must be a ReleasedDiscrepancy")
    bounds = released.radius, released.norm_bound
    return least_alpha(
        released.value, released.sizes, bounds, probability("confidence", confidence)
    )


def least_alpha(
    value: float, sizes: tuple[int, int], bounds: tuple[float, float], confidence: float = 0.95
) -> float:
    """The suggested alpha for a discrepancy of this value, released or not.

    sizes: of source and target. bounds: radius and norm_bound.
    """
    constants = _constants(*bounds)
    c = 2 * constants.complexity + constants.largest * math.sqrt(-math.log(1 - confidence) / 2)
    m, n = sizes
    equal, spread = m / (m + n), 1 / m + 1 / n
    slack = c**2 * spread - value**2
    # Where the discrepancy outweighs any gain, the derivative is positive everywhere.
    less = value / math.sqrt((m + n) * spread * slack) if slack > 0 else math.inf
    return min(max(equal - less, 1 / (m + n)), 1 - 1 / (m + n))


def _constants(radius: float, norm_bound: float) -> _Constants:
    residual = radius * norm_bound + LABEL_BOUND
    return _Constants(residual**2, 2 * norm_bound * residual * radius)


def _reference_weights(m: int, n: int, alpha: float) -> Floats:
    return np.repeat([alpha / m, (1 - alpha) / n], [m, n])


def _drift_and_deviation(
    q: Floats, difference: Floats, failing: float, variant: Variant
) -> tuple[float, float]:
    """Drift and deviation, in units of the largest loss."""
    distance, length = float(np.abs(difference).sum()), float(np.linalg.norm(q))
    if variant == "tight":
        tail = math.sqrt(math.log(1 / failing) / 2)
        return 3 * distance, (length + float(np.linalg.norm(difference))) * tail
    if distance >= 1:
        return math.inf, math.inf
    iterated = math.sqrt(max(math.log(math.log2(2 / (1 - distance))), 0.0))
    tail = iterated + math.sqrt(math.log(2 / failing) / 2)
    return 6 * distance, (length + 2 * distance) * tail


def _add_terms(*terms: float) -> LearningBound:
    return LearningBound(math.fsum(terms), *terms)
