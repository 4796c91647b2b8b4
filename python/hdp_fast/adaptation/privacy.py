"""One Gaussian budget for a discrepancy and all noisy steps of a descent."""

from __future__ import annotations

import functools
import math
from fractions import Fraction
from typing import Any, Literal, NamedTuple

import numpy as np

from .. import accounting
from .._support.random_state import make_generator
from .._support.types import Floats, RandomState
from .._support.validate import number, one_of, positive, probability, refuse
from ..exceptions import ParameterError
from ..noise import discrete_gaussian
from ..record import PrivacyRecord, rng_of
from .discrepancies.exact import DOMAINS, Private
from .discrepancies.private import GRID_STEPS

Numerics = Literal["exact", "idealized"]
Rng = np.random.Generator | None

_NUMERICS = ("exact", "idealized")
# Sums of integers stay below 2**53, where floats hold them exactly, and noise below what is drawn.
_MOST_BITS, _SUM_BITS, _NOISE_BITS, _LEAST_BITS = 40, 52, 48, 16
# What a coefficient can be, on the coarsest grid.
LEAST_COEFFICIENTS = 1 << _LEAST_BITS // 2
# The release of a discrepancy takes no mu outside these.
_LEAST_MU, _MOST_MU = 1e-9, 1e6
_STRETCH = 1 - 1e-5
# The logarithm of what integers may add to delta, and more for what stands before the exponential.
_LOST = 60.0


class Privacy(NamedTuple):
    """The promise, and the kind of noise that keeps it.

    Attributes:
        epsilon: above 0; infinity protects nobody.
        delta: in (0, 1).
        numerics: "exact" noise on integers, or "idealized" in floats.
    """

    epsilon: float
    delta: float
    numerics: Numerics

    @property
    def exact(self) -> bool:
        """Whether the noise is drawn exactly."""
        return self.numerics == "exact"

    @property
    def protects(self) -> bool:
        """Whether anybody is protected."""
        return math.isfinite(self.epsilon)

    def protected_domain(self, private: Private) -> Private | None:
        """Whose records are protected: those of `private`, or None's."""
        return private if self.protects else None

    def mu(self) -> float:
        """The largest sensitivity / deviation in all, by the curve of this kind of noise."""
        return _largest_mu(self)


@functools.lru_cache(maxsize=128)
def _largest_mu(privacy: Privacy) -> float:
    try:
        if privacy.exact:
            mu = math.sqrt(2 * accounting.zcdp_rho(privacy.epsilon, privacy.delta))
        else:
            mu = accounting.gaussian_mu(privacy.epsilon, privacy.delta)
    except ParameterError as error:
        rule = f"at delta = {privacy.delta:g} no noise is enough"
        raise ParameterError(f"epsilon = {privacy.epsilon:g}, but {rule}") from error
    while _composed_epsilon(privacy, mu) > privacy.epsilon:
        mu *= _STRETCH
    return mu


def _composed_epsilon(privacy: Privacy, mu: float) -> float:
    # Rounding may make the parts add up to a little more than the whole.
    mu *= 1 + 1e-12
    if privacy.exact:
        return accounting.zcdp_epsilon(mu**2 / 2, privacy.delta)
    return accounting.gaussian_epsilon(mu, privacy.delta)


def validate_privacy(estimator: Any) -> Privacy:
    """Validate an estimator's epsilon, delta, numerics, private and budget.

    Raises: ParameterError.
    """
    one_of("numerics", estimator.numerics, _NUMERICS)
    one_of("private", estimator.private, DOMAINS)
    delta = probability("delta", estimator.delta)
    if number("epsilon", estimator.epsilon) != math.inf:
        return Privacy(positive("epsilon", estimator.epsilon), delta, estimator.numerics)
    if estimator.budget is not None:
        refuse("epsilon", estimator.epsilon, "only a private run can be charged to a budget")
    return Privacy(math.inf, delta, estimator.numerics)


class Noise(NamedTuple):
    """The noise of a descent.

    Attributes:
        discrepancy: sensitivity / deviation of the released discrepancy.
        multiple: deviation / sensitivity of each step.
        exact: whether it is drawn on integers.
        epsilon: of the promise, for errors.
    """

    discrepancy: float
    multiple: float
    exact: bool
    epsilon: float


def calibrate_noise(privacy: Privacy, steps: int, share: float, joint: float = 1.0) -> Noise:
    """The least noise for a discrepancy and this number of steps.

    share: of the squared budget, for the discrepancy; 0 where none is released. joint: the most
    that (change / sensitivity)**2 adds up to over all that a step releases.

    Raises: ParameterError for an epsilon that no drawn noise reaches.
    """
    total = _joint_mu(privacy, share)
    discrepancy = min(total * math.sqrt(share), _MOST_MU)
    if share and discrepancy < _LEAST_MU:
        rule = f"at delta = {privacy.delta:g} it needs more noise than is drawn"
        raise ParameterError(f"epsilon = {privacy.epsilon:g}, but {rule}")
    multiple = math.sqrt(joint * steps / (1 - share)) / total
    return Noise(discrepancy, multiple, privacy.exact, privacy.epsilon)


