"""Choices of points of a grid by the ranks of private records, exact, by gaps between records."""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from .. import noise
from .._support.types import Integers
from ..data.states import Tally

# Up to here permute-and-flip visits each point; with more, its error is that of the other.
FEW_POINTS = 1 << 12
_LARGEST_SHIFT, _LARGEST_STEP = 1 << 40, 1 << 62
# With more rings than this many for each piece, most of them have none.
_DENSE_RINGS = 4
# Rings beyond this one have less than `2**-60` of all chances together.
FAR_RINGS = 96
BITS_OF_RINGS, _WORD = 128, 62


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

    def distances(self, level: Fraction, shift: int = 0) -> Integers:
        """By how much the rank of each piece is off, in parts of the level; 0 for some piece.

        The rank that is sought is n times the level, plus shift.
        """
        parts, whole = level.as_integer_ratio()
        rank = parts * self.n + whole * shift
        off, under = whole * self.below, whole * self.upto
        off -= rank
        np.maximum(off, np.subtract(rank, under, out=under), out=off)
        return np.maximum(off, 0, out=off)


def cut_at_records(records: Tally, points: int, added: dict[int, int] | None = None) -> Pieces:
    """The pieces of the grid 0, ..., points, for records that are points of it.

    added: how many public records that are no one's stand at some points; n does not count them.
    """
    values, counts = records
    for point, number in (added or {}).items():
        public = Tally(np.array([point]), np.array([number]))
        values, counts = Tally(values, counts).merge(public)
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
        int(records.values.sum()),
    )


def draw_ends(
    records: Tally,
    points: int,
    choice: tuple[Fraction, Fraction],
    shifts: tuple[int, int],
    stream: np.random.Generator | None,
) -> tuple[int, int]:
    """The ends of an interval for the quantile of a level, which is drawn at a rate.

    Where a choice is off by at most so many ranks as it is shifted, one that aims so many below the
    quantile's rank is not above it. Records that are no one's stand at the end of the grid, so that
    there is such a rank; they are public and move no distance between neighbors.

    shifts: by how many ranks the lower end aims below the quantile, and the upper one above it.
    """
    if max(shifts) > _LARGEST_SHIFT:
        return 0, points
    level, rate = choice
    ends = zip((0, points), shifts, strict=True)
    lower, upper = (cut_at_records(records, points, {end: shift}) for end, shift in ends)
    return (
        choose(lower, lower.distances(level), rate, stream),
        choose(upper, upper.distances(level, shifts[1]), rate, stream),
    )


def choose(
    pieces: Pieces, distances: Integers, rate: Fraction, stream: np.random.Generator | None
) -> int:
    """A point, chosen by permute-and-flip where there are few, else as `draw` does."""
    if int(pieces.width.sum()) > FEW_POINTS:
        piece, place = draw(pieces.width, distances, rate, stream)
        return int(pieces.start[piece]) + place
    order = np.argsort(pieces.start)
    scores = -np.repeat(distances[order], pieces.width[order])
    return noise.permute_and_flip(
        scores, epsilon=1.0, sensitivity=1 / (2 * rate), random_state=stream
    )


def draw(
    sizes: Integers,
    nearest: Integers,
    rate: Fraction,
    stream: np.random.Generator | None,
    measure: Callable[[int, int], int] | None = None,
) -> tuple[int, int]:
    """A point of one of several pieces, its chances proportional to exp(-rate distance), exactly.

    Pieces whose nearest distances lie within 1 / rate of each other form a ring. A ring j is
    proposed with probability proportional to its points times exp(-rate j step), by rejection; then
    one of its points, which is accepted for the rest of its distance.

    Args:
        sizes: The number of points in each piece, `2**53` at most together.
        nearest: For each piece a distance that no point of it is below.
        rate: How fast chances fall with the distance.
        stream: The reproducible stream of a test.
        measure: The distance of a point, by its piece and its place there; None where all points
            of a piece are at its nearest distance.

    Returns:
        The piece, and the place of the point in it.
    """
    # No distance is as large as the most, so that all pieces are one ring then.
    step = min(math.ceil(1 / rate), _LARGEST_STEP)
    ring_of = nearest // step
    rings, points = _measure_rings(ring_of, sizes)
    law = _RingLaw(rings.tolist(), points.tolist(), rate * step, stream)
    while True:
        ring = law.draw()
        place = noise.uniform_integers(int(points[ring]), random_state=stream)
        some = np.flatnonzero(ring_of == rings[ring])
        ends = np.cumsum(sizes[some])
        among = int(np.searchsorted(ends, place, side="right"))
        piece = int(some[among])
        place -= int(ends[among] - sizes[piece])
        distance = int(nearest[piece]) if measure is None else measure(piece, place)
        if noise.bernoulli_exp(rate * (distance - int(rings[ring]) * step), random_state=stream):
            return piece, place


