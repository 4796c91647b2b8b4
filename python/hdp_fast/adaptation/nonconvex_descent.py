"""Descent on the non-convex problem, in predictor and inverse weights at a time."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from .._support.callers import freeze, silence
from .._support.types import Floats
from .._support.validate import LEAST
from ..exceptions import ShapeError
from .objective import PrivatePart
from .privacy import Coins, Noise, noisy, sum_bits
from .problem import Rows, attempted
from .projected_steps import Moved, Steps

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
        with silence():
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
        X, y = (freeze(each[some]) for each in (self.rows.X, self.rows.y))
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


# Of a gradient's squared budget, for each sum that couples the weights.
SHARE = 1 / 16


class Penalties(NamedTuple):
    """Of the weights, each at least 0: lambda_1 for |q - p|_1, and so on; mu of the softmax."""

    lambda_1: float
    lambda_2: float
    lambda_inf: float
    mu: float

    @property
    def couplings(self) -> int:
        """How many sums over all weights a step needs."""
        return (self.lambda_2 > 0) + (self.lambda_inf > 0)


@dataclass(eq=False)
class State:
    """A domain and its inverse weights, as v = cap / q >= 1, which nobody else sees.

    Attributes:
        domain: its records.
        cap: the largest weight.
        offset: added to each loss.
        v: float64 (n,).
    """

    domain: Domain
    cap: float
    offset: float
    v: Floats

    @classmethod
    def new(cls, domain: Domain, cap: float, offset: float) -> State:
        """The state at the largest weights."""
        return cls(domain, cap, offset, np.ones(domain.n))

    @property
    def q(self) -> Floats:
        """The weights."""
        return self.cap / self.v


class Problem(NamedTuple):
    """What the objective is made of, but for the records."""

    bends: Bends
    penalties: Penalties
    radius: float


class Couplings(NamedTuple):
    """What every weight's derivative needs of all others: |q|_2, and sum exp(mu q)."""

    norm: float
    total: float


def step(states: list[State], w: Floats, problem: Problem, path: Steps) -> Moved:
    """The next predictor; the weights move on, too.

    Without noise, for steps like those of `longest`, none raises the objective: each block moves
    by less than what its own curvature and half of what joins both allow.
    """
    coupled = _couplings(states, problem.penalties)
    gradient, mapping = np.zeros_like(w), 0.0
    for state in states:
        losses, own = state.domain.evaluate(w, state.q, state.cap)
        gradient += own
        mapping += _moved_weights(state, losses, coupled, problem)
    found = path.moved(w, gradient)
    return found._replace(mapping=found.mapping + mapping)


def longest(problem: Problem, d: int) -> Steps:
    """The longest steps, alike in all directions, that never raise the objective.

    All caps add up to 1.
    """
    return Steps.of_length(1 / (2 * problem.bends.smoothness), problem.radius, d)


def objective(states: list[State], w: Floats, problem: Problem) -> float:
    """What step descends on, at the weights as they are; for domains without noise."""
    penalties, found = problem.penalties, problem.penalties.lambda_1
    for state in states:
        losses, _ = state.domain.evaluate(w, state.q, state.cap)
        found += float(state.q @ (losses + state.offset - penalties.lambda_1))
    q = np.concatenate([state.q for state in states])
    found += penalties.lambda_2 * float(np.linalg.norm(q))
    if penalties.lambda_inf:
        soft = math.log(np.exp(penalties.mu * q).sum()) / penalties.mu
        found += penalties.lambda_inf * soft
    return found


def _couplings(states: list[State], penalties: Penalties) -> Couplings:
    """Noisy where a domain is private, and kept within what any weights can have."""
    squares, total = 0.0, 0.0
    for state in states:
        cap, n = state.cap, state.domain.n
        if penalties.lambda_2:
            part = state.domain.add((1 / state.v) ** 2, SHARE)
            squares += cap**2 * min(max(part, 0.0), n)
        if penalties.lambda_inf:
            most = math.expm1(penalties.mu * cap)
            part = state.domain.add(np.expm1(penalties.mu * state.q) / most, SHARE)
            total += n + most * min(max(part, 0.0), n)
    least = min(state.cap for state in states)
    return Couplings(max(math.sqrt(squares), least), max(total, 1.0))


def _moved_weights(state: State, losses: Floats, coupled: Couplings, problem: Problem) -> float:
    """A step of the inverse weights; the squared norm of the gradient mapping in u = v / cap."""
    penalties, q = problem.penalties, state.q
    slopes = losses + (state.offset - penalties.lambda_1)
    slopes += penalties.lambda_2 * q / coupled.norm
    if penalties.lambda_inf:
        slopes += penalties.lambda_inf * np.exp(penalties.mu * q) / coupled.total
    bend = _bend(state, problem)
    found = np.maximum(state.v + slopes / (bend * state.v**2), 1.0)
    mapping = float(np.square((state.v - found) * (bend * state.cap**2)).sum())
    state.v = found
    return mapping


def _bend(state: State, problem: Problem) -> float:
    """The most that the objective bends in one of the inverse weights v, in units of the cap."""
    bends, penalties = problem.bends, problem.penalties
    own = 2 * (max(bends.largest + state.offset, penalties.lambda_1))
    own += 5 * penalties.lambda_2 + penalties.lambda_inf * (2 + penalties.mu * state.cap)
    return own + bends.gradient**2 / bends.smoothness
