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
from ..data.persons import Persons
from ..exceptions import ParameterError
from ..noise import rounded_gaussian
from ..record import PrivacyRecord, rng_of
from .discrepancies.exact import DOMAINS, Private

Numerics = Literal["exact", "idealized"]
Rng = np.random.Generator | None

_NUMERICS = ("exact", "idealized")
# Sums of integers stay below 2**53, where floats hold them exactly, and noise below what is drawn.
_MOST_BITS, _SUM_BITS, _NOISE_BITS, _LEAST_BITS = 40, 52, 48, 16
# Bound on an integer coefficient, on the coarsest grid.
LEAST_COEFFICIENTS = 1 << _LEAST_BITS // 2
# The range of mu that the release of a discrepancy takes.
_LEAST_MU, _MOST_MU = 1e-9, 1e6
_STRETCH = 1 - 1e-5


class Privacy(NamedTuple):
    """The privacy parameters of a run, and the kind of its noise.

    Attributes:
        epsilon: Above 0; math.inf protects nobody.
        delta: In (0, 1).
        numerics: "exact" for noise on integers, or "idealized" for noise in floats.
        persons: Who owns the private records.
    """

    epsilon: float
    delta: float
    numerics: Numerics
    persons: Persons = Persons()

    @property
    def exact(self) -> bool:
        """Whether the noise is drawn exactly."""
        return self.numerics == "exact"

    @property
    def protects(self) -> bool:
        """Whether anybody is protected."""
        return math.isfinite(self.epsilon)

    def protected_domain(self, private: Private) -> Private | None:
        """Return the domain whose records are protected: `private`, or None without privacy."""
        return private if self.protects else None

    def mu(self) -> float:
        """Return the largest sensitivity / deviation of the run.

        It is the same for both kinds of noise: exact noise is a normal deviate that is rounded
        after it was added to integers, with a sensitivity that holds for these integers. A person
        with k records has k times the mu of a record (Dong, Roth and Su 2022, Theorem 2.14).
        """
        mu, rows = _largest_mu(self.epsilon, self.delta), self.persons.rows
        return mu if rows == 1 else mu / rows * _STRETCH


@functools.lru_cache(maxsize=128)
def _largest_mu(epsilon: float, delta: float) -> float:
    try:
        mu = accounting.gaussian_mu(epsilon, delta)
    except ParameterError as error:
        rule = f"at delta = {delta:g} no noise is enough"
        raise ParameterError(f"epsilon = {epsilon:g}, but {rule}") from error
    # Rounding may make the parts add up to a little more than the whole.
    while accounting.gaussian_epsilon(mu * (1 + 1e-12), delta) > epsilon:
        mu *= _STRETCH
    return mu


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


class DescentNoise(NamedTuple):
    """The noise of a descent.

    Attributes:
        discrepancy: Sensitivity / deviation of the released discrepancy.
        multiple: Deviation / sensitivity of each step.
        exact: Whether the noise is drawn on integers.
        epsilon: The epsilon of the whole run, for errors.
    """

    discrepancy: float
    multiple: float
    exact: bool
    epsilon: float


def calibrate_noise(privacy: Privacy, steps: int, share: float, joint: float = 1.0) -> DescentNoise:
    """Return the least noise for a discrepancy and this number of steps.

    share: share of the squared budget for the discrepancy; 0 where none is released. joint: the
    largest sum of (change / sensitivity)**2 over all that a step releases.

    Raises: ParameterError for an epsilon that no drawn noise reaches.
    """
    total = privacy.mu()
    discrepancy = min(total * math.sqrt(share), _MOST_MU)
    if share and discrepancy < _LEAST_MU:
        rule = f"at delta = {privacy.delta:g} it needs more noise than is drawn"
        raise ParameterError(f"epsilon = {privacy.epsilon:g}, but {rule}")
    multiple = math.sqrt(joint * steps / (1 - share)) / total
    return DescentNoise(discrepancy, multiple, privacy.exact, privacy.epsilon)


class Grid(NamedTuple):
    """Bounds on the integers whose product is a private record's part of a sum.

    Attributes:
        rows: Bound on the norm of a record's integers.
        coefficients: Bound on the magnitude of its integer coefficient.
    """

    rows: int
    coefficients: int

    @property
    def sensitivity(self) -> int:
        """How far replacing a record moves the sum of products, in the Euclidean norm."""
        return 2 * self.rows * self.coefficients


def choose_grid(noise: DescentNoise, n: int) -> Grid:
    """Return the finest grid that the exact sum of n products and the noise on it allow.

    Raises: ParameterError where that leaves too few bits.
    """
    bits = sum_bits(noise, n)
    return Grid(1 << (bits - bits // 2), 1 << (bits // 2))


def sum_bits(noise: DescentNoise, n: int) -> int:
    """Return the most bits of n integers whose sum, with its noise, is exact.

    Raises: ParameterError where they are too few.
    """
    largest = max(math.ceil(math.log2(noise.multiple)), 0)
    bits = min(_MOST_BITS, _SUM_BITS - n.bit_length(), _NOISE_BITS - largest)
    if bits < _LEAST_BITS:
        rule = f"with {n:,} private records the noise leaves too few digits for exact sums"
        raise ParameterError(f"epsilon = {noise.epsilon:g}, but {rule}")
    return bits


def add_noise(values: Floats, sensitivity: float, noise: DescentNoise, rng: Rng) -> Floats:
    """Add noise for this sensitivity to sums, (k,).

    Where the noise is exact, the sums are integers and the sensitivity holds for them: what is
    released is the sums with real normal deviates, rounded.
    """
    if noise.exact:
        sigma = Fraction(noise.multiple) * Fraction(sensitivity)
        drawn = rounded_gaussian(sigma, len(values), random_state=rng)
        return (values.astype(np.int64) + drawn).astype(np.float64)
    generator = np.random.default_rng() if rng is None else rng
    noisy_sums: Floats = values + generator.normal(0.0, noise.multiple * sensitivity, len(values))
    return noisy_sums


def make_stream(random_state: RandomState) -> Rng:
    """Return one stream for all draws of a call.

    Several streams from the same seed would give the same coins, and tie the errors of the draws
    together.

    Raises: ParameterError.
    """
    return None if random_state is None else make_generator(random_state)


def make_record(
    privacy: Privacy, noise: DescentNoise, mechanism: str, source: str, random_state: RandomState
) -> PrivacyRecord:
    """Return the record of a run."""
    kind = "rounded Gaussian on integers" if noise.exact else "Gaussian in floats"
    record = PrivacyRecord(
        mechanism=mechanism,
        source=source,
        neighbors="replace_one",
        epsilon=privacy.epsilon,
        delta=privacy.delta,
        noise=f"{kind}, {noise.multiple:g} sensitivities on each step",
        numerics=privacy.numerics,
        rng=rng_of(random_state),
    )
    return privacy.persons.state(record)
