"""A private discrepancy: of exact sums, on a grid, so that its noise is drawn exactly."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ... import accounting
from ..._support.json_text import JsonText
from ..._support.notes import keep_result
from ..._support.random_state import check_random_state
from ..._support.types import Floats, Integers, RandomState
from ..._support.validate import bounded_positive, number, one_of, probability, refuse, shorten
from ...accounting.mechanisms import DiscreteLaplace, GaussianMechanism, Mechanism
from ...budget.account import Budget, spend
from ...data.chunks import Chunks
from ...data.states import State
from ...exceptions import ParameterError, ShapeError
from ...noise import discrete_laplace, rounded_gaussian
from ...record import PrivacyRecord, rng_of
from ..domains import open_domain
from .exact import DOMAINS, LABEL_BOUND, Private, gap_bound, maximize_magnitude
from .moments import (
    UNIT,
    Ball,
    RecordBounds,
    Sample,
    choose_units,
    fold_moments,
    refuse_beyond,
    restrict_ball,
    unit_of,
    validate_samples,
)

# The sensitivity in steps of the grid: rounding is small beside the noise, and the accountants
# compose integer noise of such a sensitivity.
GRID_STEPS = 1024
# Scales of noise that are drawn exactly lie below 2**50.
_LEAST_PARAMETER, _MOST_PARAMETER = 1e-9, 1e6


@dataclass(frozen=True, kw_only=True)
class ReleasedDiscrepancy(JsonText):
    """A discrepancy with noise; any use of it is free of further privacy cost.

    Attributes:
        value: The released discrepancy, in [0, loss_bound].
        deviation: Standard deviation of the noise.
        loss_bound: The largest loss B of any weights of the ball on any record.
        mechanism: The release as accounting composes it.
        record: The PrivacyRecord of the private sample.
        sizes: The numbers m of source and n of target records.
        radius: Radius of the ball around 0 that holds all weights of the supremum.
        norm_bound: Bound on the norm of all rows.

    Examples:
        >>> import numpy as np
        >>> from hdp_fast.adaptation import release_discrepancy
        >>> X = np.linspace(-1, 1, 2_000)[:, None]
        >>> data = X, 0.5 * X[:, 0], X, -0.5 * X[:, 0]
        >>> released = release_discrepancy(*data, radius=1, norm_bound=1, epsilon=1)
        >>> print(f"deviation {released.deviation:.4f} for values up to {released.loss_bound}")
        deviation 0.0028 for values up to 4.0
        >>> released.mechanism, released.sizes
        (DiscreteLaplace(epsilon=1.0, sensitivity=1024, neighbors='replace_one'), (2000, 2000))
    """

    value: float
    deviation: float
    loss_bound: float
    mechanism: Mechanism
    record: PrivacyRecord
    sizes: tuple[int, int]
    radius: float
    norm_bound: float

    def _to_fields(self) -> dict[str, Any]:
        """The attributes; the mechanism comes with its kind."""
        mechanism = self.mechanism
        return {**vars(self), "mechanism": {"kind": type(mechanism).__name__, **vars(mechanism)}}


class _DiscrepancyGrid(NamedTuple):
    """The grid on which a record moves the value by at most GRID_STEPS.

    Attributes:
        loss_bound: The largest loss of records within their bounds.
        gap: Bound on the distance of the computed value from the supremum.
        step: The distance of two points of the grid.
    """

    loss_bound: Fraction
    gap: Fraction
    step: Fraction


class _DiscrepancyNoise(NamedTuple):
    """The law of the noise, its scale in steps of the grid, and its privacy."""

    law: str
    scale: Fraction
    deviation: float
    mechanism: Mechanism
    epsilon: float
    delta: float


@keep_result
def release_discrepancy(
    X_source: ArrayLike | Chunks,
    y_source: ArrayLike | None,
    X_target: ArrayLike | Chunks,
    y_target: ArrayLike | None = None,
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
    """Releases the discrepancy with noise, for algorithms that weigh public records by it.

    The discrepancy is the supremum of |mean target loss - mean source loss| over |w| <= radius, as
    in discrepancy. Exactly one of epsilon and mu must be set.

    Args:
        X_source: Records of the source, finite real numbers of shape (m, d), m and d at least 1; or
            data.Chunks of them with their labels. Columns that have names are put into the target's
            order.
        y_source: Labels of the source, finite real numbers of shape (m,). None beside Chunks.
        X_target: Records of the target, finite real numbers of shape (n, d), n at least 1; or
            data.Chunks of them with their labels.
        y_target: Labels of the target, finite real numbers of shape (n,). None beside Chunks.
        radius: Public bound on the norm of the weights, in [1e-30, 1e30].
        norm_bound: Public bound on the norm of the rows, in [1e-30, 1e30]. Rows of the private
            sample are shrunk to this norm and its labels are clipped to [-1, 1], silently; the
            public sample must keep both bounds.
        epsilon: Privacy parameter of discrete Laplace noise of scale sensitivity / epsilon, in
            [1e-9, 1e6]; None takes mu.
        mu: Ratio of sensitivity to standard deviation of rounded Gaussian noise, in [1e-9, 1e6];
            None takes epsilon.
        delta: Privacy parameter in (0, 1) at which the record of Gaussian noise states its epsilon.
        private: The sample whose records are protected, "target" or "source"; the other one is
            public.
        around: Public center of a ball that restricts the supremum, shape (d,), of norm at most
            radius; local_radius must come with it. None for no restriction.
        local_radius: Public radius of that ball, in [1e-30, 1e30]. Where the ball leaves the ball
            of `radius`, the supremum is over the smallest ball that holds their intersection.
        random_state: None draws from the operating system. An int or a Generator makes a
            reproducible stream for tests, which protects no one who knows it.
        budget: The budget that the release is charged to before any coin is drawn; None charges
            nothing.

    Returns:
        The value, its noise and its record.

    Raises:
        ShapeError: An array has another shape than described.
        ParameterError: An entry is no finite real number, a parameter is out of range, a public row
            or label exceeds its bound, not exactly one of epsilon and mu is set, only one of around
            and local_radius is, or the frames of both samples have different columns.
        BudgetExceeded: The budget has less than the release's epsilon or delta left.
        Exception: What the functions of Chunks raise; nothing is spent then.

    Guarantee:
        The release is epsilon-DP, or mu-Gaussian differentially private, for the private sample
        under "replace_one"; its random draws are exact. Each record of either sample becomes
        integers by itself: the row is shrunk to norm_bound and rounded to multiples of a public
        unit, at most U of them long, which is checked in integers; the label is clipped and rounded
        to a multiple of 1 / U. The sums of their products are exact, so that neither the order of
        the records nor how they are cut into parts moves a bit. With d columns, `U unit` is
        `norm_bound / (1 - (1 + sqrt(d) / 2) / U)`; U is `2**21` for up to a million records. For
        weights of norm up to R a record's loss lies in [0, B], where `B = (R U unit + 1)**2`.
        Replacing one of n private records therefore moves the mean loss of all weights, and with it
        the supremum, by at most B / n, and the computed value by at most 2 xi more (proved). xi
        bounds the distance of the computed value from the supremum of these integers; it is public:
        it is computed from d and B, because a gap that was computed from the records would show in
        the noise. That the gap is below xi rests on numpy.linalg.eigh, whose error would have to be
        50 times the largest one seen; this is measured, not proved. The value is rounded to a grid
        of 1024 steps to B / n + 2 xi, so that the integer sensitivity is exactly 1024. No coin is
        drawn and no budget spent where the call raises. The running time is not protected.

    Cost:
        `O((m + n) d**2)` by BLAS in a pass over the rows, in blocks, and `O(d**3)`. Chunks are read
        twice, once to count them.

    Source:
        Bassily, Cortes, Mao and Mohri 2024, Section 4, whose Laplace noise, of scale 2 B / (epsilon
        n), is epsilon / 2-DP where the supremum is exact; Mironov 2012 for the grid.

    Examples:
        >>> import numpy as np
        >>> from hdp_fast.adaptation import release_discrepancy
        >>> from hdp_fast.budget import Budget
        >>> X, b = np.linspace(-1, 1, 2_000)[:, None], Budget(1.0, 1e-6)
        >>> data = X, 0.5 * X[:, 0], X, -0.5 * X[:, 0]  # the discrepancy is 0.667
        >>> released = release_discrepancy(*data, radius=1, norm_bound=1, epsilon=0.5, budget=b)
        >>> bool(abs(released.value - 0.667) < 0.1), b.remaining.epsilon
        (True, 0.5)
    """
    check_random_state(random_state)
    noise = _calibrate_noise(epsilon, mu, probability("delta", delta))
    one_of("private", private, DOMAINS)
    bound = bounded_positive("norm_bound", norm_bound)
    largest = bounded_positive("radius", radius)
    domains = _open_domains(X_source, y_source, X_target, y_target)
    ball, _ = restrict_ball(domains[1].columns, largest, around, local_radius)
    bounds = RecordBounds(bound, LABEL_BOUND)
    grid = _choose_grid(domains, bounds, ball, private)
    record = PrivacyRecord(
        mechanism="adaptation.release_discrepancy",
        source="Bassily, Cortes, Mao and Mohri 2024, Section 4, with an exact supremum",
        neighbors="replace_one",
        epsilon=noise.epsilon,
        delta=noise.delta,
        noise=f"{noise.law} on multiples of {float(grid.step):g}",
        rng=rng_of(random_state),
    )
    # Nothing is released before the noise: a refused budget costs only time.
    difference = _compare_losses(domains, bounds, ball, private)
    value = maximize_magnitude(difference, "exact").value
    with spend(budget, record):
        steps = _round_to_grid(value, grid) + _draw_noise(noise, random_state)
    return ReleasedDiscrepancy(
        value=float(min(max(steps * grid.step, Fraction(0)), grid.loss_bound)),
        deviation=noise.deviation * float(grid.step),
        loss_bound=float(grid.loss_bound),
        mechanism=noise.mechanism,
        record=record,
        sizes=(domains[0].n, domains[1].n),
        radius=ball.outer_radius,
        norm_bound=bound,
    )


def _calibrate_noise(epsilon: float | None, mu: float | None, delta: float) -> _DiscrepancyNoise:
    if (epsilon is None) == (mu is None):
        pair = f"epsilon = {shorten(epsilon)} and mu = {shorten(mu)}"
        raise ParameterError(f"{pair}, but exactly one of them must be given")
    if mu is None:
        epsilon = _validate_parameter("epsilon", epsilon)
        # A ledger reads a float as its shortest decimal, which may be a little less.
        spent = min(Fraction(epsilon), Fraction(repr(epsilon)))
        deviation = math.sqrt(2) * GRID_STEPS / epsilon
        mechanism: Mechanism = DiscreteLaplace(epsilon, GRID_STEPS)
        return _DiscrepancyNoise(
            "discrete Laplace", GRID_STEPS / spent, deviation, mechanism, epsilon, 0.0
        )
    mu = _validate_parameter("mu", mu)
    # Integers plus a normal deviate that is rounded: the Gaussian mechanism.
    mechanism = GaussianMechanism(mu)
    # A record states an epsilon above 0.
    stated = max(accounting.gaussian_epsilon(mu, delta), _LEAST_PARAMETER)
    return _DiscrepancyNoise(
        "rounded Gaussian", GRID_STEPS / Fraction(mu), GRID_STEPS / mu, mechanism, stated, delta
    )


def _validate_parameter(name: str, value: float | None) -> float:
    parameter = number(name, value)
    if not _LEAST_PARAMETER <= parameter <= _MOST_PARAMETER:
        refuse(name, value, f"it must lie in [{_LEAST_PARAMETER:g}, {_MOST_PARAMETER:g}]")
    return parameter


class _Domain(NamedTuple):
    """Records of a domain: what is public of them, and how the states of their parts add up."""

    name: str
    n: int
    columns: int
    fold: Callable[[Callable[..., State]], State]


def _open_domains(X_source: Any, y_source: Any, X_target: Any, y_target: Any) -> list[_Domain]:
    """The records of both domains, in one array or in parts.

    Raises: ShapeError, ParameterError.
    """
    if not isinstance(X_source, Chunks) and not isinstance(X_target, Chunks):
        for name, labels in (("y_source", y_source), ("y_target", y_target)):
            if labels is None:
                rule = "arrays of records must come with their labels"
                raise ParameterError(f"{name} = None, but {rule}")
        samples = validate_samples(X_source, y_source, X_target, y_target)
        return [_Domain(name, len(y), X.shape[1], partial(_apply, X, y)) for name, X, y in samples]
    target = open_domain("target", X_target, y_target, "squared")
    source = open_domain("source", X_source, y_source, "squared", names=target.names)
    if source.columns != target.columns:
        features = f"X_target has {target.columns:,} features"
        raise ShapeError(f"{features}, but X_source has {source.columns:,}")
    return [_Domain(each.name, each.n, each.columns, each.fold) for each in (source, target)]


def _apply(X: Any, y: Floats, task: Callable[..., State]) -> State:
    return task(X, y)


def _fold_records(
    X: Any, y: Floats, *, name: str, bounds: RecordBounds, units: int, public: bool
) -> State:
    """The state of some records; public ones must keep the bounds."""
    sample = Sample(name, X, y)
    if public:
        refuse_beyond(sample, bounds)
    return fold_moments("adaptation.release_discrepancy", sample, bounds, units, labels=True)


def _compare_losses(
    domains: list[_Domain], bounds: RecordBounds, ball: Ball, private: Private
) -> Floats:
    """The difference of the domains' mean losses, as _mean_losses has them, from exact sums."""
    matrices = []
    for name, n, d, fold in domains:
        units, public = choose_units(n), name != private
        task = partial(_fold_records, name=name, bounds=bounds, units=units, public=public)
        sums = fold(task).sums["moments"]
        matrices.append(_mean_losses(sums, n, unit_of(bounds, units, d), units, ball))
    difference: Floats = matrices[1] - matrices[0]
    return difference


