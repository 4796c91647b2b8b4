"""What all randomizers of one person's value share, and how far means of reports may lie off."""

from __future__ import annotations

import dataclasses
import json
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..._support.numbers import entries, real_array
from ..._support.parameters import Checked
from ..._support.random_state import check_random_state
from ..._support.types import Floats, RandomState
from ..._support.validate import array, from_json, positive, probability, refuse
from ...exceptions import ParameterError, ShapeError
from ...record import PrivacyRecord, rng_of

# No population is larger.
MOST_AGENTS = 1e18
TOO_MANY = f"need more than {MOST_AGENTS:.0e} agents, but be larger"


class Deviation(NamedTuple):
    """A sub-gamma bound: ln E exp(x (X - E X)) <= variance `x**2` / (2 (1 - scale |x|)).

    It holds for x of either sign with scale |x| < 1. Hoeffding's inequality has scale 0 and a
    quarter of the range squared as the variance. Bernstein's has the variance itself, and as scale
    a third of the largest distance to the mean.
    """

    variance: float
    scale: float


def sample_size(deviations: Iterable[Deviation], alpha: float, log_odds: float) -> int:
    """Computes how many reports keep the mean within alpha.

    The mean may be further away with probability 2 exp(-log_odds). All deviations bound the same
    reports, so that the least of the numbers they ask for suffices.

    Raises:
        ParameterError: This number is 1e18 or more.
    """
    roots = [_root(deviation, alpha) for deviation in deviations]
    # Divided twice, since the square of a root may be no float.
    least = min(log_odds / root / root for root in roots)
    if least >= MOST_AGENTS:
        refuse("alpha", alpha, f"so small an alpha would need more than {MOST_AGENTS:.0e} agents")
    return max(1, math.ceil(least))


def half_width(deviations: Iterable[Deviation], reports: int, log_odds: float) -> float:
    """Bounds the error of the mean, except with probability 2 exp(-log_odds)."""
    part = log_odds / reports
    return min(math.sqrt(2 * bound.variance * part) + bound.scale * part for bound in deviations)


def _root(deviation: Deviation, alpha: float) -> float:
    """Returns the y that solves sqrt(2 variance) y + scale `y**2` = alpha."""
    linear = 2 * deviation.variance
    return 2 * alpha / (math.sqrt(linear) + math.sqrt(linear + 4 * deviation.scale * alpha))


Reports = NDArray[Any]
A = TypeVar("A")

TWO_64 = 1 << 64
# An estimate divides by a difference of probabilities that are multiples of 2**-64. Below the least
# epsilon, rounding takes too large a part of it; above the greatest, no such multiple changes.
_LEAST_EPSILON, _MOST_EPSILON = 1e-9, 60.0


