"""The noise on sufficient statistics: its price, and warnings about what it hides.

Sums and second moments share one Gaussian budget. All squares of mu are fractions, so that nothing
of a price is rounded but the result, upwards. Warnings follow from public facts and released
numbers alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from .. import accounting
from .._support.notes import note
from .._support.types import Floats
from .._support.validate import refuse
from ..accounting.discrete_gaussian import round_sigma_up
from ..exceptions import ParameterError

# Shares of the squared budget that the number of records takes where it is not public.
COUNT_SHARE = Fraction(1, 50)
# Sums and moments stay below 2**61 and the deviation of noise below 2**48: int64 holds both.
_SUM_BITS, _NOISE_BITS = 61, 48
MOST_BITS, _LEAST_BITS = 20, 8
# More records than this are refused, whatever the relation.
MOST_RECORDS = 1 << 31
_STRETCH = 1 - 1e-9
# A fit for the population needs eigenvalues that are this many norms of their noise, and no
# smaller share of the largest one: there what the noise bends is small beside its deviation.
_ABOVE_NOISE, _LEAST_EIGENVALUE = 4.0, 1e-6
# Probability of a warning where what it warns of is not so.
LEVEL = 0.01


@dataclass(frozen=True)
class Released:
    """What is released, as far as its price depends on it.

    Attributes:
        classes: Number K of classes, at least 2; None for targets in [-1, 1].
        second_moments: Whether the sum of phi phi^T is released as well.
        nonnegative_products: Whether no two rows of features have a negative inner product.
        adds: Whether neighbors differ by a record that is added or removed, not replaced.
    """

    classes: int | None
    second_moments: bool
    nonnegative_products: bool
    adds: bool

    @property
    def label_square(self) -> Fraction:
        """The squared norm of a label's part, 1 - 1 / K, or 1 for targets."""
        return Fraction(1) if self.classes is None else 1 - Fraction(1, self.classes)


class StatisticsNoise(NamedTuple):
    """Standard deviations of the noise on integers.

    Attributes:
        bits: The features are integers of norm at most `2**bits`.
        sums: On each entry of the sums.
        diagonal: On the diagonal of the second moments; None where they are not released.
        above: Above the diagonal, at least `diagonal / sqrt(2)`; None as well.
        records: On the number of records; None where it is public.
    """

    bits: int
    sums: Fraction
    diagonal: Fraction | None = None
    above: Fraction | None = None
    records: Fraction | None = None


def joint_mu_squared(released: Released, sums: Fraction, moments: Fraction) -> Fraction:
    """Compute the largest squared mu of all neighbors, with noise on features of norm at most 1.

    Replacing (phi, y) by (phi', y') moves the sums and the second moments by squared norms that
    depend on u = `|phi|**2`, v = `|phi'|**2` and t = <phi, phi'> alone. Divided by the squared
    deviations, with k = 1 - 1 / K, they add up to

        k A (u + v - 2 t) + B (u**2 + v**2 - 2 t**2)        where y = y'
        A (k (u + v) + 2 t / K) + B (u**2 + v**2 - 2 t**2)  where not

    Both increase with u and v, so that u = v = 1 is worst. Both are concave in t, which is at least
    -1, or 0 where products are nonnegative.

    Args:
        released: What is released.
        sums: A, one over the squared deviation of the sums' noise.
        moments: B, the same for the diagonal of the second moments; 0 where they are not released.
    """
    k = released.label_square
    if released.adds:
        return k * sums + moments
    low = Fraction(0 if released.nonnegative_products else -1)
    if released.classes is None:
        # The signs of two targets turn t around, so that no product helps.
        return _largest(sums, moments, Fraction(-1), -2 * sums)
    same = _largest(k * sums, moments, low, -2 * k * sums)
    other = _largest(k * sums, moments, low, 2 * sums / released.classes)
    return max(same, other)


def _largest(sums: Fraction, moments: Fraction, low: Fraction, slope: Fraction) -> Fraction:
    """The maximum of 2 sums + slope t + 2 moments (1 - t**2) over t in [low, 1]."""
    if moments:
        best = min(max(slope / (4 * moments), low), Fraction(1))
    else:
        best = Fraction(1) if slope > 0 else low
    return 2 * sums + slope * best + 2 * moments * (1 - best**2)


