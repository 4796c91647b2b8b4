"""The plan of an additive model: what is public before a record is touched."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from .. import accounting, noise
from .._support.notes import note
from .._support.types import Floats
from .._support.validate import refuse
from ..data.goal import Goal
from ..data.rows import Rows
from ..record import PrivacyRecord
from .additive_columns import FINE_CELLS, Cells, lay_out
from .noisy_descent import find_sigma, record_gaussians

# Integers that make up 1, of scores and residuals.
ONE = 1 << 16
# The base is more for a target.
_OF_BASE, _OF_TARGET = Fraction(3, 100), Fraction(10, 100)
_OF_COUNTS, _OF_FIRST, _OF_SCALE = Fraction(12, 100), Fraction(15, 100), Fraction(6, 100)
# That of the number of records where it is private; it counts as so many deviations of its noise at
# least.
_OF_NUMBER, _LEAST_NUMBER = Fraction(2, 100), 2.0
# The mean of all rounds weighs a round by about its number to this power less 1, and so many rounds
# without a change go before the first.
_POWER, _BEFORE = 2.0, 3.0
# n mu / columns from which there are so many rounds, and without noise.
_ROUNDS = ((0.0, 10), (200.0, 30), (600.0, 60))
_ROUNDS_WITHOUT_NOISE = 60
# n mu / columns from which a number has at most so many bins, and without noise.
_BINS = ((0.0, 16), (1000.0, 32))
_BINS_WITHOUT_NOISE = 64
# n mu / columns from which limits of residuals are wider than the base's, and by how much.
_WIDER = ((0.0, 0.0), (40.0, 0.15), (150.0, 0.3), (600.0, 0.6))
# Limits of a target's residuals, in roots of its mean square, by n mu / columns.
_REACH = ((0.0, 1.0), (200.0, 1.5))
# n mu / columns below which the base is released alone.
_LEAST_CLEAR = 3.0
# The core adds up the values of no more.
_MOST_COLUMNS = 1 << 10
_LARGEST_MU, _MOST_NOISE = 1e9, 1 << 43
# n mu / columns below which noise is warned of.
_FEW = 20.0


class Shares(NamedTuple):
    """The shares of the square of mu that the parts of a release have: they add up to 1.

    Attributes:
        counts: Of counts of cells.
        base: Of the base, or of the ends of a target and its mean.
        first: Of the first sums.
        steps: Of all rounds together.
        scale: Of what tells how sure scores may be.
        number: Of the number of records, where that is private.
    """

    counts: Fraction
    base: Fraction
    first: Fraction
    steps: Fraction
    scale: Fraction
    number: Fraction


def share_parts(rounds: int, target: bool, adds: bool) -> Shares:
    """All but the number for the base where there are no rounds."""
    number, none = _OF_NUMBER if adds else Fraction(0), Fraction(0)
    if not rounds:
        return Shares(none, 1 - number, none, none, none, number)
    base = _OF_TARGET if target else _OF_BASE
    steps = 1 - _OF_COUNTS - base - _OF_FIRST - _OF_SCALE - number
    return Shares(_OF_COUNTS, base, _OF_FIRST, steps, _OF_SCALE, number)


@dataclass(frozen=True)
class AdditivePlan:
    """What is public before a record is touched.

    Attributes:
        columns: The cells of all columns.
        n: The number of records; a released one where it is private.
        square: The square of mu for each row; None without noise.
        clear: n mu / columns.
        rounds: How often each column has its turn; 0 where the base is released alone.
        shares: What each part has of the square of mu.
        wider: By how much the limits of residuals are wider than those of the base.
        reach: Limits of a target's residuals, in roots of its mean square.
        record: What protects the records; None without noise.
        adds: Whether neighbors differ by a record that is added or removed, not replaced.
    """

    columns: tuple[Cells, ...]
    n: int
    square: Fraction | None
    clear: float
    rounds: int
    shares: Shares
    wider: float
    reach: float
    record: PrivacyRecord | None
    adds: bool = False

    @property
    def cells_moved(self) -> int:
        """In how many cells of a table neighbors differ, by 1: a record is in one."""
        return 1 if self.adds else 2

    def sigma(self, distance: int, share: Fraction) -> Fraction | None:
        """The deviation of noise at which this squared distance takes a share of mu squared."""
        return None if self.square is None else find_sigma(distance, self.square * share)

    @property
    def rates(self) -> Floats:
        """How far averages move in each round."""
        rates: Floats = _POWER / (np.arange(self.rounds, dtype=np.float64) + _POWER + _BEFORE)
        return rates

    def narrow(self, unit: Rows) -> AdditivePlan:
        """The same of some of the columns, with their cells: no part has a longer distance.

        unit: the map to plain rows of these columns.
        """
        numbers = [column for column in self.columns if column.kind == "number"]
        fine = any(column.size > column.bins for column in numbers)
        bins = numbers[0].bins if numbers else 1
        return replace(self, columns=tuple(lay_out(unit, fine, bins)))

    def note_few(self, epsilon: float) -> None:
        """Warn of what public or released numbers alone tell."""
        if self.clear >= _FEW:
            return
        count = len(self.columns)
        what = "the model is the base rate alone" if not self.rounds else "noise hides most shapes"
        note(
            f"n = {self.n:,} records, but at epsilon = {epsilon:g} and {count} columns {what}: "
            "more records, fewer columns or a larger epsilon would help, and a linear model needs "
            "fewer"
        )


def plan_additive(unit: Rows, n: int, goal: Goal, *, name: str, target: bool) -> AdditivePlan:
    """Everything but the records; raises where no noise is enough, whatever n is.

    n: the number of records; under add_remove what release_number made of it.
    """
    square = find_square(goal)
    adds = square is not None and goal.neighbors == "add_remove"
    mu = math.inf if square is None else math.sqrt(square)
    count = len(lay_out(unit, True, 1))
    clear = n * mu / count
    bins = _pick(_BINS, clear) if goal.protects else _BINS_WITHOUT_NOISE
    # Counts of fine cells tell quantiles where their noise is small beside a bin's records.
    of_bin = math.sqrt(2 * count / float(_OF_COUNTS) * FINE_CELLS / bins)
    fine = of_bin < n * mu / bins / 2
    rounds = _pick(_ROUNDS, clear) if goal.protects else _ROUNDS_WITHOUT_NOISE
    rounds = 0 if clear < _LEAST_CLEAR else rounds
    columns = tuple(lay_out(unit, fine, bins))
    if not _has_cells(unit):
        rule = f"between the bounds of a number there must be {FINE_CELLS} others"
        refuse("bounds", "too narrow", rule)
    if (rounds or adds) and count > _MOST_COLUMNS:
        refuse("columns", count, f"an additive model has at most {_MOST_COLUMNS:,}")
    record = None
    if square is not None:
        # What is said and refused under add_remove is known before n is.
        most = _ROUNDS[-1][1] if adds else rounds
        what = "the base alone" if not most else f"counts of cells, base, {most} rounds, scale"
        if adds:
            what = f"number of records, counts of cells, base, at most {most} rounds, scale"
        record = record_gaussians(f"{name}, additive model of {count} columns: {what}", goal)
        # No distance is longer, and no share smaller.
        longest = 16 * ONE**2 * max(most, 1) * count
        if not square or longest / (square * _OF_BASE) > _MOST_NOISE**2:
            epsilon, delta = goal.price
            refuse("epsilon", epsilon, f"at delta = {delta:g} it needs more noise than is drawn")
    shares = share_parts(rounds, target, adds)
    wider, reach = _pick(_WIDER, clear), _pick(_REACH, clear)
    return AdditivePlan(columns, n, square, clear, rounds, shares, wider, reach, record, adds)


def find_square(goal: Goal) -> Fraction | None:
    """The square of mu for each row; None without noise."""
    if not goal.protects:
        return None
    share = goal.persons.gaussian_share(*goal.price)
    return Fraction(min(float(accounting.gaussian_mu(*share)), _LARGEST_MU)) ** 2


def release_number(n: int, plan: AdditivePlan, stream: np.random.Generator | None) -> int:
    """The number of records with noise, for it is private under add_remove; 1 at least.

    The distance of neighbors is 1.

    plan: that of any number of records.
    """
    sigma = plan.sigma(1, plan.shares.number)
    assert sigma is not None
    drawn = noise.rounded_gaussian(sigma, 1, random_state=stream)
    return max(n + int(drawn[0]), math.ceil(_LEAST_NUMBER * sigma), 1)


def _pick(steps: Sequence[tuple[float, Any]], clear: float) -> Any:
    return [value for least, value in steps if clear >= least][-1]


def can_be_additive(unit: Rows) -> bool:
    """Whether plan_additive refuses no model of these columns."""
    return _has_cells(unit) and len(lay_out(unit, False, 1)) <= _MOST_COLUMNS


def _has_cells(unit: Rows) -> bool:
    """Whether there are enough numbers between bounds for cells."""
    low, width = unit.number_bounds
    ends = low[:, None] + np.arange(FINE_CELLS + 1) / FINE_CELLS * width[:, None]
    return bool((np.diff(ends, axis=1) > 0).all())