class Randomizer(Checked, ABC, Generic[A]):
    """A local randomizer: it turns a person's value into a report before anybody else sees it.

    The device of each person runs it, so that no curator has to be trusted with the value. A
    randomizer is transparent in the sense of local differential privacy: everybody knows the law of
    the report given the value, and `log_probability` evaluates it. Reports are integers, drawn with
    exact coins.

    This class is abstract. Use BinaryResponse, LaplaceRandomizer, GaussianRandomizer or Piecewise
    to estimate a mean, and KaryResponse, SubsetSelection or ProjectiveGeometryResponse to estimate
    frequencies. Randomizers are frozen, and equal when their parameters are.

    Attributes:
        epsilon: Privacy parameter of one report.
        delta: Privacy parameter of one report, 0 except for GaussianRandomizer.

    Examples:
        >>> import numpy as np
        >>> from hdp_fast import local
        >>> randomizer = local.KaryResponse(3, epsilon=1.0)
        >>> law = np.exp(randomizer.log_probability([0, 1, 2], 1))  # of a report on category 1
        >>> law.round(3)
        array([0.212, 0.576, 0.212])
        >>> round(float(np.log(law.max() / law.min())), 6)  # this is what epsilon bounds
        1.0
    """

    epsilon: float
    delta: float
    _source: ClassVar[str]
    _aggregate: ClassVar[Any]

    def sample(self, u: ArrayLike, *, random_state: RandomState = None) -> Reports:
        """Draws a report about each value.

        No private value is ever an error or a warning. A number outside the bounds counts as the
        nearer bound, and an entry that is no number counts as the lower bound. For categories, an
        integer below 0 counts as 0, an integer beyond k - 1 counts as k - 1, and an entry that is
        no integer counts as k - 1. The entries of a list and of an array of objects are read one by
        one: a text is the number that it spells. The dtype of any other array is a public fact and
        can be refused. A device that wants to refuse a wrong value does so before it calls this
        method, as `hdp-fast local randomize` does.

        Args:
            u: Values of shape (n,), one for each person: numbers for a mean, integers in [0, k) for
                frequencies.
            random_state: None draws from the operating system; an int or a Generator makes a
                reproducible stream for tests, which protects no one.

        Returns:
            Reports of shape (n,), one for each value: uint8 from BinaryResponse, int64 from the
            others.

        Raises:
            ShapeError: u does not have one dimension.
            ParameterError: u is a masked array or has a dtype that is neither of real numbers nor
                object, or random_state is none of the three kinds above.

        Guarantee:
            Each report is (epsilon, delta)-differentially private in its own value, with the
            epsilon and the delta of the randomizer, whatever the other values are. Several reports
            about the same value add up: this method charges no budget.

        Cost:
            O(n). A report takes a few words of the random stream, from BinaryResponse two bytes.
        """
        numbers = entries("u", u)
        if numbers.ndim != 1:
            raise ShapeError(f"u has shape {numbers.shape}, but it must have one dimension")
        check_random_state(random_state)
        return self._draw(numbers, random_state)

    def log_probability(self, w: ArrayLike, u: ArrayLike) -> Floats:
        """Computes ln Pr[sample(u) = w], the log-likelihood of reports given values.

        The probabilities are those of the coins that `sample` tosses, in which probabilities and
        scales have been rounded. Values outside the range count as they do in `sample`.

        Args:
            w: Reports, an array of integers.
            u: Values, numbers or categories, of a shape that can be broadcast against that of w.

        Returns:
            Logarithms, float64 of the common shape: -inf for a report that is never made.

        Raises:
            ParameterError: w is not of an integer dtype, or the dtype of u is neither of real
                numbers nor object.
            ShapeError: The shapes cannot be broadcast.

        Cost:
            O(entries of the result).
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
        """Starts the sum of reports from which the mean, or all frequencies, are estimated.

        Args:
            reports: Reports to begin with, as `Aggregate.add` takes them; None begins with no
                report.

        Returns:
            A MeanAggregate, or a FrequencyAggregate for frequencies.

        Raises:
            ShapeError: reports does not have one dimension.
            ParameterError: reports is not of an integer dtype, or holds an integer that this
                randomizer never reports.

        Cost:
            O(n) for n reports, and O(k) memory for frequencies.
        """
        empty = self._aggregate(self)
        return empty if reports is None else empty.add(reports)  # type: ignore[no-any-return]

    def variance(self, u: float | None = None) -> float:
        """Computes the variance of one report's contribution to the estimate.

        An estimate is the mean of one contribution for each report, so that n reports have this
        variance divided by n. For frequencies the result is the average over the k estimates; k
        times the result is the total squared error to expect from one report.

        Args:
            u: The value that the report is about, as `sample` takes it, but only one; None asks for
                the largest variance over all values.

        Returns:
            The variance, in squared units of the values.

        Raises:
            ShapeError: u is an array of one or more dimensions.
            ParameterError: The dtype of u is neither of real numbers nor object.
        """
        if u is None:
            return self._worst_variance()
        value = real_array("u", u)
        if value.ndim:
            raise ShapeError(f"u has shape {value.shape}, but it must be one value")
        return self._variance(self._to_values(value)[()])

    def agents_needed(self, *, alpha: float, beta: float, sampled: bool = True) -> int:
        """Computes how many reports estimate to within alpha, except with probability beta.

        Args:
            alpha: Largest error that is allowed, above 0: in the units of the values for a mean, of
                every one of the k frequencies at once for frequencies.
            beta: Probability with which the error may be larger, in (0, 1).
            sampled: True counts the error against the population that the agents are drawn from
                independently. False counts it against the mean of these very agents, whoever they
                are. For frequencies the number is the same.

        Returns:
            A number of agents, at least 1.

        Raises:
            ParameterError: alpha or beta is out of range, or more than 1e18 agents would be needed.

        Guarantee:
            The number is proved to be enough for every population. Reports of bounded contribution
            use the better of Hoeffding's and Bernstein's inequality. LaplaceRandomizer (sub-gamma
            noise) and GaussianRandomizer (sub-Gaussian noise) use moment-generating functions.

        Source:
            Boucheron, Lugosi and Massart 2013, Theorems 2.8 and 2.10.
        """
        return self._count_agents(alpha, beta, sampled, binary=False)

    def record(self, random_state: RandomState = None) -> PrivacyRecord:
        """Describes what protects each report, for a log or a budget.

        Args:
            random_state: The one that the reports were drawn with. The record says whether it was
                the operating system's entropy or a reproducible test stream.

        Returns:
            A record of the relation "local", with the epsilon and the delta of one report.
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
        """Writes the randomizer as a JSON object, which `randomizer_of` reads.

        Returns:
            A JSON text with the name of the class and its parameters. Nothing in it is private.
        """
        return json.dumps({"randomizer": type(self).__name__, **self._parameters()})

    @property
    @abstractmethod
    def report_range(self) -> tuple[int, int]:
        """The least and the greatest report, except for reports of probability below 1e-30."""

    @abstractmethod
    def _to_values(self, numbers: NDArray[Any]) -> NDArray[Any]:
        """Converts numbers of any type to the values that they stand for."""

    @abstractmethod
    def _draw(self, numbers: NDArray[Any], random_state: RandomState) -> Reports:
        """Draws a report about each of the values that numbers of any type stand for."""

    @abstractmethod
    def _log_probability(self, reports: Floats, values: NDArray[Any]) -> Floats: ...

    @abstractmethod
    def _variance(self, value: Any) -> float: ...

    @abstractmethod
    def _worst_variance(self) -> float: ...

    @abstractmethod
    def _deviations(self, sampled: bool, binary: bool) -> list[Deviation]:
        """Bounds a contribution's deviation, in units of the range.

        `binary` promises that every value is one of the two ends.
        """

    @abstractmethod
    def _largest_change(self) -> float:
        """How far one report moves the sum of all contributions, in the units of the values."""

    @abstractmethod
    def _noise(self) -> str:
        """Describes the law of a report in words."""

    def _count_agents(self, alpha: float, beta: float, sampled: bool, binary: bool) -> int:
        width, failure = positive("alpha", alpha) / self._unit(), probability("beta", beta)
        log_odds = math.log(2 * self._dimension()) - math.log(failure)
        return sample_size(self._deviations(sampled, binary), width, log_odds)

    def _unit(self) -> float:
        """The width of the range of values."""
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


