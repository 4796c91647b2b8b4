"""Figure 1 of Kohen and Sheffet: Algorithm 1, not private, on Gaussians in 500 dimensions.

The source is N(0, I); the target has standard deviation 0.02 in 10 coordinates, and the true
halfspace, over those alone, is 0 on exactly alpha = 1 % of it. Panels: loss on the target, number
of rounds, loss along the run. A run ends as the paper's do: once the loss is at most 2 alpha, or
when the mean loss of 200 rounds is not 1 % below that of the best 200 before them. (The caption
says "0.01". As a difference rather than a share, that would end every run whose loss starts below
0.05, and no such run could take 1,200 rounds.)

Losses on the target are exact, by Owen's T function. Beside them: the constant hypothesis 1, whose
loss is alpha, so that the paper's criterion is one that the trivial rival meets; and the same
learner on all n records at once, without a single round.

Run `python benches/papers/kohen_sheffet_fig1.py`: sizes 1, 3, 6, 9 and 14 * 10**4, 3 repetitions,
about a quarter of an hour; `--full` for the paper's 50 repetitions of all sizes, `--cold` for a
learner that, as the paper's, forgets its last solution, `--eta theory` for the step size 3 alpha /
2, `--speed` for a comparison with scikit-learn, `--quick` for a small instance in seconds.
"""

from __future__ import annotations

import argparse
import math
import time
import warnings
from contextlib import suppress
from dataclasses import asdict, dataclass
from statistics import NormalDist, fmean, pstdev
from typing import Any

import numpy as np
from _report import accept_seeds, make_parser, write_files
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy.special import owens_t
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC

from hdp_fast.learners import LinearSeparator, SeparatorResult
from hdp_fast.transfer import SubsampleTestReweigh
from hdp_fast.weights import DenseWeights

SIZES = (10_000, 30_000, 60_000, 90_000, 140_000)
ALL_SIZES = tuple(range(10_000, 150_000, 10_000))
BETA, WINDOW, IMPROVEMENT = 0.05, 200, 0.01
PAPER = {"loss at most 2 alpha from n": 90_000, "rounds": [1200, 1300], "repetitions": 50}
Bits = NDArray[np.uint8]
Floats = NDArray[Any]


@dataclass(frozen=True)
class Setting:
    """The two populations and the constants of the algorithm."""

    d: int = 500
    k: int = 10
    sigma: float = 0.02
    alpha: float = 0.01
    eta: float = 0.01 / 8
    most_rounds: int = 10_000
    warm: bool = True

    @property
    def draws(self) -> int:
        """As the paper's subsamples, but for ln(0.05 / T), which is printed upside down."""
        return math.ceil((self.d + math.log(self.most_rounds / BETA)) / self.alpha)


@dataclass(frozen=True)
class Problem:
    """A sample of the source, and the truth."""

    X: Floats
    y: Bits
    weights: Floats
    bias: float
    setting: Setting

    def loss(self, found: SeparatorResult) -> float:
        """Exact error on the target: how often two correlated Gaussians differ in sign."""
        scale = np.ones(self.setting.d)
        scale[: self.setting.k] = self.setting.sigma
        a, b = self.weights * scale, found.weights * scale
        return disagreement(a, self.bias, b, found.bias)


def main() -> None:
    """Run what was asked for, print a table, write the figure and its numbers."""
    arguments = parsed()
    accept_seeds()
    setting = Setting(warm=not arguments.cold)
    sizes, repetitions = SIZES, 3
    if arguments.full:
        sizes, repetitions = ALL_SIZES, 50
    if arguments.quick:
        small = Setting(d=40, k=3, alpha=0.05, eta=0.05 / 8, sigma=0.03, most_rounds=50)
        setting, sizes, repetitions = small, (300, 1_000), 2
    if arguments.eta == "theory":
        setting = Setting(**{**asdict(setting), "eta": 1.5 * setting.alpha})
    if arguments.speed:
        speed(setting, arguments.speed, arguments.n[0] if arguments.n else 90_000)
        return
    sizes, repetitions = arguments.n or sizes, arguments.repetitions or repetitions
    runs = []
    for n in sizes:
        runs.append([run(setting, n, seed) for seed in range(repetitions)])
        show(n, runs[-1], header=len(runs) == 1)
    report = {"setting": asdict(setting), "draws": setting.draws, "paper": PAPER, "runs": runs}
    report["constant hypothesis"] = setting.alpha
    picture = figure(setting, sizes, runs)
    files = write_files(arguments.output, "kohen_sheffet_fig1", report, picture)
    trivial = f"has loss {setting.alpha:g}, below the criterion {2 * setting.alpha:g} of the paper"
    print(f"\nThe constant hypothesis {trivial}.")
    print("Paper: loss at most 2 alpha from n = 90,000, in 1,200 to 1,300 rounds.")
    print(files)


