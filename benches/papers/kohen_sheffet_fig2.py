"""Figure 2 of Kohen and Sheffet: online SGD on ellipses over Gaussians, not private.

200 dimensions; the target has standard deviation 0.4 in 6 of them and the source 1; the true
ellipse holds 30 % of the target and 0.4 % of the source. The paper says that Subsample-Test-Reweigh
ends at a loss on T of at most 2 alpha = 0.02, in about 1,000 rounds, at every n.

"printed steps in the box" takes what the paper prints, on the source alone: weights and threshold
in [0, 1], the hinge loss without a margin, steps of length D / (L sqrt(r)), and 10,000,000 draws,
as many as 1,000 rounds of 10,000 have. Three things are our inference, since the paper does not say
them and its code is not public: SGD goes on where a round before stopped, the model is the last one
and not the mean, and it begins at 1. (At w = b = 0 this loss is 0, and SGD would stay there.) The
weights are left out: as printed, a round changes them by about 1e-5. "Loss on T" may then be the
hinge loss, which is far below 0.02, or the error, which is not.

"margin in the box" reaches an error of 0.02 otherwise: the minimizer of the squared hinge with a
margin of 1/30 in the same box, on all source records, by L-BFGS-B. The margin was chosen once, at
n = 75,000, by the error on a sample of the target.

With --ball the runs in a ball of the paper's diameter: "ours" has 300,000 steps a round and
eta = 20 alpha on errors; "as printed" has 10,000 steps a round and weights by Algorithm 4
(eta = alpha / 8, losses scaled by LD), in a ball 1,000 times as large, whose margin of 1 is then
next to nothing; "errors" is Algorithm 2's update instead. Rivals: the constant hypothesis; SGD on
the source alone, with as many draws as all our rounds; our learner, and the printed one ("few
steps"), on draws from the true ratio of the densities, which no run knows.

Run `python benches/papers/kohen_sheffet_fig2.py`: ten repetitions of the margin, three of the
printed steps at the smallest and the largest n, some minutes on two cores; --ball takes eight more.
`--quick` for a small instance in seconds.
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
from scipy.optimize import minimize

from hdp_fast.learners import PrivateSGD
from hdp_fast.transfer import SubsampleTestReweigh

SIZES = (75_000, 100_000, 125_000, 150_000, 175_000, 200_000)
PAPER = {"error at most": 0.02, "rounds": 1_000, "repetitions": 50}
# Draws after which the printed run is looked at; shorter runs are the beginnings of longer ones.
DRAWS = (10_000, 100_000, 1_000_000, 10_000_000)
MARGIN = 1 / 30
STARTS = 4
PRINTED_REPETITIONS = 3
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
    runs: dict[str, list[dict[str, Any]]] = {}
    for outcome in found:
        runs.setdefault(outcome["name"], []).append(outcome)
    show(setting, sizes, runs)
    print(f"{time.perf_counter() - begun:.0f} s in all")
    report = {"setting": asdict(setting), "variants": {k: asdict(v) for k, v in VARIANTS.items()}}
    report |= {"paper": PAPER, "runs": runs}
    picture = figure(setting, sizes, runs)
    print(write_files(arguments.output, "kohen_sheffet_fig2", report, picture))


def list_jobs(arguments: argparse.Namespace, n: int, sizes: Any) -> Iterator[tuple[str, int]]:
    """What runs on samples of this size: all of ours, and of the rest what shows the same."""
    repetitions = arguments.repetitions
    is_end = n in (sizes[0], sizes[-1])
    yield from (("margin", seed) for seed in range(repetitions))
    if is_end:
        yield from (("box", seed) for seed in range(min(PRINTED_REPETITIONS, repetitions)))
    if arguments.ball is not None:
        yield from (("ours", seed) for seed in range(repetitions))
        yield from (("rivals", seed) for seed in range(min(RIVAL_REPETITIONS, repetitions)))
        names = arguments.ball if is_end else []
        yield from ((name, seed) for name in names for seed in range(repetitions))


def parsed() -> argparse.Namespace:
    """The command line."""
    parser = make_parser(__doc__, quick="few records, a twentieth of the work", repetitions=10)
    parser.add_argument("--n", type=int, nargs="+", help="other sizes")
    text = "the runs in a ball, too, and which of the paper's: printed, errors"
    parser.add_argument("--ball", nargs="*", choices=["printed", "errors"], help=text)
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
    elif name == "box":
        found = printed_of(setting, X, y, test, seed)
    elif name == "margin":
        found = margin_of(setting, X, y, test)
    else:
        found = run(setting, VARIANTS[name], X, y, test, seed)
    return {"name": name, "n": n, "seed": seed, "seconds": time.perf_counter() - begun, **found}


def printed_of(
    setting: Setting, X: Floats, y: Bits, test: tuple[Floats, Bits], seed: int
) -> dict[str, Any]:
    """Errors and hinge losses on the target, of the source alone with the printed steps."""
    rows = []
    for draws in DRAWS:
        learner = PrivateSGD(
            loss="hinge",
            margin=0.0,
            domain="box",
            low=0,
            high=1,
            start=np.ones(X.shape[1]),
            output="last",
            steps=draws // setting.shorter,
            norm_bound=setting.norm_bound,
            epsilon=math.inf,
        )
        model = learner.learn(X, y, random_state=seed)
        margins = (2.0 * test[1] - 1) * model.scores(test[0])
        hinge = float(np.maximum(0, -margins).mean())
        rows.append((learner.steps, error(model, *test), hinge))
    return {"rows": rows, "error": rows[-1][1]}


def margin_of(setting: Setting, X: Floats, y: Bits, test: tuple[Floats, Bits]) -> dict[str, Any]:
    """The squared hinge's minimizer in the box: weights in units of the margin, up to 30."""
    signs, largest = (2.0 * y - 1).astype(np.float32), 1 / MARGIN

    def value(weights: Floats) -> tuple[float, Floats]:
        slack = np.maximum(0, 1 - signs * (X @ weights.astype(np.float32)))
        gradient = ((slack * signs) @ X).astype(float)
        return float((slack.astype(float) ** 2).mean()) / 2, -gradient / len(y)

    d = X.shape[1] - 1
    fitted = np.append(np.full(d, 0.01), 0.1)
    options = {"maxiter": 100 // setting.shorter + 20, "ftol": 1e-12, "gtol": 1e-12}
    bounds = [(0, largest)] * (d + 1)
    # In single precision a search along a line may fail, and goes on from there.
    for _ in range(STARTS):
        fitted = minimize(
            value, fitted, jac=True, method="L-BFGS-B", bounds=bounds, options=options
        ).x
    wrong = (test[0] @ fitted >= 0) != test[1].astype(bool)
    weights = fitted / largest
    return {"error": float(wrong.mean()), "weights": [float(w) for w in weights]}


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
        weigh_by="errors" if variant.errors else "losses",
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


def show(setting: Setting, sizes: Any, runs: dict[str, list[dict[str, Any]]]) -> None:
    """The tables: means, and deviations of the errors."""
    print("printed steps in the box, source alone")
    print("".join(f"{title:>14}" for title in ("n", "draws", "error on T", "hinge on T")))
    for n in sizes:
        some = [outcome["rows"] for outcome in runs["box"] if outcome["n"] == n]
        for rows in zip(*some, strict=True):
            means = [fmean(row[column] for row in rows) for column in (1, 2)]
            print(f"{n:>14,}{rows[0][0]:>14,}{means[0]:>14.4f}{means[1]:>14.4f}")
    print("\nmargin of 1/30 in the box, source alone")
    titles = ("n", "error on T", "least", "largest", "deviation", "seconds")
    print("".join(f"{title:>12}" for title in titles))
    for n in sizes:
        some = [outcome for outcome in runs["margin"] if outcome["n"] == n]
        errors = [outcome["error"] for outcome in some]
        cells = (fmean(errors), min(errors), max(errors), pstdev(errors))
        seconds = fmean(outcome["seconds"] for outcome in some)
        print(f"{n:>12,}" + "".join(f"{cell:>12.4f}" for cell in cells) + f"{seconds:>12.1f}")
    if "rivals" in runs:
        show_ball(setting, sizes, runs)
    print("Paper: loss on T at most 0.02, in about 1,000 rounds, at every n.")


def show_ball(setting: Setting, sizes: Any, runs: dict[str, list[dict[str, Any]]]) -> None:
    titles = ("n", "error", "deviation", "best", "rounds", "seconds")
    for name in [name for name in VARIANTS if name in runs]:
        some = runs[name]
        print(f"\nball, {VARIANTS[name].title}\n" + "".join(f"{title:>11}" for title in titles))
        for n in sorted({outcome["n"] for outcome in some}):
            row = columns([outcome for outcome in some if outcome["n"] == n])
            print(
                f"{n:>11,}{row['error']:>11.4f}{row['deviation']:>11.4f}{row['best']:>11.4f}"
                f"{row['rounds']:>11.0f}{row['seconds']:>11.1f}"
            )
    rivals = runs["rivals"]
    print("\nball, rivals\n" + "".join(f"{title:>14}" for title in ("n", *RIVALS)))
    for n in sizes:
        some = [outcome for outcome in rivals if outcome["n"] == n]
        print(f"{n:>14,}" + "".join(f"{fmean(e[key] for e in some):>14.4f}" for key in RIVALS))
    found = fmean(outcome["coordinates"] for outcome in rivals)
    inside = fmean(outcome["inside, source"] for outcome in rivals)
    k = setting.population.k
    print(f"\nOf {k} true coordinates, SGD on the source alone has {found:.1f} as its {k} largest.")
    print(f"Inside the ellipse: {inside:.4f} of the source.")


def columns(some: list[dict[str, Any]]) -> dict[str, float]:
    keys = ("error", "best", "rounds", "seconds")
    means = {key: fmean(outcome[key] for outcome in some) for key in keys}
    return {**means, "deviation": pstdev(outcome["error"] for outcome in some)}


def figure(setting: Setting, sizes: Any, runs: dict[str, list[dict[str, Any]]]) -> Figure:
    """Error by the number of records, and of the printed run by the number of draws."""
    drawn = Figure(figsize=(10, 4.2), layout="constrained")
    loss, along = drawn.subplots(1, 2)
    titles = {"margin": "margin of 1/30 in the box, source alone"}
    titles |= {name: f"ball, {variant.title}" for name, variant in VARIANTS.items()}
    for name in [name for name in titles if name in runs]:
        held = sorted({outcome["n"] for outcome in runs[name]})
        errors = [[o["error"] for o in runs[name] if o["n"] == n] for n in held]
        spread = [pstdev(some) for some in errors]
        means = [fmean(some) for some in errors]
        loss.errorbar(held, means, spread, marker="o", label=titles[name])
    for key in RIVALS if "rivals" in runs else ():
        means = [fmean(o[key] for o in runs["rivals"] if o["n"] == n) for n in sizes]
        loss.plot(sizes, means, ls=":", marker="s", markersize=3, label=f"ball, {key}")
    for n in sorted({outcome["n"] for outcome in runs["box"]}):
        rows = next(outcome["rows"] for outcome in runs["box"] if outcome["n"] == n)
        draws, errors, hinges = zip(*rows, strict=True)
        along.plot(draws, errors, marker="o", label=f"error on T, n = {n:,}")
        along.plot(draws, hinges, ls=":", marker="s", label=f"hinge loss on T, n = {n:,}")
    for axes in (loss, along):
        axes.axhline(2 * setting.alpha, color="black", ls="--", label="2 alpha: the criterion")
    loss.set(xlabel="records n", ylabel="error on the target", ylim=(0, None))
    along.set(xlabel="draws", ylabel="on the target", xscale="log", yscale="log")
    loss.set_title("(a) error on T")
    along.set_title("(b) printed steps in the box, source alone")
    for axes in (loss, along):
        axes.legend(fontsize="x-small")
    return drawn


if __name__ == "__main__":
    main()
