"""A panel's model, calibrated by agents of the target: real people, and how far it may go wrong.

The four problems of self_selection.py, with the same halves: half of the target, drawn at random,
plays the agents, and error, log loss and AUC are measured on the other half. The agents' epsilon is
the curator's; delta is 1e-6. What is compared:

source alone            the model that the agents calibrate: of the censuses DP-SGD with the
                        settings of census_logistic.py; of the small panels (training programme,
                        401(k)) logistic regression that protects no one
source alone, private   for the small panels: DP-SGD without settings, on the bits of their schema
calibrated              transfer.calibrate with its defaults, slope and intercept, all agents
calibrated, isotonic    the same with a monotone map
agents alone            local SGD (learn_by_descent) on the features of the private model
target, logistic        logistic regression of the agents' half, which protects no one

Priors, shares and thresholds are the defaults. They were settled on made-up populations and on
random halves 1000 to 1005 of the problems; the table has 0 to 9.

Run `HDP_FAST_DATA=FOLDER python benches/papers/calibration.py`: some minutes.

`--simulate 5000` takes populations of eight families instead, 2,000 to 100,000 agents, epsilon from
.25 to 4, and prints how much more log loss than before the calibrated model has, exactly, for its
population; and the same for the fitted slope and intercept without the check:

one, two, three     clusters of scores, narrow and wide, where the model is right, shifted, too
                    steep or flat, bent, reversed, or far too sure of a few people
two values, ties    scores that take two, or three to eight values
heavy tails         Cauchy and t scores
mixed               base rates from .01 to .99, log-odds right, shifted, sloped, bent, reversed,
                    unrelated to the label
real                scores of 20 models of the problems' panels, with the labels of their targets;
                    left out without the data

`--gains` prints how much of what could be gained is gained, and `--calls` how many calls of Python
functions a calibration of 9,000 agents takes.
"""

from __future__ import annotations

import math
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from _report import accept_seeds, make_parser, print_json, print_results, select_present
from census_logistic import (
    LOCAL_BATCH,
    LOCAL_CLIP,
    LOCAL_RADIUS,
    METRICS,
    SOURCE,
    signs,
    summarize,
)
from numpy.typing import NDArray
from self_selection import (
    DELTA,
    PROBLEMS,
    Floats,
    People,
    Problem,
    ScoreResult,
    draw_halves,
    scores,
)
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

from hdp_fast import transfer
from hdp_fast.exceptions import UtilityWarning
from hdp_fast.learners import PrivateSGD, score_of
from hdp_fast.local import Agents, learn_by_descent

METHODS = ("logistic", "isotonic")
LIMIT = 0.01


def sigmoid(odds: Floats) -> Floats:
    return 0.5 * (1 + np.tanh(odds / 2))


# Real people --------------------------------------------------------------------------------------


class Row(NamedTuple):
    """A line of the table."""

    name: str
    epsilon: float | None
    scores: ScoreResult


