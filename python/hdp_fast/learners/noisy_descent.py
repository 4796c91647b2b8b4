"""A full-batch descent with momentum for classes or a target, whose sums are exact and noisy."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import _core
from .._support.types import Floats, Integers
from ..data.goal import Goal
from ..record import PrivacyRecord, gaussian_law, rng_of

# Measured on 14 tables, 300 to 6,000 records, epsilon .1 to 8: accuracy is flat around each.
_MOMENTUM = 0.85
_FEWEST_STEPS, _MOST_STEPS, _STEPS = 8, 120, 4.0
# From here on gradients may be longer, for their noise is small.
_CLEAR_CLIP, _MOST_GROWTH = 200, 8.0
# Of a target: the rate, the clip norm for each unit of its root mean square, and where it grows.
# Measured on 10 tables, 300 to 10,000 records, epsilon .1 to 4.
_TARGET_RATE, _TARGET_CLIP, _CLEAR_TARGET = 1.5, 0.25, 35
# Clipped records pull less than their squares say: the share of the curvature of all that is left.
_TARGET_CURVATURE = 0.3
# The digits of rows, in two bytes: no entry counts as larger than twice the root mean squared norm,
# and none of centered rows is.
_ROW_BITS, _LARGEST_ENTRY = 14, 2.0**15 - 1
# The digits of residuals: as many as sums and noise leave room for.
_MOST_BITS, _LEAST_BITS = 20, 6
_SUM_BITS, _NOISE_BITS = 53, 48
# Deviations are multiples of 1 / 1,024: draws are slow with longer fractions.
_SIGMA_BITS = 10


class DescentPlan(NamedTuple):
    """What a full-batch descent is made of: public numbers, and rules for them.

    Attributes:
        steps: Number of steps.
        rate: What a step's speed is multiplied with.
        clip_norm: Norm that a record's gradient is shrunk to, for rows of a mean squared norm of 1.
        growth: By how much the clip norm has grown, for many records.
    """

    steps: int
    rate: float
    clip_norm: float
    growth: float

    @property
    def averaged(self) -> int:
        """How many of the last models are averaged."""
        return self.steps - self.steps // 2


class DescentNoise(NamedTuple):
    """What a release tells of the noise in the weights of its descent.

    Attributes:
        plan: What the descent was made of.
        entry: The deviation of the noise in an entry of a step's mean gradient.
        factor: What the weights were multiplied with at the end.
        factor_spread: The deviation of its logarithm.
        base: What was added to the weights of the constant then, shape (columns,).
        base_spread: Its deviation, shape (columns,).
    """

    plan: DescentPlan
    entry: float
    factor: float
    factor_spread: float
    base: Floats
    base_spread: Floats

    def weight_variances(self, curvatures: Floats) -> Floats:
        """The variance of the weights, before the factor, along directions of these curvatures.

        Noise is followed through all steps that come after it, as if gradients were linear in the
        weights.

        curvatures: of the loss on rows of a mean squared norm of 1, at least 0.
        """
        steps, first = self.plan.steps, self.plan.steps // 2
        move, speed = np.zeros_like(curvatures), np.ones_like(curvatures)
        sums = [np.zeros_like(curvatures)]  # of what one unit of noise does to the models after it
        for _ in range(steps):
            move = move - self.plan.rate * speed
            sums.append(sums[-1] + move)
            speed = _MOMENTUM * speed + curvatures * move
        variances = np.zeros_like(curvatures)
        for step in range(steps):
            part = sums[steps - step] - sums[max(first - step, 0)]
            variances += (self.entry * part / self.plan.averaged) ** 2
        return variances


def plan_descent(clear: float, classes: int) -> DescentPlan:
    """The plan for a signal that stands so far out of the noise, n mu / sqrt(weights)."""
    growth = min(max(1.0, math.sqrt(clear / _CLEAR_CLIP)), _MOST_GROWTH)
    steps = round(min(max(_STEPS * math.sqrt(clear), _FEWEST_STEPS), _MOST_STEPS))
    clip, rate = (0.25, 10.0) if classes < 4 else (0.35, 20.0)
    return DescentPlan(steps, rate, clip * growth, growth)


def plan_target_descent(clear: float, spread: float) -> DescentPlan:
    """The plan for a target with such a root mean square, and n mu / sqrt(weights)."""
    growth = min(max(1.0, math.sqrt(clear / _CLEAR_TARGET)), _MOST_GROWTH)
    steps = round(min(max(_STEPS * math.sqrt(clear), _FEWEST_STEPS), _MOST_STEPS))
    return DescentPlan(steps, _TARGET_RATE, _TARGET_CLIP * spread * growth, growth)


class Grid(NamedTuple):
    """The integers of a descent.

    Attributes:
        bits: Digits of residuals behind the point.
        length: The largest norm of what a record adds to a sum.
        sigma: Deviation of the noise on each entry of a sum.
    """

    bits: int
    length: int
    sigma: Fraction

    @property
    def unit(self) -> float:
        """The gradient that an integer of a sum stands for."""
        return 2.0 ** -(_ROW_BITS + self.bits)


def calibrate_descent(plan: DescentPlan, n: int, square: Fraction) -> Grid | None:
    """The integers for n rows, at which all steps are one Gaussian mechanism.

    square: the square of its mu, distance of neighbors over deviation, which is not exceeded.
    Returns None where more noise would be needed than is drawn.
    """
    mu, length = math.sqrt(square), math.ldexp(plan.clip_norm, _ROW_BITS)
    noise = 2 * length * math.sqrt(plan.steps) / max(mu, 1e-300)
    room = min(_SUM_BITS - math.log2(n * length), _NOISE_BITS - math.log2(noise))
    bits = min(_MOST_BITS, math.floor(room) - 1)
    if bits < _LEAST_BITS:
        return None
    longest = math.floor(math.ldexp(length, bits))
    return Grid(bits, longest, find_sigma(plan.steps * (2 * longest) ** 2, square))


def find_sigma(squared: int, square: Fraction) -> Fraction:
    """The least deviation on a grid at which squared / sigma**2 <= square, in exact arithmetic."""
    least = math.ceil(Fraction(squared << (2 * _SIGMA_BITS)) / square)
    return Fraction(math.isqrt(least - 1) + 1, 1 << _SIGMA_BITS)


def record_gaussians(mechanism: str, goal: Goal) -> PrivacyRecord:
    """The record of noisy integer sums whose squares add up to that of the goal's mu."""
    record = PrivacyRecord(
        mechanism=mechanism,
        source="composition of Gaussian mechanisms (Dong, Roth and Su 2022)",
        neighbors=goal.neighbors,
        epsilon=goal.epsilon,
        delta=goal.settled_delta,
        noise="rounded normal on integers",
        rng=rng_of(goal.random_state),
        **gaussian_law(*goal.price),
    )
    return goal.persons.state(record)


