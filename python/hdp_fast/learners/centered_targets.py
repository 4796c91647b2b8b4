"""Private regression on centered rows: the interval and mean of the target, and its slopes."""

from __future__ import annotations

import math
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np

from .. import noise
from .._support.random_state import make_stream
from .._support.types import Floats
from .._support.validate import read_only
from ..budget.account import spend
from ..data.goal import Goal
from ..data.rows import Rows
from ..record import PrivacyRecord
from .centered_rows import (
    Cut,
    PartedRows,
    WholeRows,
    bound_norm,
    center_by_sums,
    center_evenly,
    count_powers_of,
    open_integers,
    scale_of,
    settle_means,
    typical_norm,
)
from .evidence import (
    Shrunk,
    center_moments,
    fit_population,
    join_cross_moments,
    shrink_by_evidence,
    shrunk_covariance,
)
from .noisy_descent import (
    DescentNoise,
    calibrate_descent,
    descend,
    plan_target_descent,
    shrink_by_noise,
)
from .released_statistics import ReleasedStatistics
from .statistics_model import PopulationFit
from .statistics_noise import choose_digits
from .sufficient_statistics import (
    PrivateSums,
    add_noise,
    calibrate,
    describe_release,
)
from .target_model import (
    Clip,
    Pairs,
    TargetLaw,
    TargetModel,
    choose_clip,
    count_means,
    count_moments,
    count_outside,
    count_residual_squares,
    count_steps,
    count_target_squares,
    cut_scaled,
    find_ends,
    make_pairs,
    make_residuals,
    release_mean,
    release_square,
    settle_square,
    span_targets,
)
from .target_plan import (
    Part,
    Slopes,
    Steps,
    TargetPlan,
    describe_moments,
    make_record,
    note_before,
    note_slopes,
    plan_targets,
    square_of,
)

# To how many of their root mean squares residuals are clipped, and rows of a descent are shrunk.
_RESIDUAL_REACH, _REACH_OF_DESCENT = 1.25, 1.5
# What stands for the constant in rows that are centered evenly.
_CONSTANT = 1.5
# Of a target that is clipped, in units of the longer way from its mean to an end.
_VARIANCE, _LEAST_VARIANCE = 1 / 9, 1e-12
# The digits of its mean square without noise.
_FREE_BITS = 30
# The share of a column's variance that other columns are taken not to explain, for its deviations.
_OWN_SHARE = 0.03


class TargetRelease(NamedTuple):
    """The map to centered rows, the model of them, and what protects the records."""

    rows: Rows
    model: TargetModel
    record: PrivacyRecord | None


def release_targets(
    unit: Rows,
    records: WholeRows | PartedRows,
    goal: Goal,
    *,
    name: str,
    method: str = "evidence",
) -> TargetRelease:
    """Charge the budget; release the target's interval and mean, and slopes around it.

    (epsilon, delta)-DP under replace_one, exact, or for the persons who own the rows, by basic
    composition of three parts: an interval by permute-and-flip, pure; the mean of targets that are
    clipped to it by discrete Laplace noise, pure; and Gaussian noise on means of columns, then on
    moments, and then on the mean square and the moments of residuals around the slopes that these
    make, whose squares of mu add up to no more than that of the epsilon that is left and of all of
    delta. A descent has the mean square of targets and its steps instead of moments. With k rows of
    a person the first two have k times the noise, and mu is divided by k. Where records are few the
    mean is released alone, and delta is not spent.

    All that is read of the records is sums of integers over all of them. What a record adds to one
    depends on itself, on public numbers and on what was released before, and not on the records
    that it stands beside: the sums are the same in any order and of any parts, and a record that is
    replaced moves them by what it and the other add, which the functions that count bound.

    records: the plain rows and the targets, in [-1, 1], of the private records that are used.
    goal: one that is checked, of the relation replace_one.
    name: of who releases, for the record.
    method: as plan_targets has it.

    Cost: Four passes over the records for a descent and its steps, or five for moments.
    """
    plan = plan_targets(unit, len(records), goal, method)
    record = make_record(name, plan, goal) if goal.protects else None
    if record is not None:
        note_before(plan, len(records), goal)
    goal = goal._replace(random_state=make_stream(goal.random_state))
    with nullcontext() if record is None else spend(goal.budget, record), np.errstate(all="ignore"):
        centered, law = _release_center(plan, unit, records, goal)
        if plan.slopes is None:
            model = TargetModel(np.zeros(len(unit.is_number) + 1), centered.norm, law, 0.0, 0.0)
        elif isinstance(plan.slopes, Steps):
            model = _descend_slopes(plan.slopes, centered, records, law, goal)
        else:
            model = _release_slopes(plan.slopes, centered, records, law, goal)
    if record is not None and plan.slopes is not None:
        note_slopes(model)
    return TargetRelease(centered, replace(model, record=record), record)


