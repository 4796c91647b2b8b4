"""The effects of the features of a linear model, beside the noise of its release."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from .._support.types import Floats
from ..data.rows import Rows
from .statistics_noise import chi_square_quantile

# How likely noise is within two standard deviations.
_WITHIN_TWO = math.erf(math.sqrt(2.0))
# What all weights together must exceed: noise alone does so with this probability.
_LEVEL = 0.01
# Squares have the spread 1, but rows with large ones are those that are shrunk most.
_SQUARE_SPREAD = 0.5
# No deviation counts as smaller.
_LEAST_DEVIATION = 1e-30


class Effect(NamedTuple):
    """What a feature adds to the scores of a linear model.

    Attributes:
        name: The feature; a number stands for its square, too.
        weights: What one standard deviation of a number adds to each score, or a category beyond
            what its column adds on average, by released means.
        squares: What one standard deviation of its square, less what is linear in it, adds; empty
            where there are no squares, and for a category.
        deviations: Standard deviations of the noise in weights and then squares, or bounds on them;
            None where they are not known.
        size: Root mean square of what the feature adds over rows, for all scores together.
        size_deviation: That of the noise in the part of it that is largest; None as well.
        told: Whether the effect is told from 0: whether its weights are further from it than two
            standard deviations of noise, and of sampling where it is known; None as well.

    Examples:
        >>> from hdp_fast.data import Label, Number, Schema
        >>> from hdp_fast.learners import CenteredLinear
        >>> columns = {"age": Number(0, 100), "size": Number(0, 10)}
        >>> bought = ["no", "yes"] * 5_000
        >>> people = {"age": [20, 70] * 5_000, "size": [5] * 10_000, "bought": bought}
        >>> schema = Schema(Label("bought", positive=("yes",)), columns)
        >>> learner = CenteredLinear(schema, epsilon=1.0, delta=1e-6)
        >>> age = learner.learn(people).told_effects().effects[0]
        >>> age.name, age.told, age.weights[0] > 0
        ('age', True, True)
    """

    name: str
    weights: tuple[float, ...]
    squares: tuple[float, ...]
    deviations: tuple[float, ...] | None
    size: float
    size_deviation: float | None
    told: bool | None


class ToldEffects(NamedTuple):
    """The effects of all features, the largest first.

    Attributes:
        effects: All of them, told from 0 or not.
        signal: How far the weights stand out of noise, and of sampling where it is known: the sum
            of their squares, each over its variance, of all weights or of those of one feature,
            over what chance alone would exceed with probability 1 % (for all sums together), and
            the root of the largest ratio. None where the noise is not known.

    Examples:
        >>> from hdp_fast.data import Label, Number, Schema
        >>> from hdp_fast.learners import CenteredLinear
        >>> columns = {"age": Number(0, 100), "size": Number(0, 10)}
        >>> bought = ["no", "yes"] * 5_000
        >>> people = {"age": [20, 70] * 5_000, "size": [5] * 10_000, "bought": bought}
        >>> schema = Schema(Label("bought", positive=("yes",)), columns)
        >>> learner = CenteredLinear(schema, epsilon=1.0, delta=1e-6, method="statistics")
        >>> told = learner.learn(people).told_effects()
        >>> [effect.name for effect in told.told], told.signal > 1
        (['age'], True)
    """

    effects: tuple[Effect, ...]
    signal: float | None

    @property
    def told(self) -> tuple[Effect, ...]:
        """Those that are told from 0; none where the noise is not known."""
        return tuple(effect for effect in self.effects if effect.told)


def tell_effects(
    rows: Rows, weights: Floats, deviations: Floats | None, sampled: float = 0.0
) -> ToldEffects:
    """Effects of weights on centered rows, the constant's last, with the deviations of noise.

    weights and deviations have a column for each score. sampled: what the sampling of the records
    makes of the weight of a column of spread 1, as a standard deviation.
    """
    weights = rows.contrast_categories() @ weights
    d, numbers = len(rows.names), np.flatnonzero(rows.is_number)
    spreads = np.sqrt(np.diagonal(rows.spread_columns()))[:d]
    places: list[list[int]] = [[place] for place in range(d)]
    for square, number in enumerate(numbers if rows.squares is not None else ()):
        places[number].append(d + square)
    names = distinct_names(rows.names_with_squares)
    varies = None if deviations is None else _add_sampling(deviations[:-1], spreads, sampled)
    effects = [
        _make_effect(names[one[0]], spreads[one[0]], *_pick(one, weights, deviations, varies))
        for one in places
    ]
    effects.sort(key=lambda effect: -effect.size)
    signal = None if varies is None else _stand_out(weights[:-1], varies, places)
    return ToldEffects(tuple(effects), signal)


def _stand_out(weights: Floats, deviations: Floats, places: Sequence[Sequence[int]]) -> float:
    """How far all weights together, or those of one feature, stand out of chance."""
    squares = _squares(weights, deviations)
    ratios = [float(squares.sum()) / chi_square_quantile(squares.size, 1 - _LEVEL / 2)]
    for one in places:
        some = squares[one]
        most = chi_square_quantile(some.size, 1 - _LEVEL / (2 * len(places)))
        ratios.append(float(some.sum()) / most)
    return math.sqrt(max(ratios))


def _make_effect(
    name: str, spread: float, weights: Floats, noise: Floats | None, varies: Floats | None
) -> Effect:
    """An effect, by the weights of a feature, and of its square if there is one."""
    size = float(spread * np.linalg.norm(weights))
    told, deviations, of_size = None, None, None
    if noise is not None and varies is not None:
        least = max(chi_square_quantile(weights.size, _WITHIN_TWO), 4.0)
        told = bool(_squares(weights, varies).sum() > least)
        deviations = tuple(noise.ravel().tolist())
        of_size = float(spread * noise.max())
    squares = tuple(weights[1:].ravel().tolist())
    return Effect(name, tuple(weights[0].tolist()), squares, deviations, size, of_size, told)


def _squares(weights: Floats, deviations: Floats) -> Floats:
    """The squares of weights, in units of their noise."""
    return (weights / np.maximum(deviations, _LEAST_DEVIATION)) ** 2


def _add_sampling(deviations: Floats, spreads: Floats, sampled: float) -> Floats:
    """The deviations of noise and sampling together."""
    all_spreads = np.full(len(deviations), _SQUARE_SPREAD)
    all_spreads[: len(spreads)] = np.maximum(spreads, _LEAST_DEVIATION)
    varies: Floats = np.hypot(deviations, (sampled / all_spreads)[:, None])
    return varies


def _pick(places: Sequence[int], *arrays: Floats | None) -> tuple[Any, ...]:
    return tuple(None if array is None else array[list(places)] for array in arrays)


def distinct_names(names: Sequence[str]) -> list[str]:
    """The names, of which a number's may be that of a category's bit."""
    places = {name: place for place, name in reversed(list(enumerate(names)))}
    return [
        name if places[name] == place else f"{name} ({place})" for place, name in enumerate(names)
    ]
