"""A panel's model, calibrated by agents of the target: real people, and how far it may go wrong.

The four problems of self_selection.py, with the same halves: half of the target, drawn at random,
plays the agents, and error, log loss and AUC are measured on the other half. The agents' epsilon is
the curator's; delta is 1e-6. What is compared:

source alone            the model that the agents calibrate: of the censuses DP-SGD with the
                        settings of census_logistic.py; of the small panels (training programme,
                        401(k)) logistic regression that protects nobody
source alone, private   for the small panels: DP-SGD without settings, on the bits of their schema
calibrated              transfer.calibrate with its defaults, slope and intercept, all agents
calibrated, isotonic    the same with a monotone map
agents alone            local SGD (learn_by_descent) on the features of the private model
target, logistic        logistic regression of the agents' half, which protects nobody

Priors, shares and thresholds are the defaults. They were settled on made-up
populations and on random halves 1000 to 1005 of the problems; the table has 0 to 9.
The confidence and tolerance of the safeguard are the exception: they were chosen among eleven pairs
with a look at the 401(k) rows of the table itself, which are therefore a little too good.

Run `HDP_FAST_DATA=FOLDER python benches/papers/calibration.py`: some minutes.

`python benches/papers/calibration.py --simulate 1000` needs no data. Each made-up population has
scores and a truth of its own: base rates from .01 to .99, log-odds that are right already, shifted,
too steep or too flat, bent, reversed or unrelated to the label; 100 to 100,000 agents, epsilon from
.25 to 4. It prints how much more log loss than before the calibrated model has, exactly, for its
population: the worst cases and the distribution, and the same for the fitted slope and intercept
without the safeguards.
"""

from __future__ import annotations

import math
import time
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
from self_selection import DELTA, PROBLEMS, Floats, People, Problem, ScoreResult, scores
from sklearn.linear_model import LogisticRegression

from hdp_fast import transfer
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
    for number in range(repetitions):
        rng = np.random.default_rng(number)
        order, half = rng.permutation(len(target.y)), len(target.y) // 2
        agents, test = target.part(order[:half]), target.part(order[half:])
        for row in Repetition(problem, source, agents, test, rng).rows(epsilons):
            table.setdefault((row.name, row.epsilon), []).append(row.scores)
    return {
        "name": problem.name,
        "problem": problem.title,
        "agents": half,
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


# Made-up people -----------------------------------------------------------------------------------


TRUTHS = ("right", "shifted", "sloped", "bent", "reversed", "unrelated")
PEOPLE = 100_000


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


def simulate(rng: np.random.Generator, method: Any) -> Fit:
    population = make_population(rng)
    count, epsilon = int(10 ** rng.uniform(2, 5)), float(rng.choice([0.25, 0.5, 1.0, 2.0, 4.0]))
    chosen = rng.integers(0, PEOPLE, count)
    labels = rng.random(count) < population.rates[chosen]
    agents = Agents(population.scores[chosen, None], labels, epsilon=epsilon)
    result = transfer.calibrate(lambda X: X[:, 0], agents, method=method, random_state=rng)
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


def simulate_all(count: int, method: str, seed: int) -> dict[str, Any]:
    """What so many simulated calibrations show."""
    rng = np.random.default_rng(seed)
    fits = sorted((simulate(rng, method) for _ in range(count)), key=lambda fit: -fit.behind)
    behind = np.array([fit.behind for fit in fits])
    shares = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)
    return {
        "method": method,
        "fits": count,
        "worst": fits[0].behind,
        "above limit": int((behind > LIMIT).sum()),
        "unguarded above limit": sum(fit.unguarded > LIMIT for fit in fits),
        "mean": float(behind.mean()),
        "mean unguarded": float(np.mean([fit.unguarded for fit in fits])),
        "quantiles": dict(zip(shares, np.quantile(behind, shares).tolist(), strict=True)),
        "outcomes": {
            outcome: sum(fit.outcome == outcome for fit in fits)
            for outcome in ("calibrated", "no evidence", "worse when checked")
        },
        "worst fits": [fit._asdict() for fit in fits[:5]],
    }


def show_simulation(result: dict[str, Any]) -> str:
    quantiles = ", ".join(
        f"{share:.0%}: {value:+.4f}" for share, value in result["quantiles"].items()
    )
    lines = [
        f"{result['method']}: {result['fits']:,} fits; log loss less that of the model as it was",
        f"  worst {result['worst']:+.4f}; above {LIMIT}: {result['above limit']} "
        f"(fitted slope and intercept: {result['unguarded above limit']})",
        f"  mean {result['mean']:+.4f} (fitted: {result['mean unguarded']:+.4f})",
        f"  quantiles {quantiles}",
        f"  outcomes {result['outcomes']}",
    ]
    for fit in result["worst fits"]:
        parts = f"N = {fit['agents']:,}, epsilon = {fit['epsilon']:g}, base rate {fit['base']:.3f}"
        lines.append(f"  {fit['behind']:+.4f} {fit['truth']}, {parts}, step {fit['step']:.2f}")
    return "\n".join(lines)


def main() -> None:
    parser = make_parser(
        __doc__, quick="one repetition, epsilon = 1", repetitions=10, printing=True, writing=False
    )
    parser.add_argument("--only", choices=[problem.name for problem in PROBLEMS])
    parser.add_argument("--epsilon", type=float, nargs="+", default=[1.0])
    parser.add_argument("--simulate", type=int, metavar="FITS", help="made-up populations instead")
    parser.add_argument("--method", choices=METHODS, default="logistic", help="of --simulate")
    parser.add_argument("--seed", type=int, default=0, help="of --simulate")
    arguments = parser.parse_args()
    accept_seeds()
    if arguments.simulate:
        result = simulate_all(arguments.simulate, arguments.method, arguments.seed)
        print_json(result) if arguments.json else print(show_simulation(result))
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
