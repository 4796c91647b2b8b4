"""Randomizers of one category each, from whose reports all frequencies are estimated."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ... import _core
from ..._support.numbers import floats
from ..._support.random_state import make_key
from ..._support.types import Floats, Integers, RandomState
from ..._support.validate import nonnegative_int, probability, refuse
from .aggregates import Aggregate
from .base import TWO_64, Randomizer, Reports, capped, checked_epsilon
from .concentration import Deviation, half_width

# What may go wrong with an interval for one value, each with probability exp(-L). Known bounds: the
# estimate is too large or too small, beyond the least of widths that are fixed before any report is
# seen. Empirical Bernstein (Maurer and Pontil, proof of Theorem 11, ln(2 / delta) = L): Bernstein's
# inequality fails on either side, or the sample's deviation is too small (Theorem 10), which serves
# both sides.
_KNOWN_EVENTS, _EMPIRICAL_EVENTS = 2, 3

_MOST_VALUES = 1 << 24


class FrequencyRandomizer(Randomizer):
    """Any randomizer below."""

    k: int

    def __post_init__(self) -> None:
        """Refuse what no randomizer could be."""
        if not 2 <= nonnegative_int("k", self.k) <= _MOST_VALUES:
            refuse("k", self.k, "it must be an integer from 2 to 2**24")
        object.__setattr__(self, "k", nonnegative_int("k", self.k))
        object.__setattr__(self, "epsilon", checked_epsilon(self.epsilon))

    def aggregate(self, reports: ArrayLike | None = None) -> FrequencyAggregate:
        """What reports say together: the state from which all frequencies are estimated.

        reports: as for Aggregate.add; None starts with none.

        Raises: as Aggregate.add.
        Cost: as Aggregate.add.
        Source: none.
        """
        empty = FrequencyAggregate(self)
        return empty if reports is None else empty.add(reports)

    def _values(self, found: NDArray[Any]) -> NDArray[Any]:
        last = self.k - 1
        if found.dtype.kind == "f":
            reals = floats(found)
            return np.where(reals == np.floor(reals), reals.clip(0, last), last).astype(np.int64)
        if found.dtype == np.uint64:
            found = np.minimum(found, np.uint64(self.k))
        values: Integers = np.require(found, np.int64, ["C", "A"]).clip(0, last)
        return values

    def _estimates(self) -> int:
        return self.k

    def _deviations(self, sampled: bool, binary: bool) -> list[Deviation]:
        variance, distance = self._worst_for_one()
        return [Deviation(self._span() ** 2 / 4, 0.0), Deviation(variance, distance / 3)]

    @abstractmethod
    def _frequencies(self, counts: Integers, reports: int) -> Floats: ...

    @abstractmethod
    def _span(self) -> float:
        """The greatest contribution to an estimate, less the least one."""

    @abstractmethod
    def _worst_for_one(self) -> tuple[float, float]:
        """Of a contribution to one estimate: the largest variance and distance to its mean."""

    @abstractmethod
    def _largest_square(self, counts: Integers, reports: int) -> float:
        """The largest mean of squares of the contributions to an estimate, as they came."""


class FrequencyAggregate(Aggregate):
    """How often each report came.

    Attributes:
        randomizer: the one that made the reports.
        reports: how many have been added.
    """

    _state = "counts"
    _randomizer: FrequencyRandomizer

    def __init__(self, randomizer: FrequencyRandomizer):
        super().__init__(randomizer)
        self._counts = self._nothing()

    def frequencies(self) -> NDArray[np.float64]:
        """The share of agents that holds each value, without bias; float64 (k,).

        An unbiased estimate may be negative, and the k of them may not add up to 1.

        Guarantee: post-processing.
        Raises: ParameterError when no report has been added.
        Cost: O(k), O(k log k) for HadamardResponse.
        Source: as the randomizer.
        """
        return self._randomizer._frequencies(self._counts, self._some())

    def interval(self, beta: float) -> float:
        """By how much any of the k frequencies may be off, in the population or among the agents.

        beta: probability with which one of them or more may be off by more.

        Guarantee: post-processing; holds for every number of reports and every population: the
            better of the bounds of agents_needed and the empirical Bernstein bound, with half of
            beta each, divided among all that may go wrong with them.
        Raises: ParameterError, also when no report has been added.
        Cost: as frequencies.
        Source: Maurer and Pontil 2009, Theorems 4 and 11; as Randomizer.agents_needed.
        """
        reports, failure = self._some(), probability("beta", beta)
        bounds = self._randomizer._deviations(sampled=True, binary=False)
        known = half_width(bounds, reports, self._log_odds(_KNOWN_EVENTS, failure))
        if reports == 1:
            return known
        # The sample variance is at most n / (n - 1) times the mean of squares: hence n - 1 where
        # Theorem 11 has n.
        span, log_odds = self._randomizer._span(), self._log_odds(_EMPIRICAL_EVENTS, failure)
        square = self._randomizer._largest_square(self._counts, reports)
        spread = math.sqrt(2 * square * log_odds / (reports - 1))
        return min(known, spread + 7 * span * log_odds / (3 * (reports - 1)))

    def _log_odds(self, events: int, beta: float) -> float:
        """The L at which so many events for each value, exp(-L) each, make half of beta."""
        return math.log(2 * events * self._randomizer.k) - math.log(beta)

    def _nothing(self) -> Integers:
        return np.zeros(self._randomizer.report_range[1] + 1, np.int64)

    def _counted(self, part: NDArray[Any]) -> Integers:
        self._checked_range(part)
        return np.bincount(part, minlength=self._randomizer.report_range[1] + 1)

    def _held(self) -> Integers:
        return self._counts

    def _merge(self, state: Integers) -> None:
        self._counts = self._counts + state

    def _plain(self) -> list[int]:
        return [int(each) for each in self._counts]

    def _restored(self, reports: int, state: Any) -> Self:
        whole = isinstance(state, list) and all(type(n) is int and n >= 0 for n in state)
        if not whole or len(state) != len(self._counts) or sum(state) != reports:
            refuse(
                "counts",
                state,
                f"it must be {len(self._counts)} counts that add up to reports = {reports}",
            )
        self._counts, self._reports = np.array(state, np.int64), reports
        return self


@dataclass(frozen=True, repr=False)
class KaryResponse(FrequencyRandomizer):
    """Randomized response with k answers: the truth, or a uniform lie.

    The best choice for few values, k < 3 e**epsilon + 2; beyond, HadamardResponse varies less.

    k: from 2 to 2**24; epsilon: at least 1e-9.

    Guarantee: pure epsilon-DP for each report, locally; exact coins, the probability of the truth
        rounded down.
    Raises: ParameterError.
    Cost: constant.
    Source: Kairouz, Bonawitz and Ramage 2016, k-RR; variance about (k - 2 + e**epsilon) /
        (e**epsilon - 1)**2 for a rare value.
    """

    k: int
    epsilon: float

    delta = 0.0
    _source = "Kairouz, Bonawitz and Ramage 2016, k-RR"

    @cached_property
    def _own(self) -> Fraction:
        """Probability of telling the value; else any answer is drawn."""
        return Fraction(_core.keep_probability(self.epsilon, 1, self.k), TWO_64)

    @property
    def _lie(self) -> Fraction:
        return (1 - self._own) / self.k

    @property
    def _truth(self) -> Fraction:
        return self._own + self._lie

    @property
    def report_range(self) -> tuple[int, int]:
        """The least and the greatest report."""
        return 0, self.k - 1

    def _drawn(self, values: NDArray[Any], random_state: RandomState) -> Reports:
        return _core.respond_kary(values, self.k, self.epsilon, make_key(random_state))

    def _log_probability(self, reports: Floats, values: NDArray[Any]) -> Floats:
        said = np.where(reports == values, float(self._truth), float(self._lie))
        return np.log(np.where((reports >= 0) & (reports < self.k), said, 0.0))

    def _frequencies(self, counts: Integers, reports: int) -> Floats:
        return (counts / reports - float(self._lie)) * self._span()

    def _span(self) -> float:
        return float(1 / self._own)

    def _variance(self, value: Any) -> float:
        own, other = (p * (1 - p) for p in (self._truth, self._lie))
        return float((own + (self.k - 1) * other) / self.k) * self._span() ** 2

    def _worst_variance(self) -> float:
        return self._variance(0)

    def _worst_for_one(self) -> tuple[float, float]:
        likeliest = min(self._truth, max(self._lie, Fraction(1, 2)))
        return float(likeliest * (1 - likeliest)) * self._span() ** 2, self._span()

    def _largest_square(self, counts: Integers, reports: int) -> float:
        return float(counts.max()) / reports * self._span() ** 2

    def _noise(self) -> str:
        return f"the truth with probability {float(self._truth):.4g}, or a uniform lie"


@dataclass(frozen=True, repr=False)
class HadamardResponse(FrequencyRandomizer):
    """Hadamard response: a frequency oracle whose report is one small integer, whatever k.

    Columns of Hadamard matrices, in B blocks of b: a value stands for a row of one block, and the
    columns where that row is 1 are up to e**epsilon times as likely as all others. All k estimates
    come from one fast Walsh-Hadamard transform a block.

    Optimal unary encoding has the smaller variance for a rare value, 4 e**epsilon /
    (e**epsilon - 1)**2, but sends k bits a report, and takes time k to make and to add. This one
    sends log2(B b) bits, in time independent of k, for (e**epsilon - 1 + 2 B)**2 / (B (e**epsilon -
    1)**2) on average over the values: 1.02, 1.06, 1.27, 1.73 and 1.96 times as much for epsilon
    .25, .5, 1, 2 and 4, and twice as much beyond.

    k: from 2 to 2**24; epsilon: at least 1e-9.

    Guarantee: pure epsilon-DP for each report, locally; exact coins, the probability of the value's
        own columns rounded down.
    Raises: ParameterError.
    Cost: constant.
    Source: Acharya, Sun and Zhang 2019, Section 5; B nearest to (e**epsilon - 1) / 2, any integer.
    """

    k: int
    epsilon: float

    delta = 0.0
    _source = "Acharya, Sun and Zhang 2019, Section 5"

    @cached_property
    def _sizes(self) -> tuple[int, int]:
        """Blocks, and log2 of the columns of each."""
        advantage = math.expm1(capped(self.epsilon))
        ideal = min(max(1, math.floor(advantage / 2)), self.k)
        pair = (ideal, min(ideal + 1, self.k))
        blocks = min(pair, key=lambda blocks: (advantage + 2 * blocks) ** 2 / blocks)
        # Row 0 tells nothing: it is 1 in every column.
        return blocks, (-(-self.k // blocks)).bit_length()

    @property
    def _half(self) -> int:
        return 1 << (self._sizes[1] - 1)

    @cached_property
    def _own(self) -> Fraction:
        """Probability of drawing from the value's columns; else any column is drawn."""
        columns = self.report_range[1] + 1
        return Fraction(_core.keep_probability(self.epsilon, self._half, columns), TWO_64)

    @property
    def _rest(self) -> Fraction:
        """Probability of half a block's columns that are not the value's."""
        return (1 - self._own) / (2 * self._sizes[0])

    @property
    def report_range(self) -> tuple[int, int]:
        """The least and the greatest report."""
        blocks, log2_size = self._sizes
        return 0, (blocks << log2_size) - 1

    def _drawn(self, values: NDArray[Any], random_state: RandomState) -> Reports:
        return _core.respond_hadamard(
            values, self.k, *self._sizes, self.epsilon, make_key(random_state)
        )

    def _log_probability(self, reports: Floats, values: NDArray[Any]) -> Floats:
        blocks, log2_size = self._sizes
        possible = (reports >= 0) & (reports < blocks << log2_size)
        columns = np.where(possible, reports, 0).astype(np.int64)
        row, block = np.divmod(values, blocks)
        own = (columns >> log2_size == block) & ~_odd(columns & (row + 1))
        each = [float(p / self._half) for p in (self._own + self._rest, self._rest)]
        return np.log(np.where(possible, np.where(own, *each), 0.0))

    def _frequencies(self, counts: Integers, reports: int) -> Floats:
        blocks, log2_size = self._sizes
        found = _hadamard_transform(counts.reshape(blocks, 1 << log2_size))
        # Value x stands for row 1 + x // blocks of block x % blocks.
        return found.T[1:].ravel()[: self.k] / reports * (self._span() / 2)

    def _span(self) -> float:
        return float(2 / self._own)

    def _variance(self, value: Any) -> float:
        blocks = self._sizes[0]
        same = len(range(int(value) % blocks, self.k, blocks))
        # In the value's own block every column contributes, elsewhere any column's share does.
        total = same * self._own + self.k * 2 * self._rest
        return float((total / self._own**2 - 1) / self.k)

    def _worst_variance(self) -> float:
        # The first block holds the most values.
        return self._variance(0)

    def _worst_for_one(self) -> tuple[float, float]:
        square = float(self._own + 2 * self._rest) * (self._span() / 2) ** 2
        return square, self._span() / 2 + 1

    def _largest_square(self, counts: Integers, reports: int) -> float:
        largest = counts.reshape(self._sizes[0], -1).sum(axis=1).max()
        return float(largest) / reports * (self._span() / 2) ** 2

    def _noise(self) -> str:
        blocks, log2_size = self._sizes
        columns = f"{blocks} Hadamard matrices of order 2**{log2_size}"
        return f"a column of its own with probability {float(self._own):.4g}, else of {columns}"


def _odd(bits: Integers) -> NDArray[np.bool_]:
    """Whether the number of ones is odd."""
    for shift in (32, 16, 8, 4, 2, 1):
        bits = bits ^ bits >> shift
    return (bits & 1).astype(np.bool_)


def _hadamard_transform(counts: Integers) -> Integers:
    """Row r of the Hadamard matrix times each row of counts (m, b), for all r; b a power of 2."""
    found, size = counts, counts.shape[1]
    for half in (1 << level for level in range(size.bit_length() - 1)):
        pairs = found.reshape(len(counts), -1, 2, half)
        first, second = pairs[:, :, 0], pairs[:, :, 1]
        found = np.stack([first + second, first - second], axis=2).reshape(len(counts), size)
    return found
