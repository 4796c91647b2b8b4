"""Losses of the non-convex problem, each with the noise that its gradients get."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ._adaptation_noise import Coins, Noise, noisy, sum_bits
from ._adaptation_part import PrivatePart
from ._adaptation_rows import Rows, attempted
from ._callers import locked, unheard
from ._checks import LEAST
from .exceptions import ShapeError

Floats = NDArray[np.float64]
# (w, X, y) -> losses (k,) and gradients (k, p)
PerExample = Callable[[Any, Any, Any], tuple[Any, Any]]

# Squares of norms up to this are integers that floats hold exactly, and so are their sums.
_MOST_BITS = 25


class Bends(NamedTuple):
    """What is known of a loss, in w: public numbers.

    Attributes:
        largest: of the loss; the least is 0.
        gradient: norm of its gradient.
        smoothness: of its second derivative.
    """

    largest: float
    gradient: float
    smoothness: float


class Domain(Protocol):
    """Records of a domain, whose gradients get noise if it is the private one."""

    @property
    def n(self) -> int:
        """How many records there are."""

    def evaluate(self, w: Floats, q: Floats, cap: float) -> tuple[Floats, Floats]:
        """Losses (n,), and the sum of q times the gradients of the losses, with noise.

        cap: bound on q.
        """

    def add(self, values: Floats, share: float) -> float:
        """The sum of numbers in [0, 1] of the records, with noise.

        share: of what a gradient's noise spends.
        """

    def deviation(self, cap: float) -> float:
        """Of the noise on a coordinate of the gradient."""


class Linear(NamedTuple):
    """Losses of linear predictors that the compiled module knows.

    Attributes:
        part: the records.
        slope: bound on the norm of the derivative in the scores.
    """

    part: PrivatePart
    slope: float

    @property
    def n(self) -> int:
        """How many records there are."""
        return len(self.part.rows.y)

    def evaluate(self, w: Floats, q: Floats, cap: float) -> tuple[Floats, Floats]:
        """As Domain."""
        found = self.part.noisy(w, q, cap * self.slope)
        losses = np.zeros(self.n) if found.losses is None else found.losses
        return losses, found.gradient

    def add(self, values: Floats, share: float) -> float:
        """As Domain."""
        return total(values, self.part.noise, share, self.part.coins)

    def deviation(self, cap: float) -> float:
        """As Domain."""
        return self.part.deviation(cap * self.slope)


class Called(NamedTuple):
    """Any loss, of a callable whose results are clipped, whatever they are.

    Attributes:
        function: of w, rows and labels, which it cannot write to; it must treat every record alone.
        rows: in reals.
        bends: what its results are clipped to.
        noise, coins: of the private domain.
    """

    function: PerExample
    rows: Rows
    bends: Bends
    noise: Noise | None
    coins: Coins

    @property
    def n(self) -> int:
        """How many records there are."""
        return len(self.rows.y)

    @property
    def units(self) -> int:
        """The largest norm of the integers that a weighted gradient is rounded to."""
        bits = 0 if self.noise is None else sum_bits(self.noise, self.n)
        return 1 << min(bits, _MOST_BITS)

    def evaluate(self, w: Floats, q: Floats, cap: float) -> tuple[Floats, Floats]:
        """As Domain."""
        losses, gradients = self._clipped(w)
        gradients *= q[:, None]
        largest = cap * self.bends.gradient
        if self.noise is None or not self.noise.exact:
            found = gradients.sum(axis=0)
            if self.noise is not None:
                found = noisy(found, 2 * largest, self.noise, self.coins)
            return losses, found
        integers = np.trunc(gradients * (self.units / largest))
        # Whatever rounding errors leave beyond the bound counts as zero.
        integers[np.square(integers).sum(axis=1) > self.units**2] = 0
        sums = noisy(integers.sum(axis=0), 2 * self.units, self.noise, self.coins)
        return losses, sums * (largest / self.units)

    def add(self, values: Floats, share: float) -> float:
        """As Domain."""
        return total(values, self.noise, share, self.coins)

    def deviation(self, cap: float) -> float:
        """As Domain."""
        return self.noise.multiple * 2 * cap * self.bends.gradient if self.noise else 0.0

    def _clipped(self, w: Floats) -> tuple[Floats, Floats]:
        """Losses in [0, largest] and gradients of bounded norm.

        What is not finite counts as the largest loss, and as a gradient of zero.
        """
        losses, gradients = self._returned(w)
        losses[~np.isfinite(losses)] = self.bends.largest
        gradients[~np.isfinite(gradients).all(axis=1)] = 0
        # Entries of at most 1 first: their squares are never out of range.
        largest = np.maximum(np.abs(gradients).max(axis=1), LEAST)
        gradients /= largest[:, None]
        norms = np.sqrt(np.square(gradients).sum(axis=1))
        gradients *= np.minimum(largest, self.bends.gradient / np.maximum(norms, 1))[:, None]
        return losses.clip(0, self.bends.largest), gradients

    def _returned(self, w: Floats) -> tuple[Floats, Floats]:
        """What the function makes of all records.

        Where it fails, a private record may be to blame, and must not show. Each is then tried
        alone, and those that it fails at have no numbers.
        """
        everything = functools.partial(self._called, w, slice(None))
        return everything() if self.noise is None else attempted(everything) or self._each_alone(w)

    def _each_alone(self, w: Floats) -> tuple[Floats, Floats]:
        losses, gradients = np.full(self.n, np.nan), np.full((self.n, len(w)), np.nan)
        with unheard():
            for i in range(self.n):
                one = slice(i, i + 1)
                found = attempted(functools.partial(self._called, w, one))
                if found is not None:
                    losses[one], gradients[one] = found
        return losses, gradients

    def _called(self, w: Floats, some: slice) -> tuple[Floats, Floats]:
        """What the function makes of some records.

        Raises: ShapeError; what the function raises.
        """
        X, y = (locked(each[some]) for each in (self.rows.X, self.rows.y))
        given = self.function(w.copy(), X, y)
        losses, gradients = (np.array(each, np.float64) for each in given)
        for name, found, shape in (
            ("losses", losses, (len(y),)),
            ("gradients", gradients, (len(y), len(w))),
        ):
            if found.shape != shape:
                raise ShapeError(f"loss made {name} of shape {found.shape}, but it must be {shape}")
        return losses, gradients


def total(values: Floats, noise: Noise | None, share: float, coins: Coins) -> float:
    """The sum of numbers in [0, 1], each of one record, with noise of a share of the budget."""
    if noise is None:
        return float(values.sum())
    less = noise._replace(multiple=noise.multiple / math.sqrt(share))
    if not noise.exact:
        return float(noisy(values.sum(keepdims=True), 1.0, less, coins)[0])
    units = 1 << min(sum_bits(less, len(values)), _MOST_BITS)
    parts = np.rint(values * units).clip(0, units)
    return float(noisy(parts.sum(keepdims=True), units, less, coins)[0]) / units
