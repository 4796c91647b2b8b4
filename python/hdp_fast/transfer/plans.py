"""The goal of a run, what is asked of it and known before it, and the plans that are made."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, NamedTuple

from .._support.json_text import JsonText
from .._support.parameters import Rules, optional
from .._support.types import VARIANTS, Variant
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
_KEPT_BY_PLANS = (
    "alpha", "beta", "opt", "epsilon", "delta", "agents_epsilon", "response_rate", "chi2",
    "schedule", "output", "rounds", "kappa", "eta", "weigh_by", "variant",
)  # fmt: skip
# What may be left to rules, in the order in which a plan names what they chose.
SETTINGS = ("alpha", "kappa", "eta", "rounds", "schedule", "output")
# Of what is no setting; those are checked when they are settled.
_RULES: Rules = {
    "beta": probability,
    "n": optional(nonnegative_int),
    "N": optional(nonnegative_int),
    "agents_epsilon": optional(positive),
    "response_rate": probability_or_one,
    "chi2": optional(finite_nonnegative),
    "opt": partial(probability, zero=True),
    "draws": optional(nonnegative_int),
    "weigh_by": partial(one_of, allowed=("errors", "losses")),
    "variant": partial(one_of, allowed=VARIANTS),
}


class RunGoal(NamedTuple):
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
    variant: Variant = "tight"

    def plan_fields(self) -> dict[str, Any]:
        """What a plan keeps of a settled goal, by name."""
        return {name: getattr(self, name) for name in _KEPT_BY_PLANS}

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


def validate_goal(learner: Any, *, epsilon: Any, delta: Any, **numbers: Any) -> RunGoal:
    """The goal of what `plan_rounds` takes; its settings are still to be settled.

    Raises:
        ParameterError: A parameter is out of range, or excludes another one.
    """
    draws, N = numbers["draws"], numbers["N"]
    if is_private(epsilon):
        if draws is not None:
            refuse("draws", draws, "a private plan finds them itself")
        epsilon, delta = positive("epsilon", epsilon), probability("delta", delta)
    elif delta is not None:
        refuse("delta", delta, "epsilon = inf protects no record of the curator: leave it out")
    if N is not None and numbers["agents_epsilon"] is None:
        rule = "what N agents tell depends on it: pass it, or neither for an SQ oracle"
        refuse("agents_epsilon", None, rule)
    checked = {name: rule(name, numbers[name]) for name, rule in _RULES.items()}
    return RunGoal(learner, epsilon=float(epsilon), delta=delta, **{**numbers, **checked})


def validate_tests(goal: RunGoal) -> RunGoal:
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


@dataclass(frozen=True)
class PaperPlan:
    """The parameters that the paper's Algorithm 2 prints for the same promise.

    For a learner with steps, such as PrivateSGD, they are those of its Algorithm 4, with as many
    single draws as the steps have in all. Losses are then in units of the largest loss, and the
    noise that the algorithm prints is not part of the plan.

    Attributes:
        n: Records of the curator.
        N: Agents.
        rounds: Largest number of rounds.
        kappa: Density of the weights: no record weighs more than 1 / (kappa n).
        eta: Step size of the weights.
        draws: Records that the learner gets in a round, with epsilon = 1 or with the noise of
            Algorithm 4.
        agents_per_test: Agents asked about one hypothesis.

    Examples:
        >>> from hdp_fast import learners, transfer
        >>> learner = learners.PrivateSGD(loss="logistic", steps=20, batch_size=50, epsilon=1.0)
        >>> goal = {"alpha": 0.1, "epsilon": 1.0, "delta": 1e-6, "chi2": 1.0, "agents_epsilon": 2.0}
        >>> plan = transfer.plan_rounds(learner, n=100_000, **goal)
        >>> plan.rounds, plan.paper.rounds
        (1805, 93721)
        >>> plan.agents_per_test, plan.paper.agents_per_test
        (557, 23974)
    """

    n: int
    N: int
    rounds: int
    kappa: float
    eta: float
    draws: int
    agents_per_test: int


@dataclass(frozen=True, repr=False)
class Plan(JsonText):
    """Parameters of a run of SubsampleTestReweigh; they are public and made without data.

    Attributes:
        alpha: Half width of the interval of every test, and error of the learner on its draws, in
            (0, 1).
        beta: Failure probability, in (0, 1), of each of three or four parts: learners, tests,
            sample, and the choice among random rounds where there is one.
        opt: Least error of the class on the target, in [0, 1) (the paper's alpha_H).
        epsilon: Privacy parameter of the curator's records; math.inf if they are not protected.
        delta: Privacy parameter of the curator's records; None if they are not protected.
        agents_epsilon: Privacy parameter of each agent's answer; None for an SQ oracle.
        response_rate: Share of the agents asked who are expected to answer, in (0, 1].
        chi2: Bound on the chi-squared divergence of target from source; None if none was passed.
        schedule: When hypotheses are tested: "every", "geometric", "final" or, without agents,
            "never".
        output: Which hypothesis is released: "tested", "smallest" or "majority".
        n: Number of records needed. Where parameters were passed from which no number follows, it
            is the n that was passed, or 1 for a run that is not private.
        N: Number of agents needed if no test accepts before the last round, those for the constants
            included; 0 for an SQ oracle and where no hypothesis is tested.
        rounds: Planned number of rounds. Privacy is charged for all of them.
        kappa: Density of the weights, in (0, 1]: no draw holds a record with probability above
            about 1 / (kappa n). None if the weights are not projected.
        eta: Step size of the weights, in (0, 4].
        draws: Records that the learner gets in a round.
        learner_epsilon: Privacy parameter of the learner on its draws. None for a run that is not
            private, and for a learner with steps, whose noise `fit` calibrates.
        tests: Largest number of hypotheses that are tested.
        agents_per_test: Agents asked about each hypothesis, of whom about the share
            `response_rate` answers; 0 for an SQ oracle.
        agents_for_constants: Agents kept for the errors of always 0 and always 1, which they
            estimate to within the smaller of 2 alpha and 1/2, except with probability beta. After
            an early end, agents that no test has asked are asked as well, up to `agents_per_test`.
        error: Bound on the target error of the released hypothesis, which fails with probability
            `failure` at most, if agents answer as often as `response_rate` says; None where the
            error is only measured.
        failure: Probability with which `error` may fail: 3 beta or 4 beta.
        paper: The parameters that the paper prints. None without chi2, with an SQ oracle, and for a
            run that is not private.
        weigh_by: What the weights follow: "errors" of the hypotheses' predictions, or the "losses"
            that hypotheses have of their own.
        added_error: About how much larger an error on its draws privacy makes a round's hypothesis,
            2 ln|H| / (draws learner_epsilon). It should be well below the error of a constant.
            None for a run that is not private and for a learner of no finite class.
        chosen: Names of the settings that were chosen automatically.
        variant: "tight", or "paper" for what Kohen and Sheffet print, with agents who send Gaussian
            answers of epsilon `agents_epsilon` and delta `delta`.

    Examples:
        >>> from hdp_fast import learners, transfer
        >>> learner = learners.PrivateSGD(loss="logistic", steps=20, batch_size=50, epsilon=1.0)
        >>> goal = {"alpha": 0.1, "epsilon": 1.0, "delta": 1e-6, "agents_epsilon": 2.0}
        >>> plan = transfer.plan_rounds(learner, n=20_000, kappa=0.5, eta=0.5, rounds=8, **goal)
        >>> plan.tests, plan.agents_per_test, plan.N
        (9, 508, 4652)
        >>> plan.tested_rounds, plan.final_tests, plan.promised
        ((1, 2, 4, 8), 5, False)
    """

    alpha: float
    beta: float
    opt: float
    epsilon: float
    delta: float | None
    agents_epsilon: float | None
    response_rate: float
    chi2: float | None
    schedule: Schedule
    output: Output
    n: int
    N: int
    rounds: int
    kappa: float | None
    eta: float
    draws: int
    learner_epsilon: float | None
    tests: int
    agents_per_test: int
    agents_for_constants: int
    error: float | None
    failure: float
    paper: PaperPlan | None
    weigh_by: WeighBy = "errors"
    added_error: float | None = None
    chosen: tuple[str, ...] = ()
    variant: Variant = "tight"

    def __repr__(self) -> str:
        kappa = "no projection" if self.kappa is None else f"kappa={self.kappa:.3g}"
        weights = f"{self.rounds:,} rounds, {kappa}, eta={self.eta:.3g}"
        tests = f"{self.tests:,} tests ({self.schedule}, {self.output}) to within {self.alpha:.3g}"
        known = "measured" if self.error is None else f"at most {self.error:.3g}"
        added = "" if self.added_error is None else f", privacy adds about {self.added_error:.2g}"
        chosen = f"; automatic: {', '.join(self.chosen)}" if self.chosen else ""
        sizes = f"n={self.n:,}, N={self.N:,}, epsilon={self.epsilon:g}"
        return f"Plan({sizes}, {weights}, {tests}; error {known}{added}{chosen})"

    @property
    def promised(self) -> bool:
        """Whether the error is promised, not only measured; privacy is promised in either case."""
        return self.error is not None

    @property
    def tested_rounds(self) -> tuple[int, ...]:
        """The rounds whose hypothesis is tested before the next round."""
        if self.schedule in ("final", "never"):
            return ()
        if self.schedule == "every":
            return tuple(range(1, self.rounds + 1))
        return tuple(1 << k for k in range(self.rounds.bit_length()))

    @property
    def final_tests(self) -> int:
        """Number of tests after the last round, of random rounds' hypotheses or of the vote."""
        return self.tests - len(self.tested_rounds)
