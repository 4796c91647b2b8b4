"""Mechanisms as an accountant sees them: what each guarantees for one record."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import StrEnum

from .. import _core
from .._support.validate import nonnegative_int, number, refuse
from ..exceptions import ParameterError


class Neighbors(StrEnum):
    """The relation between data sets that a guarantee makes indistinguishable.

    Each member equals its name in lower case, which every argument `neighbors` takes as well.

    Attributes:
        REPLACE_ONE: One record is replaced by another; the number of records is public.
        ADD_REMOVE: One record is added or removed.
        LOCAL: One person's record takes any two values, and the guarantee holds against everybody,
            the collector included.

    Examples:
        >>> from hdp_fast.accounting import Neighbors, Pure
        >>> Pure(0.5, neighbors="add_remove").neighbors is Neighbors.ADD_REMOVE
        True
    """

    REPLACE_ONE = "replace_one"
    ADD_REMOVE = "add_remove"
    LOCAL = "local"


def relation(value: object) -> Neighbors:
    """The relation of that name; ParameterError if there is none."""
    try:
        return Neighbors(value)  # type: ignore[arg-type]
    except ValueError:
        refuse("neighbors", value, f"it must be one of {', '.join(Neighbors)}")


Description = tuple[str, tuple[float, ...], int, float]


@dataclass(frozen=True, repr=False)
class Mechanism(ABC):
    """The base class of all mechanisms of an accountant; it cannot be instantiated.

    A mechanism is a frozen value that compares and hashes by its fields. It describes a guarantee
    and runs nothing.

    Attributes:
        neighbors: The relation between data sets for which the guarantee holds, a `Neighbors` or
            its name. "replace_one" is the default.

    Examples:
        >>> from hdp_fast.accounting import Mechanism, Pure, ZCDP, epsilon
        >>> releases: list[Mechanism] = [Pure(0.5), ZCDP(0.01)]
        >>> round(epsilon(releases, delta=1e-6), 2)
        1.11
    """

    neighbors: Neighbors = dataclasses.field(default=Neighbors.REPLACE_ONE, kw_only=True)

    def __post_init__(self) -> None:
        """Refuse parameters that no mechanism can have."""
        object.__setattr__(self, "neighbors", relation(self.neighbors))
        for name in ("epsilon", "local_epsilon", "delta", "mu", "rho", "rate"):
            if hasattr(self, name):
                object.__setattr__(self, name, number(name, getattr(self, name)))
        _core.check_mechanism(self._description())

    @abstractmethod
    def _description(self) -> Description:
        """Kind, parameters, draws and rate, as the compiled module takes them."""

    def __repr__(self) -> str:
        fields = [field.name for field in dataclasses.fields(self) if field.name != "neighbors"]
        values = [f"{name}={getattr(self, name)!r}" for name in fields]
        return f"{type(self).__name__}({', '.join(values)}, neighbors={str(self.neighbors)!r})"


@dataclass(frozen=True, repr=False)
class Pure(Mechanism):
    """A pure epsilon-DP mechanism; the worst case is randomized response.

    Attributes:
        epsilon: Privacy parameter of one run, finite and above 0.
        neighbors: The relation for which the guarantee holds, "replace_one" by default.

    Raises:
        ParameterError: An attribute lies outside its range.

    Examples:
        >>> from hdp_fast.accounting import Pure, epsilon
        >>> round(epsilon([(Pure(0.1), 100)], delta=1e-6), 2)  # the sum is 10
        4.77
    """

    epsilon: float

    def _description(self) -> Description:
        return ("pure", (self.epsilon,), 1, 1.0)


@dataclass(frozen=True, repr=False)
class BoundedRange(Mechanism):
    """A mechanism whose log-ratios between neighbors lie in an interval of length epsilon.

    An example is the exact exponential mechanism, with probabilities proportional to e^(epsilon *
    score / 2) for scores of sensitivity 1. Permute-and-flip and noisy maxima with other noise are
    not examples; they are `Pure(epsilon)`.

    Runs of one epsilon compose at their optimum over everybody who chooses them adaptively, in
    blocks of 32 (Dong, Durfee and Rogers 2020); on subsamples, each has the worst curve of one run.

    Attributes:
        epsilon: Length of the interval, finite and above 0.
        neighbors: The relation for which the guarantee holds, "replace_one" by default.

    Raises:
        ParameterError: An attribute lies outside its range.

    Examples:
        >>> from hdp_fast.accounting import BoundedRange, Pure, epsilon
        >>> round(epsilon([(BoundedRange(0.1), 100)], delta=1e-6), 2)
        2.28
        >>> round(epsilon([(Pure(0.1), 100)], delta=1e-6), 2)
        4.77
    """

    epsilon: float

    def _description(self) -> Description:
        return ("bounded_range", (self.epsilon,), 1, 1.0)


@dataclass(frozen=True, repr=False)
class GaussianMechanism(Mechanism):
    """Continuous Gaussian noise, or any mechanism that is mu-Gaussian differentially private.

    Noise of `noise.rounded_gaussian` on an integer statistic is such a mechanism, too. It does not
    dominate discrete Gaussian noise, which is `ZCDP(mu**2 / 2)`.

    Attributes:
        mu: Sensitivity / standard deviation, finite and above 0. The sensitivity is that of the
            relation.
        neighbors: The relation to which the sensitivity refers, "replace_one" by default.

    Raises:
        ParameterError: An attribute lies outside its range.

    Examples:
        >>> from hdp_fast.accounting import GaussianMechanism, epsilon
        >>> round(epsilon([(GaussianMechanism(0.1), 25)], delta=1e-6), 2)
        2.25
    """

    mu: float

    def _description(self) -> Description:
        return ("gaussian", (self.mu,), 1, 1.0)


@dataclass(frozen=True, repr=False)
class LaplaceMechanism(Mechanism):
    """Continuous Laplace noise on a real statistic.

    It does not dominate integer-valued Laplace noise, which is `DiscreteLaplace`.

    Attributes:
        epsilon: Sensitivity / scale, finite and above 0.
        neighbors: The relation to which the sensitivity refers, "replace_one" by default.

    Raises:
        ParameterError: An attribute lies outside its range.

    Examples:
        >>> from hdp_fast.accounting import LaplaceMechanism, delta
        >>> round(delta(LaplaceMechanism(1.0), epsilon=0.5), 4)
        0.2212
    """

    epsilon: float

    def _description(self) -> Description:
        return ("laplace", (self.epsilon,), 1, 1.0)


@dataclass(frozen=True, repr=False)
class DiscreteLaplace(Mechanism):
    """Integer-valued Laplace noise on an integer statistic, as `noise.discrete_laplace` draws it.

    Attributes:
        epsilon: Sensitivity / scale, finite and above 0.
        sensitivity: The most by which one record changes the statistic, an integer from 1 to 4096.
            At 1 the mechanism is as private as `Pure(epsilon)`.
        neighbors: The relation to which the sensitivity refers, "replace_one" by default.

    Raises:
        ParameterError: An attribute lies outside its range.

    Examples:
        >>> from hdp_fast.accounting import DiscreteLaplace, delta
        >>> round(delta(DiscreteLaplace(1.0, sensitivity=3), epsilon=0.5), 4)
        0.2292
    """

    epsilon: float
    sensitivity: int

    def __post_init__(self) -> None:
        """Refuse a sensitivity that is not a count."""
        object.__setattr__(self, "sensitivity", count("sensitivity", self.sensitivity))
        super().__post_init__()

    def _description(self) -> Description:
        return ("discrete_laplace", (self.epsilon, float(self.sensitivity)), 1, 1.0)


@dataclass(frozen=True, repr=False)
class Approximate(Mechanism):
    """An (epsilon, delta)-DP mechanism of which nothing else is known.

    Attributes:
        epsilon: Privacy parameter of one run, finite and above 0.
        delta: Privacy parameter of one run, strictly between 0 and 1.
        neighbors: The relation for which the guarantee holds, "replace_one" by default.

    Raises:
        ParameterError: An attribute lies outside its range.

    Examples:
        >>> from hdp_fast.accounting import Approximate, epsilon
        >>> round(epsilon([(Approximate(0.1, 1e-9), 100)], delta=1e-6), 2)
        4.79
    """

    epsilon: float
    delta: float

    def _description(self) -> Description:
        return ("approximate", (self.epsilon, self.delta), 1, 1.0)


@dataclass(frozen=True, repr=False)
class ZCDP(Mechanism):
    """A mechanism known only to be rho-zero-concentrated DP, such as discrete Gaussian noise.

    Bounds on moments do not determine a distribution of the privacy loss. The accountant "pld"
    composes one that dominates every mechanism with these moments. It takes the result of "rdp"
    where that is smaller, as it is after many runs that are not subsampled.

    Attributes:
        rho: Finite and above 0; `(sensitivity / sigma)**2` / 2 for Gaussian noise.
        neighbors: The relation for which the guarantee holds, "replace_one" by default.

    Raises:
        ParameterError: An attribute lies outside its range.

    Source:
        Bun and Steinke 2016; for the dominating distribution also Canonne, Kamath and Steinke 2020,
        Proposition 12.

    Examples:
        >>> from hdp_fast.accounting import ZCDP, epsilon
        >>> sigma, sensitivity = 10, 1  # discrete Gaussian noise on a count, ten times
        >>> round(epsilon([(ZCDP((sensitivity / sigma) ** 2 / 2), 10)], delta=1e-6), 2)
        1.47
    """

    rho: float

    def _description(self) -> Description:
        return ("zcdp", (self.rho,), 1, 1.0)


@dataclass(frozen=True, repr=False)
class Subsampled(Mechanism):
    """A mechanism on records drawn independently, with replacement, by weights over the data.

    When a record is replaced, its content and all weights may change, as long as each draw then
    comes out differently with probability at most `rate`. Weights that are at most 1 / (kappa n) on
    every data set have rate = 1 / (kappa n).

    Attributes:
        base: The mechanism that runs on the draws, under "replace_one", any but `Subsampled`. Where
            b draws change, ZCDP(rho) counts as ZCDP(`b**2` * rho) by group privacy. In the designs
            of benches/bench_accounting.py this took 1.29 times the noise that `GaussianMechanism`
            takes.
        draws: How many records are drawn, from 1 to `2**53`.
        rate: The largest probability of any record in one draw, in (0, 1]. Where it is below 1,
            draws * rate must be at most 10,000.
        neighbors: "replace_one", the only relation for which the theorem is known.

    Raises:
        ParameterError: An attribute lies outside its range, or the base is itself subsampled.

    Guarantee:
        One run is dominated by a mixture of the base's guarantees for b changed draws, b binomial.
        The accountants compose this mixture. The draws themselves must stay secret.

    Source:
        Kohen and Sheffet 2022, Claim 4.1; advanced joint convexity of Balle, Barthe and Gaboardi
        2018.

    Examples:
        >>> from hdp_fast.accounting import Pure, Subsampled, epsilon
        >>> step = Subsampled(Pure(1.0), draws=50, rate=1 / 10_000)
        >>> round(epsilon([(step, 100)], delta=1e-6), 2)
        0.24
    """

    base: Mechanism
    draws: int = dataclasses.field(kw_only=True)
    rate: float = dataclasses.field(kw_only=True)

    def __post_init__(self) -> None:
        """Refuse what the theorem does not cover."""
        if not isinstance(self.base, Mechanism):
            raise ParameterError(f"base = {self.base!r}, but it must be a mechanism")
        if isinstance(self.base, Subsampled | SampledSum):
            rule = "mechanisms can be subsampled only once"
            raise ParameterError(f"base = {self.base!r}, but {rule}")
        if isinstance(self.base, Shuffled):
            rule = "nothing is known of shuffled reports of a subsample"
            raise ParameterError(f"base = {self.base!r}, but {rule}")
        for neighbors in (self.base.neighbors, relation(self.neighbors)):
            if neighbors is not Neighbors.REPLACE_ONE:
                rule = "subsampling with replacement is accounted under replace_one only"
                raise ParameterError(f"neighbors = {str(neighbors)!r}, but {rule}")
        object.__setattr__(self, "draws", count("draws", self.draws))
        super().__post_init__()

    def _description(self) -> Description:
        kind, parameters, _, _ = self.base._description()
        return (kind, parameters, self.draws, self.rate)


@dataclass(frozen=True, repr=False)
class SampledSum(Mechanism):
    """A sum over draws whose number is drawn, too, from a Poisson law, with Gaussian noise.

    Records are drawn uniformly and independently, with replacement, a Poisson number of times.
    Equivalently each record is drawn a Poisson number of times, whatever happens to the others. A
    record's part of the sum is a vector of norm at most mu standard deviations of the noise. So
    replacing it moves each of its draws by up to 2 mu, but having drawn it at all by mu only.

    The number of draws is secret: it must not be released, nor the sum be divided by it. A mean
    divides by the public mean number of draws.

    Attributes:
        mu: Largest norm of a record's part / standard deviation of the noise, finite and above 0.
        rate: How often a record is drawn on average, above 0 and at most 10,000: the mean number of
            draws / n.
        neighbors: "replace_one", the only relation for which the theorem is stated.

    Raises:
        ParameterError: An attribute lies outside its range.

    Guarantee:
        One sum is dominated by normal laws around b mu and around -b mu, both mixed by a Poisson
        law over b, and attains that. The accountants compose this pair. Rounding a sum of integers
        with its noise is postprocessing.

    Source:
        The page poisson_draws of the documentation; Koskela, Jaelkoe and Honkela 2020 for one coin
        a record.

    Examples:
        >>> from hdp_fast.accounting import GaussianMechanism, SampledSum, Subsampled, epsilon
        >>> step = SampledSum(1 / 11.3, rate=84 / 1_000)
        >>> round(epsilon([(step, 200)], delta=1e-6), 2)
        0.88
        >>> fixed = Subsampled(GaussianMechanism(2 / 11.3), draws=84, rate=1 / 1_000)
        >>> round(epsilon([(fixed, 200)], delta=1e-6), 2)
        1.0
    """

    mu: float
    rate: float = dataclasses.field(kw_only=True)

    def __post_init__(self) -> None:
        """Refuse what the theorem does not cover."""
        if (neighbors := relation(self.neighbors)) is not Neighbors.REPLACE_ONE:
            rule = "sums over drawn records are accounted under replace_one only"
            raise ParameterError(f"neighbors = {str(neighbors)!r}, but {rule}")
        super().__post_init__()

    def _description(self) -> Description:
        return ("sampled_sum", (self.mu, self.rate), 1, 1.0)


@dataclass(frozen=True, repr=False)
class Shuffled(Mechanism):
    """Reports of n people, each randomized by its person alone and mixed by a shuffler.

    Whoever sees the reports after the shuffler sees them in an order that tells nothing, with no
    name, number or time at any of them. Against everybody who sees more, the shuffler included,
    each report has `local_epsilon` alone, and `Pure(local_epsilon, neighbors="local")` is the
    mechanism.

    Attributes:
        local_epsilon: Privacy parameter of one report, finite and above 0; the randomizer is pure.
        n: How many reports of people who follow the protocol are mixed at least, the person's own
            included, from 1 to `2**53`. Whoever is invited but does not answer, or may be an
            attacker's, does not count. Of more than a billion people as much is promised as of a
            billion.
        categories: None for any randomizer. Where a report is a category of k, the true one with
            probability `e**local_epsilon / (e**local_epsilon + k - 1)` and else any other, it may
            be k, at least 2: that of `KaryResponse`, and 2 for one bit of randomized response.
        neighbors: "replace_one", the only relation for which the theorem is stated: everybody's
            report is in the mix, and one person's value is another.

    Raises:
        ParameterError: An attribute lies outside its range.

    Guarantee:
        One mix is dominated by the pair that the accountants compose, if all its reports are made
        by the same randomizer, which may depend on earlier results but not on the person. Where
        people are asked different questions by a public rule, each question is a mix of its own,
        and n the number of its reports; questions drawn inside the randomizer and sent with the
        answer are one mix. A person who reports in several mixes has them all composed.

        For any randomizer the bound is attained. For categories it is that of their own overlap.
        For one bit it is the exact law of up to 256 people, whose epsilon is a tenth to a quarter
        smaller; of up to 100,000 it is within a hundredth or two of that. Of more than a million a
        million are counted, where that is better than the bound for any randomizer.

    Cost:
        About 10 ms at any n; up to half a second for bits.

    Source:
        The page shuffled_reports of the documentation; Feldman, McMillan and Talwar 2023 for any
        randomizer, Balle, Bell, Gascon and Nissim 2019 for what laws have in common, Cheu, Smith,
        Ullman, Zeber and Zhilyaev 2019 for bits.

    Examples:
        >>> from hdp_fast.accounting import GaussianMechanism, Shuffled, epsilon
        >>> round(epsilon(Shuffled(1.0, n=1_000), delta=1e-6), 3)
        0.149
        >>> round(epsilon(Shuffled(1.0, n=1_000, categories=10), delta=1e-6), 3)
        0.08
        >>> survey, table = Shuffled(1.0, n=1_000), GaussianMechanism(0.1)
        >>> round(epsilon([survey, table], delta=1e-6), 2)
        0.43
    """

    local_epsilon: float
    n: int
    categories: int | None = None

    def __post_init__(self) -> None:
        """Refuse what the theorem does not cover."""
        if (neighbors := relation(self.neighbors)) is not Neighbors.REPLACE_ONE:
            rule = "shuffled reports are accounted under replace_one only"
            raise ParameterError(f"neighbors = {str(neighbors)!r}, but {rule}")
        object.__setattr__(self, "n", count("n", self.n))
        if self.categories is not None:
            if count("categories", self.categories) == 1:
                refuse(
                    "categories", self.categories, "it must be an integer of at least 2, or None"
                )
            object.__setattr__(self, "categories", int(self.categories))
        super().__post_init__()

    def _description(self) -> Description:
        parameters = (self.local_epsilon, float(self.n), float(self.categories or 0))
        return ("shuffled", parameters, 1, 1.0)


def describe(mechanism: Mechanism) -> Description:
    """Kind, parameters, draws and rate of a mechanism, as the compiled module takes them."""
    if not isinstance(mechanism, Mechanism):
        refuse("mechanism", mechanism, "it must be a mechanism")
    return mechanism._description()


def count(name: str, value: object) -> int:
    """The value as an int from 1 to `2**53`, beyond which not every integer is a double."""
    integer = nonnegative_int(name, value)
    if not 1 <= integer <= 1 << 53:
        refuse(name, value, "it must be an integer from 1 to 2**53")
    return integer
