"""Randomizers of one category each, from whose reports all frequencies are estimated."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ... import _core
from ..._support.numbers import floats
from ..._support.parameters import Rules
from ..._support.random_state import make_key
from ..._support.types import Floats, Integers, RandomState
from ..._support.validate import nonnegative_int, probability, refuse
from .aggregates import Aggregate, bound_by_sample, count_turnout, split_failure
from .base import (
    TWO_64,
    Deviation,
    Randomizer,
    Reports,
    deviations_of,
    half_width,
    validate_epsilon,
)

_MOST_VALUES = 1 << 24


class FrequencyAggregate(Aggregate):
    """The number of times that each possible report has been made.

    Args:
        randomizer: The one that makes the reports.

    Examples:
        >>> import numpy as np
        >>> from hdp_fast import local
        >>> colors = np.repeat([0, 7, 49], [40_000, 30_000, 30_000])  # one person's color each
        >>> randomizer = local.best_frequency(50, epsilon=2.0)
        >>> aggregate = randomizer.aggregate(randomizer.sample(colors))
        >>> frequencies = aggregate.frequencies()
        >>> bool(abs(frequencies[0] - 0.4) < aggregate.interval(beta=1e-10))
        True
    """

    _fields = ("counts",)
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
            O(possible reports), and about q t times as much for ProjectiveGeometryResponse.
        """
        reports, randomizer = self._require_reports(), self._randomizer
        shares = randomizer._add_up(self._total) / reports
        return (shares - float(randomizer._lie)) * randomizer._span

    def interval(self, beta: float, *, liars: int = 0, silent: int = 0) -> float:
        """Computes the half width of k intervals that hold together.

        The interval of a category is its estimated frequency plus or minus this number. It holds
        for the frequency in the population that the agents are an independent sample of, and for
        the frequency among these very agents. The half width is the smaller one of that of
        `Randomizer.agents_needed` and of Bernstein's inequality with a bound on the variance from
        the reports themselves. Liars and silent people are those of `MeanAggregate.estimate`.

        Args:
            beta: Probability, in (0, 1), with which one frequency or more may lie outside its
                interval.
            liars: The most reports that may be anything.
            silent: Number of people who were asked and whose reports are missing. The intervals are
                then for all who were asked, around the frequencies from those who answered.

        Returns:
            The half width, the same for every category.

        Raises:
            ParameterError: beta, liars or silent is out of range, or no report has been added.

        Guarantee:
            This is post-processing and costs no privacy. The intervals hold for every number of
            reports and every population.

        Cost:
            That of `frequencies`.

        Source:
            Maurer and Pontil 2009, Theorem 10; Boucheron, Lugosi and Massart 2013, Theorems 2.8 and
            2.10; Cheu, Smith and Ullman 2021 for what liars can do.
        """
        reports, failure = self._require_reports(), probability("beta", beta)
        turnout, randomizer = count_turnout(reports, liars, silent), self._randomizer
        honest = turnout.honest
        ends, spare = split_failure(failure, randomizer.k)
        bounds = deviations_of(randomizer)
        if honest > 1:
            held = randomizer._add_up(self._total).astype(np.float64)
            pairs = float((held * (reports - held)).max()) + turnout.add_pairs(0, 1)
            variance = bound_by_sample(pairs / honest / (honest - 1), honest, 1.0, spare)
            bounds.append(Deviation(variance * randomizer._span**2, randomizer._span / 3))
        off = turnout.unknown / turnout.asked * randomizer._span
        return half_width(bounds, honest, ends) + off

    def _empty(self) -> Integers:
        return np.zeros(self._randomizer.report_range[1] + 1, np.int64)

    def _count_all(self, reports: NDArray[Any]) -> Integers:
        plain = reports.dtype == np.int64 and reports.flags.c_contiguous and reports.flags.aligned
        counts = _core.count_reports(reports, self._total.size) if plain else None
        # The other way counts all other types, and says what is out of range.
        return super()._count_all(reports) if counts is None else counts

    def _sum(self, part: NDArray[Any]) -> Integers:
        return np.bincount(part, minlength=self._randomizer.report_range[1] + 1)

    def _to_fields(self) -> dict[str, Any]:
        return {"counts": self._total.tolist()}

    def _validate_fields(self, reports: int, fields: dict[str, Any]) -> Integers:
        counts, size = fields["counts"], len(self._total)
        whole = isinstance(counts, list) and all(type(n) is int and n >= 0 for n in counts)
        if not whole or len(counts) != size or sum(counts) != reports:
            refuse("counts", counts, f"it must be {size} counts that add up to reports = {reports}")
        return np.array(counts, np.int64)


def _count_values(name: str, value: Any) -> int:
    if not 2 <= nonnegative_int(name, value) <= _MOST_VALUES:
        refuse(name, value, "it must be an integer from 2 to 2**24")
    return nonnegative_int(name, value)


