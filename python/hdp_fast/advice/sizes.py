"""The public numbers that advice is made from, checked before anything is computed."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, Self, get_args

from .._support.validate import (
    nonnegative_int,
    number,
    one_of,
    positive,
    positive_int,
    probability,
    refuse,
)
from ..accounting import gaussian_mu
from ..local.response import advantage

Learner = Literal["linear", "finite", "other"]
Target = Literal["same", "shifted", "unknown"]
Source = Literal["private", "public"]

MOST = 1 << 53
# For which there are tables of votes.
LEAST_EPSILON, LARGEST_EPSILON = 0.001, 1_000.0
_LEAST_DELTA = 1e-200
_RAREST = 1e-6

# What makes of an argument's name and value the value, or refuses it.
_Rule = Callable[[str, Any], Any]


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """Numbers of records, agents and points, the privacy of both sides, and what is known.

    Attributes:
        n: Number of private records.
        d: Number of feature columns.
        epsilon: Privacy parameter of the records; math.inf protects none.
        agents: Number of agents.
        pool: Number of public points: without labels, or the labeled records of a public source.
        classes: Number of labels.
        delta: Privacy parameter of the records.
        agents_epsilon: Privacy parameter of each agent's answer.
        learner: Kind of model.
        size: Number of hypotheses of a finite class; None for another learner.
        target: What is known of the population that the model is for.
        source: Whether the first population is private.
        base_rate: Share of label 1 in the target; None if it is not known.
        best_error: Error that a model without privacy has; None if it is not known.
    """

    n: int
    d: int
    epsilon: float
    agents: int
    pool: int
    classes: int
    delta: float
    agents_epsilon: float
    learner: Learner
    size: int | None
    target: Target
    source: Source
    base_rate: float | None
    best_error: float | None

    @property
    def mu(self) -> float:
        """Parameter of the Gaussian mechanism with this epsilon and delta."""
        return math.inf if self.epsilon == math.inf else gaussian_mu(self.epsilon, self.delta)

    @property
    def advantage(self) -> float:
        """What an agent's answer is worth: Pr[truth] - Pr[lie]."""
        return advantage(self.agents_epsilon)

    @property
    def constant_error(self) -> float:
        """The error of the best constant, the largest that is possible if no base rate is known."""
        if self.base_rate is None:
            return 1 - 1 / self.classes
        return min(self.base_rate, 1 - self.base_rate)

    @property
    def room(self) -> float:
        """What can be learned: the constant's error above that of a model without privacy."""
        return self.constant_error - (self.best_error or 0.0)

    def change(self, **changes: Any) -> Self:
        """The same with other numbers."""
        return replace(self, **changes)


def check_sizes(**numbers: Any) -> Sizes:
    """Check all arguments of advise.

    Raises:
        ParameterError: An argument is out of range, or does not fit the others.
    """
    sizes = Sizes(**{name: _RULES[name](name, value) for name, value in numbers.items()})
    _check_together(sizes)
    advantage(sizes.agents_epsilon)
    return sizes


def _count(name: str, value: Any) -> int:
    count = nonnegative_int(name, value)
    if count > MOST:
        refuse(name, value, f"it must be an integer from 0 to {MOST}")
    return count


def _check_epsilon(name: str, value: Any) -> float:
    epsilon = number(name, value)
    if epsilon != math.inf and not LEAST_EPSILON <= epsilon <= LARGEST_EPSILON:
        refuse(name, value, "it must lie in [0.001, 1000], or be infinite")
    return epsilon


def _check_delta(name: str, value: Any) -> float:
    delta = probability(name, value)
    if delta < _LEAST_DELTA:
        refuse(name, value, f"it must be at least {_LEAST_DELTA}")
    return delta


def _check_rate(name: str, value: Any) -> float:
    rate = number(name, value)
    if not _RAREST <= rate <= 1 - _RAREST:
        refuse(name, value, f"it must lie in [{_RAREST}, 1 - {_RAREST}]")
    return rate


def _optional(rule: _Rule) -> _Rule:
    return lambda name, value: None if value is None else rule(name, value)


_RULES: dict[str, _Rule] = {
    "n": _count,
    "d": partial(positive_int, most=MOST),
    "epsilon": _check_epsilon,
    "agents": _count,
    "pool": _count,
    "classes": partial(positive_int, most=256),
    "delta": _check_delta,
    "agents_epsilon": positive,
    "learner": partial(one_of, allowed=get_args(Learner)),
    "size": _optional(partial(positive_int, most=MOST)),
    "target": partial(one_of, allowed=get_args(Target)),
    "source": partial(one_of, allowed=get_args(Source)),
    "base_rate": _optional(_check_rate),
    "best_error": _optional(partial(probability, zero=True)),
}


def _check_together(sizes: Sizes) -> None:
    if sizes.classes < 2:
        refuse("classes", sizes.classes, "it must be at least 2")
    if sizes.learner == "finite" and sizes.size is None:
        refuse("size", sizes.size, "a finite class has a number of hypotheses: pass their number")
    if sizes.learner == "finite" and sizes.classes != 2:
        refuse("classes", sizes.classes, "the hypotheses of a finite class say 0 or 1: take 2")
    if sizes.learner != "finite" and sizes.size is not None:
        rule = f"learner is {sizes.learner!r}: only a finite class has a size"
        refuse("size", sizes.size, rule)
    if sizes.base_rate is not None and sizes.classes != 2:
        refuse("base_rate", sizes.base_rate, "it is the share of label 1 of 2 classes")
    if sizes.source == "public" and not sizes.pool:
        refuse("pool", sizes.pool, "a public source has records: pass their number")
    if not sizes.n and (sizes.source == "private" or not sizes.agents):
        refuse("n", sizes.n, "there must be private records, or a public source and agents")
    if sizes.best_error is not None and sizes.best_error >= sizes.constant_error:
        rule = f"it must be below the constant's error, {sizes.constant_error:.3g}"
        refuse("best_error", sizes.best_error, rule)
