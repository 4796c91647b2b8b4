"""Exact draws: coins, integer noise, uniform and weighted integers, private selection.

Every draw follows its law exactly, not up to rounding: a float is taken as the dyadic rational that
it is, probabilities such as exp(-1/3) are enclosed by integers to as many digits as a draw needs.
"""

from __future__ import annotations

import math
from fractions import Fraction
from numbers import Rational
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _core
from ._support.random_state import check_random_state, make_key
from ._support.types import Bits, Integers, RandomState
from ._support.validate import integers, nonnegative_int, number, refuse
from .budget.account import Budget, Neighbors, spend
from .exceptions import ParameterError
from .record import PrivacyRecord, rng_of

__all__ = [
    "bernoulli",
    "bernoulli_exp",
    "discrete_gaussian",
    "discrete_laplace",
    "exponential_mechanism",
    "geometric",
    "permute_and_flip",
    "poisson_mask",
    "uniform_integers",
    "weighted_draws",
]

Number = float | Fraction
Shape = int | tuple[int, ...]

# Beyond this, draws would leave the range of int64 with a probability that is not negligible.
_LARGEST_SCALE = 1 << 50
# Larger terms of a Fraction cost time and say nothing.
_LARGEST_TERM = 1 << 4096


@overload
def bernoulli(p: Number, size: None = None, *, random_state: RandomState = None) -> int: ...
@overload
def bernoulli(p: Number, size: Shape, *, random_state: RandomState = None) -> Bits: ...
def bernoulli(
    p: Number, size: Shape | None = None, *, random_state: RandomState = None
) -> int | Bits:
    """Draws that are 1 with probability exactly p.

    p: in [0, 1], a number or a Fraction. size: of the uint8 array returned; None returns one int.
    random_state: None draws from the operating system, an int or a Generator makes a reproducible
    test stream.

    Guarantee: exact; no rounding anywhere.
    Raises: ParameterError.
    Cost: little more than a byte of the random stream a draw.
    Source: comparison of uniform bits with the binary expansion of p, until they differ.
    """
    return _draw(_core.bernoulli, size, (_probability("p", p), False), random_state)


@overload
def bernoulli_exp(gamma: Number, size: None = None, *, random_state: RandomState = None) -> int: ...
@overload
def bernoulli_exp(gamma: Number, size: Shape, *, random_state: RandomState = None) -> Bits: ...
def bernoulli_exp(
    gamma: Number, size: Shape | None = None, *, random_state: RandomState = None
) -> int | Bits:
    """Draws that are 1 with probability exactly exp(-gamma).

    gamma: at least 0, a number or a Fraction. size, random_state: as for bernoulli.

    Guarantee: exact; the binary expansion of exp(-gamma) is computed to the digits that are needed.
    Raises: ParameterError.
    Cost: little more than a byte of the random stream a draw.
    Source: as bernoulli; exp by its series in integers, with bounds on both sides.
    """
    return _draw(_core.bernoulli, size, (_rate("gamma", gamma), True), random_state)


def poisson_mask(n: int, rate: Number, *, random_state: RandomState = None) -> NDArray[np.bool_]:
    """A Poisson subsample of n records: each is in it with probability exactly rate.

    n: at least 0. rate: in [0, 1], a number or a Fraction. random_state: as for bernoulli.
    Returns bool (n,).

    Guarantee: exact and independent from record to record; how far this amplifies privacy depends
        on what is done with the sample, and holds only while the mask stays secret.
    Raises: ParameterError.
    Cost: as bernoulli.
    Source: as bernoulli.
    """
    drawn = _core.bernoulli(
        _probability("rate", rate), False, nonnegative_int("n", n), make_key(random_state)
    )
    return drawn.view(np.bool_)


@overload
def geometric(scale: Number, size: None = None, *, random_state: RandomState = None) -> int: ...
@overload
def geometric(scale: Number, size: Shape, *, random_state: RandomState = None) -> Integers: ...
def geometric(
    scale: Number, size: Shape | None = None, *, random_state: RandomState = None
) -> int | Integers:
    """Integers x >= 0 with Pr[x] proportional to exp(-x / scale).

    scale: above 0 and below 2**50, a number or a Fraction. size: of the int64 array returned;
    None returns one int. random_state: as for bernoulli.

    Guarantee: exact; beyond 2**63 - 1 (probability below exp(-8191)) the value saturates.
    Raises: ParameterError.
    Cost: one to six words of the random stream a draw, growing with log(scale).
    Source: inversion of certified bounds, one binary block of digits at a time; for few draws
        Canonne, Kamath and Steinke 2020, Algorithm 2.
    """
    return _draw_noise("geometric", "scale", scale, size, random_state)


