"""Figure 3: private adaptation that nearly ignores the target's labels, and private DM, on gas.

Run `python benches/papers/_adaptation_figure3.py` for the choice of private DM's penalty again.

Samples are those of Figure 1, at epsilon = 15. The share of the source is nearly 1, as the paper
has it (alpha = 1 is no share here), and what was chosen for the tables. private DM is
PrivateDiscrepancyMinimization, which releases the target's second moments once, where the method
that the paper names takes noisy steps. DM is the same without noise, with the penalty that has the
least error on the validation set; private DM's was chosen once, on other splits at epsilon = 4, as
all private settings. Dotted: the source alone, all records alike, without any of the target's.

What it shows: the share nearly 1 stays at the source alone, at about a sixth of DM's error with
noise or without; the chosen share is better than both from 300 records on. On gas a smaller
discrepancy costs more than it brings: few records get all the weight, and the more steps are taken,
the fewer. Noise is such a step less: at n = 100 private DM is better than DM, and with more records
they come together.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import _adaptation_figure as curves
import numpy as np
from _adaptation_data import REGRESSION, DataSet, Split
from _adaptation_ours import (
    CHOSEN_AT,
    DELTA,
    PRIVATE,
    PRIVATE_SPLITS,
    fit_coefficients,
    measure,
    private_fit,
)
from _adaptation_rivals import MINIMIZING, PENALTIES, Outcome, best, equal, minimize_discrepancy
from matplotlib.figure import Figure

from hdp_fast.adaptation import PrivateDiscrepancyMinimization

GAS = REGRESSION[2]
EPSILON = 15.0
OURS = PRIVATE["gas"]["tight"]
SHARES = (0.999, OURS.alpha)
# What main prints.
PENALTY = 1e-4
METHODS = (*(f"ours, alpha = {alpha:g}" for alpha in SHARES), "private DM", "DM")
CURVES = curves.Curves({name: name for name in METHODS}, "train on source")


def repeat(splits: int, only: str | None = None) -> list[curves.Result]:
    """Errors by method, kind of sample and n; a list of as many as splits."""
    return curves.repeat_splits(points, (GAS,), splits, only)


def points(data: DataSet, number: int) -> curves.Points:
    split = curves.shorten_targets(data.split(number), number)
    yield CURVES.level, best(data, split, [equal(split.source)]).test
    for kind, n, sample in curves.samples(split.training, number):
        errors = compare(data, split._replace(training=sample), number)
        for name, error in zip(METHODS, errors, strict=True):
            yield f"{name}, {kind}, {n}", error


def compare(data: DataSet, split: Split, seed: int) -> Iterator[float]:
    """Of all methods, in their order."""
    given = {"epsilon": EPSILON, "delta": DELTA, "seed": seed}
    for alpha in SHARES:
        settings = OURS._replace(alpha=alpha)
        yield measure(data, split, private_fit(data, split, settings, "tight", **given)).test
    yield private_dm(data, split, PENALTY, EPSILON, seed).test
    yield best(data, split, [minimize_discrepancy(split)]).test


def private_dm(data: DataSet, split: Split, penalty: float, epsilon: float, seed: int) -> Outcome:
    given = {"epsilon": epsilon, "delta": DELTA}
    model = PrivateDiscrepancyMinimization(l2=penalty, **given, **MINIMIZING)
    return measure(data, split, fit_coefficients(model, data, split, seed))


def figure(results: list[Any]) -> Figure:
    drawn = curves.figure(results, CURVES)
    drawn.suptitle(f"epsilon = {EPSILON:g}")
    return drawn


def choose_penalty() -> float:
    """The penalty with the least error on the validation sets of other splits."""
    splits = [(number, GAS.split(number)) for number in PRIVATE_SPLITS]

    def cost(penalty: float) -> float:
        fitted = (private_dm(GAS, split, penalty, CHOSEN_AT, n) for n, split in splits)
        return float(np.mean([each.validation for each in fitted]))

    return min(map(float, PENALTIES["squared"]), key=cost)


if __name__ == "__main__":
    print(f"private DM: {choose_penalty():g}")