@dataclass(frozen=True, eq=False)
class IntegerRows:
    """Rows as integers, and the most that each may count in a sum.

    No method releases anything. `add_gradients` differs by at most `2 grid.length` in Euclidean
    norm if one record is replaced:

    - A record's part is the integer vector z and a vector r of integer residuals, one for each
      column of weights; it adds the outer product z r, of Frobenius norm |z| |r|.
    - r is shrunk to a norm of at most grid.length / |z|: |z|**2 is an exact integer, and norms,
      roots and quotients are rounded by less than the factor that limits are multiplied with. Its
      entries are cut towards 0 then, which makes none larger. So |z| |r| <= grid.length, and two
      such parts are at most twice as far apart, which two records with opposite labels come close
      to.
    - Products are integers of at most grid.length, and sums of n of them stay below 2**53, which
      the core checks: all are exact, in any order and on any number of threads.
    - What r one record has is all that floating point decides: scores in single precision, in an
      order that is fixed for a row, and an exponential that is the same on every machine.
    - Of a target r is one integer, score less target. However large the loss is, r is shrunk alike.

    Attributes:
        entries: Integers, int16, shape (n, d): two bytes for each.
        codes: Numbers of the classes, or a target's integers in the unit of the rows, int16, shape
            (n,).
        classes: How many there are; two have one column of weights. One is a target.
        grid: The integers of the descent.
    """

    entries: NDArray[np.int16]
    codes: NDArray[np.int16]
    classes: int
    grid: Grid

    @property
    def shape(self) -> tuple[int, int]:
        """The number of records, and that of their entries."""
        n, d = self.entries.shape
        return n, d

    def count_classes(self) -> Integers:
        """How many records each class has."""
        return np.bincount(self.codes, minlength=self.classes)

    @property
    def columns(self) -> int:
        """The number of columns of weights."""
        return 1 if self.classes <= 2 else self.classes

    @cached_property
    def limits(self) -> Floats:
        """The largest norm of each record's residuals, shape (n,)."""
        width = self.entries.shape[1]
        return _core.full_batch_limits(self.entries.ravel(), width, float(self.grid.length))

    def add_gradients(self, weights: Floats) -> Integers:
        """The sum of all records' shrunk gradients, shape (d, columns), as integers."""
        sums = _core.full_batch_sum(self._records, self._places, weights.T.ravel())
        return sums.reshape(weights.T.shape).T

    def count_margins(self, weights: Floats, edges: Floats, second: NDArray[np.bool_]) -> Integers:
        """Counts, between edges, of how far the true class's score is above that of each other.

        They are counted for two groups of pairs of a true class and another, shape (2, bins). The
        outer bins have no end. A record has K - 1 margins, and one that is replaced moves all of
        them at most: the distance of neighbors is sqrt(2) (K - 1).

        Whatever factor a softmax model's scores are multiplied with, its margins are, too. Among
        the records of any two classes the label is logistic in their margin, if it is softmax in
        all scores: the factor that is right for all pairs is right for the model.

        second: whether a pair is of the second group, shape (K, K).
        """
        unit, *_ = self._places
        inner, groups = edges[1:-1].copy(), second.astype(np.uint8).ravel()
        counts = _core.full_batch_margins(self._records, unit, weights.T.ravel(), inner, groups)
        return counts.reshape(2, -1)

    def descend(self, plan: DescentPlan, drawn: Integers) -> tuple[Floats, float]:
        """The mean of the last models of a descent, and how far gradients were along them."""
        steps = plan.rate, _MOMENTUM, plan.averaged
        order = drawn.transpose(0, 2, 1)
        mean, along = _core.full_batch_descend(self._records, self._places, steps, order.ravel())
        return mean.reshape(order.shape[1:]).T, along

    @property
    def _records(self) -> tuple[Any, ...]:
        width = self.entries.shape[1]
        return self.entries.ravel(), width, self.codes, self.classes, self.limits

    @property
    def _places(self) -> tuple[float, int, float]:
        return 2.0**-_ROW_BITS, self.grid.bits, float(self.grid.length)