def _joint_mu(privacy: Privacy, share: float) -> float:
    """The largest sensitivity / deviation of a discrepancy and Gaussian steps together.

    The discrepancy's noise is a discrete Gaussian on integers that a record moves by at most
    GRID_STEPS, also where that of the steps is not. Let both have mu in all. Their joint delta at
    epsilon is a sum over the integers of f(k) = e**(-k**2 / 2 s**2) Phi(a(k)) - e**epsilon e**(-(k
    - GRID_STEPS)**2 / 2 s**2) Phi(a(k) - mu'), s = GRID_STEPS / (mu sqrt(share)), mu' = mu sqrt(1 -
    share), a linear in k with slope 1 / (s mu') mu sqrt(share); were both continuous, it would be
    the integral of f. By Poisson's summation the sum is more than that by at most twice the Fourier
    transform of f at 2 pi, 4 pi and so on. On a line parallel to the real one |f| has a bounded
    integral, which bounds
    the transform: by 2 (1 + 3 t n) exp(-2 pi**2 t**2 n**2) of the sum of e**(-k**2 / 2 s**2) at
    2 pi n, with 1 / t**2 = 1 / s**2 + slope**2, so that t = GRID_STEPS sqrt(1 / share - 1) / mu. A
    smaller move has a larger t. Where this may exceed e**-50 of delta, zCDP accounts for both.
    """
    mu = privacy.mu()
    if privacy.exact or not share:
        return mu
    spread = GRID_STEPS * math.sqrt(1 / share - 1) / mu
    if 2 * (math.pi * spread) ** 2 >= _LOST - math.log(privacy.delta):
        return mu
    return privacy._replace(numerics="exact").mu()


class Grid(NamedTuple):
    """Bounds on the integers whose product is a private record's part of a sum.

    Attributes:
        rows: bound on the norm of a record's integers.
        coefficients: bound on the magnitude of its integer coefficient.
    """

    rows: int
    coefficients: int

    @property
    def sensitivity(self) -> int:
        """How far replacing a record moves the sum of products, in the Euclidean norm."""
        return 2 * self.rows * self.coefficients


def choose_grid(noise: Noise, n: int) -> Grid:
    """The finest grid that the exact sum of n products and the noise on it allow.

    Raises: ParameterError where that leaves too few bits.
    """
    bits = sum_bits(noise, n)
    return Grid(1 << (bits - bits // 2), 1 << (bits // 2))


def sum_bits(noise: Noise, n: int) -> int:
    """The most bits of n integers whose sum, with its noise, is exact.

    Raises: ParameterError where they are too few.
    """
    largest = max(math.ceil(math.log2(noise.multiple)), 0)
    bits = min(_MOST_BITS, _SUM_BITS - n.bit_length(), _NOISE_BITS - largest)
    if bits < _LEAST_BITS:
        rule = f"with {n:,} private records the noise leaves too few digits for exact sums"
        raise ParameterError(f"epsilon = {noise.epsilon:g}, but {rule}")
    return bits


def add_noise(values: Floats, sensitivity: float, noise: Noise, rng: Rng) -> Floats:
    """Add noise for this sensitivity to sums, (k,); both are integers where the noise is exact."""
    if noise.exact:
        sigma = Fraction(noise.multiple) * Fraction(sensitivity)
        drawn = discrete_gaussian(sigma, len(values), random_state=rng)
        return (values.astype(np.int64) + drawn).astype(np.float64)
    generator = np.random.default_rng() if rng is None else rng
    noisy_sums: Floats = values + generator.normal(0.0, noise.multiple * sensitivity, len(values))
    return noisy_sums


def make_stream(random_state: RandomState) -> Rng:
    """One stream for all draws of a call: the same coins in each would tie their errors together.

    Raises: ParameterError.
    """
    return None if random_state is None else make_generator(random_state)


def make_record(
    privacy: Privacy, noise: Noise, mechanism: str, source: str, random_state: RandomState
) -> PrivacyRecord:
    """The record of a run."""
    kind = "discrete Gaussian on integers" if noise.exact else "Gaussian in floats"
    return PrivacyRecord(
        mechanism=mechanism,
        source=source,
        neighbors="replace_one",
        epsilon=privacy.epsilon,
        delta=privacy.delta,
        noise=f"{kind}, {noise.multiple:g} sensitivities on each step",
        numerics=privacy.numerics,
        rng=rng_of(random_state),
    )
