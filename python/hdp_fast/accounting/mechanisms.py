"""Mechanisms as an accountant sees them, and their composition."""

from __future__ import annotations

import dataclasses
import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from .. import _core
from .._support.validate import nonnegative_int, number, positive, probability, refuse, shorten
from ..exceptions import ParameterError
from .neighbors import Neighbors, relation

Accountant = Literal["pld", "rdp"]
_Description = tuple[str, float, float, int, float]

# Doubles count no further.
_MOST = 1 << 53
# Calibrators stop this close to their boundary, on its safe side.
_TOLERANCE = 1e-5
_MOST_ROUNDS = 1 << 40
_MOST_EQUAL = 10**8
_LEAST_RATE = 1e-15
_LARGEST_EXPONENT = 700.0


@dataclass(frozen=True, repr=False)
class Mechanism(ABC):
    """Any mechanism below; not to be made itself.

    Attributes:
        neighbors: which data sets its guarantee speaks of.
    """

    neighbors: Neighbors = dataclasses.field(default=Neighbors.REPLACE_ONE, kw_only=True)

    def __post_init__(self) -> None:
        """Refuse what no mechanism could be."""
        object.__setattr__(self, "neighbors", relation(self.neighbors))
        for name in ("epsilon", "delta", "mu", "rho", "rate"):
            if hasattr(self, name):
                object.__setattr__(self, name, number(name, getattr(self, name)))
        _core.check_mechanism(self._description())

    @abstractmethod
    def _description(self) -> _Description:
        """Kind, one or two parameters, draws and rate, as the compiled module takes them."""

    def __repr__(self) -> str:
        fields = [field.name for field in dataclasses.fields(self) if field.name != "neighbors"]
        values = [f"{name}={getattr(self, name)!r}" for name in fields]
        return f"{type(self).__name__}({', '.join(values)}, neighbors={str(self.neighbors)!r})"


@dataclass(frozen=True, repr=False)
class Pure(Mechanism):
    """A pure epsilon-DP mechanism; the worst case is randomized response.

    Attributes:
        epsilon: above 0.
        neighbors: which data sets the guarantee speaks of.
    """

    epsilon: float

    def _description(self) -> _Description:
        return ("pure", self.epsilon, 0.0, 1, 1.0)


@dataclass(frozen=True, repr=False)
class BoundedRange(Mechanism):
    """A mechanism whose log-ratios between neighbors lie in some interval of length epsilon.

    The exact exponential mechanism with probabilities proportional to e^(epsilon * score / 2) for
    scores of sensitivity 1. Not permute-and-flip, nor noisy maxima with other noise: those are
    Pure(epsilon).

    Attributes:
        epsilon: length of the interval, above 0.
        neighbors: which data sets the guarantee speaks of.
    """

    epsilon: float

    def _description(self) -> _Description:
        return ("bounded_range", self.epsilon, 0.0, 1, 1.0)


@dataclass(frozen=True, repr=False)
class GaussianMechanism(Mechanism):
    """Continuous Gaussian noise, or any mechanism that is mu-Gaussian differentially private.

    The discrete Gaussian is not dominated by it: that is ZCDP(mu**2 / 2).

    Attributes:
        mu: sensitivity / standard deviation, above 0; the sensitivity is that of the relation.
        neighbors: which data sets the sensitivity speaks of.
    """

    mu: float

    def _description(self) -> _Description:
        return ("gaussian", self.mu, 0.0, 1, 1.0)


@dataclass(frozen=True, repr=False)
class LaplaceMechanism(Mechanism):
    """Continuous Laplace noise on a real statistic.

    Integer-valued Laplace noise is not dominated by it: that is DiscreteLaplace.

    Attributes:
        epsilon: sensitivity / scale, above 0.
        neighbors: which data sets the sensitivity speaks of.
    """

    epsilon: float

    def _description(self) -> _Description:
        return ("laplace", self.epsilon, 0.0, 1, 1.0)


