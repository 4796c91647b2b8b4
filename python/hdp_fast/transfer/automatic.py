"""Settings of a run that nobody chose: public rules for them, made before any data is read."""

from __future__ import annotations

import math
from typing import Any, Literal, NamedTuple

from .. import accounting, local
from .._support.notes import note
from .._support.validate import nonnegative_int, one_of, probability_or_one
from ..accounting.mechanisms import BoundedRange
from ..exceptions import ParameterError
from .learner_epsilon import check_private, composes
from .plans import Output, Plan, Schedule

Auto = Literal["auto"]
AUTO: Auto = "auto"
SCHEDULES: tuple[Schedule, ...] = ("every", "geometric", "final", "never")
OUTPUTS: tuple[Output, ...] = ("tested", "smallest", "majority")

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


class Settings(NamedTuple):
    """The settings that can be chosen automatically, as they were passed or as they are used."""

    alpha: float | Auto | None
    kappa: float | Auto | None
    eta: float | Literal["paper", "auto"] | None
    rounds: int | Auto | None
    schedule: Schedule | Auto
    output: Output | Auto


class Facts(NamedTuple):
    """The public facts that settings may follow: None where they are not known."""

    learner: Any
    epsilon: float
    delta: float | None
    beta: float
    n: int | None
    N: int | None
    agents_epsilon: float | None
    response_rate: float


class Tests(NamedTuple):
    """How many hypotheses are tested, by how many agents each, and the agents for the constants."""

    number: int
    agents: int
    constants: int


def choose_settings(settings: Settings, facts: Facts) -> tuple[Settings, tuple[str, ...]]:
    """All settings, and the names of those that follow the rules of this module.

    Raises:
        ParameterError: The number of records is missing, or there are too few agents.
    """
    if not is_automatic(settings, private=facts.delta is not None):
        return settle_as_passed(settings), ()
    names = names_left(settings)
    if facts.delta is not None and not facts.n:
        raise ParameterError(f"n = {facts.n}, but settings that follow from it need it")
    kappa, rounds = _choose_weights(settings, facts)
    schedule, output = _choose_tests(settings, rounds)
    eta = _STEP_SIZE if is_auto(settings.eta) else settings.eta
    alpha = settings.alpha
    if is_auto(alpha):
        number = count_tests(rounds, schedule, output, facts.beta)
        alpha = _choose_width(number, facts)
    return Settings(alpha, kappa, eta, rounds, schedule, output), names


def is_automatic(settings: Settings, *, private: bool) -> bool:
    """Whether a number that is needed was left to the rules."""
    numbers = (settings.alpha, settings.rounds, settings.kappa if private else None)
    return any(map(is_auto, numbers))


def names_left(settings: Settings) -> tuple[str, ...]:
    """The names of the settings that were left to the rules."""
    return tuple(name for name, value in settings._asdict().items() if is_auto(value))


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


def count_tests(rounds: int, schedule: Schedule, output: Output, beta: float) -> int:
    """The largest number of hypotheses that are tested."""
    if schedule == "never":
        return 0
    during = {"every": rounds, "geometric": rounds.bit_length(), "final": 0}[schedule]
    random = 0 if schedule == "every" else max(1, math.ceil(math.log2(1 / beta)))
    return during + (1 if output == "majority" else random)


def use_all_agents(N: int, tests: Tests) -> Tests:
    """The same tests with larger groups, so that no agent is left over."""
    agents = (N - tests.constants) // tests.number
    return Tests(tests.number, agents, N - agents * tests.number)


def size_tests(number: int, alpha: float, facts: Facts) -> Tests:
    """The agents for each of so many tests of half width alpha, and for the constants."""
    if facts.agents_epsilon is None or not number:
        return Tests(number, 0, 0)

    def count(width: float, failure: float) -> int:
        assert facts.agents_epsilon is not None
        return local.agents_needed(
            alpha=width,
            beta=failure,
            epsilon=facts.agents_epsilon,
            response_rate=facts.response_rate,
        )

    # The constants are estimated half as precisely.
    few = count(min(2 * alpha, 0.5), facts.beta)
    return Tests(number, count(alpha, facts.beta / number), few)


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


