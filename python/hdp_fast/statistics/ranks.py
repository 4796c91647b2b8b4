"""Quantiles by the exponential mechanism, drawn exactly from the gaps between sorted records."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .. import noise
from .._support.random_state import make_stream
from .._support.types import Integers, RandomState
from .._support.validate import numbers, positive_int, refuse
from ..budget.account import Budget, Neighbors, spend
from ..exceptions import ShapeError
from ..noise import selection_rate
from ..record import PrivacyRecord, rng_of
from .bounded_columns import public_number, read_bounds, read_columns
from .release_noise import Asked
from .results import Quantiles

_MOST_STEPS, _MOST_PARTS = 1 << 30, 1000
_LARGEST_SCALE = 1 << 50
_FIRST_BATCH, _LARGEST_BATCH = 64, 1 << 16


def quantiles(
    values: Any,
    levels: ArrayLike,
    *,
    low: Any,
    high: Any,
    epsilon: float,
    neighbors: Neighbors = "replace_one",
    steps: int = 1 << 20,
    confidence: float = 0.95,
    budget: Budget | None = None,
    random_state: RandomState = None,
) -> Quantiles | dict[str, Quantiles]:
    """Chooses quantiles of private values between public bounds, by the exponential mechanism.

    The candidates are the points of an even grid from `low` to `high`, to which values are clipped
    and rounded; NaN counts as `low`. The score of a point is minus the number of records by which
    its rank is off: a value of many records has all of their ranks. All points between two
    neighboring records have one score, so that the time does not grow with the grid. The budget is
    split evenly among the levels and columns, and the chosen points are put in order.

    Args:
        values: Records, shape (n,); or columns as an array (n, d), a frame or a dict of vectors.
        levels: The k levels in [0, 1], shape (k,), or one number. Each is taken as the nearest
            fraction with a denominator of at most 1,000.
        low: Public lower bound, a number, one for each column, or a dict by name of column. It lies
            in [-1e30, 1e30].
        high: Public upper bound of the same form, above `low`.
        epsilon: Privacy parameter of the whole call, finite and above 0.
        neighbors: "replace_one", for which the number of records is public, or "add_remove", for
            which it is not.
        steps: Number of steps of the grid, from 1 to `2**30`. For whole numbers take high - low:
            no other point is chosen then.
        confidence: Probability of the statement about the ranks of each value, in (0, 1).
        budget: Budget of the same relation, charged before anything is drawn; None charges nothing.
        random_state: None draws from the operating system. An int or a Generator makes a
            reproducible stream for tests, which protects nobody.

    Returns:
        The quantiles of a vector, or a dict of them by column. They come with an error in ranks; an
        interval for the value needs further levels, on both sides.

    Raises:
        ShapeError: values has no column or more than two dimensions, the number of records is
            public and 0, or levels has more than one dimension or no entry.
        ParameterError: values has no dtype of numbers, or another argument is out of range.
        BudgetExceeded: The budget has less than epsilon left.

    Guarantee:
        Pure epsilon-DP for `neighbors`, for all levels and columns together; exact. Replacing a
        record moves a rank by 1; adding one moves the rank's distance from level q by at most the
        larger of q and 1 - q. No value of a record causes an error or a warning. The running time
        depends on the records.

    Cost:
        Sorting the records; for each level a pass over the different values and, in all but odd
        cases, a few coins.

    Source:
        McSherry and Talwar 2007; Smith 2011 for quantiles. Points are grouped by rank and proposed
        with geometric coins, which are accepted by comparison with integers.

    Examples:
        >>> import numpy as np
        >>> from hdp_fast import statistics
        >>> incomes = np.linspace(0, 80_000, 50_001)
        >>> levels, bounds = [0.25, 0.5, 0.75], {"low": 0, "high": 1e6}
        >>> quarters = statistics.quantiles(incomes, levels, **bounds, epsilon=1.0)
        >>> bool(abs(quarters.value - [20_000, 40_000, 60_000]).max() < 1000)
        True
    """
    asked = Asked(epsilon, None, neighbors, confidence, budget, random_state).check()
    parts = _read_levels(levels)
    points = positive_int("steps", steps, _MOST_STEPS)
    rows, names = read_columns(values)
    public_number(rows, neighbors)
    width = rows.shape[1]
    bounds = read_bounds(low, high, names, width)
    choices = width * len(parts)
    rates = [_rate(level, asked, choices) for level in parts]
    record = PrivacyRecord(
        mechanism=f"statistics.quantiles, {choices} choices among {points + 1} points each",
        source="McSherry and Talwar 2007",
        neighbors=neighbors,
        epsilon=asked.epsilon,
        noise="choices of probability proportional to exp(-rate distance in ranks)",
        rng=rng_of(random_state),
    )
    grid, stream, results = bounds.round(rows, points), make_stream(random_state), []
    with spend(budget, record):
        for place in range(width):
            pieces = cut_at_records(grid[:, place], points)
            drawn = [
                draw(pieces, pieces.distances(level), rate, stream)
                for level, rate in zip(parts, rates, strict=True)
            ]
            share = np.sort(np.array(drawn)) / points
            least, most = float(bounds.low[place]), float(bounds.high[place])
            error = max(
                math.log((points + 1) / asked.beta) / float(rate * level.denominator)
                for level, rate in zip(parts, rates, strict=True)
            )
            value = (least + share * (most - least)).clip(least, most)
            stated = tuple(map(float, parts))
            results.append(Quantiles(value, stated, error, asked.confidence, record))
    return results[0] if names is None else dict(zip(names, results, strict=True))


def _read_levels(levels: Any) -> list[Fraction]:
    values = np.atleast_1d(np.asarray(numbers("levels", levels), np.float64))
    if values.ndim != 1 or not values.size:
        raise ShapeError(f"levels has shape {values.shape}, but it must be (k,) with k >= 1")
    if not ((values >= 0) & (values <= 1)).all():
        refuse("levels", levels, "each must lie in [0, 1]")
    return sorted(Fraction(level).limit_denominator(_MOST_PARTS) for level in values.tolist())


def _rate(level: Fraction, asked: Asked, choices: int) -> Fraction:
    """How fast a point's chances fall with its distance."""
    rate = selection_rate(
        asked.epsilon, largest_move(level, asked.neighbors) * choices, monotonic=False
    )
    if rate * _LARGEST_SCALE < 1:
        refuse("epsilon", asked.epsilon, "it needs more noise than is drawn: take a larger one")
    return rate