@dataclass(frozen=True, repr=False)
class DiscreteLaplace(Mechanism):
    """Integer-valued Laplace noise on an integer statistic, as hdp_fast.noise draws it.

    Attributes:
        epsilon: sensitivity / scale, above 0.
        sensitivity: an integer from 1, where it is as private as Pure(epsilon), to 4096.
        neighbors: which data sets the sensitivity speaks of.
    """

    epsilon: float
    sensitivity: int

    def __post_init__(self) -> None:
        """Refuse a sensitivity that is not a count."""
        object.__setattr__(self, "sensitivity", _count("sensitivity", self.sensitivity))
        super().__post_init__()

    def _description(self) -> _Description:
        return ("discrete_laplace", self.epsilon, float(self.sensitivity), 1, 1.0)


@dataclass(frozen=True, repr=False)
class Approximate(Mechanism):
    """An (epsilon, delta)-DP mechanism of which nothing else is known.

    Attributes:
        epsilon: above 0.
        delta: strictly between 0 and 1.
        neighbors: which data sets the guarantee speaks of.
    """

    epsilon: float
    delta: float

    def _description(self) -> _Description:
        return ("approximate", self.epsilon, self.delta, 1, 1.0)


@dataclass(frozen=True, repr=False)
class ZCDP(Mechanism):
    """A mechanism of which only its rho-zero-concentrated DP is known, as the discrete Gaussian.

    Bounds on moments do not determine a privacy-loss distribution: "pld" composes one that
    dominates whatever has them, and takes the result of "rdp" where that is smaller, as it is
    after many runs that are not subsampled.

    Attributes:
        rho: (sensitivity / sigma)**2 / 2 for Gaussian noise, above 0.
        neighbors: which data sets the guarantee speaks of.
    """

    rho: float

    def _description(self) -> _Description:
        return ("zcdp", self.rho, 0.0, 1, 1.0)


@dataclass(frozen=True, repr=False)
class Subsampled(Mechanism):
    """A mechanism on records drawn independently, with replacement, from weights over the data.

    When a record is replaced, both its content and all weights may change, as long as each draw
    then comes out differently with probability at most `rate`: for weights whose greatest is at
    most 1 / (kappa n) on every data set, that is rate = 1 / (kappa n).

    Attributes:
        base: what runs on the draws, under replace_one, any but Subsampled. ZCDP(rho) counts as
            ZCDP(b**2 * rho) where b draws change (group privacy): that took 1.29
            times the noise of Gaussian() in the designs of benches/bench_accounting.py.
        draws: how many records are drawn, at least 1.
        rate: largest probability of any record in one draw, in (0, 1]; below 1, draws * rate must
            be at most 10,000.
        neighbors: replace_one; nothing else is known to hold.
    """

    base: Mechanism
    draws: int = dataclasses.field(kw_only=True)
    rate: float = dataclasses.field(kw_only=True)

    def __post_init__(self) -> None:
        """Refuse what the theorem does not cover."""
        if not isinstance(self.base, Mechanism):
            raise ParameterError(f"base = {self.base!r}, but it must be a mechanism")
        if isinstance(self.base, Subsampled):
            rule = "mechanisms can be subsampled only once"
            raise ParameterError(f"base = {self.base!r}, but {rule}")
        for held in (self.base.neighbors, relation(self.neighbors)):
            if held is not Neighbors.REPLACE_ONE:
                rule = "subsampling with replacement is accounted under replace_one only"
                raise ParameterError(f"neighbors = {str(held)!r}, but {rule}")
        object.__setattr__(self, "draws", _count("draws", self.draws))
        super().__post_init__()

    def _description(self) -> _Description:
        kind, first, second, _, _ = self.base._description()
        return (kind, first, second, self.draws, self.rate)


Mechanisms = Mechanism | Sequence[Mechanism | tuple[Mechanism, int]]


