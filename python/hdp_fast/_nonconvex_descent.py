"""Descent on the non-convex problem, in predictor and inverse weights at a time."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ._adaptation_steps import Moved, Steps
from ._nonconvex_losses import Bends, Domain

Floats = NDArray[np.float64]

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
