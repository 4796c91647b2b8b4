"""Randomizers of one category each, from whose reports all frequencies are estimated."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ... import _core
from ..._support.numbers import floats
from ..._support.parameters import Rules
from ..._support.random_state import make_key
from ..._support.types import Floats, Integers, RandomState
from ..._support.validate import nonnegative_int, probability, refuse
from .aggregates import Aggregate
from .base import (
    TWO_64,
    Deviation,
    Randomizer,
    Reports,
    cap_epsilon,
    deviations_of,
    half_width,
    validate_epsilon,
)

# The interval of one category fails when one of a few events happens, each of probability exp(-L).
# With the known bounds there are two: the estimate is too large, or too small, by more than the
# least of several widths, all fixed before any report is seen. With the empirical Bernstein bound
# (Maurer and Pontil, proof of Theorem 11, ln(2 / delta) = L) there are three: Bernstein's
# inequality fails on either side, or the sample deviation is too small (Theorem 10), which serves
# both sides.
_KNOWN_EVENTS, _EMPIRICAL_EVENTS = 2, 3

_MOST_VALUES = 1 << 24


class FrequencyAggregate(Aggregate):
    """The number of times that each possible report has been made.

    Args:
        randomizer: The one that makes the reports.

    Examples:
        >>> import numpy as np
        >>> from hdp_fast import local
        >>> colors = np.repeat([0, 7, 49], [40_000, 30_000, 30_000])  # one person's color each
        >>> randomizer = local.HadamardResponse(50, epsilon=2.0)
        >>> aggregate = randomizer.aggregate(randomizer.sample(colors))
        >>> frequencies = aggregate.frequencies()
        >>> bool(abs(frequencies[0] - 0.4) < aggregate.interval(beta=1e-10))
        True
    """

    _state_name = "counts"
    _randomizer: FrequencyRandomizer
    _total: Integers

    def frequencies(self) -> NDArray[np.float64]:
        """Estimates the share of agents that holds each category.

        The estimates are unbiased. One of them may therefore be negative, and they need not add up
        to 1.

        Returns:
            A float64 array of shape (k,).

        Raises:
            ParameterError: No report has been added.

        Guarantee:
            This is post-processing and costs no privacy.

        Cost:
            O(k), and O(k log k) for HadamardResponse.
        """
        return self._randomizer._frequencies(self._total, self._require_reports())

    def interval(self, beta: float) -> float:
        """Computes the half width of k intervals that hold together.

        The interval of a category is its estimated frequency plus or minus this number. It holds
        for the frequency in the population that the agents are an independent sample of, and for
        the frequency among these very agents. The result is the smaller of two half widths, each of
        which fails with probability beta / 2 at most: that of `Randomizer.agents_needed`, and an
        empirical Bernstein bound, which knows the counts.

        Args:
            beta: Probability, in (0, 1), with which one frequency or more may lie outside its
                interval.

        Returns:
            The half width, the same for every category.

        Raises:
            ParameterError: beta is out of range, or no report has been added.

        Guarantee:
            This is post-processing and costs no privacy. The intervals hold for every number of
            reports and every population.

        Cost:
            O(k).

        Source:
            Maurer and Pontil 2009, Theorems 4 and 11; Boucheron, Lugosi and Massart 2013, Theorems
            2.8 and 2.10.
        """
        reports, failure = self._require_reports(), probability("beta", beta)
        bounds = deviations_of(self._randomizer)
        known = half_width(bounds, reports, self._log_odds(_KNOWN_EVENTS, failure))
        if reports == 1:
            return known
        # The sample variance is at most n / (n - 1) times the mean of squares. This is why n - 1
        # stands where Theorem 11 has n.
        span, log_odds = self._randomizer._span(), self._log_odds(_EMPIRICAL_EVENTS, failure)
        square = self._randomizer._largest_square(self._total, reports)
        deviation = math.sqrt(2 * square * log_odds / (reports - 1))
        return min(known, deviation + 7 * span * log_odds / (3 * (reports - 1)))

    def _log_odds(self, events: int, beta: float) -> float:
        """Returns the L for which k times `events` events of probability exp(-L) make beta / 2."""
        return math.log(2 * events * self._randomizer.k) - math.log(beta)

    def _empty(self) -> Integers:
        return np.zeros(self._randomizer.report_range[1] + 1, np.int64)

    def _count_all(self, reports: NDArray[Any]) -> Integers:
        plain = reports.dtype == np.int64 and reports.flags.c_contiguous and reports.flags.aligned
        counts = _core.count_reports(reports, self._total.size) if plain else None
        # The other way counts all other types, and says what is out of range.
        return super()._count_all(reports) if counts is None else counts

    def _sum(self, part: NDArray[Any]) -> Integers:
        return np.bincount(part, minlength=self._randomizer.report_range[1] + 1)

    def _to_json_state(self) -> list[int]:
        counts: list[int] = self._total.tolist()
        return counts

    def _validate_state(self, reports: int, state: Any) -> Integers:
        whole = isinstance(state, list) and all(type(n) is int and n >= 0 for n in state)
        size = len(self._total)
        if not whole or len(state) != size or sum(state) != reports:
            refuse("counts", state, f"it must be {size} counts that add up to reports = {reports}")
        return np.array(state, np.int64)


def _count_values(name: str, value: Any) -> int:
    if not 2 <= nonnegative_int(name, value) <= _MOST_VALUES:
        refuse(name, value, "it must be an integer from 2 to 2**24")
    return nonnegative_int(name, value)


class FrequencyRandomizer(Randomizer[FrequencyAggregate]):
    """The base class of randomizers whose reports estimate the frequencies of k categories."""

    k: int
    _aggregate = FrequencyAggregate

    RULES: ClassVar[Rules] = {"k": _count_values, "epsilon": validate_epsilon}

    def _to_values(self, numbers: NDArray[Any]) -> NDArray[Any]:
        return self._to_integers(numbers).clip(0, self.k - 1)

    def _to_integers(self, numbers: NDArray[Any]) -> Integers:
        """Converts numbers of any type to integers; those out of range stay so."""
        last = self.k - 1
        if numbers.dtype.kind == "f":
            reals = floats(numbers)
            return np.where(reals == np.floor(reals), reals.clip(0, last), last).astype(np.int64)
        if numbers.dtype == np.uint64:
            numbers = np.minimum(numbers, np.uint64(self.k))
        return np.require(numbers, np.int64, ["C", "A"])

    def _dimension(self) -> int:
        return self.k

    def _deviations(self, sampled: bool, binary: bool) -> list[Deviation]:
        variance, distance = self._worst_deviation()
        return [Deviation(self._span() ** 2 / 4, 0.0), Deviation(variance, distance / 3)]

    @abstractmethod
    def _frequencies(self, counts: Integers, reports: int) -> Floats: ...

    @abstractmethod
    def _span(self) -> float:
        """Returns the greatest contribution to an estimate, minus the least one."""

    @abstractmethod
    def _worst_deviation(self) -> tuple[float, float]:
        """Bounds the variance of a contribution to an estimate, and its distance to its mean."""

    @abstractmethod
    def _largest_square(self, counts: Integers, reports: int) -> float:
        """Returns the largest mean square of these reports' contributions to an estimate."""


