"""The non-private rivals of adaptation on every data set: Tables 1 and 3 without the paper's own.

Run `python benches/papers/_adaptation_rivals.py` for the tables, or import what it is made of.
Every rival is a linear model of weighted records; its penalty, the share of the source among pooled
records and the bound on the weights of kernel mean matching are those whose error on the target's
validation set is least. Errors are measured on the test set: mean squared ones divided by that of
training on the target in the same split, or accuracies. Deviations are those between splits.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from _adaptation_data import CLASSIFICATION, REGRESSION, REVIEWS, DataSet, Sample, Split, join
from _report import make_parser, print_json, select_present

from hdp_fast.adaptation import DiscrepancyMinimization, KernelMeanMatching
from hdp_fast.adaptation.baselines.reweighting import fit_weighted

NAMES = ("train on source", "train on target", "pooled", "KMM", "DM")
PENALTIES = {"squared": np.logspace(-7, 0, 15), "logistic": np.logspace(-6, -1, 6)}
# Of the source among pooled records; None weighs all records equally.
SHARES = (None, 0.1, 0.5)
BOUNDS = (5.0, 1000.0)
MATCHING = {"landmarks": 300, "steps": 200, "tolerance": 0.01}
MINIMIZING = {"steps": 50, "tolerance": 0.05}

# Tables 1 and 3.
PRINTED = {
    "wind": {"KMM": (1.009, 0.035), "DM": (1.009, 0.045), "CnvxAdap": (0.985, 0.019)},
    "airline": {"KMM": (2.716, 0.202), "DM": (1.547, 0.068), "CnvxAdap": (0.992, 0.012)},
    "gas": {"KMM": (0.441, 0.034), "DM": (0.381, 0.028), "CnvxAdap": (0.342, 0.023)},
    "news": {"KMM": (1.162, 0.044), "DM": (1.006, 0.009), "CnvxAdap": (0.995, 0.019)},
    "slice": {"KMM": (1.282, 0.076), "DM": (1.218, 0.130), "CnvxAdap": (0.992, 0.050)},
    "adult": {
        "train on source": (0.8844, 0.0061),
        "train on target": (0.9109, 0.0054),
        "KMM": (0.7462, 0.0064),
        "NCnvxAdap": (0.9138, 0.0049),
    },
    "german": {
        "train on source": (0.7416, 0.0164),
        "train on target": (0.7640, 0.0117),
        "KMM": (0.7443, 0.0165),
        "NCnvxAdap": (0.7796, 0.0131),
    },
    "accent": {
        "train on source": (0.5160, 0.0109),
        "train on target": (0.9227, 0.0110),
        "KMM": (0.5218, 0.0227),
        "NCnvxAdap": (0.9395, 0.0078),
    },
}


class Weighted(NamedTuple):
    """Records to learn from."""

    sample: Sample
    weights: np.ndarray


class Outcome(NamedTuple):
    """What the best settings on the validation set say of the test set."""

    validation: float
    test: float
    penalty: float


def outcomes(data: DataSet, split: Split) -> dict[str, Outcome]:
    """Of every rival that the data set has, by name."""
    return {name: best(data, split, [*given]) for name, given in candidates(data, split)}


def candidates(data: DataSet, split: Split) -> Iterator[tuple[str, Iterator[Weighted]]]:
    yield "train on source", iter([equal(split.source)])
    yield "train on target", iter([equal(split.training)])
    yield "pooled", (pool_domains(split, share) for share in SHARES)
    yield "KMM", (match_means(split, bound) for bound in BOUNDS)
    if data.task == "regression":
        yield "DM", iter([minimize_discrepancy(split)])


def best(data: DataSet, split: Split, given: list[Weighted]) -> Outcome:
    found = [outcome for each in given for outcome in path(data, split, each)]
    return min(found, key=lambda outcome: outcome.validation)


def path(data: DataSet, split: Split, given: Weighted) -> Iterator[Outcome]:
    """Of all penalties, the largest first: each solution is where the next search starts."""
    X, y = given.sample
    labels = y if data.loss == "squared" else 2 * y - 1
    w = None
    for penalty in map(float, PENALTIES[data.loss][::-1]):
        w = fit_weighted(X, labels, given.weights, loss=data.loss, l2=penalty, start=w)
        yield Outcome(error(data, split.validation, w), error(data, split.test, w), penalty)


def error(data: DataSet, sample: Sample, w: np.ndarray) -> float:
    """Mean squared error, or the share of wrong labels."""
    scores = sample.X @ w
    if data.task == "classification":
        return float(np.mean((scores >= 0) != (sample.y == 1)))
    return float(np.mean((scores - sample.y) ** 2))


def equal(sample: Sample, total: float = 1.0) -> Weighted:
    return Weighted(sample, np.full(len(sample.y), total / len(sample.y)))


def pool_domains(split: Split, share: float | None) -> Weighted:
    m, n = len(split.source.y), len(split.training.y)
    alpha = m / (m + n) if share is None else share
    weights = [equal(split.source, alpha).weights, equal(split.training, 1 - alpha).weights]
    return Weighted(join(split.source, split.training), np.concatenate(weights))


def match_means(split: Split, bound: float) -> Weighted:
    return reweight(split, KernelMeanMatching(bound=bound, **MATCHING))


def minimize_discrepancy(split: Split) -> Weighted:
    return reweight(split, DiscrepancyMinimization(**MINIMIZING))


def reweight(split: Split, rival: Any) -> Weighted:
    """Its weights see no labels, and depend on neither loss nor penalty."""
    rival.fit(split.source.X, split.source.y, split.training.X, split.training.y)
    return Weighted(split.source, rival.weights_ / rival.weights_.sum())


def repeat(data: DataSet, splits: int) -> dict[str, Any]:
    """All rivals on so many splits; the errors of each split are kept for paired comparisons."""
    start = time.perf_counter()
    found = [outcomes(data, data.split(number)) for number in range(splits)]
    return {
        "name": data.name,
        "task": data.task,
        "errors": {name: [each[name].test for each in found] for name in found[0]},
        "penalties": {name: [each[name].penalty for each in found] for name in found[0]},
        "seconds": (time.perf_counter() - start) / splits,
    }


def shown(result: dict[str, Any], name: str) -> tuple[float, float] | None:
    """Mean and deviation of relative errors, or of accuracies."""
    if name not in result["errors"]:
        return None
    errors = np.array(result["errors"][name])
    if result["task"] == "classification":
        return float(np.mean(1 - errors)), float(np.std(errors))
    relative = errors / np.array(result["errors"]["train on target"])
    return float(relative.mean()), float(relative.std())


def table(results: list[dict[str, Any]]) -> str:
    lines = [f"| | {' | '.join(NAMES)} | MSE on target |", "| --- |" + " ---: |" * (len(NAMES) + 1)]
    return "\n".join([*lines, *(rows(result) for result in results)])


def rows(result: dict[str, Any]) -> str:
    """Ours, and the paper's where it has any."""
    cells = [cell(shown(result, name)) for name in NAMES]
    alone = "" if result["task"] == "classification" else f"{target(result):.4f}"
    ours = f"| {result['name']} | {' | '.join(cells)} | {alone} |"
    printed = PRINTED.get(result["name"])
    if printed is None:
        return ours
    said = [cell(printed.get(name)) for name in NAMES]
    return f"{ours}\n| {result['name']}, paper | {' | '.join(said)} | |"


def target(result: dict[str, Any]) -> float:
    return float(np.mean(result["errors"]["train on target"]))


def cell(value: tuple[float, float] | None) -> str:
    return "" if value is None else "{:.3f} ± {:.3f}".format(*value)


def main() -> None:
    every = {data.name: data for data in (*REGRESSION, *CLASSIFICATION, *REVIEWS)}
    parser = make_parser(__doc__, printing=True, writing=False)
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--only", choices=sorted(every), action="append")
    arguments = parser.parse_args()
    results = []
    for data in select_present((every[name] for name in arguments.only or every), None):
        results.append(repeat(data, arguments.splits))
        print(f"{rows(results[-1])} {results[-1]['seconds']:.1f} s a split", file=sys.stderr)
    if arguments.json:
        print_json(results)
    else:
        print(table(results))


if __name__ == "__main__":
    main()
