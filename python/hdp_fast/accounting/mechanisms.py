"""Mechanisms as an accountant sees them: what each guarantees for one record."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from dataclasses import dataclass

from .. import _core
from .._support.validate import nonnegative_int, number, refuse
from ..exceptions import ParameterError
from .neighbors import Neighbors, relation

Description = tuple[str, float, float, int, float]


@dataclass(frozen=True, repr=False)
class Mechanism(ABC):
    """Base class of the mechanisms below; it cannot be instantiated.

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
    def _description(self) -> Description:
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

    def _description(self) -> Description:
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

    def _description(self) -> Description:
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

    def _description(self) -> Description:
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

    def _description(self) -> Description:
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
        object.__setattr__(self, "sensitivity", count("sensitivity", self.sensitivity))
        super().__post_init__()

    def _description(self) -> Description:
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

    def _description(self) -> Description:
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

    def _description(self) -> Description:
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
        for neighbors in (self.base.neighbors, relation(self.neighbors)):
            if neighbors is not Neighbors.REPLACE_ONE:
                rule = "subsampling with replacement is accounted under replace_one only"
                raise ParameterError(f"neighbors = {str(neighbors)!r}, but {rule}")
        object.__setattr__(self, "draws", count("draws", self.draws))
        super().__post_init__()

    def _description(self) -> Description:
        kind, first, second, _, _ = self.base._description()
        return (kind, first, second, self.draws, self.rate)


def describe(mechanism: Mechanism) -> Description:
    """Kind, two parameters, draws and rate of a mechanism, as the compiled module takes them.

    Raises: ParameterError unless it is a mechanism.
    """
    if not isinstance(mechanism, Mechanism):
        refuse("mechanism", mechanism, "it must be a mechanism")
    return mechanism._description()


def count(name: str, value: object) -> int:
    """The value as an int from 1 to 2**53, beyond which not every integer is a double.

    Raises: ParameterError otherwise.
    """
    integer = nonnegative_int(name, value)
    if not 1 <= integer <= 1 << 53:
        refuse(name, value, "it must be an integer from 1 to 2**53")
    return integer