def delta(mechanisms: Mechanisms, epsilon: float, *, accountant: Accountant = "pld") -> float:
    """The delta of mechanisms run on the same data, each chosen with all earlier results in view.

    mechanisms: one, or a sequence of mechanisms and (mechanism, count) pairs, all under the same
    neighbor relation. epsilon: at least 0. accountant: "pld", or "rdp", which is looser: for
    subsampled pure learners it can take up to twice the epsilon, and warns.

    Guarantee: the composition is (epsilon, delta)-DP under the mechanisms' neighbor relation;
        discretization, truncation, rounding and the transforms' error are added to delta (for the
        transforms by the bound of the textbook algorithm with slack, which the crate is not
        proved to meet).
    Raises: ParameterError.
    Cost: 1 to 100 ms a distinct mechanism, whatever the counts; with thousands of expected changes
        of draws, more.
    Source: connect-the-dots of Doroshenko, Ghazi, Kamath, Kumar and Manurangsi 2022; exponential
        tilting; Kohen and Sheffet 2022, Claim 4.1, sharpened by advanced joint convexity (Balle,
        Barthe and Gaboardi 2018); for "rdp" Canonne, Kamath and Steinke 2020, Proposition 12.
    """
    terms = _terms(mechanisms, accountant)
    return _core.composed_delta(terms, _epsilon(epsilon, zero=True), accountant)


def epsilon(mechanisms: Mechanisms, delta: float, *, accountant: Accountant = "pld") -> float:
    """The least epsilon, at least 0, that delta() shows for a composition at the given delta.

    mechanisms, accountant: as for delta(). delta: strictly between 0 and 1. Returns infinity where
    no epsilon is enough, since some mechanisms fail with a probability above delta.

    Guarantee: as for delta(), which has shown it: delta(mechanisms, result) is at most delta.
    Raises: ParameterError.
    Cost: about two calls of delta().
    Source: as delta().
    """
    terms = _terms(mechanisms, accountant)
    return _core.composed_epsilon(terms, probability("delta", delta), accountant)


def basic_composition(guarantees: Iterable[tuple[float, float]]) -> tuple[float, float]:
    """The sum of (epsilon, delta) guarantees on the same data, chosen adaptively; rounded up.

    guarantees: pairs of epsilon >= 0 and delta in [0, 1].

    Guarantee: all of them together are (epsilon, delta)-DP with the pair returned.
    Raises: ParameterError.
    Cost: linear.
    Source: Dwork, Kenthapadi, McSherry, Mironov and Naor 2006.
    """
    pairs = [_pair(each) for each in guarantees]
    return _sum(each for each, _ in pairs), min(_sum(each for _, each in pairs), 1.0)


def optimal_composition(
    epsilon: float,
    delta: float,
    rounds: int,
    *,
    target_delta: float | None = None,
    target_epsilon: float | None = None,
) -> float:
    """The best that can be said of `rounds` mechanisms, each (epsilon, delta)-DP and no more known.

    epsilon: above 0; delta: in [0, 1); rounds: 1 to 10**8. Given target_delta, returns the epsilon
    of the whole, infinity if there is none; given target_epsilon, its delta.

    Guarantee: the composition is differentially private with target and result; the bound is
        attained, whatever the target, not only on the paper's grid.
    Raises: ParameterError unless exactly one target is given.
    Cost: O(sqrt(rounds)).
    Source: Kairouz, Oh and Viswanath 2017, Theorem 3.3.
    """
    times = _count("rounds", rounds)
    if times > _MOST_EQUAL:
        refuse("rounds", rounds, "it must be an integer from 1 to 10**8")
    each = _epsilon(epsilon), probability("delta", delta, zero=True), times
    if target_delta is not None and target_epsilon is None:
        return _core.optimal_epsilon(*each, probability("target_delta", target_delta))
    if target_epsilon is not None and target_delta is None:
        return _core.optimal_delta(*each, _epsilon(target_epsilon, "target_epsilon", zero=True))
    given = f"target_delta = {shorten(target_delta)} and target_epsilon = {shorten(target_epsilon)}"
    raise ParameterError(f"{given}, but exactly one of them must be given")


