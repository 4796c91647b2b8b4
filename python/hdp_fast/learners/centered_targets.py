"""Private regression on centered rows: the interval and mean of the target, and its slopes."""

from __future__ import annotations

import math
from contextlib import nullcontext
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from .. import accounting, noise
from .._support.notes import note, note_large_delta
from .._support.random_state import make_stream
from .._support.types import Floats
from .._support.validate import read_only, refuse
from ..budget.account import spend
from ..data.goal import Goal
from ..data.rows import Rows, blocks_of
from ..record import PrivacyRecord, rng_of
from .centered_classes import bound_norm, scale_of
from .centered_rows import center, center_evenly, count_powers, settle_means
from .evidence import (
    CentralMoments,
    Shrunk,
    center_moments,
    fit_population,
    join_cross_moments,
    shrink_by_evidence,
    shrunk_covariance,
)
from .feature_maps import FeatureMap
from .noisy_descent import (
    DescentNoise,
    IntegerRows,
    calibrate_descent,
    cut_targets,
    descend,
    plan_target_descent,
    shrink_by_noise,
)
from .released_statistics import ReleasedStatistics
from .statistics_model import PopulationFit
from .statistics_noise import MOST_BITS
from .sufficient_statistics import SufficientStatistics, add_noise, add_up, calibrate
from .target_model import (
    Clip,
    TargetLaw,
    TargetModel,
    choose_clip,
    release_mean,
    release_square,
    scale_mean,
    settle_square,
    span_targets,
)

# Effective records times epsilon from which slopes were measured to be worth their noise, and from
# which the choice of a clip is.
_LEAST_SLOPES, _LEAST_CLIP = 400, 90
# Share of epsilon on the clip, with slopes, and with the mean alone.
_CLIP_SHARE, _CLIP_SHARE_ALONE = 0.1, 0.4
# The mean's share of what is left, and the deviation of its noise, as a share of the clip's width,
# that it may take half of what is left for.
_MEAN_SHARE, _MEAN_BLUR = 0.05, 0.015
# Shares of the squared budget of the Gaussian releases that the means of columns take: the least
# without squares and the largest. Between them their noise is this part of an interval.
_LEAST_CENTER, _CENTER_SHARE, _CENTER_NOISE = 0.1, 0.2, 0.02
# Shares of the rest that moments, and the mean square of residuals around slopes, take.
_MOMENT_SHARE, _SQUARE_SHARE = 0.6, 0.02
# How far records must stand out of the noise in a vector of moments, for residuals to be worth a
# share, and to how many of their root mean squares they are clipped.
_LEAST_CLEAR, _RESIDUAL_REACH = 35, 1.25
# Means are not released where their noise is above this: then moments tell them well enough.
_BLUR = 0.15
# Effective records for each root of a column from which squares of numbers were measured to help.
_SQUARES = 400
# What stands for the constant in rows that are centered evenly.
_CONSTANT = 1.5
# Rows are shrunk to this share of their root mean square, and to more where noise is small.
_REACH, _REACH_CLEAR, _REACH_WITHOUT_NOISE = 0.35, 75, 100.0
# Of a target that is clipped, in units of the longer way from its mean to an end.
_VARIANCE, _LEAST_VARIANCE = 1 / 9, 1e-12
# Of a descent: the shares of the squared budget that means take, at least and at most, and the mean
# square of targets. Measured on 10 tables, as the norm to which rows are shrunk is.
_FEWEST_MEANS, _MOST_MEANS, _OF_SQUARE, _REACH_OF_DESCENT = 0.1, 0.2, 0.02, 1.5
# The share of a column's variance that other columns are taken not to explain, for its deviations.
_OWN_SHARE = 0.03
# Far more than the rounding of an epsilon or a delta.
_STRETCH = 1 - 1e-9
_SOURCE = (
    "basic composition (Dwork et al. 2006) of permute-and-flip (McKenna and Sheldon 2020), "
    "discrete Laplace noise (Ghosh, Roughgarden and Sundararajan 2009)"
)
_SOURCE_OF_SLOPES = " and Gaussian noise (Balle and Wang 2018)"


