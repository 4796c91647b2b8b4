"""Kasiviswanathan et al. 2011, Claims 5.9 and 5.10: local randomizers simulated by queries.

For several randomizers, on finite distributions: the statistical distance between simulated and
true reports, exact, by enumeration, the worst of all patterns of errors +-tau that an oracle may
make (of a thousand, where there are too many); beside the proved bound, and beta, which it must
keep. For reports about fresh entries it is the sum of their distances, but for runs in which no
candidate is accepted, which the bound includes. Then how many candidates are looked at for a
report, in the worst case of the same errors, beside its bound and the paper's 2 exp(epsilon); and
how many queries a run really asks for each report, since nothing is asked twice.

Run `python benches/papers/sq_simulation.py`: some seconds; `--quick` for two epsilons.
The table is printed; a figure and its numbers are written to build/.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from _report import accept_seeds, make_parser, write_files
from matplotlib.figure import Figure
from numpy.typing import NDArray

from hdp_fast import local

EPSILONS = (0.1, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0)
BETA, APPLICATIONS = 0.1, 4
Floats = NDArray[np.float64]
Kind = Callable[[float], local.Randomizer]

SINGLE: dict[str, tuple[Kind, tuple[float, ...]]] = {
    "binary, one record": (lambda e: local.BinaryResponse(e, (0, 1)), (0, 1)),
    "binary, halves": (lambda e: local.BinaryResponse(e, (0, 1)), (1, 1)),
    "4-ary, no record at the reference": (lambda e: local.KaryResponse(4, e), (0, 1, 1, 1)),
    "8-ary": (lambda e: local.KaryResponse(8, e), (1, 2, 1, 1, 3, 1, 1, 1)),
}
JOINT: dict[str, tuple[int, tuple[float, ...]]] = {
    "two binary on one entry": (2, (1, 3)),
    "three binary on one entry": (3, (1, 3)),
}


def main() -> None:
    """Enumerate, print a table, write the figure and its numbers."""
    arguments = make_parser(__doc__, quick="two epsilons").parse_args()
    accept_seeds()
    epsilons = (0.5, 1.0) if arguments.quick else EPSILONS
    rows = [single(name, epsilon) for name in SINGLE for epsilon in epsilons]
    rows += [joint(name, epsilon) for name in JOINT for epsilon in epsilons]
    show(rows)
    report = {"beta": BETA, "applications": APPLICATIONS, "rows": rows}
    files = write_files(arguments.output, "sq_simulation", report, figure(rows))
    print(f"\n{files}")


def table_of(randomizer: local.Randomizer, inputs: int) -> Floats:
    """Probabilities of all reports on all inputs, (inputs, reports)."""
    low, high = randomizer.report_range
    reports = np.arange(low, high + 1)
    return np.exp(randomizer.log_probability(reports, np.arange(inputs)[:, None]))


def heights(likelier: Floats, epsilon: float, tau: float, signs: Sequence[int]) -> Floats:
    """How much likelier reports are than on the reference, as an oracle with these errors says."""
    low, high = math.exp(-epsilon), math.exp(epsilon)
    answers = (likelier - low) / (high - low) + tau * np.array(signs)
    return low + np.clip(answers, 0, 1) * (high - low)


def single(name: str, epsilon: float) -> dict[str, Any]:
    """One report from a fresh entry, as part of a run of several."""
    kind, given = SINGLE[name]
    randomizer, weights = kind(epsilon), np.array(given) / np.sum(given)
    table = table_of(randomizer, len(weights))
    plan = local.plan_simulation(epsilon, beta=BETA, applications=APPLICATIONS)
    truth, reference = weights @ table, table[0]
    distances, iterations = [], []
    for signs in itertools.product((-1, 0, 1), repeat=len(truth)):
        weighed = reference * heights(truth / reference, epsilon, plan.tau, signs)
        distances.append(float(np.abs(weighed / weighed.sum() - truth).sum() / 2))
        iterations.append(math.exp(epsilon) * (1 + plan.phi) / float(weighed.sum()))
    return {
        "name": name,
        "epsilon": epsilon,
        "tau": plan.tau,
        "paper's tau": BETA / (3 * math.exp(2 * epsilon) * APPLICATIONS),
        "distance": APPLICATIONS * max(distances),
        "bound": plan.distance,
        "iterations": max(iterations),
        "iterations, bound": plan.iterations,
        "queries": queries(randomizer, weights) / APPLICATIONS,
        "queries, bound": plan.candidates,
    }


def oracle_of(weights: Floats) -> local.ExactOracle:
    """A distribution of inputs, with errors at random."""
    inputs = np.arange(len(weights))[:, None]
    labels = np.zeros(len(weights), np.uint8)
    return local.ExactOracle(inputs, labels, weights, error="random", random_state=1)


def queries(randomizer: local.Randomizer, weights: Floats) -> float:
    """How many a run asks on average."""
    oracle, rng = oracle_of(weights), np.random.default_rng(0)
    call = {"beta": BETA, "applications": APPLICATIONS, "random_state": rng}
    runs = [
        local.simulate_local(randomizer, lambda X, y: X[:, 0], oracle, **call) for _ in range(20)
    ]
    return float(np.mean([run.queries for run in runs]))


def joint(name: str, epsilon: float) -> dict[str, Any]:
    """All reports about one entry, `epsilon` in all."""
    count, given = JOINT[name]
    randomizer = local.BinaryResponse(epsilon / count, (0, 1))
    weights = np.array(given) / np.sum(given)
    phi = min(1 / 3, 1.8 * BETA / count)
    worst = [joint_law(randomizer, weights, phi, count, signs) for signs in patterns(count)]
    truth = np.array([true_probability(randomizer, weights, w) for w in outcomes(count)])
    slack = (1 + 3 * phi) * (1 + phi) / (1 - phi)
    return {
        "name": name,
        "epsilon": epsilon,
        "tau": tolerance(phi, epsilon),
        "paper's tau": BETA / (9 * math.exp(2 * epsilon) * count),
        "distance": max(float(np.abs(law - truth).sum() / 2) for law, _ in worst),
        "bound": count * phi / (1 + math.sqrt(1 - phi**2)),
        "iterations": max(found for _, found in worst),
        "iterations, bound": slack * math.exp(epsilon / count),
        "queries": entry_queries(randomizer, weights, count) / count,
        "queries, bound": slack * math.exp(epsilon / count),
    }


def outcomes(count: int) -> list[tuple[int, ...]]:
    return list(itertools.product((0, 1), repeat=count))


def patterns(count: int) -> list[tuple[int, ...]]:
    """Signs of the errors for every history and report: all, or a thousand of them."""
    asked = 2 ** (count + 1) - 2
    if asked <= 8:
        return list(itertools.product((-1, 1), repeat=asked))
    rng = np.random.default_rng(1)
    return [tuple(rng.choice((-1, 1), asked).tolist()) for _ in range(1_000)]


def tolerance(phi: float, epsilon: float) -> float:
    return min(0.5, phi / math.expm1(2 * epsilon))


def true_probability(
    randomizer: local.Randomizer, weights: Floats, reports: tuple[int, ...]
) -> float:
    table = table_of(randomizer, len(weights))
    return float(weights @ np.prod(table[:, list(reports)], axis=1))


def joint_law(
    randomizer: local.Randomizer,
    weights: Floats,
    phi: float,
    count: int,
    signs: tuple[int, ...],
) -> tuple[Floats, float]:
    """The law of all outcomes under these errors, and the most iterations of any step."""
    table, turns = table_of(randomizer, len(weights)), iter(signs)
    ratios = table / table[0]
    law: dict[tuple[int, ...], float] = {(): 1.0}
    mean_ratios = {(): 1.0}
    most = 0.0
    for step in range(count):
        total = (step + 1) * randomizer.epsilon
        slack = 1 + phi if step == 0 else 1 + 3 * phi
        for history in [w for w in law if len(w) == step]:
            likelier = (weights * np.prod(ratios[:, list(history)], axis=1)) @ ratios
            errors = [next(turns), next(turns)]
            found = heights(likelier, total, tolerance(phi, total), errors)
            weighed = table[0] * found
            chance = weighed.sum() / mean_ratios[history] / math.exp(randomizer.epsilon) / slack
            most = max(most, 1 / float(chance))
            for w in (0, 1):
                law[(*history, w)] = law[history] * float(weighed[w] / weighed.sum())
                mean_ratios[(*history, w)] = float(found[w])
    return np.array([law[w] for w in outcomes(count)]), most


def entry_queries(randomizer: local.Randomizer, weights: Floats, count: int) -> float:
    """How many an entry needs on average."""
    oracle, rng, asked = oracle_of(weights), np.random.default_rng(0), 0
    for _ in range(20):
        entry = local.SimulatedEntry(oracle, beta=BETA, applications=count, random_state=rng)
        for _ in range(count):
            entry.apply(randomizer, lambda X, y: X[:, 0])
        asked += entry.queries
    return asked / 20


def show(rows: list[dict[str, Any]]) -> None:
    """The table."""
    print(
        f"beta = {BETA}; {APPLICATIONS} applications, or those of one entry. Worst of all errors:\n"
    )
    titles = ("tau", "paper's tau", "distance", "bound")
    more = ("iterations", "bound", "2 e^eps", "queries", "at most")
    print(f"{'':<36}{'eps':>5}" + "".join(f"{title:>13}" for title in (*titles, *more)))
    for row in rows:
        columns = ("tau", "paper's tau", "distance", "bound", "iterations", "iterations, bound")
        values = [row[column] for column in columns]
        values += [2 * math.exp(row["epsilon"]), row["queries"], row["queries, bound"]]
        print(
            f"{row['name']:<36}{row['epsilon']:>5g}"
            + "".join(f"{value:>13.4g}" for value in values)
        )


def figure(rows: list[dict[str, Any]]) -> Figure:
    """Distances and iterations over epsilon, with their bounds."""
    made = Figure(figsize=(11, 4.5), layout="constrained")
    distances, iterations = made.subplots(1, 2)
    for name in (*SINGLE, *JOINT):
        some = [row for row in rows if row["name"] == name]
        epsilons = [row["epsilon"] for row in some]
        distances.plot(epsilons, [row["distance"] for row in some], "o-", label=name)
        iterations.plot(epsilons, [row["iterations"] for row in some], "o-", label=name)
    some = [row for row in rows if row["name"] == next(iter(SINGLE))]
    epsilons = [row["epsilon"] for row in some]
    distances.plot(
        epsilons, [row["bound"] for row in some], "k--", label="proved bound, fresh entries"
    )
    distances.axhline(BETA, color="grey", label="beta")
    iterations.plot(
        epsilons, [row["iterations, bound"] for row in some], "k--", label="bound, fresh entries"
    )
    paper = [2 * math.exp(epsilon) for epsilon in epsilons]
    iterations.plot(epsilons, paper, color="grey", label="paper, 2 exp(epsilon)")
    distances.set_ylabel("worst statistical distance of all reports")
    iterations.set_ylabel("expected candidates for a report")
    iterations.set_yscale("log")
    for axes in (distances, iterations):
        axes.set_xlabel("epsilon, of one entry")
        axes.legend(fontsize="small")
    return made


if __name__ == "__main__":
    main()
