"""Signal against noise, and errors, of every method, from public numbers and a world."""

from __future__ import annotations

import dataclasses
import math
import warnings
from functools import lru_cache

from ..exceptions import ParameterError, UtilityWarning
from ..learners.noisy_descent import DescentPlan, plan_descent
from ..stability import GaussianVote, VoteTable
from ..stability.plans import flip_probability
from ..transfer import plan_calibration
from ..transfer.calibration_plan import LEAST_AGENTS
from .sizes import Sizes, World, join_losses, lose_direction, lose_intercept

# What a mean of the last half of noisy steps keeps of the signal of all of them.
_AVERAGED = 0.7
# What a descent on agents' answers keeps of the signal of their mean.
_OF_AGENTS = 0.5
# The norm of a record's residuals before any step, for two classes and for more.
_RESIDUALS = (0.5, 1.0)
# A member has a signal of 1 from as many records.
MEMBER_RECORDS = 30
MEMBERS = tuple(round(10 * 2 ** (step / 2)) for step in range(27))
MOST_QUERIES = 1_000
# Densities and numbers of rounds of reweighing.
RUNS = ((0.03, 4), (0.1, 4), (0.3, 4), (0.03, 10), (0.1, 10), (0.3, 10))
# Share of the agents who test; the others tell what the constants err.
TESTERS = 0.9
# Directions of a release of residual moments.
DIRECTIONS = 30
_BETA = 0.05


def combine(*signals: float) -> float:
    """The signal against all noises together, which are independent."""
    if min(signals) <= 0:
        return 0.0
    noise = math.hypot(*(1 / signal for signal in signals))
    return 1 / noise if noise else math.inf


def sums_signal(sizes: Sizes, world: World) -> float:
    """Sums of a class's records over the Gaussian noise of one release."""
    return world.gap * sizes.n * world.overlap * sizes.mu / (sizes.classes * math.sqrt(sizes.d))


def clear_signal(sizes: Sizes) -> float:
    """How far records stand out of the noise on a column of weights: plans are made by it."""
    return sizes.n * sizes.mu / math.sqrt((sizes.d + 1) * (sizes.classes - 1))


def descent_plan(sizes: Sizes) -> DescentPlan:
    """The steps that the centered learner takes at these sizes."""
    return plan_descent(clear_signal(sizes), sizes.classes)


def descent_signal(sizes: Sizes, world: World) -> float:
    """Gradients of a descent on centered rows over the noise of all its steps.

    Before the first step a record's gradient has the norm of its residuals r, and counts as clip /
    r of it where that is longer; noise is in proportion to the clip norm, twice which a record may
    change. With more than two classes that is half of what sums of classes have in `sums_signal`,
    which leaves out that a record may change two of them: sqrt(2) of it is left out here, too.
    """
    residual = _RESIDUALS[sizes.classes > 2]
    kept = _AVERAGED * min(1.0, residual / descent_plan(sizes).clip_norm)
    return kept * sums_signal(sizes, world) / (1 if sizes.classes == 2 else math.sqrt(2))


def sampling_signal(sizes: Sizes, records: float, world: World) -> float:
    """What chance leaves of a linear model of d columns without any noise."""
    return math.sqrt(world.separation * records * 2 / sizes.classes / sizes.d)


def lose_linear(
    sizes: Sizes, world: World, signal: float, *, intercept: float | None = None
) -> float:
    """Share lost by a linear model of the records on the target.

    Args:
        sizes: Public numbers.
        world: How the data are.
        signal: That of the records over the noise of what is released of them.
        intercept: Mean square by which the intercept errs; None takes that of the shift.
    """
    both = combine(signal, sampling_signal(sizes, sizes.n * world.overlap, world))
    square = world.log_odds**2 if intercept is None else intercept
    return join_losses(lose_direction(both, world), lose_intercept(square, world), world.misfit)


def intercept_error(sizes: Sizes, world: World) -> float:
    """Standard error of the intercept that agents measure."""
    return _plan_intercept(sizes.agents, sizes.agents_epsilon, world.base_rate)


@lru_cache(maxsize=1024)
def _plan_intercept(agents: int, epsilon: float, base_rate: float) -> float:
    with warnings.catch_warnings():
        # An intercept that no one will know is a forecast here.
        warnings.simplefilter("ignore", UtilityWarning)
        return plan_calibration(agents, epsilon=epsilon, base_rate=base_rate).forecast


