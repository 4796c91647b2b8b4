"""Adaptation beside what is known, on real data: Tables 1, 2, 3, 5, Figures 1 and 3 of the paper.

Run `python benches/papers/adaptation.py`: hours, most of them for sentiments and Adult; --part,
--only and --splits take less. Tables are printed as they are known, and written with every error as
JSON beside the figure. Data, splits and rivals are those of _adaptation_data.py and
_adaptation_rivals.py, whose JSON --rivals reads instead of finding it all again.

ours         ConvexAdaptation, for classes NonConvexAdaptation, without privacy: settings by the
             target's validation set, as those of all rivals
tight        the same with epsilon, and delta = 0.01 as in the paper; noise of one Gaussian budget
paper        the printed steps, with noise for (epsilon, delta) in all; squared loss only
SGD          noisy minibatch SGD on the target alone
one release  MomentAdaptation without any setting; "chosen" with settings chosen as those of tight

Private settings were chosen once, on other splits (_adaptation_ours.py): epsilon does not cover
that choice, nor the paper's. "tight, 1e-6" is tight at epsilon = 4 with delta = 1e-6.

Incomplete files (gas, news), another airport (airline), a guess at the classes (german, accent), an
SVD, and labels -1 and 1 in place of stars (sentiments), and own splits of all make these figures
not comparable with the printed ones beside which they stand. Squared errors are relative to that of
training on the target in the same split, but for those of sentiments, where the constant 0 has 1.
Deviations are those between splits.

What it shows: without privacy ours is nowhere more than a standard error behind training on the
target, KMM or DM. With noise the start at the public optimum is most of the gain: on wind, airline
and sentiments tight has about what training on the source has, and more epsilon brings little; on
Adult it has what training on the target has; on gas at epsilon = 10 three quarters of the source's
error, and twice the target's. The printed steps hardly leave zero, which costs dearly but on news,
where zero is as good as anything that a linear model learns of 228 records: there they are ahead of
tight by a fraction of a per cent, less than a standard error or about one. Private DM never comes
near ours (Figure 3).
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import _adaptation_figure as curves
import _adaptation_figure3 as rival_curves
import numpy as np
from _adaptation_data import ABSENT, CLASSIFICATION, REGRESSION, REVIEWS, DataSet, Split
from _adaptation_ours import (
    CHOSEN_RELEASE,
    DELTA,
    ONE_RELEASE,
    measure,
    methods,
    open_outcome,
    private_fit,
    settings_of,
)
from _adaptation_rivals import NAMES, PRINTED, best, cell, equal, outcomes, shown
from _report import accept_seeds, make_parser, select_present, write_figure, write_json

Result = dict[str, Any]

EPSILONS = (1.0, 4.0, 10.0)
# Of sentiments, as printed.
FEW = (4.0, 10.0)
SMALL_DELTA = (4.0, 1e-6)
PARTS = {"table1": REGRESSION, "table2": REVIEWS, "table3": CLASSIFICATION}
FIGURES = {
    "figure1": (curves, "adaptation.png"),
    "figure3": (rival_curves, "adaptation_figure3.png"),
}
OURS = "ours"

# Tables 2 and 5: epsilon = 4, epsilon = 10, DM.
PRINTED_REVIEWS = {
    "kitchen -> books": ((1.649, 1.909), (0.713, 0.625), (0.778, 0.459)),
    "kitchen -> dvd": ((0.832, 0.640), (0.521, 0.354), (1.396, 1.145)),
    "kitchen -> electronics": ((0.790, 0.153), (0.555, 0.139), (1.740, 1.483)),
    "books -> dvd": ((0.929, 0.365), (0.637, 0.297), (0.761, 0.562)),
    "books -> electronics": ((0.708, 0.092), (0.485, 0.147), (0.711, 0.320)),
    "books -> kitchen": ((0.796, 0.126), (0.632, 0.181), (0.956, 0.442)),
    "dvd -> electronics": ((0.671, 0.120), (0.429, 0.189), (0.677, 0.231)),
    "dvd -> kitchen": ((0.665, 0.197), (0.453, 0.189), (1.185, 0.753)),
    "dvd -> books": ((0.727, 0.288), (0.430, 0.143), (0.676, 0.812)),
    "electronics -> kitchen": ((0.671, 0.161), (0.439, 0.141), (1.389, 0.755)),
    "electronics -> books": ((0.743, 0.365), (0.351, 0.204), (0.884, 0.639)),
    "electronics -> dvd": ((0.755, 0.585), (0.589, 0.495), (0.843, 0.403)),
}


def repeat(
    data: DataSet,
    splits: int,
    epsilons: tuple[float, ...],
    known: dict[str, Any],
    releases: bool = False,
) -> Result:
    """Every method on so many splits; the errors of each are kept for paired comparisons."""
    start = time.perf_counter()
    errors: dict[str, list[float]] = {}
    for number in range(splits):
        split = data.split(number)
        ours = compare_releases if releases else compare
        for name, value in ours(data, split, number, epsilons):
            errors.setdefault(name, []).append(value)
        others = plain_rivals(data, split) if releases else rivals_of(data, split, number, known)
        for name, value in others:
            errors.setdefault(name, []).append(value)
    seconds = (time.perf_counter() - start) / splits
    return {
        "name": data.name,
        "task": data.task,
        "splits": splits,
        "seconds": seconds,
        "settings": {name: settings_of(data, name)._asdict() for name in methods(data)},
        "errors": errors,
    }


def compare(
    data: DataSet, split: Split, number: int, epsilons: tuple[float, ...]
) -> Iterator[tuple[str, float]]:
    """Ours, and what is private."""
    yield OURS, open_outcome(data, split).test
    for epsilon in epsilons:
        for method in methods(data):
            yield (
                f"{method}, {epsilon:g}",
                fit_privately(data, split, method, epsilon, DELTA, number),
            )
    epsilon, delta = SMALL_DELTA
    if epsilon in epsilons:
        yield "tight, 1e-6", fit_privately(data, split, "tight", epsilon, delta, number)


def compare_releases(
    data: DataSet, split: Split, number: int, epsilons: tuple[float, ...]
) -> Iterator[tuple[str, float]]:
    """One release alone."""
    for epsilon in epsilons:
        for method in methods(data):
            if method in (ONE_RELEASE, CHOSEN_RELEASE):
                error = fit_privately(data, split, method, epsilon, DELTA, number)
                yield f"{method}, {epsilon:g}", error


def plain_rivals(data: DataSet, split: Split) -> Iterator[tuple[str, float]]:
    """Training on one domain, without privacy: what errors are relative to."""
    yield "train on source", best(data, split, [equal(split.source)]).test
    yield "train on target", best(data, split, [equal(split.training)]).test


def fit_privately(
    data: DataSet, split: Split, method: str, epsilon: float, delta: float, seed: int
) -> float:
    settings = settings_of(data, method)
    w = private_fit(data, split, settings, method, epsilon=epsilon, delta=delta, seed=seed)
    return measure(data, split, w).test


def rivals_of(
    data: DataSet, split: Split, number: int, known: dict[str, Any]
) -> Iterator[tuple[str, float]]:
    """The others' errors on this split: found before, or now."""
    before = known.get(data.name, {})
    if before and number < min(map(len, before.values())):
        yield from ((name, each[number]) for name, each in before.items())
    else:
        yield from ((name, each.test) for name, each in outcomes(data, split).items())


