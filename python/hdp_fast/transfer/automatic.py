"""Settings of a run that no one chose: public rules for them, made before any data is read."""

from __future__ import annotations

import math
from typing import Any

from .. import accounting, local
from .._support.notes import note
from .._support.validate import one_of, probability_or_one
from ..accounting.mechanisms import BoundedRange
from ..exceptions import ParameterError
from .learner import check_private, composes, compute_sample_size, validate_steps
from .plans import (
    AUTO,
    OUTPUTS,
    SCHEDULES,
    SETTINGS,
    Auto,
    Output,
    PaperPlan,
    Plan,
    RunGoal,
    Schedule,
    is_auto,
    validate_rounds,
)
from .printed import paper_rounds

_STEP_SIZE = 1.0
# Rounds beyond those that bring a part of the records up to half of the weight.
_SPARE_ROUNDS = 3
_LEAST_KAPPA, _LARGEST_KAPPA = 0.005, 0.5
# For learners of no finite class nothing is known of the error that noise adds.
_KAPPA_OF_STEPS, _KAPPA_OF_OTHERS = 0.2, 0.1
_WIDTH_WITHOUT_AGENTS = 0.1
_MOST_TESTED_ROUNDS = 10
# What may be added to an error, or not be seen of it, before a run is of no use.
_USELESS = 0.25


def settle(goal: RunGoal) -> tuple[RunGoal, tuple[str, ...]]:
    """The goal with all its settings, and the names of those that follow the rules of this module.

    Raises:
        ParameterError: The number of records is missing, or there are too few agents.
    """
    names = names_left(goal)
    if goal.chi2 is not None or not needs_rules(goal):
        return _settle_as_passed(goal, names), ()
    if goal.is_private and not goal.n:
        raise ParameterError(f"n = {goal.n}, but settings that follow from it need it")
    kappa, rounds = _choose_weights(goal)
    schedule, output = _choose_tests(goal, rounds)
    eta = _STEP_SIZE if is_auto(goal.eta) else goal.eta
    goal = goal._replace(kappa=kappa, eta=eta, rounds=rounds, schedule=schedule, output=output)
    if is_auto(goal.alpha):
        goal = goal._replace(alpha=_choose_width(goal))
    return goal, names


def needs_rules(goal: RunGoal) -> bool:
    """Whether a number that is needed was left to the rules."""
    numbers = (goal.alpha, goal.rounds, goal.kappa if goal.is_private else None)
    return any(map(is_auto, numbers))


def names_left(goal: RunGoal) -> tuple[str, ...]:
    """The names of the settings that were left to the rules."""
    return tuple(name for name in SETTINGS if is_auto(getattr(goal, name)))


def size_tests(goal: RunGoal) -> tuple[int, int, int]:
    """The largest number of tests, the agents for each, and the agents for the constants.

    The tests have half width alpha.
    """
    number, epsilon = _count_tests(goal), goal.agents_epsilon
    if epsilon is None or not number:
        return number, 0, 0
    rate = goal.response_rate
    # The constants are estimated half as precisely.
    groups = [(goal.alpha, goal.beta / number), (min(2 * goal.alpha, 0.5), goal.beta)]
    agents, few = (
        local.agents_needed(alpha=width, beta=failure, epsilon=epsilon, response_rate=rate)
        for width, failure in groups
    )
    return number, agents, few


def use_all_agents(N: int, number: int, constants: int) -> tuple[int, int, int]:
    """The same tests with larger groups, so that no agent is left over."""
    agents = (N - constants) // number
    return number, agents, N - agents * number


def added_error(learner: Any, draws: int, learner_epsilon: float | None) -> float | None:
    """About how much more than the best hypothesis a private one errs on its draws.

    A hypothesis that errs on so much larger a share of the draws is chosen with a probability that
    is smaller by a factor |H|: the scale of the error that privacy adds.
    """
    hypotheses = getattr(learner, "hypotheses", None)
    if hypotheses is None or learner_epsilon is None:
        return None
    return 2 * math.log(len(hypotheses)) / (draws * learner_epsilon)


def note_useless(plan: Plan) -> None:
    """Warns of a plan whose noise or tests hide every difference, before anything is spent."""
    if plan.added_error is not None and plan.added_error >= _USELESS:
        rule = f"privacy may add {min(plan.added_error, 1):.2g} to the error of each round"
        help_ = (
            "more records, a larger epsilon or kappa, fewer rounds or a smaller class would help"
        )
        note(f"n = {plan.n:,} with kappa = {plan.kappa:.2g}, but {rule}: {help_}")
    if plan.tests and plan.agents_epsilon is not None and plan.alpha >= _USELESS:
        rule = f"tests tell errors to within alpha = {plan.alpha:.2g} only"
        note(f"N = {plan.N:,}, but {rule}: more agents or a larger epsilon of theirs would help")


def _settle_as_passed(goal: RunGoal, names: tuple[str, ...]) -> RunGoal:
    """The goal where all numbers are given, or follow from chi2: "auto" then means the defaults."""
    output = "majority" if goal.schedule == "never" else "tested"
    defaults = {"schedule": "geometric", "output": output}
    left: dict[str, Any] = {name: defaults.get(name) for name in names}
    return goal._replace(**left)