def settle_as_passed(settings: Settings) -> Settings:
    """What "auto" means where all numbers are given, or follow from chi2."""
    defaults = Settings(None, None, None, None, "geometric", "tested")
    if is_auto(settings.output) and settings.schedule == "never":
        defaults = defaults._replace(output="majority")
    left = {name: getattr(defaults, name) for name in names_left(settings)}
    return settings._replace(**left)


def _choose_weights(settings: Settings, facts: Facts) -> tuple[float | None, int]:
    """Density and rounds, by the rules where they were left to them.

    A round whose hypothesis is right on most of the records, but wrong on a part of them, raises
    the weight of that part by the factor exp(eta) relative to the others. So ln(1 / kappa) / eta
    rounds lift a part of share kappa to half of the weight, and a few more learn from it.
    """
    if not is_auto(settings.rounds):
        rounds = validate_rounds(settings.rounds)
        return _settle_density(settings, facts, rounds), rounds
    rounds = _SPARE_ROUNDS
    while True:
        kappa = _settle_density(settings, facts, rounds)
        share = _KAPPA_OF_OTHERS if kappa is None else kappa
        # A density does not decrease with the rounds.
        if rounds >= _SPARE_ROUNDS + math.log(1 / share) / _STEP_SIZE:
            return kappa, rounds
        rounds += 1


def _settle_density(settings: Settings, facts: Facts, rounds: int) -> float | None:
    if is_auto(settings.kappa):
        return _choose_density(facts, rounds)
    return None if settings.kappa is None else probability_or_one("kappa", settings.kappa)


def _choose_density(facts: Facts, rounds: int) -> float:
    """The density at which the error that a round adds is about the share that is left out.

    Reweighing reaches parts of the records of share kappa. Privacy adds about
    ln|H| sqrt(rounds) / (mu n kappa) to the error on the draws, by the central limit theorem for
    the bounded range of the exponential mechanism; kappa n records tell errors to within
    sqrt(ln|H| / (2 kappa n)).
    """
    hypotheses = getattr(facts.learner, "hypotheses", None)
    if hypotheses is None or not facts.n:
        return _KAPPA_OF_STEPS if composes(facts.learner) else _KAPPA_OF_OTHERS
    log_size = math.log(max(2, len(hypotheses)))
    kappa = (log_size / (2 * facts.n)) ** (1 / 3)
    if facts.delta is not None:
        mu = accounting.gaussian_mu(facts.epsilon, facts.delta)
        factor = 1 if isinstance(check_private(facts.learner), BoundedRange) else 2
        private = math.sqrt(factor * log_size * math.sqrt(rounds) / (mu * facts.n))
        kappa = max(kappa, private)
    return float(min(max(kappa, _LEAST_KAPPA), _LARGEST_KAPPA))


def _choose_tests(settings: Settings, rounds: int) -> tuple[Schedule, Output]:
    schedule = one_of("schedule", settings.schedule, (*SCHEDULES, AUTO))
    output = one_of("output", settings.output, (*OUTPUTS, AUTO))
    if schedule == "auto":
        schedule = "every" if rounds <= _MOST_TESTED_ROUNDS else "final"
    if output == "auto":
        output = "majority" if schedule == "never" else "smallest"
    return schedule, output


def _choose_width(number: int, facts: Facts) -> float:
    """The smallest half width of the tests for which the agents are enough."""
    if facts.N is None or facts.agents_epsilon is None or not number:
        return _WIDTH_WITHOUT_AGENTS
    low, high = 1e-6, 1 - 1e-6
    if _count_agents(number, high, facts) > facts.N:
        rule = f"{number} tests need {_count_agents(number, high, facts):,} or more to say anything"
        raise ParameterError(f"N = {facts.N:,}, but {rule}: pass more agents")
    for _ in range(50):
        middle = math.sqrt(low * high)
        few = _count_agents(number, middle, facts) <= facts.N
        low, high = (low, middle) if few else (middle, high)
    return high


def _count_agents(number: int, alpha: float, facts: Facts) -> int:
    tests = size_tests(number, alpha, facts)
    return number * tests.agents + tests.constants