class Part(NamedTuple):
    """The epsilon and delta of a part of a release."""

    epsilon: float
    delta: float = 0.0


@dataclass(frozen=True)
class Slopes:
    """How slopes are released, by public numbers alone.

    Attributes:
        whole: The cost of all Gaussian releases together.
        means: What means of columns cost each row; None where rows are centered evenly.
        moments: What moments cost each row.
        square: What the mean square of residuals costs each row; None without residuals.
        residuals: What their moments cost each row; None as well.
        squares: Whether squares of numbers become columns.
        reach: The norm to which rows are shrunk, for each unit of their root mean square.
    """

    whole: Part
    means: Part | None
    moments: Part
    square: Part | None
    residuals: Part | None
    squares: bool
    reach: float


@dataclass(frozen=True)
class Steps:
    """How slopes are released by a descent, by public numbers alone.

    Attributes:
        whole: The cost of all Gaussian releases together.
        means: What means of columns cost each row; None where rows are centered evenly.
        square: What the mean square of targets costs each row.
        steps: What all steps cost each row.
        squares: Whether squares of numbers become columns.
        clear: How far what records say stands out of the noise in a vector of the weights.
    """

    whole: Part
    means: Part | None
    square: Part
    steps: Part
    squares: bool
    clear: float

    @property
    def count(self) -> int:
        """The number of steps."""
        return plan_target_descent(self.clear, 1.0).steps


@dataclass(frozen=True)
class TargetPlan:
    """What is released, by public numbers alone.

    Attributes:
        clip: The cost of the interval to which the target is clipped; None where its bounds do.
        mean: The cost of the target's mean.
        slopes: How slopes are released; None where the mean is released alone.
    """

    clip: Part | None
    mean: Part
    slopes: Slopes | Steps | None


def plan_targets(unit: Rows, n: int, goal: Goal, method: str = "evidence") -> TargetPlan:
    """Share a goal out, and find that all parts have a noise that is drawn.

    method: "evidence" for moments, "descent" for steps. Without noise both are least squares.

    Raises:
        ParameterError: One has none.
    """
    if not goal.protects:
        free = Part(*goal.price)
        squares = _has_squares(unit, n, math.inf)
        parts = free, free, free, None, None
        return TargetPlan(None, free, Slopes(*parts, squares, _REACH_WITHOUT_NOISE))
    groups, rest = goal.persons.count_groups(n), goal.epsilon
    alone, clip = groups * rest < _LEAST_SLOPES, None
    if groups * rest >= _LEAST_CLIP:
        clip = Part(rest * (_CLIP_SHARE_ALONE if alone else _CLIP_SHARE))
        rest = _subtract(rest, clip.epsilon)
    mean = rest
    if not alone:
        aim = math.sqrt(2) / (_MEAN_BLUR * groups)
        mean = min(max(aim, _MEAN_SHARE * rest), rest / 2)
    scale_mean(mean, goal.persons.rows)
    slopes: Slopes | Steps | None = None
    if not alone:
        plan = _plan_steps if method == "descent" else _plan_slopes
        slopes = plan(unit, n, goal, Part(_subtract(rest, mean), goal.settled_delta))
    return TargetPlan(clip, Part(mean), slopes)


