"""What sufficient statistics are made of: features, labels, and exact sums over private records.

Nothing is released here.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import _core, accounting
from .._support.numbers import finite_rows, finite_vector, floats
from .._support.types import Floats, Integers
from .._support.validate import (
    integers,
    positive,
    positive_int,
    probability,
    read_only,
    refuse,
    whole_array,
)
from ..exceptions import ParameterError, ShapeError
from .feature_maps import FINEST_BITS, FeatureMap

_MOST_CLASSES = 4_096
# The most bits by default: finer units cost time, since sums stay exact in doubles for fewer rows.
DEFAULT_BITS = 24
# The bits of the largest sum.
_WHOLE = 62
# Norm that the noise of all sums together may have, where features have norm 1 and sums are
# divided by n. Chosen on digits and MNIST; the result changes little by a factor of 1.5.
_NOISE_NORM = 0.06
_POWER, _QUANTILE = 0.5, 0.1
# A direction in which the pool varies less than this share of the most is left out.
_LEAST_SHARE = 1e-6


def check_label_set(name: str, classes: Any) -> NDArray[Any]:
    """Return the label set in order, as int64, float64 or texts."""
    names = whole_array(name, classes)
    kinds = {"b": np.int64, "i": np.int64, "u": np.int64, "f": np.float64, "U": None}
    if names.ndim != 1 or names.dtype.kind not in kinds:
        refuse(name, classes, "it must list integers, real numbers or texts")
    dtype = kinds[names.dtype.kind]
    ordered = np.unique(names if dtype is None else names.astype(dtype))
    if (
        not 2 <= len(ordered) <= _MOST_CLASSES
        or len(ordered) < names.size
        or (ordered != ordered).any()
    ):
        refuse(name, classes, f"it must hold 2 to {_MOST_CLASSES:,} different labels")
    return read_only(ordered)


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


# Sums --------------------------------------------------------------------------------------------


class FeatureSums(NamedTuple):
    """Sums over records by class, private until noise is added.

    Features are integers q in units of `2**-bits`, and no row has a norm above `2**bits`.

    Attributes:
        by_class: Sum of q over the records of each class, int64 of shape (classes, columns).
        moments: Sum of q q^T over all records, int64 of shape (columns, columns) in units of
            `4**-bits`; None if it was not wanted.
        counts: Number of records in each class, int64 of shape (classes,). A record whose features
            count as 0 is counted.
    """

    by_class: Integers
    moments: Integers | None
    counts: Integers


class TargetSums(NamedTuple):
    """Sums over records times their targets, private until noise is added.

    Attributes:
        cross: Sum of q t, int64 of shape (columns,) in units of `4**-bits`, where t is the target,
            an integer in units of `2**-bits`.
        moments: As those of FeatureSums.
    """

    cross: Integers
    moments: Integers | None


def bits_for(n: int) -> int:
    """Chooses the unit `2**-bits` of features, so that sums over n records are exact.

    Args:
        n: Number of records, at least 1 and below `2**60`; a public number.

    Returns:
        The most bits, at most 24, with which n * `4**bits` is at most `2**62`.

    Raises:
        ParameterError: n is out of range.
    """
    n = positive_int("n", n, (1 << 60) - 1)
    return min(DEFAULT_BITS, (_WHOLE - (n - 1).bit_length()) // 2)


def check_bits(bits: int, n: int) -> int:
    """Returns the bits of a unit, with which sums over n records must be exact.

    Args:
        bits: Bits of the unit, from 1 to 26.
        n: Number of records, a public number.

    Returns:
        The bits as an int.

    Raises:
        ParameterError: bits is out of range, or n * `4**bits` is above `2**62`.
    """
    bits = positive_int("bits", bits, FINEST_BITS)
    if 2 * bits + (n - 1).bit_length() > _WHOLE:
        refuse("bits", bits, f"n * 4**bits must be at most 2**{_WHOLE} for n = {n:,}")
    return bits


def feature_sums(
    features: FeatureMap, X: Any, codes: ArrayLike, classes: int, *, bits: int, second: bool
) -> FeatureSums:
    """Adds up the features of private records by class, and their products.

    The sums are exact: they are the same in any order of the records, on any number of threads and
    any machine, and sums over parts of the records add up to those over all.

    Args:
        features: The public map to features.
        X: Private records, finite real numbers of shape (n, d); what the map's function takes if it
            has one.
        codes: Class of each record, integers from 0 to classes - 1, shape (n,).
        classes: Number of classes, at least 1.
        bits: Features are cut towards zero to multiples of `2**-bits`, from 1 to 26; see bits_for.
        second: Whether the products are wanted.

    Returns:
        The sums, which are not private: add noise before anything of them is shown.

    Raises:
        ShapeError: X does not have two dimensions, an entry and the columns of the map, or codes
            does not have n entries.
        ParameterError: An entry of X or codes lies outside its domain, or bits is too large for n.

    Cost:
        A pass over X, its product with the matrix of the map, and half of the product of the
        features with themselves where the second moments are wanted. A copy of X unless it is
        float32 or float64 and C-contiguous.
    """
    kinds = positive_int("classes", classes, 1 << 31)
    labels = integers("codes", codes, np.int64)
    rows = features.read_rows(X)
    _check_length("codes", len(labels), len(rows))
    if not 0 <= labels.min() <= labels.max() < kinds:
        raise ParameterError(
            f"codes hold something else, but each must be an integer in [0, {kinds})"
        )
    first, moments, counts = _add_up(features, rows, (labels, kinds), bits, second)
    return FeatureSums(first.reshape(kinds, features.columns), moments, counts)


def target_sums(
    features: FeatureMap, X: Any, targets: ArrayLike, *, bits: int, second: bool
) -> TargetSums:
    """Adds up the features of private records times their targets, and their products.

    The sums are exact, as those of feature_sums.

    Args:
        features: The public map to features.
        X: Private records, as feature_sums takes them, n of them.
        targets: Target of each record, finite, shape (n,). It is clipped to [-1, 1] and cut towards
            zero to a multiple of `2**-bits`.
        bits: Bits of the unit of features and targets, from 1 to 26; see bits_for.
        second: Whether the products are wanted.

    Returns:
        The sums, which are not private: add noise before anything of them is shown.

    Raises:
        ShapeError: X does not have two dimensions, an entry and the columns of the map, or targets
            does not have n entries.
        ParameterError: An entry of X or targets lies outside its domain, or bits is too large for
            n.

    Cost:
        That of feature_sums.
    """
    values = np.array(finite_vector("targets", targets))
    rows = features.read_rows(X)
    _check_length("targets", len(values), len(rows))
    first, moments, _ = _add_up(features, rows, values, bits, second)
    return TargetSums(first, moments)


def _add_up(
    features: FeatureMap, rows: NDArray[Any], labels: Any, bits: int, second: bool
) -> tuple[Integers, Integers | None, Integers]:
    """The sums by class or times targets, flat; the second moments, square; the counts."""
    first, moments, counts = _core.feature_sums(
        rows.reshape(-1),
        rows.shape[1],
        labels,
        features.core,
        check_bits(bits, len(rows)),
        bool(second),
    )
    square = None if moments is None else moments.reshape(features.columns, features.columns)
    return first, square, counts


def _check_length(name: str, length: int, n: int) -> None:
    if length != n:
        raise ShapeError(f"{name} has length {length:,}, but X has {n:,} records")
