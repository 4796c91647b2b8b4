"""Figure 2 of Kohen and Sheffet: Subsample-Test-Reweigh with online SGD, not private.

200 dimensions; the target has standard deviation 0.4 in 6 of them and the source 1; the true
ellipse holds 30 % of the target and 0.4 % of the source. Panels: error on the target, number of
rounds, error along the run. A run ends at an error of at most 2 alpha = 0.02 or after its rounds.

"as printed" is the paper's: 10,000 steps a round of length D / (L sqrt(r)), weights by Algorithm 4
(eta = alpha / 8, losses scaled by LD), 1,000 rounds, where the paper says that it halts. Its loss
max{0, label (<w, x> - b)} has no margin: w = 0 loses nothing. We take the hinge loss in a ball
1,000 times as large, whose margin of 1 is then next to nothing; all else scales with the ball.
"printed steps, weights by errors" is Algorithm 2's update instead. "ours" has 300,000 steps a round
and eta = 20 alpha on errors. Rivals: the constant hypothesis; SGD on the source alone, with as many
draws as all our rounds; our learner, and the printed one ("few steps"), on draws from the true
ratio of the densities, which no run knows.

Run `python benches/papers/kohen_sheffet_fig2.py`: ten repetitions, about ten minutes on two cores;
"as printed" at the smallest and the largest n alone, rivals three times. `--quick` for a small
instance in seconds.
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import os
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from statistics import fmean, pstdev
from typing import Any

import numpy as np
from _ellipses import Bits, Ellipses, Floats, Watched, coordinates, diameter, error
from _report import accept_seeds, make_parser, write_files
from matplotlib.figure import Figure

from hdp_fast.transfer import SubsampleTestReweigh

SIZES = (75_000, 100_000, 125_000, 150_000, 175_000, 200_000)
PAPER = {"error at most": 0.02, "rounds": 1_000, "repetitions": 50}
# The ball of the paper's hypotheses, so much larger that a margin of 1 is none.
STRETCHED = 1_000.0


POPULATION = Ellipses(d=200, k=6, source=1.0, target=0.4, inside=0.3)


@dataclass(frozen=True)
class Setting:
    """The populations, and constants of the paper."""

    population: Ellipses = POPULATION
    alpha: float = 0.01
    norm: float = 27.9
    test: int = 50_000
    shorter: int = 1

    @property
    def radius(self) -> float:
        """Of a ball of the paper's diameter."""
        return diameter(self.population.d) / 2

    @property
    def norm_bound(self) -> float:
        """The paper's Lipschitz constant."""
        return math.hypot(self.norm, 1)


@dataclass(frozen=True)
class Variant:
    """How a run learns and reweighs."""

    title: str
    steps: int
    stretched: float
    eta: float
    rounds: int
    errors: bool


VARIANTS = {
    "ours": Variant("ours", 300_000, 100.0, 0.2, 80, errors=True),
    "printed": Variant("as printed", 10_000, STRETCHED, 0.01 / 8, 1_000, errors=False),
    "errors": Variant(
        "printed steps, weights by errors", 10_000, STRETCHED, 0.01 / 8, 1_000, errors=True
    ),
}
RIVALS = ("constant", "source alone", "true ratio", "few steps")
RIVAL_REPETITIONS = 3


class Target:
    """Answers with the error, on a sample of the target, of what was learned last."""

    def __init__(self, learner: Watched, X: Floats, y: Bits):
        self.learner, self.X, self.y = learner, X, y
        self.errors: list[float] = []

    def query(self, g: object, tau: float) -> float:
        """The error, whatever the loss of training was."""
        self.errors.append(error(self.learner.found[-1], self.X, self.y))
        return self.errors[-1]


