"""Randomizers whose reports are sets of categories, for many categories, and which one is best."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ... import _core
from ..._support.parameters import Rules
from ..._support.random_state import make_key
from ..._support.types import Integers, RandomState
from ..._support.validate import nonnegative_int, refuse
from .base import Reports, cap_epsilon
from .frequency import Design, FrequencyRandomizer, KaryResponse

# Beyond, ProjectiveGeometryResponse is as good, and a set has fewer bits.
_MOST_ITEMS = 1 << 10
# Where there are more sets than that, some of them are as good.
_MOST_SETS = 1 << 16
# A space may have so many points for each category, or as many as there would be sets up to so
# many, and so many in all.
_POINTS_EACH, _FEW_POINTS, _MOST_POINTS = 16, 1 << 20, 1 << 26
# Of randomizers that vary by so little more than the best, the one with fewer reports is taken.
_NEARLY = 1.005
# Rounded to 64 bits, the same law may vary by so much more.
_SAME = 1 + 1e-9


def _mean_variance(design: Design, k: int, epsilon: float) -> float:
    """The variance of a contribution to an estimate, the mean over k categories, unrounded."""
    reports, holding, shared = design
    odds = math.expm1(cap_epsilon(epsilon))
    scale = odds * holding + reports
    truth, lie = (odds + 1) * holding / scale, (odds * shared + holding) / scale
    squares = truth * (1 - truth) + (k - 1) * lie * (1 - lie)
    return squares / k * (scale / (odds * (holding - shared))) ** 2


def _count_items(name: str, value: Any) -> int:
    if not 2 <= nonnegative_int(name, value) <= _MOST_ITEMS:
        refuse(name, value, f"it must be an integer from 2 to {_MOST_ITEMS:,}")
    return nonnegative_int(name, value)


@dataclass(frozen=True, repr=False)
class SubsetSelection(FrequencyRandomizer):
    """Subset selection: the report is a set of categories, likelier with the person's own one.

    All sets have w categories, where w is one of the two integers next to `k / (e**epsilon + 1)`,
    and at least 1. The sets with the person's category are up to `e**epsilon` times as likely as
    all others. No randomizer with this epsilon has a smaller variance, in the limit of many people.
    For one category in a set it is KaryResponse.

    The report is the number of the set. There are as many numbers as sets of w of the k categories,
    if these are at most 65,536. Otherwise the sets are those of the x with `(a x + b) mod p < w`,
    for the least prime number p from k on and all a from 1 to (p - 1) / 2 and b below p. Each pair
    of categories is in as many of them, so that they serve as well as all sets, of p categories.

    Attributes:
        k: Number of categories, an integer from 2 to 1,024.
        epsilon: Privacy parameter of one report, at least 1e-9. Above 60 the law stays that of 60.

    Raises:
        ParameterError: A parameter is out of range.

    Guarantee:
        Each report is pure epsilon-differentially private in its own value, in the local model. The
        coins are exact, and the probability of the value's sets is rounded down.

    Cost:
        A report is an integer below `k**2` or 65,536, but for the rounding up of k to a prime. An
        aggregate holds as many counts, and its estimates take as many additions.

    Source:
        Ye and Barg 2018, subset selection, and 2019 for the limit; Park, Nam and Lee 2023 for fewer
        sets in the place of all.

    Examples:
        >>> import numpy as np
        >>> from hdp_fast import local
        >>> colors = np.repeat([0, 7, 49], [40_000, 30_000, 30_000])  # one person's color each
        >>> randomizer = local.SubsetSelection(50, epsilon=1.0)
        >>> randomizer
        SubsetSelection(k=50, epsilon=1.0): one of 364 sets with the value with probability 0.3122,
        else of 1,378 sets of 14
        >>> aggregate = randomizer.aggregate(randomizer.sample(colors))
        >>> int(aggregate.frequencies().argmax())
        0
    """

    k: int
    epsilon: float

    _source = "Ye and Barg 2018, subset selection"
    RULES: ClassVar[Rules] = {**FrequencyRandomizer.RULES, "k": _count_items}

    @cached_property
    def _sizes(self) -> tuple[int, int | None]:
        """The number of categories of a set, and the prime number unless there are all sets."""
        width = self._best_width(self.k)
        if math.comb(self.k, width) <= _MOST_SETS:
            return width, None
        modulus = next(p for p in range(self.k, 2 * self.k) if _is_prime(p))
        return self._best_width(modulus), modulus

    def _best_width(self, items: int) -> int:
        middle = items / (math.exp(cap_epsilon(self.epsilon)) + 1)
        widths = {max(1, math.floor(middle)), max(1, math.ceil(middle))}
        pairs = items * (items - 1)
        designs = {w: Design(pairs, (items - 1) * w, w * (w - 1)) for w in sorted(widths)}
        return min(designs, key=lambda width: _mean_variance(designs[width], self.k, self.epsilon))

    @property
    def _design(self) -> Design:
        width, modulus = self._sizes
        if modulus is None:
            k = self.k
            more = math.comb(k - 2, width - 2) if width > 1 else 0
            return Design(math.comb(k, width), math.comb(k - 1, width - 1), more)
        half = (modulus - 1) // 2
        return Design(half * modulus, half * width, width * (width - 1) // 2)

    def _draw(self, numbers: NDArray[Any], random_state: RandomState) -> Reports:
        values = self._to_integers(numbers)
        key = make_key(random_state)
        return _core.respond_subsets(values, self.k, *self._sizes, self.epsilon, key)

    def _hold(self, reports: Integers, values: NDArray[Any]) -> NDArray[np.bool_]:
        width, modulus = self._sizes
        if modulus is None:
            return _hold_in_sets(reports, values, self.k, width)
        factor, shift = np.divmod(reports, modulus)
        held: NDArray[np.bool_] = ((factor + 1) * values + shift) % modulus < width
        return held

    def _add_up(self, counts: Integers) -> Integers:
        return _core.add_subsets(counts, self.k, *self._sizes)

    def _noise(self) -> str:
        reports, holding, _ = self._design
        keep = (
            f"{holding:,} sets with the value with probability {float(self._keep_probability):.4g}"
        )
        return f"one of {keep}, else of {reports:,} sets of {self._sizes[0]}"


def _hold_in_sets(reports: Integers, values: NDArray[Any], k: int, width: int) -> NDArray[np.bool_]:
    """Returns whether the sets of these numbers hold values, for all sets of `width` of k items.

    Items c_1 < ... < c_w have the number C(c_1, 1) + ... + C(c_w, w).
    """
    rest, left = reports.copy(), np.full(reports.shape, width)
    held = np.zeros(np.broadcast_shapes(reports.shape, values.shape), np.bool_)
    for item in reversed(range(k)):
        smaller = np.array([math.comb(item, size) for size in range(width + 1)])[left]
        chosen = (left > 0) & (smaller <= rest)
        held |= chosen & (values == item)
        rest, left = rest - chosen * smaller, left - chosen
    return held


@dataclass(frozen=True, repr=False)
class ProjectiveGeometryResponse(FrequencyRandomizer):
    """Projective geometry response: a frequency oracle whose report is one small integer.

    A report is a point of a projective space over the field of q elements, q a prime number. Each
    category is another hyperplane of this space. The points on the person's hyperplane are up to
    `e**epsilon` times as likely as all others. Any two hyperplanes meet in as many points, and a
    hyperplane has about one point in q: with q near `e**epsilon + 1` the variance is near that of
    SubsetSelection, which is the least one. It is within 3 percent of it from k = 500 on for
    epsilon up to 3, and within 6 percent for epsilon up to 4. q and the dimension are those with
    the smallest variance.

    Attributes:
        k: Number of categories, an integer from 2 to `2**24`.
        epsilon: Privacy parameter of one report, at least 1e-9. Above 60 the law stays that of 60.

    Raises:
        ParameterError: A parameter is out of range.

    Guarantee:
        Each report is pure epsilon-differentially private in its own value, in the local model. The
        coins are exact, and the probability of the value's hyperplane is rounded down.

    Cost:
        A report is an integer below the number of points, which is most often a small multiple of k
        and never more than 16 k or `2**20`. An aggregate holds as many counts. Its estimates take
        about q t additions a count for t coordinates, and a few times the memory of the counts:
        0.05 seconds for 100,000 categories.

    Source:
        Feldman, Nelson, Nguyen and Talwar 2022. The variance of the estimate for a rare category is
        about `4 e**epsilon / (e**epsilon - 1)**2` for one report.

    Examples:
        >>> import numpy as np
        >>> from hdp_fast import local
        >>> randomizer = local.ProjectiveGeometryResponse(1000, epsilon=2.0)
        >>> randomizer.report_range  # a report of 12 bits about one of 1,000 categories
        (0, 2800)
        >>> words = np.full(100_000, 17)
        >>> aggregate = randomizer.aggregate(randomizer.sample(words))
        >>> int(aggregate.frequencies().argmax())
        17
    """

    k: int
    epsilon: float

    _source = "Feldman, Nelson, Nguyen and Talwar 2022"

    @cached_property
    def _sizes(self) -> tuple[int, int]:
        """The number of elements of the field, and the number of coordinates of a point."""
        sizes = sorted(_spaces(self.k), key=lambda each: _count_points(*each))
        variances = [_mean_variance(_geometry(*each), self.k, self.epsilon) for each in sizes]
        most = _NEARLY * min(variances)
        return next(each for each, value in zip(sizes, variances, strict=True) if value <= most)

    @property
    def _design(self) -> Design:
        return _geometry(*self._sizes)

    def _draw(self, numbers: NDArray[Any], random_state: RandomState) -> Reports:
        values = self._to_integers(numbers)
        key = make_key(random_state)
        return _core.respond_geometry(values, self.k, *self._sizes, self.epsilon, key)

    def _hold(self, reports: Integers, values: NDArray[Any]) -> NDArray[np.bool_]:
        q, dimension = self._sizes
        points, planes = self._to_vectors(reports), self._to_vectors(values)
        powers = [q**place for place in range(dimension)]
        pairs = zip(powers, reversed(powers), strict=True)
        product = sum((points // one % q) * (planes // other % q) for one, other in pairs)
        held: NDArray[np.bool_] = product % q == 0
        return held

    def _to_vectors(self, numbers: NDArray[Any]) -> NDArray[Any]:
        """The coordinates of points as digits to the base q, the leading one 1."""
        q, dimension = self._sizes
        starts = np.array([_count_points(q, size) for size in range(dimension)])
        places = np.searchsorted(starts, numbers, side="right") - 1
        vectors: NDArray[Any] = q**places + numbers - starts[places]
        return vectors

    def _add_up(self, counts: Integers) -> Integers:
        return _core.add_geometry(counts, self.k, *self._sizes)

    def _noise(self) -> str:
        (q, dimension), keep = self._sizes, float(self._keep_probability)
        points = f"{self._design.reports:,} points of PG({dimension - 1}, {q})"
        return f"a point of the value's hyperplane with probability {keep:.4g}, else of {points}"


def _count_points(q: int, dimension: int) -> int:
    """The number of points of a projective space of that many coordinates."""
    count: int = (q**dimension - 1) // (q - 1)
    return count


def _geometry(q: int, dimension: int) -> Design:
    points, holding, shared = (_count_points(q, dimension - less) for less in range(3))
    return Design(points, holding, shared)


def _spaces(k: int) -> Iterator[tuple[int, int]]:
    """The spaces with k points or more that are considered, by q and number of coordinates."""
    most = min(max(_POINTS_EACH * k, min(k**2 // 2, _FEW_POINTS)), _MOST_POINTS)
    for q in filter(_is_prime, range(2, math.isqrt(most) + 1)):
        least = next(t for t in range(3, 32) if _count_points(q, t) >= k)
        sizes = ((q, dimension) for dimension in (least, least + 1))
        yield from (each for each in sizes if _count_points(*each) <= most)


def _is_prime(number: int) -> bool:
    return number > 1 and all(number % d for d in range(2, math.isqrt(number) + 1))


def best_frequency(k: int, epsilon: float) -> FrequencyRandomizer:
    """Chooses the randomizer that estimates the frequencies of k categories best.

    It is the one whose estimates have the smallest variance, by the exact laws of the reports: the
    mean over all categories, most of which are rare where there are many. SubsetSelection is
    considered for k up to 1,024, and ProjectiveGeometryResponse is taken in its place where it
    varies by no more than 0.5 percent more. The variance is within 3 percent
    of the smallest that epsilon allows: for every epsilon where k is at most 1,024, and for epsilon
    up to 4 beyond. For more categories and epsilon up to 8 it is within 45 percent.

    Args:
        k: Number of categories, an integer from 2 to `2**24`.
        epsilon: Privacy parameter of one report, at least 1e-9.

    Returns:
        A KaryResponse, SubsetSelection or ProjectiveGeometryResponse.

    Raises:
        ParameterError: A parameter is out of range.

    Guarantee:
        Reports have the guarantee of the randomizer that is returned.

    Cost:
        A few milliseconds, and up to 100 for the largest k.

    Examples:
        >>> from hdp_fast import local
        >>> [type(local.best_frequency(k, 2.0)).__name__ for k in (5, 40, 5000)]
        ['KaryResponse', 'SubsetSelection', 'ProjectiveGeometryResponse']
        >>> local.best_frequency(1000, 1.0).agents_needed(alpha=0.02, beta=0.05)
        247822
    """
    made: list[FrequencyRandomizer] = [
        KaryResponse(k, epsilon),
        ProjectiveGeometryResponse(k, epsilon),
    ]
    if k <= _MOST_ITEMS:
        made.append(SubsetSelection(k, epsilon))
    variances = [randomizer.variance() for randomizer in made]
    # Sets of one vary more for common categories, so that a tie does not go to them.
    shares = zip(made, variances, (_SAME, _NEARLY, _NEARLY), strict=False)
    return next(each for each, variance, most in shares if variance <= most * min(variances))
