"""Exact coins."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from . import _core
from ._checks import count, number
from .exceptions import ParameterError

__all__ = ["bernoulli"]

Size = int | tuple[int, ...] | None


def bernoulli(
    p: float | Fraction,
    size: Size = None,
    *,
    random_state: int | np.random.Generator | None = None,
) -> int | NDArray[np.uint8]:
    """Draws that are 1 with probability exactly p.

    p: in [0, 1]; a float is taken as the dyadic rational that it is, a Fraction needs a numerator
    and a denominator below 2**64. size: of the uint8 array returned; None returns one int.
    random_state: None draws from the operating system, an int or a Generator makes a reproducible
    test stream.

    Guarantee: exact; no rounding anywhere.
    Raises: ParameterError.
    Cost: one 64-bit word of the random stream for nearly every draw.
    Source: comparison of uniform bits with the binary expansion of p, until they differ.
    """
    shape = () if size is None else _shape(size)
    draws = _core.bernoulli(_exact(p), math.prod(shape), random_state)
    return int(draws[0]) if size is None else draws.reshape(shape)


def _exact(p: float | Fraction) -> float | tuple[int, int]:
    value = p if isinstance(p, Fraction) else number("p", p)
    if not 0 <= value <= 1:
        raise ParameterError(f"p = {p!r}, but a probability must lie in [0, 1]")
    if not isinstance(value, Fraction):
        return value
    if value.denominator >= 1 << 64:
        raise ParameterError(f"p = {p}, but a Fraction's denominator must be below 2**64")
    return value.numerator, value.denominator


def _shape(size: int | tuple[int, ...]) -> tuple[int, ...]:
    return tuple(count("size", side) for side in (size if isinstance(size, tuple) else (size,)))
