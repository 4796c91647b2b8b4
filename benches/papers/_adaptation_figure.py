"""Figure 1: errors of private adaptation against the number of target records, gas and Adult.

The paper draws larger samples with replacement, and counts each record as another person's. Both
are here: solid lines are of such samples, dashed ones of records that are all different, as far as
there are any. A sample with replacement from few people says no more of the domain than they do,
while its noise falls as if it did. Of Adult's source 6,000 records are kept, drawn anew in every
split: all 32,650 take five times as long. Dotted: all the target's records without privacy.

What it shows: on gas the error falls with n and epsilon until about .0014, where the optimum
without noise has .0009: with 10,000 records steps are the limit, not noise, since the source says
little of how the target's rarest features vary; a larger initial_distance is worse. On Adult 10,000
records are enough at any epsilon from .5 on.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from _adaptation_data import CLASSIFICATION, REGRESSION, DataSet, Sample, Split, enlarge
from _adaptation_ours import DELTA, PRIVATE, group_of, measure, open_outcome, private_fit
from matplotlib.figure import Figure

EPSILONS = (0.5, 1.0, 4.0, 10.0, 15.0)
SIZES = (100, 300, 600, 2000, 10_000)
SOURCE = 6000
DATA = (REGRESSION[2], CLASSIFICATION[0])
ENLARGED, DISTINCT = "with replacement", "all different"

Result = dict[str, Any]
Points = Iterator[tuple[str, float]]


class Curves(NamedTuple):
    """What is drawn of a result.

    Attributes:
        labels: of curves, by what their keys begin with; kind of sample and n follow.
        level: the key of an error that has no n, dotted.
    """

    labels: dict[str, str]
    level: str


CURVES = Curves({f"{epsilon:g}": f"epsilon = {epsilon:g}" for epsilon in EPSILONS}, "not private")


def repeat(splits: int, only: str | None = None) -> list[Result]:
    """Errors of both data sets, by epsilon, kind of sample and n; a list of as many as splits."""
    return repeat_splits(points, DATA, splits, only)


def repeat_splits(
    points: Callable[[DataSet, int], Points],
    every: tuple[DataSet, ...],
    splits: int,
    only: str | None,
) -> list[Result]:
    """The points of so many splits of each data set that is there."""
    found = []
    for data in every:
        if only not in (None, data.name):
            continue
        if data.missing():
            print(f"skipped {data.name}: {data.missing()}", file=sys.stderr)
            continue
        errors: dict[str, list[float]] = {}
        for number in range(splits):
            for key, error in points(data, number):
                errors.setdefault(key, []).append(error)
        about = {"name": data.name, "task": data.task, "splits": splits, "delta": DELTA}
        found.append({**about, "errors": errors})
    return found


def points(data: DataSet, number: int) -> Points:
    split = shorten_targets(data.split(number), number)
    yield CURVES.level, open_outcome(data, split).test
    for kind, n, sample in samples(split.training, number):
        some = split._replace(training=sample)
        for epsilon in EPSILONS:
            yield f"{epsilon:g}, {kind}, {n}", fit_privately(data, some, epsilon, number)


def shorten_targets(split: Split, number: int) -> Split:
    """With a part of a large source."""
    order = np.random.default_rng([number, 2]).permutation(len(split.source.y))
    return split._replace(source=split.source.part(order[:SOURCE]))


def samples(training: Sample, number: int) -> Iterator[tuple[str, int, Sample]]:
    coins = np.random.default_rng([number, 1])
    order = coins.permutation(len(training.y))
    for n in SIZES:
        if n <= len(order):
            yield DISTINCT, n, training.part(order[:n])
        yield ENLARGED, n, enlarge(training, n, coins)


def fit_privately(data: DataSet, split: Split, epsilon: float, seed: int) -> float:
    settings = PRIVATE[group_of(data)]["tight"]
    given = {"epsilon": epsilon, "delta": DELTA, "seed": seed}
    return measure(data, split, private_fit(data, split, settings, "tight", **given)).test


def figure(results: list[Result], curves: Curves = CURVES) -> Figure:
    """A panel for each data set."""
    drawn = Figure(figsize=(6.5 * len(results), 5), layout="constrained")
    panels = drawn.subplots(1, len(results), squeeze=False)[0]
    for result, panel in zip(results, panels, strict=True):
        draw(panel, result, curves)
        panel.set(xscale="log", xlabel="n, target records")
        panel.set_title(f"{result['name']}, delta = {DELTA}, {result['splits']} splits")
    panels[0].legend(fontsize="x-small")
    return drawn


def draw(panel: Any, result: Result, curves: Curves) -> None:
    accuracy = result["task"] == "classification"
    panel.set_ylabel("accuracy" if accuracy else "mean squared error")
    if not accuracy:
        panel.set_yscale("log")
    for place, (name, label) in enumerate(curves.labels.items()):
        for kind, style, marker in ((ENLARGED, "-", "o"), (DISTINCT, "--", "x")):
            drawn = {"linestyle": style, "marker": marker, "color": f"C{place}", "capsize": 2}
            panel.errorbar(*line(result, f"{name}, {kind}"), label=f"{label}, {kind}", **drawn)
    errors = shown(result, curves.level)
    panel.axhline(errors.mean(), linestyle=":", color="black", label=curves.level)


def line(result: Result, name: str) -> tuple[list[int], list[float], list[float]]:
    """n, means and deviations."""
    some = [n for n in SIZES if f"{name}, {n}" in result["errors"]]
    values = [shown(result, f"{name}, {n}") for n in some]
    return some, [each.mean() for each in values], [each.std() for each in values]


def shown(result: Result, key: str) -> Any:
    errors = np.array(result["errors"][key])
    return 1 - errors if result["task"] == "classification" else errors
