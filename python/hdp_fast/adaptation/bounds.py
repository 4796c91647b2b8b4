"""Generalization bounds for weighted samples, and the share of the source that they suggest."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from .._support.json_text import to_text
from .._support.types import VARIANTS, Floats, Variant
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


class LearningBound(NamedTuple):
    """A bound on the expected target loss, and the terms that it is the sum of.

    Attributes:
        value: The bound: the sum of the other attributes.
        loss: Weighted loss on both samples.
        discrepancy: The source's total weight times the discrepancy.
        complexity: Twice the bound on the weighted Rademacher complexity.
        drift: Term for the distance of the weights from the reference weights.
        deviation: Term for the confidence.

    Examples:
        >>> import numpy as np
        >>> from hdp_fast.adaptation import learning_bound
        >>> equal = np.full(10_000, 1e-4)  # 8,000 records of the source, 2,000 of the target
        >>> sizes = dict(source=8_000, alpha=0.8, radius=1, norm_bound=1)
        >>> bound = learning_bound(0.1, equal, discrepancy=0.05, **sizes)
        >>> print(f"{bound.value:.3f} = {' + '.join(f'{term:.3f}' for term in bound[1:])}")
        0.269 = 0.100 + 0.040 + 0.080 + 0.000 + 0.049
    """

    value: float
    loss: float
    discrepancy: float
    complexity: float
    drift: float
    deviation: float

    def to_json(self) -> str:
        """Returns its attributes as a JSON object, an infinite one as "inf".

        Returns:
            The JSON text.
        """
        return to_text(self._asdict())


class _LossConstants(NamedTuple):
    """The largest loss, and the bound on the weighted Rademacher complexity in units of |q|_2."""

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
    """Bounds the expected squared loss on the target for every predictor with |w| <= radius.

    With probability at least `confidence` over the draw of both samples, the bound holds for all w
    and all weights q at once (proved). Rows have norm at most norm_bound, and labels lie in [-1,
    1]. The largest loss is `B = (radius norm_bound + 1)**2`; the reference weights p are alpha / m
    for the source and (1 - alpha) / n for the target.

    variant="tight" holds for any q and is never larger than variant="paper". It needs the deviation
    at q = p only, where McDiarmid's inequality gives `B |p|_2 sqrt(ln(1 / eta) / 2)` with
    `eta = 1 - confidence`; the term `deviation` takes `|q|_2 + |q - p|_2` in place of `|p|_2`. Each
    of loss, source weight times discrepancy and twice the complexity moves by at most `B |q - p|_1`
    from p to q. This gives 3 B instead of 6 B, and no iterated logarithm. variant="paper" is
    Theorem B.1. (The proof printed for B.1 covers fixed q_k and adds up to more than 6 B; its
    statement holds because of "tight".) By contraction the complexity is at most 2 (radius
    norm_bound + 1) times that of the linear predictors, hence at most `G radius |q|_2` with G = 2
    norm_bound (radius norm_bound + 1).

    Args:
        loss: Weighted sum of losses `sum q_i l_i`, 0 or in [1e-30, 1e30].
        weights: The weights q, shape (m + n,), in [0, 1]; those of the source come first. Loss and
            weights of private records are private, and so is the bound.
        source: Number m of source records, at least 1 and below m + n.
        alpha: Share of the source in the reference weights, in (0, 1).
        discrepancy: Discrepancy of the two distributions, 0 or in [1e-30, 1e30]. An empirical
            discrepancy may be smaller by O(sqrt(1 / m + 1 / n)).
        radius: Bound on the norm of the predictors, in [1e-30, 1e30].
        norm_bound: Bound on the norm of the rows, in [1e-30, 1e30].
        confidence: Probability in (0, 1) over the draw of both samples.
        variant: "tight", or "paper", which is infinite where `|q - p|_1 >= 1`.

    Returns:
        The bound and its terms.

    Raises:
        ShapeError: weights does not have one dimension.
        ParameterError: An argument is out of range.

    Cost:
        Linear in m + n.

    Source:
        Bassily, Cortes, Mao and Mohri 2024, Theorem B.1; Meir and Zhang 2003, Lemma 5
        (contraction).

    Examples:
        >>> import numpy as np
        >>> from hdp_fast.adaptation import learning_bound
        >>> equal = np.full(10_000, 1e-4)  # 8,000 records of the source, 2,000 of the target
        >>> sizes = dict(source=8_000, alpha=0.8, radius=1, norm_bound=1)
        >>> for variant in ("tight", "paper"):
        ...     bound = learning_bound(0.1, equal, discrepancy=0.05, variant=variant, **sizes)
        ...     print(variant, round(bound.value, 3))
        tight 0.269
        paper 0.274
    """
    one_of("variant", variant, VARIANTS)
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
    """Suggests the share of the source at which learning_bound is least, apart from the loss.

    At q = p the bound is the loss plus `alpha d + c sqrt(alpha**2 / m + (1 - alpha)**2 / n)`, where
    d is the released discrepancy and c gathers complexity and confidence. It is convex in alpha,
    and its minimum is returned. Without any discrepancy this is m / (m + n). It falls as d grows,
    but not below the weight 1 / (m + n) of one record.

    Args:
        released: The result of release_discrepancy. Its noise makes this call free of further
            privacy cost.
        confidence: Confidence of learning_bound, in (0, 1).

    Returns:
        A number in (0, 1), for the argument alpha of learning_bound and of the estimators.

    Raises:
        ParameterError: released is of another kind, or confidence is out of range.

    Source:
        Bassily, Cortes, Mao and Mohri 2024, Section 3 and Theorem B.1.

    Examples:
        >>> import numpy as np
        >>> from hdp_fast.adaptation import release_discrepancy, suggested_alpha
        >>> X = np.linspace(-1, 1, 2_000)[:, None]
        >>> for slope in (0.5, -0.5):  # the target is like the source, or its opposite
        ...     data = X, 0.5 * X[:, 0], X[:1_000], slope * X[:1_000, 0]
        ...     released = release_discrepancy(*data, radius=1, norm_bound=1, epsilon=10)
        ...     print(round(suggested_alpha(released), 1))
        0.7
        0.0
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
    """Return the suggested alpha for a discrepancy of this value, released or not.

    sizes: numbers of source and target records. bounds: radius and norm_bound.
    """
    constants = _constants(*bounds)
    c = 2 * constants.complexity + constants.largest * math.sqrt(-math.log(1 - confidence) / 2)
    m, n = sizes
    equal, spread = m / (m + n), 1 / m + 1 / n
    slack = c**2 * spread - value**2
    # Without slack the discrepancy outweighs any gain: the derivative is positive everywhere.
    less = value / math.sqrt((m + n) * spread * slack) if slack > 0 else math.inf
    return min(max(equal - less, 1 / (m + n)), 1 - 1 / (m + n))


def _constants(radius: float, norm_bound: float) -> _LossConstants:
    residual = radius * norm_bound + LABEL_BOUND
    return _LossConstants(residual**2, 2 * norm_bound * residual * radius)


def _reference_weights(m: int, n: int, alpha: float) -> Floats:
    return np.repeat([alpha / m, (1 - alpha) / n], [m, n])


def _drift_and_deviation(
    q: Floats, difference: Floats, failing: float, variant: Variant
) -> tuple[float, float]:
    """Return drift and deviation, in units of the largest loss."""
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