@dataclass(frozen=True, repr=False)
class KaryResponse(FrequencyRandomizer):
    """k-ary randomized response: the truth with some probability, otherwise a uniform answer.

    The report is one of the k categories. The true one is up to `e**epsilon` times as likely as any
    other one. This randomizer suits few categories: HadamardResponse has the smaller variance from
    about k = 6, 7, 12, 41, 116 and 329 on, for epsilon = 0.25, 0.5, 1, 2, 3 and 4.

    Attributes:
        k: Number of categories, an integer from 2 to `2**24`.
        epsilon: Privacy parameter of one report, at least 1e-9. Above 60 the law stays that of 60.

    Raises:
        ParameterError: A parameter is out of range.

    Guarantee:
        Each report is pure epsilon-differentially private in its own value, in the local model. The
        coins are exact, and the probability of the truth is rounded down.

    Source:
        Kairouz, Bonawitz and Ramage 2016, k-RR. The variance of the estimate for a rare category is
        about `(k - 2 + e**epsilon) / (e**epsilon - 1)**2` for one report.

    Examples:
        >>> import numpy as np
        >>> from hdp_fast import local
        >>> transport = np.repeat([0, 1, 2], [60_000, 30_000, 10_000])  # bus, car, bicycle
        >>> randomizer = local.KaryResponse(3, epsilon=1.0)
        >>> aggregate = randomizer.aggregate(randomizer.sample(transport))
        >>> errors = aggregate.frequencies() - [0.6, 0.3, 0.1]
        >>> bool(abs(errors).max() < aggregate.interval(beta=1e-10))
        True
    """

    k: int
    epsilon: float

    delta = 0.0
    _source = "Kairouz, Bonawitz and Ramage 2016, k-RR"

    @cached_property
    def _keep_probability(self) -> Fraction:
        """The probability of reporting the value; otherwise any category is drawn uniformly."""
        return Fraction(_core.keep_probability(self.epsilon, 1, self.k), TWO_64)

    @property
    def _lie(self) -> Fraction:
        return (1 - self._keep_probability) / self.k

    @property
    def _truth(self) -> Fraction:
        return self._keep_probability + self._lie

    @property
    def report_range(self) -> tuple[int, int]:
        """The least and the greatest report: 0 and k - 1."""
        return 0, self.k - 1

    def _draw(self, numbers: NDArray[Any], random_state: RandomState) -> Reports:
        values = self._to_integers(numbers)
        return _core.respond_kary(values, self.k, self.epsilon, make_key(random_state))

    def _log_probability(self, reports: Floats, values: NDArray[Any]) -> Floats:
        likelihood = np.where(reports == values, float(self._truth), float(self._lie))
        return np.log(np.where((reports >= 0) & (reports < self.k), likelihood, 0.0))

    def _frequencies(self, counts: Integers, reports: int) -> Floats:
        return (counts / reports - float(self._lie)) * self._span()

    def _span(self) -> float:
        return float(1 / self._keep_probability)

    def _variance(self, value: Any) -> float:
        truth, lie = (p * (1 - p) for p in (self._truth, self._lie))
        return float((truth + (self.k - 1) * lie) / self.k) * self._span() ** 2

    def _worst_variance(self) -> float:
        return self._variance(0)

    def _worst_deviation(self) -> tuple[float, float]:
        likeliest = min(self._truth, max(self._lie, Fraction(1, 2)))
        return float(likeliest * (1 - likeliest)) * self._span() ** 2, self._span()

    def _largest_square(self, counts: Integers, reports: int) -> float:
        return float(counts.max()) / reports * self._span() ** 2

    def _noise(self) -> str:
        return f"the truth with probability {float(self._truth):.4g}, or a uniform lie"


