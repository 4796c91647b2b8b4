"""The base class of all randomizers: the law of their reports is public and can be checked."""

from __future__ import annotations

import dataclasses
import json
import math
from abc import ABC, abstractmethod
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..._support.numbers import entries, real_array
from ..._support.random_state import check_random_state
from ..._support.types import Floats, RandomState
from ..._support.validate import array, from_json, positive, probability, refuse
from ...exceptions import ParameterError, ShapeError
from ...record import PrivacyRecord, rng_of
from .concentration import Deviation, sample_size

Reports = NDArray[Any]
A = TypeVar("A")

TWO_64 = 1 << 64
# Below, rounding hides the difference that an estimate divides by; above, a probability of 64 bits
# stays the same.
_LEAST_EPSILON, _MOST_EPSILON = 1e-9, 60.0


class Randomizer(ABC, Generic[A]):
    """A local randomizer: what a person's device does to a value before anybody else sees it.

    It is transparent: the law of its reports is known, and they are integers, drawn with exact
    coins. Made as one of BinaryResponse, LaplaceRandomizer, GaussianRandomizer, Piecewise,
    KaryResponse and HadamardResponse; frozen, equal when their parameters are.

    Attributes:
        epsilon: privacy parameter of one report.
        delta: privacy parameter of one report, 0 but for GaussianRandomizer.
    """

    epsilon: float
    delta: float
    _source: ClassVar[str]
    _aggregate: ClassVar[Any]

    def sample(self, u: ArrayLike, *, random_state: RandomState = None) -> Reports:
        """Draw a report about each value.

        u: (n,), one person's value each: numbers for a mean, integers for frequencies. A value out
        of range counts as the nearer end of the range, what is no number as its low end, and what
        is no integer as the last category, so that no private value is ever an error or a warning:
        a category beyond k counts as the last, and one below 0 as the first. (A device that wants
        to refuse such a value does so before, as hdp-fast local randomize does.)
        That holds whatever the entries of a list or of an array of objects are (a text is the
        number that it spells); the dtype of any other array is a public fact. random_state: as
        randomized_response. Returns (n,), int64, or uint8 of BinaryResponse.

        Guarantee: that of the class for each report, whatever the others are.
        Raises: ShapeError for an array that has not one dimension; ParameterError for an array of a
            dtype that is neither of real numbers nor object, and for random_state.
        Cost: O(n), one to five words of the random stream a report (BinaryResponse: two bytes).
        Source: as the class.
        """
        numbers = entries("u", u)
        if numbers.ndim != 1:
            raise ShapeError(f"u has shape {numbers.shape}, but it must have one dimension")
        check_random_state(random_state)
        return self._draw(self._to_values(numbers), random_state)

    def log_probability(self, w: ArrayLike, u: ArrayLike) -> Floats:
        """Ln Pr[sample(u) = w], by the coins as they are; -inf for what is never reported.

        w: reports, integers; u: values as of sample; they are broadcast against each other.
        Returns float64.

        Raises: ParameterError for dtypes that hold no such values; ShapeError unless the shapes can
            be broadcast.
        Cost: O(entries).
        Source: as the class.
        """
        reports, values = array("w", w), self._to_values(real_array("u", u))
        if reports.size and reports.dtype.kind not in "bui":
            raise ParameterError(f"w has dtype {reports.dtype}, but it must be an integer type")
        try:
            np.broadcast_shapes(reports.shape, values.shape)
        except ValueError:
            shapes = f"w has shape {reports.shape} and u {values.shape}"
            raise ShapeError(f"{shapes}, but they must be broadcastable") from None
        with np.errstate(divide="ignore"):
            return self._log_probability(reports.astype(np.float64), values)

    def aggregate(self, reports: ArrayLike | None = None) -> A:
        """The state from which the mean, or all frequencies, are estimated.

        reports: as for Aggregate.add; None starts with none. Returns a MeanAggregate, or a
        FrequencyAggregate of KaryResponse and HadamardResponse.

        Raises: as Aggregate.add.
        Cost: as Aggregate.add.
        Source: as the class.
        """
        empty = self._aggregate(self)
        return empty if reports is None else empty.add(reports)  # type: ignore[no-any-return]

    def variance(self, u: float | None = None) -> float:
        """The variance of one report's contribution to the estimate, for a value u.

        u: a value as of sample; None asks for the largest variance of all values. For frequencies
        this is the mean over the k estimates: k times it is their total squared error, a report.

        Raises: ParameterError unless u is one value.
        Cost: constant.
        Source: as the class.
        """
        if u is None:
            return self._worst_variance()
        value = real_array("u", u)
        if value.ndim:
            raise ShapeError(f"u has shape {value.shape}, but it must be one value")
        return self._variance(self._to_values(value)[()])

    def agents_needed(self, *, alpha: float, beta: float, sampled: bool = True) -> int:
        """How many reports estimate to within alpha, except with probability beta.

        alpha: in the units of the values for a mean, of every frequency at once for frequencies,
        above 0; beta: in (0, 1). sampled: whether what is estimated is the population that the
        agents are drawn from, independently; False for these very agents, whoever they are.

        Guarantee: proved for every population, the sampling of agents included: the better of
            Hoeffding's and Bernstein's inequality for bounded reports, the moment-generating
            function for Laplace noise (sub-gamma) and Gaussian noise (sub-Gaussian).
        Raises: ParameterError.
        Cost: constant.
        Source: Boucheron, Lugosi and Massart 2013, Theorems 2.8 and 2.10.
        """
        return self._count_agents(alpha, beta, sampled, binary=False)

    def record(self, random_state: RandomState = None) -> PrivacyRecord:
        """What protects each report.

        random_state: the one that the reports were drawn with.

        Raises: nothing.
        Cost: constant.
        Source: as the class.
        """
        return PrivacyRecord(
            mechanism=f"local.{type(self).__name__}",
            source=self._source,
            neighbors="local",
            epsilon=self.epsilon,
            delta=self.delta,
            noise=self._noise(),
            rng=rng_of(random_state),
        )

    def to_json(self) -> str:
        """The randomizer as a JSON object, which randomizer_of reads.

        Raises: nothing.
        Cost: constant.
        Source: none.
        """
        return json.dumps({"randomizer": type(self).__name__, **self._parameters()})

    @property
    @abstractmethod
    def report_range(self) -> tuple[int, int]:
        """The least and the greatest report, but for a probability below 1e-30."""

    @abstractmethod
    def _to_values(self, numbers: NDArray[Any]) -> NDArray[Any]:
        """The values that numbers of any type stand for."""

    @abstractmethod
    def _draw(self, values: NDArray[Any], random_state: RandomState) -> Reports: ...

    @abstractmethod
    def _log_probability(self, reports: Floats, values: NDArray[Any]) -> Floats: ...

    @abstractmethod
    def _variance(self, value: Any) -> float: ...

    @abstractmethod
    def _worst_variance(self) -> float: ...

    @abstractmethod
    def _deviations(self, sampled: bool, binary: bool) -> list[Deviation]:
        """Bounds on a contribution, in units of the range; binary: for values 0 and 1 alone."""

    @abstractmethod
    def _noise(self) -> str:
        """The law of a report, in words."""

    def _count_agents(self, alpha: float, beta: float, sampled: bool, binary: bool) -> int:
        width, failure = positive("alpha", alpha) / self._unit(), probability("beta", beta)
        log_odds = math.log(2 * self._dimension()) - math.log(failure)
        return sample_size(self._deviations(sampled, binary), width, log_odds)

    def _unit(self) -> float:
        """The width of the range."""
        return 1.0

    def _dimension(self) -> int:
        """The number of means that are estimated at once."""
        return 1

    def _parameters(self) -> dict[str, Any]:
        kind: Any = self
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(kind)}

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={value!r}" for name, value in self._parameters().items())
        return f"{type(self).__name__}({values}): {self._noise()}"


