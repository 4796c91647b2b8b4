"""Draws the figures of the guides.

docs/figures/members.svg: how the number of members moves the accuracy of private labels.
docs/figures/epsilon.svg: how epsilon and the number of records move that of a private linear model.
docs/figures/liars.svg: what epsilon hides of a person, and what one liar weighs for it.

python docs/tools/draw_guides.py takes about a minute.
"""

from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from hdp_fast import labels, learners, local

FIGURES = Path(__file__).parents[1] / "figures"
EPSILONS = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0)
RUNS = 5
TICKS = (50, 100, 200, 500, 1_000, 2_000)
Examples = tuple[np.ndarray, np.ndarray]


def patients(n: int, rng: np.random.Generator) -> np.ndarray:
    """Public rows of the guide on private labels: age, pressure, smoker."""
    age = rng.integers(18, 90, n)
    return np.column_stack([age, rng.normal(110 + 0.4 * age, 15), rng.random(n) < 0.3])


def customers(n: int, rng: np.random.Generator) -> Examples:
    """Encoded customers of the guide on private gradients."""
    age, visits, own = rng.integers(18, 90, n), rng.poisson(4, n), rng.random(n) < 0.6
    income = rng.lognormal(3.6, 0.5, n)
    score = (age - 50) / 20 + (visits - 4) / 2 + own + rng.logistic(0, 0.5, n)
    numbers = [(age - 54) / 36, (income.clip(0, 200) - 100) / 100, (visits.clip(0, 20) - 10) / 10]
    return np.column_stack([*numbers, own, np.ones(n)]), (score > 1.3).astype(np.uint8)


def draw_members(axes: Axes) -> None:
    """Accuracy and flips of labels by the number of members, as suggest finds them."""
    promise = {"delta": 1e-6, "queries": 300, "classes": [0, 1]}
    rows = patients(300, np.random.default_rng(3))
    for epsilon, style in ((0.5, ":"), (1.0, "-"), (2.0, "--")):
        tried = labels.suggest(GaussianNB(), rows, n=30_000, epsilon=epsilon, **promise)
        accuracy = [(each.members, each.accuracy) for each in tried.candidates]
        axes.plot(*zip(*accuracy, strict=True), f"k{style}o", ms=3, label=f"epsilon = {epsilon:g}")
    axes.axhline(tried.constant, color="0.6", lw=1)
    axes.annotate("constant", (60, tried.constant + 0.01), color="0.4")
    axes.set(xlabel="members", ylabel="accuracy on public rows", xscale="log")
    axes.set_xticks(TICKS, [f"{tick:,}" for tick in TICKS])
    axes.minorticks_off()
    axes.legend(frameon=False)


def draw_epsilon(axes: Axes) -> None:
    """Accuracy of a private linear model by epsilon, for three numbers of records."""
    rng = np.random.default_rng(1)
    new, truth = customers(20_000, rng)
    shape = {"loss": "logistic", "steps": 1_000, "batch_size": 500, "radius": 30}
    for n, style in ((1_000, ":"), (5_000, "--"), (20_000, "-")):
        X, y = customers(n, rng)
        means = []
        for epsilon in EPSILONS:
            sgd = learners.PrivateSGD(epsilon=epsilon, delta=1e-6, norm_bound=5**0.5, **shape)
            runs = [(sgd.learn(X, y).predict(new) == truth).mean() for _ in range(RUNS)]
            means.append(np.mean(runs))
        axes.plot(EPSILONS, means, f"k{style}o", ms=3, label=f"{n:,} records")
    rivals = {
        "not private": LogisticRegression().fit(X, y).score(new, truth),
        "constant": max(truth.mean(), 1 - truth.mean()),
    }
    for name, height in rivals.items():
        axes.axhline(height, color="0.6", lw=1)
        axes.annotate(name, (0.17, height + 0.005), color="0.4")
    axes.set(xlabel="epsilon", ylabel="accuracy on later customers", xscale="log")
    axes.set_xticks(EPSILONS, [f"{epsilon:g}" for epsilon in EPSILONS])
    axes.minorticks_off()
    axes.legend(frameon=False, loc="lower right", bbox_to_anchor=(1, 0.1))


def draw_liars(axes: Axes) -> None:
    """What an attacker learns from an answer, and how many people one liar weighs, by epsilon."""
    epsilons = np.geomspace(0.1, 8, 200)
    weights = np.array([local.largest_distortion(each, reports=1, liars=1) for each in epsilons])
    axes.plot(epsilons, 1 / weights, "k-")
    axes.annotate("an attacker's advantage", (1.6, 0.55), color="0.2")
    axes.set(xlabel="epsilon of an answer", ylabel="advantage", xscale="log", ylim=(0, 1.05))
    axes.set_xticks([0.1, 0.25, 0.5, 1, 2, 4, 8], ["0.1", "0.25", "0.5", "1", "2", "4", "8"])
    axes.minorticks_off()
    other = axes.twinx()
    other.plot(epsilons, weights, "k--")
    other.annotate("what one liar weighs", (0.14, 15.5), color="0.2")
    other.set(ylabel="people", ylim=(0, 21))
    other.spines["top"].set_visible(False)


def main() -> None:
    """Draws the figures, dark on light."""
    mpl.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "guides", "font.size": 10})
    figures = {"members": draw_members, "epsilon": draw_epsilon, "liars": draw_liars}
    for name, draw in figures.items():
        figure, axes = plt.subplots(figsize=(7, 3.6))
        draw(axes)
        axes.spines[["top", "right"]].set_visible(False)
        metadata = {"Date": None}
        figure.savefig(FIGURES / f"{name}.svg", bbox_inches="tight", metadata=metadata)
        plt.close(figure)


if __name__ == "__main__":
    main()