def _mended(sizes: Sizes, world: World) -> float:
    """Mean square by which a calibrated intercept errs; one that is worse is not taken."""
    return min(world.log_odds**2, intercept_error(sizes, world) ** 2)


def lack_calibrating_agents(sizes: Sizes) -> str | None:
    """Why too few agents are there for a calibration."""
    few = f"a calibration needs {LEAST_AGENTS} agents"
    return few if sizes.agents < LEAST_AGENTS else None


def lose_calibrated(sizes: Sizes, world: World) -> float:
    """Share lost by a descent on the records whose slope and intercept agents mend."""
    signal = descent_signal(sizes, world)
    return lose_linear(sizes, world, signal, intercept=_mended(sizes, world))


def lose_descent_of_agents(sizes: Sizes, world: World) -> float:
    """Share lost by a descent on answers of one bit about a random direction each."""
    coordinate = math.sqrt(2 / (math.pi * sizes.d))
    signal = _OF_AGENTS * world.gap * sizes.advantage * coordinate * math.sqrt(sizes.agents)
    return join_losses(lose_direction(signal, world), world.misfit)


def lose_votes_of_agents(sizes: Sizes, world: World) -> float:
    """Share lost by the hypothesis of least estimated error, each on its part of the agents."""
    size = sizes.size or 1
    room = world.base_rate
    deviation = math.sqrt(size / (4 * sizes.agents)) / sizes.advantage
    if world.sharp:  # one hypothesis is right, all others are as bad as the constant
        return min(1.0, (size - 1) * math.exp(-((room / deviation) ** 2) / 4))
    return min(1.0, deviation * math.sqrt(2 * math.log(max(size, 2))) / room)


def finite_excess(sizes: Sizes, records: float, epsilon: float) -> float:
    """Error above the least, of the exponential mechanism and of the sample, on any labels."""
    logarithm = _log_size(sizes)
    noise = 0.0 if epsilon == math.inf else 2 * logarithm / (epsilon * records)
    return noise + math.sqrt(logarithm / (2 * records))


def _lose_choice(sizes: Sizes, world: World, records: float, epsilon: float) -> float:
    """Share lost by the exponential mechanism on this many records of the target."""
    room = world.base_rate
    if not world.sharp:
        return finite_excess(sizes, records, epsilon) / room
    # One hypothesis is right, and all others are as bad as the constant.
    logarithm = _log_size(sizes)
    wrong = 0.0 if epsilon == math.inf else math.exp(logarithm - epsilon * records * room / 2)
    return wrong + logarithm / (records * room)


def _log_size(sizes: Sizes) -> float:
    return math.log(max(sizes.size or 1, 2))


def lose_finite(sizes: Sizes, world: World) -> float:
    """Share lost by the exponential mechanism on the records."""
    if world.split:
        return 1.0
    return _lose_choice(sizes, world, sizes.n * world.overlap, sizes.epsilon)


def round_epsilon(sizes: Sizes, rounds: int) -> float:
    """Privacy of a round, by basic or advanced composition, whichever is more."""
    if sizes.epsilon == math.inf:
        return math.inf
    advanced = sizes.epsilon / math.sqrt(2 * rounds * math.log(1 / sizes.delta))
    return max(sizes.epsilon / rounds, advanced)


def half_width(sizes: Sizes, rounds: int) -> float:
    """Half width of the interval of each round's test, all of which hold but for 5 %."""
    agents = TESTERS * sizes.agents / rounds
    return math.sqrt(math.log(2 * rounds / _BETA) / (2 * agents)) / sizes.advantage


def lose_reweighed(sizes: Sizes, world: World, kappa: float, rounds: int) -> float:
    """Share lost by Subsample-Test-Reweigh of density kappa."""
    if world.split and world.overlap < kappa:
        return 1.0
    lost = _lose_choice(sizes, world, kappa * sizes.n, round_epsilon(sizes, rounds))
    return lost + half_width(sizes, rounds) / world.base_rate


def member_signal(sizes: Sizes, world: World, members: int) -> float:
    """What of its records a member learns: as any linear model does, or half from 30 of them."""
    records = sizes.n * world.overlap / members
    if sizes.learner == "linear":
        return sampling_signal(sizes, records, world)
    return math.sqrt(2 * records / (sizes.classes * MEMBER_RECORDS))


