"""The goal of a run: what is asked of it and known before it, validated once and passed on."""

from __future__ import annotations

import math
from typing import Any, Literal, NamedTuple

from .._support.validate import (
    finite_nonnegative,
    nonnegative_int,
    number,
    one_of,
    positive,
    probability,
    probability_or_one,
    refuse,
)
from ..exceptions import ParameterError

Auto = Literal["auto"]
Schedule = Literal["every", "geometric", "final", "never"]
Output = Literal["tested", "smallest", "majority"]
WeighBy = Literal["errors", "losses"]

AUTO: Auto = "auto"
SCHEDULES: tuple[Schedule, ...] = ("every", "geometric", "final", "never")
OUTPUTS: tuple[Output, ...] = ("tested", "smallest", "majority")
# What may be left to rules, in the order in which a plan names what they chose.
SETTINGS = ("alpha", "kappa", "eta", "rounds", "schedule", "output")


class Goal(NamedTuple):
    """What is asked of a run of SubsampleTestReweigh, as `transfer.plan_rounds` takes it.

    A SETTING is "auto" or None until it is settled, and has its type from then on.
    """

    learner: Any
    alpha: float
    epsilon: float
    beta: float
    delta: float | None
    chi2: float | None
    kappa: float | None
    eta: float
    rounds: int
    schedule: Schedule
    output: Output
    opt: float
    agents_epsilon: float | None = None
    n: int | None = None
    N: int | None = None
    draws: int | None = None
    weigh_by: WeighBy = "errors"
    response_rate: float = 1.0

    @property
    def is_private(self) -> bool:
        """Whether the curator's records are protected."""
        return self.delta is not None

    @property
    def loss(self) -> tuple[float, float]:
        """Epsilon and delta of a private run."""
        assert self.delta is not None
        return self.epsilon, self.delta

    @property
    def density(self) -> float:
        """The kappa of a run whose weights are projected, as those of private runs are."""
        assert self.kappa is not None
        return self.kappa

    @property
    def ratio(self) -> float | None:
        """The bound on E_target[target / source]; None without one."""
        return None if self.chi2 is None else 1 + self.chi2

    @property
    def threshold(self) -> float:
        """The estimate up to which a test accepts a hypothesis."""
        return 3 * self.alpha + self.opt

    @property
    def accepts(self) -> bool:
        """Whether a test may end the run."""
        return self.output == "tested" and self.schedule != "final"

    @property
    def is_certain(self) -> bool:
        """Whether all rounds count for the promise, and not only some random ones."""
        return self.schedule == "every" or self.output == "majority"

    @property
    def failure(self) -> float:
        """The probability with which the promise may fail."""
        return (3 if self.is_certain else 4) * self.beta

    @property
    def error(self) -> float:
        """The error on the target that can be promised."""
        return (4 if self.is_certain else 6) * self.alpha


def validate_goal(
    learner: Any,
    *,
    epsilon: Any,
    beta: Any,
    delta: Any,
    agents_epsilon: Any,
    chi2: Any,
    n: Any,
    N: Any,
    opt: Any,
    draws: Any,
    weigh_by: Any,
    response_rate: Any,
    **settings: Any,
) -> Goal:
    """The goal of the parameters that were passed; its settings are still to be settled.

    Raises:
        ParameterError: A parameter is out of range, or excludes another one.
    """
    if is_private(epsilon):
        if draws is not None:
            refuse("draws", draws, "a private plan finds them itself")
        epsilon, delta = positive("epsilon", epsilon), probability("delta", delta)
    elif delta is not None:
        refuse("delta", delta, "epsilon = inf protects no record of the curator: leave it out")
    if N is not None and agents_epsilon is None:
        rule = "what N agents tell depends on it: pass it, or neither for an SQ oracle"
        refuse("agents_epsilon", agents_epsilon, rule)
    return Goal(
        learner,
        epsilon=float(epsilon),
        delta=delta,
        beta=probability("beta", beta),
        n=None if n is None else nonnegative_int("n", n),
        N=None if N is None else nonnegative_int("N", N),
        agents_epsilon=None
        if agents_epsilon is None
        else positive("agents_epsilon", agents_epsilon),
        response_rate=probability_or_one("response_rate", response_rate),
        chi2=None if chi2 is None else finite_nonnegative("chi2", chi2),
        opt=probability("opt", opt, zero=True),
        draws=None if draws is None else nonnegative_int("draws", draws),
        weigh_by=one_of("weigh_by", weigh_by, ("errors", "losses")),
        **settings,
    )


def validate_tests(goal: Goal) -> Goal:
    """The settled goal, whose tests can keep what it asks for.

    Raises:
        ParameterError: The width is out of range, there are no such tests, or they accept too much.
    """
    goal = goal._replace(
        alpha=probability("alpha", goal.alpha),
        schedule=one_of("schedule", goal.schedule, SCHEDULES),
        output=one_of("output", goal.output, OUTPUTS),
    )
    if goal.schedule == "never" and goal.output != "majority":
        rule = "only the 'majority' vote is released without a test"
        raise ParameterError(f"output = {goal.output!r} with schedule = 'never', but {rule}")
    if goal.accepts and goal.threshold >= 0.5:
        rule = f"a test accepts an error of 3 alpha + opt = {goal.threshold:g}: it must be below .5"
        raise ParameterError(f"alpha = {goal.alpha:g} and opt = {goal.opt:g}, but {rule}")
    return goal


def is_private(epsilon: Any) -> bool:
    """Whether the curator's records are protected: epsilon = math.inf says that they are not.

    Raises:
        ParameterError: epsilon is not a real number.
    """
    return number("epsilon", epsilon) != math.inf


def is_auto(value: object) -> bool:
    """Whether a setting was left to the rules."""
    return isinstance(value, str) and value == AUTO


def validate_rounds(rounds: object) -> int:
    """The number of rounds.

    Raises:
        ParameterError: It is no integer from 1 to `2**40` - 1.
    """
    length = nonnegative_int("rounds", rounds)
    if not 0 < length < 1 << 40:
        raise ParameterError(f"rounds = {length}, but it must be at least 1 and below 2**40")
    return length