def largest_move(level: Fraction, neighbors: str) -> int:
    """The most by which a distance differs between neighbors, in parts of the level."""
    parts, whole = level.as_integer_ratio()
    return whole if neighbors == "replace_one" else max(parts, whole - parts)


@dataclass(frozen=True)
class Pieces:
    """The grid, cut at the records: each record's point, and the points between two of them.

    Attributes:
        start: The first point of each piece.
        width: How many points it has, at least 1.
        below: How many records lie below its points.
        upto: How many lie below them or at them.
        n: The number of records.
    """

    start: Integers
    width: Integers
    below: Integers
    upto: Integers
    n: int

    def distances(self, level: Fraction) -> Integers:
        """By how much the rank of each piece is off, in parts of the level; 0 for some piece."""
        parts, whole = level.as_integer_ratio()
        over, under = whole * self.below - parts * self.n, parts * self.n - whole * self.upto
        return np.maximum(np.maximum(over, under), 0)


def cut_at_records(records: Integers, points: int) -> Pieces:
    """The pieces of the grid 0, ..., points, for records that are points of it."""
    values, counts = np.unique(records, return_counts=True)
    upto = np.cumsum(counts, dtype=np.int64)
    starts = np.concatenate(([0], values + 1))
    widths = np.concatenate((values, [points + 1])) - starts
    between = np.concatenate(([0], upto))
    some = widths > 0
    return Pieces(
        np.concatenate((values, starts[some])),
        np.concatenate((np.ones_like(values), widths[some])),
        np.concatenate((upto - counts, between[some])),
        np.concatenate((upto, between[some])),
        len(records),
    )


def draw(
    pieces: Pieces, distances: Integers, rate: Fraction, stream: np.random.Generator | None
) -> int:
    """A point whose probability is proportional to exp(-rate distance), exactly.

    Pieces whose distances lie within 1 / rate of each other form a ring. A ring j is proposed with
    probability proportional to its points times exp(-rate j step), by rejection; then one of its
    points, which is accepted for the rest of its distance.
    """
    step = math.ceil(1 / rate)
    order = np.argsort(distances, kind="stable")
    ends = np.cumsum(pieces.width[order])
    rings, first = np.unique(distances[order] // step, return_index=True)
    before = np.concatenate((ends[first[1:] - 1], ends[-1:]))
    sizes = np.diff(before, prepend=0)
    batch = _FIRST_BATCH
    while True:
        ring = _propose_ring(rings, sizes, 1 / (rate * step), batch, stream)
        batch = min(2 * batch, _LARGEST_BATCH)
        if ring is None:
            continue
        size = int(sizes[ring])
        place = int(before[ring]) - size + noise.uniform_integers(size, random_state=stream)
        piece = order[np.searchsorted(ends, place, side="right")]
        rest = int(distances[piece]) - int(rings[ring]) * step
        if noise.bernoulli_exp(rate * rest, random_state=stream):
            return int(
                pieces.start[piece]
                + noise.uniform_integers(int(pieces.width[piece]), random_state=stream)
            )


def _propose_ring(
    rings: Integers,
    sizes: Integers,
    scale: Fraction,
    batch: int,
    stream: np.random.Generator | None,
) -> int | None:
    """The first accepted ring of a batch of proposals; None if there is none."""
    proposed = noise.geometric(scale, batch, random_state=stream)
    places = np.searchsorted(rings, proposed).clip(0, len(rings) - 1)
    most = int(sizes.max())
    heights = np.where(rings[places] == proposed, sizes[places], 0)
    accepted = noise.uniform_integers(most, batch, random_state=stream) < heights
    return int(places[np.argmax(accepted)]) if accepted.any() else None