def parsed() -> argparse.Namespace:
    """The command line."""
    parser = make_parser(__doc__, quick="a small instance")
    parser.add_argument("--full", action="store_true", help="all sizes, 50 repetitions: hours")
    parser.add_argument("--cold", action="store_true", help="a learner without memory: 4x slower")
    parser.add_argument("--eta", choices=["paper", "theory"], default="paper")
    parser.add_argument("--n", type=int, nargs="+", help="other sizes")
    parser.add_argument("--repetitions", type=int)
    text = "compare with LinearSVC, this many rounds (10): about a minute each"
    parser.add_argument("--speed", type=int, nargs="?", const=10, metavar="ROUNDS", help=text)
    return parser.parse_args()


def sample(setting: Setting, n: int, seed: int, dtype: type = np.float32) -> Problem:
    """A sample of n records of the source and a random truth."""
    rng = np.random.default_rng([seed, n])
    X = rng.standard_normal((n, setting.d), dtype=np.float32).astype(dtype, copy=False)
    weights = np.zeros(setting.d)
    weights[: setting.k] = rng.standard_normal(setting.k)
    weights /= np.linalg.norm(weights)
    bias = setting.sigma * NormalDist().inv_cdf(1 - setting.alpha)
    y = (X @ weights.astype(dtype) >= -bias).astype(np.uint8)
    return Problem(X, y, weights, bias, setting)


def disagreement(a: Floats, a_bias: float, b: Floats, b_bias: float) -> float:
    """Probability that <a, z> + a_bias and <b, z> + b_bias differ in sign, z standard normal."""
    a_norm, b_norm = float(np.linalg.norm(a)), float(np.linalg.norm(b))
    h, k = a_bias / a_norm, b_bias / b_norm
    r = min(1.0, float(a @ b) / (a_norm * b_norm))
    s = max(math.sqrt(1 - r * r), 1e-12)
    between = 2 * owens_t(h, (k - r * h) / (h * s)) + 2 * owens_t(k, (h - r * k) / (k * s))
    return float(between + (h * k < 0))


class Watched(LinearSeparator):
    """The learner, and what it found last."""

    found: SeparatorResult

    def learn_indices(self, *arguments: Any, **given: Any) -> SeparatorResult:
        """As LinearSeparator."""
        self.found = super().learn_indices(*arguments, **given)
        return self.found


class Stalled(Exception):
    """The early stopping of the paper's experiments."""


class Target:
    """Answers with the exact loss of what was learned last, and stops a run that stalls."""

    def __init__(self, problem: Problem, learner: Watched):
        self.problem, self.learner = problem, learner
        self.losses: list[float] = []

    def query(self, g: object, tau: float) -> float:
        """The loss, whose formula needs no sample for g."""
        self.losses.append(self.problem.loss(self.learner.found))
        if stalled(self.losses):
            raise Stalled
        return self.losses[-1]


def run(setting: Setting, n: int, seed: int) -> dict[str, Any]:
    """One run of Algorithm 1 until it converges or stops early."""
    problem, learner = sample(setting, n, seed), Watched(warm=setting.warm)
    target = Target(problem, learner)
    criterion = 2 * setting.alpha
    # SubsampleTestReweigh accepts at three times its alpha.
    model = SubsampleTestReweigh(
        learner,
        alpha=criterion / 3,
        eta=setting.eta,
        rounds=setting.most_rounds,
        draws=setting.draws,
        schedule="every",
        epsilon=math.inf,
    )
    begun = time.perf_counter()
    with suppress(Stalled):
        model.fit(problem.X, problem.y, target, random_state=seed)
    seconds = time.perf_counter() - begun
    losses = target.losses[: setting.most_rounds]
    return {
        "n": n,
        "seed": seed,
        "converged": losses[-1] <= criterion,
        "loss": losses[-1],
        "rounds": len(losses),
        "seconds": seconds,
        "all at once": problem.loss(LinearSeparator().learn(problem.X, problem.y)),
        "losses": [round(loss, 5) for loss in losses],
    }


def stalled(losses: list[float]) -> bool:
    """Whether the last window, just completed, is no better than the best of those before it."""
    if len(losses) % WINDOW or len(losses) < 2 * WINDOW:
        return False
    means = [fmean(losses[end - WINDOW : end]) for end in range(WINDOW, len(losses) + 1, WINDOW)]
    return means[-1] > (1 - IMPROVEMENT) * min(means[:-1])


