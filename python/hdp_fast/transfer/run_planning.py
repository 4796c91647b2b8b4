"""Plans of Subsample-Test-Reweigh: its parameters, public and fixed before any data is read."""

from __future__ import annotations

import math
from typing import Any, Literal, NamedTuple

from .. import local
from .._support.validate import (
    nonnegative_int,
    number,
    one_of,
    positive,
    probability,
    probability_or_one,
    refuse,
)
from ..exceptions import ParameterError
from .learner_epsilon import Sample, Search, composes, compute_sample_size, validate_steps
from .plans import Output, Plan, Schedule, WeighBy, count_paper_rounds, plan_paper

_SCHEDULES = ("every", "geometric", "final", "never")
_OUTPUTS = ("tested", "smallest", "majority")
_LARGEST = 1 << 49
# DenseWeights keeps logarithms of weights down to about minus this.
_DEEPEST = 5_600


class _Goal(NamedTuple):
    """The error that is aimed at, and how hypotheses are tested for it."""

    alpha: float
    beta: float
    opt: float
    schedule: Schedule
    output: Output

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
        return (3 if self.is_certain else 4) * self.beta

    @property
    def error(self) -> float:
        return (4 if self.is_certain else 6) * self.alpha


class _Updates(NamedTuple):
    """How the weights are updated."""

    rounds: int
    eta: float
    kappa: float | None


def is_private(epsilon: Any) -> bool:
    """Whether the curator's records are protected: epsilon = math.inf says that they are not.

    Raises:
        ParameterError: epsilon is not a real number.
    """
    return number("epsilon", epsilon) != math.inf


def plan_rounds(
    learner: Any,
    *,
    alpha: float | None,
    epsilon: float | None,
    beta: float = 0.05,
    delta: float | None = None,
    agents_epsilon: float | None = None,
    chi2: float | None = None,
    kappa: float | None = None,
    eta: float | Literal["paper"] | None = None,
    rounds: int | None = None,
    n: int | None = None,
    schedule: Schedule = "geometric",
    output: Output = "tested",
    opt: float = 0.0,
    draws: int | None = None,
    weigh_by: WeighBy = "errors",
    response_rate: float = 1.0,
) -> Plan:
    """Computes all parameters of SubsampleTestReweigh, as `transfer.plan` describes them."""
    goal = _validate_goal(alpha, beta, opt, schedule, output)
    ratio = None if chi2 is None else 1 + _validate_divergence(chi2)
    derived = ratio is not None and kappa is None and rounds is None and eta in (None, "paper")
    private = is_private(epsilon)
    updates = _plan_updates(goal.alpha, ratio, eta, rounds, kappa, private)
    rate = probability_or_one("response_rate", response_rate)
    tests, agents_per_test = _plan_tests(goal, updates.rounds, agents_epsilon, rate)
    constants = _plan_constants(goal, agents_epsilon, rate) if tests else 0
    held = None if n is None else nonnegative_int("n", n)
    if private:
        epsilon, delta = _validate_privacy(epsilon, delta, draws)
        sample = _plan_private(learner, goal, updates, epsilon, delta, held, derived)
    else:
        _refuse_delta(delta)
        epsilon = math.inf
        sample = _plan_open(learner, goal, updates, held, draws)
    enough = _records_of_lemma(learner, goal, ratio) if derived and ratio is not None else None
    records = max(sample.n, enough or 0)
    if updates.kappa is not None and (held or records > 1):
        _check_size(records, updates.kappa)
    return Plan(
        alpha=goal.alpha,
        beta=goal.beta,
        opt=goal.opt,
        epsilon=epsilon,
        delta=delta,
        agents_epsilon=agents_epsilon,
        response_rate=rate,
        chi2=chi2,
        schedule=schedule,
        output=output,
        n=records,
        N=tests * agents_per_test + constants,
        rounds=updates.rounds,
        kappa=updates.kappa,
        eta=updates.eta,
        draws=sample.draws,
        learner_epsilon=sample.learner_epsilon,
        tests=tests,
        agents_per_test=agents_per_test,
        agents_for_constants=constants,
        error=goal.error if enough and not goal.opt else None,
        failure=goal.failure,
        paper=plan_paper(learner, goal.alpha, goal.beta, epsilon, delta, agents_epsilon, ratio),
        weigh_by=one_of("weigh_by", weigh_by, ("errors", "losses")),
    )


