"""A bench of the hybrid model: a curator's panel, agents of the target, and methods by name.

A problem has a name, a title and read(), which gives source and target as People. A method is one
function from a Case to a predictor, which gives each of some People a probability of label 1. Half
of the target, drawn at random, plays the agents. The other half is held back: no method sees it
before it is measured on it. What a method protects, and at which epsilon, stands in its docstring,
and is not checked here.
"""

from __future__ import annotations

import csv
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, astuple, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from self_selection import DELTA, Floats, People, draw_halves, scores

METRICS = ("error", "log loss", "AUC", "seconds")


@dataclass(frozen=True)
class Case:
    """What a method is given: the panel, the agents, how both are to be protected, and coins."""

    source: People
    agents: People
    epsilon: float
    delta: float
    rng: np.random.Generator

    def seed(self) -> int:
        """A seed for what takes no Generator."""
        return int(self.rng.integers(2**31))


Predictor = Callable[[People], Floats]
Method = Callable[[Case], Predictor]


@dataclass(frozen=True)
class Row:
    """A method on a problem: means over repetitions, and their standard errors."""

    problem: str
    method: str
    epsilon: float
    source: int
    agents: int
    repetitions: int
    error: float
    error_se: float
    log_loss: float
    log_loss_se: float
    auc: float
    auc_se: float
    seconds: float
    seconds_se: float

    def pairs(self) -> list[tuple[float, float]]:
        """Mean and standard error of each metric."""
        numbers = astuple(self)[-2 * len(METRICS) :]
        return list(zip(numbers[::2], numbers[1::2], strict=True))


def measure(
    problem: Any, methods: Mapping[str, Method], epsilon: float, repetitions: int
) -> list[Row]:
    """A row for each method; all have the same halves, and coins that are independent of others."""
    source, target = problem.read()
    found: dict[str, list[tuple[float, ...]]] = {name: [] for name in methods}
    for agents, test, rng in draw_halves(target, repetitions):
        coins = rng.spawn(len(methods))
        for (name, method), own in zip(methods.items(), coins, strict=True):
            start = time.perf_counter()
            predict = method(Case(source, agents, epsilon, DELTA, own))
            seconds = time.perf_counter() - start
            found[name].append((*_score(test, predict(test), name), seconds))
    sizes = (len(source.y), len(target.y) // 2, repetitions)
    return [
        Row(problem.name, name, epsilon, *sizes, *_summarize(values))
        for name, values in found.items()
    ]


def _score(test: People, probabilities: Any, name: str) -> tuple[float, float, float]:
    predictions = np.asarray(probabilities, np.float64)
    right = predictions.shape == test.y.shape and ((predictions >= 0) & (predictions <= 1)).all()
    if not right:
        raise ValueError(f"{name}: a predictor gives one number in [0, 1] for each of the people")
    return scores(test.y, predictions, predictions)


def _summarize(values: list[tuple[float, ...]]) -> list[float]:
    """Mean and standard error of each metric, in turn; of one repetition the error is unknown."""
    table = np.array(values)
    means = table.mean(axis=0)
    errors = np.full(len(means), np.nan)
    if len(table) > 1:
        errors = table.std(axis=0, ddof=1) / np.sqrt(len(table))
    return np.column_stack([means, errors]).ravel().tolist()


def format_table(title: str, rows: list[Row]) -> str:
    """The rows of one problem in Markdown."""
    first = rows[0]
    lines = [
        f"{title}; {first.source:,} records, {first.agents:,} agents, "
        f"{first.repetitions} repetitions",
        "",
        f"| | epsilon | {' | '.join(METRICS)} |",
        f"| --- {'| ---: ' * (1 + len(METRICS))}|",
    ]
    for row in rows:
        cells = " | ".join(f"{mean:.3f} ± {error:.3f}" for mean, error in row.pairs())
        lines.append(f"| {row.method} | {row.epsilon:g} | {cells} |")
    return "\n".join(lines)


def write_csv(path: Path, rows: Iterable[Row]) -> None:
    """Write all rows, in a folder that is made where there is none."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(Row)])
        writer.writeheader()
        writer.writerows(asdict(row) for row in rows)


def draw(rows: list[Row]) -> Figure:
    """Error, log loss and AUC of each method: a line of panels for each problem and epsilon."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(f"{row.problem}, epsilon = {row.epsilon:g}", []).append(row)
    shown = METRICS[:-1]
    height = sum(1 + 0.25 * len(group) for group in groups.values())
    figure = Figure(figsize=(13, height), layout="constrained")
    panels = figure.subplots(len(groups), len(shown), squeeze=False)
    for (title, group), line in zip(groups.items(), panels, strict=True):
        names = [row.method for row in group]
        for place, (metric, panel) in enumerate(zip(shown, line, strict=True)):
            means, errors = zip(*(row.pairs()[place] for row in group), strict=True)
            panel.errorbar(means, names, xerr=errors, fmt="o", capsize=2)
            panel.set(title=f"{title}: {metric}")
            panel.invert_yaxis()
            panel.tick_params(axis="y", labelleft=place == 0)
            panel.grid(axis="x", alpha=0.3)
    return figure
