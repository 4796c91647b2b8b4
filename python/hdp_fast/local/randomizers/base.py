"""What all randomizers have in common: they are transparent, so that anybody can check them."""

from __future__ import annotations

import dataclasses
import json
import math
from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..._support.numbers import entries, real_array
from ..._support.random_state import check_random_state
from ..._support.types import Floats, RandomState
from ..._support.validate import array, from_json, positive, probability, refuse
from ...exceptions import ParameterError, ShapeError
from ...record import PrivacyRecord, rng_of
from .concentration import Deviation, agents_needed

Reports = NDArray[Any]

TWO_64 = 1 << 64
# Below, what an estimate divides by drowns in rounding; above, a coin of 64 bits knows no more.
_LEAST_EPSILON, _MOST_EPSILON = 1e-9, 60.0


class Randomizer(ABC):
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

    def sample(self, u: ArrayLike, *, random_state: RandomState = None) -> Reports:
        """Reports about values, one each.

        u: (n,), one person's value each: numbers for a mean, integers for frequencies. A value out
        of range counts as the nearer end of the range, what is no number as its low end, and what
        is no integer as the last category, so that no private value is ever an error or a warning.
        That holds whatever the entries of a list or of an array of objects are (a text is the
        number that it spells); the dtype of any other array is a public fact. random_state: as
        randomized_response. Returns (n,), int64, or uint8 of BinaryResponse.

        Guarantee: that of the class for each report, whatever the others are.
        Raises: ShapeError for an array that has not one dimension; ParameterError for an array of a
            dtype that is neither of real numbers nor object, and for random_state.
        Cost: O(n), one to five words of the random stream a report (BinaryResponse: two bytes).
        Source: as the class.
        """
        found = entries("u", u)
        if found.ndim != 1:
            raise ShapeError(f"u has shape {found.shape}, but it must have one dimension")
        check_random_state(random_state)
        return self._drawn(self._values(found), random_state)

    def log_probability(self, w: ArrayLike, u: ArrayLike) -> Floats:
        """Ln Pr[sample(u) = w], by the coins as they are; -inf for what is never reported.

        w: reports, integers; u: values as of sample; they are broadcast against each other.
        Returns float64.

        Raises: ParameterError for dtypes that hold no such values; ShapeError unless the shapes can
            be broadcast.
        Cost: O(entries).
        Source: as the class.
        """
        reports, values = array("w", w), self._values(real_array("u", u))
        if reports.size and reports.dtype.kind not in "bui":
            raise ParameterError(f"w has dtype {reports.dtype}, but it must be an integer type")
        try:
            np.broadcast_shapes(reports.shape, values.shape)
        except ValueError:
            shapes = f"w has shape {reports.shape} and u {values.shape}"
            raise ShapeError(f"{shapes}, but they must be broadcastable") from None
        with np.errstate(divide="ignore"):
            return self._log_probability(reports.astype(np.float64), values)

    def variance(self, u: float | None = None) -> float:
        """The variance of one report's contribution to the estimate, its value being u.

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
        return self._variance(self._values(value)[()])

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
        return self._needed(alpha, beta, sampled, binary=False)

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
    def _values(self, found: NDArray[Any]) -> NDArray[Any]:
        """The values that numbers of any type stand for."""

    @abstractmethod
    def _drawn(self, values: NDArray[Any], random_state: RandomState) -> Reports: ...

    @abstractmethod
    def _log_probability(self, reports: Floats, values: NDArray[Any]) -> Floats: ...

    @abstractmethod
    def _variance(self, value: Any) -> float: ...

    @abstractmethod
    def _worst_variance(self) -> float: ...

    @abstractmethod
    def _deviations(self, sampled: bool, binary: bool) -> list[Deviation]:
        """What is known of a contribution, each in units of the range; binary: of values 0 or 1."""

    @abstractmethod
    def _noise(self) -> str:
        """The law that protects, in words."""

    def _needed(self, alpha: float, beta: float, sampled: bool, binary: bool) -> int:
        width, failure = positive("alpha", alpha) / self._unit(), probability("beta", beta)
        log_odds = math.log(2 * self._estimates()) - math.log(failure)
        return agents_needed(self._deviations(sampled, binary), width, log_odds)

    def _unit(self) -> float:
        """The width of the range."""
        return 1.0

    def _estimates(self) -> int:
        """How many numbers are estimated at once."""
        return 1

    def _parameters(self) -> dict[str, Any]:
        kind: Any = self
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(kind)}

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={value!r}" for name, value in self._parameters().items())
        return f"{type(self).__name__}({values}): {self._noise()}"


def checked_epsilon(value: Any) -> float:
    """The value as an epsilon that leaves something to estimate.

    Raises: ParameterError otherwise.
    """
    found = positive("epsilon", value)
    if found < _LEAST_EPSILON:
        refuse("epsilon", value, f"below {_LEAST_EPSILON} nothing but noise is left")
    return found


def capped(epsilon: float) -> float:
    """The epsilon that the law is made with: beyond a point more protection costs nothing."""
    return min(epsilon, _MOST_EPSILON)


def randomizer_of(text: str) -> Randomizer:
    """The randomizer that to_json wrote.

    text: a JSON object.

    Raises: ParameterError when it is not one.
    Cost: constant.
    Source: none.
    """
    return from_json("text", text, "Randomizer.to_json", made_from)


def made_from(fields: Any) -> Randomizer:
    """The randomizer of the fields that to_json writes.

    Raises: ParameterError, TypeError or ValueError when they are not.
    """
    kinds = {kind.__name__: kind for kind in _kinds(Randomizer)}
    parameters = dict(fields)
    name = parameters.pop("randomizer", None)
    if name not in kinds:
        # Not shown: without a kind, it may be anything that somebody took for one.
        raise ParameterError(f"randomizer must be one of {', '.join(sorted(kinds))}")
    found: Randomizer = kinds[name](**parameters)
    return found


def _kinds(base: Any) -> list[Any]:
    """Those below it that have none below them."""
    below = base.__subclasses__()
    return [kind for each in below for kind in _kinds(each)] if below else [base]