def _plan_slopes(unit: Rows, n: int, goal: Goal, whole: Part) -> Slopes:
    """Share the Gaussian budget out between means of columns, moments, and those of residuals."""
    groups, mu = goal.persons.count_groups(n), _mu(*goal.price)
    squares = _has_squares(unit, groups, mu)
    distance = math.sqrt(unit.squared_distance(count_powers(squares)))
    center = min((distance / (_CENTER_NOISE * groups * mu)) ** 2, _CENTER_SHARE)
    center = _CENTER_SHARE if squares else max(center, _LEAST_CENTER)
    means = Part(*goal.persons.gaussian_share(*_split(whole, center)))
    even = distance > _BLUR * n * _mu(*means)
    rest = 1.0 if even else 1 - center

    def take(share: float) -> Part:
        return Part(*goal.persons.gaussian_share(*_split(whole, share * rest)))

    columns = 1 + len(unit.is_number) + (int(unit.is_number.sum()) if squares else 0)
    clear = groups * mu / math.sqrt(columns)
    reach = _REACH * math.sqrt(max(clear / _REACH_CLEAR, 1.0))
    moments, square, residuals = take(1.0), None, None
    if clear >= _LEAST_CLEAR:
        moments, square = take(_MOMENT_SHARE), take(_SQUARE_SHARE)
        residuals = take(1 - _MOMENT_SHARE - _SQUARE_SHARE)
        settle_square(n, *square)
        calibrate(_describe(columns, 1.0, second=False), n, *residuals)
    if not even:
        settle_means(unit, squares, n, *means)
    calibrate(_describe(columns, 1.0), n, *moments)
    return Slopes(whole, None if even else means, moments, square, residuals, squares, reach)


def _plan_steps(unit: Rows, n: int, goal: Goal, whole: Part) -> Steps:
    """Share the Gaussian budget out between means of columns, a mean square, and steps."""
    groups, mu = goal.persons.count_groups(n), _mu(*whole)
    squares = _has_squares(unit, groups, _mu(*goal.price))
    distance = math.sqrt(unit.squared_distance(count_powers(squares)))
    wanted = (distance / (_BLUR * max(groups * mu, math.ulp(0.0)))) ** 2
    even = wanted > _MOST_MEANS
    center = 0.0 if even else max(wanted, _FEWEST_MEANS)

    def take(share: float) -> Part:
        return Part(*goal.persons.gaussian_share(*_split(whole, share)))

    means, square, steps = None, take(_OF_SQUARE), take(1 - center - _OF_SQUARE)
    settle_square(n, *square)
    if not even:
        means = take(center)
        settle_means(unit, squares, n, *means)
    clear = groups * mu / math.sqrt(len(unit.is_number) + 1)
    # The longest clip norm has the most noise.
    if calibrate_descent(plan_target_descent(clear, 1.0), n, _square(steps)) is None:
        rule = f"at delta = {whole.delta:g} it needs more noise than is drawn"
        refuse("epsilon", goal.epsilon, rule)
    return Steps(whole, means, square, steps, squares and not even, clear)


def _square(part: Part) -> Fraction:
    return Fraction(_mu(*part)) ** 2


class TargetRelease(NamedTuple):
    """The map to centered rows, the model of them, and what protects the records."""

    rows: Rows
    model: TargetModel
    record: PrivacyRecord | None