def _validate_goal(
    alpha: float | None, beta: float, opt: float, schedule: Schedule, output: Output
) -> _Goal:
    width, beta = probability("alpha", alpha), probability("beta", beta)
    opt = probability("opt", opt, zero=True)
    one_of("schedule", schedule, _SCHEDULES)
    one_of("output", output, _OUTPUTS)
    if schedule == "never" and output != "majority":
        rule = "only the 'majority' vote is released without a test"
        raise ParameterError(f"output = {output!r} with schedule = 'never', but {rule}")
    goal = _Goal(width, beta, opt, schedule, output)
    if goal.accepts and goal.threshold >= 0.5:
        rule = f"a test accepts an error of 3 alpha + opt = {goal.threshold:g}: it must be below .5"
        raise ParameterError(f"alpha = {width:g} and opt = {opt:g}, but {rule}")
    return goal


def _validate_divergence(chi2: float) -> float:
    divergence = number("chi2", chi2)
    if not 0 <= divergence < math.inf:
        refuse("chi2", chi2, "it must be finite and at least 0")
    return divergence


def _validate_privacy(
    epsilon: float | None, delta: float | None, draws: int | None
) -> tuple[float, float]:
    if draws is not None:
        refuse("draws", draws, "a private plan finds them itself")
    return positive("epsilon", epsilon), probability("delta", delta)


def _refuse_delta(delta: object) -> None:
    if delta is not None:
        rule = "epsilon = inf protects no record of the curator: leave it out"
        refuse("delta", delta, rule)


def _plan_private(
    learner: Any,
    goal: _Goal,
    updates: _Updates,
    epsilon: float,
    delta: float,
    held: int | None,
    derived: bool,
) -> Sample:
    """The draws of a private round, and the number of records that they need."""
    assert updates.kappa is not None
    if composes(learner):
        draws = math.prod(validate_steps(learner))
        records = held or _records_of_steps(learner, updates, epsilon, delta)
        return Sample(records, draws, None)
    search = Search(learner, goal.alpha, goal.beta, updates.rounds, updates.kappa, epsilon, delta)
    if derived:
        return search.serve_promise(agnostic=goal.opt > 0)
    return search.serve_records(_require_records(held, "without chi2"))


def _plan_open(
    learner: Any, goal: _Goal, updates: _Updates, held: int | None, draws: int | None
) -> Sample:
    """The draws of a round that protects nobody."""
    if composes(learner):
        if draws is not None:
            refuse("draws", draws, "a learner with steps draws steps * batch")
        size = math.prod(validate_steps(learner))
    elif draws is not None:
        size = nonnegative_int("draws", draws)
    else:
        size = compute_sample_size(learner, goal.alpha, goal.beta / updates.rounds)
    return Sample(held or 1, size, None)


def _require_records(n: int | None, case: str) -> int:
    if not n:
        raise ParameterError(f"n = {n}, but {case} it must be given")
    return n


def _records_of_steps(learner: Any, updates: _Updates, epsilon: float, delta: float) -> int:
    """The records for which the noise that a learner with steps brings is enough."""
    has_noise = getattr(learner, "noise_multiplier", None) is not None
    if not has_noise or not hasattr(learner, "records_needed"):
        _require_records(None, "for a learner with steps and no noise of its own")
    return int(
        learner.records_needed(
            epsilon=epsilon, delta=delta, kappa=updates.kappa, rounds=updates.rounds
        )
    )


def _plan_updates(
    alpha: float,
    ratio: float | None,
    eta: float | str | None,
    rounds: int | None,
    kappa: float | None,
    private: bool,
) -> _Updates:
    """Step size, rounds and density; those not given keep the regret of a round at 3 alpha / 8."""
    step = _choose_step_size(alpha, ratio, eta, rounds)
    length = _choose_rounds(alpha, ratio, eta, rounds)
    _check_depth(step, length)
    return _Updates(length, step, _choose_density(alpha, ratio, kappa, private))


