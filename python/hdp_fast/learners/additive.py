"""Additive models of binned columns: counts, steps on sums over bins, and a scale, under one mu."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import _core
from .._support.random_state import make_stream
from .._support.types import Floats, Integers
from ..budget.account import check_charge, spend
from ..data.goal import Goal
from ..data.rows import Rows
from ..exceptions import ShapeError
from ..record import PrivacyRecord
from .additive_columns import (
    Bins,
    Cells,
    Contrast,
    bit_rows,
    choose_bins,
    contrast,
    count_cells,
    gather_cells,
)
from .additive_plan import ONE, AdditivePlan, plan_additive, release_number
from .additive_shapes import (
    EDGES,
    Scale,
    find_gain,
    find_scale,
    make_prior,
    scale_slope,
    weigh_priors,
)
from .additive_start import Start, add_rounded, start_classes, start_target
from .centered_rows import PartedRows, WholeRows, bound_norm
from .linear_model import LinearLoss, LinearModel
from .target_model import TargetModel

# Scores of a target are limited for their slope to so many of their deviations.
_SLOPE_REACH = 2.0
_LARGEST_SIGNAL = 1e9


class AdditiveNoise(NamedTuple):
    """What is known of the noise in an additive model.

    Attributes:
        covariances: For each column those of the weights of its bits.
        bands: For each column the deviations of what a Shape has, less their mean.
        constant: The deviation of the noise in the base.
        explained: The mean square of what shapes add to scores, as if columns were independent.
        left: That of what noise does.
    """

    covariances: tuple[Floats, ...]
    bands: tuple[Floats, ...]
    constant: float
    explained: float
    left: float

    @property
    def signal(self) -> float:
        """The root of what shapes explain over what noise does."""
        if not self.explained:
            return 1 / _LARGEST_SIGNAL
        if not self.left:
            return _LARGEST_SIGNAL
        return min(max(math.sqrt(self.explained / self.left), 1e-9), _LARGEST_SIGNAL)

    def stretch(self, width: float) -> AdditiveNoise:
        """The same of weights that are multiplied with this."""
        return AdditiveNoise(
            tuple(one * width**2 for one in self.covariances),
            tuple(one * width for one in self.bands),
            self.constant * width,
            self.explained * width**2,
            self.left * width**2,
        )


class ReleasedAdditive(NamedTuple):
    """The map to bits, the model of them, what protects the records, and what noise does.

    n is the number of records, a noisy one where it is private.
    """

    rows: Rows
    model: LinearModel | TargetModel
    record: PrivacyRecord | None
    noise: AdditiveNoise
    n: int


def release_additive(
    unit: Rows,
    records: WholeRows | PartedRows,
    goal: Goal,
    *,
    name: str,
    target: bool,
) -> ReleasedAdditive:
    """Charge the budget, release counts of cells, a base, steps and a scale.

    Guarantee: (epsilon, delta)-DP under the goal's relation, exact, or for the persons who own the
    rows. More than that, all is one Gaussian mechanism, whose mu the record states. Each part
    adds rounded normal noise to integers, is chosen by public numbers and by what parts before it
    released, and has a distance of neighbors that no pair of records exceeds. With d columns and T
    rounds their squares are under replace_one

    - 2 d for counts of cells: a record is in one cell of each column. What bins are is a function
      of these counts.
    - 1 for the count of the second class, or 2 for the cells of a target.
    - d D for first sums, and T d D for steps, where D = max((high - low)^2, 2 max(low^2, high^2)):
      what a record adds to the sums of a column is one integer between low and high, in one bin. If
      the other record has the same bin, the sum moves by high - low at most; if it has another
      one, two sums move by no more than the larger limit each. Limits are functions of what was
      released before, and the same for all records.
    - 2 for counts of classes by score; for a target the square of twice the largest product of a
      residual and a score, which are cut to public limits, and that of its ends for its mean.

    Under add_remove the number of records is private, and the first part is that number, with a
    squared distance of 1. It takes the place of n in all that follows, and noise is at least as
    small: a record more is in one cell of each column and adds one integer to one sum, so that the
    distances are d for counts of cells, 1 for those of both classes (a record is in one), of cells
    of a target and of classes by score, D = max(low^2, high^2) for sums, the square of the longer
    way from the middle to an end for a mean, and that of the largest product for a slope. No
    records at all are a data set like others. How long it takes tells n, which is not protected.

    The squares of distance over deviation add up to no more than that of mu, in rational numbers
    (Dong, Roth and Su 2022, Corollary 2). The order of columns is public. All else is
    post-processing. Settings for which no noise is enough are refused before anything is spent, and
    no value of a record raises or warns.

    unit: the map to plain rows.
    records: what `unit` makes of the private records, with their labels: 0 or 1, or targets in
        [-1, 1].
    goal: one that is checked.
    name: of who releases, for the record.

    Cost: O(n d) for each of 10 to 60 rounds, and one byte for each column of a record.
    """
    check_charge(goal.budget, goal.epsilon)
    n, add = len(records), partial(plan_additive, unit, goal=goal, name=name, target=target)
    # The number of records is private under add_remove: nothing that is refused depends on it.
    plan = add(1 if goal.neighbors == "add_remove" and goal.protects else n)
    if not n and not plan.adds:
        raise ShapeError("there are no rows, but a model must be learned from one at least")
    if plan.record is not None and not plan.adds:
        plan.note_few(goal.epsilon)
    stream = make_stream(goal.random_state)
    charge = nullcontext() if plan.record is None else spend(goal.budget, plan.record)
    with charge, np.errstate(all="ignore"):
        if plan.adds:
            plan = add(release_number(n, plan, stream))
        released = learn_additive(plan, unit, records, target, stream)
    if plan.adds:
        plan.note_few(goal.epsilon)
    return released


def learn_additive(
    plan: AdditivePlan,
    unit: Rows,
    records: WholeRows | PartedRows,
    target: bool,
    stream: np.random.Generator | None,
) -> ReleasedAdditive:
    """The releases of a plan. No budget is charged."""
    cells, values = gather_cells(plan.columns, records)
    return _Run(plan, cells, np.ascontiguousarray(values), target, stream).release(unit)


@dataclass
class _Run:
    """One release: the plan, the private records, and the stream of the noise."""

    plan: AdditivePlan
    cells: NDArray[np.uint8]
    labels: NDArray[Any]
    target: bool
    stream: np.random.Generator | None

    def release(self, unit: Rows) -> ReleasedAdditive:
        plan = self.plan
        begin = start_target if self.target else start_classes
        start = begin(plan, self.labels, self._add_noise)
        bins = self._release_bins()
        for column, one in enumerate(bins):
            self.cells[column] = one.of_cell[self.cells[column]]
        shapes = [np.zeros(len(one.counts)) for one in bins]
        covariances = [np.zeros((len(one), len(one))) for one in shapes]
        scale = Scale(1.0, 0.0, 0.0)
        if plan.rounds:
            shapes, covariances = self._fit(start, bins)
            scale = self._release_scale(start, bins, shapes)
        return self._describe(unit, start, bins, shapes, covariances, scale)

    def _add_noise(self, sums: Integers, sigma: Fraction | None) -> Floats:
        return add_rounded(sums, sigma, self.stream)

    def _release_bins(self) -> list[Bins]:
        plan = self.plan
        if not plan.rounds:
            return [_even_bins(column, plan.n) for column in plan.columns]
        sigma = plan.sigma(plan.cells_moved * len(plan.columns), plan.shares.counts)
        counts = count_cells(self.cells, plan.columns)
        deviation = 0.0 if sigma is None else float(sigma)
        return [
            choose_bins(column, self._add_noise(some, sigma), deviation, plan.n)
            for column, some in zip(plan.columns, counts, strict=True)
        ]

    # Steps ---------------------------------------------------------------------------------------

    def _fit(self, start: Start, bins: Sequence[Bins]) -> tuple[list[Floats], list[Floats]]:
        """The values of all bins, and what noise makes of them."""
        plan, d = self.plan, len(bins)
        curvatures = [one.counts * start.bend for one in bins]
        priors = [make_prior(one, start.unit) for one in bins]
        distance = d * start.distance(plan.adds)
        first = plan.sigma(distance, plan.shares.first)
        values = [
            self._add_noise(start.sum_residuals(some, len(curve)), first) / ONE / curve
            for some, curve in zip(self.cells, curvatures, strict=True)
        ]
        spread = start.bend if start.law is None else (start.unit / 2) ** 2
        deviation = 0.0 if first is None else float(first) / ONE

        def vary(deviation: float) -> list[Floats]:
            sampled = zip(bins, curvatures, strict=True)
            return [(one.counts * spread + deviation**2) / curve**2 for one, curve in sampled]

        weights = weigh_priors(priors, values, vary(deviation), start.unit)
        sizes = [len(one.counts) for one in bins]
        sigma = plan.sigma(plan.rounds * distance, plan.shares.steps)
        of_round = 0.0 if sigma is None else float(sigma) / ONE
        left = of_round * float(np.linalg.norm(weigh_rounds(plan.rates)))
        gains = [
            find_gain(prior, weight, curve, variance, start.unit)
            for prior, weight, curve, variance in zip(
                priors, weights, curvatures, vary(left), strict=True
            )
        ]
        drawn = self._add_noise(np.zeros((plan.rounds, sum(sizes)), np.int64), sigma)
        numbers = np.concatenate(curvatures), np.concatenate([one.ravel() for one in gains])
        records, limits = (self.cells.ravel(), sizes, start.labels), start.limits
        if not len(self.labels):
            # One record whose residuals are cut to 0 stands for none.
            records, limits = (np.zeros(d, np.uint8), sizes, np.zeros(1, np.int64)), (0, 0)
        fitted = _core.fit_additive(
            records,
            (start.law is None, start.base, *limits),
            (plan.rates, drawn.astype(np.int64).ravel(), *numbers),
        )
        shapes = np.split(fitted / ONE, np.cumsum(sizes)[:-1])
        covariances = []
        for one, gain in zip(bins, gains, strict=True):
            blurred = gain * (of_round * vary_averages(plan.rates, one.held))
            covariances.append(blurred @ blurred.T)
        return shapes, covariances

    def _score(self, start: Start, values: Integers, sizes: Sequence[int]) -> Integers:
        """The scores of all records, in units of 2^-16."""
        scores = np.full(len(self.labels), start.base, np.int64)
        for some, part in zip(self.cells, np.split(values, np.cumsum(sizes)[:-1]), strict=True):
            scores += part[some]
        return scores

    # How sure it may be --------------------------------------------------------------------------

    def _release_scale(self, start: Start, bins: Sequence[Bins], shapes: Sequence[Floats]) -> Scale:
        plan = self.plan
        values = np.rint(np.concatenate(shapes) * ONE).astype(np.int64)
        scores = self._score(start, values, [len(one) for one in shapes])
        mean, spread = _spread_of(bins, shapes)
        if not spread > 0:
            return Scale(1.0, 0.0, 0.0)
        if start.law is not None:
            return self._release_slope(start, scores, mean, spread)
        middle = start.base / ONE + mean
        edges = np.rint((middle + spread * EDGES) * ONE).astype(np.int64)
        places = np.searchsorted(edges, scores, side="right")
        width = len(edges) + 1
        pairs = places + width * (start.labels != 0)
        sigma = plan.sigma(plan.cells_moved, plan.shares.scale)
        counts = self._add_noise(np.bincount(pairs, minlength=2 * width), sigma).reshape(2, width)
        ends = np.concatenate([[2 * EDGES[0] - EDGES[1]], EDGES, [2 * EDGES[-1] - EDGES[-2]]])
        middles = mean + spread * (ends[1:] + ends[:-1]) / 2
        deviation = 0.0 if sigma is None else float(sigma)
        clear = min(plan.clear, 1e9)
        return find_scale(counts, middles, start.base / ONE, deviation, clear, start.deviation)

    def _release_slope(self, start: Start, scores: Integers, mean: float, spread: float) -> Scale:
        """The slope of residuals along scores: what is left of it were it 1 for each record."""
        plan = self.plan
        reach = max(math.ceil(_SLOPE_REACH * spread * ONE), 1)
        along = (scores - start.base - round(mean * ONE)).clip(-reach, reach)
        limit = start.limits[1]
        rest = (start.labels - scores).clip(-limit, limit)
        products = (rest * along) // ONE
        most = -(-reach * limit // ONE) + 1
        sigma = plan.sigma((most if plan.adds else 2 * most) ** 2, plan.shares.scale)
        total = self._add_noise(np.array([products.sum()]), sigma)[0]
        whole = plan.n * spread**2 * ONE
        deviation = 0.0 if sigma is None else float(sigma) / whole
        return scale_slope(1 + total / whole, deviation, min(plan.clear, 1e9))

    # The model -----------------------------------------------------------------------------------

    def _describe(
        self,
        unit: Rows,
        start: Start,
        bins: Sequence[Bins],
        shapes: Sequence[Floats],
        covariances: Sequence[Floats],
        scale: Scale,
    ) -> ReleasedAdditive:
        """The model of bits, with the noise in its weights."""
        parts = [contrast(column, one) for column, one in zip(self.plan.columns, bins, strict=True)]
        center = np.concatenate([part.shares for part in parts])
        centered = bit_rows(unit, self.plan.columns, bins, center)
        moved = [shape * scale.factor for shape in shapes]
        spread = [covariance * scale.factor**2 for covariance in covariances]
        bits = [part.matrix @ shape for part, shape in zip(parts, moved, strict=True)]
        constant = sum(shape[part.first] for part, shape in zip(parts, moved, strict=True))
        constant += start.base / ONE + scale.shift
        weights = np.append(np.concatenate(bits), 0.0)
        weights[-1] = constant + float(center @ weights[:-1])
        known = _describe_noise(bins, parts, moved, spread, scale, start.deviation)
        weights *= start.width
        bound = bound_norm(centered)
        weights.flags.writeable = False
        if start.law is not None:
            known = known.stretch(start.width)
            model = TargetModel(
                weights, bound, start.law, known.explained, known.left, self.plan.record
            )
            return ReleasedAdditive(centered, model, self.plan.record, known, self.plan.n)
        reach = float(np.linalg.norm(weights)) * bound
        loss = LinearLoss("logistic", 1.0, bound, None, float(np.logaddexp(0, reach)))
        made = LinearModel(weights, loss)
        return ReleasedAdditive(centered, made, self.plan.record, known, self.plan.n)


def _even_bins(column: Cells, n: int) -> Bins:
    """Bins of a column of which nothing is released."""
    return choose_bins(column, np.full(column.size, n / column.size), 0.0, n)


def weigh_rounds(rates: Floats) -> Floats:
    """The weight of each round in the averages at the end."""
    left = np.cumprod((1 - rates)[::-1])[::-1]
    weights: Floats = rates * np.append(left[1:], 1.0)
    return weights


def vary_averages(rates: Floats, held: Floats) -> Floats:
    """The deviation of averages at the end, for noise of deviation 1 in each round.

    Steps pull a bin back as far as it holds the records that it is taken to have. Where it holds
    fewer, noise adds up.

    held: the part of them, shape (bins,).
    """
    pulled = 1 - rates[:, None] * held
    left = np.cumprod(pulled[::-1], axis=0)[::-1]
    weights = rates[:, None] * np.vstack([left[1:], np.ones(len(held))])
    deviations: Floats = np.linalg.norm(weights, axis=0)
    return deviations


def _mean_square(bins: Bins, values: Floats) -> float:
    return float(bins.counts @ values**2 / bins.counts.sum())


def _spread_of(bins: Sequence[Bins], shapes: Sequence[Floats]) -> tuple[float, float]:
    """The mean of what shapes add up to, and its deviation as if columns were independent."""
    mean = square = 0.0
    for one, shape in zip(bins, shapes, strict=True):
        middle = float(one.counts @ shape / one.counts.sum())
        mean += middle
        square += _mean_square(one, shape - middle)
    return mean, math.sqrt(square)


def _describe_noise(
    bins: Sequence[Bins],
    parts: Sequence[Contrast],
    shapes: Sequence[Floats],
    covariances: Sequence[Floats],
    scale: Scale,
    constant: float,
) -> AdditiveNoise:
    of_bits, bands = [], []
    explained = left = 0.0
    for one, part, shape, covariance in zip(bins, parts, shapes, covariances, strict=True):
        centering = np.eye(len(shape)) - one.counts / one.counts.sum()
        band = np.sqrt(np.maximum(np.diagonal(centering @ covariance @ centering.T), 0.0))
        of_bits.append(part.matrix @ covariance @ part.matrix.T)
        value = centering @ shape
        explained += _mean_square(one, value)
        left += _mean_square(one, band)
        # The factor is not known either: it moves all values alike.
        band = np.hypot(band, value * (scale.spread / max(scale.factor, 0.1)))
        bands.append(band[part.places])
    return AdditiveNoise(tuple(of_bits), tuple(bands), constant, explained, left)
