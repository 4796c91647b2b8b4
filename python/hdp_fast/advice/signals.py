"""What every method loses, from public numbers and a world.

The losses of linear models follow a law that was measured, not derived: of 27 tables of classes and
21 of numbers (benches/papers/linear_rivals.json, epsilon from .1 to 4), and of the same tables with
fewer records and no privacy.
"""

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
from .sizes import Sizes, World, join_losses, lose_intercept

# Of what can be learned, noise takes the first * signal**-second * room**-third, by least squares
# on the logarithms of losses at four epsilons; without the third where the room is not known. Of
# classes, and of numbers.
_NOISE, _NOISE_OF_NUMBERS = (1.35, 0.6, 0.7), (1.75, 0.7, 0.8)
_NOISE_ANYWHERE, _NOISE_OF_NUMBERS_ANYWHERE = (1.8, 0.5, 0.0), (3.6, 0.65, 0.0)
# The same of chance alone, where the signal is the number of records for each weight.
_CHANCE = (0.06, 0.65, 1.75)
# The room of a table of which nothing is known, for what chance takes.
_USUAL_ROOM = 0.4
# The most that noise takes: a model that is all noise may be worse than a constant.
_MOST = 1.25
# How much better one release of sums of classes does than a descent, with two classes and more.
_SUMS = (1.4, 2.0)
# What is not linear counts as a linear model of so many columns.
OTHER_COLUMNS = 30
MEMBERS = tuple(10 * 2**step for step in range(14))
QUERIES = (100, 300, 1_000)
# Densities and numbers of rounds of reweighing.
RUNS = ((0.03, 4), (0.1, 4), (0.3, 4), (0.03, 10), (0.1, 10), (0.3, 10))
# Share of the agents who test; the others tell what the constants err.
TESTERS = 0.9
# Directions of a release of residual moments.
DIRECTIONS = 30
_BETA = 0.05


def clear_signal(sizes: Sizes) -> float:
    """How far records stand out of the noise on a column of weights: plans are made by it."""
    return sizes.n * sizes.mu / math.sqrt((sizes.d + 1) * (sizes.classes - 1))


def descent_plan(sizes: Sizes) -> DescentPlan:
    """The steps that the centered learner takes at these sizes."""
    return plan_descent(clear_signal(sizes), sizes.classes)


def sums_signal(sizes: Sizes) -> float:
    """One release of sums of each class's records, as a descent's signal that does as well."""
    return _SUMS[sizes.classes > 2] * clear_signal(sizes)


def agents_signal(sizes: Sizes) -> float:
    """Answers of one bit about a random direction each, as a descent's signal."""
    return sizes.advantage * math.sqrt(sizes.agents / sizes.d)


def _follow(law: tuple[float, float, float], signal: float, room: float) -> float:
    scale, power, difficulty = law
    return scale * math.pow(signal, -power) * math.pow(room, -difficulty) if signal > 0 else 1.0


def lose_to_noise(sizes: Sizes, world: World, signal: float) -> float:
    """Share of what can be learned that noise takes of a linear model."""
    if world.room is None:
        law = _NOISE_OF_NUMBERS_ANYWHERE if sizes.predicts_number else _NOISE_ANYWHERE
    else:
        law = _NOISE_OF_NUMBERS if sizes.predicts_number else _NOISE
    return min(_MOST, world.luck * _follow(law, signal, world.room or 1.0))


def lose_to_chance(sizes: Sizes, world: World, records: float) -> float:
    """Share that a model loses which has no more records than these, without any noise."""
    if not records:
        return 1.0
    columns = sizes.d if sizes.learner in ("linear", "regression") else OTHER_COLUMNS
    each, room = records / columns / math.sqrt(sizes.classes - 1), world.room or _USUAL_ROOM
    if sizes.predicts_number:
        # Least squares: d / n of the variance that is not explained.
        return min(1.0, world.luck * (1 - room) / room / each) if each else 1.0
    return min(1.0, world.luck * _follow(_CHANCE, each, room))


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
    noise = lose_to_noise(sizes, world, signal * world.overlap)
    chance = lose_to_chance(sizes, world, sizes.n * world.overlap)
    square = world.log_odds**2 if intercept is None else intercept
    return join_losses(
        min(_MOST, noise + chance), world.drift, lose_intercept(square, world), world.misfit
    )


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
    return lose_linear(sizes, world, clear_signal(sizes), intercept=_mended(sizes, world))


def lose_descent_of_agents(sizes: Sizes, world: World) -> float:
    """Share lost by a descent on answers of one bit about a random direction each."""
    return join_losses(lose_to_noise(sizes, world, agents_signal(sizes)), world.misfit)