@overload
def discrete_laplace(
    scale: Number, size: None = None, *, random_state: RandomState = None
) -> int: ...
@overload
def discrete_laplace(
    scale: Number, size: Shape, *, random_state: RandomState = None
) -> Integers: ...
def discrete_laplace(
    scale: Number, size: Shape | None = None, *, random_state: RandomState = None
) -> int | Integers:
    """Integers x with Pr[x] proportional to exp(-|x| / scale).

    scale: above 0 and below 2**50, a number or a Fraction. size: of the int64 array returned;
    None returns one int. random_state: as for bernoulli.

    Guarantee: exact. Added to an integer query whose neighbors differ by at most Delta, noise of
        scale Delta / epsilon is pure epsilon-DP. Values beyond int64 (probability below exp(-8191))
        saturate.
    Raises: ParameterError.
    Cost: one to six words of the random stream a draw, growing with log(scale).
    Source: as geometric; the sign comes with the lowest digits.
    """
    return _draw_noise("laplace", "scale", scale, size, random_state)


@overload
def discrete_gaussian(
    sigma: Number, size: None = None, *, random_state: RandomState = None
) -> int: ...
@overload
def discrete_gaussian(
    sigma: Number, size: Shape, *, random_state: RandomState = None
) -> Integers: ...
def discrete_gaussian(
    sigma: Number, size: Shape | None = None, *, random_state: RandomState = None
) -> int | Integers:
    """Integers x with Pr[x] proportional to exp(-x**2 / (2 sigma**2)).

    sigma: above 0 and below 2**50, a number or a Fraction. size: of the int64 array returned;
    None returns one int. random_state: as for bernoulli.

    Guarantee: exact. Added to an integer query whose neighbors differ by at most Delta, it makes a
        release that is Delta**2 / (2 sigma**2)-zCDP; the curve of the continuous Gaussian does not
        hold for it.
    Raises: ParameterError.
    Cost: one word of the random stream a draw up to sigma = 64, three beyond.
    Source: inversion of certified bounds, beyond sigma = 64 for blocks of integers, with a
        rejection inside; for few draws Canonne, Kamath and Steinke 2020, Algorithm 3.
    """
    return _draw_noise("gaussian", "sigma", sigma, size, random_state)


@overload
def uniform_integers(bound: int, size: None = None, *, random_state: RandomState = None) -> int: ...
@overload
def uniform_integers(bound: int, size: Shape, *, random_state: RandomState = None) -> Integers: ...
def uniform_integers(
    bound: int, size: Shape | None = None, *, random_state: RandomState = None
) -> int | Integers:
    """Uniform integers in 0, ..., bound - 1.

    bound: in [1, 2**63). size: of the int64 array returned; None returns one int. random_state: as
    for bernoulli.

    Guarantee: exact, no modulo bias.
    Raises: ParameterError.
    Cost: one word of the random stream a draw, rarely more.
    Source: Lemire 2019.
    """
    most = nonnegative_int("bound", bound)
    if most == 0:
        raise ParameterError("bound = 0, but it must be at least 1")
    return _draw(_core.uniform_integers, size, (most,), random_state)


@overload
def weighted_draws(
    weights: ArrayLike, size: None = None, *, random_state: RandomState = None
) -> int: ...
@overload
def weighted_draws(
    weights: ArrayLike, size: Shape, *, random_state: RandomState = None
) -> Integers: ...
def weighted_draws(
    weights: ArrayLike, size: Shape | None = None, *, random_state: RandomState = None
) -> int | Integers:
    """Independent indices i with Pr[i] = weights[i] / sum(weights).

    weights: integers (n,), at least 0, n >= 1 and below 2**32, their sum in [1, 2**64). size: of
    the int64 array returned; None returns one int. random_state: as for bernoulli.

    Guarantee: exact. No privacy by itself: the weights must change little between neighbors.
    Raises: ShapeError, ParameterError.
    Cost: O(n) once; one word of the random stream and two random reads a draw.
    Source: a uniform integer below the sum, located among the cumulative sums by a guide table.
    """
    masses = integers("weights", weights, np.uint64)
    return _draw(_core.weighted_draws, size, (masses,), random_state)


def permute_and_flip(
    scores: ArrayLike,
    *,
    epsilon: float,
    sensitivity: Number = 1,
    monotonic: bool = False,
    neighbors: Neighbors = "replace_one",
    random_state: RandomState = None,
    budget: Budget | None = None,
) -> int:
    """Index of a candidate with a high score, chosen privately.

    scores: integers (k,), k >= 1, the higher the better. epsilon: above 0. sensitivity: the most by
    which one record changes a score, above 0. monotonic: whether a change of one record never moves
    two scores in opposite directions (so for counts under add_remove, seldom under replace_one):
    half the noise. neighbors: the relation that sensitivity and monotonic speak of. random_state:
    as for bernoulli. budget: charged epsilon, before anything is drawn.

    Guarantee: pure epsilon-DP for the given neighbor relation; exact.
    Raises: ShapeError, ParameterError, BudgetExceeded; before any coin is drawn or budget spent.
    Cost: at most k coins, in random order; time depends on the scores.
    Source: McKenna and Sheldon 2020, never worse than the exponential mechanism.
    """
    return _select(
        "permute_and_flip",
        *(scores, epsilon, sensitivity, monotonic, neighbors, random_state, budget),
    )