def main() -> None:
    """Run what was asked for, print a table, write the figure and its numbers."""
    arguments = parsed()
    setting, sizes = Setting(), arguments.n or SIZES
    if arguments.quick:
        setting, sizes, arguments.repetitions = Setting(test=5_000, shorter=20), (10_000, 20_000), 1
    jobs = [
        (setting, name, n, seed) for n in sizes for name, seed in list_jobs(arguments, n, sizes)
    ]
    begun = time.perf_counter()
    os.environ["HDP_FAST_NUM_THREADS"] = "1"
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(os.cpu_count(), mp_context=context) as pool:
        found = [*pool.map(run_of, jobs)]
    runs = {name: [outcome for outcome in found if outcome["name"] == name] for name in VARIANTS}
    rivals = [outcome for outcome in found if outcome["name"] == "rivals"]
    show(setting, sizes, runs, rivals)
    print(f"{time.perf_counter() - begun:.0f} s in all")
    report = {"setting": asdict(setting), "variants": {k: asdict(v) for k, v in VARIANTS.items()}}
    report |= {"paper": PAPER, "runs": runs, "rivals": rivals}
    picture = figure(setting, sizes, runs, rivals)
    print(write_files(arguments.output, "kohen_sheffet_fig2", report, picture))


def list_jobs(arguments: argparse.Namespace, n: int, sizes: Any) -> Iterator[tuple[str, int]]:
    """What runs on samples of this size: all of ours, and of the rest what shows the same."""
    repetitions = arguments.repetitions
    yield from (("ours", seed) for seed in range(repetitions))
    yield from (("rivals", seed) for seed in range(min(RIVAL_REPETITIONS, repetitions)))
    if n in (sizes[0], sizes[-1]):
        yield from ((name, seed) for name in arguments.printed for seed in range(repetitions))


def parsed() -> argparse.Namespace:
    """The command line."""
    parser = make_parser(__doc__, quick="few records, a twentieth of the work", repetitions=10)
    parser.add_argument("--n", type=int, nargs="+", help="other sizes")
    text = "which of the paper's: printed (default), errors"
    choices = ["printed", "errors"]
    parser.add_argument("--printed", nargs="*", choices=choices, default=["printed"], help=text)
    return parser.parse_args()


def run_of(job: tuple[Setting, str, int, int]) -> dict[str, Any]:
    """One run, or the rivals, on one sample."""
    accept_seeds()
    setting, name, n, seed = job
    X, y = setting.population.sample(np.random.default_rng([seed, n]), n, target=False)
    test = setting.population.sample(np.random.default_rng([seed, n, 1]), setting.test, target=True)
    begun = time.perf_counter()
    if name == "rivals":
        found = rivals_of(setting, X, y, test, seed)
    else:
        found = run(setting, VARIANTS[name], X, y, test, seed)
    return {"name": name, "n": n, "seed": seed, "seconds": time.perf_counter() - begun, **found}


def learner_of(setting: Setting, variant: Variant, times: int = 1) -> Watched:
    steps = variant.steps * times // setting.shorter
    radius = variant.stretched * setting.radius
    return Watched(
        loss="hinge",
        steps=steps,
        radius=radius,
        norm_bound=setting.norm_bound,
        errors=variant.errors,
        epsilon=math.inf,
    )


def run(
    setting: Setting, variant: Variant, X: Floats, y: Bits, test: tuple[Floats, Bits], seed: int
) -> dict[str, Any]:
    learner = learner_of(setting, variant)
    target = Target(learner, *test)
    # SubsampleTestReweigh accepts at three times its alpha.
    SubsampleTestReweigh(
        learner,
        alpha=2 * setting.alpha / 3,
        eta=variant.eta,
        rounds=variant.rounds // setting.shorter or 1,
        schedule="every",
        epsilon=math.inf,
    ).fit(X, y, target, random_state=seed)
    errors = target.errors[: len(learner.found)]
    return {
        "error": errors[-1],
        "best": min(errors),
        "rounds": len(errors),
        "errors": [round(outcome, 4) for outcome in errors],
    }


