"""Classes of centered rows: means, a full-batch descent and a scale, under one Gaussian budget."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from .. import accounting, noise
from .._support.random_state import make_stream
from .._support.types import Floats, Integers
from .._support.validate import refuse
from ..accounting.discrete_gaussian import MOST_BITS
from ..budget.account import check_charge, spend
from ..data.goal import Goal
from ..data.rows import PlainRows, Rows, blocks_of
from ..exceptions import ShapeError
from ..record import PrivacyRecord, gaussian_law, rng_of
from .centered_rows import center, center_evenly, center_with_noise, count_powers
from .descents import SGDPlan
from .linear_model import LinearLoss, LinearModel, SoftmaxModel, largest_softmax_loss
from .margin_scale import estimate_scale, guess_scale, margin_edges
from .moment_equation import LogisticMoments
from .noisy_descent import (
    DescentNoise,
    DescentPlan,
    Grid,
    IntegerRows,
    calibrate_descent,
    descend,
    find_sigma,
    plan_descent,
)
from .statistics_noise import note_few

# Shares of the square of mu: of the means, and of the margins in what is left.
_OF_MEANS = _OF_MARGINS = Fraction(1, 20)
# From here on means help, where their noise is below a share of half a column's range.
_CLEAR_MEANS, _BLUR = 100, 0.12
# Effective records for each root of a column from which squares of numbers help, and without noise.
_SQUARES, _SQUARES_WITHOUT_NOISE = 600, 300
# The variance of the prior that is a ridge without noise: for two classes, and for more. Its
# solution is as exact as the share of its norm says.
_VARIANCES, _TOLERANCE = (1.0, 3.0), 1e-2
# What stands in the place of the constant 1 while weights are learned.
_CONSTANT = 1.5
# Rows that are centered by means are shrunk to so many times their typical norm.
_REACH = 1.0
# The digits of sums of means, and of their noise.
_SUM_BITS, _NOISE_BITS = 61, 48
_ROUNDING = 1 + 1e-9


class ReleasedClasses(NamedTuple):
    """A released model of classes.

    Attributes:
        rows: The map from records to centered rows.
        model: The model of them.
        record: What protects the records; None where nothing does.
        noise: What is known of the noise in the weights; None without noise.
    """

    rows: Rows
    model: LinearModel | SoftmaxModel
    record: PrivacyRecord | None
    noise: DescentNoise | None = None


class _Plan(NamedTuple):
    """What is public before a record is touched."""

    squares: bool
    means: tuple[int, Fraction] | None
    descent: DescentPlan
    grid: Grid
    margins: Fraction
    clear: float
    stated: SGDPlan
    record: PrivacyRecord


def release_classes(
    unit: Rows,
    rows: Floats | PlainRows,
    codes: Integers,
    classes: int,
    goal: Goal,
    *,
    name: str,
) -> ReleasedClasses:
    """Charge the budget, release means where they are clear, a noisy descent and a scale.

    Guarantee: (epsilon, delta)-DP under replace_one, exact, or for the persons who own the rows.
    More than that, all is one Gaussian mechanism, whose mu the record states. Each part adds
    rounded normal noise to integers, is chosen by what parts before it released, and has a distance
    of neighbors that no record exceeds: that of the means, `2 length` for each step of the descent,
    and sqrt(2) (classes - 1) for the counts of margins. The squares of distance over deviation add
    up to no more than that of mu, in rational numbers (Dong, Roth and Su 2022, Corollary 2). All
    else is post-processing. Settings for which no noise is enough are refused before anything is
    spent, and no value of a record raises or warns.

    unit: the map to plain rows.
    rows: what `unit` makes of the private records.
    codes: numbers of classes.
    goal: one that is checked, of the relation replace_one.
    name: of who releases, for the record.

    Cost: O(n d classes) for each of 8 to 120 steps.
    """
    check_charge(goal.budget, goal.epsilon)
    if not len(rows):
        raise ShapeError("there are no rows, but a model must be learned from one at least")
    codes = codes.astype(np.int64)
    if not goal.protects:
        return _fit_exactly(unit, rows[:], codes, classes)
    plan = _plan(unit, len(rows), classes, goal, name)
    # As many records as have gradients as long as their noise.
    note_few(len(rows), len(rows) * plan.stated.noise, goal.epsilon)
    stream = make_stream(goal.random_state)
    with spend(goal.budget, plan.record), np.errstate(all="ignore"):
        if plan.means is None:
            centered = center_evenly(unit)
        else:
            centered = center_with_noise(
                unit, rows, plan.means, squares=plan.squares, random_state=stream
            )
        bound = _bound_rows(centered, even=plan.means is None)
        scaled = (_scale_rows(centered, rows[block], bound) for block in blocks_of(len(rows)))
        records = IntegerRows.take(scaled, codes, classes, plan.grid)
        learned, (factor, spread) = _learn(records, plan, stream)
        model = _make_model(_restore(centered, learned * factor), bound, classes, plan.stated)
    entry = float(plan.grid.sigma) * plan.grid.unit / len(rows)
    return ReleasedClasses(
        centered, model, plan.record, DescentNoise(plan.descent, entry, factor, spread)
    )


def _plan(unit: Rows, n: int, classes: int, goal: Goal, name: str) -> _Plan:
    """Everything but the records; raises where no noise is enough."""
    mu = float(accounting.gaussian_mu(*goal.persons.gaussian_share(*goal.price)))
    d, numbers = len(unit.is_number), int(unit.is_number.sum())
    of_column = n * mu / math.sqrt(d + 1)
    clear = of_column / math.sqrt(classes - 1)
    squares = n * min(mu, 1.0) >= _SQUARES * math.sqrt(d + numbers)
    price, square = unit.squared_distance(count_powers(squares)), Fraction(mu) ** 2
    of_means = mu * math.sqrt(_OF_MEANS)
    means = None
    if of_column >= _CLEAR_MEANS and math.sqrt(price) <= _BLUR * n * of_means:
        means = _calibrate_means(price, n, square * _OF_MEANS)
        square *= 1 - _OF_MEANS
    squares = squares and means is not None
    descent = plan_descent(clear, classes)
    grid = calibrate_descent(descent, n, square * (1 - _OF_MARGINS)) if mu else None
    if grid is None:
        epsilon, delta = goal.price
        refuse("epsilon", epsilon, f"at delta = {delta:g} it needs more noise than is drawn")
    columns = d + numbers * squares
    weights = (columns + 1) * (1 if classes == 2 else classes)
    record = PrivacyRecord(
        mechanism=f"{name}, {columns} columns, {'means, ' if means else ''}"
        f"{descent.steps} steps on all records, margins",
        source="composition of Gaussian mechanisms (Dong, Roth and Su 2022)",
        neighbors=goal.neighbors,
        epsilon=goal.epsilon,
        delta=goal.settled_delta,
        noise="rounded normal on integers",
        rng=rng_of(goal.random_state),
        **gaussian_law(*goal.price),
    )
    margins = find_sigma(2 * (classes - 1) ** 2, square * _OF_MARGINS)
    stated, record = _state_plan(n, weights, descent, grid), goal.persons.state(record)
    return _Plan(squares, means, descent, grid, margins, clear, stated, record)


def _calibrate_means(price: int, n: int, square: Fraction) -> tuple[int, Fraction]:
    """The grid and the noise of means with this square of mu, which stand out of their noise."""
    room = _NOISE_BITS - math.ceil(math.log2(price / square) / 2)
    bits = min(MOST_BITS, _SUM_BITS - n.bit_length(), room)
    return bits, find_sigma(price << (2 * bits), square)


def _scale_rows(centered: Rows, rows: Floats, bound: float) -> Floats:
    """Rows of a mean squared norm of about 1, whose constant is larger than that of `centered`.

    bound: the norm that rows of `centered` are shrunk to.
    """
    made = centered.scale(rows)
    for block in blocks_of(len(made)):
        lengths = np.sqrt(np.einsum("ij,ij->i", made[block], made[block]))
        made[block] *= np.minimum(1.0, bound / lengths)[:, None] / _typical_norm(centered)
    made[:, -1] *= _CONSTANT
    return made


def scale_of(centered: Rows) -> Floats:
    """What _scale_rows multiplies the columns of centered rows with."""
    scale = np.full(len(centered.names_with_squares) + 1, 1 / _typical_norm(centered))
    scale[-1] *= _CONSTANT
    return scale


def _typical_norm(centered: Rows) -> float:
    return math.sqrt(centered.norm**2 - 1 + _CONSTANT**2)


def _restore(centered: Rows, weights: Floats) -> Floats:
    """The weights of centered rows, by those of what _scale_rows makes of them."""
    restored: Floats = weights * scale_of(centered)[:, None]
    return restored


def _learn(
    records: IntegerRows, plan: _Plan, stream: np.random.Generator | None
) -> tuple[Floats, tuple[float, float]]:
    """The weights of a descent, and a factor that keeps decisions and loses less.

    The factor comes with the deviation of its logarithm.
    """
    (n, d), descent = records.entries.shape, plan.descent
    shape = (descent.steps, d, records.columns)
    drawn = noise.rounded_gaussian(plan.grid.sigma, shape, random_state=stream)
    path = descend(records, descent, drawn)
    edges = margin_edges(float(np.linalg.norm(path.weights)) or 1.0)
    counts = records.count_margins(path.weights, edges)
    counts = counts + noise.rounded_gaussian(plan.margins, counts.shape, random_state=stream)
    prior = guess_scale(plan.clear, descent.growth, path.along, path.deviation)
    pairs = records.classes - 1
    factor = estimate_scale(counts / pairs, edges, float(plan.margins) / pairs, n, prior)
    return path.weights, factor


def _fit_exactly(unit: Rows, rows: Floats, codes: Integers, classes: int) -> ReleasedClasses:
    """Logistic regression without noise, with a ridge that lets weights be finite.

    The ridge is a normal prior for the weights of columns whose variance is 1.
    """
    n, d, numbers = *rows.shape, int(unit.is_number.sum())
    squares = n >= _SQUARES_WITHOUT_NOISE * math.sqrt(d + numbers)
    centered = center(unit, rows, squares=squares, epsilon=math.inf, delta=0.5, random_state=None)
    bound = _bound_rows(centered, even=False)
    made = _scale_rows(centered, rows, bound)
    shares = np.zeros((n, classes))
    shares[np.arange(n), codes] = 1 / n
    penalty = 1 / (_VARIANCES[classes > 2] * n * _typical_norm(centered) ** 2)
    weights = LogisticMoments(made, made.T @ shares).solve(penalty, tolerance=_TOLERANCE).weights
    if classes == 2:
        weights = weights[:, [1]] - weights[:, [0]]
    model = _make_model(_restore(centered, weights), bound, classes, None)
    return ReleasedClasses(centered, model, None)


def _make_model(
    weights: Floats, bound: float, classes: int, plan: SGDPlan | None
) -> LinearModel | SoftmaxModel:
    reach = float(np.linalg.norm(weights)) * bound
    weights.flags.writeable = False
    kind: dict[str, Any] = {"plan": plan}
    if classes == 2:
        loss = LinearLoss("logistic", 1.0, bound, None, float(np.logaddexp(0, reach)))
        return LinearModel(weights[:, 0], loss, **kind)
    loss = LinearLoss("softmax", 1.0, bound, None, largest_softmax_loss(classes, reach))
    return SoftmaxModel(weights, loss, **kind)


def _bound_rows(centered: Rows, *, even: bool) -> float:
    """The norm that rows are shrunk to: none is longer where their noise hides that."""
    return bound_norm(centered) if even else _REACH * _typical_norm(centered)


def bound_norm(centered: Rows) -> float:
    """A bound on the norm of all rows, which no record exceeds: by public or released numbers."""
    assert centered.center is not None
    assert centered.factor is not None
    farthest = np.maximum(centered.center, 1 - centered.center)
    entries, law = [farthest * centered.factor, np.ones(1)], centered.squares
    if law is not None:
        linear = np.abs(law.slope) * farthest[centered.is_number]
        entries.append((np.maximum(law.mean, 1 - law.mean) + linear) * law.factor)
    return float(np.linalg.norm(np.concatenate(entries))) * _ROUNDING


def _state_plan(n: int, weights: int, descent: DescentPlan, grid: Grid) -> SGDPlan:
    """The descent in the words of PrivateSGD, every record being in every batch."""
    return SGDPlan(
        n=n,
        weights=weights,
        steps=descent.steps,
        batch_size=n,
        radius=None,
        clip_norm=descent.clip_norm,
        noise_multiplier=float(grid.sigma / grid.length),
        chosen=("steps", "batch_size", "clip_norm"),
        excess_risk=None,
    )