def lose_votes(sizes: Sizes, world: World, members: int) -> float:
    """Share lost by votes: what the plurality does not learn, and answers that coins change.

    Errors of members cancel as in a median, which is worth 2 / pi of a mean. What a member keeps of
    the signal is its lead over a coin, and so the lead of the votes.
    """
    signal = member_signal(sizes, world, members)
    lead = 1 - lose_direction(signal, world)
    agreement = max(0.52, round(25 * (1 + lead)) / 50)
    flip = _flip(
        count_queries(sizes), sizes.epsilon, sizes.delta, sizes.classes, members, agreement
    )
    return join_losses(
        lose_direction(signal * math.sqrt(2 * members / math.pi), world),
        min(1.0, flip * sizes.classes / (sizes.classes - 1)),
        lose_intercept(world.log_odds**2, world),
    )


def count_queries(sizes: Sizes) -> int:
    """Number of public points on which members vote."""
    return min(sizes.pool, MOST_QUERIES)


def design_votes(sizes: Sizes) -> VoteTable | GaussianVote:
    """The table that would answer votes on the pool: of two labels, or Gaussian for more."""
    return _design(count_queries(sizes), sizes.epsilon, sizes.delta, sizes.classes)


def lack_table(sizes: Sizes) -> str | None:
    """Why no table of votes can answer on the pool."""
    try:
        design_votes(sizes)
    except ParameterError:
        return "no table of votes keeps so small an epsilon"
    return None


def unstable_votes(queries: int) -> int:
    """Number of bottoms that end the answers: as much as labels.suggest takes."""
    return queries // 20 + 1


@lru_cache(maxsize=256)
def _design(queries: int, epsilon: float, delta: float, labels: int) -> VoteTable | GaussianVote:
    goal = {"epsilon": epsilon, "delta": delta, "beta": _BETA}
    if labels == 2:
        return VoteTable.design(queries, **goal)
    return GaussianVote.design(queries, labels=labels, **goal)


@lru_cache(maxsize=1 << 14)
def _flip(
    queries: int, epsilon: float, delta: float, labels: int, members: int, agreement: float
) -> float:
    table = _design(queries, epsilon, delta, labels)
    return flip_probability(table, members, round(agreement * members))


def flip_unanimous(sizes: Sizes, members: int) -> float:
    """Probability that a label on which all members agree is not the answer."""
    return _flip(count_queries(sizes), sizes.epsilon, sizes.delta, sizes.classes, members, 1.0)


def lose_source(sizes: Sizes, world: World) -> float:
    """Share lost by the model of a public source, which nothing private has changed."""
    records = sizes.pool * world.overlap
    signal = sampling_signal(sizes, records, world)
    return join_losses(
        lose_direction(signal, world), lose_intercept(world.log_odds**2, world), world.misfit
    )


def lose_adapted(sizes: Sizes, world: World) -> float:
    """Share lost by a public model that one release of residual moments mends.

    What is mended is what the public model loses; the less it loses, the fainter its residuals.
    """
    damage = lose_source(sizes, world)
    directions = min(sizes.d, DIRECTIONS)
    few = sizes.change(d=directions, classes=2)
    alike = dataclasses.replace(world, overlap=1.0)
    signal = combine(sums_signal(few, alike), sampling_signal(few, sizes.n, world))
    # Loss goes with the square of the gap. Of a gap that is estimated with a signal, and shrunk,
    # the share 1 / (1 + signal**2) of its square remains.
    return damage / (1 + damage * signal * signal)


def lose_calibrated_source(sizes: Sizes, world: World) -> float:
    """Share lost by a public model whose slope and intercept agents mend."""
    square = _mended(sizes, world)
    signal = sampling_signal(sizes, sizes.pool * world.overlap, world)
    return join_losses(lose_direction(signal, world), lose_intercept(square, world), world.misfit)


def lose_target_alone(sizes: Sizes, world: World) -> float:
    """Share lost by a descent on private records that are of the target themselves."""
    alike = dataclasses.replace(world, overlap=1.0)
    return lose_linear(sizes, alike, descent_signal(sizes, alike), intercept=0.0)