def pure_epsilon(mechanism: Mechanism) -> float:
    """The epsilon of a single run at delta = 0; infinity where there is none.

    mechanism: any. On m draws at rate q it is m ln(1 + q (e^epsilon - 1)) for a base with epsilon.
    For a handful of rounds the sum of these, or their optimal_composition, can be below what the
    accountants show, whose curve is the better one at every smaller epsilon.

    Guarantee: the mechanism is pure epsilon-DP.
    Raises: ParameterError.
    Cost: constant.
    Source: Kohen and Sheffet 2022, Claim 4.1, with the tight constant (all changed draws at once).
    """
    if not isinstance(mechanism, Mechanism):
        refuse("mechanism", mechanism, "it must be a mechanism")
    base, draws, rate = mechanism, 1, 1.0
    if isinstance(mechanism, Subsampled):
        base, draws, rate = mechanism.base, mechanism.draws, mechanism.rate
    if not isinstance(base, Pure | BoundedRange | LaplaceMechanism | DiscreteLaplace):
        return math.inf
    if rate == 1 or base.epsilon > _LARGEST_EXPONENT:
        return _rounded_up(draws * Fraction(base.epsilon))
    growth = math.nextafter(rate * math.expm1(base.epsilon), math.inf)
    return math.nextafter(draws * math.log1p(growth) * (1 + 1e-14), math.inf)


def gaussian_delta(mu: float, epsilon: float) -> float:
    """The delta of mu-Gaussian differential privacy at epsilon.

    mu: sensitivity / standard deviation, above 0; k rounds have mu * sqrt(k). epsilon: at least 0.

    Guarantee: Gaussian noise is (epsilon, delta)-DP; exact up to rounding.
    Raises: ParameterError.
    Cost: constant.
    Source: Balle and Wang 2018, Theorem 8.
    """
    return _core.gaussian_delta(GaussianMechanism(mu).mu, _epsilon(epsilon, zero=True))


def gaussian_epsilon(mu: float, delta: float) -> float:
    """The least epsilon >= 0 at which mu-Gaussian differential privacy has this delta.

    mu: above 0; delta: strictly between 0 and 1.

    Guarantee: as gaussian_delta.
    Raises: ParameterError.
    Cost: constant.
    Source: Balle and Wang 2018, Theorem 8.
    """
    return _core.gaussian_epsilon(GaussianMechanism(mu).mu, probability("delta", delta))


def gaussian_mu(epsilon: float, delta: float) -> float:
    """The largest mu whose Gaussian differential privacy implies (epsilon, delta): the inverse.

    epsilon: at least 0; delta: strictly between 0 and 1. Gaussian noise of standard deviation
    sensitivity / mu is the analytic Gaussian mechanism.

    Guarantee: as gaussian_delta.
    Raises: ParameterError.
    Cost: constant.
    Source: Balle and Wang 2018, Algorithm 1.
    """
    return _core.gaussian_mu(_epsilon(epsilon, zero=True), probability("delta", delta))


def zcdp_epsilon(rho: float, delta: float) -> float:
    """The epsilon that rho-zCDP implies at delta.

    rho: above 0; delta: strictly between 0 and 1.

    Guarantee: (epsilon, delta)-DP under the relation of the zCDP.
    Raises: ParameterError.
    Cost: constant.
    Source: Canonne, Kamath and Steinke 2020, Proposition 12.
    """
    return epsilon(ZCDP(rho), delta, accountant="rdp")


