"""The choice between an additive model and a linear one of two classes, by a look at columns.

An additive model wins where shapes bend, and loses where columns say much the same: its steps take
one column after the other. What each column explains alone, by sums over a few bins, adds up to
little more than there is to explain in the first case, and to much more in the second.
"""

from __future__ import annotations

import dataclasses
import math
from fractions import Fraction
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._support.random_state import make_stream
from .._support.types import Floats
from ..budget.account import spend
from ..data.goal import Goal
from ..data.rows import PlainRows, Rows
from ..record import PrivacyRecord
from .additive import ReleasedAdditive, learn_additive
from .additive_columns import Bins, Cells, choose_bins, count_cells, gather_cells, lay_out
from .additive_plan import ONE, AdditivePlan, Shares, can_be_additive, plan_additive
from .additive_shapes import bend_chance, explain, make_prior, weigh_priors
from .additive_start import AddNoise, Start, add_rounded, start_classes
from .centered_classes import ReleasedClasses, learn_classes, plan_classes, release_center
from .centered_rows import PartedRows, WholeRows, pair_rows

# Shares of what a look has of the square of mu: of the base, of counts of cells, of sums over them.
_OF_BASE, _OF_CELLS, _OF_SUMS = Fraction(15, 100), Fraction(35, 100), Fraction(50, 100)
# n mu / columns from which an additive model may be chosen, and how much columns may explain there
# of the entropy of the base, added up. Measured on splits of 10 tables.
_LEAST_CLEAR, _MOST_EXPLAINED = 100.0, 0.3
# From here on they may explain more, but bends must be as likely as this in some column: were
# shapes straight, a linear model would be as good and say it in fewer words.
_CLEAR, _MOST_EXPLAINED_CLEAR, _LEAST_BENT = 350.0, 1.5, 0.99
# What a look has of the square of mu, and where the same precision costs less.
_OF_LOOK, _OF_LOOK_CLEAR = Fraction(10, 100), Fraction(3, 100)
# Of a number, of equal width.
_CELLS = 16
# Where no class is surer, noisy shares have log-odds.
_LEAST_SHARE = 0.02


class Look(NamedTuple):
    """What is told of columns, each of them alone.

    Attributes:
        explained: What they explain of the entropy of the base, added up.
        bent: The largest chance of a bend.
    """

    explained: float
    bent: float

    def is_for_additive(self, clear: float) -> bool:
        """Whether an additive model is chosen, at this n mu / columns."""
        if clear < _CLEAR:
            return self.explained <= _MOST_EXPLAINED
        return self.explained <= _MOST_EXPLAINED_CLEAR and self.bent >= _LEAST_BENT


def share_of_look(clear: float) -> Fraction:
    """The part of the square of mu that a look costs, at this n mu / columns."""
    return _OF_LOOK if clear < _CLEAR else _OF_LOOK_CLEAR


def may_be_additive(unit: Rows, n: int, goal: Goal) -> bool:
    """Whether a look is worth its price, by public numbers alone."""
    if not goal.protects or goal.neighbors != "replace_one" or not can_be_additive(unit):
        return False
    plan = plan_additive(unit, n, goal, name="", target=False)
    return plan.clear >= _LEAST_CLEAR


def release_chosen(
    unit: Rows,
    rows: Floats | PlainRows | PartedRows,
    labels: NDArray[Any] | None,
    goal: Goal,
    *,
    name: str,
) -> ReleasedAdditive | ReleasedClasses:
    """Charge the budget, look at columns with a part of the square of mu, and learn with the rest.

    Guarantee: (epsilon, delta)-DP under replace_one, exact, or for the persons who own the rows.
    All is one Gaussian mechanism, whose mu the record states (Dong, Roth and Su 2022, Corollary 2).
    With d columns the look releases the count of the second class, whose distance of neighbors is
    1, counts of public cells of each column, whose squared distance is 2 d, and sums of residuals
    over them, whose squared distance is d D, as release_additive has them. What is learned then is
    chosen by these numbers, and is a Gaussian mechanism of the rest of the square of mu whichever
    it is, as release_additive and release_classes say. Settings for which no noise is enough for
    either are refused before anything is spent.

    unit: the map to plain rows.
    rows: what `unit` makes of the private records.
    labels: 0 or 1; None beside rows in parts, which have them.
    goal: one for which may_be_additive holds.
    name: of who releases, for the record.

    Cost: That of what is chosen, and a pass over the records.
    """
    n = len(rows)
    plan = plan_additive(unit, n, goal, name=name, target=False)
    rest = 1 - share_of_look(plan.clear)
    linear = plan_classes(unit, n, 2, goal, name=name, share=rest)
    assert plan.square is not None
    record = _make_record(linear.record, name, len(plan.columns), goal)
    records, stream = pair_rows(rows, labels), make_stream(goal.random_state)

    with spend(goal.budget, record), np.errstate(all="ignore"):
        if choose_additive(plan, unit, records, stream):
            plan = dataclasses.replace(plan, square=plan.square * rest, record=record)
            return learn_additive(plan, unit, records, False, stream)
        linear = linear._replace(record=record)
        centered = release_center(linear, unit, rows, stream)
        return learn_classes(linear, centered, rows, labels, stream)


