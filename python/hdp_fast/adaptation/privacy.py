"""One Gaussian budget for a discrepancy and all noisy steps of a descent."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from fractions import Fraction
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from .. import accounting
from .._support.parameters import Rules
from .._support.random_state import check_random_state, make_generator
from .._support.types import Floats, Integers, RandomState
from .._support.validate import one_of, positive_or_infinite, probability, refuse
from ..budget.account import Budget
from ..data.goal import Goal
from ..exceptions import ParameterError
from ..learners.noisy_steps import Numerics
from ..noise import rounded_gaussian
from ..record import PrivacyRecord, rng_of
from .discrepancies.exact import DOMAINS, Private

Rng = np.random.Generator | None

NUMERICS = ("exact", "idealized")
# Sums of integers stay below 2**53, where floats hold them exactly, and noise below what is drawn.
_MOST_BITS, _SUM_BITS, _NOISE_BITS, _LEAST_BITS = 40, 52, 48, 16
# Bound on an integer coefficient, on the coarsest grid.
LEAST_COEFFICIENTS = 1 << _LEAST_BITS // 2
# The range of mu that the release of a discrepancy takes.
_LEAST_MU, _MOST_MU = 1e-9, 1e6
_STRETCH = 1 - 1e-5


# Rules of the parameters that say how much is protected, and whom.
PRIVACY_RULES: Rules = {
    "epsilon": positive_or_infinite,
    "delta": probability,
    "private": partial(one_of, allowed=DOMAINS),
    "numerics": partial(one_of, allowed=NUMERICS),
}


class Privacy(NamedTuple):
    """The goal of a run, and the kind of its noise.

    Attributes:
        goal: What is promised, with an infinite epsilon where no one is protected.
        numerics: "exact" for noise on integers, or "idealized" for noise in floats.
    """

    goal: Goal
    numerics: Numerics

    @property
    def exact(self) -> bool:
        """Whether the noise is drawn exactly."""
        return self.numerics == "exact"

    @property
    def protects(self) -> bool:
        """Whether anybody is protected."""
        return math.isfinite(self.goal.epsilon)

    @property
    def delta(self) -> float:
        """The delta of the goal, which no run of adaptation does without."""
        return self.goal.settled_delta

    def change(self, **parts: Any) -> Privacy:
        """Return the same with other parts of the goal."""
        return self._replace(goal=self.goal._replace(**parts))

    def protected_domain(self, private: Private) -> Private | None:
        """Return the domain whose records are protected: `private`, or None without privacy."""
        return private if self.protects else None

    def mu(self) -> float:
        """Return the largest sensitivity / deviation of the run.

        It is the same for both kinds of noise: exact noise is a normal deviate that is rounded
        after it was added to integers, with a sensitivity that holds for these integers. A person
        with k records has k times the mu of a record (Dong, Roth and Su 2022, Theorem 2.14).
        """
        mu, rows = _largest_mu(self.goal.epsilon, self.delta), self.goal.persons.rows
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


def set_privacy(
    fields: Mapping[str, Any], budget: Budget | None, random_state: RandomState
) -> Privacy:
    """Return the privacy that an estimator's checked parameters and a call's arguments ask for.

    Raises: ParameterError for a random_state of another kind, and for a budget without privacy.
    """
    check_random_state(random_state)
    epsilon, numerics = fields["epsilon"], fields.get("numerics", "exact")
    if epsilon == math.inf and budget is not None:
        refuse("epsilon", epsilon, "only a private run can be charged to a budget")
    return Privacy(
        Goal(epsilon, fields["delta"], budget=budget, random_state=random_state), numerics
    )


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
        raise ParameterError(f"epsilon = {privacy.goal.epsilon:g}, but {rule}")
    multiple = math.sqrt(joint * steps / (1 - share)) / total
    return DescentNoise(discrepancy, multiple, privacy.exact, privacy.goal.epsilon)


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


def add_noise(
    values: Floats | Integers, sensitivity: float, noise: DescentNoise, rng: Rng
) -> Floats:
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


def open_stream(random_state: RandomState) -> Rng:
    """Return one stream for all draws of a call.

    Several streams from the same seed would give the same coins, and tie the errors of the draws
    together.

    Raises: ParameterError.
    """
    return None if random_state is None else make_generator(random_state)


def make_record(
    privacy: Privacy, noise: DescentNoise, mechanism: str, source: str
) -> PrivacyRecord:
    """Return the record of a run."""
    kind, goal = (
        "rounded Gaussian on integers" if noise.exact else "Gaussian in floats",
        privacy.goal,
    )
    record = PrivacyRecord(
        mechanism=mechanism,
        source=source,
        neighbors=goal.neighbors,
        epsilon=goal.epsilon,
        delta=privacy.delta,
        noise=f"{kind}, {noise.multiple:g} sensitivities on each step",
        numerics=privacy.numerics,
        rng=rng_of(goal.random_state),
    )
    return goal.persons.state(record)