@dataclass(frozen=True, repr=False)
class HadamardResponse(FrequencyRandomizer):
    """Hadamard response: a frequency oracle whose report is one small integer, whatever k is.

    A report is a column of one of B Hadamard matrices of order b, the blocks. A category stands for
    a row of one block. The columns in which that row is 1 are up to `e**epsilon` times as likely as
    all others. One fast Walsh-Hadamard transform for each block gives all k estimates.

    Optimal unary encoding has the smaller variance for a rare category,
    `4 e**epsilon / (e**epsilon - 1)**2`, but sends k bits for each report and takes O(k) time to
    make one and to add one. This randomizer sends `log2(B b)` bits, and takes time that does not
    depend on k to make or add one. Its variance, averaged over many categories, is
    `(e**epsilon - 1 + 2 B)**2 / (B (e**epsilon - 1)**2)`: 1.02, 1.06, 1.27, 1.73 and 1.96 times
    that of unary encoding for epsilon = 0.25, 0.5, 1, 2 and 4, and at most twice as much beyond.

    Attributes:
        k: Number of categories, an integer from 2 to `2**24`.
        epsilon: Privacy parameter of one report, at least 1e-9. Above 60 the law stays that of 60.

    Raises:
        ParameterError: A parameter is out of range.

    Guarantee:
        Each report is pure epsilon-differentially private in its own value, in the local model. The
        coins are exact, and the probability of the value's columns is rounded down.

    Source:
        Acharya, Sun and Zhang 2019, Section 5, with B one of the two integers next to
        `(e**epsilon - 1) / 2`, whether a power of 2 or not, and at most k.

    Examples:
        >>> import numpy as np
        >>> from hdp_fast import local
        >>> randomizer = local.HadamardResponse(1000, epsilon=2.0)
        >>> randomizer.report_range  # a report of 11 bits about one of 1,000 categories
        (0, 1535)
        >>> words = np.full(100_000, 17)
        >>> aggregate = randomizer.aggregate(randomizer.sample(words))
        >>> int(aggregate.frequencies().argmax())
        17
    """

    k: int
    epsilon: float

    delta = 0.0
    _source = "Acharya, Sun and Zhang 2019, Section 5"

    @cached_property
    def _sizes(self) -> tuple[int, int]:
        """The number of blocks B, and log2 of the columns b of each."""
        advantage = math.expm1(cap_epsilon(self.epsilon))
        ideal = min(max(1, math.floor(advantage / 2)), self.k)
        pair = (ideal, min(ideal + 1, self.k))
        blocks = min(pair, key=lambda blocks: (advantage + 2 * blocks) ** 2 / blocks)
        # Row 0 stands for no category, since it is 1 in every column.
        return blocks, (-(-self.k // blocks)).bit_length()

    @property
    def _half(self) -> int:
        return 1 << (self._sizes[1] - 1)

    @cached_property
    def _keep_probability(self) -> Fraction:
        """The probability of drawing from the value's columns; otherwise any column is drawn."""
        columns = self.report_range[1] + 1
        return Fraction(_core.keep_probability(self.epsilon, self._half, columns), TWO_64)

    @property
    def _rest(self) -> Fraction:
        """The probability of half a block of columns that are not the value's."""
        return (1 - self._keep_probability) / (2 * self._sizes[0])

    @property
    def report_range(self) -> tuple[int, int]:
        """The least and the greatest report: 0 and the number of columns of all blocks, minus 1."""
        blocks, log2_size = self._sizes
        return 0, (blocks << log2_size) - 1

    def _draw(self, numbers: NDArray[Any], random_state: RandomState) -> Reports:
        return _core.respond_hadamard(
            self._to_integers(numbers),
            *(self.k, *self._sizes, self.epsilon, make_key(random_state)),
        )

    def _log_probability(self, reports: Floats, values: NDArray[Any]) -> Floats:
        blocks, log2_size = self._sizes
        possible = (reports >= 0) & (reports < blocks << log2_size)
        columns = np.where(possible, reports, 0).astype(np.int64)
        row, block = np.divmod(values, blocks)
        likely = (columns >> log2_size == block) & ~_has_odd_parity(columns & (row + 1))
        high, low = (p / self._half for p in (self._keep_probability + self._rest, self._rest))
        return np.log(np.where(possible, np.where(likely, float(high), float(low)), 0.0))

    def _frequencies(self, counts: Integers, reports: int) -> Floats:
        blocks, log2_size = self._sizes
        sums = hadamard_transform(counts.reshape(blocks, 1 << log2_size))
        # Category x stands for row 1 + x // blocks of block x % blocks.
        return sums.T[1:].ravel()[: self.k] / reports * (self._span() / 2)

    def _span(self) -> float:
        return float(2 / self._keep_probability)

    def _variance(self, value: Any) -> float:
        blocks = self._sizes[0]
        same = len(range(int(value) % blocks, self.k, blocks))
        # A report contributes to the estimates of its column's block: to those of the value's own
        # block it does so with the keep probability more often than to the others.
        total = same * self._keep_probability + self.k * 2 * self._rest
        return float((total / self._keep_probability**2 - 1) / self.k)

    def _worst_variance(self) -> float:
        # The first block holds the most categories.
        return self._variance(0)

    def _worst_deviation(self) -> tuple[float, float]:
        square = float(self._keep_probability + 2 * self._rest) * (self._span() / 2) ** 2
        return square, self._span() / 2 + 1

    def _largest_square(self, counts: Integers, reports: int) -> float:
        largest = counts.reshape(self._sizes[0], -1).sum(axis=1).max()
        return float(largest) / reports * (self._span() / 2) ** 2

    def _noise(self) -> str:
        blocks, log2_size = self._sizes
        columns = f"{blocks} Hadamard matrices of order 2**{log2_size}"
        keep = float(self._keep_probability)
        return f"a column of its own with probability {keep:.4g}, else of {columns}"


def _has_odd_parity(bits: Integers) -> NDArray[np.bool_]:
    """Returns whether the number of ones is odd, for each entry."""
    for shift in (32, 16, 8, 4, 2, 1):
        bits = bits ^ bits >> shift
    return (bits & 1).astype(np.bool_)


def hadamard_transform(counts: Integers) -> Integers:
    """Multiplies each row of counts (m, b) by the Hadamard matrix; b is a power of 2."""
    sums, size = counts, counts.shape[1]
    for half in (1 << level for level in range(size.bit_length() - 1)):
        pairs = sums.reshape(len(counts), -1, 2, half)
        first, second = pairs[:, :, 0], pairs[:, :, 1]
        sums = np.stack([first + second, first - second], axis=2).reshape(len(counts), size)
    return sums
