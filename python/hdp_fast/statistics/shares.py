"""Shares of cells of released tables, with the noise that they have as weights."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from .._support.types import Floats
from .._support.validate import numbers, probability
from ..exceptions import ParameterError, ShapeError
from .release_noise import Noise, bound_sums

# Points that are tested at a time, and how often: an end is found to 1 / _POINTS ** _TIMES.
_POINTS, _TIMES = 128, 3
_SLACK = 1 + 1e-9


class NoisyCells(NamedTuple):
    """Noisy counts of the cells of one table, over the columns of the shares.

    Attributes:
        named: The counts of the cells that have a share, in their order.
        others: The counts of the others, whose value is none of the public ones.
        draws: How many draws of noise are in each count.
    """

    named: Floats
    others: Floats
    draws: int


class Shares(dict[str, float]):
    """Shares of cells that add up to 1, and what their noise does to what they weigh.

    It is a dict from the names of cells to their shares. `transfer.survey` takes it as weights, and
    holds its noise in the interval of a post-stratified mean; a plain dict of the same numbers has
    no noise.

    Args:
        shares: The share of each cell.
        tables: Counts of the same rows in the same cells, with noise of their own.
        noise: The noise on each integer.
        n: The number of rows in all cells; None where it is private.

    Examples:
        >>> from hdp_fast import statistics
        >>> from hdp_fast.data import Category, Schema
        >>> people = {"home": ["town", "land", "town"] * 3_000}
        >>> schema = Schema(None, {"home": Category(("town", "land"))})
        >>> shares = statistics.tables(people, schema, epsilon=1.0).shares("home")
        >>> low, high = shares.bound_mean([1.0, 0.0], beta=1e-9)  # the share in town
        >>> low < 2 / 3 < high < 0.7
        True
    """

    def __init__(
        self,
        shares: Mapping[str, float],
        tables: Sequence[NoisyCells],
        noise: Noise,
        n: int | None,
    ) -> None:
        """Average the counts of all tables by their noise."""
        super().__init__(shares)
        # The noise of a count of many draws is as much larger.
        weights = np.array([1 / table.draws for table in tables])
        weights /= weights.sum()
        self._named: Floats = np.tensordot(weights, [table.named for table in tables], axes=1)
        self._others: Floats = np.tensordot(weights, [table.others for table in tables], axes=1)
        self._parts = [(float(w), table.draws) for w, table in zip(weights, tables, strict=True)]
        self._noise, self._n = noise, n

    def bound_mean(
        self, low: ArrayLike, high: ArrayLike | None = None, *, beta: float
    ) -> tuple[float, float]:
        """Bounds a mean over the rows that are in the cells.

        Args:
            low: The mean of each cell at least, shape (k,), which must not depend on the noise.
            high: The mean of each cell at most; None where it is `low`.
            beta: Probability with which the interval may miss, in (0, 1).

        Returns:
            The ends of the interval, each of which is missed with half of beta at most over the
            noise, as long as the means lie between theirs.

        Raises:
            ShapeError: low or high has another shape.
            ParameterError: low or high holds something else than finite numbers, or beta is out of
                range.

        Source:
            Fieller 1954: values of a ratio that a test of its parts does not refuse; Chernoff's
            bound of weighted sums of noise.
        """
        lowest, half = self._read_means("low", low), probability("beta", beta) / 2
        highest = lowest if high is None else self._read_means("high", high)
        return -self._largest_mean(-lowest, half), self._largest_mean(highest, half)

    def bound_distance(self, beta: float) -> float:
        """Bounds by how much these shares and those of the rows differ in any union of cells.

        Args:
            beta: Probability with which the bound may be too small, in (0, 1).

        Returns:
            The bound, in [0, 1].

        Raises:
            ParameterError: beta is out of range.
        """
        part = probability("beta", beta) / max(len(self), 1)
        shares, cells = np.array(list(self.values())), np.eye(len(self))
        ends = [self.bound_mean(cell, beta=part) for cell in cells]
        low, high = np.array(ends).T
        more, fewer = (high - shares).clip(0).sum(), (shares - low).clip(0).sum()
        return min(float(more), float(fewer), 1.0)

    def variance_of_mean(self, means: ArrayLike) -> float:
        """The variance of a mean of means of cells by the noise, by the delta method.

        Args:
            means: The mean of each cell, shape (k,).

        Returns:
            The variance; infinite where no one seems to be in the cells.

        Raises:
            ShapeError: means has another shape.
            ParameterError: means holds something else than finite numbers.
        """
        values, total = self._read_means("means", means), float(self._named.sum())
        if total <= 0:
            return math.inf
        middle = float(values @ np.array(list(self.values())))
        _, weights = self._weigh(values, np.array([middle]))
        draws = sum(weight**2 * many for weight, many in self._parts)
        squares = float((weights**2).sum()) * draws
        return squares * self._noise.deviation**2 / total**2

    def _read_means(self, name: str, value: ArrayLike) -> Floats:
        means = np.asarray(numbers(name, value), np.float64)
        if means.shape != self._named.shape:
            rule = f"but it must be {self._named.shape}: one for each cell"
            raise ShapeError(f"{name} has shape {means.shape}, {rule}")
        if not np.isfinite(means).all():
            raise ParameterError(f"{name} holds something else, but every entry must be finite")
        return means

    def _largest_mean(self, values: Floats, beta: float) -> float:
        """The largest mean of some values of cells that the counts do not refuse.

        What is tested is convex in the mean, but for exponents that are not the best and make it
        larger. So where a mean between two tested ones is kept, one of these is.
        """
        start, end = float(values.min()), float(values.max())
        for _ in range(_TIMES):
            tested = np.linspace(start, end, _POINTS + 1)
            kept = np.flatnonzero(self._test(values, tested, beta))
            last = int(kept[-1]) if len(kept) else 0
            if last == _POINTS:
                return end
            start, end = float(tested[last]), float(tested[last + 1])
        return end

    def _test(self, values: Floats, means: Floats, beta: float) -> Floats:
        """Whether the counts may be of rows with these means: but for beta the true one is kept.

        The rows' sum of values less their mean is 0; what noise takes away from it is bounded.
        """
        sums, weights = self._weigh(values, means)
        parts = [(weight * weights, many) for weight, many in self._parts]
        sizes = np.concatenate([part for part, _ in parts])
        many = np.concatenate([np.full(part.shape, float(draws)) for part, draws in parts])
        if self._noise.law == "laplace":
            half = bound_sums(self._noise.scale, sizes, many, [beta])[0]
        else:
            quantile = -NormalDist().inv_cdf(beta)
            half = quantile * float(self._noise.scale) * np.sqrt((many * sizes**2).sum(axis=0))
            # Rounding moves each draw by half at most.
            half = half * _SLACK + (many * np.abs(sizes)).sum(axis=0) / 2
        kept: Floats = sums + half >= 0
        return kept

    def _weigh(self, values: Floats, means: Floats) -> tuple[Floats, Floats]:
        """For each mean the noisy sum of values less it, and what the counts of cells weigh in it.

        Counts are averages over tables. Where the number of rows is public, the average weight is
        taken from all, which takes noise away.
        """
        named = values[:, None] - means
        others = np.zeros((len(self._others), len(means)))
        weights = np.concatenate([named, others])
        shift = np.zeros(len(means)) if self._n is None else weights.mean(axis=0)
        weights = weights - shift
        counts = np.concatenate([self._named, self._others])
        sums: Floats = counts @ weights + shift * (self._n or 0)
        return sums, weights