def value_of(result: Result, name: str) -> tuple[float, float] | None:
    """Mean and deviation: of relative errors, of accuracies, or of the errors themselves."""
    if "->" not in result["name"]:
        return shown(result, name)
    errors = result["errors"].get(name)
    return None if errors is None else (float(np.mean(errors)), float(np.std(errors)))


def table(results: list[Result], names: list[str], paper: Callable[[str, str], Any]) -> str:
    """A line for each data set, and one for what the paper has of it."""
    lines = [f"| | {' | '.join(names)} |", "| --- |" + " ---: |" * len(names)]
    for result in results:
        cells = [cell(value_of(result, name)) for name in names]
        lines.append(f"| {result['name']} ({result['splits']} splits) | {' | '.join(cells)} |")
        said = [cell(paper(result["name"], name)) for name in names]
        if any(said):
            lines.append(f"| {result['name']}, paper | {' | '.join(said)} |")
    return "\n".join(lines)


def printed(data: str, name: str) -> tuple[float, float] | None:
    """What the paper has in place of this cell."""
    if data in PRINTED_REVIEWS:
        places = ("tight, 4", "tight, 10", "DM")
        return PRINTED_REVIEWS[data][places.index(name)] if name in places else None
    found = PRINTED.get(data, {})
    return found.get("CnvxAdap", found.get("NCnvxAdap")) if name == OURS else found.get(name)