def rivals_of(
    setting: Setting, X: Floats, y: Bits, test: tuple[Floats, Bits], seed: int
) -> dict[str, Any]:
    """What knows no reweighing, and what knows the right one."""
    ours = VARIANTS["ours"]
    once = learner_of(setting, ours)
    many = learner_of(setting, ours, ours.rounds // setting.shorter or 1)
    ratios = setting.population.ratios(X)
    draws = np.random.default_rng(seed).choice(len(X), once.steps, p=ratios)
    alone, right = many.learn(X, y, random_state=seed), once.learn_indices(X, y, draws)
    few = learner_of(setting, VARIANTS["printed"])
    return {
        "source alone": error(alone, *test),
        "true ratio": error(right, *test),
        "few steps": error(few.learn_indices(X, y, draws[: few.steps]), *test),
        "coordinates": coordinates(alone, setting.population.k),
        "constant": float(min(test[1].mean(), 1 - test[1].mean())),
        "inside, source": float(1 - y.mean()),
    }


def show(
    setting: Setting,
    sizes: Any,
    runs: dict[str, list[dict[str, Any]]],
    rivals: list[dict[str, Any]],
) -> None:
    """The table: means, and deviations of the errors."""
    titles = ("n", "error", "deviation", "best", "rounds", "seconds")
    for name, some in runs.items():
        if some:
            print(f"\n{VARIANTS[name].title}\n" + "".join(f"{title:>11}" for title in titles))
        for n in sorted({outcome["n"] for outcome in some}):
            row = columns([outcome for outcome in some if outcome["n"] == n])
            print(
                f"{n:>11,}{row['error']:>11.4f}{row['deviation']:>11.4f}{row['best']:>11.4f}"
                f"{row['rounds']:>11.0f}{row['seconds']:>11.1f}"
            )
    print("\nrivals\n" + "".join(f"{title:>14}" for title in ("n", *RIVALS)))
    for n in sizes:
        some = [outcome for outcome in rivals if outcome["n"] == n]
        print(f"{n:>14,}" + "".join(f"{fmean(e[key] for e in some):>14.4f}" for key in RIVALS))
    found = fmean(outcome["coordinates"] for outcome in rivals)
    inside = fmean(outcome["inside, source"] for outcome in rivals)
    k = setting.population.k
    print(f"\nOf {k} true coordinates, SGD on the source alone has {found:.1f} as its {k} largest.")
    print(f"Inside the ellipse: {inside:.4f} of the source. Paper: error at most 0.02, in about")
    print("1,000 rounds, at every n.")


def columns(some: list[dict[str, Any]]) -> dict[str, float]:
    keys = ("error", "best", "rounds", "seconds")
    means = {key: fmean(outcome[key] for outcome in some) for key in keys}
    return {**means, "deviation": pstdev(outcome["error"] for outcome in some)}


def figure(
    setting: Setting,
    sizes: Any,
    runs: dict[str, list[dict[str, Any]]],
    rivals: list[dict[str, Any]],
) -> Figure:
    """The paper's three panels."""
    drawn = Figure(figsize=(15, 4.2), layout="constrained")
    loss, count, along = drawn.subplots(1, 3)
    for name, some in runs.items():
        if not some:
            continue
        held = sorted({outcome["n"] for outcome in some})
        rows = [columns([outcome for outcome in some if outcome["n"] == n]) for n in held]
        title = VARIANTS[name].title
        spread = [row["deviation"] for row in rows]
        loss.errorbar(held, [row["error"] for row in rows], spread, marker="o", label=title)
        count.plot(held, [row["rounds"] for row in rows], marker="o", label=title)
        for n in (held[0], held[-1]):
            first = next(outcome for outcome in some if outcome["n"] == n)
            along.plot(first["errors"], label=f"{title}, n = {n:,}", lw=0.8)
    for key in RIVALS:
        means = [fmean(outcome[key] for outcome in rivals if outcome["n"] == n) for n in sizes]
        loss.plot(sizes, means, ls=":", marker="s", markersize=3, label=key)
    for axes in (loss, along):
        axes.axhline(2 * setting.alpha, color="black", ls="--", label="2 alpha: the criterion")
        axes.set_ylabel("error on the target")
        axes.set_ylim(bottom=0)
    for axes in (loss, count):
        axes.set_xlabel("records n")
    count.axhline(PAPER["rounds"], color="grey", lw=4, alpha=0.3, label="paper")
    count.set_ylabel("rounds")
    count.set_yscale("log")
    along.set_xlabel("round")
    along.set_xscale("log")
    titles = ("(a) error on T", "(b) rounds", "(c) error on T along the first run")
    for axes, title in zip((loss, count, along), titles, strict=True):
        axes.set_title(title)
        axes.legend(fontsize="x-small")
    return drawn


if __name__ == "__main__":
    main()
