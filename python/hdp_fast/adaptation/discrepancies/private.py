"""A private discrepancy: on a grid, so that its noise is drawn exactly."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from numpy.typing import ArrayLike

from ... import accounting
from ..._support.random_state import check_random_state
from ..._support.types import RandomState
from ..._support.validate import bounded_positive, number, probability, refuse, shorten
from ...accounting.mechanisms import ZCDP, DiscreteLaplace, Mechanism
from ...budget.account import Budget, spend
from ...exceptions import ParameterError
from ...noise import discrete_gaussian, discrete_laplace
from ...record import PrivacyRecord, rng_of
from .exact import LABEL_BOUND, Private, Problem, posed, solved
from .moments import moments_error
from .trust_region import gap_bound

# Steps of the grid that one record can move the value by: rounding is lost in the noise, and the
# accountants compose integer noise of such a sensitivity.
STEPS = 1024
# Scales of noise that are drawn exactly lie below 2**50.
_LEAST_PARAMETER, _MOST_PARAMETER = 1e-9, 1e6


@dataclass(frozen=True, kw_only=True)
class ReleasedDiscrepancy:
    """A discrepancy with noise, which may be used at will.

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


class _Grid(NamedTuple):
    """A largest loss and the grid on which a record moves the value by at most STEPS."""

    loss_bound: Fraction
    step: Fraction


class _Noise(NamedTuple):
    """Which noise, its scale in steps of the grid, and what it promises."""

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
        One record moves the supremum by at most B / n, B = (reach norm_bound + 1)**2 for weights of
        norm up to reach (n: private records), and what is computed by at most 2 xi more (proved).
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
    noise = _noise(epsilon, mu, probability("delta", delta))
    if private not in ("target", "source"):
        refuse("private", private, "it must be one of target, source")
    data, bound = (
        (X_source, y_source, X_target, y_target),
        bounded_positive("norm_bound", norm_bound),
    )
    problem = posed(data, radius, bound, private, around, local_radius)
    grid = _grid(problem, private)
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
    found = solved(problem)
    with spend(budget, record):
        steps = _on_grid(found.value, grid) + _drawn(noise, random_state)
    return ReleasedDiscrepancy(
        value=float(min(max(steps * grid.step, Fraction(0)), grid.loss_bound)),
        deviation=noise.deviation * float(grid.step),
        loss_bound=float(grid.loss_bound),
        mechanism=noise.mechanism,
        record=record,
        sizes=(len(problem.source.y), len(problem.target.y)),
        radius=problem.ball.reach,
        norm_bound=bound,
    )


def _noise(epsilon: float | None, mu: float | None, delta: float) -> _Noise:
    if (epsilon is None) == (mu is None):
        given = f"epsilon = {shorten(epsilon)} and mu = {shorten(mu)}"
        raise ParameterError(f"{given}, but exactly one of them must be given")
    if mu is None:
        found = _parameter("epsilon", epsilon)
        # A ledger takes a float for its shortest decimal, which may be a little less.
        spent = min(Fraction(found), Fraction(repr(found)))
        deviation = math.sqrt(2) * STEPS / found
        mechanism: Mechanism = DiscreteLaplace(found, STEPS)
        return _Noise("Laplace", STEPS / spent, deviation, mechanism, found, 0.0)
    found = _parameter("mu", mu)
    mechanism = ZCDP(math.nextafter(found**2 / 2, math.inf))
    # A record states an epsilon above 0.
    stated = max(accounting.zcdp_epsilon(mechanism.rho, delta), _LEAST_PARAMETER)
    return _Noise("Gaussian", STEPS / Fraction(found), STEPS / found, mechanism, stated, delta)


def _parameter(name: str, value: float | None) -> float:
    found = number(name, value)
    if not _LEAST_PARAMETER <= found <= _MOST_PARAMETER:
        refuse(name, value, f"it must lie in [{_LEAST_PARAMETER:g}, {_MOST_PARAMETER:g}]")
    return found


def _grid(problem: Problem, private: Private) -> _Grid:
    """B, and (B / n + 2 xi) / STEPS, of public numbers only."""
    m, n, d = len(problem.source.y), len(problem.target.y), len(problem.ball.center)
    reach = Fraction(problem.ball.reach) * Fraction(problem.bounds.norm)
    loss_bound = (reach + Fraction(LABEL_BOUND)) ** 2
    # No row has a larger residual than the root of B, and its error is in units of the square.
    xi = loss_bound * Fraction(gap_bound(d) + moments_error(m, d) + moments_error(n, d))
    sensitivity = loss_bound / (n if private == "target" else m) + 2 * xi
    return _Grid(loss_bound, sensitivity / STEPS)


def _on_grid(value: float, grid: _Grid) -> int:
    """The nearest multiple of the step: values that differ by k steps are k apart, or fewer."""
    return math.floor(Fraction(value) / grid.step + Fraction(1, 2))


def _drawn(noise: _Noise, random_state: RandomState) -> int:
    sampler = discrete_laplace if noise.law == "Laplace" else discrete_gaussian
    return int(sampler(noise.scale, random_state=random_state))