def cut_rows(rows: Floats) -> NDArray[np.int16]:
    """Rows of a mean squared norm of about 1 as integers, cut towards 0 as casts do."""
    scaled = rows * 2.0**_ROW_BITS
    return np.clip(scaled, -_LARGEST_ENTRY, _LARGEST_ENTRY, out=scaled).astype(np.int16)


@dataclass(frozen=True, eq=False)
class IntegerParts:
    """What IntegerRows are, of records that are made to integers again for each sum.

    The sums are the same integers, and so is all that is made of them.

    Attributes:
        shape: The number of records, and that of their entries.
        classes: How many classes there are, as IntegerRows has it.
        grid: The integers of the descent.
        add_up: Adds up what a function makes of the IntegerRows of some of the records, for all.
    """

    shape: tuple[int, int]
    classes: int
    grid: Grid
    add_up: Callable[[Callable[[IntegerRows], Integers]], Integers]

    @property
    def columns(self) -> int:
        """The number of columns of weights."""
        return 1 if self.classes <= 2 else self.classes

    def count_classes(self) -> Integers:
        """As IntegerRows has it."""
        return self.add_up(IntegerRows.count_classes)

    def count_margins(self, weights: Floats, edges: Floats, second: NDArray[np.bool_]) -> Integers:
        """As IntegerRows has it."""
        return self.add_up(partial(_count_margins, weights=weights, edges=edges, second=second))

    def descend(self, plan: DescentPlan, drawn: Integers) -> tuple[Floats, float]:
        """As the core follows noisy gradients, to the last bit; a pass over all parts a step."""
        unit = 2.0**-_ROW_BITS / 2.0**self.grid.bits / self.shape[0]
        weights, speed, mean = (np.zeros(drawn.shape[1:]) for _ in range(3))
        along = 0.0
        for step, noise in enumerate(drawn):
            sums = self.add_up(partial(IntegerRows.add_gradients, weights=weights))
            gradient = (sums + noise).astype(np.float64) * unit
            averaged = step >= plan.steps - plan.averaged
            if averaged:
                products = (gradient * weights).T.ravel()
                along = float(np.add.accumulate(np.append(along, products))[-1])
            speed = _MOMENTUM * speed + gradient
            weights = weights - plan.rate * speed
            if averaged:
                mean = mean + weights
        return mean / float(plan.averaged), along / float(plan.averaged)