def zcdp_rho(epsilon: float, delta: float) -> float:
    """The largest rho, within 1e-5 of itself, for which rho-zCDP implies (epsilon, delta).

    epsilon: above 0; delta: strictly between 0 and 1.

    Guarantee: as zcdp_epsilon.
    Raises: ParameterError.
    Cost: constant.
    Source: Canonne, Kamath and Steinke 2020, Proposition 12.
    """
    wanted, failing = _epsilon(epsilon), probability("delta", delta)
    return _outermost(wanted, lambda rho: zcdp_epsilon(rho, failing) <= wanted)


def renyi_divergence(mechanism: Mechanism, order: float) -> float:
    """A bound on the Renyi divergence of a mechanism between neighbors.

    mechanism: any; order: above 1, finite. Infinite for Approximate and for what is above the
    order that makes it so; of Subsampled and Gaussian noise on a subsample, events of probability
    below 1e-50 are left out.

    Guarantee: the mechanism is (order, result)-RDP, but for those events.
    Raises: ParameterError.
    Cost: milliseconds.
    Source: Mironov 2017; connect-the-dots as in delta(), closed forms for Gaussian and ZCDP.
    """
    if not isinstance(mechanism, Mechanism):
        refuse("mechanism", mechanism, "it must be a mechanism")
    return _core.renyi_divergence(mechanism._description(), number("order", order))


def renyi_epsilon(orders: Sequence[float], divergences: Sequence[float], delta: float) -> float:
    """The least epsilon that any of several Renyi divergences implies at delta.

    orders: above 1; divergences: at least 0, one an order; delta: strictly between 0 and 1.

    Guarantee: (epsilon, delta)-DP if one of the divergences holds.
    Raises: ParameterError.
    Cost: linear.
    Source: Canonne, Kamath and Steinke 2020, Proposition 12.
    """
    failing = probability("delta", delta)
    listed = _numbers("orders", orders), _numbers("divergences", divergences)
    if len(listed[0]) != len(listed[1]) or not listed[0]:
        lengths = f"orders has length {len(listed[0])} and divergences {len(listed[1])}"
        raise ParameterError(f"{lengths}, but they must be equal and at least 1")
    pairs = list(zip(*listed, strict=True))
    for order, divergence in pairs:
        if not 1 < order < math.inf:
            raise ParameterError(f"orders holds {order}, but each must be finite and above 1")
        if not divergence >= 0:
            raise ParameterError(f"divergences holds {divergence}, but each must be at least 0")
    return min(_core.renyi_epsilon(*pair, failing) for pair in pairs)


def replace_one(mechanism: Mechanism) -> Mechanism:
    """What a guarantee for adding or removing a record says of replacing one: twice the epsilon.

    mechanism: under add_remove. Returns the same kind under replace_one: a replacement is a removal
    and an addition, so that epsilon and mu double, rho quadruples, and (epsilon, delta) becomes
    (2 epsilon, (1 + e^epsilon) delta).

    Guarantee: that of the mechanism returned.
    Raises: ParameterError for another relation, or when delta would be 1 or more.
    Cost: constant.
    Source: group privacy; Dwork and Roth 2014, Theorem 2.2.
    """
    if not isinstance(mechanism, Mechanism) or mechanism.neighbors is not Neighbors.ADD_REMOVE:
        refuse("mechanism", mechanism, "it must be one under add_remove")
    twice: dict[str, Any] = {
        name: factor * getattr(mechanism, name)
        for name, factor in {"epsilon": 2, "mu": 2, "rho": 4, "sensitivity": 2}.items()
        if hasattr(mechanism, name)
    }
    if isinstance(mechanism, Approximate):
        # e^epsilon alone may exceed all floats; the exponent rounds relative to its parts.
        log_delta = math.log(mechanism.delta)
        exponent = mechanism.epsilon + log_delta
        grown = math.exp(exponent) if exponent < 0 else 1.0
        margin = 1e-15 * (4 + mechanism.epsilon - log_delta)
        twice["delta"] = (mechanism.delta + grown) * (1 + margin)
    return dataclasses.replace(mechanism, neighbors=Neighbors.REPLACE_ONE, **twice)