def release_targets(
    unit: Rows, rows: Floats, targets: Floats, goal: Goal, *, name: str, method: str = "evidence"
) -> TargetRelease:
    """Charge the budget; release the target's interval and mean, and slopes around it.

    (epsilon, delta)-DP under replace_one, exact, or for the persons who own the rows, by basic
    composition of three parts: an interval by permute-and-flip, pure; the mean of targets that are
    clipped to it by discrete Laplace noise, pure; and Gaussian noise on means of columns, then on
    moments, and then on the mean square and the moments of residuals around the slopes that these
    make, whose squares of mu add up to no more than that of the epsilon that is left and of all of
    delta. A descent has the mean square of targets and its steps instead of moments. What a record
    adds to a sum depends on itself and on what was released before. With k rows of a person the
    first two have k times the noise, and mu is divided by k. Where records are few the mean is
    released alone, and delta is not spent.

    rows: what `unit` makes of the private records that are used.
    targets: in [-1, 1].
    goal: one that is checked, of the relation replace_one.
    name: of who releases, for the record.
    method: as plan_targets has it.
    """
    plan = plan_targets(unit, len(rows), goal, method)
    record = _make_record(name, plan, goal) if goal.protects else None
    if record is not None:
        _note_before(plan, len(rows), goal)
    goal = goal._replace(random_state=make_stream(goal.random_state))
    with nullcontext() if record is None else spend(goal.budget, record):
        clip = _release_clip(plan, targets, goal)
        targets = targets.clip(*clip)
        law = TargetLaw(_release_mean(plan, targets, clip, goal), *clip)
        if plan.slopes is None:
            centered = center_evenly(unit)
            model = TargetModel(np.zeros(len(unit.is_number) + 1), centered.norm, law, 0.0, 0.0)
        elif isinstance(plan.slopes, Steps):
            centered, model = _descend_slopes(plan.slopes, unit, rows, targets, law, goal)
        else:
            centered, model = _release_slopes(plan.slopes, unit, rows, targets, law, goal)
    if record is not None and plan.slopes is not None:
        note_slopes(model)
    return TargetRelease(centered, replace(model, record=record), record)


def _release_clip(plan: TargetPlan, targets: Floats, goal: Goal) -> Clip:
    """The ends between which targets are clipped."""
    if not goal.protects:
        return span_targets(targets)
    if plan.clip is None:
        return Clip(-1.0, 1.0)
    stream: Any = goal.random_state
    return choose_clip(
        targets, epsilon=plan.clip.epsilon, rows=goal.persons.rows, random_state=stream
    )


def _release_mean(plan: TargetPlan, targets: Floats, clip: Clip, goal: Goal) -> float:
    """The mean of clipped targets, within the clip."""
    if not goal.protects:
        return float(targets.mean())
    stream: Any = goal.random_state
    rows = goal.persons.rows
    return release_mean(targets, clip, epsilon=plan.mean.epsilon, rows=rows, random_state=stream)


# Slopes by a descent -----------------------------------------------------------------------------


def _descend_slopes(
    plan: Steps, unit: Rows, rows: Floats, targets: Floats, law: TargetLaw, goal: Goal
) -> tuple[Rows, TargetModel]:
    """Release means of columns, unless centering is even, a mean square, and a descent's steps.

    The steps are one Gaussian mechanism, as noisy_descent.descend says, whatever the clip norm is,
    which follows the released mean square. Around released means scores have a mean near 0 and need
    no constant. The shrinkage reads released numbers alone.
    """
    stream: Any = goal.random_state
    n, mean_of_columns = len(rows), plan.means is not None
    if plan.means is None:
        centered = center_evenly(unit)
    else:
        epsilon, delta = plan.means
        centered = center(
            unit, rows, squares=plan.squares, epsilon=epsilon, delta=delta, random_state=stream
        )
    scale = scale_of(centered)
    bound = _REACH_OF_DESCENT / float(scale[0]) if mean_of_columns else bound_norm(centered)
    width = max(law.high - law.mean, law.mean - law.low)
    scaled = (targets - law.mean) / width
    square = release_square(scaled.clip(-1.0, 1.0), settle_square(n, *plan.square), stream)
    descent = plan_target_descent(plan.clear, math.sqrt(square))
    grid = calibrate_descent(descent, n, _square(plan.steps))
    assert grid is not None
    used = len(scale) - mean_of_columns

    def make(block: slice) -> Floats:
        made = centered.scale(rows[block])
        lengths = np.maximum(np.linalg.norm(made, axis=1), bound)
        shrunk: Floats = made * (bound / lengths)[:, None] * scale
        return shrunk[:, :used]

    records = IntegerRows.take(map(make, blocks_of(n)), cut_targets(scaled), 1, grid)
    drawn = noise.rounded_gaussian(grid.sigma, (descent.steps, used, 1), random_state=stream)
    weights = descend(records, descent, drawn).weights[:, 0]
    known = DescentNoise(
        descent, float(grid.sigma) * grid.unit / n, 1.0, 0.0, np.zeros(1), np.zeros(1)
    )
    spread = centered.spread_columns() * np.outer(scale[:-1], scale[:-1])
    shrunk = shrink_by_noise(weights[: len(spread)], np.diag(spread), known)
    times = np.zeros_like(scale)
    times[:used] = width * shrunk.factor * scale[:used]
    covariance = np.zeros((len(scale), len(scale)))
    covariance[:used, :used] = _noise_of_steps(known, spread, scale[-1], used)
    released = np.zeros_like(scale)
    released[:used] = weights
    return centered, TargetModel(
        weights=read_only(times * released),
        norm_bound=bound,
        law=replace(law, constant=1.0),
        explained=width**2 * shrunk.explained,
        left=width**2 * shrunk.left,
        covariance=covariance * np.outer(times, times),
    )


