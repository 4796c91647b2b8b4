"""The public numbers that advice is made from, and the worlds that agree with them."""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Literal, Self, get_args

from .._support.parameters import Checked, Rules, optional, store
from .._support.validate import (
    nonnegative_int,
    number,
    one_of,
    positive,
    positive_int,
    probability,
    refuse,
)
from ..accounting import gaussian_mu
from ..local.estimation import advantage

Learner = Literal["linear", "regression", "finite", "other", "mean", "table"]
Target = Literal["same", "shifted", "unknown"]
Source = Literal["private", "public"]
MOST = 1 << 53
# Cells of a table, as randomizers have them.
_MOST_CELLS = 1 << 24
# For which there are tables of votes.
LEAST_EPSILON, LARGEST_EPSILON = 0.001, 1_000.0
_LEAST_DELTA = 1e-200
_RAREST = 1e-6
# By which losses of tables were more or less than the law of `signals` says.
_LUCK = (0.05, 0.4, 0.9, 1.8, 5.0)
# The same of a choice among hypotheses, whose formulas bound it from above.
_LUCK_OF_CHOICES = (0.25, 1.0, 1.5)
# E[target / source], the shift of the log-odds, and what a model of the source loses besides, from
# no shift to a large one.
_SHIFTS = ((1.0, 0.0, 0.0), (3.0, 0.7, 0.05), (10.0, 1.5, 0.15), (30.0, 3.0, 0.4))
# Of numbers within public bounds, over half the width of these: their standard deviation, and the
# root mean square of their distances from the middle. Columns of real tables have .03 to .82 and
# .35 to 1, nine in ten.
_SPREADS_OF_MEANS = (
    *((0.03, 0.99), (0.1, 0.95), (0.2, 0.25), (0.2, 0.75)),
    *((0.35, 0.55), (0.7, 0.85), (1.0, 1.0)),
)
# Of categories, over that of equal shares: .42 to .96.
_SPREADS_OF_TABLES = ((0.05, 1.0), (0.4, 1.0), (0.6, 1.0), (0.85, 1.0), (1.0, 1.0))
# How far means of two populations are apart, over half the width, and shares of categories, over
# the most that equal shares may be off: none, and up to what nine in ten of 273 columns of real
# pairs have, and of 18.
_SHIFTS_OF_MEANS, _SHIFTS_OF_TABLES = (0.0, 0.02, 0.06, 0.2), (0.0, 0.1, 0.2, 0.5)
# Where no base rate is known.
_BASE_RATES = (0.05, 0.2, 0.5)
# Of what can be learned, the share that no linear model learns, where labels may be of any kind.
_MISFITS = (0.0, 0.5)


def _count(name: str, value: Any) -> int:
    count = nonnegative_int(name, value)
    if count > MOST:
        refuse(name, value, f"it must be an integer from 0 to {MOST}")
    return count


def _check_epsilon(name: str, value: Any) -> float:
    epsilon = number(name, value)
    if epsilon != math.inf and not LEAST_EPSILON <= epsilon <= LARGEST_EPSILON:
        refuse(name, value, "it must lie in [0.001, 1000], or be infinite")
    return epsilon


def _check_delta(name: str, value: Any) -> float:
    delta = probability(name, value)
    if delta < _LEAST_DELTA:
        refuse(name, value, f"it must be at least {_LEAST_DELTA}")
    return delta


def _check_rate(name: str, value: Any) -> float:
    rate = number(name, value)
    if not _RAREST <= rate <= 1 - _RAREST:
        refuse(name, value, f"it must lie in [{_RAREST}, 1 - {_RAREST}]")
    return rate