def validate_epsilon(value: Any) -> float:
    """The value as an epsilon that is large enough for estimates.

    Raises: ParameterError otherwise.
    """
    epsilon = positive("epsilon", value)
    if epsilon < _LEAST_EPSILON:
        refuse("epsilon", value, f"below {_LEAST_EPSILON} nothing but noise is left")
    return epsilon


def cap_epsilon(epsilon: float) -> float:
    """The epsilon that sets the law: beyond 60, probabilities of 64 bits stay the same."""
    return min(epsilon, _MOST_EPSILON)


def randomizer_of(text: str) -> Randomizer[Any]:
    """The randomizer that to_json wrote.

    text: a JSON object.

    Raises: ParameterError when it is not one.
    Cost: constant.
    Source: none.
    """
    return from_json("text", text, "Randomizer.to_json", make_randomizer)


def make_randomizer(fields: Any) -> Randomizer[Any]:
    """The randomizer of the fields that to_json writes.

    Raises: ParameterError, TypeError or ValueError when they are not.
    """
    kinds = {kind.__name__: kind for kind in _leaf_subclasses(Randomizer)}
    parameters = dict(fields)
    name = parameters.pop("randomizer", None)
    if name not in kinds:
        # Not shown: without a kind, it may be anything that somebody took for one.
        raise ParameterError(f"randomizer must be one of {', '.join(sorted(kinds))}")
    randomizer: Randomizer[Any] = kinds[name](**parameters)
    return randomizer


def _leaf_subclasses(base: Any) -> list[Any]:
    """All subclasses of a class that have no subclass themselves."""
    children = base.__subclasses__()
    return [leaf for child in children for leaf in _leaf_subclasses(child)] if children else [base]