def _measure_rings(ring_of: Integers, widths: Integers) -> tuple[Integers, Integers]:
    """The rings that have a piece, in increasing order, and the number of points in each."""
    if int(ring_of.max()) < _DENSE_RINGS * len(ring_of):
        # Sums of at most 2**53 points, which floats hold exactly.
        points = np.bincount(ring_of, weights=widths)
        rings = np.flatnonzero(points)
        return rings, points[rings].astype(np.int64)
    rings, places = np.unique(ring_of, return_inverse=True)
    return rings, np.bincount(places, weights=widths).astype(np.int64)


class _RingLaw:
    """Draws a ring with probability proportional to its points times exp(-decay ring), exactly.

    Each exponential lies between two multiples of `2**-bits`. A ring is proposed by the upper one
    and refused where the same uniform number lies above the exponential, for which bits are added
    as long as it lies in between. Rings far from the first are proposed together.
    """

    def __init__(
        self,
        rings: Sequence[int],
        points: Sequence[int],
        decay: Fraction,
        stream: np.random.Generator | None,
    ) -> None:
        """Weigh the rings, of increasing numbers."""
        self._decay, self._stream = decay, stream
        self._first, self._rings, self._points = rings[0], rings, points
        self._many = bisect.bisect_left(rings, rings[0] + FAR_RINGS)
        last = FAR_RINGS if self._many < len(rings) else rings[-1] - rings[0]
        self._bounds = self._enclose(last, BITS_OF_RINGS)
        far = sum(points[self._many :])
        steps = [*(ring - rings[0] for ring in rings[: self._many]), *([FAR_RINGS] if far else [])]
        heights = [*points[: self._many], *([far] if far else [])]
        self._classes = list(zip(steps, heights, strict=True))
        self._ends = list(
            itertools.accumulate(many * self._bounds[step][1] for step, many in self._classes)
        )

    def draw(self) -> int:
        """The place of a ring."""
        while True:
            value = _draw_below(self._ends[-1], self._stream)
            place = bisect.bisect_right(self._ends, value)
            step, many = self._classes[place]
            if not self._accept(value - (self._ends[place - 1] if place else 0), step, many):
                continue
            if place < self._many:
                return place
            # Rings so far away are proposed about once in 2**60 draws.
            some = itertools.accumulate(self._points[self._many :])
            place = self._many + bisect.bisect_right(
                list(some), noise.uniform_integers(many, random_state=self._stream)
            )
            beyond = self._rings[place] - self._first - FAR_RINGS
            if noise.bernoulli_exp(self._decay * beyond, random_state=self._stream):
                return place

    def _accept(self, value: int, step: int, many: int) -> bool:
        """Whether a uniform number below the upper bound lies below the exponential."""
        bits, (low, high) = BITS_OF_RINGS, self._bounds[step]
        while not value + 1 <= many * low:
            if value >= many * high:
                return False
            value = (value << _WORD) + _draw_below(1 << _WORD, self._stream)
            bits += _WORD
            low, high = self._enclose(step, bits)[step]
        return True

    def _enclose(self, last: int, bits: int) -> list[tuple[int, int]]:
        """Integers around exp(-decay step) 2**bits, for each step up to the last."""
        low = high = 1 << bits
        small, large = enclose_exp(self._decay, bits)
        bounds = [(low, high)]
        for _ in range(last):
            low, high = low * small >> bits, (high * large >> bits) + 1
            bounds.append((low, high))
        return bounds