@dataclass(frozen=True, kw_only=True)
class Sizes(Checked):
    """The public numbers of a task, as `advise` takes and describes them."""

    RULES: ClassVar[Rules] = {
        "n": _count,
        "d": partial(positive_int, most=MOST),
        "epsilon": _check_epsilon,
        "agents": _count,
        "pool": _count,
        "classes": partial(positive_int, most=256),
        "delta": _check_delta,
        "agents_epsilon": positive,
        "learner": partial(one_of, allowed=get_args(Learner)),
        "size": optional(partial(positive_int, most=MOST)),
        "target": partial(one_of, allowed=get_args(Target)),
        "source": partial(one_of, allowed=get_args(Source)),
        "base_rate": optional(_check_rate),
        "best_error": optional(partial(probability, zero=True)),
    }

    n: int
    d: int
    epsilon: float
    agents: int
    pool: int
    classes: int
    delta: float
    agents_epsilon: float
    learner: Learner
    size: int | None
    target: Target
    source: Source
    base_rate: float | None
    best_error: float | None

    def __post_init__(self) -> None:
        """Check each number, and that they fit together."""
        super().__post_init__()
        _check_together(self)
        advantage(self.agents_epsilon)

    @property
    def mu(self) -> float:
        """Parameter of the Gaussian mechanism with this epsilon and delta."""
        return math.inf if self.epsilon == math.inf else gaussian_mu(self.epsilon, self.delta)

    @property
    def advantage(self) -> float:
        """What an agent's answer is worth: Pr[truth] - Pr[lie]."""
        return advantage(self.agents_epsilon)

    @property
    def predicts_number(self) -> bool:
        """Whether labels are numbers; their errors are shares of their variance."""
        return self.learner == "regression"

    @property
    def is_estimate(self) -> bool:
        """Whether means or shares are wanted, and no model."""
        return self.learner in ("mean", "table")

    @property
    def constant_error(self) -> float:
        """The error of the best constant, the largest that is possible if no base rate is known."""
        if self.predicts_number:
            return 1.0
        if self.learner == "mean":
            return 0.5
        if self.learner == "table":
            cells = self.size or 2
            return math.sqrt((1 - 1 / cells) / cells)
        if self.base_rate is None:
            return 1 - 1 / self.classes
        return min(self.base_rate, 1 - self.base_rate)

    @property
    def room(self) -> float:
        """What can be learned: the constant's error above that of a model without privacy."""
        return self.constant_error - (self.best_error or 0.0)

    def change(self, **changes: Any) -> Self:
        """The same with other numbers, which are known to fit."""
        changed = copy.copy(self)
        store(changed, **changes)
        return changed


def _check_together(sizes: Sizes) -> None:
    if sizes.classes < 2:
        refuse("classes", sizes.classes, "it must be at least 2")
    if sizes.learner == "finite" and sizes.size is None:
        refuse("size", sizes.size, "a finite class has a number of hypotheses: pass their number")
    if sizes.learner == "finite" and sizes.classes != 2:
        refuse("classes", sizes.classes, "the hypotheses of a finite class say 0 or 1: take 2")
    if sizes.predicts_number and sizes.classes != 2:
        refuse("classes", sizes.classes, "learner is 'regression': a number has no classes")
    if sizes.predicts_number and sizes.base_rate is not None:
        refuse("base_rate", sizes.base_rate, "learner is 'regression': a number has no base rate")
    if sizes.learner == "table" and not 2 <= (sizes.size or 0) <= _MOST_CELLS:
        refuse("size", sizes.size, "a table has from 2 to 2**24 cells: pass their number")
    if sizes.learner not in ("finite", "table") and sizes.size is not None:
        rule = f"learner is {sizes.learner!r}: only a finite class and a table have a size"
        refuse("size", sizes.size, rule)
    if sizes.is_estimate:
        _check_estimate(sizes)
        return
    if sizes.base_rate is not None and sizes.classes != 2:
        refuse("base_rate", sizes.base_rate, "it is the share of label 1 of 2 classes")
    if sizes.source == "public" and not sizes.pool:
        refuse("pool", sizes.pool, "a public source has records: pass their number")
    if not sizes.n and (sizes.source == "private" or not sizes.agents):
        refuse("n", sizes.n, "there must be private records, or a public source and agents")
    if sizes.best_error is not None and sizes.best_error >= sizes.constant_error:
        rule = f"it must be below the constant's error, {sizes.constant_error:.3g}"
        refuse("best_error", sizes.best_error, rule)