def tables(results: list[Result]) -> str:
    """Without privacy, and with it."""
    closed = [
        name for name in dict.fromkeys(n for r in results for n in r["errors"]) if "," in name
    ]
    wanted = [name for name in (*NAMES, OURS) if any(name in r["errors"] for r in results)]
    open_table = table(results, wanted, printed)
    return f"Not private\n\n{open_table}\n\nPrivate\n\n{table(results, closed, printed)}"


def behind(result: Result, name: str, rival: str) -> float:
    """How many standard errors a method's mean error is above its rival's, split by split."""
    errors = result["errors"]
    if rival not in errors or len(errors[name]) < 2:
        return 0.0
    apart = np.array(errors[name]) - np.array(errors[rival])
    spread = float(apart.std(ddof=1)) / np.sqrt(len(apart))
    return float(apart.mean()) / max(spread, 1e-300)


def verdicts(results: list[Result]) -> Iterator[str]:
    """What was to be reached, and was not."""
    for result in results:
        for rival in ("train on target", "KMM", "DM"):
            if behind(result, OURS, rival) > 1:
                far = behind(result, OURS, rival)
                yield f"{result['name']}: ours is {far:.1f} standard errors behind {rival}"
        mean = {name: float(np.mean(each)) for name, each in result["errors"].items()}
        for name in mean:
            same = name.replace("paper", "tight")
            if name.startswith("paper") and mean[same] >= mean[name]:
                yield f"{result['name']}: {same} is not better than {name}"
    yield from ranks([result for result in results if "->" in result["name"]])


def ranks(results: list[Result]) -> Iterator[str]:
    """Of private adaptation against DM on sentiments."""
    for place, name in enumerate(("tight, 4", "tight, 10")):
        some = [result for result in results if name in result["errors"]]
        if some:
            won = sum(np.mean(r["errors"][name]) < np.mean(r["errors"]["DM"]) for r in some)
            each = [PRINTED_REVIEWS[result["name"]] for result in some]
            said = sum(values[place][0] < values[2][0] for values in each)
            yield f"{name} is better than DM on {won} of {len(some)} pairs; printed: on {said}"


def read_rivals(paths: list[Path]) -> dict[str, Any]:
    found = [result for path in paths for result in json.loads(path.read_text())]
    return {result["name"]: result["errors"] for result in found}


def part(name: str, arguments: argparse.Namespace, known: dict[str, Any]) -> list[Result]:
    """The results of a table, as they are known."""
    results = []
    for data in select_present(PARTS[name], arguments.only):
        reason = data.missing()
        if reason:
            print(f"skipped {data.name}: {reason}", file=sys.stderr)
            continue
        epsilons = FEW if data in REVIEWS else arguments.epsilons
        results.append(repeat(data, arguments.splits, epsilons, known, arguments.releases))
        said = f"{data.name}: {results[-1]['seconds']:.1f} s a split"
        print(said, file=sys.stderr, flush=True)
    return results


def parsed() -> argparse.Namespace:
    parser = make_parser(__doc__, quick="wind, one split, epsilon = 4")
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--part", choices=[*PARTS, *FIGURES], action="append")
    parser.add_argument("--only", help="one data set")
    parser.add_argument("--releases", action="store_true", help="one release alone: minutes")
    parser.add_argument("--epsilons", type=float, nargs="+", default=EPSILONS)
    parser.add_argument("--rivals", type=Path, action="append", default=[], help="JSON of theirs")
    arguments = parser.parse_args()
    arguments.epsilons = tuple(arguments.epsilons)
    if arguments.quick:
        arguments.splits, arguments.epsilons = 1, (4.0,)
        arguments.part, arguments.only = ["table1"], "wind"
    return arguments


def main() -> None:
    arguments = parsed()
    accept_seeds()
    known = read_rivals(arguments.rivals)
    for name in arguments.part or [*PARTS, *FIGURES]:
        if name in FIGURES:
            script, picture = FIGURES[name]
            results = script.repeat(arguments.splits, arguments.only)
            write_json(arguments.output / f"adaptation_{name}.json", results)
            if results:
                write_figure(arguments.output / picture, script.figure(results))
        elif results := part(name, arguments, known):
            write_json(arguments.output / f"adaptation_{name}.json", results)
            found = [] if arguments.releases else verdicts(results)
            print(tables(results), *found, sep="\n\n", end="\n\n", flush=True)
    if "table1" in (arguments.part or PARTS):
        print(*(f"{name} is absent: {reason}" for name, reason in ABSENT.items()), sep="\n")


if __name__ == "__main__":
    main()
