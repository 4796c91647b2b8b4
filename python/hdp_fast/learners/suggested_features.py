"""Features for sufficient statistics from a public pool, where nobody has chosen any."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .. import accounting
from .._support.numbers import finite_rows, floats
from .._support.types import Floats
from .._support.validate import positive, positive_int, probability
from .feature_maps import FeatureMap
from .sufficient_statistics import check_label_set

# Norm that the noise of all sums together may have, where features have norm 1 and sums are
# divided by n. Chosen on digits and MNIST; the result changes little by a factor of 1.5.
_NOISE_NORM = 0.06
_POWER, _QUANTILE = 0.5, 0.1
# A direction in which the pool varies less than this share of the most is left out.
_LEAST_SHARE = 1e-6


def suggest_features(
    pool: ArrayLike, *, n: int, classes: ArrayLike, epsilon: float, delta: float
) -> FeatureMap:
    """Suggests a feature map for SufficientStatistics from public facts alone.

    It is a whitening of power 1/2 that keeps the directions in which the pool varies most: so many
    that the noise of all sums together stays below 0.06 n, and at least as many as classes. Most
    rows get norm 1. The pool is centered and a constant feature follows, which makes the noise
    smaller where there are more than two classes. With two classes a column of the pool that is
    constant serves as one.

    Args:
        pool: Public records of the population, without labels, finite, shape (m, d).
        n: Number of private records that will be released from, at least 1; a public number.
        classes: The public label set, as SufficientStatistics takes it.
        epsilon: Privacy parameter of the release, above 0; math.inf keeps all directions.
        delta: Privacy parameter of the release, strictly between 0 and 1.

    Returns:
        The feature map.

    Raises:
        ShapeError: pool does not have two dimensions and an entry.
        ParameterError: An entry of pool is not finite, no column varies, or an argument lies
            outside its range.

    Cost:
        O(m d^2 + d^3).

    Examples:
        >>> import numpy as np
        >>> from hdp_fast.learners import suggest_features
        >>> pool = np.random.default_rng(0).normal(size=(100, 20))
        >>> few, many = (
        ...     suggest_features(pool, n=n, classes=range(5), epsilon=1.0, delta=1e-6)
        ...     for n in (500, 50_000)
        ... )
        >>> few.columns < many.columns == 21
        True
    """
    rows = floats(finite_rows(pool, "pool"))
    labels = len(check_label_set("classes", classes))
    records = positive_int("n", n, 1 << 60)
    components = _count_components(rows, records, labels, epsilon, delta)
    settings: dict[str, Any] = {"power": _POWER, "quantile": _QUANTILE}
    spans = np.ptp(rows, axis=0)
    has_constant = bool(((spans == 0) & (rows[0] != 0)).any())
    if labels == 2 and has_constant:
        kept = None if components >= _rank(rows) - 1 else components + 1
        return FeatureMap.whitening(rows, components=kept, **settings)
    centered = FeatureMap.pca(rows, components, constant=False)
    return FeatureMap.whitening(rows, after=centered, constant=True, **settings)


def _count_components(rows: Floats, n: int, labels: int, epsilon: float, delta: float) -> int:
    """Return the number of directions whose sums have noise of the bounded norm together."""
    rank = max(_rank(rows - rows.mean(axis=0)), 1)
    delta = probability("delta", delta)
    if epsilon == math.inf:
        return rank
    deviation = math.sqrt(2) / accounting.gaussian_mu(positive("epsilon", epsilon), delta) / n
    affordable = (_NOISE_NORM / deviation) ** 2 / (labels - 1)
    return min(max(int(min(affordable, rank)), labels), rank)


def _rank(rows: Floats) -> int:
    """Return the number of directions in which rows vary by more than rounding."""
    with np.errstate(all="ignore"):
        values = np.linalg.eigvalsh(rows.T @ rows)
    return int((values > _LEAST_SHARE * values.max()).sum())