@lru_cache(maxsize=256)
def enclose_exp(rate: Fraction, bits: int) -> tuple[int, int]:
    """Integers on both sides of exp(-rate) 2**bits, by decimals that are rounded correctly."""
    digits = bits // 3 + 10
    down, up = (Context(prec=digits, rounding=way) for way in (ROUND_FLOOR, ROUND_CEILING))
    parts, whole = map(Decimal, rate.as_integer_ratio())
    # exp is rounded to the nearest decimal in any context, and the next ones enclose it.
    least, most = (way.divide(parts, whole).copy_negate().exp(way) for way in (up, down))
    scale = Decimal(1 << bits)
    low, high = down.multiply(down.next_minus(least), scale), up.multiply(up.next_plus(most), scale)
    return max(int(low), 0), int(high) + 1


def _draw_below(bound: int, stream: np.random.Generator | None) -> int:
    """A uniform integer below any bound."""
    bits = (bound - 1).bit_length()
    words = -(-bits // _WORD)
    while True:
        value = 0
        for word in noise.uniform_integers(1 << _WORD, words, random_state=stream).tolist():
            value = (value << _WORD) + word
        value >>= words * _WORD - bits
        if value < bound:
            return value


# Cuts of cuts ------------------------------------------------------------------------------------

# A grid point has so many keys, among which each of its records is spread evenly.
_BITS = 18
# A level within a part is taken as a fraction of no larger denominator.
_FINEST = 1 << 10
# Keys of a bound count as often as this part of the grid has points: records are clipped to it.
_OF_BOUND = 8
# Keys of heavy points are told apart up to so many times the typical distance from the aim.
_NEAR = 64.0
_MOST_RECORDS = 1 << 24
# Records between two cuts are typically off an even spread by this share of them.
_UNEVEN = 0.2
# The deviation of an error whose chances fall by exp(-1) with each unit, on both sides.
DEVIATION = math.sqrt(2)


@dataclass(frozen=True)
class Cut:
    """One choice of a recursion, which splits a part of the records in two.

    Attributes:
        place: The place of its level among those of the recursion.
        level: The level within its part, between those of the cuts at the part's ends.
        rate: How fast a key's chances fall with each rank by which it is off; 0 for one that
            stands between the keys of the part's ends, at its level.
        left: The cut of what is below; None where no level is.
        right: The cut of what is above.
    """

    place: int
    level: Fraction
    rate: Fraction
    left: Cut | None
    right: Cut | None


@dataclass(frozen=True)
class Recursion:
    """Cuts at several levels, each between two cuts that were made before.

    The middle level is cut first, then the middle ones of both sides, and so on. A record at a
    point of the grid is spread evenly over the point's keys, so that a value of many records is cut
    at the right rank and each of its records stands with a share on both sides. A key's score in a
    part is minus the distance of the mass below it from the level's share of the part's mass, and
    the exponential mechanism chooses one, with r / (2 m) for each rank, where m is the larger of
    the level and 1 minus it. Cuts below some depth stand evenly between those above.

    Guarantee:
        Pure epsilon-DP for r = epsilon / depth under "add_remove" and r = epsilon / (2 depth) under
        "replace_one". Proof: let the cuts above one depth be fixed. Its parts are disjoint sets of
        keys, and a record has a share s of its mass in a part, which add up to 1. Adding the record
        changes the distance of a key with the share f <= s below it by at most |f - s level|
        <= s m, so that all changes in a part lie within a range of 2 s m, and its probabilities
        change by factors within exp(+- s r). The parts of a depth draw independently: exp(+- r).
        Replacing is removing and adding, exp(+- 2 r). The depths compose adaptively. The first part
        holds all records: where their number is public and none changes its group, distances change
        by at most 1 under "replace_one", which allows it r for each rank. How many keys a point
        counts as is public and changes nothing in this. Integers are exact up to `2**34` records.

    Source:
        Kaplan, Schnapp and Stemmer 2022. Spreading a record, and with it the rates by r / (2 m) and
        the rank at which a value of many records is cut, are ours.

    Attributes:
        levels: The levels, which differ, in increasing order.
        root: The first cut.
        depth: How many cuts a record takes part in, one after the other.
        n: The number of records; None where it is private.
    """

    levels: tuple[Fraction, ...]
    root: Cut
    depth: int
    n: int | None

    @classmethod
    def plan(
        cls,
        levels: Sequence[Fraction],
        epsilon: Fraction,
        *,
        one_way: bool,
        fixed: bool,
        n: int | None,
    ) -> Recursion:
        """The recursion over some levels, which differ and increase; to the best depth for n.

        one_way: whether neighbors differ by one record that only one of them has.
        fixed: whether they always have as many records.
        n: the number of records; None where it is private, for cuts at all levels.
        """
        most = len(levels).bit_length()
        plans = []
        for depth in range(1 if n is not None else most, most + 1):
            share = epsilon / (depth if one_way else 2 * depth)
            root = _split(tuple(levels), 0, len(levels), share, depth, fixed)
            plans.append(cls(tuple(levels), root, depth, n))
        return min(plans, key=lambda one: sum(one.deviations))

    @property
    def least_rate(self) -> Fraction:
        """The least rate of all cuts that are drawn."""
        return min(_rates_of(self.root))

    @property
    def deviations(self) -> list[float]:
        """By how many ranks each cut is typically off, with the errors of the cuts above it."""
        squares = [0.0] * len(self.levels)

        def visit(cut: Cut | None, low: _Errors, high: _Errors, span: float) -> None:
            if cut is None:
                return
            level = float(cut.level)
            errors = {cut.place: DEVIATION / float(cut.rate) if cut.rate else _UNEVEN * span}
            for end, factor in ((low, 1 - level), (high, level)):
                for place, error in end.items():
                    errors[place] = errors.get(place, 0.0) + factor * error
            squares[cut.place] = sum(error**2 for error in errors.values())
            # Beside a cut that is not drawn, one is off as it is in the part that is cut evenly.
            spans = (span, span) if not cut.rate else (level * span, (1 - level) * span)
            ends = (low, high) if not cut.rate else (errors, errors)
            visit(cut.left, low, ends[1], spans[0])
            visit(cut.right, ends[0], high, spans[1])

        visit(self.root, {}, {}, float(self.n or 0))
        return [math.sqrt(square) for square in squares]

    def bound_errors(self, points: int, beta: float) -> list[float]:
        """By how many ranks each cut is off at most, but for beta.

        At least `2**18 / (n rate)` keys lie within 1 / rate + n / `2**18` ranks of a part's aim, or
        all of the part do, since a key has n / `2**18` records at most. Where n is private, it is
        taken as `2**24`.
        """
        most = _MOST_RECORDS if self.n is None else self.n
        bounds = [0.0] * len(self.levels)
        weights = points + 1 + 2 * _weight_of_bound(points)

        def visit(cut: Cut | None, low: float, high: float, span: float) -> None:
            if cut is None:
                return
            rate, level = float(cut.rate), float(cut.level)
            if rate:
                odds = weights * max(most * rate, 1.0) * self.depth / beta
                own = (1 + math.log(odds)) / rate + most / (1 << _BITS)
                error = own + (1 - level) * low + level * high
            else:
                error = max(low + level * span, high + (1 - level) * span)
            bounds[cut.place] = error
            visit(cut.left, low, error, level * span)
            visit(cut.right, error, high, (1 - level) * span)

        visit(self.root, 0.0, 0.0, most)
        return bounds

    def draw(self, records: Tally, points: int, stream: np.random.Generator | None) -> Integers:
        """A point of the grid 0, ..., points for each level, in order."""
        chosen = np.zeros(len(self.levels), np.int64)

        def visit(cut: Cut | None, keys: _Keys, low: int, high: int) -> None:
            if cut is None:
                return
            part = keys.between(low, high)
            if cut.rate and low < high:
                key = part.draw(cut, stream)
            else:
                key = low + int((high - low) * cut.level)
            chosen[cut.place] = key >> _BITS
            visit(cut.left, part, low, key)
            visit(cut.right, part, key, high)

        visit(self.root, _Keys.of(records, points), 0, (points + 1) << _BITS)
        return np.minimum(chosen, points)


_Errors = dict[int, float]


def _split(
    levels: tuple[Fraction, ...],
    start: int,
    stop: int,
    share: Fraction,
    depth: int,
    fixed: bool,
    ends: tuple[Fraction, Fraction] = (Fraction(0), Fraction(1)),
) -> Any:
    """The cuts at some of the levels, between two ends: None where there is no level.

    depth: how many cuts are drawn one after the other; those below stand evenly between them.
    fixed: whether neighbors have as many records between the ends.
    """
    if start == stop:
        return None
    place, (low, high) = (start + stop) // 2, ends
    level = ((levels[place] - low) / (high - low)).limit_denominator(_FINEST)
    rate = share if fixed else share / (2 * max(level, 1 - level))
    middle = levels[place]
    return Cut(
        place,
        level,
        rate if depth > 0 else Fraction(0),
        _split(levels, start, place, share, depth - 1, False, (low, middle)),
        _split(levels, place + 1, stop, share, depth - 1, False, (middle, high)),
    )


def _rates_of(cut: Cut | None) -> list[Fraction]:
    """The rates of a cut and all below it, of those that are drawn."""
    if cut is None or not cut.rate:
        return []
    return [cut.rate, *_rates_of(cut.left), *_rates_of(cut.right)]


class _Keys(NamedTuple):
    """Keys in increasing order, in pieces.

    Attributes:
        start: The first key of each piece.
        end: The one after its last.
        mass: The mass of each of its keys, of which a record has 2**18.
        weight: How often each of its keys counts in a draw.
    """

    start: Integers
    end: Integers
    mass: Integers
    weight: Integers

    @classmethod
    def of(cls, records: Tally, points: int) -> _Keys:
        """The keys of the grid 0, ..., points, of all records."""
        both = records.places, records.places + 1, [0, 1, points, points + 1]
        edges = np.sort(np.concatenate(both))
        edges = edges[np.diff(edges, prepend=-1) > 0]
        mass, weight = np.zeros(len(edges) - 1, np.int64), np.ones(len(edges) - 1, np.int64)
        mass[np.searchsorted(edges, records.places)] = records.values
        weight[[0, -1]] += _weight_of_bound(points)
        return cls(edges[:-1] << _BITS, edges[1:] << _BITS, mass, weight)

    def between(self, low: int, high: int) -> _Keys:
        """The keys from low to the one before high."""
        first = int(np.searchsorted(self.end, low, side="right"))
        last = int(np.searchsorted(self.start, high))
        start, end = self.start[first:last], self.end[first:last]
        mass, weight = self.mass[first:last], self.weight[first:last]
        return _Keys(np.maximum(start, low), np.minimum(end, high), mass, weight)

    def draw(self, cut: Cut, stream: np.random.Generator | None) -> int:
        """A key for a cut of all these keys."""
        parts, whole = cut.level.as_integer_ratio()
        total = int((self.mass * (self.end - self.start)).sum())
        rate = cut.rate / (whole << _BITS)
        fine = self._refine(float(cut.level) * total, float(cut.rate) / (1 << _BITS))
        width = fine.end - fine.start
        below = np.cumsum(fine.mass * width) - fine.mass * width
        off = whole * below - parts * total
        nearest = np.maximum(off, -(off + whole * fine.mass * (width - 1)))
        piece, place = draw(
            width * fine.weight,
            np.maximum(nearest, 0),
            rate,
            stream,
            lambda piece, place: abs(
                int(off[piece]) + whole * int(fine.mass[piece]) * (place // int(fine.weight[piece]))
            ),
        )
        return int(fine.start[piece]) + place // int(fine.weight[piece])

    def _refine(self, aim: float, rate: float) -> _Keys:
        """The same keys, where heavy pieces near the aim are in smaller ones.

        No law depends on it: keys of a piece are proposed by their nearest distance.
        """
        width = self.end - self.start
        mass = self.mass * width
        upto = np.cumsum(mass)
        near = (np.maximum(aim - upto, upto - mass - aim) * rate) < _NEAR
        many = np.where(near, np.ceil(mass * rate), 1).clip(1, width).astype(np.int64)
        if int(many.max()) == 1:
            return self
        piece = np.repeat(np.arange(len(width)), many)
        place = np.arange(len(piece)) - np.repeat(np.cumsum(many) - many, many)
        first = self.start[piece]
        start, end = (first + width[piece] * step // many[piece] for step in (place, place + 1))
        return _Keys(start, end, self.mass[piece], self.weight[piece])


def _weight_of_bound(points: int) -> int:
    """How many points more a bound counts as."""
    return (points + 1) // _OF_BOUND