def _mean_losses(sums: Integers, n: int, unit: float, units: int, ball: Ball) -> Floats:
    """Return H such that v'Hv is the mean loss at v = (z, -1), for weights center + radius z."""
    means, (center, radius) = sums / n, ball
    second, cross = means[:-1, :-1] * unit**2, means[:-1, -1] * (unit / units)
    along = second @ center
    H: Floats = np.empty_like(means)
    H[:-1, :-1] = second * radius**2
    H[:-1, -1] = H[-1, :-1] = radius * (cross - along)
    H[-1, -1] = means[-1, -1] / units**2 - 2 * (center @ cross) + center @ along
    return H


def _losses_error(d: int) -> float:
    """Return a bound on the error of v'Hv for the difference of two such H, in units of B.

    It holds for |z| <= 1. Entries of the means have at most 6 roundings, products with the center d
    more each. With every magnitude in place of its number, v'Hv is at most the square of the
    largest |w| |x| + |y|, since the matrix of the |mean of x_i x_j| has at most the Frobenius norm
    mean |x|**2.
    """
    return 1.01 * UNIT * 2 * (2 * d + 26)


def _choose_grid(
    domains: list[_Domain], bounds: RecordBounds, ball: Ball, private: Private
) -> _DiscrepancyGrid:
    """Return B and the grid of step (B / n + 2 xi) / GRID_STEPS, from public numbers alone."""
    d = domains[0].columns
    radius = Fraction(ball.outer_radius)
    losses = {}
    for name, n, _, _ in domains:
        units = choose_units(n)
        # Rounding may make a row this much longer than its bound.
        norm = units * Fraction(unit_of(bounds, units, d))
        losses[name] = (radius * norm + Fraction(LABEL_BOUND)) ** 2
    xi = max(losses.values()) * Fraction(gap_bound(d) + _losses_error(d))
    n = next(domain.n for domain in domains if domain.name == private)
    loss_bound = (radius * Fraction(bounds.norm) + Fraction(LABEL_BOUND)) ** 2
    return _DiscrepancyGrid(loss_bound, xi, (losses[private] / n + 2 * xi) / GRID_STEPS)


def _round_to_grid(value: float, grid: _DiscrepancyGrid) -> int:
    """Return the index of the nearest multiple of the step.

    Values at most k steps apart, k an integer, get indices at most k apart.
    """
    return math.floor(Fraction(value) / grid.step + Fraction(1, 2))


def _draw_noise(noise: _DiscrepancyNoise, random_state: RandomState) -> int:
    sampler = discrete_laplace if noise.law == "discrete Laplace" else rounded_gaussian
    return int(sampler(noise.scale, random_state=random_state))
