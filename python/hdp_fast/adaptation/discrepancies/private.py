"""A private discrepancy: on a grid, so that its noise is drawn exactly."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from numpy.typing import ArrayLike

from ... import accounting
from ..._support.json_text import to_text
from ..._support.random_state import check_random_state
from ..._support.types import RandomState
from ..._support.validate import bounded_positive, number, one_of, probability, refuse, shorten
from ...accounting.mechanisms import ZCDP, DiscreteLaplace, Mechanism
from ...budget.account import Budget, spend
from ...exceptions import ParameterError
from ...noise import discrete_gaussian, discrete_laplace
from ...record import PrivacyRecord, rng_of
from .exact import DOMAINS, LABEL_BOUND, DiscrepancyProblem, Private, solve, validate_problem
from .moments import moments_error
from .trust_region import gap_bound

# The sensitivity in steps of the grid: rounding is small beside the noise, and the accountants
# compose integer noise of such a sensitivity.
GRID_STEPS = 1024
# Scales of noise that are drawn exactly lie below 2**50.
_LEAST_PARAMETER, _MOST_PARAMETER = 1e-9, 1e6


@dataclass(frozen=True, kw_only=True)
class ReleasedDiscrepancy:
    """A discrepancy with noise; any use of it is free of further privacy cost.

    Attributes:
        value: in [0, loss_bound].
        deviation: the standard deviation of the noise.
        loss_bound: the largest loss B of any weights of the ball on any record.
        mechanism: the release as accounting composes it.
        record: what protects the private sample.
        sizes: the numbers m of source and n of target records.
        radius: of the ball around 0 that holds the weights that the supremum is over.
        norm_bound: of all rows.
    """

    value: float
    deviation: float
    loss_bound: float
    mechanism: Mechanism
    record: PrivacyRecord
    sizes: tuple[int, int]
    radius: float
    norm_bound: float

    def to_json(self) -> str:
        """Its attributes, of the mechanism its kind as well, as a JSON object.

        Raises: nothing.
        Cost: that of the text.
        Source: none.
        """
        mechanism = self.mechanism
        return to_text(
            {**vars(self), "mechanism": {"kind": type(mechanism).__name__, **vars(mechanism)}}
        )


class _Grid(NamedTuple):
    """A largest loss and the grid on which a record moves the value by at most GRID_STEPS."""

    loss_bound: Fraction
    step: Fraction


class _Noise(NamedTuple):
    """The law of the noise, its scale in steps of the grid, and its privacy."""

    law: str
    scale: Fraction
    deviation: float
    mechanism: Mechanism
    epsilon: float
    delta: float


def release_discrepancy(
    X_source: ArrayLike,
    y_source: ArrayLike,
    X_target: ArrayLike,
    y_target: ArrayLike,
    *,
    radius: float,
    norm_bound: float,
    epsilon: float | None = None,
    mu: float | None = None,
    delta: float = 1e-6,
    private: Private = "target",
    around: ArrayLike | None = None,
    local_radius: float | None = None,
    random_state: RandomState = None,
    budget: Budget | None = None,
) -> ReleasedDiscrepancy:
    """The discrepancy with noise, for algorithms that weigh public records by it.

    X_source, y_source, X_target, y_target, radius, norm_bound, around, local_radius: as discrepancy
    takes them; all bounds, around included, must be public. epsilon: discrete Laplace noise of
    scale sensitivity / epsilon; or mu: discrete Gaussian noise of standard deviation sensitivity /
    mu, whose record states its epsilon at `delta`. Exactly one of both, in [1e-9, 1e6].
    private: whose records are protected; the other sample is public. random_state: None draws from
    the operating system; an int or a Generator makes a reproducible test stream. budget: charged
    before any coin is drawn.

    Guarantee: pure epsilon-DP, or mu**2 / 2-zCDP, under replace_one in the private sample; exact.
        One record moves the supremum by at most B / n, B = (R norm_bound + 1)**2 for weights of
        norm up to R (n: private records), and what is computed by at most 2 xi more (proved).
        xi is public: computed from m, n, d and B, since a gap that was computed from the records
        would show in the noise. That the gap is below xi rests on numpy.linalg.eigh, whose error
        would have to be 50 times the largest one seen; it is measured, not proved. The
        value is rounded to a grid with 1024 steps to B / n + 2 xi, so that the integer sensitivity
        is 1024 without any addition. Running time is not protected.
    Raises: ShapeError, ParameterError, BudgetExceeded, before any coin is drawn or budget spent.
    Cost: as discrepancy.
    Source: Bassily, Cortes, Mao and Mohri 2024, Section 4, whose Laplace noise, of scale
        2 B / (epsilon n), is epsilon / 2-DP where the supremum is exact; Mironov 2012 for the grid.
    """
    check_random_state(random_state)
    noise = _calibrate_noise(epsilon, mu, probability("delta", delta))
    one_of("private", private, DOMAINS)
    bound = bounded_positive("norm_bound", norm_bound)
    data = X_source, y_source, X_target, y_target
    problem = validate_problem(data, radius, bound, private, around, local_radius)
    grid = _choose_grid(problem, private)
    record = PrivacyRecord(
        mechanism="adaptation.release_discrepancy",
        source="Bassily, Cortes, Mao and Mohri 2024, Section 4, with an exact supremum",
        neighbors="replace_one",
        epsilon=noise.epsilon,
        delta=noise.delta,
        noise=f"discrete {noise.law} on multiples of {float(grid.step):g}",
        rng=rng_of(random_state),
    )
    # Nothing is shown before the noise: a refused budget costs time only.
    exact = solve(problem)
    with spend(budget, record):
        steps = _round_to_grid(exact.value, grid) + _draw_noise(noise, random_state)
    return ReleasedDiscrepancy(
        value=float(min(max(steps * grid.step, Fraction(0)), grid.loss_bound)),
        deviation=noise.deviation * float(grid.step),
        loss_bound=float(grid.loss_bound),
        mechanism=noise.mechanism,
        record=record,
        sizes=(len(problem.source.y), len(problem.target.y)),
        radius=problem.ball.outer_radius,
        norm_bound=bound,
    )


def _calibrate_noise(epsilon: float | None, mu: float | None, delta: float) -> _Noise:
    if (epsilon is None) == (mu is None):
        pair = f"epsilon = {shorten(epsilon)} and mu = {shorten(mu)}"
        raise ParameterError(f"{pair}, but exactly one of them must be given")
    if mu is None:
        epsilon = _validate_parameter("epsilon", epsilon)
        # A ledger takes a float for its shortest decimal, which may be a little less.
        spent = min(Fraction(epsilon), Fraction(repr(epsilon)))
        deviation = math.sqrt(2) * GRID_STEPS / epsilon
        mechanism: Mechanism = DiscreteLaplace(epsilon, GRID_STEPS)
        return _Noise("Laplace", GRID_STEPS / spent, deviation, mechanism, epsilon, 0.0)
    mu = _validate_parameter("mu", mu)
    mechanism = ZCDP(math.nextafter(mu**2 / 2, math.inf))
    # A record states an epsilon above 0.
    stated = max(accounting.zcdp_epsilon(mechanism.rho, delta), _LEAST_PARAMETER)
    return _Noise("Gaussian", GRID_STEPS / Fraction(mu), GRID_STEPS / mu, mechanism, stated, delta)


def _validate_parameter(name: str, value: float | None) -> float:
    parameter = number(name, value)
    if not _LEAST_PARAMETER <= parameter <= _MOST_PARAMETER:
        refuse(name, value, f"it must lie in [{_LEAST_PARAMETER:g}, {_MOST_PARAMETER:g}]")
    return parameter


def _choose_grid(problem: DiscrepancyProblem, private: Private) -> _Grid:
    """The grid of B and (B / n + 2 xi) / GRID_STEPS, computed from public numbers alone."""
    m, n, d = len(problem.source.y), len(problem.target.y), len(problem.ball.center)
    largest_score = Fraction(problem.ball.outer_radius) * Fraction(problem.bounds.norm)
    loss_bound = (largest_score + Fraction(LABEL_BOUND)) ** 2
    # No row has a larger residual than the root of B, and its error is in units of the square.
    xi = loss_bound * Fraction(gap_bound(d) + moments_error(m, d) + moments_error(n, d))
    sensitivity = loss_bound / (n if private == "target" else m) + 2 * xi
    return _Grid(loss_bound, sensitivity / GRID_STEPS)


def _round_to_grid(value: float, grid: _Grid) -> int:
    """The index of the nearest multiple of the step.

    Values at most k steps apart, k an integer, get indices at most k apart.
    """
    return math.floor(Fraction(value) / grid.step + Fraction(1, 2))


def _draw_noise(noise: _Noise, random_state: RandomState) -> int:
    sampler = discrete_laplace if noise.law == "Laplace" else discrete_gaussian
    return int(sampler(noise.scale, random_state=random_state))