@dataclass(frozen=True)
class Repetition:
    """One random half of the target as agents, the other as test."""

    problem: Problem
    source: People
    agents: People
    test: People
    rng: np.random.Generator

    def rows(self, epsilons: tuple[float, ...]) -> Iterator[Row]:
        """What is compared."""
        share = self.agents.y.mean()
        constant = np.full(len(self.test.y), share)
        yield Row("best constant on the target", None, scores(self.test.y, constant, constant))
        target = LogisticRegression(C=100, max_iter=500).fit(
            self._signs(self.agents), self.agents.y
        )
        yield Row("target, logistic", None, self._score(target, self._signs))
        open_source = None if self.problem.private else self._unprotected()
        if open_source is not None:
            yield Row("source alone", None, self._score(open_source, self._floats))
        for epsilon in epsilons:
            if open_source is not None:
                yield from self._calibrated("", open_source, self._floats, epsilon)
            private = self._private(epsilon)
            name = "" if self.problem.private else ", private"
            yield Row(f"source alone{name}", epsilon, self._score(private, self._signs))
            yield from self._calibrated(name, private, self._signs, epsilon)
            yield Row("agents alone", epsilon, self._agents_alone(epsilon))

    def _calibrated(
        self, name: str, model: Any, features: Callable[[People], Any], epsilon: float
    ) -> Iterator[Row]:
        for method in METHODS:
            agents = Agents(features(self.agents), self.agents.y, epsilon=epsilon)
            result = transfer.calibrate(model, agents, method=method, random_state=self.rng)
            kind = "" if method == "logistic" else ", isotonic"
            yield Row(f"calibrated{name}{kind}", epsilon, self._score(result, features))

    def _unprotected(self) -> LogisticRegression:
        return LogisticRegression(max_iter=500).fit(self._floats(self.source), self.source.y)

    def _private(self, epsilon: float) -> Any:
        X, n = signs(self.source.bits), len(self.source.y)
        learner = PrivateSGD(loss="logistic", epsilon=epsilon, delta=DELTA)
        if self.problem.private:
            learner = SOURCE.calibrate(epsilon=epsilon, n=n)
        return learner.learn(X, self.source.y, random_state=self.rng)

    def _agents_alone(self, epsilon: float) -> ScoreResult:
        agents = Agents(signs(self.agents.bits), self.agents.y, epsilon=epsilon)
        learner = PrivateSGD(
            loss="logistic",
            steps=len(agents) // LOCAL_BATCH,
            batch_size=LOCAL_BATCH,
            radius=LOCAL_RADIUS,
            clip_norm=LOCAL_CLIP,
            epsilon=math.inf,
        )
        return self._score(learn_by_descent(learner, agents, random_state=self.rng), self._signs)

    def _score(self, model: Any, features: Callable[[People], Any]) -> ScoreResult:
        probabilities = sigmoid(score_of(model)(features(self.test)))
        return scores(self.test.y, probabilities, probabilities)

    def _signs(self, people: People) -> NDArray[np.float32]:
        return signs(people.bits)

    def _floats(self, people: People) -> Floats:
        """The schema's numbers in units of the panel, which is not protected here."""
        center, spread = self.source.floats.mean(axis=0), self.source.floats.std(axis=0) + 1e-9
        return np.clip((people.floats - center) / spread, -3, 3)


def repeat(problem: Problem, repetitions: int, epsilons: tuple[float, ...]) -> dict[str, Any]:
    source, target = problem.read()
    table: dict[tuple[str, float | None], list[ScoreResult]] = {}
    start = time.perf_counter()
    for agents, test, rng in draw_halves(target, repetitions):
        for row in Repetition(problem, source, agents, test, rng).rows(epsilons):
            table.setdefault((row.name, row.epsilon), []).append(row.scores)
    return {
        "name": problem.name,
        "problem": problem.title,
        "agents": len(target.y) // 2,
        "repetitions": repetitions,
        "seconds": (time.perf_counter() - start) / repetitions,
        "rows": [
            {"row": name, "epsilon": epsilon, **summarize(rows)}
            for (name, epsilon), rows in table.items()
        ],
    }