class Design(NamedTuple):
    """How many reports there are, and how many of them hold a category, or two of them.

    Each report stands for a set of categories. All categories are in as many sets, and so are all
    pairs of two categories.
    """

    reports: int
    holding: int
    shared: int


class FrequencyRandomizer(Randomizer[FrequencyAggregate]):
    """The base class of randomizers whose reports estimate the frequencies of k categories.

    A report stands for a set of categories. With some probability it is drawn uniformly from the
    sets that hold the person's category, and otherwise from all sets. So a set with the category is
    up to `e**epsilon` times as likely as one without, and a set holds any other category with a
    probability that is the same for all: a mean of indicators estimates each frequency.
    """

    k: int
    epsilon: float
    _aggregate = FrequencyAggregate

    delta = 0.0
    RULES: ClassVar[Rules] = {"k": _count_values, "epsilon": validate_epsilon}

    @cached_property
    def _keep_probability(self) -> Fraction:
        """The probability of drawing from the category's sets; otherwise any set is drawn."""
        reports, holding, _ = self._design
        return Fraction(_core.keep_probability(self.epsilon, holding, reports), TWO_64)

    @property
    def _lie(self) -> Fraction:
        """The probability that a report holds a category that is not the person's."""
        reports, holding, shared = self._design
        keep = self._keep_probability
        return keep * Fraction(shared, holding) + (1 - keep) * Fraction(holding, reports)

    @property
    def _truth(self) -> Fraction:
        """The probability that a report holds the person's category."""
        reports, holding, _ = self._design
        return self._keep_probability + (1 - self._keep_probability) * Fraction(holding, reports)

    @cached_property
    def _span(self) -> float:
        """The greatest contribution to an estimate, minus the least one."""
        _, holding, shared = self._design
        return float(1 / (self._keep_probability * (1 - Fraction(shared, holding))))

    @property
    def report_range(self) -> tuple[int, int]:
        """The least and the greatest report: 0 and the number of sets, minus 1."""
        return 0, self._design.reports - 1

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

    def _log_probability(self, reports: Floats, values: NDArray[Any]) -> Floats:
        total, holding, _ = self._design
        possible = (reports >= 0) & (reports < total)
        held = self._hold(np.where(possible, reports, 0).astype(np.int64), values)
        keep, without = self._keep_probability, (1 - self._keep_probability) / total
        likelihood = np.where(held, float(keep / holding + without), float(without))
        return np.log(np.where(possible, likelihood, 0.0))

    def _variance(self, value: Any) -> float:
        truth, lie = (p * (1 - p) for p in (self._truth, self._lie))
        return float((truth + (self.k - 1) * lie) / self.k) * self._span**2

    def _worst_variance(self) -> float:
        return self._variance(0)

    def _dimension(self) -> int:
        return self.k

    def _largest_change(self) -> float:
        return self._span

    def _deviations(self, sampled: bool, binary: bool) -> list[Deviation]:
        likeliest = min(self._truth, max(self._lie, Fraction(1, 2)))
        variance = float(likeliest * (1 - likeliest)) * self._span**2
        return [Deviation(self._span**2 / 4, 0.0), Deviation(variance, self._span / 3)]

    @property
    @abstractmethod
    def _design(self) -> Design: ...

    @abstractmethod
    def _hold(self, reports: Integers, values: NDArray[Any]) -> NDArray[np.bool_]:
        """Returns whether reports hold values."""

    @abstractmethod
    def _add_up(self, counts: Integers) -> Integers:
        """Returns how many of the reports that were counted so hold each category."""


@dataclass(frozen=True, repr=False)
class KaryResponse(FrequencyRandomizer):
    """k-ary randomized response: the truth with some probability, otherwise a uniform answer.

    The report is one of the k categories. The true one is up to `e**epsilon` times as likely as any
    other one. This randomizer has the least variance for up to about `2 + e**epsilon` categories.
    Beyond, `best_frequency` takes another one.

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

    _source = "Kairouz, Bonawitz and Ramage 2016, k-RR"

    @property
    def _design(self) -> Design:
        return Design(self.k, 1, 0)

    def _draw(self, numbers: NDArray[Any], random_state: RandomState) -> Reports:
        values = self._to_integers(numbers)
        return _core.respond_kary(values, self.k, self.epsilon, make_key(random_state))

    def _hold(self, reports: Integers, values: NDArray[Any]) -> NDArray[np.bool_]:
        held: NDArray[np.bool_] = reports == values
        return held

    def _add_up(self, counts: Integers) -> Integers:
        return counts

    def _noise(self) -> str:
        return f"the truth with probability {float(self._truth):.4g}, or a uniform lie"