def agents_for(
    randomizer: Randomizer[Any], alpha: float, beta: float, *, sampled: bool, binary: bool
) -> int:
    """The number of agents whose mean is within alpha with probability 1 - beta.

    `binary` promises that every value is one of the two ends.
    """
    return randomizer._count_agents(alpha, beta, sampled, binary)


def deviations_of(randomizer: Randomizer[Any]) -> list[Deviation]:
    """Bounds of a contribution's deviation, for agents that were sampled."""
    return randomizer._deviations(sampled=True, binary=False)


def largest_change(randomizer: Randomizer[Any]) -> float:
    """How far one report moves the sum of all contributions, in the units of the values."""
    return randomizer._largest_change()


def validate_epsilon(name: str, value: Any) -> float:
    """Returns the value as an epsilon that is large enough for estimates.

    Raises:
        ParameterError: It is no number, not finite or below 1e-9.
    """
    epsilon = positive(name, value)
    if epsilon < _LEAST_EPSILON:
        refuse(name, value, f"below {_LEAST_EPSILON} nothing but noise is left")
    return epsilon


def cap_epsilon(epsilon: float) -> float:
    """Returns the epsilon that sets the law: above 60, no multiple of `2**-64` changes."""
    return min(epsilon, _MOST_EPSILON)


def randomizer_of(text: str) -> Randomizer[Any]:
    """Reads a randomizer from the JSON text that its `to_json` wrote.

    A collector sends this text to devices, so that all of them randomize alike.

    Args:
        text: A JSON object as `Randomizer.to_json` writes it.

    Returns:
        A randomizer of the same class, equal to the one that was written.

    Raises:
        ParameterError: text is no such object, or one of its parameters is out of range.

    Examples:
        >>> from hdp_fast import local
        >>> text = local.KaryResponse(5, epsilon=2.0).to_json()
        >>> text
        '{"randomizer": "KaryResponse", "k": 5, "epsilon": 2.0}'
        >>> local.randomizer_of(text).sample([0, 4]).shape
        (2,)
    """
    return from_json("text", text, "Randomizer.to_json", make_randomizer)


def make_randomizer(fields: Any) -> Randomizer[Any]:
    """Makes the randomizer of the fields that `to_json` writes.

    Raises:
        ParameterError: A field holds a wrong value, or no randomizer has this name.
        TypeError: A field is missing or unknown.
        ValueError: The fields are no mapping.
    """
    kinds = {kind.__name__: kind for kind in _leaf_subclasses(Randomizer)}
    parameters = dict(fields)
    name = parameters.pop("randomizer", None)
    if name not in kinds:
        # The name is not shown: the text may come from any file, even from a private one.
        raise ParameterError(f"randomizer must be one of {', '.join(sorted(kinds))}")
    randomizer: Randomizer[Any] = kinds[name](**parameters)
    return randomizer


def _leaf_subclasses(base: Any) -> list[Any]:
    """Lists all subclasses of a class that have no subclass themselves."""
    children = base.__subclasses__()
    return [leaf for child in children for leaf in _leaf_subclasses(child)] if children else [base]