def _choose_weights(goal: RunGoal) -> tuple[float | None, int]:
    """Density and rounds, by the rules where they were left to them.

    A round whose hypothesis is right on most of the records, but wrong on a part of them, raises
    the weight of that part by the factor exp(eta) relative to the others. So ln(1 / kappa) / eta
    rounds lift a part of share kappa to half of the weight, and a few more learn from it.
    """
    if not is_auto(goal.rounds):
        rounds = validate_rounds(goal.rounds)
        return _settle_density(goal, rounds), rounds
    rounds = _SPARE_ROUNDS
    while True:
        kappa = _settle_density(goal, rounds)
        share = _KAPPA_OF_OTHERS if kappa is None else kappa
        # A density does not decrease with the rounds.
        if rounds >= _SPARE_ROUNDS + math.log(1 / share) / _STEP_SIZE:
            return kappa, rounds
        rounds += 1


def _settle_density(goal: RunGoal, rounds: int) -> float | None:
    if is_auto(goal.kappa):
        return _choose_density(goal, rounds)
    return None if goal.kappa is None else probability_or_one("kappa", goal.kappa)


def _choose_density(goal: RunGoal, rounds: int) -> float:
    """The density at which the error that a round adds is about the share that is left out.

    Reweighing reaches parts of the records of share kappa. Privacy adds about
    ln|H| sqrt(rounds) / (mu n kappa) to the error on the draws, by the central limit theorem for
    the bounded range of the exponential mechanism; kappa n records tell errors to within
    sqrt(ln|H| / (2 kappa n)).
    """
    hypotheses = getattr(goal.learner, "hypotheses", None)
    if hypotheses is None or not goal.n:
        return _KAPPA_OF_STEPS if composes(goal.learner) else _KAPPA_OF_OTHERS
    log_size = math.log(max(2, len(hypotheses)))
    kappa = (log_size / (2 * goal.n)) ** (1 / 3)
    if goal.delta is not None:
        mu = accounting.gaussian_mu(goal.epsilon, goal.delta)
        factor = 1 if isinstance(check_private(goal.learner), BoundedRange) else 2
        private = math.sqrt(factor * log_size * math.sqrt(rounds) / (mu * goal.n))
        kappa = max(kappa, private)
    return float(min(max(kappa, _LEAST_KAPPA), _LARGEST_KAPPA))


def _choose_tests(goal: RunGoal, rounds: int) -> tuple[Schedule, Output]:
    schedule: Schedule | Auto = one_of("schedule", goal.schedule, (*SCHEDULES, AUTO))
    output: Output | Auto = one_of("output", goal.output, (*OUTPUTS, AUTO))
    if schedule == "auto":
        schedule = "every" if rounds <= _MOST_TESTED_ROUNDS else "final"
    if output == "auto":
        output = "majority" if schedule == "never" else "smallest"
    return schedule, output


def _choose_width(goal: RunGoal) -> float:
    """The smallest half width of the tests for which the agents are enough."""
    number = _count_tests(goal)
    if goal.N is None or goal.agents_epsilon is None or not number:
        return _WIDTH_WITHOUT_AGENTS
    low, high = 1e-6, 1 - 1e-6
    least = _count_agents(goal._replace(alpha=high))
    if least > goal.N:
        rule = f"{number} tests need {least:,} or more to say anything"
        raise ParameterError(f"N = {goal.N:,}, but {rule}: pass more agents")
    for _ in range(50):
        middle = math.sqrt(low * high)
        few = _count_agents(goal._replace(alpha=middle)) <= goal.N
        low, high = (low, middle) if few else (middle, high)
    return high


def _count_tests(goal: RunGoal) -> int:
    """The largest number of hypotheses that are tested."""
    if goal.schedule == "never":
        return 0
    rounds = goal.rounds
    during = {"every": rounds, "geometric": rounds.bit_length(), "final": 0}[goal.schedule]
    random = 0 if goal.schedule == "every" else max(1, math.ceil(math.log2(1 / goal.beta)))
    return during + (1 if goal.output == "majority" else random)


def _count_agents(goal: RunGoal) -> int:
    number, agents, constants = size_tests(goal)
    return number * agents + constants


def plan_paper(goal: RunGoal) -> PaperPlan | None:
    """Computes the paper's parameters for the same goal; None unless private and with agents.

    Raises:
        ParameterError: The learner has no sample_size.
    """
    if goal.ratio is None or goal.delta is None or goal.agents_epsilon is None:
        return None
    alpha, beta = goal.alpha, goal.beta
    rounds, kappa = count_paper_rounds(goal), alpha / (8 * goal.ratio)
    logarithm = math.log(2 / goal.delta)
    tested = 4 * logarithm * math.log(8 * rounds / beta) / (goal.agents_epsilon * alpha) ** 2
    agents = math.ceil(tested)
    if composes(goal.learner):
        draws = math.prod(validate_steps(goal.learner))
        printed = 52 * draws * rounds / (8 * kappa**2 * goal.epsilon)
        records = math.sqrt(printed * math.log(printed))
    else:
        draws = _sample_size(goal.learner, alpha, beta / rounds)
        records = draws * math.sqrt(288 * rounds * logarithm) / (goal.epsilon * kappa)
    return PaperPlan(math.ceil(records), agents * rounds, rounds, kappa, alpha / 8, draws, agents)


def count_paper_rounds(goal: RunGoal) -> int:
    """The number of rounds that the paper prints."""
    assert goal.chi2 is not None
    return paper_rounds(alpha=goal.alpha, chi2=goal.chi2)


def _sample_size(learner: Any, alpha: float, beta: float) -> int:
    if hasattr(learner, "paper_sample_size"):
        return int(learner.paper_sample_size(alpha, beta, 1.0).printed)
    return compute_sample_size(learner, alpha, beta)
