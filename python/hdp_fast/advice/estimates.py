"""Means and tables of shares: from records, from people who answer, and from both.

No law is fitted here. The error of an estimate is the noise, whose variance is known exactly, what
chance takes of a sample, and the shift between the populations. All are stated over the largest
error that a constant may have: half the width of a number's bounds, or that of equal shares.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import lru_cache

from ..exceptions import ParameterError
from ..local import BinaryResponse, Piecewise, best_frequency
from ..statistics.release_noise import Sensitivity, calibrate
from ..transfer.combination import weigh
from .methods import (
    Average,
    Call,
    Entry,
    Method,
    Name,
    Setting,
    agents_of,
    first_reason,
    privacy_of,
    write_flags,
    write_number,
)
from .sizes import Population, Sizes, list_populations

# A mean is that of integers from 0 to so many.
_STEPS = 1 << 20
# An estimate is not farther off than twice what a constant is.
_MOST = 2.0
# Nothing but noise is left of answers below.
_LEAST_EPSILON = 1e-9
# Digits of the weight of the records beside agents.
_DIGITS = 3
_BETA = 0.05
_RANDOMIZERS = {"BinaryResponse": BinaryResponse, "Piecewise": Piecewise}
_FLAGS = {"BinaryResponse": "binary", "Piecewise": "piecewise"}


@lru_cache(maxsize=1024)
def _deviation(sizes: Sizes) -> float:
    """Deviation of the noise on what the records add up to, over the largest constant error."""
    if sizes.learner == "mean":
        sensitivity, steps = Sensitivity(_STEPS, _STEPS**2).times(sizes.d), _STEPS
    else:
        sensitivity, steps = Sensitivity(2, 2), 1
    drawn = calibrate(sensitivity, sizes.epsilon, sizes.delta)
    return drawn.deviation / steps / sizes.constant_error


@lru_cache(maxsize=1024)
def _answer_variance(sizes: Sizes, name: str, distance: float) -> float:
    """Variance of an answer given what it is about, over the square of that error."""
    if sizes.learner == "table":
        variance = _frequency_randomizer(sizes.size or 2, sizes.agents_epsilon).variance()
    else:
        randomizer = _RANDOMIZERS[name](sizes.agents_epsilon, (0.0, 1.0))
        # It is a quadratic function of the distance from the middle, and so its mean.
        variance = randomizer.variance((1 + distance) / 2)
    return variance / sizes.constant_error**2


_frequency_randomizer = lru_cache(maxsize=64)(best_frequency)


def _asked(sizes: Sizes) -> int:
    """Agents who are asked about a number; about one of several each."""
    return sizes.agents // sizes.d


def _square_of_records(sizes: Sizes, people: Population) -> float:
    noise = _deviation(sizes) / sizes.n
    return noise**2 + people.spread**2 / sizes.n + people.shift**2


def _square_of_agents(sizes: Sizes, people: Population, name: str) -> float:
    noise = _answer_variance(sizes, name, people.distance)
    return (noise + people.spread**2) / _asked(sizes)


def _lose_records(sizes: Sizes, people: Population) -> float:
    return min(_MOST, math.sqrt(_square_of_records(sizes, people)))


def _lose_agents(sizes: Sizes, people: Population, name: str) -> float:
    return min(_MOST, math.sqrt(_square_of_agents(sizes, people, name)))


def _lose_both(sizes: Sizes, people: Population, name: str) -> float:
    share = _weigh(sizes, name)
    records, agents = _square_of_records(sizes, people), _square_of_agents(sizes, people, name)
    return min(_MOST, math.sqrt(share**2 * records + (1 - share) ** 2 * agents))


@lru_cache(maxsize=1024)
def _weigh(sizes: Sizes, name: str) -> float:
    """The weight of the records beside the agents: by inverse mean squared errors."""
    records, agents = _mean_squares(sizes, name)
    return float(f"{weigh(records, agents):.{_DIGITS}g}")


def _mean_squares(sizes: Sizes, name: str) -> tuple[float, float]:
    """Mean squared errors of both over all populations."""
    populations = list_populations(sizes)
    records = _average(_square_of_records(sizes, one) for one in populations)
    return records, _average(_square_of_agents(sizes, one, name) for one in populations)


def _average(squares: Iterable[float]) -> float:
    numbers = list(squares)
    return math.fsum(numbers) / len(numbers)


def _lack_records(sizes: Sizes) -> str | None:
    if not sizes.n:
        return "there are no private records"
    if sizes.epsilon == math.inf:
        return "nothing is to be protected"
    try:
        _deviation(sizes)
    except ParameterError:
        return "they need more noise than is drawn"
    return None


def _lack_agents(sizes: Sizes) -> str | None:
    if not sizes.agents:
        return "there are no agents"
    if _asked(sizes) < 1:
        return f"{sizes.d:,} questions need an agent each"
    few = f"below an epsilon of {_LEAST_EPSILON} answers are noise alone"
    return few if sizes.agents_epsilon < _LEAST_EPSILON else None


def _lack_both(sizes: Sizes) -> str | None:
    several = "a survey of several numbers stands beside the records number by number"
    return first_reason(_lack_agents(sizes), _lack_records(sizes), several if sizes.d > 1 else None)


def _list_randomizers(sizes: Sizes) -> Iterable[Setting]:
    # A survey asks for bits.
    names = _RANDOMIZERS if sizes.learner == "mean" and sizes.d == 1 else ("BinaryResponse",)
    return [(name,) for name in names]


def _count_worth(sizes: Sizes, square: float, people: int) -> str:
    """How many people of the target who tell all would do as well as these."""
    spread = _average(one.spread**2 for one in list_populations(sizes))
    return f"worth {write_number(spread / square)} people who tell all, of {people:,}"


def _explain_records(sizes: Sizes) -> str:
    populations = list_populations(sizes)
    noise = sizes.constant_error * _deviation(sizes) / sizes.n
    chance = sizes.constant_error * max(one.spread for one in populations) / math.sqrt(sizes.n)
    shift = sizes.constant_error * max(one.shift for one in populations)
    moved = f", a shift up to {write_number(shift)}" if shift else ""
    square = _average(_square_of_records(sizes, one) for one in populations)
    return (
        f"noise adds {write_number(noise)}, chance at most {write_number(chance)}{moved}; "
        f"{_count_worth(sizes, square, sizes.n)}"
    )


def _explain_agents(sizes: Sizes, name: str) -> str:
    asked = _asked(sizes)
    square = _average(_square_of_agents(sizes, one, name) for one in list_populations(sizes))
    text = f"{_name_randomizer(sizes, name)}; {_count_worth(sizes, square, asked)}"
    if _lack_records(sizes) is None:
        records, _ = _mean_squares(sizes, name)
        needed = write_number(asked * square / records * sizes.d)
        text += f"; {needed} agents would be as good as the records"
    return text


def _name_randomizer(sizes: Sizes, name: str) -> str:
    if sizes.learner == "table":
        kind = type(_frequency_randomizer(sizes.size or 2, sizes.agents_epsilon)).__name__
        return f"{kind} of {sizes.size:,} categories"
    return f"{name}, {sizes.d:,} questions" if sizes.d > 1 else name


def _explain_both(sizes: Sizes, name: str) -> str:
    share = _weigh(sizes, name)
    records, agents = _mean_squares(sizes, name)
    square = share**2 * records + (1 - share) ** 2 * agents
    return (
        f"the records with weight {share:g}, by the inverse of both mean squared errors; "
        f"{_count_worth(sizes, square, sizes.n + _asked(sizes))}"
    )


def _call_records(sizes: Sizes) -> Call:
    privacy = privacy_of(sizes)
    if sizes.learner == "table":
        categories = range(sizes.size or 2)
        return Call("statistics.histogram", Name("y"), categories=categories, **privacy)
    values, bounds = ("X", "bounds") if sizes.d > 1 else ("y", "target_bounds")
    ends = {"low": Entry(bounds, 0), "high": Entry(bounds, 1)}
    return Call("statistics.mean", Name(values), **ends, **privacy)


def _call_agents(sizes: Sizes, name: str) -> Call:
    if sizes.d > 1:
        return Call("transfer.survey", Name("questions"), agents_of(sizes))
    epsilon = sizes.agents_epsilon
    if sizes.learner == "table":
        randomizer = Call("local.best_frequency", sizes.size, epsilon=epsilon)
    else:
        randomizer = Call(f"local.{name}", epsilon=epsilon, bounds=Name("target_bounds"))
    return randomizer.then("aggregate", randomizer.then("sample", Name("agents_y")))


def _call_both(sizes: Sizes, name: str) -> Call:
    share, records, agents = _weigh(sizes, name), _call_records(sizes), _call_agents(sizes, name)
    rest = round(1 - share, _DIGITS + 10)
    if sizes.learner == "table":
        answers = agents.then("frequencies")
        return Average((share / sizes.n, records, "value"), (rest, answers, None))
    return Average((share, records, "value"), (rest, agents.then("estimate", _BETA), "value"))


def _write_records(sizes: Sizes) -> str | None:
    if sizes.d > 1:
        return None  # the command splits epsilon among columns, and not the budget of one release
    statistic = "--mean" if sizes.learner == "mean" else "--histogram"
    return f"hdp-fast stats private.csv {write_flags(sizes)} {statistic} y"


def _write_agents(sizes: Sizes, name: str) -> str | None:
    if sizes.d > 1:
        return None
    epsilon = f"--epsilon {sizes.agents_epsilon!r}"
    if sizes.learner == "table":
        return f"hdp-fast local frequency survey.csv --column y --k {sizes.size} {epsilon}"
    bounds = f"--low 0 --high 1 --randomizer {_FLAGS[name]}"
    return f"hdp-fast local estimate survey.csv --column y {bounds} {epsilon}"


# What is cheaper stands first, and wins ties.
ESTIMATES = (
    Method(
        "records",
        _lack_records,
        _lose_records,
        _explain_records,
        _call_records,
        write_command=_write_records,
    ),
    Method(
        "agents",
        _lack_agents,
        _lose_agents,
        _explain_agents,
        _call_agents,
        _list_randomizers,
        _write_agents,
    ),
    Method(
        "records and agents",
        _lack_both,
        _lose_both,
        _explain_both,
        _call_both,
        _list_randomizers,
    ),
)