def smallest_noise(
    family: Callable[[float], Mechanism],
    *,
    epsilon: float,
    delta: float,
    rounds: int = 1,
    low: float = 1e-3,
    high: float = 1e6,
    accountant: Accountant = "pld",
) -> float:
    """The smallest noise, within 1e-5 of itself, at which `rounds` runs are private.

    family: makes the mechanism of a noise, more private the larger it is, such as
    `lambda sigma: Gaussian(1 / sigma)`. epsilon: above 0; delta: strictly between 0 and 1.
    low, high: above 0, where to search; low itself is returned where that is enough.

    Guarantee: the composition at the noise returned is (epsilon, delta)-DP, by delta().
    Raises: ParameterError, also when the noise `high` is not enough.
    Cost: about 25 calls of delta().
    Source: bisection.
    """
    least, most = _epsilon(low, "low"), _epsilon(high, "high")
    if not least < most:
        refuse("low", low, f"it must be below high = {shorten(high)}")
    holds = _holds(epsilon, delta, accountant)

    def enough(noise: float) -> bool:
        return holds(family(noise), _count("rounds", rounds))

    if not enough(most):
        refuse("high", high, "that much noise is not enough")
    return least if enough(least) else _bisected(most, least, enough)


def largest_rate(
    base: Mechanism,
    *,
    draws: int,
    rounds: int,
    epsilon: float,
    delta: float,
    accountant: Accountant = "pld",
) -> float:
    """The largest rate, within 1e-5 of itself, at which `rounds` runs of Subsampled are private.

    base, draws: as for Subsampled; epsilon: above 0; delta: strictly between 0 and 1. With
    rate = 1 / (kappa n), the data needed are n = 1 / (kappa * rate) records.

    Guarantee: the composition at the rate returned is (epsilon, delta)-DP, by delta().
    Raises: ParameterError, also when no rate above 1e-15 will do.
    Cost: about 25 calls of delta().
    Source: bisection.
    """
    holds, times = _holds(epsilon, delta, accountant), _count("rounds", rounds)

    def allowed(rate: float) -> bool:
        return holds(Subsampled(base, draws=draws, rate=rate), times)

    # Where few draws are expected to change, curves are cheap: no large rate is tried unasked.
    return _outermost(min(1.0, 0.01 / _count("draws", draws)), allowed, 1.0)


def largest_rounds(
    mechanism: Mechanism, *, epsilon: float, delta: float, accountant: Accountant = "pld"
) -> int:
    """How often a mechanism can run at most; 0 if not even once, never above 2**40.

    mechanism: any; epsilon: above 0; delta: strictly between 0 and 1.

    Guarantee: that many runs are (epsilon, delta)-DP, by delta().
    Raises: ParameterError.
    Cost: about twice log2(result) calls of delta().
    Source: bisection.
    """
    holds = _holds(epsilon, delta, accountant)
    if not holds(mechanism, 1):
        return 0
    good = 1
    while good < _MOST_ROUNDS and holds(mechanism, 2 * good):
        good *= 2
    bad = 2 * good
    while bad - good > 1 and good < _MOST_ROUNDS:
        middle = (good + bad) // 2
        good, bad = (middle, bad) if holds(mechanism, middle) else (good, middle)
    return good


def _holds(
    epsilon: float, delta: float, accountant: Accountant
) -> Callable[[Mechanism, int], bool]:
    """Whether a mechanism run so often meets the target."""
    wanted, failing = _epsilon(epsilon), probability("delta", delta)

    def holds(mechanism: Mechanism, rounds: int) -> bool:
        terms = _terms([(mechanism, rounds)], accountant)
        return _core.composed_delta(terms, wanted, accountant) <= failing

    return holds