def _noise_of_steps(known: DescentNoise, spread: Floats, constant: float, used: int) -> Floats:
    """The covariance of a descent's weights: more where others explain a column, as they may."""
    second = np.diag(np.full(len(spread) + 1, _OWN_SHARE * constant**2))
    second[:-1, :-1] = _OWN_SHARE * spread
    values, vectors = np.linalg.eigh(second[:used, :used])
    covariance: Floats = (vectors * known.weight_variances(np.maximum(values, 0.0))) @ vectors.T
    return covariance


# Slopes by moments -------------------------------------------------------------------------------


def _release_slopes(
    slopes: Slopes, unit: Rows, rows: Floats, targets: Floats, law: TargetLaw, goal: Goal
) -> tuple[Rows, TargetModel]:
    """Release means of columns, unless centering is even, and moments; and shrink on evidence."""
    stream: Any = goal.random_state
    constant = 0.0
    if slopes.means is None:
        centered, constant = center_evenly(unit, squares=slopes.squares), _CONSTANT
    else:
        epsilon, delta = slopes.means
        centered = center(
            unit, rows, squares=slopes.squares, epsilon=epsilon, delta=delta, random_state=stream
        )
    made = centered.scale(rows)
    made[:, -1] = constant
    bound = math.sqrt(centered.norm**2 - 1 + constant**2) * slopes.reach
    width = max(law.high - law.mean, law.mean - law.low)
    scaled = (targets - law.mean) / width
    learned = _learn_slopes(slopes, made, scaled, bound, constant, goal)
    # What stands at the end of rows takes their mean off.
    last = -learned.mean / constant if constant else np.zeros_like(learned.mean)
    turn = width * np.vstack([np.eye(len(last)), last])
    return centered, TargetModel(
        weights=read_only(turn @ learned.shrunk.coefficients),
        norm_bound=bound,
        law=replace(law, constant=constant),
        explained=width**2 * learned.shrunk.explained,
        left=width**2 * learned.shrunk.left,
        covariance=None if learned.covariance is None else turn @ learned.covariance @ turn.T,
        population=None if learned.population is None else _turn(learned.population, turn),
    )


def _turn(fit: PopulationFit, turn: Floats) -> PopulationFit:
    return PopulationFit(turn @ fit.coefficients, turn @ fit.covariances @ turn.T)


class LearnedSlopes(NamedTuple):
    """What the moments of rows say: coefficients, the mean of rows, and what noise makes of both.

    Attributes:
        shrunk: The coefficients, shrunk on evidence.
        mean: The mean of rows, shape (d,).
        covariance: What noise makes in the coefficients; None without noise.
        population: Least squares for the population; None where it is not told.
    """

    shrunk: Shrunk
    mean: Floats
    covariance: Floats | None = None
    population: PopulationFit | None = None