def _release_center(
    plan: TargetPlan, unit: Rows, records: WholeRows | PartedRows, goal: Goal
) -> tuple[Rows, TargetLaw]:
    """The map to centered rows, and the ends and mean of targets: one pass for all means."""
    n, slopes, stream = len(records), plan.slopes, _stream_of(goal)
    clip = _release_clip(plan, records, goal)
    if slopes is None or slopes.means is None:
        total = records.add_labels(partial(count_steps, clip))
        centered = center_evenly(unit, squares=slopes is not None and slopes.squares)
    else:
        grid = settle_means(unit, slopes.squares, n, *slopes.means)
        count = partial(count_means, partial(count_powers_of, unit, slopes.squares, grid[0]), clip)
        *powers, total = records.add_up(count)
    mean = release_mean(
        int(total), n, clip, epsilon=plan.mean.epsilon, rows=goal.persons.rows, random_state=stream
    )
    if slopes is not None and slopes.means is not None:
        centered = center_by_sums(unit, np.array(powers), n, grid, stream)
    return centered, TargetLaw(mean, *clip)


def _release_clip(plan: TargetPlan, records: WholeRows | PartedRows, goal: Goal) -> Clip:
    """The ends between which targets are clipped."""
    if not goal.protects:
        lows, highs = zip(*records.gather(find_ends), strict=True)
        return span_targets(min(lows), max(highs))
    if plan.clip is None:
        return Clip(-1.0, 1.0)
    return choose_clip(
        records.add_labels(count_outside),
        len(records),
        epsilon=plan.clip.epsilon,
        rows=goal.persons.rows,
        random_state=_stream_of(goal),
    )


def _stream_of(goal: Goal) -> np.random.Generator | None:
    stream: np.random.Generator | None = goal.random_state  # type: ignore[assignment]
    return stream


# Slopes by a descent -----------------------------------------------------------------------------