def noise_mu_squared(released: Released, noise: StatisticsNoise) -> Fraction:
    """Compute the squared mu of a release with this noise on its integers."""
    unit = Fraction(1 << noise.bits)
    sums = (unit * (released.classes or 1) / noise.sums) ** 2
    if released.classes is None:
        sums = (unit**2 / noise.sums) ** 2
    moments = Fraction(0)
    if noise.diagonal is not None and noise.above is not None:
        # An entry above the diagonal counts twice in the norm, and stands once in the release.
        variance = min(noise.diagonal**2, 2 * noise.above**2)
        moments = unit**4 / variance
    price = joint_mu_squared(released, sums, moments)
    return price if noise.records is None else price + 1 / noise.records**2


@lru_cache(maxsize=256)
def calibrate_statistics(
    released: Released,
    *,
    epsilon: float,
    delta: float,
    ratio: float,
    n: int | None,
    bits: int | None = None,
) -> StatisticsNoise:
    """Return the least noise that makes a release (epsilon, delta)-DP, to a billionth.

    ratio: deviation of the diagonal of the second moments over that of the sums. n: the number of
    records, or None where it is private. bits: those of the features, if they are cut already.

    Raises:
        ParameterError: No noise that is drawn is enough.
    """
    mu = accounting.gaussian_mu(epsilon, delta)
    if mu * 1e9 < 1:
        refuse("epsilon", epsilon, f"at delta = {delta:g} it needs more noise than is drawn")
    while True:
        noise = _divide(released, mu, Fraction(ratio), (n, bits), epsilon)
        if statistics_epsilon(released, noise, delta) <= epsilon:
            return noise
        mu *= _STRETCH


def statistics_epsilon(released: Released, noise: StatisticsNoise, delta: float) -> float:
    """Compute the epsilon of a release with this noise, rounded up."""
    squared = noise_mu_squared(released, noise)
    return accounting.gaussian_epsilon(math.sqrt(squared) * (1 + 1e-12), delta)


def _divide(
    released: Released,
    mu: float,
    ratio: Fraction,
    sizes: tuple[int | None, int | None],
    epsilon: float,
) -> StatisticsNoise:
    """Share a squared budget out, and round every deviation up."""
    share = COUNT_SHARE if released.adds else Fraction(0)
    moments = 1 / ratio**2 if released.second_moments else Fraction(0)
    price = joint_mu_squared(released, Fraction(1), moments)
    total = Fraction(mu) ** 2
    sums = _root_up(price / (total * (1 - share)))
    diagonal = sums * ratio
    count = _root_up(1 / (total * share)) if share else None
    bits = _choose_bits(released, float(max(sums, diagonal)), *sizes, epsilon)
    unit = 1 << bits
    scale = unit * released.classes if released.classes else unit**2
    noise = StatisticsNoise(
        bits,
        round_sigma_up(sums * scale),
        records=None if count is None else round_sigma_up(count),
    )
    if not released.second_moments:
        return noise
    return noise._replace(
        diagonal=round_sigma_up(diagonal * unit**2),
        above=round_sigma_up(_root_up(diagonal**2 / 2) * unit**2),
    )


def _choose_bits(
    released: Released, deviation: float, n: int | None, bits: int | None, epsilon: float
) -> int:
    """Return the finest grid on which sums and noise fit into int64, a function of public facts."""
    noise = max(math.ceil(math.log2(deviation)), 0)
    room = _NOISE_BITS - noise
    if released.second_moments or released.classes is None:
        room //= 2
    most = min(_NOISE_BITS - noise - _label_bits(released), room)
    if bits is None:
        bits = min(most, choose_digits(released, MOST_RECORDS if n is None else n))
    elif bits > most:
        rule = f"the noise leaves {most} digits, and the state has {bits}: fold with more capacity"
        raise ParameterError(f"epsilon = {epsilon:g}, but {rule}")
    if bits < _LEAST_BITS:
        rule = "the noise leaves too few digits for exact sums"
        raise ParameterError(f"epsilon = {epsilon:g}, but {rule}")
    return bits