def speed(setting: Setting, count: int, n: int) -> None:
    """The same rounds with our learner and with scikit-learn's, on the same float64 subsamples."""
    problem = sample(setting, n, 0, np.float64)
    rng = np.random.default_rng([0, n, 1])
    ours, theirs = LinearSeparator(), LinearSVC(C=1e30, dual=False, max_iter=1000)
    warnings.simplefilter("ignore", ConvergenceWarning)
    weights = DenseWeights(n, math.nextafter(1 / n, 1), setting.eta)
    print(
        f"n = {n:,}, {setting.draws:,} draws, d = {setting.d}; seconds a round, all steps included"
    )
    print(f"{'round':>5}{'ours':>9}{'errors':>8}{'LinearSVC':>11}{'errors':>8}{'ratio':>9}")
    totals = [0.0, 0.0]
    for number in range(1, count + 1):
        start = time.perf_counter()
        indices = weights.draw(setting.draws, random_state=rng)
        drawn = time.perf_counter()
        wrong = ours.learn_indices(problem.X, problem.y, indices).predict(problem.X) != problem.y
        weights.update(wrong)
        learned = time.perf_counter()
        theirs.fit(problem.X[indices], problem.y[indices])
        others = theirs.predict(problem.X) != problem.y
        seconds = learned - start, time.perf_counter() - learned + drawn - start
        totals = [total + second for total, second in zip(totals, seconds, strict=True)]
        errors = [int(outcome[np.unique(indices)].sum()) for outcome in (wrong, others)]
        print(
            f"{number:>5}{seconds[0]:>9.3f}{errors[0]:>8}{seconds[1]:>11.2f}{errors[1]:>8}"
            f"{seconds[1] / seconds[0]:>9.0f}",
            flush=True,
        )
    print(f"all  {totals[0]:>9.3f}{'':>8}{totals[1]:>11.2f}{'':>8}{totals[1] / totals[0]:>9.0f}")


def show(n: int, runs: list[dict[str, Any]], *, header: bool) -> None:
    """A line of the table."""
    if header:
        titles = ("n", "converged", "loss", "deviation", "rounds", "deviation", "seconds")
        print("".join(f"{title:>11}" for title in titles) + f"{'all at once':>13}")
    mean = {key: fmean(outcome[key] for outcome in runs) for key in ("loss", "rounds", "seconds")}
    spread = {key: pstdev(outcome[key] for outcome in runs) for key in ("loss", "rounds")}
    done = f"{sum(outcome['converged'] for outcome in runs)} of {len(runs)}"
    print(
        f"{n:>11,}{done:>11}{mean['loss']:>11.4f}{spread['loss']:>11.4f}{mean['rounds']:>11.0f}"
        f"{spread['rounds']:>11.0f}{mean['seconds']:>11.1f}"
        f"{fmean(outcome['all at once'] for outcome in runs):>13.4f}",
        flush=True,
    )


def figure(setting: Setting, sizes: Any, runs: list[list[dict[str, Any]]]) -> Figure:
    """The paper's three panels."""
    drawn = Figure(figsize=(15, 4.2), layout="constrained")
    loss, count, along = drawn.subplots(1, 3)
    for axes, key in ((loss, "loss"), (count, "rounds")):
        values = [[outcome[key] for outcome in some] for some in runs]
        spread = [pstdev(some) for some in values]
        axes.errorbar(sizes, [fmean(some) for some in values], spread, marker="o", label="ours")
        axes.set_xlabel("records n")
    at_once = [fmean(outcome["all at once"] for outcome in some) for some in runs]
    loss.plot(sizes, at_once, marker="s", ls=":", label="all records at once, no rounds")
    for n, some in zip(sizes, runs, strict=True):
        along.plot(some[0]["losses"], label=f"n = {n:,}", lw=0.8)
    for axes in (loss, along):
        axes.axhline(2 * setting.alpha, color="black", ls="--", label="2 alpha: the criterion")
        axes.axhline(setting.alpha, color="grey", ls="--", label="alpha: the constant hypothesis")
        axes.set_yscale("log")
        axes.set_ylabel("loss on the target")
    if setting.d == Setting.d:
        count.axhspan(*PAPER["rounds"], color="grey", alpha=0.3, label="paper, n from 90,000")
        loss.axvline(PAPER["loss at most 2 alpha from n"], color="grey", lw=0.8, label="paper")
    count.set_ylabel("rounds until convergence or early stopping")
    along.set_xlabel("round")
    titles = ("(a) loss on T", "(b) rounds", "(c) loss on T along the first run")
    for axes, title in zip((loss, count, along), titles, strict=True):
        axes.set_title(title)
        axes.legend(fontsize="small")
    return drawn


if __name__ == "__main__":
    main()