def exponential_mechanism(
    scores: ArrayLike,
    *,
    epsilon: float,
    sensitivity: Number = 1,
    monotonic: bool = False,
    neighbors: Neighbors = "replace_one",
    random_state: RandomState = None,
    budget: Budget | None = None,
) -> int:
    """Index i of a candidate, with Pr[i] proportional to exp(epsilon scores[i] / (2 sensitivity)).

    Arguments as for permute_and_flip, which is never worse; this one has the smaller privacy loss
    under composition (bounded range).

    Guarantee: pure epsilon-DP for the given neighbor relation, and epsilon-bounded range; exact.
    Raises: ShapeError, ParameterError, BudgetExceeded; before any coin is drawn or budget spent.
    Cost: at most k coins in expectation; time depends on the scores.
    Source: McSherry and Talwar 2007, by rejection.
    """
    return _select(
        "exponential_mechanism",
        *(scores, epsilon, sensitivity, monotonic, neighbors, random_state, budget),
    )


_SOURCES = {
    "permute_and_flip": "McKenna and Sheldon 2020",
    "exponential_mechanism": "McSherry and Talwar 2007",
}


def _select(
    method: str,
    scores: ArrayLike,
    epsilon: float,
    sensitivity: Number,
    monotonic: bool,
    neighbors: Neighbors,
    random_state: RandomState,
    budget: Budget | None,
) -> int:
    heights = integers("scores", scores, np.int64)
    if neighbors not in ("replace_one", "add_remove"):
        refuse("neighbors", neighbors, "it must be one of replace_one, add_remove")
    if not isinstance(monotonic, bool | np.bool_):
        refuse("monotonic", monotonic, "it must be True or False")
    record = PrivacyRecord(
        mechanism=f"noise.{method}",
        source=_SOURCES[method],
        neighbors=neighbors,
        epsilon=epsilon,
        noise="coins of probability exp(-rate (best score - score))",
        rng=rng_of(random_state),
    )
    rate = selection_rate(record.epsilon, sensitivity, bool(monotonic))
    check_random_state(random_state)
    with spend(budget, record):
        return _core.select(method, heights, rate.as_integer_ratio(), make_key(random_state))


def selection_rate(epsilon: float, sensitivity: Number, monotonic: bool) -> Fraction:
    """How fast a gap in scores lowers a candidate's chances, for a selection of epsilon."""
    return exact_epsilon(epsilon) / _positive("sensitivity", sensitivity) / (1 if monotonic else 2)


def exact_epsilon(epsilon: float) -> Fraction:
    """The epsilon to calibrate noise by, as a fraction.

    A ledger takes a float for its shortest decimal, which may be a little less than the float.
    """
    return min(Fraction(epsilon), Fraction(repr(epsilon)))


def _draw_noise(
    law: str, name: str, scale: Number, size: Shape | None, random_state: RandomState
) -> int | Integers:
    return _draw(_core.integer_noise, size, (law, _scale(name, scale)), random_state)


def _draw(
    draw: Any, size: Shape | None, arguments: tuple[Any, ...], random_state: RandomState
) -> int | NDArray[Any]:
    """One int for size None, else an array of that shape, drawn in one call."""
    if size is None:
        return int(draw(*arguments, 1, make_key(random_state))[0])
    sides = size if isinstance(size, tuple) else (size,)
    shape = tuple(nonnegative_int("size", side) for side in sides)
    values: NDArray[Any] = draw(*arguments, math.prod(shape), make_key(random_state))
    return values.reshape(shape)


def _probability(name: str, value: Number) -> tuple[int, int]:
    fraction = _to_fraction(name, value)
    if fraction is None or not 0 <= fraction <= 1:
        refuse(name, value, "a probability must lie in [0, 1]")
    return fraction.as_integer_ratio()


def _rate(name: str, value: Number) -> tuple[int, int]:
    fraction = _to_fraction(name, value)
    if fraction is None or fraction < 0:
        refuse(name, value, "it must be finite and at least 0")
    return fraction.as_integer_ratio()


def _scale(name: str, value: Number) -> tuple[int, int]:
    fraction = _to_fraction(name, value)
    if fraction is None or not 0 < fraction < _LARGEST_SCALE:
        refuse(name, value, "it must be above 0, or nothing is private, and below 2**50")
    return fraction.as_integer_ratio()


def _positive(name: str, value: Number) -> Fraction:
    fraction = _to_fraction(name, value)
    if fraction is None or fraction <= 0:
        refuse(name, value, "it must be finite and above 0")
    return fraction


def _to_fraction(name: str, value: Number) -> Fraction | None:
    """The value as the fraction that it is; None for an infinity or NaN."""
    if not isinstance(value, Rational):
        real = number(name, value)
        return Fraction(real) if math.isfinite(real) else None
    # Plain ints: a numpy integer would keep its 64 bits, and wrap around in a product.
    fraction = Fraction(int(value.numerator), int(value.denominator))
    if max(abs(fraction.numerator), fraction.denominator) >= _LARGEST_TERM:
        raise ParameterError(f"{name} has terms of 4,096 bits or more, but they must be shorter")
    return fraction