def choose_additive(
    plan: AdditivePlan,
    unit: Rows,
    records: WholeRows | PartedRows,
    stream: np.random.Generator | None,
) -> bool:
    """Whether a look says so, with its share of the square of mu of a plan. Nothing is charged."""
    with np.errstate(all="ignore"):
        look = measure_columns(plan_look(plan, unit), records, partial(add_rounded, stream=stream))
    return look.is_for_additive(plan.clear)


def _make_record(record: PrivacyRecord, name: str, columns: int, goal: Goal) -> PrivacyRecord:
    """That of the whole: both models have the same law, which is that of epsilon and delta."""
    what = f"{name}, a look at {columns} columns, and an additive or a linear model of them"
    whole = dataclasses.replace(record, mechanism=what, neighbors=goal.neighbors)
    return goal.persons.state(whole)


def plan_look(plan: AdditivePlan, unit: Rows) -> AdditivePlan:
    """The same of a few even cells, which are public, and with residuals of the base alone."""
    none = Fraction(0)
    whole = share_of_look(plan.clear)
    shares = Shares(_OF_CELLS * whole, _OF_BASE * whole, _OF_SUMS * whole, none, none, none)
    columns: tuple[Cells, ...] = tuple(lay_out(unit, False, _CELLS))
    return dataclasses.replace(plan, columns=columns, shares=shares, wider=0.0)


def measure_columns(
    plan: AdditivePlan, records: WholeRows | PartedRows, add_noise: AddNoise
) -> Look:
    """What columns explain, each of them alone, and whether they bend.

    plan: that of a look.
    """
    cells, labels = gather_cells(plan.columns, records)
    start, d = start_classes(plan, labels, add_noise), len(plan.columns)
    of_cells = plan.sigma(plan.cells_moved * d, plan.shares.counts)
    of_sums = plan.sigma(d * start.distance(plan.adds), plan.shares.first)
    assert of_cells is not None
    assert of_sums is not None
    bins = [
        choose_bins(column, add_noise(some, of_cells), float(of_cells), plan.n)
        for column, some in zip(plan.columns, count_cells(cells, plan.columns), strict=True)
    ]
    values, variances = [], []
    for some, one in zip(cells, bins, strict=True):
        curve = one.counts * start.bend
        sums = add_noise(start.sum_residuals(one.of_cell[some], len(curve)), of_sums) / ONE
        values.append(sums / curve)
        variances.append((curve + (float(of_sums) / ONE) ** 2) / curve**2)
    # A line is one along a column, as in a linear model, and not along its records.
    priors = [make_prior(_place_evenly(one), start.unit) for one in bins]
    weights = weigh_priors(priors, values, variances, start.unit)
    shares = [one.counts / one.counts.sum() for one in bins]
    told = zip(priors, weights, values, variances, shares, strict=True)
    square = sum(explain(*parts, start.unit) for parts in told)
    odds = [_to_odds(start, *pair) for pair in zip(values, variances, strict=True)]
    weights = weigh_priors(priors, [one for one, _ in odds], [two for _, two in odds], start.unit)
    numbers = [one for one, some in zip(weights, bins, strict=True) if some.places is not None]
    bent = max(map(bend_chance, numbers), default=0.0)
    return Look(start.bend * square / 2 / _entropy(start), bent)


def _to_odds(start: Start, values: Floats, variances: Floats) -> tuple[Floats, Floats]:
    """Log-odds less the base, and their variances, of what is linear in shares: lines stay such."""
    base = _share_of(start)
    shares = (base + start.bend * values).clip(_LEAST_SHARE, 1 - _LEAST_SHARE)
    steep = start.bend / (shares * (1 - shares))
    return np.log(shares / (1 - shares)) - math.log(base / (1 - base)), variances * steep**2


def _place_evenly(bins: Bins) -> Bins:
    if bins.places is None:
        return bins
    count = len(bins.places)
    return bins._replace(places=(np.arange(count) + 0.5) / count)


def _entropy(start: Start) -> float:
    """The log loss of the base."""
    share = _share_of(start)
    return -(share * math.log(share) + (1 - share) * math.log(1 - share))


def _share_of(start: Start) -> float:
    """The share of the second class in the base."""
    return 1 / (1 + math.exp(-start.base / ONE))