def _learn_slopes(
    slopes: Slopes, rows: Floats, targets: Floats, bound: float, constant: float, goal: Goal
) -> LearnedSlopes:
    """Coefficients by released moments; then by residuals around them, too.

    Residuals vary less than the target where slopes explain much, and so their moments have less
    noise.
    """
    released = _release_moments(slopes.moments, rows, targets, bound, goal)
    assert released.second_moments is not None
    n, unit = released.n, bound / released.n
    cross_deviation, moved = released.sums_deviation * unit, released.moments_deviation
    noise = {"moments_deviation": moved * bound * unit}
    whole = released.second_moments * bound * unit
    moments, cross, mean = _center(whole, released.cross_moments[:, 0] * unit, constant)
    variance = _VARIANCE if goal.protects else max(float(targets.var()), _LEAST_VARIANCE)
    first = shrink_by_evidence(
        moments, cross, cross_deviation=cross_deviation, n=n, variance=variance, **noise
    )
    if not goal.protects:
        return LearnedSlopes(first, mean)
    if slopes.square is None or slopes.residuals is None:
        square = cross_deviation**2
        covariance = shrunk_covariance(first, first.coefficients, cross_variance=square, **noise)
        return LearnedSlopes(first, mean, covariance)
    last = -float(mean @ first.coefficients) / constant if constant else 0.0
    lengths = np.maximum(np.linalg.norm(rows, axis=1), bound)
    residuals = targets - (rows @ np.append(first.coefficients, last)) * (bound / lengths)
    stream: Any = goal.random_state
    left = release_square(residuals.clip(-1.0, 1.0), settle_square(n, *slopes.square), stream)
    clip = min(_RESIDUAL_REACH * math.sqrt(left), 1.0)
    residuals = (residuals / clip).clip(-1.0, 1.0)
    again = _release_moments(slopes.residuals, rows, residuals, bound, goal, second=False)
    residual_deviation = again.sums_deviation * unit * clip
    joined, share = join_cross_moments(
        moments,
        cross,
        _center(whole, again.cross_moments[:, 0] * (unit * clip), constant).cross,
        first,
        cross_deviation=cross_deviation,
        residual_deviation=residual_deviation,
        **noise,
    )
    shrunk = shrink_by_evidence(
        moments,
        joined,
        cross_deviation=residual_deviation,
        n=n,
        variance=variance,
        left_variance=left,
        open_square=first.open,
        **noise,
    )
    square = ((1 - share) * cross_deviation) ** 2 + (share * residual_deviation) ** 2
    times = shrunk.coefficients - share * first.coefficients
    covariance = shrunk_covariance(shrunk, times, cross_variance=square, **noise)
    population = None
    # Rows whose mean is told by the moments have more noise in them than is said here.
    if not constant:
        population = fit_population(
            moments, cross, cross_deviation=cross_deviation, n=n, left_variance=left, **noise
        )
    return LearnedSlopes(shrunk, mean, covariance, population)


def _center(moments: Floats, cross: Floats, constant: float) -> CentralMoments:
    """Central moments by those of rows with this constant, or of rows that are centered."""
    if constant:
        return center_moments(moments, cross, constant)
    # The last column is 0, and what was released of it noise.
    return CentralMoments(moments[:-1, :-1], cross[:-1], np.zeros(len(cross) - 1))


def _describe(columns: int, bound: float, *, second: bool = True) -> SufficientStatistics:
    features = FeatureMap.identity(columns, norm_bound=bound)
    return SufficientStatistics(features, label_bound=1.0, second_moments=second)


def _release_moments(
    part: Part, rows: Floats, targets: Floats, bound: float, goal: Goal, *, second: bool = True
) -> ReleasedStatistics:
    """The moments of rows that are shrunk to a norm, and of targets in [-1, 1]."""
    n, columns = rows.shape
    description = _describe(columns, bound, second=second)
    if not goal.protects:
        return add_noise(description, add_up(description, rows, targets, MOST_BITS), n, MOST_BITS)
    drawn = calibrate(description, n, *part)
    sums = add_up(description, rows, targets, drawn.bits)
    return add_noise(description, sums, n, drawn.bits, drawn, None, goal.random_state)


