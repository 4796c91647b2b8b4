"""Warnings about released statistics, from public facts and released numbers alone."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np

from .._support.notes import note
from .._support.types import Floats

# Probability of a warning where what it warns of is not so.
LEVEL = 0.01


def note_before(n: int, squares: float, deviation: float, entries: int, epsilon: float) -> None:
    """Warn where no records could add up to more than the noise hides."""
    least = least_records(squares, deviation, entries)
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