def _descend_slopes(
    plan: Steps, centered: Rows, records: WholeRows | PartedRows, law: TargetLaw, goal: Goal
) -> TargetModel:
    """Release a mean square, and a descent's steps.

    The steps are one Gaussian mechanism, as noisy_descent.descend says, whatever the clip norm is,
    which follows the released mean square. Around released means scores have a mean near 0 and need
    no constant. The shrinkage reads released numbers alone.
    """
    n, stream, scale = len(records), _stream_of(goal), scale_of(centered)
    mean_of_columns = plan.means is not None
    bound = _REACH_OF_DESCENT * typical_norm(centered) if mean_of_columns else bound_norm(centered)
    bits, sigma = settle_square(n, *plan.square)
    total = records.add_labels(partial(count_target_squares, law, bits))
    square = release_square(int(total), n, (bits, sigma), stream)
    descent = plan_target_descent(plan.clear, math.sqrt(square))
    grid = calibrate_descent(descent, n, square_of(plan.steps))
    assert grid is not None
    used = len(scale) - mean_of_columns
    cut = Cut(centered, bound, used, partial(cut_scaled, law), 1, grid)
    drawn = noise.rounded_gaussian(grid.sigma, (descent.steps, used, 1), random_state=stream)
    with open_integers(records, cut) as integers:
        weights = descend(integers, descent, drawn).weights[:, 0]
    entry = float(grid.sigma) * grid.unit / n
    known = DescentNoise(descent, entry, 1.0, 0.0, np.zeros(1), np.zeros(1))
    spread = centered.spread_columns() * np.outer(scale[:-1], scale[:-1])
    shrunk = shrink_by_noise(weights[: len(spread)], np.diag(spread), known)
    times, released = np.zeros_like(scale), np.zeros_like(scale)
    times[:used], released[:used] = law.width * shrunk.factor * scale[:used], weights
    covariance = np.zeros((len(scale), len(scale)))
    covariance[:used, :used] = _noise_of_steps(known, spread, scale[-1], used)
    return TargetModel(
        weights=read_only(times * released),
        norm_bound=bound,
        law=replace(law, constant=1.0),
        explained=law.width**2 * shrunk.explained,
        left=law.width**2 * shrunk.left,
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
    slopes: Slopes, centered: Rows, records: WholeRows | PartedRows, law: TargetLaw, goal: Goal
) -> TargetModel:
    """Release moments, and shrink on evidence."""
    constant = 0.0 if slopes.means is not None else _CONSTANT
    bound = math.sqrt(centered.norm**2 - 1 + constant**2) * slopes.reach
    learned = _learn_slopes(slopes, records, (centered, law, constant), bound, goal)
    # What stands at the end of rows takes their mean off.
    last = -learned.mean / constant if constant else np.zeros_like(learned.mean)
    turn = law.width * np.vstack([np.eye(len(last)), last])
    return TargetModel(
        weights=read_only(turn @ learned.shrunk.coefficients),
        norm_bound=bound,
        law=replace(law, constant=constant),
        explained=law.width**2 * learned.shrunk.explained,
        left=law.width**2 * learned.shrunk.left,
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
    slopes: Slopes,
    records: WholeRows | PartedRows,
    scales: tuple[Rows, TargetLaw, float],
    bound: float,
    goal: Goal,
) -> LearnedSlopes:
    """Coefficients by released moments; then by residuals around them, too.

    Residuals vary less than the target where slopes explain much, and so their moments have less
    noise.

    scales: what makes centered rows and scaled targets, and what stands for the constant.
    """
    constant, pairs = scales[2], partial(make_pairs, *scales)
    released = _release_moments(slopes.moments, records, pairs, (scales[0], bound), goal)
    assert released.second_moments is not None
    n, unit = released.n, bound / released.n
    cross_deviation, moved = released.sums_deviation * unit, released.moments_deviation
    noise = {"moments_deviation": moved * bound * unit}
    whole = released.second_moments * bound * unit
    moments, cross, mean = center_moments(whole, released.cross_moments[:, 0] * unit, constant)
    variance = _VARIANCE if goal.protects else _measure_variance(records, scales[1])
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
    rest = partial(make_residuals, pairs, np.append(first.coefficients, last), bound)
    bits, sigma = settle_square(n, *slopes.square)
    total = records.add_up(partial(count_residual_squares, partial(rest, 1.0), bits))
    left = release_square(int(total), n, (bits, sigma), _stream_of(goal))
    clip = min(_RESIDUAL_REACH * math.sqrt(left), 1.0)
    again = _release_moments(
        slopes.residuals, records, partial(rest, clip), (scales[0], bound), goal, second=False
    )
    residual_deviation = again.sums_deviation * unit * clip
    joined, share = join_cross_moments(
        moments,
        cross,
        center_moments(whole, again.cross_moments[:, 0] * (unit * clip), constant).cross,
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


def _measure_variance(records: WholeRows | PartedRows, law: TargetLaw) -> float:
    """The mean square of scaled targets, which is read off and so not protected."""
    total = records.add_labels(partial(count_target_squares, law, _FREE_BITS))
    return max(int(total) / (2.0**_FREE_BITS * len(records)), _LEAST_VARIANCE)


def _release_moments(
    part: Part,
    records: WholeRows | PartedRows,
    pairs: Pairs,
    shape: tuple[Rows, float],
    goal: Goal,
    *,
    second: bool = True,
) -> ReleasedStatistics:
    """The moments of rows that are shrunk to a norm, and of targets in [-1, 1].

    shape: the map to centered rows, and the norm.
    """
    n, columns = len(records), len(shape[0].names_with_squares) + 1
    description = describe_moments(columns, shape[1], second=second)
    drawn = calibrate(description, n, *part) if goal.protects else None
    bits = choose_digits(describe_release(description), n) if drawn is None else drawn.bits
    total = records.add_up(partial(count_moments, description, bits, pairs))
    moments = total[columns:].reshape(columns, columns) if second else None
    sums = PrivateSums(total[:columns, None], moments)
    return add_noise(description, sums, n, bits, drawn, None, goal.random_state)
