"""What public numbers do not say: a small set of worlds, over which forecasts are averaged."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass

from .sizes import Sizes

# From weak features to strong ones.
_STRENGTHS = (0.0, 0.5, 1.0)
# E[target / source] and the shift of the log-odds, from no shift to a large one.
_SHIFTS = ((1.0, 0.0), (3.0, 1.0), (10.0, 2.0), (30.0, 3.0))
# Where no base rate is known.
_BASE_RATES = (0.05, 0.2, 0.5)
# Of what can be learned, the share that no linear model learns, where labels may be of any kind.
_MISFITS = (0.0, 0.5)


@dataclass(frozen=True)
class World:
    """One way the data may be.

    Attributes:
        strength: How much the features say of the labels, from 0 to 1.
        overlap: Share of the records that is worth as much as a sample of the target:
            1 / E[target / source].
        log_odds: By how much the log-odds of a label differ between source and target.
        base_rate: Share of the rarer label.
        sharp: Whether labels are a function of the features; otherwise they are nearly noise.
        misfit: Share of what can be learned that no linear model learns.
        split: Whether the target follows a rule that only a part of the source follows.
    """

    strength: float
    overlap: float
    log_odds: float
    base_rate: float
    sharp: bool
    misfit: float
    split: bool

    @property
    def gap(self) -> float:
        """Distance of a class's mean features from the mean of all, where rows have norm 1."""
        return 0.1 * math.pow(5, self.strength)

    @property
    def separation(self) -> float:
        """Squared half distance of two classes in units of their spread: 1/4 to 1."""
        return 0.25 * math.pow(4, self.strength)


def list_worlds(sizes: Sizes) -> tuple[World, ...]:
    """All worlds that agree with what is known, each as likely as any other."""
    return tuple(_combine(sizes))


def _combine(sizes: Sizes) -> Iterator[World]:
    shifts = {"same": _SHIFTS[:1], "unknown": _SHIFTS, "shifted": _SHIFTS[1:]}[sizes.target]
    splits = (False, True) if sizes.learner == "finite" and sizes.target != "same" else (False,)
    misfits = _MISFITS if sizes.learner == "other" else (0.0,)
    for strength, (chi2, log_odds), rate, sharp, misfit, split in itertools.product(
        _STRENGTHS, shifts, _rates(sizes), (True, False), misfits, splits
    ):
        yield World(strength, 1 / chi2, log_odds, rate, sharp, misfit, split)


def _rates(sizes: Sizes) -> tuple[float, ...]:
    if sizes.base_rate is not None:
        return (min(sizes.base_rate, 1 - sizes.base_rate),)
    return _BASE_RATES if sizes.classes == 2 else (1 / sizes.classes,)


def lose_direction(signal: float, world: World) -> float:
    """Share of what can be learned that noise takes from a linear model.

    Noise of norm 1 / signal is added to weights of norm 1. The angle between both has tangent
    1 / signal. Where labels are a function of the score, the share is that angle over a right one;
    where they are nearly noise, what is gained goes with the angle's cosine.
    """
    if signal <= 0:
        return 1.0
    angle = math.atan(1 / signal)
    return 2 * angle / math.pi if world.sharp else 1 - math.cos(angle)


def lose_intercept(square: float, world: World) -> float:
    """Share that an error of the intercept takes, whose mean square is given.

    The log loss grows by V / 2 times the square, where V is the mean of p (1 - p), taken as half
    of what a constant has. What can be learned is taken as half of the constant's log loss.
    """
    pi = world.base_rate
    entropy = -pi * math.log(pi) - (1 - pi) * math.log1p(-pi)
    variance = pi * (1 - pi) / 2
    return min(1.0, variance * square / entropy)


def join_losses(*shares: float) -> float:
    """What is lost where each part takes its share of what the others leave."""
    return 1 - math.prod(1 - min(1.0, share) for share in shares)