def _outermost(start: float, holds: Callable[[float], bool], most: float = math.inf) -> float:
    """The largest number where `holds`, from a first guess."""
    good = start
    while not holds(good):
        good /= 4
        if good < _LEAST_RATE:
            raise ParameterError(
                f"no value above {_LEAST_RATE} reaches the given epsilon and delta"
            )
    bad = good
    while bad < most and holds(bad):
        good, bad = bad, min(4 * bad, most)
    return bad if holds(bad) else _bisected(good, bad, holds)


def _bisected(good: float, bad: float, holds: Callable[[float], bool]) -> float:
    """The last number where `holds`, within the tolerance; by ratios, since scales are unknown."""
    while max(good, bad) > (1 + _TOLERANCE) * min(good, bad):
        middle = math.sqrt(good) * math.sqrt(bad)
        if not min(good, bad) < middle < max(good, bad):
            break  # neighboring numbers, among the least of all
        good, bad = (middle, bad) if holds(middle) else (good, middle)
    return good


def _terms(mechanisms: Mechanisms, accountant: str) -> list[tuple[_Description, int]]:
    """Distinct mechanisms with their counts, all under one neighbor relation."""
    listed = [mechanisms] if isinstance(mechanisms, Mechanism) else mechanisms
    if not isinstance(listed, Sequence) or isinstance(listed, str | bytes):
        refuse("mechanisms", mechanisms, "it must be a mechanism or a sequence")
    rounds: dict[Mechanism, int] = {}
    for each in listed:
        mechanism, times = each if isinstance(each, tuple) and len(each) == 2 else (each, 1)
        if not isinstance(mechanism, Mechanism):
            rule = "each must be a mechanism or a pair of a mechanism and a count"
            raise ParameterError(f"mechanisms holds {shorten(each)}, but {rule}")
        rounds[mechanism] = rounds.get(mechanism, 0) + _count("rounds", times)
    if len({mechanism.neighbors for mechanism in rounds}) > 1:
        held = ", ".join(sorted({str(mechanism.neighbors) for mechanism in rounds}))
        rule = "all must be under the same relation; replace_one() converts from add_remove"
        raise ParameterError(f"mechanisms are under {held}, but {rule}")
    if accountant == "rdp" and any(isinstance(each, Subsampled) for each in rounds):
        text = 'the accountant "rdp" can take up to twice the epsilon of "pld" when subsampling'
        warnings.warn(text, UserWarning, stacklevel=3)
    return [(mechanism._description(), times) for mechanism, times in rounds.items()]


def _sum(values: Iterable[float]) -> float:
    """The exact sum, rounded up."""
    return _rounded_up(sum(map(Fraction, values), Fraction(0)))


def _rounded_up(exact: Fraction) -> float:
    """The least float that is not below."""
    try:
        nearest = float(exact)
    except OverflowError:
        return math.inf
    return nearest if nearest >= exact else math.nextafter(nearest, math.inf)


def _numbers(name: str, values: Any) -> list[float]:
    try:
        listed = list(values)
    except (TypeError, NotImplementedError):  # the latter from a memoryview of a foreign format
        refuse(name, values, "it must be a sequence of real numbers")
    return [number(name, each) for each in listed]


def _pair(guarantee: tuple[float, float]) -> tuple[float, float]:
    try:
        first, second = guarantee
    except (TypeError, ValueError):
        rule = "each must be a pair of epsilon and delta"
        raise ParameterError(f"guarantees holds {shorten(guarantee)}, but {rule}") from None
    failing = number("delta", second)
    if not 0 <= failing <= 1:
        refuse("delta", second, "it must lie in [0, 1]")
    return _epsilon(first, zero=True), failing


def _epsilon(value: Any, name: str = "epsilon", *, zero: bool = False) -> float:
    if not zero:
        return positive(name, value)
    found = number(name, value)
    if not 0 <= found < math.inf:
        refuse(name, value, "it must be finite and at least 0")
    return found


def _count(name: str, value: Any) -> int:
    found = nonnegative_int(name, value)
    if not 1 <= found <= _MOST:
        refuse(name, value, "it must be an integer from 1 to 2**53")
    return found
