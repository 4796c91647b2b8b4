"""Means and tables: standard errors that advise forecasts beside those of its own calls.

The populations are made up, and fixed: people are drawn from 100,000 numbers or categories, so that
the true mean and the true shares are known. Where the target is unknown, a part of the source
answers otherwise. Every call that advise prints is run, on new people each time.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import hdp_fast
from hdp_fast.advice import Advice

PEOPLE = 100_000
# Share of the source that is otherwise.
OTHERS = 0.1
BETA = 0.05
# Records, agents, epsilon of the records and of an answer, and what is known of the target.
SIZES = (
    (200, 5_000, 0.5, 1.0, "same"),
    (2_000, 20_000, 1.0, 4.0, "same"),
    (2_000, 20_000, 1.0, 1.0, "unknown"),
)


class People(NamedTuple):
    """A population: what kind it is, the source, the target, and how many categories there are."""

    name: str
    source: NDArray[Any]
    target: NDArray[Any]
    size: int | None


@dataclass(frozen=True)
class Line:
    """The forecast of a method, and what was measured."""

    data: str
    learner: str
    method: str
    low: float
    expected: float
    high: float
    measured: float

    def is_inside(self, repetitions: int, deviations: float) -> bool:
        """Whether it is in the range, but for the chance of so many repetitions."""
        slack = 1 + deviations / math.sqrt(2 * repetitions)
        return self.low / slack <= self.measured <= self.high * slack


def list_people(rng: np.random.Generator) -> Iterator[tuple[str, NDArray[Any], int | None]]:
    """Numbers between 0 and 1, and categories."""
    yield "even numbers", rng.random(PEOPLE), None
    yield "ages", rng.beta(2, 3, PEOPLE), None
    yield "incomes", np.minimum(rng.lognormal(-3, 1, PEOPLE), 1), None
    yield "hours", np.clip(rng.normal(0.4, 0.1, PEOPLE), 0, 1), None
    yield "coins", (rng.random(PEOPLE) < 0.5).astype(float), None
    yield "rare bits", (rng.random(PEOPLE) < 0.03).astype(float), None
    yield "five, even", rng.integers(0, 5, PEOPLE), 5
    yield "three, one of nine in ten", rng.choice(3, PEOPLE, p=[0.9, 0.06, 0.04]), 3
    zipf = 1 / np.arange(1, 41)
    yield "forty, by rank", rng.choice(40, PEOPLE, p=zipf / zipf.sum()), 40


def shift(rng: np.random.Generator, target: NDArray[Any]) -> NDArray[Any]:
    """A source of which some are as those of the target with the largest number."""
    others = rng.random(PEOPLE) < OTHERS
    return np.where(others, target.max(), target)


def measure_estimates(
    repetitions: int, *, sizes: tuple[Any, ...] = SIZES, seed: int = 0
) -> Iterator[Line]:
    """Forecast and root mean squared error of each call, in every cell."""
    rng = np.random.default_rng(seed)
    for name, target, cells in list_people(rng):
        for n, agents, epsilon, agents_epsilon, known in sizes:
            source = target if known == "same" else shift(rng, target)
            learner = "mean" if cells is None else "table"
            advice = hdp_fast.advise(
                n=n, d=1, agents=agents, epsilon=epsilon, agents_epsilon=agents_epsilon,
                learner=learner, size=cells, target=known, changes=False,
            )  # fmt: skip
            people = People(f"{name}, {known}", source, target, cells)
            yield from _measure(advice, people, repetitions, rng)


def _measure(
    advice: Advice, people: People, repetitions: int, rng: np.random.Generator
) -> Iterator[Line]:
    truth = _count(people.target, people.size) / PEOPLE
    n, agents = advice.sizes["n"], advice.sizes["agents"]
    squares: dict[str, list[float]] = {}
    for _ in range(repetitions):
        y, agents_y = rng.choice(people.source, n), rng.choice(people.target, agents)
        data = {"y": y, "agents_y": agents_y, "target_bounds": (0.0, 1.0)}
        for one in advice.candidates:
            if one.call is not None:
                estimate = read(advice.run(one.name, **data), n)
                squares.setdefault(one.name, []).append(np.square(estimate - truth).mean())
    for one in advice.candidates:
        if one.call is not None:
            measured = math.sqrt(np.mean(squares[one.name]))
            learner = advice.sizes["learner"]
            forecast = (one.low, one.expected, one.high)
            yield Line(people.name, learner, one.name, *forecast, measured)


def _count(values: NDArray[Any], cells: int | None) -> Any:
    return values.sum() if cells is None else np.bincount(values, minlength=cells)


def read(result: Any, n: int) -> Any:
    """The mean, or the shares, that a call returned."""
    if isinstance(result, hdp_fast.statistics.Histogram):
        return result.value / n
    if isinstance(result, hdp_fast.local.FrequencyAggregate):
        return result.frequencies()
    if isinstance(result, hdp_fast.local.MeanAggregate):
        return result.estimate(BETA).value
    return getattr(result, "value", result)


def print_estimates(repetitions: int) -> None:
    """By learner and method, how many cells lay in the range, and how wide that is."""
    lines = list(measure_estimates(repetitions))
    print(f"\nMeans and tables, {repetitions} runs of each printed call a cell:")
    print("\n| method | cells | inside | median of high / low | measured over expected, median |")
    print("| --- | ---: | ---: | ---: | ---: |")
    for learner, method in dict.fromkeys((line.learner, line.method) for line in lines):
        some = [line for line in lines if (line.learner, line.method) == (learner, method)]
        inside = sum(line.is_inside(repetitions, 2) for line in some)
        width = np.median([line.high / line.low for line in some])
        ratio = np.median([line.measured / line.expected for line in some])
        print(f"| {learner}, {method} | {len(some)} | {inside} | {width:.2f} | {ratio:.2f} |")
    for line in lines:
        if not line.is_inside(repetitions, 2):
            ends = f"{line.low:.2g} to {line.high:.2g}"
            print(f"outside: {line.data}, {line.method}: {line.measured:.2g}, forecast {ends}")