def choose_digits(released: Released, records: int) -> int:
    """Return the bits of the finest grid on which sums of so many records fit into int64."""
    room = _SUM_BITS - records.bit_length()
    # Products of features are summed exactly by feature_sums, wanted or not.
    return min(MOST_BITS, room // 2, room - _label_bits(released))


def _label_bits(released: Released) -> int:
    return math.ceil(math.log2(released.classes or 1))


def _root_up(square: Fraction) -> Fraction:
    """A square root, rounded up by less than a part in 2**40."""
    scaled = square * (1 << 160)
    root = math.isqrt(math.ceil(scaled) - 1) + 1
    return Fraction(root, 1 << 80)


# Warnings ----------------------------------------------------------------------------------------


def note_before(n: int, squares: float, deviation: float, entries: int, epsilon: float) -> None:
    """Warn where no records could add up to more than the noise hides."""
    note_few(n, least_records(squares, deviation, entries), epsilon)


def note_few(n: int, least: float, epsilon: float) -> None:
    """Warn where there are fewer records than noise hides."""
    if n < least:
        rule = f"the noise hides what fewer than {math.ceil(least):,} records can add up to"
        note(
            f"n = {n:,} records, but at epsilon = {epsilon:g} {rule}: the result can't be better "
            "than a constant, and more records, fewer columns or a larger epsilon would help"
        )


def least_records(squares: float, deviation: float, entries: int) -> float:
    """Compute how many records of norm 1 and one label could add up to more than the noise hides.

    n of them add up to n * sqrt(squares) at most. Along an unknown direction among `entries` a sum
    is not seen below about deviation * sqrt(3 * sqrt(2 * entries)).
    """
    return deviation * math.sqrt(3 * math.sqrt(2 * entries) / squares)


def note_signal(sums: Floats, deviation: float, entries: int) -> None:
    """Warn where the released sums look like noise alone.

    sums: centered, so that noise of this deviation has `entries` degrees of freedom.
    """
    if not deviation:
        return
    square = float((sums**2).sum()) / deviation**2
    if square <= chi_square_quantile(entries, 1 - LEVEL):
        note(
            f"the released sums have {square / entries:.2g} times the square of their noise, "
            f"as {1 - LEVEL:.0%} of sums without any signal do: a model of them is no better than "
            "a constant, and more records, fewer columns or a larger epsilon would help"
        )


def stand_out(values: Floats, deviation: float) -> bool:
    """Whether second moments with these eigenvalues allow a fit for the population.

    deviation: that of the noise on the diagonal.
    """
    least = _ABOVE_NOISE * deviation * math.sqrt(2 * len(values))
    return bool(values.min() > max(least, values.max() * _LEAST_EIGENVALUE))


def note_population(released: Floats, pool: Floats, n: int, points: int, deviation: float) -> None:
    """Warn where records and pool differ in the second moments of their features.

    The Frobenius norm of the difference is at most the noise's and what sampling makes. The mean
    of n rows of norm at most 1 has an error of the second moments of mean norm at most 1 / sqrt(n),
    and each row moves it by at most sqrt(2) / n: McDiarmid's inequality bounds the rest.
    """
    d = len(released)
    tail = math.sqrt(math.log(3 / LEVEL))
    sampling = (1 + tail) * (1 / math.sqrt(n) + 1 / math.sqrt(points))
    noise = deviation / n * math.sqrt(chi_square_quantile(d * (d + 1) // 2, 1 - LEVEL / 3))
    distance = float(np.linalg.norm(released - pool))
    if distance > sampling + noise:
        note(
            f"the pool's second moments differ from the released ones by {distance:.2g}, where "
            f"noise and chance make more than {sampling + noise:.2g} with probability at most "
            f"{LEVEL:g}: the pool is of another population, so that solve(pool=None) fits better"
        )


def note_moments(moments: Floats, pool: Floats, n: int, deviation: float) -> None:
    """Warn where no labels of the pool's points could have the released moments.

    The mean of a feature over the records of one class, as a share of all, cannot exceed the mean
    of its positive part, nor fall below that of its negative part. Hoeffding's inequality bounds
    what the sampling of records and pool makes, for all features and classes together.
    """
    most = np.maximum(pool, 0).mean(axis=0)[:, None]
    least = np.minimum(pool, 0).mean(axis=0)[:, None]
    excess = float(np.maximum(moments - most, least - moments).max())
    tests = 2 * moments.size
    tail = math.sqrt(math.log(3 * tests / LEVEL) / 2)
    sampling = tail * (2 / math.sqrt(n) + 1 / math.sqrt(len(pool)))
    slack = sampling + deviation / n * NormalDist().inv_cdf(1 - LEVEL / (3 * tests))
    if excess > slack:
        note(
            f"a released moment lies {excess:.2g} beyond all that labels of the pool could give, "
            f"where noise and chance make more than {slack:.2g} with probability at most "
            f"{LEVEL:g}: the pool is of another population, and statistics released with "
            "second_moments=True do without it"
        )


def chi_square_quantile(freedom: int, probability: float) -> float:
    """Approximate the quantile of a sum of squares of normal deviates (Wilson, Hilferty 1931)."""
    part = 2 / (9 * freedom)
    root = 1 - part + NormalDist().inv_cdf(probability) * math.sqrt(part)
    return freedom * max(root, 0.0) ** 3