def lose_votes_of_agents(sizes: Sizes, world: World) -> float:
    """Share lost by the hypothesis of least estimated error, each on its part of the agents."""
    size = sizes.size or 1
    room = world.base_rate
    deviation = math.sqrt(size / (4 * sizes.agents)) / sizes.advantage
    if world.sharp:  # one hypothesis is right, all others are as bad as the constant
        return world.luck * min(1.0, (size - 1) * math.exp(-((room / deviation) ** 2) / 4))
    return world.luck * min(1.0, deviation * math.sqrt(2 * math.log(max(size, 2))) / room)


def finite_excess(sizes: Sizes, records: float, epsilon: float) -> float:
    """Error above the least, of the exponential mechanism and of the sample, on any labels."""
    logarithm = _log_size(sizes)
    noise = 0.0 if epsilon == math.inf else 2 * logarithm / (epsilon * records)
    return noise + math.sqrt(logarithm / (2 * records))


def _lose_choice(sizes: Sizes, world: World, records: float, epsilon: float) -> float:
    """Share lost by the exponential mechanism on this many records of the target."""
    room = world.base_rate
    if not world.sharp:
        return world.luck * finite_excess(sizes, records, epsilon) / room
    # One hypothesis is right, and all others are as bad as the constant.
    logarithm = _log_size(sizes)
    wrong = 0.0 if epsilon == math.inf else math.exp(logarithm - epsilon * records * room / 2)
    return world.luck * (wrong + logarithm / (records * room))


def _log_size(sizes: Sizes) -> float:
    return math.log(max(sizes.size or 1, 2))


def lose_finite(sizes: Sizes, world: World) -> float:
    """Share lost by the exponential mechanism on the records."""
    if world.split:
        return max(1.0, world.luck)
    return min(_MOST, _lose_choice(sizes, world, sizes.n * world.overlap, sizes.epsilon))


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
        return max(1.0, world.luck)
    lost = _lose_choice(sizes, world, kappa * sizes.n, round_epsilon(sizes, rounds))
    return min(_MOST, lost + world.luck * half_width(sizes, rounds) / world.base_rate)


def lose_votes(sizes: Sizes, world: World, members: int, queries: int) -> float:
    """Share lost by what is learned of votes: what members do not learn, and answers are few.

    What a member keeps of what can be learned is its lead over a coin, and so the lead of the
    votes. Half of what members lose they lose alike, and it does not cancel in the plurality.
    Answers that coins changed cancel: where a part c of them are coins, m answers teach as much as
    (1 - c)**2 m.
    """
    each = lose_to_chance(sizes, world, sizes.n * world.overlap / members)
    agreement = max(0.52, round(25 * (2 - each)) / 50)
    flip = _flip(queries, sizes.epsilon, sizes.delta, sizes.classes, members, agreement)
    coins = min(1.0, flip * sizes.classes / (sizes.classes - 1))
    answers = lose_to_chance(sizes, world, queries * (1 - coins) ** 2)
    return join_losses(
        min(1.0, each / 2 + answers),
        world.drift,
        lose_intercept(world.log_odds**2, world),
    )


def design_votes(sizes: Sizes, queries: int) -> VoteTable | GaussianVote:
    """The table that would answer votes on the pool: of two labels, or Gaussian for more."""
    return _design(queries, sizes.epsilon, sizes.delta, sizes.classes)


def lack_table(sizes: Sizes) -> str | None:
    """Why no table of votes can answer on the pool."""
    try:
        design_votes(sizes, min(sizes.pool, min(QUERIES)))
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


def flip_unanimous(sizes: Sizes, members: int, queries: int) -> float:
    """Probability that a label on which all members agree is not the answer."""
    return _flip(queries, sizes.epsilon, sizes.delta, sizes.classes, members, 1.0)


def lose_source(sizes: Sizes, world: World) -> float:
    """Share lost by the model of a public source, which nothing private has changed."""
    return _lose_public(sizes, world, world.log_odds**2)


def _lose_public(sizes: Sizes, world: World, square: float) -> float:
    return join_losses(
        lose_to_chance(sizes, world, sizes.pool * world.overlap),
        world.drift,
        lose_intercept(square, world),
        world.misfit,
    )


def lose_adapted(sizes: Sizes, world: World) -> float:
    """Share lost by a public model that one release of residual moments mends.

    What is mended is what the public model loses. Of a gap that is estimated, and shrunk, there
    remains what a model of the residuals alone would lose, in parallel.
    """
    damage = lose_source(sizes, world)
    few = sizes.change(d=min(sizes.d, DIRECTIONS))
    alone = lose_to_noise(few, world, clear_signal(few)) + lose_to_chance(few, world, sizes.n)
    return damage * alone / (damage + alone) if damage else 0.0


def lose_calibrated_source(sizes: Sizes, world: World) -> float:
    """Share lost by a public model whose slope and intercept agents mend."""
    return _lose_public(sizes, world, _mended(sizes, world))


def lose_target_alone(sizes: Sizes, world: World) -> float:
    """Share lost by a descent on private records that are of the target themselves."""
    alike = dataclasses.replace(world, overlap=1.0, drift=0.0)
    return lose_linear(sizes, alike, clear_signal(sizes), intercept=0.0)