class SpilledRows(NamedTuple):
    """IntegerRows in a file, one after the other.

    Attributes:
        file: The file.
        sizes: The numbers of rows of each.
        width: The number of their entries.
        classes: The number of classes.
        grid: The integers of the descent.
    """

    file: IO[bytes]
    sizes: list[int]
    width: int
    classes: int
    grid: Grid


@contextmanager
def spill(parts: Iterator[IntegerRows]) -> Iterator[SpilledRows | None]:
    """Integers in a file without a name while the block runs; None where it has no room."""
    with tempfile.TemporaryFile() as file:
        yield _write_integers(file, parts)


def _write_integers(file: IO[bytes], parts: Iterator[IntegerRows]) -> SpilledRows | None:
    spilled = None
    try:
        for part in parts:
            if spilled is None:
                spilled = SpilledRows(file, [], part.shape[1], part.classes, part.grid)
            file.write(part.entries.tobytes() + part.codes.tobytes())
            spilled.sizes.append(len(part.codes))
        file.flush()
    except OSError:
        # What is written ends with the file.
        return None
    return spilled


def add_spilled(spilled: SpilledRows, count: Callable[[IntegerRows], Integers]) -> Integers:
    """The sum of the integers that `count` makes of all rows in a file."""
    total: Any = 0
    spilled.file.seek(0)
    for size in spilled.sizes:
        numbers = np.frombuffer(spilled.file.read(2 * size * (spilled.width + 1)), np.int16)
        entries, codes = numbers[: size * spilled.width], numbers[size * spilled.width :]
        rows = entries.reshape(size, spilled.width)
        total = total + count(IntegerRows(rows, codes, spilled.classes, spilled.grid))
    return np.asarray(total)


def _count_margins(
    rows: IntegerRows, *, weights: Floats, edges: Floats, second: NDArray[np.bool_]
) -> Integers:
    return rows.count_margins(weights, edges, second)


def cut_targets(targets: Floats) -> NDArray[np.int16]:
    """Targets in [-1, 1] as integers of IntegerRows."""
    return np.rint(targets.clip(-1.0, 1.0) * 2.0**_ROW_BITS).astype(np.int16)


class ShrunkDescent(NamedTuple):
    """How far a target's weights are shrunk, by what is known of their noise.

    Attributes:
        factor: What the weights are to be multiplied with, from 0 to 1.
        explained: The mean square of scores with all weights multiplied.
        left: The mean square of what noise leaves open in that.
    """

    factor: float
    explained: float
    left: float


def shrink_by_noise(weights: Floats, squares: Floats, known: DescentNoise) -> ShrunkDescent:
    """The factor of a normal prior for the weights, as wide as makes their size likely.

    Noise adds to the mean square of scores what its deviation says, and the rest of it is signal.
    No record is read. Source: James and Stein 1961.

    weights: of columns, shape (d,).
    squares: their mean squares, as if none went with another, shape (d,).
    """
    variances = known.weight_variances(_TARGET_CURVATURE * squares)
    seen, noise = float(squares @ weights**2), float(squares @ variances)
    factor = max(1 - noise / max(seen, math.ulp(0.0)), 0.0)
    return ShrunkDescent(factor, factor**2 * seen, factor * noise)


class Path(NamedTuple):
    """Where a descent went.

    Attributes:
        weights: Mean of the last models, shape (d, columns).
        along: Mean over their steps of the inner product of noisy gradient and model. The noise of
            a step is independent of the model that it comes to: it is a martingale, and so an
            unbiased estimate.
        deviation: Deviation of its noise.
    """

    weights: Floats
    along: float
    deviation: float


def descend(records: IntegerRows | IntegerParts, plan: DescentPlan, drawn: Integers) -> Path:
    """Follow noisy gradients from 0, with momentum.

    Guarantee: with `drawn` from noise.rounded_gaussian(records.grid.sigma), all steps together are
    as private as one Gaussian mechanism whose mu has the square steps (2 length / sigma)**2: each
    is one, given what was released before, and those compose by squares (Dong, Roth and Su 2022,
    Corollary 2). Momentum and means are post-processing.

    drawn: integers, shape (steps, d, columns); 0 without noise.

    Cost: O(n d columns) for each step, all in one call of the core: two bytes are read for each of
    the n d entries.

    Source: Polyak 1964; Bassily, Smith and Thakurta 2014 for full batches.
    """
    mean, along = records.descend(plan, drawn)
    of_step = float(records.grid.sigma) * records.grid.unit / records.shape[0]
    deviation = of_step * float(np.linalg.norm(mean)) / math.sqrt(plan.averaged)
    return Path(mean, along, deviation)