def _choose_step_size(
    alpha: float, ratio: float | None, eta: float | str | None, rounds: int | None
) -> float:
    if isinstance(eta, str) and eta != "paper":
        raise ParameterError(f"eta = {eta!r}, but it must be a number, None or 'paper'")
    if rounds is None and ratio is None:
        raise ParameterError("rounds = None, but without chi2 it must be given")
    step = alpha / 8 if eta == "paper" else 1.5 * alpha if eta is None else number("eta", eta)
    if not 0 < step <= 4:
        refuse("eta", eta, "it must lie in (0, 4]")
    return float(step)


def _choose_rounds(
    alpha: float, ratio: float | None, eta: float | str | None, rounds: int | None
) -> int:
    if rounds is not None:
        length = nonnegative_int("rounds", rounds)
        if not 0 < length < 1 << 40:
            raise ParameterError(f"rounds = {length}, but it must be at least 1 and below 2**40")
        return length
    assert ratio is not None
    if eta == "paper":
        return count_paper_rounds(alpha, ratio)
    if eta is not None:
        raise ParameterError(f"rounds = None, but with eta = {eta} it must be given")
    return math.ceil(32 * math.log(8 * ratio / alpha) / (9 * alpha**2))


def _choose_density(
    alpha: float, ratio: float | None, kappa: float | None, private: bool
) -> float | None:
    if kappa is not None:
        return probability_or_one("kappa", kappa)
    if not private:
        return None
    if ratio is None:
        raise ParameterError("kappa = None, but without chi2 it must be given")
    return alpha / (8 * ratio)


def _check_depth(step: float, rounds: int) -> None:
    # DenseWeights would refuse the first round beyond it, after all rounds before it were spent.
    if not step * rounds < _DEEPEST:
        rule = f"rounds * eta = {step * rounds:g} must stay below {_DEEPEST:,}"
        raise ParameterError(f"rounds = {rounds}, but {rule}")


def _check_size(n: int, kappa: float) -> None:
    # DenseWeights would refuse them, but only after the records have been gathered.
    if not (kappa * n >= 1 and kappa * n * n <= _LARGEST):
        rule = "kappa n must be at least 1 and kappa n**2 at most 2**49"
        raise ParameterError(f"kappa = {kappa:g} with n = {n:,}, but {rule}")


def _plan_tests(
    goal: _Goal, rounds: int, agents_epsilon: float | None, rate: float
) -> tuple[int, int]:
    """The largest number of hypotheses that are tested, and the agents for each."""
    if goal.schedule == "never":
        return 0, 0
    during = {"every": rounds, "geometric": rounds.bit_length(), "final": 0}[goal.schedule]
    random = 0 if goal.schedule == "every" else max(1, math.ceil(math.log2(1 / goal.beta)))
    tests = during + (1 if goal.output == "majority" else random)
    if agents_epsilon is None:
        return tests, 0
    epsilon = positive("agents_epsilon", agents_epsilon)
    needed = local.agents_needed(
        alpha=goal.alpha, beta=goal.beta / tests, epsilon=epsilon, response_rate=rate
    )
    return tests, needed


def _plan_constants(goal: _Goal, agents_epsilon: float | None, rate: float) -> int:
    """The agents who say how often the constant hypotheses err, half as precisely as a test."""
    if agents_epsilon is None:
        return 0
    width = min(2 * goal.alpha, 0.5)
    return local.agents_needed(
        alpha=width, beta=goal.beta, epsilon=agents_epsilon, response_rate=rate
    )


def _records_of_lemma(learner: Any, goal: _Goal, ratio: float) -> int | None:
    """The records among which some dense weights stand for the target, for all hypotheses at once.

    This is the paper's Lemma 3.2 for a finite class. The sum of the weights is bounded by
    Bernstein's inequality, each hypothesis by the one for sums of nonnegative variables, and all by
    a union bound.
    """
    hypotheses = getattr(learner, "hypotheses", None)
    if hypotheses is None:
        return None
    total = 150 * math.log(4 / goal.beta)
    single = 32 * (math.log(2 * len(hypotheses)) - math.log(goal.beta))
    return math.ceil(ratio / goal.alpha**2 * max(total, single))