def table(result: dict[str, Any]) -> str:
    lines = [
        f"{result['problem']}; {result['agents']:,} agents; "
        f"{result['repetitions']} repetitions of {result['seconds']:.1f} s",
        "",
        "| | epsilon | error | log loss | AUC |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    for row in sorted(result["rows"], key=lambda row: row["epsilon"] or 0):
        cells = " | ".join("{:.4f} ± {:.4f}".format(*row[metric]) for metric in METRICS)
        epsilon = "" if row["epsilon"] is None else f"{row['epsilon']:g}"
        lines.append(f"| {row['row']} | {epsilon} | {cells} |")
    return "\n".join(lines)


# Made-up people, and real scores ------------------------------------------------------------------


TRUTHS = ("right", "shifted", "sloped", "bent", "reversed", "unrelated")
PEOPLE = 50_000
EPSILONS = (0.25, 0.5, 1.0, 2.0, 4.0)


@dataclass(frozen=True)
class Population:
    """Scores of people, and the probability of label 1 of each."""

    truth: str
    scores: Floats
    rates: Floats

    def loss(self, odds: Floats) -> float:
        """The mean log loss of log-odds."""
        return float((np.logaddexp(0.0, odds) - self.rates * odds).mean())


def make_population(rng: np.random.Generator) -> Population:
    """Scores of one of four shapes, labels of one of six truths, a base rate from .01 to .99."""
    spread, size = rng.uniform(0.3, 2.5), PEOPLE
    values = (
        lambda: rng.normal(0, spread, size),
        lambda: rng.gumbel(0, spread, size),
        lambda: np.where(rng.random(size) < 0.8, rng.normal(-4, 1, size), rng.normal(1, 1, size)),
        lambda: rng.choice(rng.normal(0, 2, 8), size),
    )[rng.integers(4)]()
    truth = TRUTHS[rng.choice(len(TRUTHS), p=[0.3, 0.25, 0.2, 0.1, 0.05, 0.1])]
    base = 10 ** rng.uniform(-2, math.log10(0.5))
    base = base if rng.random() < 0.5 else 1 - base
    # The scores of a model that is right but for a shift lie where they give the base rate.
    shift = {"right": 0.0, "shifted": rng.normal(0, 1.5)}.get(truth, rng.normal(0, 1))
    values = values + solve(lambda t: sigmoid(values + t + shift).mean() - base)
    slope = rng.uniform(0.3, 1.7)
    odds = {
        "right": values,
        "shifted": values + shift,
        "sloped": slope * values,
        "bent": np.minimum(values, np.median(values)),
        "reversed": -slope * values,
        "unrelated": 0.0 * values,
    }[truth]
    height = 0.0
    if truth not in ("right", "shifted"):
        height = solve(lambda t: sigmoid(odds + t).mean() - base)
    return Population(truth, values, sigmoid(odds + height))


def solve(rises: Callable[[float], float]) -> float:
    low, high = -30.0, 30.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (low, middle) if rises(middle) > 0 else (middle, high)
    return (low + high) / 2


def make_truth(rng: np.random.Generator, values: Floats) -> Population:
    """Labels whose log-odds are the scores, or shifted, sloped, bent, reversed or unrelated."""
    truth = TRUTHS[rng.integers(len(TRUTHS))]
    shift, slope = rng.normal(0, 1.5), rng.uniform(0.2, 1.7)
    odds = {
        "right": values,
        "shifted": values + shift,
        "sloped": slope * values + shift,
        "bent": np.minimum(values, np.median(values)) + shift,
        "reversed": -slope * values + shift,
        "unrelated": 0.0 * values + shift,
    }[truth]
    return Population(truth, values, sigmoid(odds))


def make_groups(rng: np.random.Generator, count: int, width: float) -> Population:
    """Groups of people with scores of their own, of whom the model may know nothing."""
    groups = rng.choice(count, PEOPLE, p=rng.dirichlet(np.full(count, 0.7)))
    places, truth = rng.normal(0, 3.5, count), ("right", "shifted", "unrelated")[rng.integers(3)]
    off = rng.normal(0, width, PEOPLE)
    odds = {
        "right": places,
        "shifted": places + rng.normal(0, 1.5, count),
        "unrelated": rng.normal(-1, 2, count),
    }[truth]
    return Population(truth, places[groups] + off, sigmoid(odds[groups] + rng.choice([0, 1]) * off))


def make_one(rng: np.random.Generator) -> Population:
    spread = rng.normal(0, 1, PEOPLE) if rng.random() < 0.5 else rng.gumbel(0, 1, PEOPLE)
    return make_truth(rng, rng.normal(0, 2) + rng.uniform(0.1, 3) * spread)


def make_two(rng: np.random.Generator) -> Population:
    if rng.random() < 0.5:
        return make_groups(rng, 2, 10 ** rng.uniform(-2, 0))
    return make_too_sure(
        rng, rng.uniform(0.02, 0.15), rng.uniform(2, 8), rng.uniform(0.05, 0.7),
        float(rng.choice([0, 0.1, 0.3])),
    )  # fmt: skip


def make_too_sure(
    rng: np.random.Generator, share: float, place: float, rate: float, width: float
) -> Population:
    """A model that is far too sure of a few people, and right about the others."""
    few = rng.random(PEOPLE) < share
    values = np.where(few, place, -3.0) + rng.normal(0, width, PEOPLE)
    return Population("too sure", values, np.where(few, rate, 0.05))


def make_heavy(rng: np.random.Generator) -> Population:
    values = rng.standard_cauchy(PEOPLE) if rng.random() < 0.5 else rng.standard_t(2, PEOPLE)
    return make_truth(rng, rng.normal(0, 1) + rng.uniform(0.3, 2) * values)


def make_ties(rng: np.random.Generator) -> Population:
    if rng.random() < 0.5:
        return make_groups(rng, int(rng.integers(3, 9)), 0.0)
    return make_truth(rng, rng.choice(rng.normal(0, 2.5, int(rng.integers(3, 9))), PEOPLE))


FAMILIES: dict[str, Callable[[np.random.Generator], Population]] = {
    "one cluster": make_one,
    "two clusters": make_two,
    "three clusters": lambda rng: make_groups(rng, 3, 10 ** rng.uniform(-2, 0)),
    "two values": lambda rng: make_groups(rng, 2, 0.0),
    "heavy tails": make_heavy,
    "ties": make_ties,
    "mixed": make_population,
}
REAL = "real"


def read_real() -> list[Population]:
    """The targets of the problems, scored by five models of each panel."""
    populations = []
    for problem in select_present(PROBLEMS, None):
        source, target = problem.read()
        center, spread = source.floats.mean(axis=0), source.floats.std(axis=0) + 1e-9
        X, Q = ((people.floats - center) / spread for people in (source, target))
        best = int(np.abs(X.T @ (source.y - source.y.mean())).argmax())
        models: tuple[tuple[str, Any, list[int]], ...] = (
            ("logistic", LogisticRegression(max_iter=500), []),
            ("one column", LogisticRegression(), [best]),
            ("tree", DecisionTreeClassifier(max_depth=3, random_state=0), []),
            ("bayes", GaussianNB(), []),
            ("boosting", HistGradientBoostingClassifier(random_state=0), []),
        )
        for name, model, chosen in models:
            columns = chosen or list(range(X.shape[1]))
            values = score_of(model.fit(X[:, columns], source.y))(Q[:, columns])
            rates = target.y.astype(np.float64)
            populations.append(Population(f"{problem.name}, {name}", values, rates))
    return populations


class Fit(NamedTuple):
    """One simulated calibration."""

    behind: float  # log loss of the result less that of the model as it was
    unguarded: float  # the same of the fitted slope and intercept
    outcome: str
    step: float
    truth: str
    base: float
    agents: int
    epsilon: float


def fit_once(
    population: Population, count: int, epsilon: float, method: Any, rng: np.random.Generator,
    thresholds: Any = None,
) -> Fit:  # fmt: skip
    chosen = rng.integers(0, len(population.scores), count)
    labels = rng.random(count) < population.rates[chosen]
    agents = Agents(population.scores[chosen, None], labels, epsilon=epsilon)
    result = transfer.calibrate(
        lambda X: X[:, 0], agents, method=method, thresholds=thresholds, random_state=rng
    )
    before = population.loss(population.scores)
    fitted = result.fitted[0] * population.scores + result.fitted[1]
    return Fit(
        population.loss(result.apply(population.scores)) - before,
        population.loss(fitted) - before,
        result.outcome,
        result.step,
        population.truth,
        float(population.rates.mean()),
        count,
        epsilon,
    )


def simulate(family: str, number: int, method: str, seed: int, real: list[Population]) -> Fit:
    rng = np.random.default_rng([seed, *map(ord, family), number])
    population = real[number % len(real)] if family == REAL else FAMILIES[family](rng)
    count, epsilon = int(10 ** rng.uniform(math.log10(2_000), 5)), float(rng.choice(EPSILONS))
    return fit_once(population, count, epsilon, method, rng)


def simulate_all(
    count: int, method: str, seed: int, families: list[str] | None = None
) -> list[dict[str, Any]]:
    """What so many simulated calibrations show, in equal numbers of each family."""
    chosen = [*FAMILIES, REAL] if families is None else families
    real = read_real() if REAL in chosen else []
    chosen = [family for family in chosen if family != REAL or real]
    each = math.ceil(count / len(chosen))
    return [
        summarize_fits(family, [simulate(family, i, method, seed, real) for i in range(each)])
        for family in chosen
    ]


def summarize_fits(family: str, fits: list[Fit]) -> dict[str, Any]:
    fits = sorted(fits, key=lambda fit: -fit.behind)
    behind = np.array([fit.behind for fit in fits])
    return {
        "family": family,
        "fits": len(fits),
        "above limit": int((behind > LIMIT).sum()),
        "worst": fits[0].behind,
        "mean gain": -float(behind.mean()),
        "unguarded above limit": sum(fit.unguarded > LIMIT for fit in fits),
        "unguarded worst": max(fit.unguarded for fit in fits),
        "as it was": sum(fit.step == 0 for fit in fits),
        "whole way": sum(fit.step == 1 for fit in fits),
        "worst fits": [fit._asdict() for fit in fits[:3]],
    }


def show_simulation(results: list[dict[str, Any]]) -> str:
    lines = [
        f"| | fits | above {LIMIT} | worst | mean gain | without the check: above {LIMIT}, worst "
        "| as it was / whole way |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for row in results:
        cells = (
            f"{row['fits']:,}", f"{row['above limit']}", f"{row['worst']:+.4f}",
            f"{row['mean gain']:.3f}",
            f"{row['unguarded above limit']}, {row['unguarded worst']:+.2f}",
            f"{row['as it was']} / {row['whole way']}",
        )  # fmt: skip
        lines.append(f"| {row['family']} | {' | '.join(cells)} |")
    for row in results:
        for fit in row["worst fits"]:
            parts = f"N = {fit['agents']:,}, epsilon = {fit['epsilon']:g}, step {fit['step']:.2f}"
            lines.append(f"{row['family']}: {fit['behind']:+.4f} {fit['truth']}, {parts}")
    return "\n".join(lines)


# What is gained -----------------------------------------------------------------------------------


def make_shifted(rng: np.random.Generator, shift: float) -> Population:
    values = rng.normal(0, 1.5, PEOPLE)
    return Population("shifted", values, sigmoid(values + shift))


GAINS: tuple[tuple[str, Callable[[np.random.Generator], Population], int, float], ...] = (
    ("shift of -2", lambda rng: make_shifted(rng, -2.0), 40_000, 1.0),
    ("shift of -.5", lambda rng: make_shifted(rng, -0.5), 40_000, 1.0),
    ("two clusters", lambda rng: make_too_sure(rng, 0.05, 6.0, 0.3, 0.1), 40_000, 4.0),
    ("two values", lambda rng: make_too_sure(rng, 0.05, 6.0, 0.3, 0.0), 40_000, 4.0),
    ("right already", lambda rng: make_shifted(rng, 0.0), 40_000, 1.0),
)


def measure_gains(method: str, fits: int = 20) -> str:
    lines = [
        "| | N | epsilon | could be gained | gained, mean of 20 | least | as it was / whole way |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for name, make, count, epsilon in GAINS:
        possible, results = [], []
        for number in range(fits):
            rng = np.random.default_rng(number)
            population = make(rng)
            truth = np.log(population.rates / (1 - population.rates))
            possible.append(population.loss(population.scores) - population.loss(truth))
            results.append(fit_once(population, count, epsilon, method, rng))
        gains, steps = [-fit.behind for fit in results], [fit.step for fit in results]
        cells = (
            f"{count:,}", f"{epsilon:g}", f"{np.mean(possible):.4f}", f"{np.mean(gains):.4f}",
            f"{min(gains):+.4f}", f"{steps.count(0)} / {steps.count(1)}",
        )  # fmt: skip
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def count_calls() -> str:
    """Calls of Python functions in one calibration, of a linear model and of a function."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(9_000, 3))
    y = rng.random(9_000) < sigmoid(X[:, 0] - 1)
    learner = PrivateSGD(loss="logistic", steps=50, batch_size=50, epsilon=math.inf)
    lines = []
    for name, model in (("a LinearModel", learner.learn(X, y)), ("a function", lambda X: X[:, 0])):
        events: Counter[str] = Counter()
        agents = Agents(X, y, epsilon=1.0)
        sys.setprofile(lambda frame, event, argument, events=events: events.update([event]))
        try:
            transfer.calibrate(model, agents)
        finally:
            sys.setprofile(None)
        lines.append(f"{name}: {events['call']:,} calls of Python functions")
    return "\n".join(lines)


def main() -> None:
    parser = make_parser(
        __doc__, quick="one repetition, epsilon = 1", repetitions=10, printing=True, writing=False
    )
    parser.add_argument("--only", choices=[problem.name for problem in PROBLEMS])
    parser.add_argument("--epsilon", type=float, nargs="+", default=[1.0])
    parser.add_argument("--simulate", type=int, metavar="FITS", help="made-up populations instead")
    parser.add_argument("--family", choices=[*FAMILIES, REAL], nargs="+", help="of --simulate")
    parser.add_argument("--gains", action="store_true", help="what is gained of what could be")
    parser.add_argument("--calls", action="store_true", help="calls of Python in a calibration")
    parser.add_argument("--method", choices=METHODS, default="logistic", help="of --simulate")
    parser.add_argument("--seed", type=int, default=0, help="of --simulate")
    arguments = parser.parse_args()
    accept_seeds()
    # Where few agents leave the model as it was, the tables say so.
    warnings.simplefilter("ignore", UtilityWarning)
    if arguments.gains or arguments.calls:
        print(measure_gains(arguments.method) if arguments.gains else count_calls())
        return
    if arguments.simulate:
        results = simulate_all(
            arguments.simulate, arguments.method, arguments.seed, arguments.family
        )
        print_json(results) if arguments.json else print(show_simulation(results))
        return
    repetitions = 1 if arguments.quick else arguments.repetitions
    epsilons = (1.0,) if arguments.quick else tuple(arguments.epsilon)
    print_results(
        arguments,
        select_present(PROBLEMS, arguments.only),
        lambda problem: repeat(problem, repetitions, epsilons),
        table,
    )


if __name__ == "__main__":
    main()