# Public numbers ----------------------------------------------------------------------------------


def _subtract(epsilon: float, part: float) -> float:
    """What is left: both add up to no more than the whole, as floats and as their decimals."""
    return (epsilon - part) * _STRETCH


def _split(whole: Part, share: float) -> Part:
    """A share of the squared mu that (epsilon, delta) stand for, as a point on its own curve.

    Shares that add up to 1 make Gaussian releases that together cost no more.
    """
    root = math.sqrt(share)
    mu = _mu(*whole) * root * _STRETCH
    epsilon = float(accounting.gaussian_epsilon(mu, whole.delta)) * _STRETCH
    if epsilon > 0:
        return Part(epsilon, whole.delta)
    # So small a mu needs no epsilon at this delta, and noise is calibrated by one.
    epsilon = whole.epsilon * root
    return Part(epsilon, float(accounting.gaussian_delta(mu, epsilon)) * _STRETCH)


@lru_cache(maxsize=64)
def _mu(epsilon: float, delta: float) -> float:
    return float(accounting.gaussian_mu(epsilon, delta))


def _has_squares(unit: Rows, groups: int, mu: float) -> bool:
    """Whether squares of numbers become columns."""
    columns, numbers = len(unit.is_number), int(unit.is_number.sum())
    return groups * min(mu, 1.0) >= _SQUARES * math.sqrt(columns + numbers)


def _make_record(name: str, plan: TargetPlan, goal: Goal) -> PrivacyRecord:
    parts = [] if plan.clip is None else [f"coins of permute-and-flip, {_write(plan.clip)}"]
    parts.append(f"discrete Laplace on the sum of targets, {_write(plan.mean)}")
    slopes, source, delta = plan.slopes, _SOURCE, 0.0
    if slopes is not None:
        what = _name_parts(slopes)
        parts.append(f"rounded normal on integers of {what}, {_write(slopes.whole)}")
        source, delta = _SOURCE + _SOURCE_OF_SLOPES, goal.settled_delta
    what = "the mean of the target" if slopes is None else "slopes shrunk on evidence"
    if isinstance(slopes, Steps):
        what = f"slopes by {slopes.count} steps on all records"
    row_record = PrivacyRecord(
        mechanism=f"{name}, {what}",
        source=source,
        neighbors=goal.neighbors,
        epsilon=goal.epsilon,
        delta=delta,
        noise="; ".join(parts),
        rng=rng_of(goal.random_state),
    )
    return goal.persons.state(row_record)


def _name_parts(slopes: Slopes | Steps) -> str:
    means = "" if slopes.means is None else "means, "
    if isinstance(slopes, Steps):
        return f"{means}a mean square and steps"
    return f"{means}moments{'' if slopes.residuals is None else ' and those of residuals'}"


def _write(part: Part) -> str:
    words = f"epsilon {part.epsilon:.6g}"
    return f"{words} and delta {part.delta:.6g}" if part.delta else words


def _note_before(plan: TargetPlan, n: int, goal: Goal) -> None:
    """Warn of what public numbers alone tell."""
    if plan.slopes is not None:
        note_large_delta(goal.settled_delta, n)
        return
    help_ = "more records or a larger epsilon would help"
    rule = f"the noise would hide slopes: the model is the mean of the target alone, and {help_}"
    note(f"n = {n:,} records, but at epsilon = {goal.epsilon:g} {rule}")


def note_slopes(model: TargetModel) -> None:
    """Warn where released slopes explain less than their noise."""
    if model.signal <= 1:
        note(
            f"the released slopes explain a mean square of {model.explained:.2g}, where noise "
            f"leaves {model.left:.2g} open: the model is no better than the mean of the target, "
            "and more records, fewer columns or a larger epsilon would help"
        )
