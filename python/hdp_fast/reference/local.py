"""Laws of the randomizers in exact fractions, and numpy samplers that they are timed against.

The laws take the 64-bit probabilities as they are, so that privacy is a finite check. The samplers
round floats, as fast as numpy goes; no proof says that they are private.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

Law = list[Fraction]
Integers = NDArray[np.int64]
Floats = NDArray[np.float64]


def mixed(laws: Sequence[Law], place: Fraction) -> Law:
    """The law at a place between two integers, rounded at random to one with the place as mean."""
    start = min(math.floor(place), len(laws) - 2)
    rest = place - start
    return [(1 - rest) * p + rest * q for p, q in zip(laws[start], laws[start + 1], strict=True)]


def binary_law(place: Fraction, truth: Fraction) -> Law:
    """The law of binary randomized response to a number at that place in [0, 1]."""
    return mixed([[truth, 1 - truth], [1 - truth, truth]], place)


def own_or_any(own: Sequence[int], outcomes: int, chance: Fraction) -> Law:
    """With that probability one of the value's own outcomes, else any outcome, all uniformly."""
    mine = set(own)
    return [
        (chance / len(mine) if each in mine else 0) + (1 - chance) / outcomes
        for each in range(outcomes)
    ]


def points(q: int, dimension: int) -> list[tuple[int, ...]]:
    """The points of a projective space, by their numbers: vectors whose last entry but 0 is 1."""
    vectors = [vector[::-1] for vector in itertools.product(range(q), repeat=dimension)]
    return [vector for vector in vectors if next((x for x in vector[::-1] if x), 0) == 1]


def hyperplanes(k: int, q: int, dimension: int) -> list[list[int]]:
    """For each of k values the numbers of the points whose inner product with it is 0."""
    space = points(q, dimension)
    values = [point[::-1] for point in space[:k]]
    return [
        [i for i, y in enumerate(space) if np.dot(value, y) % q == 0] for value in values
    ]  # fmt: skip


def sets_with_each(k: int, width: int, modulus: int | None) -> list[list[int]]:
    """For each of k values the numbers of the sets that hold it, in subset selection."""
    if modulus is None:
        sets = sorted(itertools.combinations(range(k), width), key=lambda each: each[::-1])
    else:
        pairs = itertools.product(range(1, (modulus + 1) // 2), range(modulus))
        sets = [tuple(x for x in range(modulus) if (a * x + b) % modulus < width) for a, b in pairs]
    return [[i for i, each in enumerate(sets) if value in each] for value in range(k)]


def binary_response(u: Floats, epsilon: float, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Binary randomized response, where one number decides on rounding and lie; bool (n,)."""
    truth = 1 / (1 + math.exp(-epsilon))
    return rng.random(u.size) < (1 - truth) + (2 * truth - 1) * u


def laplace(u: Floats, epsilon: float, rng: np.random.Generator) -> Floats:
    """Adds continuous Laplace noise; float64 (n,)."""
    return u + rng.laplace(0.0, 1 / epsilon, u.size)


def piecewise(u: Floats, epsilon: float, rng: np.random.Generator) -> Floats:
    """Wang and others 2019, Algorithm 2, for numbers in [0, 1]; float64 (n,)."""
    root = math.exp(epsilon / 2)
    # The window has length 1 among outcomes in [0, 1 + root].
    inside = rng.random(u.size) < root / (root + 1)
    drawn = rng.random(u.size)
    start = u * root
    other = drawn * root
    return np.where(inside, start + drawn, other + (other >= start))


def kary_response(x: Integers, k: int, epsilon: float, rng: np.random.Generator) -> Integers:
    """Reports the value, else any answer; int64 (n,)."""
    odds = math.expm1(epsilon) / k
    return np.where(rng.random(x.size) < odds / (1 + odds), x, rng.integers(0, k, x.size))


def unary_counts(x: Integers, k: int, epsilon: float, rng: np.random.Generator) -> Integers:
    """The counts of optimal unary encoding, drawn as binomials without the bits; int64 (k,)."""
    held = np.bincount(x, minlength=k)
    lie = 1 / (1 + math.exp(epsilon))
    return rng.binomial(held, 0.5) + rng.binomial(x.size - held, lie)


def chernoff(phi: float, mu: float, n: int) -> tuple[float, float]:
    """Bounds on the chance that a mean of n coins is (1 + phi) mu or more, or (1 - phi) mu or less.

    Source: Kasiviswanathan et al. 2011, Theorem A.1, for phi in (0, 1].
    """
    return math.exp(-(phi**2) * mu * n / 3), math.exp(-(phi**2) * mu * n / 2)


def hoeffding(width: float, n: int, spread: float = 1.0) -> float:
    """A bound on the chance that a mean of n numbers is off by `width`; `spread` is their range.

    Source: Kasiviswanathan et al. 2011, Theorem A.2.
    """
    return 2 * math.exp(-2 * width**2 * n / spread**2)


def laplace_sum(width: float, n: int, scale: float, *, printed: bool = False) -> float:
    """A bound on the chance that a mean of n Laplace numbers is off by `width`.

    Printed is exp(-width**2 n / (4 scale**2)) for every width, which is false far out: one number
    exceeds 5 scale with a chance of exp(-5) = .0067, where exp(-6.25) = .0019 is printed. The best
    exponent of the moment generating function, -ln(1 - t**2), holds for every width.

    Source: Kasiviswanathan et al. 2011, Lemma A.3.
    """
    if printed:
        return math.exp(-(width**2) * n / (4 * scale**2))
    place = width / scale
    t = (math.sqrt(1 + place**2) - 1) / place
    return min(1.0, 2 * math.exp(-n * (t * place + math.log1p(-(t**2)))))
