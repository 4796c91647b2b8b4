"""What a private regression releases, by public numbers alone: shares of a budget, and a record."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

from .. import accounting
from .._support.notes import note, note_large_delta
from .._support.validate import refuse
from ..data.goal import Goal
from ..data.rows import Rows
from ..record import PrivacyRecord, rng_of
from .centered_rows import count_powers, settle_means
from .feature_maps import FeatureMap
from .noisy_descent import calibrate_descent, plan_target_descent
from .sufficient_statistics import SufficientStatistics, calibrate
from .target_model import TargetModel, scale_mean, settle_square

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
# share.
_LEAST_CLEAR = 35
# Means are not released where their noise is above this: then moments tell them well enough.
_BLUR = 0.15
# Effective records for each root of a column from which squares of numbers were measured to help.
_SQUARES = 400
# Rows are shrunk to this share of their root mean square, and to more where noise is small.
_REACH, _REACH_CLEAR, _REACH_WITHOUT_NOISE = 0.35, 75, 100.0
# Of a descent: the shares of the squared budget that means take, at least and at most, and the mean
# square of targets. Measured on 10 tables.
_FEWEST_MEANS, _MOST_MEANS, _OF_SQUARE = 0.1, 0.2, 0.02
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
        calibrate(describe_moments(columns, 1.0, second=False), n, *residuals)
    if not even:
        settle_means(unit, squares, n, *means)
    calibrate(describe_moments(columns, 1.0), n, *moments)
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
    if calibrate_descent(plan_target_descent(clear, 1.0), n, square_of(steps)) is None:
        rule = f"at delta = {whole.delta:g} it needs more noise than is drawn"
        refuse("epsilon", goal.epsilon, rule)
    return Steps(whole, means, square, steps, squares and not even, clear)


def square_of(part: Part) -> Fraction:
    """The square of mu of a part."""
    return Fraction(_mu(*part)) ** 2


def describe_moments(columns: int, bound: float, *, second: bool = True) -> SufficientStatistics:
    """What is released of rows of this norm, and of targets in [-1, 1]."""
    features = FeatureMap.identity(columns, norm_bound=bound)
    return SufficientStatistics(features, label_bound=1.0, second_moments=second)


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


def make_record(name: str, plan: TargetPlan, goal: Goal) -> PrivacyRecord:
    """The record of a release by this plan."""
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


def note_before(plan: TargetPlan, n: int, goal: Goal) -> None:
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
