"""Plans of Subsample-Test-Reweigh: its parameters, public and fixed before any data is read."""

from __future__ import annotations

import math
from typing import Any, Literal, NamedTuple, cast

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
from .automatic import (
    OUTPUTS,
    SCHEDULES,
    Auto,
    Facts,
    Settings,
    Tests,
    added_error,
    choose_settings,
    count_tests,
    settle_as_passed,
    size_tests,
    use_all_agents,
    validate_rounds,
)
from .learner_epsilon import Sample, Search, composes, compute_sample_size, validate_steps
from .plans import Output, Plan, Schedule, WeighBy, count_paper_rounds, plan_paper

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
    alpha: float | Auto | None,
    epsilon: float | None,
    beta: float,
    delta: float | None,
    agents_epsilon: float | None,
    chi2: float | None,
    kappa: float | Auto | None,
    eta: float | Literal["paper", "auto"] | None,
    rounds: int | Auto | None,
    n: int | None,
    N: int | None,
    schedule: Schedule | Auto,
    output: Output | Auto,
    opt: float,
    draws: int | None,
    weigh_by: WeighBy,
    response_rate: float,
) -> Plan:
    """Computes all parameters of SubsampleTestReweigh, as `transfer.plan` describes them."""
    if is_private(epsilon) and draws is not None:
        refuse("draws", draws, "a private plan finds them itself")
    facts = _validate_facts(learner, epsilon, delta, beta, n, N, agents_epsilon, response_rate)
    passed = Settings(alpha, kappa, eta, rounds, schedule, output)
    chosen: tuple[str, ...] = ()
    if chi2 is None:
        settings, chosen = choose_settings(passed, facts)
    else:
        settings = settle_as_passed(passed)
    goal = _validate_goal(settings, facts.beta, opt)
    ratio = None if chi2 is None else 1 + finite_nonnegative("chi2", chi2)
    derived = (
        ratio is not None
        and settings.kappa is None
        and settings.rounds is None
        and settings.eta in (None, "paper")
    )
    updates = _plan_updates(goal.alpha, ratio, settings, facts.delta is not None)
    tests = _plan_tests(goal, updates.rounds, facts, use_all="alpha" in chosen)
    if facts.delta is None:
        sample = _plan_open(learner, goal, updates, facts.n, draws)
    else:
        sample = _plan_private(goal, updates, facts, derived)
    enough = _records_of_lemma(learner, goal, ratio) if derived and ratio is not None else None
    records = max(sample.n, enough or 0)
    if updates.kappa is not None and (facts.n or records > 1):
        _check_size(records, updates.kappa)
    return Plan(
        alpha=goal.alpha,
        beta=goal.beta,
        opt=goal.opt,
        epsilon=facts.epsilon,
        delta=facts.delta,
        agents_epsilon=facts.agents_epsilon,
        response_rate=facts.response_rate,
        chi2=chi2,
        schedule=goal.schedule,
        output=goal.output,
        n=records,
        N=tests.number * tests.agents + tests.constants,
        rounds=updates.rounds,
        kappa=updates.kappa,
        eta=updates.eta,
        draws=sample.draws,
        learner_epsilon=sample.learner_epsilon,
        tests=tests.number,
        agents_per_test=tests.agents,
        agents_for_constants=tests.constants,
        error=goal.error if enough and not goal.opt else None,
        failure=goal.failure,
        paper=plan_paper(
            learner,
            goal.alpha,
            goal.beta,
            facts.epsilon,
            facts.delta,
            facts.agents_epsilon,
            ratio,
        ),
        weigh_by=one_of("weigh_by", weigh_by, ("errors", "losses")),
        added_error=added_error(learner, sample.draws, sample.learner_epsilon),
        chosen=chosen,
    )


def _validate_facts(
    learner: Any,
    epsilon: float | None,
    delta: float | None,
    beta: float,
    n: int | None,
    N: int | None,
    agents_epsilon: float | None,
    response_rate: float,
) -> Facts:
    if is_private(epsilon):
        epsilon, delta = positive("epsilon", epsilon), probability("delta", delta)
    else:
        _refuse_delta(delta)
    if N is not None and agents_epsilon is None:
        rule = "what N agents tell depends on it: pass it, or neither for an SQ oracle"
        refuse("agents_epsilon", agents_epsilon, rule)
    return Facts(
        learner=learner,
        epsilon=float(cast(float, epsilon)),
        delta=delta,
        beta=probability("beta", beta),
        n=None if n is None else nonnegative_int("n", n),
        N=None if N is None else nonnegative_int("N", N),
        agents_epsilon=None
        if agents_epsilon is None
        else positive("agents_epsilon", agents_epsilon),
        response_rate=probability_or_one("response_rate", response_rate),
    )


def _validate_goal(settings: Settings, beta: float, opt: float) -> _Goal:
    width, opt = probability("alpha", settings.alpha), probability("opt", opt, zero=True)
    schedule = one_of("schedule", cast(Schedule, settings.schedule), SCHEDULES)
    output = one_of("output", cast(Output, settings.output), OUTPUTS)
    if schedule == "never" and output != "majority":
        rule = "only the 'majority' vote is released without a test"
        raise ParameterError(f"output = {output!r} with schedule = 'never', but {rule}")
    goal = _Goal(width, beta, opt, schedule, output)
    if goal.accepts and goal.threshold >= 0.5:
        rule = f"a test accepts an error of 3 alpha + opt = {goal.threshold:g}: it must be below .5"
        raise ParameterError(f"alpha = {width:g} and opt = {opt:g}, but {rule}")
    return goal


def _refuse_delta(delta: object) -> None:
    if delta is not None:
        rule = "epsilon = inf protects no record of the curator: leave it out"
        refuse("delta", delta, rule)


def _plan_private(goal: _Goal, updates: _Updates, facts: Facts, derived: bool) -> Sample:
    """The draws of a private round, and the number of records that they need."""
    learner, epsilon, delta, held = facts.learner, facts.epsilon, facts.delta, facts.n
    assert updates.kappa is not None
    assert delta is not None
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


def _plan_updates(alpha: float, ratio: float | None, settings: Settings, private: bool) -> _Updates:
    """Step size, rounds and density; those not given keep the regret of a round at 3 alpha / 8."""
    step = _choose_step_size(alpha, ratio, settings.eta, settings.rounds)
    length = _choose_rounds(alpha, ratio, settings.eta, settings.rounds)
    _check_depth(step, length)
    return _Updates(length, step, _choose_density(alpha, ratio, settings.kappa, private))


def _choose_step_size(
    alpha: float, ratio: float | None, eta: float | str | None, rounds: int | str | None
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
    alpha: float, ratio: float | None, eta: float | str | None, rounds: int | str | None
) -> int:
    if rounds is not None:
        return validate_rounds(rounds)
    assert ratio is not None
    if eta == "paper":
        return count_paper_rounds(alpha, ratio)
    if eta is not None:
        raise ParameterError(f"rounds = None, but with eta = {eta} it must be given")
    return math.ceil(32 * math.log(8 * ratio / alpha) / (9 * alpha**2))


def _choose_density(
    alpha: float, ratio: float | None, kappa: float | str | None, private: bool
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


def _plan_tests(goal: _Goal, rounds: int, facts: Facts, *, use_all: bool) -> Tests:
    """The tests and their agents: all that there are, or as many as alpha needs."""
    tests = size_tests(
        count_tests(rounds, goal.schedule, goal.output, goal.beta), goal.alpha, facts
    )
    if use_all and facts.N is not None and tests.agents:
        return use_all_agents(facts.N, tests)
    return tests


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