def _check_estimate(sizes: Sizes) -> None:
    """Refuse what means and tables do not have."""
    usual = {"pool": 0, "classes": 2, "source": "private", "base_rate": None, "best_error": None}
    for name, value in usual.items():
        if getattr(sizes, name) != value:
            rule = f"learner is {sizes.learner!r}: leave it out"
            refuse(name, getattr(sizes, name), rule)
    if sizes.learner == "table" and sizes.d != 1:
        refuse("d", sizes.d, "it is one table: take 1, and as size the cells of columns crossed")
    if not sizes.n and not sizes.agents:
        refuse("n", sizes.n, "there must be private records or agents")


@dataclass(frozen=True)
class Population:
    """One way the numbers or categories of people may be, in units of the largest constant error.

    Attributes:
        spread: Standard deviation of a person's number; of a table, root mean square over its cells
            of that of belonging to the cell.
        distance: Root mean square of the numbers' distance from the middle of the bounds.
        shift: How far source and target are apart.
    """

    spread: float
    distance: float
    shift: float


def list_populations(sizes: Sizes) -> tuple[Population, ...]:
    """All populations that agree with what is known, each as likely as any other."""
    is_mean = sizes.learner == "mean"
    spreads = _SPREADS_OF_MEANS if is_mean else _SPREADS_OF_TABLES
    unknown = _SHIFTS_OF_MEANS if is_mean else _SHIFTS_OF_TABLES
    shifts = {"same": unknown[:1], "unknown": unknown, "shifted": unknown[1:]}[sizes.target]
    pairs = itertools.product(spreads, shifts)
    return tuple(Population(*numbers, shift) for numbers, shift in pairs)


@dataclass(frozen=True)
class World:
    """One way the data may be.

    Attributes:
        luck: By what factor noise and chance take more than they do of most tables.
        room: What can be learned, as a share of the constant's error; None where that is not known.
        overlap: Share of the records that is worth as much as a sample of the target:
            1 / E[target / source].
        log_odds: By how much the log-odds of a label differ between source and target.
        drift: Share that a model of the source loses on the target, whatever its intercept.
        base_rate: Share of the rarer label.
        sharp: Whether labels are a function of a finite class's features, or nearly noise.
        misfit: Share of what can be learned that no such model learns.
        split: Whether the target follows a rule that only a part of the source follows.
    """

    luck: float
    room: float | None
    overlap: float
    log_odds: float
    drift: float
    base_rate: float
    sharp: bool
    misfit: float
    split: bool


def list_worlds(sizes: Sizes) -> tuple[World, ...]:
    """All worlds that agree with what is known, each as likely as any other."""
    return tuple(_combine(sizes))


def _combine(sizes: Sizes) -> Iterator[World]:
    shifts = {"same": _SHIFTS[:1], "unknown": _SHIFTS, "shifted": _SHIFTS[1:]}[sizes.target]
    is_finite = sizes.learner == "finite"
    splits = (False, True) if is_finite and sizes.target != "same" else (False,)
    misfits = _MISFITS if sizes.learner == "other" else (0.0,)
    luck, sharp = (_LUCK_OF_CHOICES, (True, False)) if is_finite else (_LUCK, (False,))
    room = None if sizes.best_error is None else sizes.room / sizes.constant_error
    for factor, (chi2, log_odds, drift), rate, one, misfit, split in itertools.product(
        luck, shifts, _rates(sizes), sharp, misfits, splits
    ):
        yield World(factor, room, 1 / chi2, log_odds, drift, rate, one, misfit, split)


def _rates(sizes: Sizes) -> tuple[float, ...]:
    if sizes.base_rate is not None:
        return (min(sizes.base_rate, 1 - sizes.base_rate),)
    if sizes.predicts_number:
        return (0.5,)
    return _BASE_RATES if sizes.classes == 2 else (1 / sizes.classes,)


def lose_intercept(square: float, world: World) -> float:
    """Share that an error of the intercept takes, whose mean square is given.

    The log loss grows by V / 2 times the square, where V is the mean of p (1 - p), taken as half
    of what a constant has. What can be learned is taken as half of the constant's log loss.
    """
    pi = world.base_rate
    entropy = -pi * math.log(pi) - (1 - pi) * math.log1p(-pi)
    return min(1.0, pi * (1 - pi) / 2 * square / entropy)


def join_losses(*shares: float) -> float:
    """What is lost in all, at most twice what can be learned: a model may be worse than none."""
    return min(2.0, math.fsum(shares))
